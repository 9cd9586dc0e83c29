//! What one person may use where there are others: the powers that an admin granted, and as much
//! of what all share as leaves the others theirs. Where there is one user they may all.

mod turns;

use std::collections::HashMap;
use std::sync::Arc;

use chrono::TimeDelta;
use parking_lot::Mutex;

pub use self::turns::Turn;
use self::turns::Turns;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::UserId;
use crate::protocol::limits::{LimitsChange, LimitsInfo, LimitsUse, OwnLimits, PersonLimits};
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::protocol::powers::Powers;
use crate::root::store_error;
use crate::services::now;
use crate::store::{ANSWER_LIMIT, Held, Store, StoreError, answered};

/// For so long what was used counts to the tokens of a day.
pub(crate) const DAY: TimeDelta = TimeDelta::hours(24);

/// As many large bodies of one person are read and parsed at once: a program that sends its whole
/// conversation each time, a few times over.
const LARGE_BODIES: u32 = 4;

/// See the module. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct People(Option<Arc<Several>>);

#[derive(Debug)]
struct Several {
    store: Store,
    /// What each has who has nothing of their own.
    usual: PersonLimits,
    /// As the database has them: nobody else changes them there while this process serves.
    own: Mutex<HashMap<UserId, OwnLimits>>,
    /// Changes are made one after the other, there and here.
    changing: tokio::sync::Mutex<()>,
    runs: Turns,
    /// Beside runs: a run may wait for what a program does by such a task.
    tasks: Turns,
    uploads: Turns,
    bodies: Turns,
}

impl Several {
    fn limits(&self, user: UserId) -> PersonLimits {
        let own = self.own.lock().get(&user).copied();
        self.usual.but(own.unwrap_or_default())
    }
}

impl People {
    /// One user, whose machine it is.
    pub const fn one() -> Self {
        Self(None)
    }

