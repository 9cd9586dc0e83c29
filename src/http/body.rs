//! JSON bodies: bounded in bytes and values, declared as JSON, and one value with nothing after it.

use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header;
use actix_web::{FromRequest, HttpRequest, web};
use bytes::Bytes;
use navi_actors::protocol::error::ErrorCode;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ApiError;
use super::values::{self, LARGE_BYTES, LIST, OBJECT};
use super::{pace, turns};

/// The most values of a body, a few hundred MB at the worst. 10,000 messages with calls of tools
/// and their arguments have a third of them.
const MAX_VALUES: usize = 2_000_000;

/// A body that must be there.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

/// A body that may be left out.
#[derive(Debug)]
pub(crate) struct OptionalJsonBody<T>(pub(crate) Option<T>);

type Extraction<T> = Pin<Box<dyn Future<Output = Result<T, ApiError>>>>;

impl<T: DeserializeOwned + Send + 'static> FromRequest for JsonBody<T> {
    type Error = ApiError;
    type Future = Extraction<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let is_json = is_json(request);
        let bytes = web::Bytes::from_request(request, payload);
        Box::pin(async move {
            let bytes = bytes.await.map_err(|error| unreadable(&error))?;
            json(is_json, bytes).await.map(Self)
        })
    }
}

impl<T: DeserializeOwned + Send + 'static> FromRequest for OptionalJsonBody<T> {
    type Error = ApiError;
    type Future = Extraction<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let is_json = is_json(request);
        let bytes = web::Bytes::from_request(request, payload);
        Box::pin(async move {
            let bytes = bytes.await.map_err(|error| unreadable(&error))?;
            if bytes.is_empty() {
                return Ok(Self(None));
            }
            json(is_json, bytes).await.map(|value| Self(Some(value)))
        })
    }
}

/// Parses JSON from a client.
///
/// # Errors
/// `invalid_json` where it is none, `invalid_field` where it is not what was asked for,
/// `body_too_large` where it is made of too many values.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    if values::are_more_than(MAX_VALUES, bytes) {
        return Err(ApiError::new(
            ErrorCode::BodyTooLarge,
            format!(
                "the body has over {MAX_VALUES} values, which is the limit (a key is one, a list counts as {LIST}, an object as {OBJECT}); send less at once"
            ),
        ));
    }
    // In two steps, so that broken or endlessly nested JSON is told as such wherever it stands.
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| ApiError::new(ErrorCode::InvalidJson, error.to_string()))?;
    let wrong = |reason: String| ApiError::new(ErrorCode::InvalidField, reason);
    if !value.is_object() {
        // serde would take a list for a struct, as its fields in their order.
        return Err(wrong("the body must be a JSON object".to_owned()));
    }
    let error = match serde_json::from_value(value) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    // 1.0 is a whole number to JSON Schema and to who writes JavaScript, and none to serde.
    let mut value = serde_json::from_slice(bytes).unwrap_or_default();
    if make_whole(&mut value) {
        serde_json::from_value(value).map_err(|error| wrong(error.to_string()))
    } else {
        Err(wrong(error.to_string()))
    }
}

/// Has numbers without a fraction stand as whole ones. Whether there was one that did not.
fn make_whole(value: &mut Value) -> bool {
    match value {
        Value::Number(number) => {
            let whole = number
                .as_f64()
                .filter(|it| number.is_f64() && it.fract() == 0.0);
            let whole = whole.and_then(|it| format!("{it:.0}").parse::<i64>().ok());
            if let Some(whole) = whole {
                *number = whole.into();
            }
            whole.is_some()
        }
        // Each of them, not the first alone.
        Value::Array(items) => items.iter_mut().map(make_whole).fold(false, |a, b| a | b),
        Value::Object(fields) => fields
            .values_mut()
            .map(make_whole)
            .fold(false, |a, b| a | b),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

async fn json<T: DeserializeOwned + Send + 'static>(
    is_json: bool,
    bytes: Bytes,
) -> Result<T, ApiError> {
    if !is_json {
        return Err(ApiError::new(
            ErrorCode::UnsupportedMediaType,
            "the body must be JSON and say so: Content-Type: application/json",
        ));
    }
    read(bytes, parse).await
}

/// Has a body read, a large one beside the arbiter. With that its turn is over.
pub(crate) async fn read<T: Send + 'static>(
    bytes: Bytes,
    reader: impl FnOnce(&[u8]) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let read = if bytes.len() < LARGE_BYTES {
        reader(&bytes)
    } else {
        let aside = web::block(move || reader(&bytes)).await;
        aside.unwrap_or_else(|_| {
            Err(ApiError::new(
                ErrorCode::ShuttingDown,
                "navi is shutting down",
            ))
        })
    };
    turns::end();
    read
}

