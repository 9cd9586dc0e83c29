//! How long a model may take before it says anything (DESIGN section 5): on a slow machine
//! the reading of a long prompt is work, not a hang.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use crate::protocol::chat::{ChatMessage, ChatRequest};
use crate::protocol::status::BackendKind;
use crate::protocol::tool::ToolSpec;

/// The longest that anybody waits, unless the setting itself is longer.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// A wait is this many times as long as what was seen so far lets expect.
const MARGIN: f64 = 2.0;

/// How much a new measurement counts against the average of those before it.
const WEIGHT: f64 = 0.3;

/// Fewer new tokens than this tell more of the server's manners than of its speed.
const LEAST_READ: u32 = 256;

/// The same for what it says.
pub const LEAST_SAID: u32 = 16;

/// As long a call as is waited for: a file of some 300 lines.
const CALL_TOKENS: u32 = 4_096;

/// Prompts that a backend may still have in its cache.
const REMEMBERED: usize = 8;

/// What an image costs a model to read, about.
const IMAGE_TOKENS: u32 = 800;

/// Tokens a second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// The rate of so many tokens in such a time. None where there is nothing to divide.
    #[must_use]
    pub fn of(tokens: u32, took: Duration) -> Option<Self> {
        let seconds = took.as_secs_f64();
        (tokens > 0 && seconds > 0.0).then(|| Self(f64::from(tokens) / seconds))
    }

    /// The average of this and of what is seen now.
    #[must_use]
    pub fn then(before: Option<Self>, now: Self) -> Self {
        before.map_or(now, |before| {
            Self(before.0 * (1.0 - WEIGHT) + now.0 * WEIGHT)
        })
    }

    fn time_for(self, tokens: u32) -> f64 {
        f64::from(tokens) / self.0
    }
}

/// A wait: `base`, or longer where so many tokens take longer at the rate that was seen. With
/// nothing seen it is `base`: what is set holds.
#[must_use]
pub fn limit_for(base: Duration, tokens: u32, seen: Option<Rate>) -> Duration {
    whole_limit(base, seen.map_or(0.0, |rate| rate.time_for(tokens)))
}

/// How much a server of this kind may say in an answer before any of it is heard: a whole answer
/// comes only when all of it is said, and so does a call in what Ollama streams.
#[must_use]
pub fn unheard_tokens(request: &ChatRequest, kind: BackendKind) -> u32 {
    if !request.streamed {
        request.max_output_tokens.unwrap_or(0)
    } else if kind == BackendKind::Ollama && !request.tools.is_empty() {
        CALL_TOKENS
    } else {
        0
    }
}

fn whole_limit(base: Duration, expected_seconds: f64) -> Duration {
    let wanted = Duration::try_from_secs_f64(expected_seconds * MARGIN).unwrap_or(LONGEST);
    wanted.min(LONGEST).max(base)
}

/// A prompt as far as it matters here: how long it is, and how much of it another one shares. Cheap
/// to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// A hash and a size in tokens for each part: the tools, then each message.
    parts: Arc<[(u64, u32)]>,
}

impl Prompt {
    /// The prompt of a request.
    #[must_use]
    pub fn of(request: &ChatRequest) -> Self {
        let of_tool = |tool: &ToolSpec| {
            let parameters = tool.parameters.to_string();
            part(&[&tool.name, &tool.description, &parameters], 0)
        };
        let tools = request.tools.made().parts.get_or_init(|| {
            let tools = request.tools.iter();
            tools.map(of_tool).collect()
        });
        let messages = request.messages.iter();
        let messages = messages.map(|message| {
            let made = message.made();
            *made.part.get_or_init(|| part_of(message))
        });
        Self {
            parts: tools.iter().copied().chain(messages).collect(),
        }
    }

    /// About how many tokens it is long.
    #[must_use]
    pub fn tokens(&self) -> u32 {
        sum(&self.parts)
    }

