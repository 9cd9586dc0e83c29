//! How the service itself is: what the banner, `navi doctor` and the page show.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use super::approval::ConsentMode;
use super::people::UserRole;
use super::phrase::{Phrase, PhraseCode, Trouble};

/// The kinds of backend.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumString,
    IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum BackendKind {
    Ollama,
    Openai,
    Starter,
}

impl BackendKind {
    /// The name on the wire and in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// Whether a backend can take a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum BackendState {
    /// Not asked yet.
    Unknown,
    Ready,
    /// It answers, but is not ready for calls yet.
    Loading {
        detail: String,
    },
    /// Its weights are being fetched.
    Fetching {
        model: String,
        /// Bytes here, of bytes in all.
        received: u64,
        total: u64,
    },
    Down {
        /// What is wrong, as a person reads it.
        problem: String,
        /// The one thing to do about it.
        remedy: String,
        /// Both as codes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phrases: Option<Box<Trouble>>,
    },
}

impl BackendState {
    /// One that cannot take a call, and what to do about it.
    #[must_use]
    pub fn down(trouble: Trouble) -> Self {
        Self::Down {
            problem: trouble.problem.to_string(),
            remedy: trouble.remedy.to_string(),
            phrases: Some(Box::new(trouble)),
        }
    }

    /// What is wrong, where it is down.
    #[must_use]
    pub fn trouble(&self) -> Option<Trouble> {
        match self {
            Self::Down {
                problem,
                remedy,
                phrases,
            } => Some(
                phrases
                    .as_deref()
                    .cloned()
                    .unwrap_or_else(|| Trouble::new(Phrase::plain(problem), Phrase::plain(remedy))),
            ),
            Self::Unknown | Self::Ready | Self::Loading { .. } | Self::Fetching { .. } => None,
        }
    }
}

/// One backend as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackendStatus {
    pub kind: BackendKind,
    /// Where it is: a URL, or `in process`.
    pub address: String,
    #[serde(flatten)]
    pub state: BackendState,
    /// Since when it does not answer; none where it does, or was not asked yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_since: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub models: Vec<ModelInfo>,
    /// The model that is used where a profile names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
}

/// A model that a backend offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelInfo {
    pub name: String,
    /// None where the backend does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vision: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<bool>,
    /// The window it was made for, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u32>,
    /// Of its weights, on disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// A toy: it chats, and can do nothing else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub demo: bool,
    /// The default model of the settings, which the backend lacks and this one stands in for.
    #[serde(skip)]
    pub stands_for: Option<String>,
}

/// The service as the page shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemStatus {
    pub version: String,
    /// The backend that the next call would go to; none where none is ready.
    pub active: Option<BackendKind>,
    pub backends: Vec<BackendStatus>,
    /// What is wrong here beside the backends (a profile that was refused, …), one sentence each.
    pub warnings: Vec<String>,
    /// The same as codes, in the same order.
    #[serde(default)]
    pub warning_phrases: Vec<Phrase>,
    /// The model that each profile would get now.
    pub profile_models: Vec<ProfileModel>,
    /// Models that the starter can fetch, and which of them are here.
    pub fetchable: Vec<FetchableModel>,
    /// The model that Ollama pulls, or the last one that it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<ModelPull>,
    /// What keeps tools in.
    pub fence: Fence,
    /// How much a new session may do without asking, where nobody says otherwise.
    pub mode: ConsentMode,
}

impl SystemStatus {
    /// The same as somebody of this role sees it: what is wrong with the installation, which names
    /// its servers, tools and folders, is an admin's to mend.
    #[must_use]
    pub fn seen_by(mut self, role: UserRole) -> Self {
        if role < UserRole::Admin {
            self.warnings.clear();
            self.warning_phrases.clear();
            if self.fence.sandbox.is_some() {
                self.fence.open_for(PhraseCode::AdminSees.into());
            }
        }
        self
    }
}

/// Where the fence around tools is open (DESIGN section 7): the page shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fence {
    /// `FS_ALLOWED_PATHS` is `*`.
    pub files_open: bool,
    /// `TERMINAL_ALLOWED_COMMANDS` is `*`.
    pub commands_open: bool,
    /// Why commands are not held by a sandbox, and what to do; none where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The same as a code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_phrase: Option<Phrase>,
}

impl Fence {
    /// Says why commands are not held by a sandbox.
    pub fn open_for(&mut self, why: Phrase) {
        self.sandbox = Some(why.to_string());
        self.sandbox_phrase = Some(why);
    }
}

/// A model that the starter can fetch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FetchableModel {
    pub name: String,
    pub title: String,
    /// Bytes on disk.
    pub size: u64,
    /// Bytes of memory that it needs.
    pub memory: u64,
    pub demo: bool,
    pub present: bool,
    /// Bytes that are here while it is being fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// Why the last fetch of it failed, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The same as a code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrase: Option<Phrase>,
}

/// A profile that a session can have, and who would answer for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileModel {
    pub profile_id: String,
    pub name: String,
    pub description: String,
    /// Whether it has any, which not every model can call.
    pub has_tools: bool,
    /// Whether a session that names none gets it.
    pub is_default: bool,
    /// None where nobody would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The profile's own model, or the default one of the settings, which the backend lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
    /// The profile's own backend, which cannot take a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fell_back_from: Option<BackendKind>,
}

/// A model that Ollama was asked to pull.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelPull {
    pub name: String,
    /// Bytes here, of bytes in all: of the parts of which Ollama has said something.
    pub received: u64,
    pub total: u64,
    /// What it does just now, in its own words.
    pub step: String,
    /// Why it ended without the model, and what to do; none while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The same as a code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrase: Option<Phrase>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_there_is_no_sandbox_is_told_to_who_can_mend_it_alone() {
        let mut fence = Fence::default();
        fence.open_for(Phrase::plain("/home/ann lies open"));
        let status = SystemStatus {
            version: String::new(),
            active: None,
            backends: Vec::new(),
            warnings: vec!["a warning".to_owned()],
            warning_phrases: vec![Phrase::plain("a warning")],
            profile_models: Vec::new(),
            fetchable: Vec::new(),
            pull: None,
            fence,
            mode: ConsentMode::Edits,
        };
        assert_eq!(status.clone().seen_by(UserRole::Admin), status);
        let seen = status.seen_by(UserRole::User);
        assert!(seen.warnings.is_empty() && seen.warning_phrases.is_empty());
        let told = seen.fence.sandbox_phrase.unwrap();
        assert_eq!(told, PhraseCode::AdminSees.into());
        assert_eq!(seen.fence.sandbox, Some(told.to_string()));
    }
}
