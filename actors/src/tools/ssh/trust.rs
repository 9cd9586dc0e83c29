//! Which host keys are trusted: those of the known_hosts files, and the one that a person is
//! shown, and approves, before the first call to a host.

use std::path::PathBuf;
use std::sync::Arc;

use hashlink::LruCache;
use parking_lot::Mutex;
use russh::keys::ssh_key::public::KeyData;

use super::NAME;
use super::connection::{self, Times};
use super::hosts::Host;
use super::known_hosts::{KeyStatus, Known, KnownHosts, fingerprint};
use crate::protocol::ids::{CallId, SessionId};
use crate::tools::{ToolContext, ToolError, blocking};

/// As many calls as wait for an answer at once. The oldest is forgotten, and asks again.
const MAX_OFFERS: usize = 256;

/// See the module.
#[derive(Debug)]
pub(super) struct Trust {
    known: Arc<KnownHosts>,
    offers: Mutex<Offers>,
}

/// The key that was shown last for each call, and the host: an approval is bound to it.
type Offers = LruCache<(SessionId, CallId), (String, KeyData)>;

impl Trust {
    pub(super) fn new(own: PathBuf, more: Option<PathBuf>) -> Self {
        Self {
            known: Arc::new(KnownHosts::new(own, more)),
            offers: Mutex::new(LruCache::new(MAX_OFFERS)),
        }
    }

    /// The host's key where a person has to be asked about it, learnt from the host where none is
    /// known; and what an approval is bound to, which is the key where it was asked about.
    pub(super) async fn offer(
        &self,
        host: &Host,
        context: &ToolContext,
        times: Times,
    ) -> Result<(Option<KeyData>, String), ToolError> {
        let known = self.known(host).await?;
        if !known.is_empty() {
            // Where this very call was asked about it, its approval still holds: another call
            // may have been approved in between.
            let offered = self.offered(host, context);
            let offered = offered.filter(|key| known.status(key) == KeyStatus::Known);
            let binding = offered.map_or_else(|| "known".to_owned(), |key| fingerprint(&key));
            return Ok((None, binding));
        }
        let (key, status) = connection::learn(host, known, times).await?;
        if let Some(refusal) = status.refusal(host, &key) {
            return Err(refusal);
        }
        let (call, shown) = (context.call_id.clone(), (host.name.clone(), key.clone()));
        self.offers.lock().insert((context.session_id, call), shown);
        let binding = fingerprint(&key);
        Ok((Some(key), binding))
    }

    /// What the host's key is held against when the call runs. A call that nobody was asked
    /// about trusts no new key.
    pub(super) async fn check(
        &self,
        host: &Host,
        context: &ToolContext,
    ) -> Result<Known, ToolError> {
        let mut known = self.known(host).await?;
        if context.approved {
            known.approved = self.offered(host, context);
        }
        Ok(known)
    }

    /// Stores a key that was trusted because it was approved.
    pub(super) async fn keep(
        &self,
        host: &Host,
        key: KeyData,
        context: &ToolContext,
    ) -> Result<(), ToolError> {
        tracing::info!(
            host = host.name,
            session_id = %context.session_id,
            fingerprint = fingerprint(&key),
            "a new host's key was approved"
        );
        let (known, host) = (Arc::clone(&self.known), host.clone());
        blocking(NAME, move || known.add(&host, &key)).await
    }

    async fn known(&self, host: &Host) -> Result<Known, ToolError> {
        let (known, host) = (Arc::clone(&self.known), host.clone());
        blocking(NAME, move || known.of(&host)).await
    }

    fn offered(&self, host: &Host, context: &ToolContext) -> Option<KeyData> {
        let offers = self.offers.lock();
        let shown = offers.peek(&(context.session_id, context.call_id.clone()));
        let (_, key) = shown.filter(|(name, _)| *name == host.name)?;
        Some(key.clone())
    }
}
