use candle_core::quantized::gguf_file::Value;
use serde_json::json;

use super::*;
use crate::llm::starter::tiny_model::{IM_END, TinyModel, WINDOW};
use crate::protocol::chat::{AnswerSchema, ChatMessage, ReplyForm, RequestedCall};
use crate::protocol::offered::OfferedTools;
use crate::protocol::tool::{Effect, ToolSpec};

fn model() -> ChatModel {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tiny.gguf");
    TinyModel::new("qwen2").write(&path);
    ChatModel::load(&path).unwrap()
}

fn request(text: &str) -> ChatRequest {
    ChatRequest {
        model: String::new(),
        messages: vec![
            ChatMessage::User {
                content: text.to_owned(),
                images: Vec::new(),
            }
            .into(),
        ],
        tools: OfferedTools::default(),
        temperature: 0.0,
        think: false,
        context_window: 0,
        max_output_tokens: Some(40),
        streamed: true,
        form: None,
    }
}

fn tool(parameters: serde_json::Value) -> ToolSpec {
    ToolSpec {
        name: "lamp".to_owned(),
        description: "Switches the lamp.".to_owned(),
        parameters,
        effect: Effect::Write,
        time_limit_ms: 1000,
    }
}

fn answer(model: &mut ChatModel, request: &ChatRequest, seed: u64) -> Vec<ChatDelta> {
    let mut deltas = Vec::new();
    model
        .answer_seeded(
            request,
            seed,
            &mut |delta| {
                deltas.push(delta);
                true
            },
            &|| false,
        )
        .unwrap();
    deltas
}

fn first_read(deltas: &[ChatDelta]) -> Option<u32> {
    deltas.iter().find_map(|delta| match delta {
        ChatDelta::Prefill { read, .. } => Some(*read),
        _ => None,
    })
}

#[test]
fn without_temperature_the_answer_is_the_same_whatever_was_asked_before() {
    let mut model = model();
    let asked = request("Say the same.");
    let first = answer(&mut model, &asked, 1);
    answer(
        &mut model,
        &request("Something else entirely, and longer than a chunk."),
        2,
    );
    let again = answer(&mut model, &asked, 3);
    let said = |deltas: &[ChatDelta]| -> Vec<ChatDelta> {
        let is_said = |delta: &&ChatDelta| !matches!(delta, ChatDelta::Prefill { .. });
        deltas.iter().filter(is_said).cloned().collect()
    };
    assert!(said(&first).len() > 1);
    assert_eq!(said(&first), said(&again));
}

#[test]
fn reading_is_told_in_chunks_and_a_kept_prefix_is_not_read_again() {
    let mut model = model();
    let long = "the fox ".repeat(30);
    let first = answer(&mut model, &request(&long), 1);
    let reads: Vec<u32> = first
        .iter()
        .filter_map(|delta| match delta {
            ChatDelta::Prefill { read, total } => {
                assert!(read < total);
                Some(*read)
            }
            _ => None,
        })
        .collect();
    assert!(reads.len() > 3 && reads[0] == 0, "{reads:?}");
    assert!(
        reads.windows(2).all(|pair| pair[1] - pair[0] == 31),
        "{reads:?}"
    );
    let again = answer(&mut model, &request(&format!("{long}!")), 1);
    assert!(first_read(&again).unwrap() > 60);
}

#[test]
fn the_limit_on_the_answer_holds_and_is_told() {
    let mut model = model();
    let mut asked = request("Go on.");
    asked.max_output_tokens = Some(3);
    match answer(&mut model, &asked, 1).last() {
        Some(ChatDelta::Done {
            usage: Some(usage),
            finish,
        }) => {
            assert!(usage.prompt_tokens > 5);
            assert!(usage.completion_tokens == 3 || *finish == FinishReason::Stop);
        }
        other => assert!(other.is_none(), "{other:?}"),
    }
}

#[test]
fn a_prompt_longer_than_the_window_is_an_overflow() {
    let mut model = model();
    let mut asked = request(&"word ".repeat(WINDOW));
    let over = model.answer_seeded(&asked, 1, &mut |_| true, &|| false);
    assert!(
        matches!(over, Err(ModelError::Overflow { window: WINDOW, .. })),
        "{over:?}"
    );
    asked = request("a few words, and a small window");
    asked.context_window = 32;
    let over = model.answer_seeded(&asked, 1, &mut |_| true, &|| false);
    assert!(
        matches!(over, Err(ModelError::Overflow { window: 32, .. })),
        "{over:?}"
    );
}

