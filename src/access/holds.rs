//! What live sockets were opened with: where a login or a token ends, or opens something else than
//! it did, they end. What is known of keys ends with them.
//!
//! The database is asked, since `navi token remove` and `navi user` are other processes: at once after what this
//! process changed, and else a few times a second while there is a socket, or a key is known.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::Utc;
use navi_actors::protocol::ids::UserId;
use navi_actors::store::{KeyOwner, SecretHash, Store, StoreError};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::known::Known;
use super::owner_by_setting;
use super::random::Digest;

/// A socket outlives what opened it by no more than this and the answer of the database.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Whoever asks whether something still holds waits no longer for the database.
const LOOK_AT_MOST: Duration = Duration::from_secs(1);

/// What opened the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Login(Digest),
    Token(Digest),
    /// `NAVI_API_TOKEN`, which opens it as this person as long as the process lives and they are here.
    Setting(UserId),
    /// Who somebody is to the proxy in front. It opens nothing: it says beside whose login it is.
    Proxy(Digest),
}

/// How much is open by a key, as what it opened it to.
type Open = HashMap<(Key, KeyOwner), (CancellationToken, usize)>;

/// All that is held open.
#[derive(Clone, Debug, Default)]
pub(super) struct Holds(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    open: Mutex<Open>,
    changed: Notify,
    /// How often the database was begun to be asked, and the last of these that is done.
    begun: AtomicU64,
    done: watch::Sender<u64>,
}

/// One socket's share, until it is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    holds: Holds,
    key: (Key, KeyOwner),
    ended: CancellationToken,
}

impl Holds {
    pub(super) fn hold(&self, key: Key, owner: KeyOwner) -> Hold {
        let key = (key, owner);
        let mut open = self.0.open.lock();
        let (ended, count) = open.entry(key).or_default();
        *count += 1;
        Hold {
            holds: self.clone(),
            key,
            ended: ended.clone(),
        }
    }

    /// A login or a token has just ended.
    pub(super) fn look(&self) {
        self.0.changed.notify_one();
    }

    /// Ends what is held by keys that open nothing any more, for ever.
    pub(super) async fn tend(self, store: Store, known: Known) {
        loop {
            tokio::select! {
                () = self.0.changed.notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let look = self.0.begun.fetch_add(1, Ordering::Relaxed) + 1;
            let known_keys: HashSet<(Key, KeyOwner)> = known.keys().into_iter().collect();
            let mut keys = known_keys.clone();
            keys.extend(self.0.open.lock().keys());
            match ended(&store, keys).await {
                Ok(ended) => {
                    if ended.iter().any(|key| known_keys.contains(key)) {
                        known.end();
                    }
                    self.end(&ended);
                }
                Err(error) => debug!(%error, "whether logins have ended is not known"),
            }
            self.0.done.send_replace(look);
        }
    }

    fn end(&self, ended: &[(Key, KeyOwner)]) {
        let open = self.0.open.lock();
        for key in ended {
            if let Some((ended, _)) = open.get(key) {
                ended.cancel();
            }
        }
    }
}

/// Those of these keys that open nothing any more, or something else.
async fn ended(
    store: &Store,
    keys: HashSet<(Key, KeyOwner)>,
) -> Result<Vec<(Key, KeyOwner)>, StoreError> {
    let (mut tokens, mut logins, mut by_setting) = (Vec::new(), Vec::new(), None);
    for (key, _) in &keys {
        match key {
            Key::Login(hash) => logins.push(SecretHash(*hash)),
            Key::Token(hash) => tokens.push(SecretHash(*hash)),
            Key::Setting(user) => by_setting = Some(*user),
            Key::Proxy(_) => {}
        }
    }
    let now = Utc::now();
    let tokens = store.token_owners(&tokens, now).await?;
    let logins = store.login_owners(&logins, now).await?;
    let by_setting = match by_setting {
        Some(user) => store.user(user).await?.as_ref().map(owner_by_setting),
        None => None,
    };
    let is_over = |(key, owner): &(Key, KeyOwner)| match key {
        Key::Login(hash) => logins.get(&SecretHash(*hash)) != Some(owner),
        Key::Token(hash) => tokens.get(&SecretHash(*hash)) != Some(owner),
        Key::Setting(_) => by_setting.as_ref() != Some(owner),
        Key::Proxy(_) => false,
    };
    Ok(keys.into_iter().filter(is_over).collect())
}

impl Hold {
    /// Whether what opened the door opens nothing any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Waits for that.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + 'static {
        self.ended.clone().cancelled_owned()
    }

    /// Whether what opened the door still opens it, by the database as it is now; where that takes
    /// long, by what is known.
    pub(crate) fn standing(&self) -> impl Future<Output = bool> + 'static {
        let (shared, ended) = (Arc::clone(&self.holds.0), self.ended.clone());
        async move {
            let before = shared.begun.load(Ordering::Relaxed);
            let mut done = shared.done.subscribe();
            shared.changed.notify_one();
            let _ = timeout(LOOK_AT_MOST, done.wait_for(|look| *look > before)).await;
            !ended.is_cancelled()
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut open = self.holds.0.open.lock();
        if let Some((_, count)) = open.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.key);
            }
        }
    }
}
