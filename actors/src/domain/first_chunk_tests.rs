use serde_json::json;

use super::*;
use crate::protocol::offered::OfferedTools;
use crate::protocol::tool::Effect;

const BASE: Duration = Duration::from_secs(120);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn rate(tokens_a_second: u32) -> Option<Rate> {
    Rate::of(tokens_a_second, seconds(1))
}

fn request(texts: &[&str]) -> ChatRequest {
    ChatRequest {
        model: "m".to_owned(),
        messages: texts
            .iter()
            .map(|text| ChatMessage::User {
                content: (*text).to_owned(),
                images: Vec::new(),
            })
            .map(Into::into)
            .collect(),
        tools: OfferedTools::default(),
        temperature: 0.7,
        think: false,
        context_window: 8192,
        max_output_tokens: Some(1000),
        streamed: true,
        form: None,
    }
}

/// A text of about so many tokens.
fn text(tokens: usize) -> String {
    "abcd".repeat(tokens)
}

#[test]
fn a_long_prompt_on_a_slow_model_gets_its_time() {
    for (prompt, seen, expected) in [
        (60_000, None, 120),
        (100, rate(50), 120),
        (3_000, rate(50), 120),
        (10_000, rate(50), 400),
        (60_000, rate(10), 1_800),
        (u32::MAX, rate(1), 1_800),
        (0, rate(50), 120),
    ] {
        let limit = limit_for(BASE, prompt, seen);
        assert_eq!(limit, seconds(expected), "{prompt} at {seen:?}");
    }
    let longer_than_any = seconds(7_200);
    assert_eq!(
        limit_for(longer_than_any, 60_000, rate(10)),
        longer_than_any
    );
}

#[test]
fn a_whole_answer_gets_the_time_to_be_said() {
    let mut pace = ModelPace::default();
    let asked = |streamed| ChatRequest {
        streamed,
        ..request(&[&text(5_000)])
    };
    let limit = |pace: &ModelPace, streamed| {
        let request = asked(streamed);
        let unheard = unheard_tokens(&request, BackendKind::Ollama);
        pace.first_chunk(BASE, &Prompt::of(&request), unheard)
    };
    assert_eq!(limit(&pace, false), BASE);
    pace.ended(&Timing {
        new_tokens: 1_000,
        first_chunk: seconds(20),
        rest: seconds(20),
        completion_tokens: 100,
    });
    // 5001 tokens to read at 50 a second, 1000 to say at 5 a second.
    assert_eq!(limit(&pace, true).as_secs(), 200);
    assert_eq!(limit(&pace, false).as_secs(), 600);
    // A call that Ollama writes unheard: 4096 tokens more.
    let tool = ToolSpec {
        name: "files".to_owned(),
        description: String::new(),
        parameters: json!({}),
        effect: Effect::Read,
        time_limit_ms: 1_000,
    };
    let with_tools = ChatRequest {
        tools: vec![tool].into(),
        ..asked(true)
    };
    for (kind, expected) in [(BackendKind::Ollama, CALL_TOKENS), (BackendKind::Openai, 0)] {
        assert_eq!(unheard_tokens(&with_tools, kind), expected);
    }
}

#[test]
fn an_average_moves_towards_what_is_seen() {
    assert_eq!(Rate::then(None, Rate(10.0)), Rate(10.0));
    assert_eq!(Rate::then(Some(Rate(10.0)), Rate(20.0)), Rate(13.0));
    assert_eq!(Rate::of(0, seconds(1)), None);
    assert_eq!(Rate::of(1, Duration::ZERO), None);
}

#[test]
fn what_the_backend_has_read_before_is_no_measure() {
    let mut pace = ModelPace::default();
    let (system, first, other) = (text(1_000), text(500), text(400) + "x");
    let prompt = |texts: &[&str]| Prompt::of(&request(texts));
    let one = prompt(&[&system, &first]);
    assert_eq!(pace.new_tokens(&one), one.tokens());
    pace.began(one.clone());
    assert_eq!(pace.new_tokens(&one), 0);
    let longer = prompt(&[&system, &first, &other]);
    assert_eq!(pace.new_tokens(&longer), longer.tokens() - one.tokens());
    let beside = prompt(&[&system, &other]);
    assert_eq!(
        pace.new_tokens(&beside),
        beside.tokens() - prompt(&[&system]).tokens()
    );
    for at in 0..REMEMBERED {
        pace.began(prompt(&[&at.to_string()]));
    }
    assert_eq!(pace.new_tokens(&one), one.tokens());
    pace.ended(&Timing {
        new_tokens: LEAST_READ - 1,
        first_chunk: Duration::from_millis(1),
        rest: seconds(1),
        completion_tokens: LEAST_SAID - 1,
    });
    assert_eq!((pace.reading, pace.saying), (None, None));
}

#[test]
fn images_and_tools_are_part_of_a_prompt() {
    let plain = request(&["Hi"]);
    let mut picture = plain.clone();
    let shown = ChatMessage::User {
        content: "Hi".to_owned(),
        images: vec![text(1_000_000)],
    };
    picture.messages = vec![shown.into()];
    let (plain, picture) = (Prompt::of(&plain), Prompt::of(&picture));
    assert_eq!(picture.tokens(), plain.tokens() + IMAGE_TOKENS);
    assert_ne!(picture.parts[0].0, plain.parts[0].0);
}