#[test]
fn a_reader_that_goes_stops_the_answer() {
    let mut model = model();
    let mut heard = 0;
    let mut emit = |_| {
        heard += 1;
        heard < 3
    };
    let stopped = model.answer_seeded(&request(&"a b ".repeat(100)), 1, &mut emit, &|| false);
    assert_eq!(stopped, Err(ModelError::Cancelled));
    assert_eq!(heard, 3);
    let stopped = model.answer_seeded(&request("x"), 1, &mut |_| true, &|| true);
    assert_eq!(stopped, Err(ModelError::Cancelled));
}

#[test]
fn with_tools_text_stays_text_and_what_the_mark_begins_is_a_call() {
    let mut model = model();
    let parameters = json!({
        "type": "object",
        "properties": {"on": {"type": "boolean"}, "room": {"enum": ["hall", "attic"]}},
        "required": ["on", "room"],
    });
    let (mut calls, mut texts) = (0, 0);
    for seed in 0..40 {
        // Each seed costs a second: as many as show both.
        if calls > 0 && texts > 0 {
            break;
        }
        let mut asked = request("Light!");
        asked.temperature = 1.5;
        // A token here is a byte.
        asked.max_output_tokens = Some(200);
        asked.tools = vec![tool(parameters.clone())].into();
        let deltas = answer(&mut model, &asked, seed);
        let called = deltas.iter().find_map(|delta| match delta {
            ChatDelta::ToolCall(call) => Some(call),
            _ => None,
        });
        match called {
            // One that the limit cut off has no arguments that can be read.
            Some(call) if call.arguments.is_object() => {
                calls += 1;
                assert_eq!(call.name, "lamp");
                assert!(call.arguments["on"].is_boolean(), "{call:?}");
                assert!(["hall", "attic"].contains(&call.arguments["room"].as_str().unwrap()));
            }
            Some(_) => {}
            None => texts += 1,
        }
        for delta in &deltas {
            if let ChatDelta::Text(text) = delta {
                assert!(!text.contains("\"arguments\""), "{text}");
            }
        }
        assert!(matches!(deltas.last(), Some(ChatDelta::Done { .. })));
    }
    assert!(calls > 0, "no seed called the tool");
    assert!(texts > 0, "no seed answered in text");
}

/// What comes of a reply to an offered tool when the model wants to say this, and then whatever
/// is allowed.
fn said(wanted: &str) -> Vec<ChatDelta> {
    let mut model = model();
    let mut asked = request("Light!");
    asked.tools = vec![tool(json!({
        "type": "object",
        "properties": {"room": {"enum": ["hall"]}},
        "required": ["room"],
    }))]
    .into();
    let tokenizer = Arc::clone(&model.tokenizer);
    let mut answer = model.begin_answer(&asked, 1).unwrap();
    let mut wanted = tokenizer.encode_text(wanted).unwrap();
    wanted.push(IM_END);
    for id in wanted {
        let mut logits = vec![0.0; model.decoder.vocabulary()];
        logits[usize::try_from(id).unwrap()] = 1.0;
        let ended = answer.choose(&mut logits, &tokenizer).unwrap().is_none();
        let is_calling = answer.tools.as_ref().unwrap().1.call().is_some();
        let text = std::mem::take(&mut answer.text);
        assert_eq!(answer.take(Duration::from_millis(999)), None);
        let calling = is_calling.then_some(ChatDelta::Calling);
        assert_eq!(
            answer.take(CALLING_EVERY),
            calling,
            "a call is told of while it is written"
        );
        answer.text = text;
        if ended || answer.is_complete() {
            break;
        }
    }
    assert!(answer.tools.as_ref().unwrap().1.call().is_none() || answer.is_complete());
    answer.finish()
}

fn switched(text: &str) -> Vec<ChatDelta> {
    let call = RequestedCall {
        name: "lamp".to_owned(),
        arguments: json!({"room": "hall"}),
    };
    let text = (!text.is_empty()).then(|| ChatDelta::Text(text.to_owned()));
    text.into_iter()
        .chain([ChatDelta::ToolCall(call)])
        .collect()
}