    /// About how many tokens of it stand behind what it shares with `before`.
    fn new_since(&self, before: &Self) -> u32 {
        let shared = self
            .parts
            .iter()
            .zip(before.parts.iter())
            .take_while(|(now, before)| now == before)
            .count();
        sum(&self.parts[shared..])
    }
}

fn part_of(message: &ChatMessage) -> (u64, u32) {
    match message {
        ChatMessage::System { content } => part(&["system", content], 0),
        ChatMessage::User { content, images } => {
            let mut texts = vec!["user", content.as_str()];
            texts.extend(images.iter().map(String::as_str));
            let images = u32::try_from(images.len()).unwrap_or(u32::MAX);
            let (hash, _) = part(&texts, 0);
            let (_, tokens) = part(&["user", content], images);
            (hash, tokens)
        }
        ChatMessage::Assistant {
            content,
            tool_calls,
        } => {
            let calls: Vec<String> = tool_calls
                .iter()
                .map(|call| format!("{} {}", call.name, call.arguments))
                .collect();
            let mut texts = vec!["assistant", content.as_str()];
            texts.extend(calls.iter().map(String::as_str));
            part(&texts, 0)
        }
        ChatMessage::Tool { content, .. } => part(&["tool", content], 0),
    }
}

fn part(texts: &[&str], images: u32) -> (u64, u32) {
    let mut hasher = DefaultHasher::new();
    texts.hash(&mut hasher);
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let tokens = u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX);
    (
        hasher.finish(),
        tokens.saturating_add(images.saturating_mul(IMAGE_TOKENS)),
    )
}

fn sum(parts: &[(u64, u32)]) -> u32 {
    parts
        .iter()
        .fold(0_u32, |sum, (_, tokens)| sum.saturating_add(*tokens))
}

/// How long a call that came to its end took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// About how many tokens of the prompt were new to the backend.
    pub new_tokens: u32,
    /// To the first thing that the model said.
    pub first_chunk: Duration,
    /// From there to the end.
    pub rest: Duration,
    pub completion_tokens: u32,
}

/// What a model has shown of its pace so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelPace {
    reading: Option<Rate>,
    saying: Option<Rate>,
    /// The prompts that it was sent last, the newest last.
    recent: VecDeque<Prompt>,
}

impl ModelPace {
    /// The wait for the first chunk of an answer to this prompt, before which so many tokens are
    /// said unheard ([`unheard_tokens`]). The whole prompt counts: a cache can be lost.
    #[must_use]
    pub fn first_chunk(&self, base: Duration, prompt: &Prompt, unheard: u32) -> Duration {
        let reading = self
            .reading
            .map_or(0.0, |rate| rate.time_for(prompt.tokens()));
        let saying = self.saying.map_or(0.0, |rate| rate.time_for(unheard));
        whole_limit(base, reading + saying)
    }

    /// How fast it says what it says, where that was seen.
    #[must_use]
    pub fn saying(&self) -> Option<Rate> {
        self.saying
    }

    /// About how many tokens of a prompt the backend cannot have in its cache.
    #[must_use]
    pub fn new_tokens(&self, prompt: &Prompt) -> u32 {
        self.recent
            .iter()
            .map(|before| prompt.new_since(before))
            .min()
            .unwrap_or(prompt.tokens())
    }

    /// A call with this prompt began.
    pub fn began(&mut self, prompt: Prompt) {
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(prompt);
    }

    /// A streamed call came to its end. (Of a whole answer nobody knows when it began.)
    pub fn ended(&mut self, timing: &Timing) {
        if timing.new_tokens >= LEAST_READ
            && let Some(now) = Rate::of(timing.new_tokens, timing.first_chunk)
        {
            self.reading = Some(Rate::then(self.reading, now));
        }
        if timing.completion_tokens >= LEAST_SAID
            && let Some(now) = Rate::of(timing.completion_tokens, timing.rest)
        {
            self.saying = Some(Rate::then(self.saying, now));
        }
    }
}

#[cfg(test)]
#[path = "first_chunk_tests.rs"]
mod tests;
