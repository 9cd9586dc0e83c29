//! What a program demands of a run's answer, beside that there is one. The model works as it does
//! otherwise, and only its answer is held to it: where that misses something, it is not told to
//! anybody, and the model is asked once more, so that it can do nothing else.

use serde::{Deserialize, Serialize};

use super::cut::cut_middle;
use crate::protocol::chat::ReplyForm;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::phrase::{Phrase, PhraseCode};

/// As much of an answer that missed what was demanded is shown to the model again.
const MAX_DRAFT_BYTES: usize = 32 * 1024;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Demands {
    /// A call of one of these tools of the program's own; nothing of the kind where it is empty.
    pub calls: Vec<String>,
    /// What the answer has to be where it is text.
    pub form: Option<ReplyForm>,
    /// Tools of the program's own are called no more.
    pub without_tools: bool,
    /// Calls of its own tools are made one after the other: it takes no two at once.
    #[serde(default)]
    pub one_by_one: bool,
}

/// What an answer misses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missed {
    Call,
    /// And why it is not what was demanded.
    Form(String),
}

impl Demands {
    /// Whether whatever the model answers will do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.form.is_none()
    }

    /// What the system message says of it in every call of the run.
    #[must_use]
    pub fn prompt(&self) -> Option<String> {
        let begin = "Your answer goes to a program that reads JSON: when you answer in text, the text must be";
        let alone = "without words around it and without a code fence";
        match self.form.as_ref()? {
            ReplyForm::Call => None,
            ReplyForm::Json => Some(format!("{begin} one JSON object, {alone}.")),
            ReplyForm::Schema(wanted) => Some(format!(
                "{begin} JSON as this schema has it, {alone}:\n{}",
                wanted.schema
            )),
        }
    }

    /// What the model is told while a call is demanded and it may do other work first.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let named = self.named()?;
        Some(format!(
            "[call] The program that asks wants a call of {named}: find out what you need for it, and then make it. Do not answer in text."
        ))
    }

    /// What it is told after an answer that missed a call.
    #[must_use]
    pub fn note_of_call(&self, draft: &str) -> String {
        let named = self.named().unwrap_or_default();
        let draft = cut_middle(draft, MAX_DRAFT_BYTES);
        format!(
            "[call] Call {named} now: the program that asks takes nothing else. It was not shown what you answered:\n{draft}"
        )
    }

    /// What it is told after an answer of another form, or where nothing but an answer is left to it.
    #[must_use]
    pub fn note_of_form(draft: &str) -> String {
        let now = "[form] Give your answer now, as JSON alone in the form that was demanded.";
        if draft.is_empty() {
            return format!("{now} There is no more time for tools.");
        }
        let draft = cut_middle(draft, MAX_DRAFT_BYTES);
        format!("{now} The program that asks was not shown what you answered:\n{draft}")
    }

    fn named(&self) -> Option<String> {
        let names: Vec<String> = self.calls.iter().map(|name| format!("`{name}`")).collect();
        match names.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("one of {}", several.join(", "))),
        }
    }

    /// Why a run fails whose model missed it twice.
    #[must_use]
    pub fn failure(&self, missed: Missed) -> NaviError {
        let phrase = match missed {
            Missed::Call => {
                let tools = [("tools", self.calls.join(", "))];
                Phrase::new(PhraseCode::CallNotMade, tools)
            }
            Missed::Form(reason) => Phrase::new(PhraseCode::AnswerMissesForm, [("reason", reason)]),
        };
        NaviError::said(ErrorCode::RunFailed, phrase)
    }
}

/// Why a run fails whose time was up before it had an answer.
#[must_use]
pub fn out_of_time() -> NaviError {
    NaviError::said(ErrorCode::RunFailed, PhraseCode::AnswerOutOfTime)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::chat::AnswerSchema;

    #[test]
    fn the_model_is_told_what_is_demanded() {
        let none = Demands::default();
        assert_eq!((none.prompt(), none.note()), (None, None));
        let wanted = AnswerSchema {
            name: "city".to_owned(),
            schema: json!({"type": "object"}),
            strict: None,
        };
        let demands = Demands {
            calls: vec!["a".to_owned(), "b".to_owned()],
            form: Some(ReplyForm::Schema(wanted)),
            ..none
        };
        let prompt = demands.prompt();
        assert!(prompt.is_some_and(|it| it.ends_with("{\"type\":\"object\"}")));
        let note = demands.note();
        assert!(note.is_some_and(|it| it.contains("one of `a`, `b`")));
        let draft = "x".repeat(2 * MAX_DRAFT_BYTES);
        assert!(Demands::note_of_form(&draft).len() < draft.len());
    }
}
