//! An answer as a response has it: items one after the other, and the events that tell of them.

use std::collections::HashMap;

use navi_actors::protocol::error::NaviError;
use navi_actors::protocol::ids::CallId;
use navi_actors::tools::lent::LentCall;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::events::Events;
use super::ids::ResponseId;
use crate::doors::answer::{Ask, Ending, Step, Told};

/// What Navi's own tools are called the tools of.
const SERVER: &str = "navi";

/// See the module.
#[derive(Debug)]
pub(super) struct Items {
    id: ResponseId,
    /// What of the response does not change.
    head: Map<String, Value>,
    output: Vec<Value>,
    open: Option<Open>,
    /// Calls of Navi's own tools that go, and where they stand.
    calls: HashMap<CallId, usize>,
    events: Events,
}

/// What an event about the whole response says.
#[derive(Serialize)]
struct Whole {
    response: Value,
}

/// What one about an item says.
#[derive(Serialize)]
struct OfItem<'a> {
    output_index: usize,
    item: &'a Value,
}

/// Where in its item a piece of text stands.
#[derive(Serialize)]
#[serde(untagged)]
enum Piece {
    Summary {
        summary_index: u32,
    },
    Content {
        content_index: u32,
        logprobs: [(); 0],
    },
    Arguments {},
}

/// Text that is being told.
#[derive(Debug)]
struct Open {
    kind: Kind,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Thinking,
    Text,
}

/// How a response stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Status {
    InProgress,
    Completed,
    /// A limit of the run ended it.
    Incomplete,
    /// By a person, or by its program.
    Cancelled,
    Failed(NaviError),
}

impl From<Ending> for Status {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Whole | Ending::Turn => Self::Completed,
            Ending::Limited => Self::Incomplete,
            Ending::Stopped => Self::Cancelled,
            Ending::Failed(error) => Self::Failed(error),
        }
    }
}

impl Items {
    pub(super) fn new(id: ResponseId, head: Map<String, Value>, known: Option<u64>) -> Self {
        Self {
            id,
            head,
            output: Vec::new(),
            open: None,
            calls: HashMap::new(),
            events: Events::after(known),
        }
    }

    /// The response begins.
    pub(super) fn begin(&mut self) {
        let response = self.response(&Status::InProgress, None);
        let whole = Whole { response };
        self.events.tell("response.created", &whole);
        self.events.tell("response.in_progress", &whole);
    }

    /// The events that are to be sent.
    pub(super) fn ready(&mut self) -> Vec<u8> {
        self.events.ready()
    }

    /// What is told of the run, but for its end.
    pub(super) fn take(&mut self, told: Told) {
        match told {
            Told::Thinking(text) => self.text(Kind::Thinking, text),
            Told::Text(text) => self.text(Kind::Text, text),
            Told::Call(call) => self.lent_call(&call),
            Told::Step(Step::Began { call, tool, args }) => self.call_began(call, &tool, &args),
            Told::Step(Step::Ended {
                call,
                tool,
                args,
                result,
                succeeded,
            }) => {
                if !self.calls.contains_key(&call) {
                    self.call_began(call.clone(), &tool, &args);
                }
                self.call_ended(&call, &result, succeeded);
            }
            Told::Step(Step::Asks(ask)) => self.ask(&ask),
            // Items are what was said and done.
            Told::Step(Step::Other(_)) | Told::Over(_) => {}
            Told::Silence => self.events.silence(),
        }
    }

    /// The end, with the tokens that were read and written.
    pub(super) fn end(&mut self, status: &Status, used: (u64, u64)) {
        self.close();
        let goes: Vec<CallId> = self.calls.keys().cloned().collect();
        for call in goes {
            self.call_ended(&call, "it did not end", false);
        }
        let kind = match status {
            Status::InProgress | Status::Completed => "response.completed",
            Status::Incomplete | Status::Cancelled => "response.incomplete",
            Status::Failed(_) => "response.failed",
        };
        let response = self.response(status, Some(used));
        self.events.tell(kind, &Whole { response });
    }

    /// The response as it stands.
    pub(super) fn response(&self, status: &Status, used: Option<(u64, u64)>) -> Value {
        let (word, error, incomplete) = match status {
            Status::InProgress => ("in_progress", Value::Null, Value::Null),
            Status::Completed => ("completed", Value::Null, Value::Null),
            Status::Incomplete => (
                "incomplete",
                Value::Null,
                json!({"reason": "max_output_tokens"}),
            ),
            Status::Cancelled => ("cancelled", Value::Null, Value::Null),
            Status::Failed(error) => {
                let error = json!({"code": error.code, "message": error.message});
                ("failed", error, Value::Null)
            }
        };
        let mut response = self.head.clone();
        let usage = used.map(|(read, written)| {
            json!({
                "input_tokens": read,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": written,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": read + written,
            })
        });
        response.extend([
            ("id".to_owned(), json!(self.id.text())),
            ("status".to_owned(), json!(word)),
            ("error".to_owned(), error),
            ("incomplete_details".to_owned(), incomplete),
            ("output".to_owned(), Value::Array(self.output.clone())),
            ("usage".to_owned(), json!(usage)),
        ]);
        Value::Object(response)
    }

