//! [`MemoryHandle`]: what doors and runs ask of the memory.
//!
//! Reads and writes go to the store, whose transactions are the order of things; the actor is
//! told afterwards. They run on the service's runtime, since HTTP workers have their own.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use actix::Actor;
use tokio::runtime;

use super::{FactsChanged, MemoryActor, ReadIdle, Reader};
use crate::domain::memory::{FactName, MAX_FACTS, NewFact, value};
use crate::protocol::error::{ErrorCode, NaviError, invalid};
use crate::protocol::ids::UserId;
use crate::protocol::memory::{
    Fact, FactSource, FactWithHistory, FormerFact, MemoryExport, MemoryOverview,
};
use crate::root::store_error;
use crate::services::now;
use crate::store::{SavedFact, Store, StoreError};
use crate::supervision::{RestartPolicy, Slot, keep_alive};

/// See the module. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MemoryHandle {
    store: Store,
    actor: Slot<MemoryActor>,
    runtime: runtime::Handle,
}

impl MemoryHandle {
    /// Starts the actor, and keeps it alive until the reader's `stop`. To be called within
    /// the actix system.
    #[must_use]
    pub fn start(reader: Reader, rewrite_after: Duration, runtime: runtime::Handle) -> Self {
        let store = reader.store.clone();
        let actor = keep_alive(
            "memory",
            RestartPolicy {
                // Without it conversations go on; it is worth starting as long as they do.
                limit: u32::MAX,
                ..RestartPolicy::default()
            },
            reader.stop.clone(),
            move |guard| MemoryActor::new(reader.clone(), rewrite_after, guard).start(),
            || {},
        );
        Self {
            store,
            actor,
            runtime,
        }
    }

    /// Has the user's idle sessions read, in the background.
    pub fn read_idle(&self, user: UserId) {
        // Once a new session; a pass that is under way drops it.
        self.actor.addr().do_send(ReadIdle { user });
    }

    /// What every session of the user begins with; none where nothing is known, or where the
    /// store does not say: a conversation goes on without it.
    pub async fn summary(&self, user: UserId) -> Option<String> {
        let store = self.store.clone();
        let read = self.on_runtime(async move { store.memory_summary(user).await });
        // A failure of the store was logged on its way.
        read.await.ok().flatten()
    }

    /// All that is known of the user.
    ///
    /// # Errors
    /// What the store says.
    pub async fn overview(&self, user: UserId) -> Result<MemoryOverview, NaviError> {
        let store = self.store.clone();
        let memory = self
            .on_runtime(async move { store.memory(user).await })
            .await?;
        let (summary, updated_at) = memory
            .summary
            .map(|summary| (summary.text, summary.updated_at))
            .unzip();
        Ok(MemoryOverview {
            facts: memory.facts,
            summary,
            updated_at,
        })
    }

    /// The user's facts.
    ///
    /// # Errors
    /// What the store says.
    pub async fn facts(&self, user: UserId) -> Result<Vec<Fact>, NaviError> {
        self.overview(user).await.map(|overview| overview.facts)
    }

    /// All that is known of the user and was before.
    ///
    /// # Errors
    /// What the store says.
    pub async fn export(&self, user: UserId) -> Result<MemoryExport, NaviError> {
        let store = self.store.clone();
        let overview = self.overview(user).await?;
        let former = self
            .on_runtime(async move { store.whole_fact_history(user).await })
            .await?;
        let mut histories: BTreeMap<FactName, Vec<FormerFact>> = BTreeMap::new();
        for one in former {
            histories.entry(one.name).or_default().push(one.former);
        }
        let with_history = |fact: Fact| FactWithHistory {
            history: histories.remove(&FactName::of(&fact)).unwrap_or_default(),
            fact,
        };
        Ok(MemoryExport {
            exported_at: now(),
            facts: overview.facts.into_iter().map(with_history).collect(),
            summary: overview.summary,
        })
    }

    /// The earlier values of a fact, newest first.
    ///
    /// # Errors
    /// `fact_not_found`.
    pub async fn history(
        &self,
        user: UserId,
        category: &str,
        key: &str,
    ) -> Result<Vec<FormerFact>, NaviError> {
        let name = named(category, key)?;
        let (store, wanted) = (self.store.clone(), name.clone());
        self.on_runtime(async move { store.fact_history(user, &wanted).await })
            .await?
            .ok_or_else(|| not_found(&name))
    }

