//! What a scripted answer is made of.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One thing that the fake does on its way through an answer. In JSON: `{"text": "Hi"}`,
/// `{"tool_call": {"name": "todo", "arguments": {}}}`, `{"hold": "gate"}`, `"close"`, …
///
/// Nothing is sent before the first step that says something, the headers neither: so do
/// real servers. An answer without [`Step::Finish`] (or another end) is finished in the
/// usual way when its steps are done.
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
    /// Nothing more, until the client goes away.
    Silence,
    /// A text that never ends.
    EndlessText {
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

/// An answer, and the calls that it is for.
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
}

impl Reply {
    pub(crate) fn new(steps: impl Into<Vec<Step>>) -> Self {
        Self {
            steps: steps.into(),
            when: None,
            with_tools: None,
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

    pub(super) fn answers(&self, body: &Value) -> bool {
        let said = self
            .when
            .as_ref()
            .is_none_or(|words| super::rules::last_user_text(body).contains(words));
        let tools = body.get("tools").and_then(Value::as_array);
        let offered = tools.is_some_and(|tools| !tools.is_empty());
        said && self.with_tools.is_none_or(|wanted| wanted == offered)
    }
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
