//! What fills a model's window, part by part.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The next call's prompt by its parts, in tokens as Navi guesses them: backends count a prompt
/// as a whole alone, and after they have read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextParts {
    /// Persona, the profile's prompt, and what tools and limits add to it.
    pub system: u32,
    /// What is remembered about the user.
    pub memory: u32,
    /// The summary of what was compressed, and a plan that stood in there.
    pub summary: u32,
    /// The conversation from there on, word for word.
    pub turns: u32,
    /// The tools' descriptions and schemas.
    pub tools: u32,
    /// Kept free for the answer.
    pub answer: u32,
    /// The model's window. What all these leave of it is free.
    pub window: u32,
    /// Oldest turns that do not fit, and stay out of the call.
    pub left_out_turns: u32,
    /// What the backend counted at the last call, its answer with it; 0 where none was since the
    /// branch is shown.
    pub counted: u32,
}
