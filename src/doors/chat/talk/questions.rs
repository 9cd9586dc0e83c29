//! What a person is asked, and how they answer.

use std::time::Duration;

use navi_actors::protocol::command::Decision;
use navi_actors::protocol::ids::ApprovalId;
use serde_json::json;
use tokio::time::Instant;

use super::Talk;

/// A question stands for so long before a key answers it: whoever is typing just then means
/// something else.
const LOOK: Duration = Duration::from_millis(700);

impl Talk<'_> {
    /// A question that is new is looked at before a key answers it.
    pub(super) fn look_at_question(&mut self) {
        let asked = self.screen.question().map(|question| question.id);
        if asked != self.asked {
            self.terminal.set_asks(None);
            self.asked = asked;
            self.keys_at = asked.map(|_| Instant::now() + LOOK);
        }
    }

    /// Answers what is asked now.
    pub(super) async fn answer(
        &mut self,
        decision: Decision,
        note: Option<String>,
    ) -> Result<(), String> {
        let question = self.screen.question();
        let id = question.map(|question| question.id);
        let id = id.ok_or_else(|| "nothing is asked".to_owned())?;
        self.answer_to(id, decision, note).await
    }

    /// Answers this question; another one that is asked by now was not meant.
    pub(super) async fn answer_to(
        &mut self,
        id: ApprovalId,
        decision: Decision,
        note: Option<String>,
    ) -> Result<(), String> {
        let Some(question) = self.screen.asked(id) else {
            return Err("that is not asked any more".to_owned());
        };
        if decision == Decision::Always && question.request.always.is_none() {
            // The keys count again.
            self.terminal.set_asks(Some(id));
            return Err("there is no rule for that; a allows it once".to_owned());
        }
        self.screen.answers(id);
        let answer = json!({"decision": decision, "note": note});
        self.post(&format!("approvals/{id}"), &answer).await
    }
}
