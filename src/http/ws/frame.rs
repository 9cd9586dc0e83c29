//! A client's frame from its text, with a typed error that names its `client_id`.

use navi_actors::domain::input::MAX_CLIENT_ID_CHARS;
use navi_actors::protocol::command::ClientFrame;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::event::{Envelope, Event};
use navi_actors::protocol::ids::RunId;
use serde::Deserialize;
use serde_json::Value;

use crate::http::values::{self, LIST, OBJECT};

/// The most values of a frame. A message with all the images and files that it may have has some
/// hundreds.
const MAX_VALUES: usize = 10_000;
const TYPES: [&str; 9] = [
    "message",
    "stop",
    "continue",
    "withdraw",
    "edit_queued",
    "approve",
    "resolve_call",
    "edit_plan",
    "ping",
];

/// An envelope for one tab alone: no `seq`.
pub(crate) fn for_one_tab(run_id: Option<RunId>, event: Event) -> String {
    let envelope = Envelope {
        seq: None,
        run_id,
        parent_run_id: None,
        at: chrono::Utc::now(),
        event,
    };
    serde_json::to_string(&envelope).unwrap_or_default()
}

/// Why a frame was refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) error: NaviError,
    /// The frame's own, where it had one.
    pub(crate) client_id: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        NaviError::new(code, message).into()
    }

    /// Of a frame that is not parsed: no value of it is made but its `client_id`.
    pub(crate) fn unread(error: NaviError, text: &str) -> Self {
        #[derive(Deserialize)]
        struct Named {
            client_id: Option<String>,
        }
        let named = serde_json::from_str::<Named>(text).ok();
        Self {
            error,
            client_id: client_id(named.and_then(|named| named.client_id).as_deref()),
        }
    }

    /// The frame that tells it to this tab alone: no `seq`, no run.
    pub(crate) fn to_json(&self) -> String {
        let error = Event::Error {
            message: self.error.message.clone(),
            recoverable: true,
            code: self.error.code,
            phrase: self.error.phrase.as_deref().cloned(),
            client_id: self.client_id.clone(),
        };
        for_one_tab(None, error)
    }
}

impl From<NaviError> for Refusal {
    fn from(error: NaviError) -> Self {
        Self {
            error,
            client_id: None,
        }
    }
}

/// A frame that can be done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parsed {
    pub(crate) frame: ClientFrame,
    /// What an error that answers it carries, of whatever type it is.
    pub(crate) client_id: Option<String>,
}

/// Reads a frame.
///
/// # Errors
/// `invalid_json`, `unknown_type`, `invalid_field`, or `frame_too_large` where it is made of too
/// many values.
pub(crate) fn parse(text: &str) -> Result<Parsed, Refusal> {
    if values::are_more_than(MAX_VALUES, text.as_bytes()) {
        let error = NaviError::new(
            ErrorCode::FrameTooLarge,
            format!(
                "the frame has over {MAX_VALUES} values, which is the limit (a key is one, a list counts as {LIST}, an object as {OBJECT}); send what its type names, and nothing else"
            ),
        );
        return Err(Refusal::unread(error, text));
    }
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Refusal::new(ErrorCode::InvalidJson, error.to_string()))?;
    let Value::Object(fields) = &value else {
        return Err(Refusal::new(
            ErrorCode::InvalidField,
            "a frame is a JSON object with a `type`",
        ));
    };
    let client_id = client_id(fields.get("client_id").and_then(Value::as_str));
    let refuse = |code, message: String| Refusal {
        error: NaviError::new(code, message),
        client_id: client_id.clone(),
    };
    match fields.get("type") {
        Some(Value::String(name)) if TYPES.contains(&name.as_str()) => {}
        Some(Value::String(name)) => {
            let shown: String = name.chars().take(60).collect();
            return Err(refuse(
                ErrorCode::UnknownType,
                format!(
                    "there is no frame of type {shown:?}; it is one of {}",
                    TYPES.join(", ")
                ),
            ));
        }
        Some(_) => {
            return Err(refuse(
                ErrorCode::InvalidField,
                "`type` must be a text".to_owned(),
            ));
        }
        None => {
            return Err(refuse(
                ErrorCode::InvalidField,
                "missing field `type`".to_owned(),
            ));
        }
    }
    match serde_json::from_value(value) {
        Ok(frame) => Ok(Parsed { frame, client_id }),
        Err(error) => Err(refuse(ErrorCode::InvalidField, error.to_string())),
    }
}