fn is_json(request: &HttpRequest) -> bool {
    request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// What is wrong with a body that could not be read whole.
pub(crate) fn unreadable(error: &actix_web::Error) -> ApiError {
    let error = error.as_error::<PayloadError>();
    if let Some(PayloadError::Overflow) = error {
        return ApiError::new(ErrorCode::BodyTooLarge, "the body is too large");
    }
    error
        .and_then(pace::too_slow)
        .unwrap_or_else(|| ApiError::new(ErrorCode::InvalidJson, "the body could not be read"))
}

#[cfg(test)]
mod tests {
    use navi_actors::protocol::command::NewSessionRequest;

    use super::*;

    fn code(text: &str) -> Option<ErrorCode> {
        parse::<NewSessionRequest>(text.as_bytes())
            .err()
            .map(|error| error.0.code)
    }

    #[test]
    fn a_number_without_a_fraction_is_a_whole_one() {
        #[derive(Debug, serde::Deserialize)]
        struct Step {
            id: u32,
        }
        let id = |text: &str| parse::<Step>(text.as_bytes()).ok().map(|step| step.id);
        assert_eq!(id("{\"id\": 7.0}"), Some(7));
        assert_eq!(id("{\"id\": 7e2}"), Some(700));
        for text in ["{\"id\": 7.5}", "{\"id\": -1.0}", "{\"id\": 1e300}"] {
            assert_eq!(id(text), None, "{text}");
        }
    }

    #[test]
    fn json_and_nothing_else() {
        assert_eq!(code("{}"), None);
        assert_eq!(code(" {\"profile_id\": null} "), None);
        assert_eq!(code("{\"profile_id\": 3}"), Some(ErrorCode::InvalidField));
        for text in [
            "",
            "{",
            "{} {}",
            "{}x",
            "\u{0}",
            "{\"profile_id\": \"\\ud800\"}",
        ] {
            assert_eq!(code(text), Some(ErrorCode::InvalidJson), "{text}");
        }
        for text in ["[null, null, null]", "3", "\"x\"", "null"] {
            assert_eq!(code(text), Some(ErrorCode::InvalidField), "{text}");
        }
        let deep = format!("{{\"x\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(code(&deep), Some(ErrorCode::InvalidJson));
    }

    #[test]
    fn a_body_of_many_small_values_is_refused_before_they_are_made() {
        // `rest` stands behind them: what is made of the values would be refused for it.
        let zeros = |n: usize, rest: &str| format!("{{\"x\": [0{}]{rest}", ",0".repeat(n - 1));
        let room = MAX_VALUES - OBJECT - LIST - 1;
        assert_eq!(code(&zeros(room + 1, "}")), Some(ErrorCode::BodyTooLarge));
        assert_eq!(code(&zeros(room + 1, "")), Some(ErrorCode::BodyTooLarge));
        assert_eq!(code(&zeros(room, "")), Some(ErrorCode::InvalidJson));
        let talk: Vec<Value> = (0..10_000)
            .map(|n| {
                let arguments: Vec<String> = (0..20).map(|at| format!("{n} {at}")).collect();
                serde_json::json!({"role": "assistant", "content": [{"type": "text", "text": "x"}],
                    "tool_calls": [{"id": "c", "name": "t", "arguments": {"all": arguments}}]})
            })
            .collect();
        let talk = serde_json::json!({ "messages": talk }).to_string();
        assert!(parse::<Value>(talk.as_bytes()).is_ok());
    }
}
