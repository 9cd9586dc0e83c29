use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::json;

use super::*;
use crate::llm::fixture_tests::Outcome;
use crate::llm::openai::read;
use crate::protocol::chat::ChatDelta;

const DONE: &str = "data: [DONE]\n\n";

/// A chunk whose only choice is this one.
fn chunk(choice: &Value) -> String {
    format!("data: {}\n\n", json!({ "choices": [choice] }))
}

/// Reads a body whose pieces come so far apart.
async fn apart(pause: Duration, pieces: Vec<String>) -> Outcome {
    let pieces = stream::iter(pieces).then(move |piece| async move {
        tokio::time::sleep(pause).await;
        Ok::<_, LlmError>(Bytes::from(piece))
    });
    read(Box::pin(pieces)).collect().await
}

fn text(text: &str) -> Result<ChatDelta, LlmError> {
    Ok(ChatDelta::Text(text.to_owned()))
}

fn done() -> Result<ChatDelta, LlmError> {
    Ok(ChatDelta::Done {
        finish: FinishReason::Stop,
        usage: None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_message_beside_each_delta_ends_nothing() {
    let chunks = [("Hel", "Hel"), ("lo", "Hello")].map(|(delta, so_far)| {
        chunk(&json!({"delta": {"content": delta}, "message": {"content": so_far}}))
    });
    let pause = Duration::from_secs(6);
    let whole = [chunks.as_slice(), &[DONE.to_owned()]].concat();
    assert_eq!(apart(pause, whole).await, [text("Hel"), text("lo"), done()]);
    assert_eq!(
        apart(pause, chunks.into()).await,
        [text("Hel"), text("lo"), Err(LlmError::EndedEarly)]
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_goes_on_behind_a_reason_is_heard_out() {
    let pause = Duration::from_secs(4);
    let each = ["a", "b", "c"]
        .map(|piece| chunk(&json!({"delta": {"content": piece}, "finish_reason": "tool_calls"})));
    assert_eq!(
        apart(pause, each.into()).await,
        [text("a"), text("b"), text("c"), done()]
    );

    let early = vec![
        chunk(&json!({"delta": {"reasoning_content": "Hm"}, "finish_reason": "stop"})),
        chunk(&json!({"delta": {"reasoning_content": "."}})),
        chunk(&json!({"delta": {"content": "Hi"}})),
    ];
    let thought = |text: &str| Ok(ChatDelta::Thinking(text.to_owned()));
    assert_eq!(
        apart(pause, early).await,
        [
            thought("Hm"),
            thought("."),
            text("Hi"),
            Err(LlmError::EndedEarly)
        ]
    );
}

#[tokio::test]
async fn a_whole_answer_beside_an_empty_delta_is_the_answer() {
    let answer = json!({"choices": [{
        "message": {"role": "assistant", "content": "Hi"},
        "delta": {"role": "assistant", "content": ""},
        "finish_reason": "stop",
    }]});
    let outcome = apart(Duration::ZERO, vec![answer.to_string()]).await;
    assert_eq!(outcome, [text("Hi"), done()]);
}
