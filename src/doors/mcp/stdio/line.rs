//! A message of JSON-RPC, as far as a pipe looks into it.

use serde_json::{Value, json};

const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
/// Where a request of 2026-07-28 says which revision it is of.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What a client cancels a request with.
const CANCELLED: &str = "notifications/cancelled";

/// A line that is a message.
#[derive(Clone, Debug)]
pub(super) struct Line {
    message: Value,
}

impl Line {
    /// # Errors
    /// The line that says what is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let message: Value = serde_json::from_str(text)
            .map_err(|error| refusal(&Value::Null, PARSE_ERROR, &error.to_string()))?;
        let is_message = message["jsonrpc"] == "2.0"
            && (message["method"].is_string()
                || message.get("result").is_some()
                || message.get("error").is_some());
        if is_message {
            return Ok(Self { message });
        }
        let wrong = "a line must be one message of JSON-RPC 2.0";
        let id = message.get("id").filter(|id| is_id(id));
        Err(refusal(id.unwrap_or(&Value::Null), INVALID_REQUEST, wrong))
    }

    /// The id of a request.
    pub(super) fn asks(&self) -> Option<&Value> {
        let id = self.message.get("id").filter(|id| is_id(id));
        id.filter(|_| self.message.get("method").is_some())
    }

    pub(super) fn method(&self) -> Option<&str> {
        self.message["method"].as_str()
    }

    /// Whether a conversation of an older revision begins with it.
    pub(super) fn begins(&self) -> bool {
        self.method() == Some("initialize")
    }

    /// The request that is not wanted any more.
    pub(super) fn cancels(&self) -> Option<Value> {
        let cancels = self.method() == Some(CANCELLED);
        let id = cancels.then(|| self.message["params"].get("requestId"));
        id.flatten().cloned()
    }

    /// The revision that it says it is of.
    pub(super) fn version(&self) -> Option<&str> {
        self.message["params"]["_meta"][VERSION].as_str()
    }

    /// What is named in it: a tool, a prompt, a resource.
    pub(super) fn name(&self) -> Option<&str> {
        let params = &self.message["params"];
        match self.method()? {
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "resources/read" => params["uri"].as_str(),
            _ => None,
        }
    }

    pub(super) fn message(&self) -> &Value {
        &self.message
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_number()
}

/// An answer that says why there is none.
pub(super) fn refusal(id: &Value, code: i64, message: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_refused_and_what_is_one_is_known() {
        for wrong in ["", "{", "[]", "{}", "3", r#"{"jsonrpc":"2.0","id":1}"#] {
            let refused = Line::read(wrong).unwrap_err();
            let refused: Value = serde_json::from_str(&refused).unwrap();
            assert!(refused["error"]["code"].is_i64(), "{wrong}: {refused}");
        }
        let call = json!({
            "jsonrpc": "2.0", "id": "a", "method": "tools/call",
            "params": {"name": "run_wait", "_meta": {VERSION: "2026-07-28"}},
        });
        let call = Line::read(&call.to_string()).unwrap();
        assert_eq!(call.asks(), Some(&json!("a")));
        assert_eq!(call.version(), Some("2026-07-28"));
        assert_eq!(call.name(), Some("run_wait"));
        let answer = Line::read(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#).unwrap();
        assert_eq!((answer.asks(), answer.method()), (None, None));
        let cancelled = json!({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": 7}});
        let cancelled = Line::read(&cancelled.to_string()).unwrap();
        assert_eq!(
            (cancelled.asks(), cancelled.cancels()),
            (None, Some(json!(7)))
        );
    }
}
