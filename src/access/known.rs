//! Keys that opened the door a moment ago: to ask the database of each request would cost it more
//! than everything else does.
//!
//! What another process ends, as `navi token remove` does, it says in a file of the data directory,
//! which is looked at before a key is trusted.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use navi_actors::store::KeyOwner;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::holds::Key;

/// After this long the database is asked again.
const FOR: Duration = Duration::from_secs(30);
/// As many are known; with more the database is asked.
const MOST: usize = 1_024;
/// The file that grows whenever another process ends a key.
const ENDED: &str = "keys.ended";

/// Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub(super) struct Known {
    file: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// How often keys were ended, as far as it was seen.
    ended: u64,
    /// The length of the file.
    file: u64,
    keys: HashMap<Key, (KeyOwner, Instant)>,
}

impl State {
    fn end(&mut self) {
        self.ended += 1;
        self.keys.clear();
    }
}

/// The moment before the database is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before(u64);

impl Known {
    pub(super) fn new(data_dir: &Path) -> Self {
        let file = data_dir.join(ENDED);
        // Nothing is known yet. Where it stays, it only is longer.
        let _ = std::fs::remove_file(&file);
        Self {
            file,
            state: Arc::default(),
        }
    }

    /// What a key opens; otherwise what [`Known::keep`] wants when the database has said it.
    pub(super) fn find(&self, key: &Key) -> Result<KeyOwner, Before> {
        let file = std::fs::metadata(&self.file).map_or(0, |it| it.len());
        let mut state = self.state.lock();
        if state.file != file {
            state.file = file;
            state.end();
        }
        match state.keys.get(key) {
            Some((owner, since)) if since.elapsed() < FOR => Ok(*owner),
            _ => Err(Before(state.ended)),
        }
    }

    /// Knows a key, unless one was ended since.
    pub(super) fn keep(&self, Before(ended): Before, key: Key, owner: KeyOwner) {
        let mut state = self.state.lock();
        if state.ended != ended {
            return;
        }
        if state.keys.len() >= MOST {
            state.keys.retain(|_, (_, since)| since.elapsed() < FOR);
        }
        if state.keys.len() < MOST {
            state.keys.insert(key, (owner, Instant::now()));
        }
    }

    /// Those that are known, for whoever asks the database whether they still open anything.
    pub(super) fn keys(&self) -> HashMap<Key, KeyOwner> {
        let mut state = self.state.lock();
        state.keys.retain(|_, (_, since)| since.elapsed() < FOR);
        let keys = state.keys.iter();
        keys.map(|(key, (owner, _))| (*key, *owner)).collect()
    }

    /// A key was ended by this process.
    pub(super) fn end(&self) {
        self.state.lock().end();
    }
}

/// Has the service of this data directory ask the database again.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn tell_ended(data_dir: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new();
    let file = file.create(true).append(true).open(data_dir.join(ENDED));
    file?.write_all(b".")
}

#[cfg(test)]
mod tests {
    use navi_actors::protocol::ids::UserId;
    use navi_actors::protocol::people::{Scopes, UserRole};

    use super::*;

    const KEY: Key = Key::Token([1; 32]);

    fn known() -> (tempfile::TempDir, Known, KeyOwner) {
        let dir = tempfile::tempdir().unwrap();
        let known = Known::new(dir.path());
        let owner = KeyOwner {
            user: UserId(uuid::Uuid::now_v7()),
            role: UserRole::User,
            scopes: Scopes::USUAL,
            by_proxy: false,
        };
        (dir, known, owner)
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_known_for_a_while() {
        let (_dir, known, owner) = known();
        let before = known.find(&KEY).unwrap_err();
        known.keep(before, KEY, owner);
        assert_eq!(known.find(&KEY).ok(), Some(owner));
        assert!(known.keys().contains_key(&KEY));
        tokio::time::advance(FOR).await;
        assert!(known.find(&KEY).is_err());
        assert!(known.keys().is_empty());
    }

    #[test]
    fn a_key_that_was_ended_is_not_known_any_more() {
        let (dir, known, owner) = known();
        let here = || known.end();
        let elsewhere = || tell_ended(dir.path()).unwrap();
        for end in [&here as &dyn Fn(), &elsewhere, &elsewhere] {
            known.keep(known.find(&KEY).unwrap_err(), KEY, owner);
            assert_eq!(known.find(&KEY).ok(), Some(owner));
            end();
            // What the database said before that counts for nothing.
            let before = known.find(&KEY).unwrap_err();
            end();
            assert!(known.find(&KEY).is_err());
            known.keep(before, KEY, owner);
            assert!(known.find(&KEY).is_err());
        }
    }

    #[test]
    fn no_more_keys_are_known_than_so_many() {
        let (_dir, known, owner) = known();
        for number in 0..=MOST {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&number.to_le_bytes());
            let key = Key::Token(hash);
            known.keep(known.find(&key).unwrap_err(), key, owner);
        }
        assert_eq!(known.keys().len(), MOST);
    }
}
