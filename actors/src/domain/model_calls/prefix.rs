//! What of a request the model had read with the call before, and what broke that.
//!
//! A server that keeps what it read goes on where a request first differs from the one before:
//! all that comes after is read again. Nothing is noted for this when a call is made. The recipes
//! of the two calls say what differs, and the counts of the server how much that is; only pieces
//! are guessed at.

use crate::domain::context::CallOptions;
use crate::domain::history::ContextState;
use crate::protocol::chat::Usage;
use crate::protocol::context::ContextParts;
use crate::protocol::inspect::PrefixBreak;

/// Servers keep what they read in blocks, of up to 256 tokens: what is less than that is no break.
const BLOCK_TOKENS: u32 = 256;

/// What stands in a request before the conversation itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// Names of parts.
    pub(super) system: String,
    pub(super) tools: String,
    pub(super) options: CallOptions,
    pub(super) context: ContextState,
    /// Whether notes stood at its end, for this call alone.
    pub(super) noted: bool,
    /// Guesses; `turns` are the notes.
    pub(super) tokens: ContextParts,
}

/// A call of the loop, as its beginning is compared.
#[derive(Clone, Debug)]
pub struct Sent {
    pub backend: String,
    pub model: String,
    pub usage: Usage,
    pub head: Head,
}

/// What the conversation has in a call that it had not in the one before. Guesses, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// Whether that one's last message is not in this one's conversation.
    pub elsewhere: bool,
    /// All of it.
    pub new: u32,
    /// What an earlier run said or was told, and another call had read.
    pub older: u32,
    /// The reply of the call before.
    pub reply: u32,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub broken_by: Option<PrefixBreak>,
    pub kept: u32,
    pub again: u32,
    /// Whether the server said what it had kept.
    pub counted: bool,
}

impl Head {
    /// The window of the call, which says how results are cut.
    #[must_use]
    pub fn window(&self) -> u32 {
        self.options.window
    }

    /// Whether [`Came`] is of any account where the same conversation goes on.
    #[must_use]
    pub fn asks_what_came(&self, now: &Self) -> bool {
        self.noted || !self.same_summary(now)
    }

    fn same_summary(&self, other: &Self) -> bool {
        let (one, other) = (&self.context, &other.context);
        one.start == other.start && one.summary == other.summary && one.plan == other.plan
    }

    fn same_measure(&self, other: &Self) -> bool {
        let (one, other) = (&self.options, &other.options);
        one.window == other.window && one.room == other.room && one.sees_images == other.sees_images
    }

    fn same_memory(&self, other: &Self) -> bool {
        let of = |head: &Self| head.context.memory.clone().unwrap_or_default();
        of(self) == of(other)
    }
}

/// The first piece that differs.
fn broken_by(before: &Sent, now: &Sent, came: Came) -> Option<PrefixBreak> {
    let (a, b) = (&before.head, &now.head);
    let same = [
        (
            PrefixBreak::Model,
            before.model == now.model && before.backend == now.backend,
        ),
        (PrefixBreak::System, a.system == b.system),
        (PrefixBreak::Tools, a.tools == b.tools),
        (PrefixBreak::Memory, a.same_memory(b)),
        (PrefixBreak::Summary, a.same_summary(b)),
        (PrefixBreak::Window, a.same_measure(b)),
        (PrefixBreak::Message, !came.elsewhere),
        (PrefixBreak::Note, !a.noted),
    ];
    let mut differ = same.into_iter().filter(|(_, same)| !same);
    differ.next().map(|(piece, _)| piece)
}

/// What became of what `before` had, in `now`.
#[must_use]
pub fn compare(before: &Sent, now: &Sent, came: Came) -> Found {
    let (sent, read) = (before.usage.prompt_tokens, now.usage.prompt_tokens);
    let broken = broken_by(before, now, came);
    let (old, new) = (&before.head.tokens, &now.head.tokens);
    let head = [old.system, old.tools, old.memory, old.summary];
    let stands = |pieces: usize| head[..pieces].iter().sum::<u32>();
    // What stood before the piece that differs, and the piece itself, then and now.
    let (stood, gone, piece) = match broken {
        Some(PrefixBreak::Model) => (0, 0, 0),
        Some(PrefixBreak::System) => (0, old.system, new.system),
        Some(PrefixBreak::Tools) => (stands(1), old.tools, new.tools),
        Some(PrefixBreak::Memory) => (stands(2), old.memory, new.memory),
        Some(PrefixBreak::Summary) => (stands(3), old.summary, 0),
        Some(PrefixBreak::Window) => (stands(4), 0, 0),
        Some(PrefixBreak::Message) => (read.saturating_sub(came.new), 0, 0),
        Some(PrefixBreak::Note) => (sent.saturating_sub(old.turns), 0, 0),
        Some(PrefixBreak::Server) | None => (sent, 0, 0),
    };
    let kept = stood.min(read);
    let rest = read.saturating_sub(kept);
    let again = match broken {
        None => 0,
        Some(PrefixBreak::Message) => came.older,
        Some(PrefixBreak::Note) => came.reply,
        // What came is new, and all else of the conversation stood in both.
        Some(_) if !before.head.same_summary(&now.head) => {
            let fresh = piece.saturating_add(new.summary).saturating_add(came.new);
            rest.saturating_sub(fresh)
        }
        Some(_) => sent.saturating_sub(kept.saturating_add(gone)),
    };
    let guessed = Found {
        broken_by: broken,
        kept,
        again: again.min(rest),
        counted: false,
    };
    match now.usage.cached_tokens {
        Some(cached) => guessed.counted_by(cached, read),
        None => guessed,
    }
}

impl Found {
    /// With what the server says. What it had not kept, though nothing differs, is its doing.
    fn counted_by(self, cached: u32, read: u32) -> Self {
        let had = self.kept.saturating_add(self.again);
        let lost = had.saturating_sub(cached);
        let broken_by = self
            .broken_by
            .or_else(|| (lost >= BLOCK_TOKENS.max(had / 8)).then_some(PrefixBreak::Server));
        Self {
            broken_by,
            kept: cached.min(read),
            again: broken_by.map_or(0, |_| lost.min(read.saturating_sub(cached))),
            counted: true,
        }
    }
}

#[cfg(test)]
#[path = "prefix_tests.rs"]
mod tests;
