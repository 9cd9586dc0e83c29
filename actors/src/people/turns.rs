//! What each person may do so many times at once: further ones wait, and how many that is may
//! change while some go on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::protocol::ids::UserId;

/// As many people have turns noted before those are dropped that nobody uses.
const NOTED: usize = 1_024;

/// How long is rested at most after heavy work.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<UserId, Arc<Places>>>);

/// One person's.
#[derive(Debug)]
struct Places {
    free: Arc<Semaphore>,
    size: Mutex<Size>,
    /// For what only one of those who have a place does at a time.
    lane: AsyncMutex<()>,
}

#[derive(Debug)]
struct Size {
    /// How many there are.
    most: usize,
    /// How many are taken beyond that: they were taken when there were more, and are nobody's when
    /// they come back.
    beyond: usize,
}

/// A person's turn, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    taken: Option<Taken>,
}

#[derive(Debug)]
struct Taken {
    permit: Option<OwnedSemaphorePermit>,
    of: Arc<Places>,
}

impl Turn {
    /// Where nobody counts.
    pub(crate) const fn free() -> Self {
        Self { taken: None }
    }

    /// Does heavy work for this person, one at a time however many turns they have, and lets the
    /// disk and the processor be others' for as long as it took.
    pub(crate) async fn heavy<T>(&self, work: impl Future<Output = T>) -> T {
        let Some(taken) = &self.taken else {
            return work.await;
        };
        let _alone = taken.of.lane.lock().await;
        let began = Instant::now();
        let done = work.await;
        tokio::time::sleep(began.elapsed().min(LONGEST_REST)).await;
        done
    }

    fn of(of: Arc<Places>, permit: OwnedSemaphorePermit) -> Self {
        let permit = Some(permit);
        Self {
            taken: Some(Taken { permit, of }),
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else {
            return;
        };
        // It comes back before anybody changes how many there are.
        let mut size = self.of.size.lock();
        if size.beyond > 0 {
            size.beyond -= 1;
            permit.forget();
        } else {
            drop(permit);
        }
    }
}

impl Places {
    fn new(most: u32) -> Self {
        let most = most as usize;
        Self {
            free: Arc::new(Semaphore::new(most)),
            size: Mutex::new(Size { most, beyond: 0 }),
            lane: AsyncMutex::default(),
        }
    }

    fn resize(&self, most: u32) {
        let most = most as usize;
        let mut size = self.size.lock();
        if most > size.most {
            let more = most - size.most;
            let back = more.min(size.beyond);
            size.beyond -= back;
            self.free.add_permits(more - back);
        } else {
            let fewer = size.most - most;
            size.beyond += fewer - self.free.forget_permits(fewer);
        }
        size.most = most;
    }

    fn held(&self) -> usize {
        let size = self.size.lock();
        (size.most + size.beyond).saturating_sub(self.free.available_permits())
    }
}

impl Turns {
    /// One, where there is one now. `most`: how many this person has, where nobody has asked yet.
    pub(super) fn take(&self, user: UserId, most: impl FnOnce() -> u32) -> Option<Turn> {
        let places = self.of(user, most);
        let permit = Arc::clone(&places.free).try_acquire_owned().ok()?;
        Some(Turn::of(places, permit))
    }

    /// The same, once there is one.
    pub(super) async fn wait(&self, user: UserId, most: impl FnOnce() -> u32) -> Turn {
        let places = self.of(user, most);
        match Arc::clone(&places.free).acquire_owned().await {
            Ok(permit) => Turn::of(places, permit),
            // Closed by nobody.
            Err(_) => Turn::free(),
        }
    }

    /// This person has so many from now on. What goes on beyond that ends as it would have.
    pub(super) fn resize(&self, user: UserId, most: u32) {
        if let Some(places) = self.0.lock().get(&user) {
            places.resize(most);
        }
    }

    /// How many are taken.
    pub(super) fn held(&self, user: UserId) -> u64 {
        let places = self.0.lock().get(&user).map(|places| places.held());
        places.unwrap_or_default() as u64
    }

    fn of(&self, user: UserId, most: impl FnOnce() -> u32) -> Arc<Places> {
        let mut people = self.0.lock();
        if people.len() >= NOTED {
            // Whoever waits holds them, too.
            people.retain(|_, places| Arc::strong_count(places) > 1);
        }
        // Asked for in here: whoever changes it meanwhile finds these, and resizes them.
        let places = people.entry(user);
        Arc::clone(places.or_insert_with(|| Arc::new(Places::new(most()))))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn each_has_turns_of_their_own_and_nobody_is_kept_in_mind() {
        let turns = Turns::default();
        let (anna, borys) = (UserId::new(), UserId::new());
        let take = |user| turns.take(user, || 2);
        let held = (take(anna), take(anna));
        assert!(held.0.is_some() && held.1.is_some());
        assert!(take(anna).is_none());
        assert!(take(borys).is_some());
        for _ in 0..NOTED {
            take(UserId::new()).unwrap();
        }
        assert!(turns.0.lock().len() <= NOTED);
        assert!(take(anna).is_none(), "who holds turns is not forgotten");
        drop(held);
        assert!(take(anna).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn heavy_work_is_one_at_a_time_and_rests_as_long_as_it_took() {
        let turns = Turns::default();
        let (anna, borys) = (UserId::new(), UserId::new());
        let take = |user| turns.take(user, || 2).unwrap();
        let (first, second, other) = (take(anna), take(anna), take(borys));
        let began = Instant::now();
        let work = |turn: Turn, ms| async move {
            turn.heavy(async { tokio::time::sleep(Duration::from_millis(ms)).await })
                .await;
            began.elapsed().as_millis()
        };
        let ended = tokio::join!(work(first, 100), work(second, 50), work(other, 20));
        assert_eq!(ended, (200, 300, 40));
        let free = work(Turn::free(), 10).await;
        assert_eq!(free, 310);
    }

    #[test]
    fn how_many_there_are_changes_while_some_are_taken() {
        let turns = Turns::default();
        let anna = UserId::new();
        let take = || turns.take(anna, || 3);
        let mut held: Vec<Turn> = (0..3).map(|_| take().unwrap()).collect();
        turns.resize(anna, 1);
        assert_eq!(turns.held(anna), 3, "what goes on is not ended");
        held.truncate(1);
        assert_eq!(turns.held(anna), 1);
        assert!(take().is_none());
        // More of them, before those beyond have come back.
        turns.resize(anna, 3);
        held.extend([take().unwrap(), take().unwrap()]);
        turns.resize(anna, 1);
        turns.resize(anna, 2);
        assert!(take().is_none());
        held.pop();
        assert!(take().is_none());
        held.pop();
        let second = take().unwrap();
        assert!(take().is_none());
        drop((held, second));
        assert_eq!(turns.held(anna), 0);
        let both = (take().unwrap(), take().unwrap());
        assert!(take().is_none());
        drop(both);
    }

    #[test]
    fn who_waits_goes_as_soon_as_there_are_more() {
        let turns = Turns::default();
        let anna = UserId::new();
        let first = turns.take(anna, || 1).unwrap();
        let mut second = Box::pin(turns.wait(anna, || 1));
        assert!(second.as_mut().now_or_never().is_none());
        turns.resize(anna, 2);
        let second = second.now_or_never().unwrap();
        // Fewer again: the one that waits next has to wait for both.
        turns.resize(anna, 1);
        let mut third = Box::pin(turns.wait(anna, || 1));
        drop(first);
        assert!(third.as_mut().now_or_never().is_none());
        drop(second);
        assert!(third.now_or_never().is_some());
    }
}
