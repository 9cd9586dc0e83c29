//! Programs that lend tools to the runs of a session, and whether they are still there: as long as one
//! of their sockets on it is open, and a moment longer. One that was silent before its socket was lost
//! may sleep, with the machine that it runs on: it is waited for as long as its calls would be.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use navi_actors::protocol::ids::{SessionId, UserId};
use navi_actors::tools::lent;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// How long a program may take to come back whose last socket was closed. Our bridges try three times
/// a second.
const COMES_BACK: Duration = Duration::from_secs(5);
/// How many of one person are known that have no socket open.
const AWAY: usize = 64;

/// See the module. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lenders(Arc<Mutex<HashMap<UserId, VecDeque<Lender>>>>);

#[derive(Debug)]
struct Lender {
    session: SessionId,
    /// As it calls itself.
    name: String,
    sockets: usize,
    /// How often the last of its sockets was closed.
    left: u64,
    gone: CancellationToken,
}

/// A socket of a lender, until it is dropped.
#[derive(Debug)]
pub(crate) struct Here {
    lenders: Lenders,
    by: UserId,
    gone: CancellationToken,
    /// How long it may take to come back.
    comes_back: Duration,
}

impl Here {
    /// Nothing was heard of the program for a while: it may sleep. Once a call of its would have
    /// ended anyway, it is not waited for any longer.
    pub(crate) fn fell_silent(&mut self) {
        self.comes_back = lent::TIME_LIMIT;
    }
}

impl Lenders {
    /// Cancelled when this program has gone. It may be on its way yet.
    pub(crate) fn gone(&self, by: UserId, session: SessionId, name: &str) -> CancellationToken {
        let mut all = self.0.lock();
        Self::known(&mut all, by, session, name).gone.clone()
    }

    /// A socket of the program is open.
    pub(crate) fn arrive(&self, by: UserId, session: SessionId, name: &str) -> Here {
        let mut all = self.0.lock();
        let lender = Self::known(&mut all, by, session, name);
        lender.sockets += 1;
        Here {
            lenders: self.clone(),
            by,
            gone: lender.gone.clone(),
            comes_back: COMES_BACK,
        }
    }

    fn known<'a>(
        all: &'a mut HashMap<UserId, VecDeque<Lender>>,
        by: UserId,
        session: SessionId,
        name: &str,
    ) -> &'a mut Lender {
        let lenders = all.entry(by).or_default();
        let known = lenders
            .iter()
            .position(|it| it.session == session && it.name == name);
        let at = known.unwrap_or_else(|| {
            if lenders.iter().filter(|it| it.sockets == 0).count() >= AWAY
                && let Some(oldest) = lenders.iter().position(|it| it.sockets == 0)
                && let Some(oldest) = lenders.remove(oldest)
            {
                // Nobody would find it any more.
                oldest.gone.cancel();
            }
            lenders.push_back(Lender {
                session,
                name: name.to_owned(),
                sockets: 0,
                left: 0,
                gone: CancellationToken::new(),
            });
            lenders.len() - 1
        });
        &mut lenders[at]
    }

    /// A socket was closed. How often that was the last one, where it was now.
    fn leave(&self, by: UserId, gone: &CancellationToken) -> Option<u64> {
        let mut all = self.0.lock();
        let mut lenders = all.get_mut(&by)?.iter_mut();
        let lender = lenders.find(|it| it.gone == *gone)?;
        lender.sockets -= 1;
        if lender.sockets > 0 {
            return None;
        }
        lender.left += 1;
        Some(lender.left)
    }

    /// Forgets one that did not come back.
    fn forget(&self, by: UserId, gone: &CancellationToken, left: u64) {
        let mut all = self.0.lock();
        let Some(lenders) = all.get_mut(&by) else {
            return;
        };
        let is_it = |it: &Lender| it.gone == *gone && it.sockets == 0 && it.left == left;
        if let Some(at) = lenders.iter().position(is_it) {
            lenders.remove(at);
            if lenders.is_empty() {
                all.remove(&by);
            }
            gone.cancel();
        }
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        let Some(left) = self.lenders.leave(self.by, &self.gone) else {
            return;
        };
        let (lenders, by, gone) = (self.lenders.clone(), self.by, self.gone.clone());
        let comes_back = self.comes_back;
        let Ok(runtime) = Handle::try_current() else {
            // The service is at its end, and so are all runs.
            return;
        };
        runtime.spawn(async move {
            tokio::time::sleep(comes_back).await;
            lenders.forget(by, &gone, left);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Without a runtime nobody waits: what comes of the wait is done here.
    #[test]
    fn a_program_has_gone_that_does_not_come_back_after_its_last_socket() {
        let lenders = Lenders::default();
        let (by, session) = (UserId::new(), SessionId::new());
        let gone = lenders.gone(by, session, "bridge");
        let [first, second] = [(); 2].map(|()| lenders.arrive(by, session, "bridge"));
        drop(first);
        lenders.forget(by, &gone, 0);
        drop(second);
        // It came back in time, and left once more.
        drop(lenders.arrive(by, session, "bridge"));
        lenders.forget(by, &gone, 1);
        assert!(!gone.is_cancelled());
        lenders.forget(by, &gone, 2);
        assert!(gone.is_cancelled() && lenders.0.lock().is_empty());
        // Who comes later lends anew.
        assert!(!lenders.gone(by, session, "bridge").is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_slept_takes_up_its_calls_again() {
        let lenders = Lenders::default();
        let (by, session) = (UserId::new(), SessionId::new());
        let gone = lenders.gone(by, session, "bridge");
        let mut asleep = lenders.arrive(by, session, "bridge");
        asleep.fell_silent();
        drop(asleep);
        tokio::time::sleep(lent::TIME_LIMIT / 2).await;
        assert!(!gone.is_cancelled());
        let awake = lenders.arrive(by, session, "bridge");
        assert_eq!(awake.gone, gone);
        // It is awake, and goes.
        drop(awake);
        tokio::time::sleep(2 * COMES_BACK).await;
        assert!(gone.is_cancelled());

        let gone = lenders.gone(by, session, "bridge");
        let mut asleep = lenders.arrive(by, session, "bridge");
        asleep.fell_silent();
        drop(asleep);
        tokio::time::sleep(lent::TIME_LIMIT + COMES_BACK).await;
        assert!(gone.is_cancelled() && lenders.0.lock().is_empty());
    }

    #[test]
    fn a_program_that_is_there_is_not_pushed_out_by_those_that_are_not() {
        let lenders = Lenders::default();
        let (by, session) = (UserId::new(), SessionId::new());
        let here = lenders.arrive(by, session, "bridge");
        for n in 0..=AWAY {
            lenders.gone(by, session, &n.to_string());
        }
        assert_eq!(lenders.0.lock()[&by].len(), AWAY + 1);
        assert_eq!(lenders.gone(by, session, "bridge"), here.gone);
    }
}