    /// Several, each with these limits, but for who has some of their own.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn several(store: Store, usual: PersonLimits) -> Result<Self, StoreError> {
        let own = store.own_limits().await?;
        Ok(Self(Some(Arc::new(Several {
            store,
            usual,
            own: Mutex::new(own),
            changing: tokio::sync::Mutex::default(),
            runs: Turns::default(),
            tasks: Turns::default(),
            uploads: Turns::default(),
            bodies: Turns::default(),
        }))))
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
            Some(several) => answered(ANSWER_LIMIT, several.store.powers(user)).await,
        }
    }

    /// What this person has at the most; none where there is one user.
    pub fn limits(&self, user: UserId) -> Option<PersonLimits> {
        self.0.as_ref().map(|several| several.limits(user))
    }

    /// Gives a person limits of their own, or takes them back. They hold for what begins from now
    /// on, and what waits for its turn. Tells whether there is such a person.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn change_limits(
        &self,
        user: UserId,
        change: LimitsChange,
    ) -> Result<bool, StoreError> {
        let Some(several) = &self.0 else {
            return Ok(false);
        };
        let _turn = several.changing.lock().await;
        let Some(own) = several.store.change_limits(user, change).await? else {
            return Ok(false);
        };
        let (is_usual, limits) = (own == OwnLimits::default(), several.usual.but(own));
        {
            let mut all = several.own.lock();
            if is_usual {
                all.remove(&user);
            } else {
                all.insert(user, own);
            }
        }
        several.runs.resize(user, limits.runs);
        several.tasks.resize(user, limits.runs);
        several.uploads.resize(user, limits.uploads);
        Ok(true)
    }

    /// How these people stand to what is limited, in their order; nothing where there is one user.
    /// Their tabs are not known here.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn limits_of(&self, users: &[UserId]) -> Result<Vec<LimitsInfo>, StoreError> {
        let Some(several) = &self.0 else {
            return Ok(Vec::new());
        };
        let one = match users {
            [one] => Some(*one),
            _ => None,
        };
        let held = several.store.held_by_people(one, now() - DAY).await?;
        let infos = users.iter().map(|user| {
            let own = several.own.lock().get(user).copied().unwrap_or_default();
            let held = held.get(user).copied().unwrap_or_default();
            let Held {
                sessions,
                file_bytes,
                tokens,
            } = held;
            LimitsInfo {
                own,
                in_force: several.usual.but(own),
                used: LimitsUse {
                    runs: several.runs.held(*user),
                    uploads: several.uploads.held(*user),
                    sessions,
                    file_bytes,
                    tokens_a_day: tokens,
                    tabs: 0,
                },
            }
        });
        Ok(infos.collect())
    }

    /// A turn for a run, where there is one now.
    pub fn try_run(&self, user: UserId) -> Option<Turn> {
        match &self.0 {
            None => Some(Turn::free()),
            Some(several) => several.runs.take(user, || several.limits(user).runs),
        }
    }

    /// The same, once another run of theirs has ended or waits.
    pub async fn run(&self, user: UserId) -> Turn {
        match &self.0 {
            None => Turn::free(),
            Some(several) => several.runs.wait(user, || several.limits(user).runs).await,
        }
    }

    /// A turn for a small task of a program's, of which there are as many as of runs.
    pub async fn task(&self, user: UserId) -> Turn {
        match &self.0 {
            None => Turn::free(),
            Some(several) => several.tasks.wait(user, || several.limits(user).runs).await,
        }
    }

    /// A turn for a large body of a request, while it is read and parsed.
    pub async fn large_body(&self, user: UserId) -> Turn {
        match &self.0 {
            None => Turn::free(),
            Some(several) => several.bodies.wait(user, || LARGE_BODIES).await,
        }
    }

    /// A turn for an upload.
    ///
    /// # Errors
    /// `rate_limited` where so many of theirs are on their way.
    pub fn upload(&self, user: UserId) -> Result<Turn, NaviError> {
        let Some(several) = &self.0 else {
            return Ok(Turn::free());
        };
        let most = || several.limits(user).uploads;
        several.uploads.take(user, most).ok_or_else(|| {
            let uploads = [("n", most().to_string())];
            NaviError::said(
                ErrorCode::RateLimited,
                Phrase::new(PhraseCode::UploadsGo, uploads),
            )
        })
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
                Ok(several.limits(user).file_bytes().saturating_sub(held))
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
        let held = held.map_err(|error| store_error(&error))?;
        let most = several.limits(user).sessions;
        if held < most.into() {
            return Ok(());
        }
        let params = [("n", held.to_string()), ("most", most.to_string())];
        Err(NaviError::said(
            ErrorCode::RateLimited,
            Phrase::new(PhraseCode::ConversationsFull, params),
        ))
    }

    /// Counts what this person used beside their runs.
    ///
    /// # Errors
    /// `store_unavailable`.
    pub async fn count_tokens(&self, user: UserId, tokens: u64) -> Result<(), NaviError> {
        let Some(several) = &self.0 else {
            return Ok(());
        };
        let counted = several.store.count_tokens(user, tokens, now()).await;
        counted.map_err(|error| store_error(&error))
    }

    /// Whether this person has tokens left for another run.
    ///
    /// # Errors
    /// `rate_limited` where they have not; `store_unavailable`.
    pub async fn check_tokens(&self, user: UserId) -> Result<(), NaviError> {
        let Some(several) = &self.0 else {
            return Ok(());
        };
        let Some(most) = several.limits(user).day_tokens() else {
            return Ok(());
        };
        let used = several.store.tokens_since(user, now() - DAY);
        let used = answered(ANSWER_LIMIT, used).await;
        let used = used.map_err(|error| store_error(&error))?;
        if used < most {
            return Ok(());
        }
        let params = [("used", used.to_string()), ("most", most.to_string())];
        Err(NaviError::said(
            ErrorCode::RateLimited,
            Phrase::new(PhraseCode::TokensUsed, params),
        ))
    }
}