    /// Writes a fact as the user wants it: it is certain, and comes from no conversation.
    ///
    /// # Errors
    /// `invalid_field`, `memory_full`.
    pub async fn correct(
        &self,
        user: UserId,
        category: &str,
        key: &str,
        text: &str,
    ) -> Result<Fact, NaviError> {
        let new = NewFact {
            name: FactName::new(category, key).map_err(invalid)?,
            value: value(text).map_err(invalid)?,
            source: FactSource::default(),
            confidence: 1.0,
            at: now(),
        };
        let name = new.name.clone();
        let store = self.store.clone();
        let correcting = async move { store.correct_fact(user, new).await };
        match self.saved(user, correcting).await? {
            SavedFact::Created(fact)
            | SavedFact::Confirmed(fact)
            | SavedFact::Replaced { fact, .. }
            | SavedFact::Kept(Some(fact)) => Ok(fact),
            SavedFact::Kept(None) | SavedFact::Full => Err(not_found(&name)),
        }
    }

    /// Saves a fact.
    ///
    /// # Errors
    /// `memory_full` (never [`SavedFact::Full`]); what the store says.
    pub async fn save(&self, user: UserId, new: NewFact) -> Result<SavedFact, NaviError> {
        let store = self.store.clone();
        self.saved(user, async move { store.save_fact(user, new).await })
            .await
    }

    async fn saved(
        &self,
        user: UserId,
        saving: impl Future<Output = Result<SavedFact, StoreError>> + Send + 'static,
    ) -> Result<SavedFact, NaviError> {
        let saved = self.on_runtime(saving).await?;
        if saved == SavedFact::Full {
            return Err(NaviError::new(
                ErrorCode::MemoryFull,
                format!("{MAX_FACTS} facts are remembered already; forget some first"),
            ));
        }
        if saved.changed() {
            self.facts_changed(user);
        }
        Ok(saved)
    }

    /// Forgets a fact and its history.
    ///
    /// # Errors
    /// `fact_not_found`.
    pub async fn forget_named(
        &self,
        user: UserId,
        category: &str,
        key: &str,
    ) -> Result<(), NaviError> {
        let name = named(category, key)?;
        if self.forget(user, name.clone()).await? {
            Ok(())
        } else {
            Err(not_found(&name))
        }
    }

    /// Forgets a fact and its history. Tells whether it was there.
    ///
    /// # Errors
    /// What the store says.
    pub async fn forget(&self, user: UserId, name: FactName) -> Result<bool, NaviError> {
        let store = self.store.clone();
        let was_there = self
            .on_runtime(async move { store.forget_fact(user, &name, now()).await })
            .await?;
        if was_there {
            self.facts_changed(user);
        }
        Ok(was_there)
    }

    /// Forgets everything, with the history and the summary; conversations that nobody has
    /// read yet are taken as read.
    ///
    /// # Errors
    /// What the store says.
    pub async fn forget_all(&self, user: UserId) -> Result<(), NaviError> {
        let store = self.store.clone();
        self.on_runtime(async move { store.forget_all(user, now()).await })
            .await
    }

    fn facts_changed(&self, user: UserId) {
        // Once a change, which waited for the store; the actor only notes it.
        self.actor.addr().do_send(FactsChanged { user });
    }

    /// Does the store's work on the service's runtime. It is done even where the one who
    /// asked goes away.
    async fn on_runtime<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, NaviError> {
        match self.runtime.spawn(work).await {
            Ok(done) => done.map_err(|error| store_error(&error)),
            Err(error) => {
                tracing::error!(%error, "the memory's work was cut off");
                Err(NaviError::new(
                    ErrorCode::Internal,
                    "this could not be done because of a mistake in Navi; see its log",
                ))
            }
        }
    }
}

/// A name that should exist: one that can't does not.
fn named(category: &str, key: &str) -> Result<FactName, NaviError> {
    FactName::new(category, key).map_err(|problem| NaviError::new(ErrorCode::FactNotFound, problem))
}

fn not_found(name: &FactName) -> NaviError {
    NaviError::new(
        ErrorCode::FactNotFound,
        format!("there is no fact {name}; GET /memory lists what there is"),
    )
}
