//! Which host keys are trusted: those of the known_hosts files, and the one that a person is
//! shown, and approves, before the first call to a host.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::connection::{self, Check, Times, distrusted};
use super::hosts::Host;
use super::known_hosts::{HostKey, KeyStatus, Known, KnownHosts};
use crate::protocol::ids::{CallId, SessionId};
use crate::tools::{ToolContext, ToolError};

/// As many calls as wait for an answer at once. The oldest is forgotten, and asks again.
const MAX_OFFERS: usize = 256;

/// See the module.
#[derive(Debug)]
pub(super) struct Trust {
    known: Arc<KnownHosts>,
    offers: Mutex<VecDeque<Offer>>,
}

/// A key that somebody is asked about.
#[derive(Debug)]
struct Offer {
    session: SessionId,
    call: CallId,
    host: String,
    key: HostKey,
}

/// What a proposal says of a host's key.
#[derive(Debug)]
pub(super) struct Offered {
    /// The key that is not known yet, for whoever is asked.
    pub(super) asked: Option<HostKey>,
    /// What the approval is bound to: the key where it was asked about.
    pub(super) binding: String,
}

impl Trust {
    pub(super) fn new(own: PathBuf, more: Option<PathBuf>) -> Self {
        Self {
            known: Arc::new(KnownHosts::new(own, more)),
            offers: Mutex::default(),
        }
    }

    /// Looks whether a person has to be asked about the host's key, which is learnt from the host
    /// where it is not known.
    pub(super) async fn offer(
        &self,
        host: &Host,
        context: &ToolContext,
        times: Times,
    ) -> Result<Offered, ToolError> {
        let known = self.known(host).await?;
        if !known.is_empty() {
            // Where this very call was asked about it, its approval still holds: another call
            // may have been approved in between.
            let asked = self.offered(host, context);
            let asked = asked.filter(|key| known.status(key) == KeyStatus::Known);
            return Ok(Offered {
                binding: asked.map_or_else(|| "known".to_owned(), |key| key.fingerprint),
                asked: None,
            });
        }
        let key = connection::learn(host, times).await?;
        let status = known.status(&key);
        if let KeyStatus::Revoked(_) | KeyStatus::Changed(_) = status {
            return Err(distrusted(host, Some(&key), &status));
        }
        self.remember(host, context, key.clone());
        Ok(Offered {
            binding: key.fingerprint.clone(),
            asked: Some(key),
        })
    }

    /// What the host's key is held against when the call runs. A call that nobody was asked
    /// about trusts no new key.
    pub(super) async fn check(
        &self,
        host: &Host,
        context: &ToolContext,
    ) -> Result<Check, ToolError> {
        let approved = context.approved.then(|| self.offered(host, context));
        Ok(Check::Trust {
            known: self.known(host).await?,
            approved: approved.flatten(),
        })
    }

    /// Stores a key that was trusted because it was approved.
    pub(super) async fn keep(
        &self,
        host: &Host,
        key: HostKey,
        status: KeyStatus,
        context: &ToolContext,
    ) -> Result<(), ToolError> {
        if status != KeyStatus::Unknown {
            return Ok(());
        }
        tracing::info!(
            host = host.name,
            session_id = %context.session_id,
            fingerprint = key.fingerprint,
            "a new host's key was approved"
        );
        let (known, host) = (Arc::clone(&self.known), host.clone());
        tokio::task::spawn_blocking(move || known.add(&host, &key))
            .await
            .unwrap_or_else(|_| Err(lost()))
    }

    async fn known(&self, host: &Host) -> Result<Known, ToolError> {
        let (known, host) = (Arc::clone(&self.known), host.clone());
        tokio::task::spawn_blocking(move || known.of(&host))
            .await
            .unwrap_or_else(|_| Err(lost()))
    }

    fn offered(&self, host: &Host, context: &ToolContext) -> Option<HostKey> {
        let offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        offers
            .iter()
            .find(|offer| {
                offer.session == context.session_id
                    && offer.call == context.call_id
                    && offer.host == host.name
            })
            .map(|offer| offer.key.clone())
    }

    /// The last key that was shown for the call counts: an approval is bound to it.
    fn remember(&self, host: &Host, context: &ToolContext, key: HostKey) {
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        offers.retain(|offer| offer.session != context.session_id || offer.call != context.call_id);
        if offers.len() >= MAX_OFFERS {
            offers.pop_front();
        }
        offers.push_back(Offer {
            session: context.session_id,
            call: context.call_id.clone(),
            host: host.name.clone(),
            key,
        });
    }
}

fn lost() -> ToolError {
    ToolError("the known hosts could not be read; try again".to_owned())
}
