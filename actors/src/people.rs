//! What one person may use where there are others: the powers that an admin granted, and as much
//! of what all share as leaves the others theirs. Where there is one user they may all.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::TimeDelta;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::UserId;
use crate::protocol::powers::Powers;
use crate::root::store_error;
use crate::services::now;
use crate::store::{Store, StoreError};

/// As many people have turns noted before those are dropped that nobody uses.
const NOTED: usize = 1_024;

/// What one person has at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonLimits {
    /// Runs that go at once. Further ones wait.
    pub runs: usize,
    /// Uploads on their way at once.
    pub uploads: usize,
    /// Conversations, those that are put away with them.
    pub sessions: u64,
    /// Of files that were sent in or given back, in bytes.
    pub file_bytes: u64,
    /// Tokens that runs used in the last 24 hours; none: as many as they like.
    pub day_tokens: Option<u64>,
}

/// See the module. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct People(Option<Arc<Several>>);

#[derive(Debug)]
struct Several {
    store: Store,
    limits: PersonLimits,
    runs: Turns,
    uploads: Turns,
}

/// Something that each person may do so many times at once.
#[derive(Debug)]
struct Turns {
    each: usize,
    people: Mutex<HashMap<UserId, Arc<Semaphore>>>,
}

/// A person's turn, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Turn {
    /// Where nobody counts.
    pub(crate) const fn free() -> Self {
        Self { _permit: None }
    }

    const fn of(permit: OwnedSemaphorePermit) -> Self {
        Self {
            _permit: Some(permit),
        }
    }
}

impl Turns {
    fn new(each: usize) -> Self {
        Self {
            each,
            people: Mutex::default(),
        }
    }

    fn of(&self, user: UserId) -> Arc<Semaphore> {
        let mut people = self.people.lock();
        if people.len() >= NOTED {
            // Whoever waits holds it, too.
            people.retain(|_, turns| Arc::strong_count(turns) > 1);
        }
        let turns = people.entry(user);
        Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(self.each))))
    }
}

impl People {
    /// One user, whose machine it is.
    pub const fn one() -> Self {
        Self(None)
    }

    /// Several, each with these limits.
    pub fn several(store: Store, limits: PersonLimits) -> Self {
        Self(Some(Arc::new(Several {
            store,
            limits,
            runs: Turns::new(limits.runs),
            uploads: Turns::new(limits.uploads),
        })))
    }

    /// Whether people sign in: then messages and answers have authors.
    pub const fn are_several(&self) -> bool {
        self.0.is_some()
    }

    /// What this person may use now of what is powerful.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn powers(&self, user: UserId) -> Result<Powers, StoreError> {
        match &self.0 {
            None => Ok(Powers::All),
            Some(several) => several.store.powers(user).await,
        }
    }

    /// A turn for a run, where there is one now.
    pub fn try_run(&self, user: UserId) -> Option<Turn> {
        match &self.0 {
            None => Some(Turn::free()),
            Some(several) => {
                let turn = several.runs.of(user).try_acquire_owned().ok()?;
                Some(Turn::of(turn))
            }
        }
    }

    /// The same, once another run of theirs has ended.
    pub async fn run(&self, user: UserId) -> Turn {
        match &self.0 {
            None => Turn::free(),
            // Closed by nobody.
            Some(several) => Turn {
                _permit: several.runs.of(user).acquire_owned().await.ok(),
            },
        }
    }

    /// How many runs of one person go at once.
    pub fn runs_at_once(&self) -> usize {
        self.0
            .as_ref()
            .map_or(usize::MAX, |several| several.limits.runs)
    }

    /// A turn for an upload.
    ///
    /// # Errors
    /// `rate_limited` where so many of theirs are on their way.
    pub fn upload(&self, user: UserId) -> Result<Turn, NaviError> {
        let Some(several) = &self.0 else {
            return Ok(Turn::free());
        };
        match several.uploads.of(user).try_acquire_owned() {
            Ok(turn) => Ok(Turn::of(turn)),
            Err(_) => Err(NaviError::new(
                ErrorCode::RateLimited,
                format!(
                    "{} of your uploads are on their way already; try again when one is done",
                    several.limits.uploads
                ),
            )),
        }
    }

    /// As many bytes of files as this person has room for.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn file_room(&self, user: UserId) -> Result<u64, StoreError> {
        match &self.0 {
            None => Ok(u64::MAX),
            Some(several) => {
                let held = several.store.file_bytes_of(user).await?;
                Ok(several.limits.file_bytes.saturating_sub(held))
            }
        }
    }

    /// Whether this person may have one more conversation.
    ///
    /// # Errors
    /// `rate_limited` where they may not; `store_unavailable`.
    pub async fn check_sessions(&self, user: UserId) -> Result<(), NaviError> {
        let Some(several) = &self.0 else {
            return Ok(());
        };
        let held = several.store.sessions_held(user).await;
        let most = several.limits.sessions;
        if held.map_err(|error| store_error(&error))? < most {
            return Ok(());
        }
        Err(NaviError::new(
            ErrorCode::RateLimited,
            format!(
                "you have {most} conversations, and that is the most; delete some, or have an admin raise NAVI_PERSON_SESSIONS"
            ),
        ))
    }

    /// Whether this person has tokens left for another run.
    ///
    /// # Errors
    /// `rate_limited` where they have not; `store_unavailable`.
    pub async fn check_tokens(&self, user: UserId) -> Result<(), NaviError> {
        let Some(several) = &self.0 else {
            return Ok(());
        };
        let Some(most) = several.limits.day_tokens else {
            return Ok(());
        };
        let now = now();
        let day = now - TimeDelta::hours(24)..now;
        let used = several.store.used_within(user, day).await;
        let used = used.map_err(|error| store_error(&error))?;
        let used: u64 = used
            .iter()
            .map(|it| it.prompt_tokens + it.completion_tokens)
            .sum();
        if used < most {
            return Ok(());
        }
        Err(NaviError::new(
            ErrorCode::RateLimited,
            format!(
                "your runs used {used} tokens in the last 24 hours, of {most}; wait, or have an admin raise NAVI_PERSON_TOKENS_A_DAY"
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_has_turns_of_their_own_and_nobody_is_kept_in_mind() {
        let turns = Turns::new(2);
        let (anna, borys) = (UserId::new(), UserId::new());
        let take = |user| turns.of(user).try_acquire_owned().ok();
        let held = (take(anna), take(anna));
        assert!(held.0.is_some() && held.1.is_some());
        assert!(take(anna).is_none());
        assert!(take(borys).is_some());
        for _ in 0..NOTED {
            turns.of(UserId::new());
        }
        assert!(turns.people.lock().len() <= NOTED);
        assert!(take(anna).is_none(), "who holds turns is not forgotten");
        drop(held);
        assert!(take(anna).is_some());
    }
}
