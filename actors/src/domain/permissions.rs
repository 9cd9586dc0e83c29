//! Who may what: one closed table. Every request and every frame names what it does, and passes it.
//!
//! It says what may be done at all. Whose a conversation, a file or a fact is, the engine asks for
//! each: a person finds their own, and of others' neither that they are there. How far somebody
//! reaches into a conversation that is shared says `sharing`.

use crate::protocol::command::ClientFrame;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::people::{Scope, Scopes, UserRole};

/// What somebody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::EnumIter)]
pub enum Action {
    /// Reads their conversations, their runs and what is told of them, and searches them.
    ReadConversations,
    /// Begins conversations, writes into them, changes, stops and deletes them.
    Converse,
    /// Shares their conversations with others, and takes that back.
    Share,
    /// Goes out of a conversation of another's.
    LeaveShared,
    /// Sees what they allowed and forbade, and what waits for an answer.
    ReadConsent,
    /// Answers requests for consent, and changes what they are asked about.
    GiveConsent,
    /// Reads files of their conversations.
    ReadFiles,
    /// Adds and deletes files of their conversations.
    ChangeFiles,
    /// Reads what is remembered of them.
    ReadMemory,
    /// Corrects it, and has it forgotten.
    ChangeMemory,
    /// Sees how the service stands: its models, profiles and tools.
    ReadService,
    /// Sees what the service counted.
    ReadMetrics,
    /// Sees the settings and the state of the machine; allows tools, pulls models, writes profiles.
    ManageService,
    /// Sees who they are, and which keys open the door to them.
    ReadAccount,
    /// Leaves, by what they came in with.
    SignOut,
    /// Makes and removes keys, and changes their password.
    ManageAccount,
    /// Invites people, changes what they are, and removes them.
    ManagePeople,
    /// Reads who came in, and who changed what.
    ReadRecord,
}

impl Action {
    /// The table: the least role, and the scope that a token must have.
    pub const fn needs(self) -> Needs {
        let (role, scope) = match self {
            Self::ReadConversations | Self::ReadConsent => (UserRole::Guest, Scope::Read),
            Self::Converse | Self::Share => (UserRole::User, Scope::Run),
            Self::LeaveShared => (UserRole::Guest, Scope::Run),
            Self::GiveConsent => (UserRole::User, Scope::Consent),
            Self::ReadFiles => (UserRole::Guest, Scope::Files),
            Self::ChangeFiles => (UserRole::User, Scope::Files),
            Self::ReadMemory => (UserRole::Guest, Scope::Memory),
            Self::ChangeMemory => (UserRole::User, Scope::Memory),
            Self::ReadService | Self::ReadAccount | Self::SignOut => (UserRole::Guest, Scope::Read),
            Self::ReadMetrics => (UserRole::Admin, Scope::Read),
            Self::ManageAccount => (UserRole::Guest, Scope::Admin),
            Self::ManageService | Self::ManagePeople | Self::ReadRecord => {
                (UserRole::Admin, Scope::Admin)
            }
        };
        Needs { role, scope }
    }

    /// What a frame on a session's socket does. None: it asks about nobody.
    pub const fn of_frame(frame: &ClientFrame) -> Option<Self> {
        match frame {
            ClientFrame::Message(_)
            | ClientFrame::Stop { .. }
            | ClientFrame::Continue { .. }
            | ClientFrame::Withdraw { .. }
            | ClientFrame::EditQueued { .. }
            | ClientFrame::ResolveCall { .. }
            | ClientFrame::EditPlan(_) => Some(Self::Converse),
            ClientFrame::Approve { .. } => Some(Self::GiveConsent),
            ClientFrame::Ping {} => None,
        }
    }
}

/// What an action needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Needs {
    /// And whoever is more.
    pub role: UserRole,
    pub scope: Scope,
}

/// Who asks, as far as the table goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    pub role: UserRole,
    pub scopes: Scopes,
}

/// What becomes of what is remembered of somebody where it stands among what they may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    Shown,
    LeftOut,
}

impl Grant {
    /// As [`Action::ReadMemory`] has it.
    #[must_use]
    pub fn memory(self) -> Memory {
        match self.check(Action::ReadMemory) {
            Ok(()) => Memory::Shown,
            Err(_) => Memory::LeftOut,
        }
    }

    /// # Errors
    /// `forbidden`, with what is lacking.
    pub fn check(self, action: Action) -> Result<(), NaviError> {
        let Needs { role, scope } = action.needs();
        let lacking = if self.role < role {
            match role {
                UserRole::Admin => "only an admin may do this",
                UserRole::User | UserRole::Guest => "a guest may look, and change nothing",
            }
            .to_owned()
        } else if !self.scopes.has(scope) {
            format!(
                "this token lacks the scope \"{}\"; make one that has it with `navi token add NAME --scopes SCOPES`",
                scope.name()
            )
        } else {
            return Ok(());
        };
        Err(NaviError::new(ErrorCode::Forbidden, lacking))
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;

    #[test]
    fn a_token_without_a_scope_does_not_what_needs_it() {
        for action in Action::iter() {
            let needed = action.needs().scope;
            let with = |scopes| Grant {
                role: UserRole::Admin,
                scopes,
            };
            assert!(with([needed].into_iter().collect()).check(action).is_ok());
            let others = Scope::iter().filter(|scope| *scope != needed);
            let refused = with(others.collect()).check(action).unwrap_err();
            assert_eq!(refused.code, ErrorCode::Forbidden);
            assert!(refused.message.contains(needed.name()));
        }
    }

    #[test]
    fn a_guest_changes_nothing_and_a_user_manages_nobody() {
        let may = |role| {
            let grant = Grant {
                role,
                scopes: Scopes::ALL,
            };
            move |action: &Action| grant.check(*action).is_ok()
        };
        let of = |role| Action::iter().filter(may(role)).collect::<Vec<_>>();
        assert_eq!(of(UserRole::Admin), Action::iter().collect::<Vec<_>>());
        for action in [
            Action::ManageService,
            Action::ManagePeople,
            Action::ReadRecord,
            Action::ReadMetrics,
        ] {
            assert!(!of(UserRole::User).contains(&action));
        }
        for action in [
            Action::Converse,
            Action::Share,
            Action::GiveConsent,
            Action::ChangeFiles,
            Action::ChangeMemory,
        ] {
            assert!(of(UserRole::User).contains(&action));
            assert!(!of(UserRole::Guest).contains(&action));
        }
    }
}
