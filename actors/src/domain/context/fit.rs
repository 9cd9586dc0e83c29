//! A call that would overflow its window goes without its oldest turns (SPEC section 8).

use super::assembly::Assembled;
use super::notes::Notes;
use super::tokens::{estimate_tokens, message_tokens};
use crate::domain::cut::clip;
use crate::domain::outside;
use crate::protocol::chat::ChatMessage;
use crate::protocol::prompt::PromptMessage;

/// What a result of the newest turn keeps where even that turn overflows, in characters.
const SHORT_RESULT_CHARS: usize = 300;

/// The messages of a call, within its window as far as they can be.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    pub messages: Vec<PromptMessage>,
    /// Oldest turns that this call goes without.
    pub left_out_turns: usize,
    /// Results of the newest turn that were shortened.
    pub shortened_results: usize,
}

/// Makes a call fit into `window` tokens less `reserve` (the tools' schemas and the answer); a
/// window of 0 is one that nobody knows, and has no limit.
///
/// The oldest whole turns go first; the newest turn, the system message, memory, summary and
/// plan stay. If the newest turn alone is too long, its results are shortened, oldest first, so
/// that no call is parted from its result.
#[must_use]
pub fn fit(mut assembled: Assembled, window: u32, reserve: u32) -> Fitted {
    let limit = if window == 0 {
        u32::MAX
    } else {
        window.saturating_sub(reserve)
    };
    let mut tokens = assembled.tokens();
    let left_out_turns = leave_out_turns(&mut assembled, &mut tokens, limit);
    let mut shortened_results = 0;
    for message in assembled.turns.iter_mut().flatten() {
        if tokens <= limit {
            break;
        }
        shortened_results += usize::from(shorten(message, &mut tokens));
    }
    Fitted {
        messages: assembled.into_messages(),
        left_out_turns,
        shortened_results,
    }
}

impl Assembled {
    /// A guess at all of it.
    fn tokens(&self) -> u32 {
        let of_notes = self.notes.as_ref().map_or(0, Notes::tokens);
        let messages = self.head.iter().chain(self.turns.iter().flatten());
        messages
            .map(message_tokens)
            .fold(of_notes, u32::saturating_add)
    }
}

fn leave_out_turns(assembled: &mut Assembled, tokens: &mut u32, limit: u32) -> usize {
    let mut left_out = 0;
    while *tokens > limit && left_out + 1 < assembled.turns.len() {
        *tokens = tokens.saturating_sub(estimate_tokens(&assembled.turns[left_out]));
        if let Some((_, plan)) = assembled.plan.take_if(|(turn, _)| *turn == left_out) {
            let head = estimate_tokens(&assembled.head);
            assembled.add_to_head(plan);
            *tokens += estimate_tokens(&assembled.head) - head;
        }
        left_out += 1;
    }
    assembled.turns.drain(..left_out);
    left_out
}

/// Shortens a result that has more than it may keep. Whether it did.
fn shorten(message: &mut PromptMessage, tokens: &mut u32) -> bool {
    let before = message_tokens(message);
    let ChatMessage::Tool {
        call_id, content, ..
    } = &**message
    else {
        return false;
    };
    let chars = content.chars().count();
    if chars <= SHORT_RESULT_CHARS {
        return false;
    }
    let note = format!("\n[shortened to make room: {chars} characters in all]");
    let shorter = outside::within(call_id, content, |text| {
        clip(text, SHORT_RESULT_CHARS - note.chars().count()) + &note
    });
    if shorter.len() >= content.len() {
        return false;
    }
    if let ChatMessage::Tool { content, .. } = message.to_mut() {
        *content = shorter;
    }
    *tokens = tokens
        .saturating_sub(before)
        .saturating_add(message_tokens(message));
    true
}
