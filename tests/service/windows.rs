//! SPEC section 8 from outside: windows that servers tell, prompts and replies that are cut.

use serde_json::{Value, json};

use crate::fake_model::{Config, FakeModel, Reply, Step};
use crate::server::{House, Server, Socket};

/// Ollama's words, with its runner's in them.
fn too_long(window: u32, prompt: u32) -> Reply {
    let inner = json!({"error": {
        "code": 400,
        "message": format!("request ({prompt} tokens) exceeds the available context size ({window} tokens), try increasing it"),
        "type": "exceed_context_size_error",
        "n_prompt_tokens": prompt,
        "n_ctx": window,
    }});
    let body = json!({"error": inner.to_string()}).to_string();
    Reply::new([Step::status(400, &body)])
}

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

async fn tab(server: &Server) -> Socket {
    let session = server.new_session().await;
    server.tab(&session, None).await
}

async fn say(tab: &mut Socket, text: &str) {
    tab.send(&json!({"type": "message", "content": text})).await;
}

fn streamed(model: &FakeModel) -> Vec<Value> {
    let bodies = model.chats().into_iter().map(|chat| chat.body);
    bodies.filter(|body| body["stream"] == true).collect()
}

fn notices<'a>(frames: &'a [Value], code: &str) -> Vec<&'a Value> {
    let notices = frames.iter().filter(|frame| frame["type"] == "notice");
    notices.filter(|frame| frame["code"] == code).collect()
}

#[tokio::test]
async fn a_server_that_finds_a_prompt_too_long_teaches_its_window() {
    let (model, server) = talking();
    let mut first = tab(&server).await;
    model.script(too_long(16_384, 70_000));
    say(&mut first, "hello").await;
    let end = first.next_of("stream_end").await;
    assert_eq!(end["content"], "You said: hello");
    assert_eq!(end["max_context_tokens"], 16_384);
    let asked = streamed(&model);
    let windows = |bodies: &[Value]| -> Vec<Value> {
        let windows = bodies.iter().map(|body| body["options"]["num_ctx"].clone());
        windows.collect()
    };
    assert_eq!(windows(&asked), [65_536, 16_384]);
    for body in &asked {
        assert_eq!(
            (&body["truncate"], &body["shift"]),
            (&json!(false), &json!(false))
        );
    }
    // It is known from then on, in every session.
    let mut second = tab(&server).await;
    say(&mut second, "and now?").await;
    let end = second.next_of("stream_end").await;
    assert_eq!(end["max_context_tokens"], 16_384);
    assert_eq!(windows(&streamed(&model)[2..]), [16_384]);
    model.assert_clean();
}

#[tokio::test]
async fn a_title_that_is_too_long_teaches_the_window_too() {
    let (model, server) = talking();
    let mut tab = tab(&server).await;
    model.script(too_long(16_384, 70_000).streamed(false));
    say(&mut tab, "hello").await;
    tab.next_of("stream_end").await;
    server.says("no title").await;
    say(&mut tab, "and now?").await;
    let end = tab.next_of("stream_end").await;
    assert_eq!(end["max_context_tokens"], 16_384);
    model.assert_clean();
}

#[tokio::test]
async fn the_meter_and_the_compression_go_by_the_models_own_window() {
    let model = FakeModel::start();
    model.configure(Config {
        context_window: 8_192,
        ..Config::default()
    });
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let summary = Reply::new([Step::text("- they counted turns")]).streamed(false);
    model.script(summary.last("<conversation>"));
    for turn in 0..12 {
        model.script([
            Step::text("yes"),
            Step::Finish {
                reason: "stop".to_owned(),
                // Little in the window that is asked for, much in the model's own.
                prompt_tokens: if turn == 11 { 7_500 } else { 1_000 },
                completion_tokens: 10,
            },
        ]);
        say(&mut tab, &format!("turn {turn}")).await;
        let end = tab.next_of("stream_end").await;
        assert_eq!(end["max_context_tokens"], 8_192);
    }
    tab.next_of("context_compressed").await;
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["max_context_tokens"], 8_192);
    model.assert_clean();
}

#[tokio::test]
async fn what_does_not_fit_is_left_out_and_told_and_the_question_stays() {
    let (model, server) = talking();
    let mut tab = tab(&server).await;
    for turn in 0..4 {
        model.script([Step::text("noted")]);
        say(&mut tab, &format!("turn {turn}: {}", "word ".repeat(4_000))).await;
        tab.next_of("stream_end").await;
    }
    model.script(too_long(16_384, 22_000));
    say(&mut tab, "what was it?").await;
    let frames = tab.until("stream_end").await;
    assert_eq!(frames.last().unwrap()["content"], "You said: what was it?");
    assert_eq!(notices(&frames, "context_left_out").len(), 1, "{frames:#?}");
    let last = streamed(&model).pop().unwrap().to_string();
    assert!(!last.contains("turn 0: ") && last.contains("turn 3: "));
    assert!(last.contains("what was it?"));
    model.assert_clean();
}