/// One that is too long to be valid is not sent back either.
fn client_id(id: Option<&str>) -> Option<String> {
    id.filter(|id| id.chars().count() <= MAX_CLIENT_ID_CHARS)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use navi_actors::domain::files::MAX_FILES;
    use navi_actors::domain::input::{MAX_CONTENT_BYTES, MAX_IMAGES};
    use navi_actors::protocol::command::PlanEdit;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::http::values::LARGE_BYTES;

    #[test]
    fn the_list_of_types_is_that_of_the_frames() {
        let schema = schemars::schema_for!(ClientFrame).to_value();
        let known: Vec<&str> = schema["oneOf"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["properties"]["type"]["const"].as_str().unwrap())
            .collect();
        let mut expected = TYPES.to_vec();
        let mut known_sorted = known.clone();
        expected.sort_unstable();
        known_sorted.sort_unstable();
        assert_eq!(known_sorted, expected);
    }

    #[test]
    fn each_fault_has_its_code_and_keeps_the_client_id() {
        for (text, code) in [
            ("", ErrorCode::InvalidJson),
            ("nonsense", ErrorCode::InvalidJson),
            ("{\"type\":\"stop\"} x", ErrorCode::InvalidJson),
            (
                "{\"type\":\"message\",\"content\":\"\\ud800\"}",
                ErrorCode::InvalidJson,
            ),
            ("null", ErrorCode::InvalidField),
            ("[]", ErrorCode::InvalidField),
            ("\"stop\"", ErrorCode::InvalidField),
            ("{}", ErrorCode::InvalidField),
            ("{\"type\":1}", ErrorCode::InvalidField),
            ("{\"type\":\"Stop\"}", ErrorCode::UnknownType),
            ("{\"type\":\"dance\"}", ErrorCode::UnknownType),
            ("{\"type\":\"message\"}", ErrorCode::InvalidField),
            (
                "{\"type\":\"message\",\"content\":null}",
                ErrorCode::InvalidField,
            ),
            (
                "{\"type\":\"message\",\"content\":[\"x\"]}",
                ErrorCode::InvalidField,
            ),
            (
                "{\"type\":\"message\",\"content\":\"x\",\"mode\":\"now\"}",
                ErrorCode::InvalidField,
            ),
            (
                "{\"type\":\"message\",\"content\":\"x\",\"images\":\"x\"}",
                ErrorCode::InvalidField,
            ),
            (
                "{\"type\":\"withdraw\",\"message_id\":\"x\"}",
                ErrorCode::InvalidField,
            ),
            ("{\"type\":\"approve\"}", ErrorCode::InvalidField),
            ("{\"type\":\"edit_plan\"}", ErrorCode::InvalidField),
            (
                "{\"type\":\"edit_plan\",\"edit\":\"drop\",\"id\":1}",
                ErrorCode::InvalidField,
            ),
            (
                "{\"type\":\"edit_plan\",\"edit\":\"skip\",\"id\":-1}",
                ErrorCode::InvalidField,
            ),
            (
                "{\"type\":\"edit_plan\",\"edit\":\"add\"}",
                ErrorCode::InvalidField,
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().error.code, code, "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse(&deep).unwrap_err().error.code, ErrorCode::InvalidJson);

        let refusal = parse("{\"type\":\"dance\",\"client_id\":\"c1\"}").unwrap_err();
        assert_eq!(refusal.client_id.as_deref(), Some("c1"));
        let told: Value = serde_json::from_str(&refusal.to_json()).unwrap();
        assert_eq!(told["type"], "error");
        assert_eq!(told["code"], "unknown_type");
        assert_eq!(told["client_id"], "c1");
        assert!(told.get("seq").is_none());
    }

    #[test]
    fn good_frames_pass() {
        let stop = parse("{\"type\":\"stop\",\"client_id\":\"c2\"}").unwrap();
        let any = ClientFrame::Stop {
            hold: false,
            run_id: None,
        };
        assert_eq!(stop.frame, any);
        assert_eq!(stop.client_id.as_deref(), Some("c2"));
        let run_id = Some(RunId::new());
        let one = json!({"type": "stop", "hold": true, "run_id": run_id});
        let only = ClientFrame::Stop { hold: true, run_id };
        assert_eq!(parse(&one.to_string()).unwrap().frame, only);
        for (text, queue) in [
            ("{\"type\":\"continue\"}", false),
            ("{\"type\":\"continue\",\"queue\":true}", true),
        ] {
            assert_eq!(parse(text).unwrap().frame, ClientFrame::Continue { queue });
        }
        let edit =
            parse("{\"type\":\"edit_plan\",\"edit\":\"hold\",\"id\":4,\"client_id\":\"c3\"}");
        let held = ClientFrame::EditPlan(PlanEdit::Hold { id: 4 });
        assert_eq!(edit.unwrap().frame, held);
        let frame = json!({"type": "message", "content": "hi", "client_id": "c", "extra": 1});
        let ClientFrame::Message(input) = parse(&frame.to_string()).unwrap().frame else {
            unreachable!()
        };
        assert_eq!(
            (input.content.as_str(), input.client_id.as_deref()),
            ("hi", Some("c"))
        );
    }

    #[test]
    fn a_frame_of_many_small_values_is_refused_before_they_are_made() {
        // What stands behind them would be refused as no JSON, were it looked at.
        let zeros = |n: usize| {
            let long = "x".repeat(LARGE_BYTES);
            let zeros = ",0".repeat(n - 1);
            format!("{{\"type\":\"message\",\"content\":\"{long}\",\"x\":[0{zeros}]")
        };
        // Three keys, two texts.
        let room = MAX_VALUES - OBJECT - 3 - 2 - LIST;
        let fault = |text: &str| parse(text).unwrap_err().error.code;
        assert_eq!(fault(&zeros(room + 1)), ErrorCode::FrameTooLarge);
        assert_eq!(fault(&zeros(room)), ErrorCode::InvalidJson);
        assert!(parse(&format!("{}}}", zeros(room))).is_ok());
        let named = format!("{},\"client_id\":\"c1\"}}", zeros(room + 1));
        let refusal = parse(&named).unwrap_err();
        assert_eq!(refusal.error.code, ErrorCode::FrameTooLarge);
        assert_eq!(refusal.client_id.as_deref(), Some("c1"));
        // A message with all that it may have.
        let all = json!({"type": "message", "content": "x".repeat(MAX_CONTENT_BYTES),
            "images": vec!["aGk="; MAX_IMAGES],
            "files": vec![json!({"name": "a", "path": "b"}); MAX_FILES],
            "client_id": "c", "mode": "queue"});
        assert!(parse(&all.to_string()).is_ok());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = parse(&text);
        }
    }
}
