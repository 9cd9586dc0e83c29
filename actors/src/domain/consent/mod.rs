//! Whether a call may be made, is asked about, or is denied (DESIGN section 6).
//!
//! | mode | write | egress | host |
//! | --- | --- | --- | --- |
//! | `ask` | asks | asks | asks |
//! | `edits` | runs | asks | asks |
//! | `auto` | runs | runs | runs |
//!
//! Above the table stand a user's rules: one that forbids always counts, one that allows
//! takes the place of a question. And taint: in a session that has read text from outside,
//! egress and host ask in every mode, since that text may be what led to the call; a rule
//! lifts this only where its user gave it in this very session after it read that text, knowing
//! what the session had read. Calls that only read, and those that change nothing but the
//! session's own list and notes, are never asked about. Some calls take a person's word in every
//! mode: what is forgotten of the user, a command that nothing holds. A plain run that may do
//! anything may do those as long as it is not tainted.

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use crate::protocol::approval::{
    ConsentMode, NOT_ALLOWED, PendingApproval, Permission, PermittedBy, Resolution,
};
use crate::protocol::command::{Decision, PlainConsent};
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::protocol::tool::Effect;

/// The most rules that a user may have.
pub const MAX_RULES: u64 = 500;

/// The most requests that may wait in a session at once.
pub const MAX_WAITING: usize = 32;

/// The most bytes of details that a request may have. A person is shown all of what they are
/// asked about: a call with more than this is refused before anybody is asked.
pub const MAX_SHOWN_BYTES: usize = 128 * 1024;

/// The most characters of the note by which a person says why not.
pub const MAX_NOTE_CHARS: usize = 500;

/// Tools that change the session's own state alone, or that only start what is asked about
/// by itself (a child's calls are).
const OWN_STATE: [&str; 5] = [
    "todo",
    "scratchpad",
    "switch_profile",
    "memory_search",
    "spawn_agent",
];

/// Tools that change something and no files.
const NO_FILES: [&str; 5] = [
    "memory_save",
    "memory_forget",
    "web_search",
    "web_fetch",
    "home_assistant",
];

/// A request for consent, and what only Navi needs to know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Asking {
    pub pending: PendingApproval,
    /// What the answer is bound to: see [`digest`].
    pub digest: String,
    /// See [`rule_key`]; none where no rule can be made.
    pub rule_key: Option<String>,
}

/// An answer to a request, for the run that waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub resolution: Resolution,
    /// Why not, in the person's words.
    pub note: Option<String>,
}

/// What is to be decided.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub tool: &'a str,
    /// Of this very call.
    pub effect: Effect,
    pub mode: ConsentMode,
    /// Why a person is asked about it in every mode.
    pub by_word: Option<&'a Phrase>,
    /// What the run says of questions.
    pub consent: PlainConsent,
    /// When the session first read text from outside.
    pub tainted_at: Option<DateTime<Utc>>,
    /// The user's rule for such calls.
    pub rule: Option<Rule>,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub decision: Permission,
    /// When the user last said "always" to such a call in this session, if they did.
    pub given_here: Option<DateTime<Utc>>,
}

/// What is to become of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It changes nothing that anyone is asked about.
    Free,
    Allow(PermittedBy),
    /// A person is asked, for these reasons.
    Ask {
        reason: Vec<Phrase>,
    },
    Deny {
        message: String,
        by: PermittedBy,
    },
}

/// Whether nobody is ever asked about calls of this tool with this effect.
#[must_use]
pub fn is_free(tool: &str, effect: Effect) -> bool {
    effect == Effect::Read || OWN_STATE.contains(&tool)
}

/// Whether a call may change files that another call reads.
#[must_use]
pub fn may_change_files(tool: &str, effect: Effect) -> bool {
    !is_free(tool, effect) && !NO_FILES.contains(&tool)
}

