//! What is done after a turn, when its answer is there: the summary of old turns, the title.

use std::sync::Arc;

use super::Session;
use super::transition::{Compacted, Effect, Exchange};
use super::write::Write;
use crate::domain::run_loop::RunEnd;
use crate::domain::{compression, title};
use crate::protocol::ids::{Origin, RunId};
use crate::protocol::message::{Message, Role};

/// An answer's start says what it is about, and an answer can be megabytes.
const ANSWER_CHARS: usize = 1_000;

impl Session {
    /// The workers after a turn. Whatever fails in them costs the turn nothing.
    pub(super) fn after_turn(&mut self, run_id: RunId, end: &RunEnd) {
        if self.closing.is_some() || !matches!(end, RunEnd::Answered | RunEnd::Limited) {
            return;
        }
        let summary = &self.ahead.summary;
        let exchange =
            first_exchange(&self.ahead.run_messages, &summary.title).filter(|_| !summary.ephemeral);
        self.out
            .then
            .extend(exchange.map(|exchange| Effect::FindTitle(Box::new(exchange))));
        let is_due = compression::is_due(
            self.ahead.summary.context_token_count,
            self.window.unwrap_or(self.policy.window),
            self.policy.compression_threshold,
            self.policy.compresses,
        );
        // A message that waits has a run that looks at this first thing.
        if is_due && self.ahead.queue.is_empty() {
            self.summaries += 1;
            let summary = self.summaries;
            self.summary = Some(summary);
            self.out.then.push(Effect::Summarise { summary, run_id });
        }
    }

    /// The summary under way is of no use any more: the context that it was made of changes.
    pub(super) fn drop_summary(&mut self) {
        if self.summary.take().is_some() {
            self.out.now.push(Effect::DropSummary);
        }
    }

    pub(super) fn summarised(&mut self, summary: u64, compacted: Option<Compacted>) {
        if self.summary.take_if(|wanted| *wanted == summary).is_none() || !self.is_idle() {
            return;
        }
        let Some(compacted) = compacted else {
            return;
        };
        let Compacted {
            run_id,
            branch_id,
            context,
            event,
            call,
        } = compacted;
        self.write(Write::Context { branch_id, context });
        self.write(Write::ContextTokens(0));
        if let Some(call) = call {
            self.keep_call(run_id, call);
        }
        self.tell(Some(Origin::foreground(run_id)), event);
    }

    pub(super) fn title_found(&mut self, title: String, instead_of: &str) {
        // Its user may have chosen another meanwhile.
        if self.ahead.summary.title == instead_of && self.closing.is_none() {
            self.write(Write::Title(title));
        }
    }
}

/// What was asked and answered first, where the title is still made of it.
fn first_exchange(messages: &[Arc<Message>], title: &str) -> Option<Exchange> {
    let texts = |role: Role| {
        let of_role = messages
            .iter()
            .filter(move |message| message.role == role && !message.is_plan);
        of_role.filter_map(|message| message.content.clone())
    };
    let asked = texts(Role::User).next()?;
    (title == title::from_text(&asked)).then_some(())?;
    Some(Exchange {
        answered: texts(Role::Assistant)
            .next_back()?
            .chars()
            .take(ANSWER_CHARS)
            .collect(),
        asked,
        title: title.to_owned(),
    })
}
