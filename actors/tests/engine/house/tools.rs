//! Tools whose calls do what a test says.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use navi_actors::protocol::phrase::{Phrase, PhraseCode};
use navi_actors::protocol::powers::Powers;
use navi_actors::protocol::tool::{Effect, ToolSpec};
use navi_actors::tools::{
    Proposal, Provenance, RuleSubject, Tool, ToolContext, ToolError, ToolResult,
};
use serde_json::{Value, json};

/// A tool that never ends by itself.
#[derive(Debug)]
pub(super) struct Sleeper(ToolSpec);

impl Sleeper {
    pub(super) fn new() -> Self {
        Self(ToolSpec {
            name: "sleep".into(),
            description: "Sleeps.".into(),
            parameters: json!({"type": "object", "properties": {}}),
            effect: Effect::Write,
            time_limit_ms: 60_000,
        })
    }
}

#[async_trait]
impl Tool for Sleeper {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn for_powers(self: Arc<Self>, _: &Powers) -> Option<Arc<dyn Tool>> {
        Some(self)
    }

    fn effect(&self, _: &Value) -> Effect {
        Effect::Write
    }

    async fn call(&self, _: Value, context: ToolContext) -> ToolResult {
        let _ended = Ended(context.workspace.join("ended"));
        std::fs::write(context.workspace.join("began"), "").unwrap();
        std::future::pending().await
    }
}

/// Leaves a file when the tool's task is ended.
struct Ended(PathBuf);

impl Drop for Ended {
    fn drop(&mut self) {
        std::fs::write(&self.0, "").unwrap();
    }
}

/// What an approval of a `send` is bound to, beside its arguments: what stands in these files.
pub(crate) const BOUND: [&str; 3] = ["environment", "directory", "script"];

/// Where this file is in the workspace, `send` cannot say what it would do.
pub(crate) const UNSURE: &str = "unsure";

/// A tool that does what is asked about: it adds a line to a file. `effect` says how much of
/// it that is; a rule covers one `to`. A send to `restless` is another one at its fourth look.
#[derive(Debug)]
pub(super) struct Sender(ToolSpec);

impl Sender {
    pub(super) fn new() -> Self {
        Self(ToolSpec {
            name: "send".into(),
            description: "Sends.".into(),
            parameters: json!({
                "type": "object",
                "properties": {"to": {"type": "string"}, "effect": {"type": "string"}},
                "required": ["to"],
            }),
            effect: Effect::Host,
            time_limit_ms: 60_000,
        })
    }
}

#[async_trait]
impl Tool for Sender {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn for_powers(self: Arc<Self>, _: &Powers) -> Option<Arc<dyn Tool>> {
        Some(self)
    }

    fn provenance(&self, _: &Value) -> Provenance {
        Provenance::Own
    }

    fn effect(&self, args: &Value) -> Effect {
        match args["effect"].as_str() {
            Some("write") => Effect::Write,
            Some("host") => Effect::Host,
            _ => Effect::Egress,
        }
    }

    async fn proposal(&self, args: &Value, context: &ToolContext) -> Result<Proposal, ToolError> {
        if context.workspace.join(UNSURE).exists() {
            return Err(ToolError("it cannot be told what this does".into()));
        }
        let to = args["to"].as_str().unwrap_or_default();
        let read = |name: &&str| std::fs::read_to_string(context.workspace.join(name));
        let bound = BOUND.iter().map(|name| read(name).unwrap_or_default());
        let looks = context.workspace.join("looks");
        let looked = std::fs::read(&looks).map_or(1, |looks| looks.len() + 1);
        std::fs::write(looks, vec![b'.'; looked]).unwrap();
        let is_another = to == "restless" && looked == 4;
        Ok(Proposal {
            summary: Phrase::new(PhraseCode::Call, [("tool", format!("send to {to}"))]),
            rule: (to != "anyone").then(|| RuleSubject {
                key: if is_another { "eve" } else { to }.into(),
                words: Phrase::new(PhraseCode::AnyCall, [("tool", format!("send to {to}"))]),
            }),
            binding: bound.collect::<Vec<_>>().join("\0"),
            ..Proposal::of_arguments("send", args)
        })
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let path = context.workspace.join("sent");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let to = args["to"].as_str().unwrap();
        std::fs::write(path, format!("{before}{to}\n")).unwrap();
        Ok(format!("sent to {to}").into())
    }
}

/// A page from outside that says what the test puts into it, as its text or as its failure.
#[derive(Debug)]
pub(super) struct Page(ToolSpec);

impl Page {
    pub(super) fn new() -> Self {
        Self(ToolSpec {
            name: "page".into(),
            description: "Reads a page.".into(),
            parameters: json!({
                "type": "object",
                "properties": {"text": {"type": "string"}, "fails": {"type": "boolean"}},
                "required": ["text"],
            }),
            effect: Effect::Read,
            time_limit_ms: 60_000,
        })
    }
}

#[async_trait]
impl Tool for Page {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn for_powers(self: Arc<Self>, _: &Powers) -> Option<Arc<dyn Tool>> {
        Some(self)
    }

    fn effect(&self, _: &Value) -> Effect {
        Effect::Read
    }

    fn provenance(&self, _: &Value) -> Provenance {
        Provenance::Outside
    }

    async fn call(&self, args: Value, _: ToolContext) -> ToolResult {
        let text = args["text"].as_str().unwrap().to_owned();
        if args["fails"] == true {
            return Err(ToolError(text));
        }
        Ok(text.into())
    }
}
