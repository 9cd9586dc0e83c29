use chrono::TimeZone;

use super::*;
use crate::llm::fixture_tests::fixtures;

fn refusal(status: u16, body: &str) -> LlmError {
    Refusal {
        status,
        body,
        retry_after: None,
        location: None,
        model: "nope",
        url: "http://server/v1",
    }
    .into_error()
}

/// The variant's name.
fn kind(error: &LlmError) -> String {
    let shown = format!("{error:?}");
    shown
        .split([' ', '{'])
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn recorded_refusals_are_understood() {
    #[derive(serde::Deserialize)]
    struct Recorded {
        name: String,
        status: u16,
        body: String,
    }
    let file = std::fs::read_to_string(fixtures().join("errors.json")).unwrap();
    let recorded: Vec<Recorded> = serde_json::from_str(&file).unwrap();
    let read: serde_json::Map<String, Value> = recorded
        .into_iter()
        .map(|it| {
            let error = refusal(it.status, &it.body);
            (it.name, format!("{}: {error}", kind(&error)).into())
        })
        .collect();
    insta::assert_json_snapshot!("refusals", read);
}

#[test]
fn every_status_has_its_meaning() {
    let model =
        r#"{"error":{"message":"The model `nope` does not exist","code":"model_not_found"}}"#;
    for (status, body, expected) in [
        (401, "", "Unauthorized"),
        (403, "<html>", "Unauthorized"),
        (404, model, "ModelNotFound"),
        (400, model, "ModelNotFound"),
        (
            400,
            r#"{"error":{"message":"nope is not a valid model ID"}}"#,
            "ModelNotFound",
        ),
        (404, "404 page not found", "Rejected"),
        (405, "", "Rejected"),
        (429, "slow down", "Busy"),
        (
            429,
            r#"{"error":{"message":"no credit","code":"insufficient_quota"}}"#,
            "Rejected",
        ),
        (503, "", "Busy"),
        (529, "overloaded", "Busy"),
        (408, "", "Server"),
        (500, "boom", "Server"),
        (502, "<html><title>502 Bad Gateway</title>", "Server"),
        (413, "", "ContextOverflow"),
        (
            400,
            "the input length exceeds the context length",
            "ContextOverflow",
        ),
        (
            400,
            "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            "ContextOverflow",
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
            "ContextOverflow",
        ),
        (
            400,
            "This model's maximum prompt length is 8 but the request contains 9 tokens.",
            "ContextOverflow",
        ),
        (
            400,
            "Your request exceeded model token limit: 8 (requested: 9)",
            "ContextOverflow",
        ),
        (
            400,
            r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#,
            "ContextOverflow",
        ),
        (
            400,
            r#"{"error":{"code":"1261","message":"Prompt 超长"}}"#,
            "ContextOverflow",
        ),
        (
            400,
            "prompt token count of 9 exceeds the limit of 8",
            "ContextOverflow",
        ),
        (400, "temperature must be positive", "Rejected"),
        (422, r#"{"detail":[{"msg":"field required"}]}"#, "Rejected"),
        (307, "", "Rejected"),
    ] {
        assert_eq!(kind(&refusal(status, body)), expected, "{status} {body}");
    }
}

#[test]
fn each_kind_of_server_tells_its_window() {
    let told = |body: &str| {
        let told = overflow_of(body);
        (told.window, told.prompt)
    };
    for (body, window, prompt) in [
        // llama.cpp, and Ollama around it.
        (
            r#"{"error":{"code":400,"message":"request (9030 tokens) exceeds the available context size (2048 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9030,"n_ctx":2048}}"#,
            2048,
            9030,
        ),
        (
            r#"{"error":"{\"error\":{\"code\":400,\"message\":\"request (2510 tokens) exceeds the available context size (1024 tokens), try increasing it\",\"n_prompt_tokens\":2510,\"n_ctx\":1024}}"}"#,
            1024,
            2510,
        ),
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.",
            8192,
            9000,
        ),
        (
            "You passed 1015 input tokens and requested 10 output tokens. However, the model's context length is only 1024 tokens, resulting in a maximum input length of 1014 tokens.",
            1024,
            1015,
        ),
        (
            "This model's maximum context length is 4,096 tokens. However, you requested 4,200 tokens",
            4096,
            4200,
        ),
        (
            "prompt is too long: 210000 tokens > 200000 maximum",
            200_000,
            210_000,
        ),
        (
            "The input token count (9000) exceeds the maximum number of tokens allowed (8192).",
            8192,
            9000,
        ),
        (
            "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
            131_072,
            136_973,
        ),
        (
            "Your request exceeded model token limit: 262144 (requested: 269030)",
            262_144,
            269_030,
        ),
        (
            "prompt token count of 5000 exceeds the limit of 4096",
            4096,
            5000,
        ),
        (
            "Trying to keep the first 5098 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input",
            4096,
            5098,
        ),
        (
            "This model's maximum context length is 4096 tokens and your request has 5000 input tokens",
            4096,
            5000,
        ),
    ] {
        assert_eq!(told(body), (Some(window), Some(prompt)), "{body}");
    }
    for (body, window) in [
        (
            "too large for model with 32768 maximum context length",
            32_768,
        ),
        (
            "the input exceeds the model's context length (4096 tokens)",
            4096,
        ),
        ("model maximum context length: 32767", 32_767),
        ("the configured context size is 4096", 4096),
    ] {
        assert_eq!(told(body), (Some(window), None), "{body}");
    }
    for body in [
        "max_tokens must be at least 1, got -186.",
        "the input length exceeds the context length",
        "",
    ] {
        assert_eq!(told(body), (None, None), "{body}");
    }
}

#[test]
fn what_is_too_large_in_bytes_tells_no_window() {
    let error = refusal(413, "the body exceeds the limit of 100 MB");
    let LlmError::ContextOverflow { told, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(told, Overflow::default());
}

#[test]
fn a_reason_is_found_in_any_body() {
    for (body, expected) in [
        (r#"{"error":"text"}"#, "text"),
        (r#"{"error":{"message":"text","type":"t"}}"#, "text"),
        (
            r#"{"error":"{\"error\":{\"code\":400,\"message\":\"inner\"}}"}"#,
            "inner",
        ),
        (r#"{"message":"text"}"#, "text"),
        (
            r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
            "field required",
        ),
        (
            r#"{"message":{"detail":[{"type":"extra_forbidden","loc":["body","messages",0,"name"],"msg":"Extra inputs are not permitted"}]}}"#,
            "messages.0.name: Extra inputs are not permitted",
        ),
        (r#"[{"error":{"message":"in a list"}}]"#, "in a list"),
        (r#"{"error":null,"message":"text"}"#, "text"),
        (
            r#"{"error":{"message":null,"type":"overloaded"}}"#,
            "overloaded",
        ),
        ("  plain\n\ttext  ", "plain text"),
        (
            "<html><head><title> 502 Bad </title></head>",
            "a web page: 502 Bad",
        ),
        ("<html>", "a web page"),
        ("", ""),
        (r#"{"ok":false}"#, r#"{"ok":false}"#),
    ] {
        assert_eq!(message_of(body), expected, "{body}");
    }
    let nested = "[".repeat(100_000);
    assert_eq!(message_of(&nested).chars().count(), MAX_MESSAGE_CHARS + 1);
}

#[test]
fn a_redirect_says_where_to() {
    let error = Refusal {
        status: 308,
        body: "",
        retry_after: None,
        location: Some("https://other.example/v1"),
        model: "m",
        url: "http://server/v1",
    }
    .into_error();
    assert!(
        error
            .to_string()
            .contains("redirects to https://other.example/v1"),
        "{error}"
    );
}

#[test]
fn retry_after_is_read_in_every_form() {
    let now = Utc.with_ymd_and_hms(2026, 11, 6, 8, 49, 0).unwrap();
    for (value, expected) in [
        ("7", Some(7_000)),
        (" 7 ", Some(7_000)),
        ("0", Some(0)),
        ("1.5", Some(1_500)),
        ("20s", Some(20_000)),
        ("Fri, 06 Nov 2026 08:49:37 GMT", Some(37_000)),
        ("Friday, 06-Nov-26 08:49:37 GMT", Some(37_000)),
        ("Fri Nov  6 08:49:37 2026", Some(37_000)),
        ("Fri, 06 Nov 2026 08:00:00 GMT", Some(0)),
        ("99999999999999999999", Some(u64::MAX)),
        ("-1", None),
        ("NaN", None),
        ("inf", None),
        ("1e300", None),
        ("soon", None),
        ("", None),
    ] {
        let expected = expected.map(|ms| match ms {
            u64::MAX => Duration::from_secs(u64::MAX),
            ms => Duration::from_millis(ms),
        });
        assert_eq!(retry_after(value, now), expected, "{value:?}");
    }
}
