//! What sessions and runs work with: made once by the root, shared by all.

use chrono::{DateTime, SubsecRound, Utc};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::hub::Hub;
use crate::journal::JournalActor;
use crate::llm::guard::StreamLimits;
use crate::models::Models;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::OwnerId;
use crate::protocol::profile::Profile;
use crate::store::Store;
use crate::supervision::Slot;
use crate::tools::registry::Registry;

/// The time, to the microsecond: what the store keeps, so that what is told live and what
/// is read again are the same.
#[must_use]
pub fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}

/// The profiles by id.
#[derive(Clone, Debug, Default)]
pub struct Profiles {
    pub by_id: BTreeMap<String, Arc<Profile>>,
    pub default_id: String,
}

impl Profiles {
    /// The profile of this id.
    ///
    /// # Errors
    /// `unknown_profile`, naming those there are.
    pub fn find(&self, id: &str) -> Result<Arc<Profile>, NaviError> {
        self.by_id.get(id).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.by_id.keys().map(String::as_str).collect();
            NaviError::new(
                ErrorCode::UnknownProfile,
                format!("there is no profile {id:?}; there are {}", known.join(", ")),
            )
        })
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Services {
    pub store: Store,
    pub journal: Slot<JournalActor>,
    pub models: Models,
    pub registry: Arc<Registry>,
    pub profiles: Arc<Profiles>,
    pub persona: String,
    pub hub: Hub,
    /// This process, as the store's owner of its sessions.
    pub owner: OwnerId,
    /// Each session's workspace is a directory in it.
    pub sessions_dir: PathBuf,
    /// The window that backends are asked for, in tokens.
    pub context_window: u32,
    /// Whether models are asked for reasoning at all.
    pub think: bool,
    pub limits: StreamLimits,
    /// Models that were found missing and told: once is enough.
    pub told_missing: Arc<Mutex<HashSet<String>>>,
}

impl Services {
    /// Whether this is the first that is heard of this model missing.
    #[must_use]
    pub fn tells_missing(&self, model: &str) -> bool {
        self.told_missing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(model.to_owned())
    }
}
