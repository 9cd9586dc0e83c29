//! Ids as newtypes, so that a run's id cannot stand where a session's belongs.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A fresh id; ids made later sort later (UUIDv7).
            #[must_use]
            #[expect(clippy::new_without_default, reason = "an id is never a default value")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

uuid_id!(
    /// A person. Every session, file and event belongs to one.
    UserId
);
uuid_id!(
    /// A conversation.
    SessionId
);
uuid_id!(
    /// A link by which a conversation is looked at. It opens nothing: its secret does.
    LinkId
);
uuid_id!(
    /// The work on one turn.
    RunId
);
uuid_id!(
    /// A message of a conversation. The assistant's is known before its text streams.
    MessageId
);
uuid_id!(
    /// A request for a person's consent.
    ApprovalId
);
uuid_id!(
    /// A rule of consent.
    RuleId
);
uuid_id!(
    /// A change to a file.
    ChangeId
);
uuid_id!(
    /// A file of a session.
    FileId
);
text_id!(
    /// A tool call. Ours, never the backend's: backends reuse or leave out theirs.
    CallId
);
text_id!(
    /// A streamed part: an answer's text, its reasoning, or a tool's output.
    PartId
);
text_id!(
    /// A process that may own sessions. A new one for each start of the service.
    OwnerId
);

impl CallId {
    /// A fresh call id.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "an id is never a default value")]
    pub fn new() -> Self {
        Self(format!("call_{}", Uuid::now_v7().simple()))
    }
}

impl OwnerId {
    /// A fresh owner id.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "an id is never a default value")]
    pub fn new() -> Self {
        Self(Uuid::now_v7().to_string())
    }
}

impl PartId {
    /// The part that carries an assistant message's text.
    #[must_use]
    pub fn text(message: MessageId) -> Self {
        Self(format!("{message}.text"))
    }

    /// The part that carries an assistant message's reasoning.
    #[must_use]
    pub fn thinking(message: MessageId) -> Self {
        Self(format!("{message}.thinking"))
    }

    /// The part that carries a running tool's output.
    #[must_use]
    pub fn output(call: &CallId) -> Self {
        Self(format!("{call}.output"))
    }

    /// The call whose output this part carries; none for text and reasoning.
    #[must_use]
    pub fn call(&self) -> Option<CallId> {
        self.0
            .strip_suffix(".output")
            .map(|call| CallId(call.to_owned()))
    }
}

/// The run that something comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub run_id: RunId,
    /// The run that started this one; subagents only.
    pub parent_run_id: Option<RunId>,
}

impl Origin {
    /// The session's own run.
    #[must_use]
    pub fn foreground(run_id: RunId) -> Self {
        Self {
            run_id,
            parent_run_id: None,
        }
    }

    /// Whether it is a child run.
    #[must_use]
    pub fn is_subagent(&self) -> bool {
        self.parent_run_id.is_some()
    }
}
