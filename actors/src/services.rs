//! What sessions and runs work with: made once by the engine, shared by all.

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::compression::CompressionActor;
use crate::files::SessionFiles;
use crate::homes::{Homes, PersonMeans};
use crate::hub::Hub;
use crate::journal::JournalActor;
use crate::llm::guard::StreamLimits;
use crate::memory::MemoryHandle;
use crate::models::Models;
use crate::onlookers::Onlookers;
use crate::people::People;
use crate::prices::Prices;
use crate::profiles::Profiles;
use crate::protocol::approval::ConsentMode;
use crate::protocol::error::NaviError;
use crate::protocol::ids::{OwnerId, UserId};
use crate::root::store_error;
use crate::run::Offers;
use crate::session::log_moments::LogMoments;
use crate::session_turns::SessionTurns;
use crate::store::Store;
use crate::supervision::Slot;
use crate::tools::lent::Lending;
use crate::tools::registry::Registry;
use crate::tools::toolbox::Toolbox;

/// How far the wall clock may be set back without what comes later being told as earlier.
/// Beyond that the clock was wrong before, and is believed now.
const HELD: i64 = 24 * 60 * 60 * 1_000_000;

/// The time, to the microsecond: what the store keeps, so that what is told live and what
/// is read again are the same. Each call's is later than the one's before, though the clock is
/// set back a little.
#[must_use]
pub fn now() -> DateTime<Utc> {
    static LATEST: AtomicI64 = AtomicI64::new(i64::MIN);
    let clock = Utc::now();
    let now = clock.timestamp_micros();
    let after = |latest: i64| {
        let is_back = latest >= now && latest - now < HELD;
        if is_back { latest + 1 } else { now }
    };
    let latest = LATEST
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |latest| {
            Some(after(latest))
        })
        .unwrap_or_else(|latest| latest);
    DateTime::from_timestamp_micros(after(latest)).unwrap_or(clock)
}

/// What a run may use, beside its profile's iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    pub time: Duration,
    /// Of a child, within what its parent has left.
    pub child_time: Duration,
    /// Tokens read and written, children's included.
    pub tokens: u64,
    /// How deep children may be nested; 0 for none at all.
    pub child_depth: u32,
    /// How many children of one run go at once.
    pub parallel_children: usize,
    /// How many children one run may start in all.
    pub children: u64,
    /// Tokens that a plan may have; what is asked before it may have a part of them.
    pub plan_tokens: u32,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(2 * 3600),
            child_time: Duration::from_secs(20 * 60),
            tokens: 20_000_000,
            child_depth: 2,
            parallel_children: 4,
            children: 50,
            plan_tokens: 1_200,
        }
    }
}

/// Which runs that a crash or a shutdown cut off go on by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResumePolicy {
    /// None: a person has them continued.
    #[default]
    Ask,
    /// Those that had nothing under way but what reads.
    Reads,
}

/// When and how old turns are summarised (SPEC section 8).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompressionPolicy {
    pub enabled: bool,
    /// The part of the window that may be filled before that: 0 to 1.
    pub threshold: f32,
    /// Turns that stay word for word.
    pub keep_recent: usize,
    pub temperature: f32,
}

impl Default for CompressionPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            threshold: 0.8,
            keep_recent: 10,
            temperature: 0.3,
        }
    }
}

/// What is asked of a person, where a session says nothing else (DESIGN section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsentPolicy {
    /// The mode of new sessions.
    pub mode: ConsentMode,
    /// A request that nobody answers within this is denied.
    pub timeout: Duration,
}

impl Default for ConsentPolicy {
    fn default() -> Self {
        Self {
            mode: ConsentMode::default(),
            timeout: Duration::from_secs(60 * 60),
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Services {
    pub store: Store,
    pub files: SessionFiles,
    pub journal: Slot<JournalActor>,
    pub models: Models,
    pub memory: MemoryHandle,
    pub toolbox: Toolbox,
    pub people: People,
    pub lending: Lending,
    pub offers: Arc<Offers>,
    pub profiles: Arc<Profiles>,
    pub prices: Arc<Prices>,
    pub hub: Hub,
    pub onlookers: Onlookers,
    /// Who takes part in a session is changed one after the other.
    pub sharing: SessionTurns,
    /// This process, as the store's owner of its sessions.
    pub owner: OwnerId,
    /// Where each session's workspace is.
    pub homes: Homes,
    /// What each person's calls have of the machine.
    pub means: PersonMeans,
    /// The window that backends are asked for, in tokens.
    pub context_window: u32,
    /// Whether models are asked for reasoning at all.
    pub think: bool,
    pub limits: StreamLimits,
    pub runs: RunLimits,
    pub resume: ResumePolicy,
    pub compression: CompressionPolicy,
    pub consent: ConsentPolicy,
    pub compressor: Slot<CompressionActor>,
    pub log_moments: LogMoments,
    /// Models that were found missing and told: once is enough.
    pub told_missing: Arc<Mutex<HashSet<String>>>,
}

impl Services {
    /// The tools that this person's runs begin with now.
    ///
    /// # Errors
    /// `store_unavailable`.
    pub async fn tools_of(&self, user: UserId) -> Result<Registry, NaviError> {
        let powers = self.people.powers(user).await;
        Ok(self
            .toolbox
            .of(&powers.map_err(|error| store_error(&error))?))
    }

    /// The text before every profile's prompt, as it is now.
    #[must_use]
    pub fn persona(&self) -> Arc<str> {
        self.profiles.persona()
    }

    /// Whether this is the first that is heard of this model missing.
    #[must_use]
    pub fn tells_missing(&self, model: &str) -> bool {
        self.told_missing.lock().insert(model.to_owned())
    }
}
