//! The memory as a run's tools reach it.

use async_trait::async_trait;

use super::MemoryHandle;
use crate::domain::memory::{FactName, NewFact};
use crate::protocol::error::NaviError;
use crate::protocol::ids::UserId;
use crate::protocol::memory::{Fact, FactSource};
use crate::protocol::session::SessionSummary;
use crate::services::now;
use crate::store::SavedFact;
use crate::tools::{MemoryAccess, SavedByTool, ToolError};

/// One user's memory, and where what a run adds to it comes from.
#[derive(Clone, Debug)]
pub struct MemoryOf {
    pub memory: MemoryHandle,
    pub user: UserId,
    pub source: FactSource,
}

#[async_trait]
impl MemoryAccess for MemoryOf {
    async fn facts(&self) -> Result<Vec<Fact>, ToolError> {
        self.memory.facts(self.user).await.map_err(tool_error)
    }

    async fn save(
        &self,
        name: FactName,
        value: String,
        confidence: f32,
    ) -> Result<SavedByTool, ToolError> {
        let new = NewFact {
            name,
            value: value.clone(),
            source: self.source.clone(),
            confidence,
            at: now(),
        };
        let saved = self.memory.save(self.user, new).await;
        Ok(match saved.map_err(tool_error)? {
            SavedFact::Created(_) => SavedByTool::Created,
            SavedFact::Replaced { former, .. } => SavedByTool::Replaced { former },
            SavedFact::Confirmed(fact) | SavedFact::Kept(Some(fact)) => {
                SavedByTool::Known(fact.value)
            }
            SavedFact::Kept(None) | SavedFact::Full => SavedByTool::Known(value),
        })
    }

    async fn forget(&self, name: FactName) -> Result<bool, ToolError> {
        self.memory
            .forget(self.user, name)
            .await
            .map_err(tool_error)
    }
}

/// Whether what is remembered of a session's owner is part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remembers {
    Owner(UserId),
    /// Others take part, or did: it is for none of them.
    Nobody,
}

impl Remembers {
    /// As this session stands.
    #[must_use]
    pub fn of(session: &SessionSummary) -> Self {
        match session.shared {
            None => Self::Owner(session.user_id),
            Some(_) => Self::Nobody,
        }
    }
}

/// In a session that is shared, or was: its owner's memory is for nobody else.
#[derive(Clone, Copy, Debug)]
pub struct NobodysMemory;

#[async_trait]
impl MemoryAccess for NobodysMemory {
    async fn facts(&self) -> Result<Vec<Fact>, ToolError> {
        Err(is_shared())
    }

    async fn save(&self, _: FactName, _: String, _: f32) -> Result<SavedByTool, ToolError> {
        Err(is_shared())
    }

    async fn forget(&self, _: FactName) -> Result<bool, ToolError> {
        Err(is_shared())
    }
}

fn is_shared() -> ToolError {
    ToolError(
        "this conversation is shared: nothing that is remembered of anybody is read or changed in it"
            .to_owned(),
    )
}

fn tool_error(error: NaviError) -> ToolError {
    ToolError(error.message)
}
