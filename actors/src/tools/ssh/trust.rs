//! Which host keys are trusted: those of the known_hosts files, and the one that a person is
//! shown, and approves, before the first call to a host.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

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
    /// The keys that somebody is asked about.
    offers: Mutex<VecDeque<(Asked, KeyData)>>,
}

/// The call that a key was shown for, and the host.
type Asked = (SessionId, CallId, String);

fn asked(host: &Host, context: &ToolContext) -> Asked {
    let call = context.call_id.clone();
    (context.session_id, call, host.name.clone())
}

impl Trust {
    pub(super) fn new(own: PathBuf, more: Option<PathBuf>) -> Self {
        Self {
            known: Arc::new(KnownHosts::new(own, more)),
            offers: Mutex::default(),
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
        self.remember(host, context, key.clone());
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
        let asked = asked(host, context);
        let offers = self.offers.lock();
        let offer = offers.iter().find(|offer| offer.0 == asked);
        offer.map(|(_, key)| key.clone())
    }

    /// The last key that was shown for the call counts: an approval is bound to it.
    fn remember(&self, host: &Host, context: &ToolContext, key: KeyData) {
        let asked = asked(host, context);
        let mut offers = self.offers.lock();
        offers.retain(|(other, _)| (&other.0, &other.1) != (&asked.0, &asked.1));
        if offers.len() >= MAX_OFFERS {
            offers.pop_front();
        }
        offers.push_back((asked, key));
    }
}