#[tokio::test]
async fn what_is_too_long_is_summarised_before_it_is_asked_again() {
    let (model, server) = talking();
    let mut tab = tab(&server).await;
    // More than stay word for word.
    for turn in 0..12 {
        model.script([Step::text("noted")]);
        say(&mut tab, &format!("turn {turn}")).await;
        tab.next_of("stream_end").await;
    }
    let summary = Reply::new([Step::text("- they counted turns")]).streamed(false);
    model.script(summary.last("<conversation>"));
    model.script(too_long(16_384, 22_000));
    say(&mut tab, "what was it?").await;
    let frames = tab.until("stream_end").await;
    let compressed = |frame: &Value| frame["type"] == "context_compressed";
    assert!(frames.iter().any(compressed), "{frames:#?}");
    let last = streamed(&model).pop().unwrap().to_string();
    assert!(last.contains("they counted turns"), "{last}");
    assert!(!last.contains("turn 0") && last.contains("what was it?"));
    model.assert_clean();
}

#[tokio::test]
async fn a_prompt_that_the_server_cut_in_silence_is_told() {
    let (model, server) = talking();
    let mut tab = tab(&server).await;
    model.script([
        Step::text("yes"),
        Step::Finish {
            reason: "stop".to_owned(),
            prompt_tokens: 1_000,
            completion_tokens: 1,
        },
    ]);
    say(&mut tab, &"word ".repeat(8_000)).await;
    let frames = tab.until("stream_end").await;
    let told = notices(&frames, "prompt_cut");
    let told = told[0]["message"].as_str().unwrap();
    assert!(told.contains("read only 1000 tokens"), "{told}");
    model.assert_clean();
}

#[tokio::test]
async fn a_prompt_that_the_server_did_not_count_is_guessed() {
    let (model, server) = talking();
    let mut tab = tab(&server).await;
    model.script([
        Step::text("yes"),
        Step::Finish {
            reason: "stop".to_owned(),
            prompt_tokens: 0,
            completion_tokens: 5,
        },
    ]);
    say(&mut tab, &"word ".repeat(4_000)).await;
    let end = tab.next_of("stream_end").await;
    assert!(end["context_tokens"].as_u64().unwrap() > 3_000, "{end}");
    model.assert_clean();
}

#[tokio::test]
async fn a_question_that_fits_no_window_is_an_error_that_says_so() {
    let (model, server) = talking();
    let mut tab = tab(&server).await;
    for _ in 0..3 {
        model.script(too_long(16_384, 60_000));
    }
    say(&mut tab, &"1234567890".repeat(900)).await;
    let error = tab.next_of("error").await;
    assert_eq!(error["code"], "context_overflow", "{error}");
    assert_eq!(streamed(&model).len(), 3);
    // The session stays usable.
    say(&mut tab, "short").await;
    tab.next_of("stream_end").await;
    model.assert_clean();
}

#[tokio::test]
async fn an_answer_that_its_limit_cut_says_so_and_goes_on() {
    let (model, server) = talking();
    let mut tab = tab(&server).await;
    model.script([
        Step::text("One, two, and"),
        Step::Finish {
            reason: "length".to_owned(),
            prompt_tokens: 4_000,
            completion_tokens: 5,
        },
    ]);
    say(&mut tab, "count").await;
    let frames = tab.until("stream_end").await;
    assert_eq!(frames.last().unwrap()["completed"], false, "{frames:#?}");
    assert_eq!(notices(&frames, "reply_cut").len(), 1, "{frames:#?}");

    model.script([Step::text("ee, four.")]);
    tab.send(&json!({"type": "continue"})).await;
    let end = tab.next_of("stream_end").await;
    assert_eq!(
        (&end["content"], &end["completed"]),
        (&json!("ee, four."), &json!(true))
    );
    let last = streamed(&model).pop().unwrap().to_string();
    assert!(last.contains("One, two, and [cut off here]"), "{last}");
    assert!(last.contains("Go on from where it stopped."), "{last}");
    model.assert_clean();
}

#[tokio::test]
async fn a_default_model_that_is_missing_is_named() {
    let model = FakeModel::start();
    let server = House::new(&[
        ("OLLAMA_HOST", &model.url()),
        ("OLLAMA_DEFAULT_MODEL", "nowhere:1b"),
    ]);
    let server = server.start();
    let mut first = tab(&server).await;
    say(&mut first, "hello").await;
    let frames = first.until("stream_end").await;
    let told = notices(&frames, "model_missing");
    let told = told[0]["message"].as_str().unwrap();
    assert!(
        told.contains("default model nowhere:1b") && told.ends_with("fake:latest answers instead"),
        "{told}"
    );
    // Once.
    let mut second = tab(&server).await;
    say(&mut second, "hello").await;
    let frames = second.until("stream_end").await;
    assert!(notices(&frames, "model_missing").is_empty(), "{frames:#?}");
    model.assert_clean();
}
