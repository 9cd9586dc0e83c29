//! What a person's calls have of the machine where there are several: a user id for their
//! commands, and room for files.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::usage::{Places, Usage};
use super::{Homes, make};
use crate::domain::consent::may_change_files;
use crate::people::People;
use crate::protocol::error::NaviError;
use crate::protocol::ids::UserId;
use crate::protocol::tool::Effect;
use crate::root::store_error;
use crate::store::Store;
use crate::tools::means::Means;
use crate::tools::sandbox::PersonCommands;

/// The mode of a home whose person has a user id: nobody else's commands may pass.
const OWN_MODE: u32 = 0o710;

/// See the module. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct PersonMeans(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    homes: Homes,
    people: People,
    commands: PersonCommands,
    /// The user ids that were looked up, with the homes made for them. Held while one more is:
    /// no two people are given the same.
    uids: Mutex<HashMap<UserId, u32>>,
    usage: Usage,
}

impl PersonMeans {
    pub(crate) fn new(
        store: Store,
        homes: Homes,
        people: People,
        commands: PersonCommands,
        closed: CancellationToken,
    ) -> Self {
        Self(Arc::new(Inner {
            store,
            homes,
            people,
            commands,
            uids: Mutex::default(),
            usage: Usage::new(closed),
        }))
    }

    /// What this person has for a call of this tool, when it is asked about as when it is made: an
    /// approval is bound to it.
    pub async fn of_call(&self, person: UserId, tool: &str, effect: Effect) -> Means {
        if !may_change_files(tool, effect) {
            return Means::default();
        }
        self.of(person).await
    }

    /// What this person's next call has.
    async fn of(&self, person: UserId) -> Means {
        if !self.0.people.are_several() {
            return Means::default();
        }
        let (uid, no_commands) = match self.uid(person).await {
            Ok(uid) => (uid, None),
            Err(why) => (None, Some(why)),
        };
        Means {
            uid,
            no_commands,
            full: self.full(person).await,
        }
    }

    /// As many bytes of files as this person has room for.
    ///
    /// # Errors
    /// `store_unavailable`.
    pub async fn room(&self, person: UserId) -> Result<u64, NaviError> {
        let room = self.0.people.file_room(person).await;
        let room = room.map_err(|error| store_error(&error))?;
        if !self.0.people.are_several() {
            return Ok(room);
        }
        Ok(room.saturating_sub(self.used(person).await))
    }

    /// A call of theirs, or an upload, may have left files.
    pub fn changed(&self, person: UserId) {
        self.0.usage.changed(person);
    }

    async fn used(&self, person: UserId) -> u64 {
        let places = Places {
            home: self.0.homes.of(person),
            scratch: self.0.commands.scratch.clone(),
        };
        self.0.usage.of(person, places).await
    }

    /// Why nothing may be added to their files, for the model.
    async fn full(&self, person: UserId) -> Option<String> {
        match self.room(person).await {
            Ok(0) => Some(format!(
                "there is no room left for the files of the user's conversations, which take {} MB in their workspaces (NAVI_PERSON_FILES_MB): delete those that nobody needs with the filesystem tool, which keeps no copy of them now, or tell the user to delete conversations, whose files go ten minutes later, or to ask an admin for more",
                self.used(person).await >> 20
            )),
            Ok(_) => None,
            Err(error) => Some(error.message),
        }
    }

    /// The user id of this person's commands.
    async fn uid(&self, person: UserId) -> Result<Option<u32>, String> {
        let Some(of) = self.0.commands.uids else {
            return Ok(None);
        };
        let mut known = self.0.uids.lock().await;
        if let Some(uid) = known.get(&person) {
            return Ok(Some(*uid));
        }
        let uid = self.0.store.sandbox_uid(person, of.range()).await;
        let uid = uid.map_err(|error| {
            tracing::error!(%error, "a person's user id is not known");
            "the database does not say under which user id the user's commands run; try again"
                .to_owned()
        })?;
        let uid = uid.ok_or_else(|| {
            format!(
                "no user id is left for the user's commands of {of} (NAVI_SANDBOX_UIDS); tell the user to have an admin name a larger range"
            )
        })?;
        let home = self.0.homes.of(person);
        let opened = tokio::task::spawn_blocking(move || open_to(&home, uid)).await;
        opened
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(|error| {
                tracing::error!(%error, "a person's directory cannot be given to their user id");
                "the directory of the user's conversations cannot be prepared for commands; Navi's log says why".to_owned()
            })?;
        known.insert(person, uid);
        Ok(Some(uid))
    }
}

/// Lets the commands of this user id, and nobody else's, pass a home. It stays root's.
fn open_to(home: &Path, uid: u32) -> io::Result<()> {
    make(home)?;
    chown(home, Some(0), Some(uid))?;
    std::fs::set_permissions(home, std::fs::Permissions::from_mode(OWN_MODE))
}