    pub(super) fn output(&self) -> &[Value] {
        &self.output
    }

    fn text(&mut self, kind: Kind, text: String) {
        let begins = self.open.as_ref().is_none_or(|open| open.kind != kind);
        // What parts a text from the one before it, items do.
        let text = if begins {
            text.trim_start_matches('\n').to_owned()
        } else {
            text
        };
        if text.is_empty() {
            return;
        }
        if begins {
            self.close();
            self.open(kind);
        }
        let at = self.output.len() - 1;
        let piece = match kind {
            Kind::Thinking => Piece::Summary { summary_index: 0 },
            Kind::Text => Piece::Content {
                content_index: 0,
                logprobs: [],
            },
        };
        let name = match kind {
            Kind::Thinking => "response.reasoning_summary_text.delta",
            Kind::Text => "response.output_text.delta",
        };
        self.delta(name, at, &piece, &text);
        if let Some(open) = &mut self.open {
            open.text.push_str(&text);
        }
    }

    fn open(&mut self, kind: Kind) {
        let item = match kind {
            Kind::Thinking => json!({"type": "reasoning", "summary": []}),
            Kind::Text => json!({"type": "message", "role": "assistant", "content": []}),
        };
        let at = self.add(kind.prefix(), item);
        let (name, index) = match kind {
            Kind::Thinking => ("response.reasoning_summary_part.added", "summary_index"),
            Kind::Text => ("response.content_part.added", "content_index"),
        };
        self.tell_of(at, name, json!({index: 0, "part": kind.part("")}));
        let text = String::new();
        self.open = Some(Open { kind, text });
    }

    fn close(&mut self) {
        let Some(Open { kind, text }) = self.open.take() else {
            return;
        };
        let at = self.output.len() - 1;
        let part = kind.part(&text);
        match kind {
            Kind::Thinking => {
                let done = json!({"summary_index": 0, "text": text});
                self.tell_of(at, "response.reasoning_summary_text.done", done);
                let done = json!({"summary_index": 0, "part": part});
                self.tell_of(at, "response.reasoning_summary_part.done", done);
                self.output[at]["summary"] = json!([part]);
            }
            Kind::Text => {
                let done = json!({"content_index": 0, "text": text, "logprobs": []});
                self.tell_of(at, "response.output_text.done", done);
                let done = json!({"content_index": 0, "part": part});
                self.tell_of(at, "response.content_part.done", done);
                self.output[at]["content"] = json!([part]);
            }
        }
        self.done(at, "completed");
    }

    fn call_began(&mut self, call: CallId, tool: &str, args: &Value) {
        self.close();
        let item = json!({
            "type": "mcp_call",
            "server_label": SERVER,
            "name": tool,
            "arguments": "",
            "output": null,
            "error": null,
            "approval_request_id": null,
        });
        let at = self.add("mcp", item);
        self.tell_of(at, "response.mcp_call.in_progress", json!({}));
        let arguments = args.to_string();
        let name = "response.mcp_call_arguments.delta";
        self.delta(name, at, &Piece::Arguments {}, &arguments);
        let done = json!({"arguments": arguments});
        self.tell_of(at, "response.mcp_call_arguments.done", done);
        self.output[at]["arguments"] = json!(arguments);
        self.calls.insert(call, at);
    }

    fn call_ended(&mut self, call: &CallId, result: &str, succeeded: bool) {
        let Some(at) = self.calls.remove(call) else {
            return;
        };
        if succeeded {
            self.output[at]["output"] = json!(result);
            self.tell_of(at, "response.mcp_call.completed", json!({}));
            self.done(at, "completed");
        } else {
            self.output[at]["error"] = json!({
                "type": "mcp_tool_execution_error",
                "content": [{"type": "text", "text": result}],
            });
            self.tell_of(at, "response.mcp_call.failed", json!({}));
            self.done(at, "failed");
        }
    }

    fn lent_call(&mut self, call: &LentCall) {
        self.close();
        let item = json!({
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": "",
        });
        let at = self.add("fc", item);
        let arguments = call.args.to_string();
        let name = "response.function_call_arguments.delta";
        self.delta(name, at, &Piece::Arguments {}, &arguments);
        let done = json!({"name": call.name, "arguments": arguments});
        self.tell_of(at, "response.function_call_arguments.done", done);
        self.output[at]["arguments"] = json!(arguments);
        self.done(at, "completed");
    }

    fn ask(&mut self, ask: &Ask) {
        self.close();
        let request = &ask.request;
        let arguments = json!({
            "summary": request.summary,
            "reason": request.reason,
            "details": request.details,
        });
        let item = json!({
            "id": self.id.ask(ask.approval_id).text(),
            "type": "mcp_approval_request",
            "server_label": SERVER,
            "name": ask.tool,
            "arguments": arguments.to_string(),
        });
        let at = self.output.len();
        self.output.push(item);
        for name in ["response.output_item.added", "response.output_item.done"] {
            self.tell_item(at, name);
        }
    }

