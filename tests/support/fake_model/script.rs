//! What a scripted answer is made of.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::rules;

/// One thing that the fake does on its way through an answer. In JSON: `{"text": "Hi"}`,
/// `{"tool_call": {"name": "todo", "arguments": {}}}`, `{"hold": "gate"}`, `"close"`, …
///
/// Nothing is sent before the first step that says something, the headers neither: so do
/// real servers. An answer without [`Step::Finish`] (or another end) is finished in the
/// usual way when its steps are done. A call that asks for no stream (`"stream": false`) gets
/// what the same steps say as one document at their end; `perform.rs` says what becomes of
/// those that have no place in one.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    Thinking(String),
    Text(String),
    ToolCall {
        name: String,
        arguments: Value,
    },
    /// How far the prompt is read. Only OpenAI's side (as llama.cpp) can say so.
    Prefill {
        read: u32,
        total: u32,
    },
    /// Sends the headers now.
    Begin,
    /// Waits until the gate of this name is released.
    Hold(String),
    DelayMs(u64),
    /// The protocol's error inside the stream, and the body's proper end after it.
    Error(String),
    /// A whole response in place of a stream. Must stand first.
    Respond {
        status: u16,
        #[serde(default)]
        headers: BTreeMap<String, String>,
        #[serde(default)]
        body: String,
    },
    /// Text as it is into the body, as a chunk of its own.
    Raw(String),
    /// The usual end, with these counts.
    Finish {
        reason: String,
        prompt_tokens: u32,
        completion_tokens: u32,
    },
    /// Ends the body properly, without the protocol's end.
    End,
    /// Cuts the connection in the middle of the body.
    Close,
    /// These bytes onto the connection as they are, without a head or a chunk of ours.
    Bytes(Vec<u8>),
    /// Cuts the connection where it is, with nothing more.
    Cut,
    /// The same by a reset.
    Reset,
    /// Nothing more, until the client goes away.
    Silence,
    /// A text that never ends.
    EndlessText {
        piece: String,
        every_ms: u64,
    },
    /// The same of [`Step::Raw`].
    EndlessRaw {
        piece: String,
        every_ms: u64,
    },
}

impl Step {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(crate) fn hold(gate: &str) -> Self {
        Self::Hold(gate.to_owned())
    }

    pub(crate) fn tool_call(name: &str, arguments: Value) -> Self {
        Self::ToolCall {
            name: name.to_owned(),
            arguments,
        }
    }

    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self::Respond {
            status,
            headers: BTreeMap::new(),
            body: body.to_owned(),
        }
    }
}

/// An answer, and the calls that it is for: those that meet each condition that it names.
///
/// | kind of call | how to tell it |
/// | --- | --- |
/// | the main loop's | `with_tools(true)` |
/// | a plan's, a title's, a summary's, memory's | `streamed(false)`, and words of its prompt: `system`, `last` |
/// | a subagent's | `system`, words of its profile's prompt; `when`, its task |
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reply {
    pub(crate) steps: Vec<Step>,
    /// The last user message must contain this.
    #[serde(default)]
    when: Option<String>,
    /// The call must offer tools, or must offer none (as calls for a title do).
    #[serde(default)]
    with_tools: Option<bool>,
    /// The call must ask for a stream, as runs do; with false, for a whole answer.
    #[serde(default = "yes")]
    streamed: bool,
    /// One of its system messages must contain this.
    #[serde(default)]
    system: Option<String>,
    /// Its last message, whoever's, must contain this.
    #[serde(default)]
    last: Option<String>,
    /// It must ask for this temperature.
    #[serde(default)]
    temperature: Option<f64>,
    /// So many results must stand after the last user message.
    #[serde(default)]
    results: Option<usize>,
    /// It answers a pull of this model, by lines of [`Step::Raw`], and no call.
    #[serde(default)]
    pull: Option<String>,
    /// Answers every such call that no other script answers, and is never used up.
    #[serde(default)]
    pub(super) always: bool,
}

impl Reply {
    pub(crate) fn new(steps: impl Into<Vec<Step>>) -> Self {
        Self {
            steps: steps.into(),
            when: None,
            with_tools: None,
            streamed: true,
            system: None,
            last: None,
            temperature: None,
            results: None,
            pull: None,
            always: false,
        }
    }

    pub(crate) fn when(mut self, words: &str) -> Self {
        self.when = Some(words.to_owned());
        self
    }

    pub(crate) fn with_tools(mut self, offered: bool) -> Self {
        self.with_tools = Some(offered);
        self
    }

    pub(crate) fn streamed(mut self, streamed: bool) -> Self {
        self.streamed = streamed;
        self
    }

    pub(crate) fn system(mut self, words: &str) -> Self {
        self.system = Some(words.to_owned());
        self
    }

    pub(crate) fn last(mut self, words: &str) -> Self {
        self.last = Some(words.to_owned());
        self
    }

    pub(crate) fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    pub(crate) fn results(mut self, count: usize) -> Self {
        self.results = Some(count);
        self
    }

    pub(crate) fn pull(mut self, model: &str) -> Self {
        self.pull = Some(model.to_owned());
        self
    }

    pub(crate) fn always(mut self) -> Self {
        self.always = true;
        self
    }

    pub(super) fn answers(&self, body: &Value) -> bool {
        let has = |text: &str, words: &Option<String>| {
            words.as_ref().is_none_or(|words| text.contains(words))
        };
        let messages = rules::messages(body);
        let mut systems = messages.iter().filter(|it| rules::role(it) == "system");
        let last = messages.last().map(rules::text_of).unwrap_or_default();
        self.pull.as_deref() == rules::pulled(body)
            && has(&rules::last_user_text(body), &self.when)
            && (self.system.is_none() || systems.any(|it| has(&rules::text_of(it), &self.system)))
            && has(&last, &self.last)
            && self
                .with_tools
                .is_none_or(|wanted| wanted == offers_tools(body))
            && self.streamed == is_streamed(body)
            && self
                .results
                .is_none_or(|wanted| wanted == rules::results_since_the_user(&messages))
            && self.temperature.is_none_or(|wanted| {
                temperature_of(body).is_some_and(|asked| (asked - wanted).abs() < 1e-4)
            })
    }
}

fn yes() -> bool {
    true
}

/// Both protocols' way to ask for a whole answer; what says nothing gets a stream.
pub(super) fn is_streamed(body: &Value) -> bool {
    body["stream"] != Value::Bool(false)
}

pub(super) fn offers_tools(body: &Value) -> bool {
    let tools = body.get("tools").and_then(Value::as_array);
    tools.is_some_and(|tools| !tools.is_empty())
}

fn temperature_of(body: &Value) -> Option<f64> {
    let own = body["temperature"].as_f64();
    own.or_else(|| body["options"]["temperature"].as_f64())
}

impl<const N: usize> From<[Step; N]> for Reply {
    fn from(steps: [Step; N]) -> Self {
        Self::new(steps)
    }
}

impl From<Vec<Step>> for Reply {
    fn from(steps: Vec<Step>) -> Self {
        Self::new(steps)
    }
}
