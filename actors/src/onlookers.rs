//! Who watches a session that is somebody else's: where they do not reach it any more, as they were
//! taken out of it, or their link has ended, so does what they watch by.
//!
//! What this process takes from somebody ends at once. The database is asked a few times a second
//! all the same, while there is somebody to ask about: links expire, and `navi user remove` is
//! another process.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::domain::sharing::{By, Reach};
use crate::engine::Engine;
use crate::protocol::ids::SessionId;
use crate::services::now;

/// Whoever is not let in any more watches no longer than this and the answer of the database.
const LOOK_EVERY: Duration = Duration::from_millis(400);

/// Who watches what.
type Watching = (By, SessionId);

/// All that is watched. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Onlookers(Arc<Mutex<HashMap<Watching, Open>>>);

#[derive(Debug, Default)]
struct Open {
    ended: CancellationToken,
    count: usize,
    /// It is theirs: that does not change.
    owned: bool,
}

/// One feed's share, until it is dropped.
#[derive(Debug)]
pub(crate) struct Onlooker {
    all: Onlookers,
    watching: Watching,
    ended: CancellationToken,
}

impl Onlookers {
    pub(crate) fn watch(&self, by: By, session: SessionId) -> Onlooker {
        let watching = (by, session);
        let mut all = self.0.lock();
        let open = all.entry(watching).or_default();
        open.count += 1;
        Onlooker {
            all: self.clone(),
            watching,
            ended: open.ended.clone(),
        }
    }

    /// Somebody does not reach a session any more.
    pub(crate) fn end(&self, by: By, session: SessionId) {
        if let Some(open) = self.0.lock().get(&(by, session)) {
            open.ended.cancel();
        }
    }

    fn asked(&self) -> Vec<Watching> {
        let all = self.0.lock();
        let others = all.iter().filter(|(_, open)| !open.owned);
        others.map(|(watching, _)| *watching).collect()
    }

    fn settle(&self, asked: &[Watching], reached: &HashMap<Watching, Reach>) {
        let mut all = self.0.lock();
        for watching in asked {
            let Some(open) = all.get_mut(watching) else {
                continue;
            };
            match reached.get(watching) {
                Some(Reach::Owns) => open.owned = true,
                Some(Reach::TakesPart | Reach::Looks) => {}
                None => open.ended.cancel(),
            }
        }
    }
}

impl Engine {
    /// Ends what is watched by those who do not reach it any more, for as long as this is polled.
    pub(crate) async fn tend_onlookers(self) {
        let onlookers = self.onlookers().clone();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let asked = onlookers.asked();
            if asked.is_empty() {
                continue;
            }
            let about = asked.clone();
            let reached = self.stored(async move |store| store.reached(&about, now()).await);
            match reached.await {
                Ok(reached) => onlookers.settle(&asked, &reached),
                Err(error) => tracing::debug!(%error, "who is let in is not known"),
            }
        }
    }
}

impl Onlooker {
    /// Waits until they are let in no longer.
    pub(crate) async fn ended(self) {
        self.ended.cancelled().await;
    }
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        if let Some(open) = all.get_mut(&self.watching) {
            open.count -= 1;
            if open.count == 0 {
                all.remove(&self.watching);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ids::{LinkId, UserId};

    #[test]
    fn what_is_reached_goes_on_and_what_is_not_ends() {
        let onlookers = Onlookers::default();
        let session = SessionId::new();
        let owner = By::Person(UserId::new());
        let other = By::Person(UserId::new());
        let link = By::Link(LinkId::new());
        let watched = [owner, other, link].map(|by| onlookers.watch(by, session));
        let asked = onlookers.asked();
        assert_eq!(asked.len(), 3);
        let reached = HashMap::from([
            ((owner, session), Reach::Owns),
            ((link, session), Reach::Looks),
        ]);
        onlookers.settle(&asked, &reached);
        let ended = watched.each_ref().map(|it| it.ended.is_cancelled());
        assert_eq!(ended, [false, true, false]);
        // Nobody asks about the owner again.
        assert_eq!(onlookers.asked().len(), 2);
        onlookers.end(link, session);
        assert!(watched[2].ended.is_cancelled());
        drop(watched);
        assert!(onlookers.0.lock().is_empty());
    }
}