#[test]
fn a_reply_in_text_stays_text_where_tools_are_offered() {
    for text in ["Paris is [not] the capital.", "{\"name\": \"Olha\"}"] {
        assert_eq!(said(text), [ChatDelta::Text(text.to_owned())]);
    }
}

#[test]
fn a_call_begins_with_either_mark_and_no_mark_is_shown() {
    assert_eq!(said("[TOOL_CALL]"), switched(""));
    assert_eq!(said("Let me see. [TOOL_CALL]\n"), switched("Let me see."));
    assert_eq!(said("I will.\n<tool_call>"), switched("I will."));
}

#[test]
fn a_call_without_a_mark_is_held_to_the_tools_too() {
    assert_eq!(said("{\"name\": \"lamp\", \"argu"), switched(""));
    assert_eq!(said("```json\n{\n  \"name\": \"lamp\",\n"), switched(""));
}

#[test]
fn a_schema_that_no_grammar_can_say_still_lets_the_tool_be_called() {
    let mut model = model();
    let mut asked = request("Light!");
    asked.tools = vec![tool(
        json!({"type": "object", "properties": {"on": {"$ref": "#/nowhere"}}}),
    )]
    .into();
    let deltas = answer(&mut model, &asked, 1);
    assert!(matches!(deltas.last(), Some(ChatDelta::Done { .. })));
}

#[test]
fn a_model_whose_file_has_no_fitting_template_still_chats() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tiny.gguf");
    let mut tiny = TinyModel::new("llama");
    tiny.set(
        "tokenizer.chat_template",
        Value::String("{% nonsense".to_owned()),
    );
    tiny.set("tokenizer.ggml.eos_token_id", Value::U32(IM_END));
    tiny.write(&path);
    let mut model = ChatModel::load(&path).unwrap();
    assert!(answer(&mut model, &request("Hi"), 1).len() > 1);
}

/// What comes of a demanded form, whatever the model would rather say, and whether it is whole.
fn formed(form: ReplyForm, seed: u64) -> (String, FinishReason) {
    let mut asked = request("Which room?");
    asked.temperature = 1.5;
    asked.max_output_tokens = Some(200);
    asked.form = Some(form);
    let mut text = String::new();
    for delta in answer(&mut model(), &asked, seed) {
        match delta {
            ChatDelta::Text(more) => text.push_str(&more),
            ChatDelta::Done { finish, .. } => return (text, finish),
            _ => {}
        }
    }
    (text, FinishReason::Other)
}

fn of_schema(schema: serde_json::Value) -> ReplyForm {
    ReplyForm::Schema(AnswerSchema {
        name: "room".to_owned(),
        schema,
        strict: None,
    })
}

#[test]
fn an_answer_has_the_form_that_is_demanded_whatever_the_model_would_say() {
    let room = json!({
        "type": "object",
        "properties": {
            "on": {"type": "boolean"},
            "rooms": {"type": "array", "items": {"$ref": "#/$defs/room"}, "maxItems": 2},
        },
        "required": ["on", "rooms"],
        "additionalProperties": false,
        "$defs": {"room": {"enum": ["hall", "attic"]}},
    });
    for seed in 0..3 {
        let (text, finish) = formed(of_schema(room.clone()), seed);
        assert_eq!(finish, FinishReason::Stop);
        let said: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(said["on"].is_boolean(), "{text}");
        let rooms = said["rooms"].as_array().unwrap();
        assert!(rooms.len() <= 2 && rooms.iter().all(|it| it == "hall" || it == "attic"));
    }
    let (text, finish) = formed(of_schema(json!({"enum": [7, "seven"]})), 1);
    assert!(text == "7" || text == "\"seven\"", "{text}");
    assert_eq!(finish, FinishReason::Stop);
    let (text, _) = formed(ReplyForm::Json, 1);
    assert!(text.starts_with('{'), "{text}");
}

#[test]
fn a_form_that_no_grammar_can_say_is_json_at_least() {
    let nowhere = json!({"type": "object", "properties": {"on": {"$ref": "#/nowhere"}}});
    let (text, _) = formed(of_schema(nowhere), 1);
    let begins = |it: char| "{[\"-tfn".contains(it) || it.is_ascii_digit();
    assert!(text.starts_with(begins), "{text}");
}
