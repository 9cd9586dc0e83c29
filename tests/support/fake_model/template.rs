//! Chat templates that take less than Navi sends, in the words of those that are about.

use serde::Deserialize;
use serde_json::Value;

use super::rules::{messages, role};

/// What the models' chat template takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Template {
    #[default]
    Any,
    /// A system message first, and nowhere else (as Qwen's).
    SystemFirst,
    /// The same; user and assistant in turns, and only the assistant after a result (as
    /// Mistral's).
    Alternating,
    /// No system message (as Gemma's), and turns.
    NoSystem,
}

impl Template {
    /// Why a call is refused.
    pub(super) fn refusal(self, body: &Value) -> Option<String> {
        let messages = messages(body);
        let roles: Vec<&str> = messages.iter().map(role).collect();
        let words = match self {
            Self::Any => return None,
            Self::SystemFirst => late_system(&roles)?,
            Self::Alternating => late_system(&roles).or_else(|| no_turns(&messages))?,
            Self::NoSystem if roles.contains(&"system") => "System role not supported",
            Self::NoSystem => no_turns(&messages)?,
        };
        Some(format!(
            "Error: Jinja Exception: {words} While rendering: {}",
            "{%- for message in messages %}".repeat(40)
        ))
    }
}

fn late_system(roles: &[&str]) -> Option<&'static str> {
    let late = roles.iter().skip(1).any(|role| *role == "system");
    late.then_some("System message must be at the beginning.")
}

fn no_turns(messages: &[&Value]) -> Option<&'static str> {
    let after_result = messages
        .windows(2)
        .any(|pair| role(&pair[0]) == "tool" && role(&pair[1]) == "user");
    if after_result {
        return Some("Unexpected role 'user' after role 'tool'");
    }
    // Calls and their results stand within a turn.
    let turns: Vec<&str> = messages
        .iter()
        .filter(|message| message.get("tool_calls").is_none())
        .map(role)
        .filter(|role| matches!(*role, "user" | "assistant"))
        .collect();
    let wanted = ["user", "assistant"].into_iter().cycle();
    let alternate = turns
        .iter()
        .zip(wanted)
        .all(|(role, wanted)| *role == wanted);
    (!alternate).then_some("Conversation roles must alternate user/assistant/user/assistant/...")
}
