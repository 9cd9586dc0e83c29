//! How many requests a model server is sent at once, and who waits while it has no more room.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::fake_model::{Config, FakeModel, Recorded, Reply, Step};
use crate::server::{House, Server};

/// Stands in the question for a summary.
const SUMMARY: &str = "<conversation>";

/// A server of OpenAI's kind that says so of itself, and Navi as it is by default.
fn served(owned_by: &str, slots: Option<u32>) -> (FakeModel, Server) {
    let model = FakeModel::start();
    model.configure(Config {
        ollama: false,
        owned_by: Some(owned_by.to_owned()),
        slots,
        ..Config::default()
    });
    let house = House::new(&[
        ("LLM_PARALLEL", "auto"),
        ("LLM_BACKEND", "openai"),
        ("OPENAI_BASE_URL", &model.url()),
        ("CONTEXT_KEEP_RECENT", "1"),
    ]);
    let server = house.start();
    (model, server)
}

/// Says it in a plain run, which does not plan, and gives back the answer.
async fn say(server: &Server, session: &str, text: &str) -> Value {
    let path = format!("/sessions/{session}/messages");
    server.post(&path, json!({"content": text})).await["content"].take()
}

fn streams(chats: &[Recorded]) -> usize {
    let streams = chats.iter().filter(|it| it.body["stream"] == true);
    streams.filter(|it| it.finished_ms.is_none()).count()
}

/// A whole answer was asked for with these words, and its connection is closed again.
fn made_way(chats: &[Recorded], words: &str) -> bool {
    let mut asked = chats.iter().filter(|it| it.body["stream"] == false);
    asked.any(|it| it.closed_early_ms.is_some() && it.last_user_text().contains(words))
}

fn held() -> Reply {
    Reply::new([Step::text("one "), Step::hold("gate"), Step::text("two")]).always()
}

#[tokio::test]
async fn a_hundred_runs_on_a_hosted_server_stream_side_by_side() {
    let (model, server) = served("vllm", None);
    model.script(held());
    let sessions = join_all((0..100).map(|_| server.new_session())).await;
    let runs = join_all(sessions.iter().map(|it| say(&server, it, "hi")));
    let watched = async {
        let mut tab = server.tab(&sessions[99], None).await;
        tab.next_of("stream_delta").await;
        model.wait_for(|chats| streams(chats) == 100).await;
        model.release("gate");
    };
    let (answers, ()) = tokio::join!(runs, watched);
    assert_eq!(answers, vec![json!("one two"); 100]);
    model.assert_clean();
}

#[tokio::test]
async fn of_five_runs_on_four_slots_the_fifth_says_what_it_waits_for() {
    let (model, server) = served("llamacpp", Some(4));
    model.script(held());
    let sessions = join_all((0..5).map(|_| server.new_session())).await;
    let four = join_all(sessions[..4].iter().map(|it| say(&server, it, "hi")));
    let fifth = async {
        model.wait_for(|chats| streams(chats) == 4).await;
        let mut tab = server.tab(&sessions[4], None).await;
        tab.send(&json!({"type": "message", "content": "me too"}))
            .await;
        let waiting = tab.next_of("run_waiting").await;
        assert_eq!(waiting["reason"], "lane");
        assert_eq!(
            waiting["detail"],
            "the model is busy with 4 answers in other conversations, and takes 4 at once; this is next"
        );
        assert_eq!(model.chats().len(), 4, "nothing else is asked meanwhile");
        model.release("gate");
        tab.next_of("stream_end").await
    };
    let (answers, end) = tokio::join!(four, fifth);
    assert_eq!(answers, vec![json!("one two"); 4]);
    assert_eq!(end["content"], "one two");
    model.assert_clean();
}

#[tokio::test]
async fn how_far_a_prompt_is_read_is_told() {
    let (model, server) = served("llamacpp", Some(1));
    let session = server.new_session().await;
    let prefill = |read| Step::Prefill { read, total: 1000 };
    model.script([
        prefill(100),
        Step::hold("first"),
        prefill(600),
        Step::hold("second"),
        Step::text("read"),
    ]);
    let mut tab = server.tab(&session, None).await;
    let watched = async {
        for (read, gate) in [(100, "first"), (600, "second")] {
            let detail = format!("the model has read {read} of 1000 tokens of the conversation");
            loop {
                let waiting = tab.next_of("run_waiting").await;
                assert_eq!(waiting["reason"], "prefill");
                if waiting["detail"] == detail {
                    break;
                }
                // On a slow machine nothing was read yet.
                assert_eq!(waiting["detail"], "the model reads the conversation");
            }
            model.release(gate);
        }
    };
    let (answer, ()) = tokio::join!(say(&server, &session, "a long text"), watched);
    assert_eq!(answer, "read");
    assert_eq!(model.chats()[0].body["return_progress"], true);
}

#[tokio::test]
async fn on_one_slot_a_person_goes_before_titles_and_summaries() {
    let (model, server) = served("llamacpp", Some(1));
    let [a, b, c] = [
        server.new_session().await,
        server.new_session().await,
        server.new_session().await,
    ];
    say(&server, &a, "hello").await;
    // Titles and summaries never come to an end by themselves here.
    let endless = || Reply::new([Step::Silence]).streamed(false).always();
    model.script(endless().last(SUMMARY));
    model.script(endless().last("The title:"));
    model.script(
        Reply::new([
            Step::text("done"),
            Step::Finish {
                reason: "stop".to_owned(),
                prompt_tokens: 60_000,
                completion_tokens: 100,
            },
        ])
        .when("fill it"),
    );
    say(&server, &a, "fill it").await;
    let asks = |chats: &[Recorded], words: &str| {
        let mut asked = chats.iter().filter(|it| it.body["stream"] == false);
        asked.any(|it| it.last_user_text().contains(words))
    };
    model.wait_for(|chats| asks(chats, SUMMARY)).await;
    assert_eq!(say(&server, &b, "first").await, "You said: first");
    model.wait_for(|chats| made_way(chats, SUMMARY)).await;
    model.wait_for(|chats| asks(chats, "User: first")).await;
    assert_eq!(say(&server, &c, "second").await, "You said: second");
    model.wait_for(|chats| made_way(chats, "User: first")).await;
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn a_title_is_asked_for_with_the_window_of_its_run() {
    let model = FakeModel::start();
    model.configure(Config {
        context_window: 8192,
        ..Config::default()
    });
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let session = server.new_session().await;
    say(&server, &session, "hi").await;
    let chats = model.wait_for(|chats| chats.len() == 2).await;
    assert!(chats[1].last_user_text().contains("The title:"));
    // Another one, and Ollama loads the model anew.
    for chat in chats {
        assert_eq!(chat.body["options"]["num_ctx"], 8192);
    }
}