    /// A new item. Where it stands.
    fn add(&mut self, prefix: &str, mut item: Value) -> usize {
        let at = self.output.len();
        item["id"] = json!(self.id.item(prefix, at));
        item["status"] = json!("in_progress");
        self.output.push(item);
        self.tell_item(at, "response.output_item.added");
        at
    }

    fn done(&mut self, at: usize, status: &str) {
        self.output[at]["status"] = json!(status);
        self.tell_item(at, "response.output_item.done");
    }

    fn tell_item(&mut self, at: usize, name: &str) {
        let (output_index, item) = (at, &self.output[at]);
        self.events.tell(name, &OfItem { output_index, item });
    }

    fn tell_of(&mut self, at: usize, name: &str, mut body: Value) {
        body["item_id"] = self.output[at]["id"].clone();
        body["output_index"] = json!(at);
        self.events.tell(name, &body);
    }

    fn delta(&mut self, name: &str, at: usize, piece: &Piece, text: &str) {
        let item_id = &self.output[at]["id"];
        self.events.delta(name, (item_id, at), piece, text);
    }
}

impl Kind {
    fn prefix(self) -> &'static str {
        match self {
            Self::Thinking => "rs",
            Self::Text => "msg",
        }
    }

    fn part(self, text: &str) -> Value {
        match self {
            Self::Thinking => json!({"type": "summary_text", "text": text}),
            Self::Text => {
                json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use navi_actors::protocol::ids::{RunId, SessionId};

    use super::*;

    fn items(known: Option<u64>) -> Items {
        let nil = uuid::Uuid::nil();
        let id = ResponseId {
            session: SessionId(nil),
            run: RunId(nil),
            number: 0,
        };
        Items::new(id, Map::new(), known)
    }

    /// All events of an answer that is told so; their numbers, and the deltas' text.
    fn told(known: Option<u64>, pieces: &[&str]) -> (Vec<u64>, String) {
        let mut items = items(known);
        items.begin();
        items.take(Told::Thinking("Hm.".to_owned()));
        for piece in pieces {
            items.take(Told::Text((*piece).to_owned()));
        }
        items.end(&Status::Completed, (1, 2));
        let (mut numbers, mut text) = (Vec::new(), String::new());
        let events = String::from_utf8(items.ready()).unwrap();
        let data = events.lines().filter_map(|it| it.strip_prefix("data: "));
        for data in data {
            let data: Value = serde_json::from_str(data).unwrap();
            numbers.push(data["sequence_number"].as_u64().unwrap());
            if data["type"] == "response.output_text.delta" {
                text.push_str(data["delta"].as_str().unwrap());
            }
        }
        (numbers, text)
    }

    #[test]
    fn who_comes_back_gets_the_rest_however_the_text_was_cut() {
        let (all, text) = told(None, &["Sno", "w in Ky𝛑v"]);
        assert_eq!(text, "Snow in Ky𝛑v");
        assert!(all.is_sorted_by(|a, b| a < b));
        assert_eq!(all[0], 0);
        let (_, whole) = told(None, &["Snow in Ky𝛑v"]);
        assert_eq!(whole, text);
        // The first piece has three characters, and the second seven more.
        let first = all.windows(2).find(|pair| pair[1] - pair[0] == 10);
        let first = first.unwrap()[0];
        let (numbers, rest) = told(Some(first), &["Snow in Ky𝛑v"]);
        assert_eq!(rest, "w in Ky𝛑v");
        assert!(numbers.iter().all(|number| *number > first));
        let (none, _) = told(all.last().copied(), &["Snow in Ky𝛑v"]);
        assert!(none.is_empty(), "{none:?}");
    }

    #[test]
    fn what_navi_did_stands_between_what_she_said() {
        let mut items = items(None);
        items.begin();
        items.take(Told::Text("First.".to_owned()));
        let call = CallId("a".to_owned());
        items.take(Told::Step(Step::Began {
            call: call.clone(),
            tool: "todo".to_owned(),
            args: json!({"action": "list"}),
        }));
        items.take(Told::Step(Step::Ended {
            call,
            tool: "todo".to_owned(),
            args: json!({"action": "list"}),
            result: "nothing".to_owned(),
            succeeded: true,
        }));
        items.take(Told::Text("\n\nThen.".to_owned()));
        items.end(&Status::Completed, (0, 0));
        let output = items.output();
        let types: Vec<&str> = output
            .iter()
            .map(|it| it["type"].as_str().unwrap())
            .collect();
        assert_eq!(types, ["message", "mcp_call", "message"]);
        assert_eq!(output[1]["output"], "nothing");
        assert_eq!(output[2]["content"][0]["text"], "Then.");
    }
}