/// See the module.
#[must_use]
pub fn decide(question: &Question<'_>) -> Verdict {
    let Question {
        tool,
        effect,
        by_word,
        consent,
        tainted_at,
        rule,
        ..
    } = *question;
    if is_free(tool, effect) {
        return Verdict::Free;
    }
    if rule.is_some_and(|rule| rule.decision == Permission::Deny) {
        return Verdict::Deny {
            message: "the user has forbidden this once and for all; do not try it in another way: go on without it, or ask the user".to_owned(),
            by: PermittedBy::Rule,
        };
    }
    let leaves = effect >= Effect::Egress;
    let tainted_at = tainted_at.filter(|_| leaves || by_word.is_some());
    let knowing = |rule: Rule| tainted_at.is_none_or(|at| rule.given_here > Some(at));
    if rule.is_some_and(knowing) {
        return Verdict::Allow(PermittedBy::Rule);
    }
    let mode = match consent {
        PlainConsent::Allow => ConsentMode::Auto,
        PlainConsent::Ask | PlainConsent::Deny => question.mode,
    };
    let asks = match mode {
        ConsentMode::Ask => true,
        ConsentMode::Edits => leaves || by_word.is_some(),
        ConsentMode::Auto => by_word.is_some() && consent != PlainConsent::Allow,
    };
    if !asks && tainted_at.is_none() {
        return Verdict::Allow(PermittedBy::Mode);
    }
    if consent != PlainConsent::Ask {
        return Verdict::Deny {
            message: "this needs a person's consent, and nobody can be asked in this run; go on without it, and say in your answer what was not done".to_owned(),
            by: PermittedBy::Mode,
        };
    }
    Verdict::Ask {
        reason: reason(by_word, effect, tainted_at.is_some()),
    }
}

fn reason(by_word: Option<&Phrase>, effect: Effect, tainted: bool) -> Vec<Phrase> {
    let by_effect = || {
        Phrase::from(match effect {
            Effect::Read | Effect::Write => PhraseCode::AsksFirst,
            Effect::Egress => PhraseCode::SendsOut,
            Effect::Host => PhraseCode::ChangesMachine,
        })
    };
    let mut reason = vec![by_word.cloned().unwrap_or_else(by_effect)];
    reason.extend(tainted.then(|| PhraseCode::ReadOutside.into()));
    reason
}

/// What stands against a child's call that goes beyond what its parent's tools can do.
#[must_use]
pub fn beyond_parent(tool: &str, effect: Effect, ceiling: Effect) -> Option<String> {
    (effect > ceiling && !is_free(tool, effect)).then(|| {
        format!(
            "this call of `{tool}` is more than the one who started this subagent may do itself; leave it, and say in your report that it is still to be done"
        )
    })
}

/// The most that a run's own tools can do: what its children may do at most. What starts
/// children counts for nothing by itself.
#[must_use]
pub fn ceiling<'a>(tools: impl IntoIterator<Item = (&'a str, Effect)>, own: Effect) -> Effect {
    tools
        .into_iter()
        .filter(|(tool, effect)| !is_free(tool, *effect))
        .map(|(_, effect)| effect)
        .max()
        .unwrap_or(Effect::Read)
        .min(own)
}

/// What an approval is bound to: the tool, its arguments, and what else makes the call what
/// it is.
#[must_use]
pub fn digest(tool: &str, arguments: &serde_json::Value, binding: &str) -> String {
    hashed(&[tool, &arguments.to_string(), binding])
}

/// What rules are compared by: as strict as the key itself, and short.
#[must_use]
pub fn rule_key(tool: &str, key: &str) -> String {
    hashed(&[tool, key])
}

/// SHA-256 of the parts, each behind its length, so that no two lists of parts are one text.
fn hashed(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

/// What the model is told of a call that was not allowed.
#[must_use]
pub fn denied(summary: &str, answer: &Answer) -> String {
    let mut told = format!(
        "{NOT_ALLOWED}{summary}; do not try again in another way, ask what they want or go on without it."
    );
    if answer.resolution.decision == Decision::Never {
        told.push_str(" From now on such calls are refused without asking them.");
    }
    if let Some(note) = &answer.note {
        told.push_str(" The user says: ");
        told.push_str(note);
    }
    told
}

/// What it is told where nobody answered in time.
#[must_use]
pub fn unanswered(summary: &str) -> String {
    format!(
        "nobody answered in time whether this is allowed, so it was not done: {summary}; go on without it, and tell the user that it still waits for their consent"
    )
}

/// What it is told where the call was another one by the time that it was allowed.
pub const CHANGED: &str = "changed after approval, so nothing was run: what this call would do is no longer what the user allowed (its command, directory, environment or script changed, or files that it may read); make the call again, the user will be asked anew";

/// What it is told where too many requests wait already.
pub const TOO_MANY: &str = "too many requests wait for the user's consent already; make this call again when they are answered";

/// What it is told where a person could not be shown all of what the call would do.
#[must_use]
pub fn too_long(bytes: usize) -> String {
    format!(
        "nobody was asked and nothing was done: the user is shown all of what they allow, and this call has {bytes} bytes to show, of which {MAX_SHOWN_BYTES} is the limit; split it into smaller calls, or put what is long into a file first, piece by piece"
    )
}

#[cfg(test)]
mod tests;
