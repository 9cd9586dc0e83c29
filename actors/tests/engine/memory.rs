//! Memory (SPEC section 9): idle sessions are read, facts are merged, the summary follows.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navi_actors::llm::LlmError;
use navi_actors::memory::MemoryTimes;
use navi_actors::protocol::chat::{ChatMessage, ChatRequest};
use navi_actors::protocol::command::{Decision, SessionChange};
use navi_actors::protocol::ids::SessionId;
use navi_actors::protocol::memory::MemoryOverview;
use navi_actors::protocol::message::Role;
use serde_json::json;

use crate::house::{House, PATIENCE, Say, Setup, in_system, profile, with_setup};

/// A house whose sessions count as idle soon, and not before a turn is over.
fn with_eager_memory<F>(test: impl FnOnce(House) -> F)
where
    F: Future<Output = ()>,
{
    with_memory(
        MemoryTimes {
            idle_after: Duration::from_millis(500),
            rewrite_after: Duration::ZERO,
        },
        test,
    );
}

fn with_memory<F>(times: MemoryTimes, test: impl FnOnce(House) -> F)
where
    F: Future<Output = ()>,
{
    in_system(
        |runtime: Arc<tokio::runtime::Runtime>, dir: PathBuf| async move {
            let house = {
                let setup = Setup {
                    memory: times,
                    ..Setup::default()
                };
                House::open_with(&dir, runtime, setup).await
            };
            test(house).await;
        },
    );
}

fn text(text: &str) -> [Say; 1] {
    [Say::Text(text.into())]
}

/// Waits until the memory is as it should be.
async fn memory_until(house: &House, is: impl Fn(&MemoryOverview) -> bool) -> MemoryOverview {
    let reached = async {
        loop {
            let memory = house.engine.memory().overview(house.user).await.unwrap();
            if is(&memory) {
                return memory;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, reached)
        .await
        .expect("the memory never came to that")
}

/// Has idle sessions read until the model was asked this often. Sessions become idle as time
/// goes by, and nothing tells that they did.
async fn read_until(house: &House, count: usize) -> Vec<ChatRequest> {
    let reached = async {
        while house.requests().len() < count {
            house.engine.memory().read_idle(house.user);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reached)
        .await
        .expect("the model was never asked");
    house.requests()
}

fn shown(request: &ChatRequest) -> String {
    let texts = request.messages.iter().map(|message| match &**message {
        ChatMessage::System { content }
        | ChatMessage::User { content, .. }
        | ChatMessage::Assistant { content, .. }
        | ChatMessage::Tool { content, .. } => content.as_str(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// A session with one turn.
async fn talk(house: &House, said: &str, answer: &str) -> SessionId {
    let session = house.session().await;
    let mut tab = house.tab(session, None).await;
    house.script(text(answer));
    house.say(session, said).await;
    tab.until("stream_end").await;
    session
}

const OLENA: &str =
    r#"[{"category":"people","key":"sister_name","value":"Olena","confidence":0.9}]"#;

#[test]
fn a_new_session_has_idle_ones_read_and_the_summary_written() {
    with_eager_memory(|house| async move {
        let session = talk(&house, "My sister Olena likes tea.", "Nice!").await;
        house.whole(text(&format!("```json\n{OLENA}\n```")));
        house.whole(text("They have a sister, Olena."));
        let before = house.requests().len();
        while house.requests().len() == before {
            house.session().await;
        }
        let memory = memory_until(&house, |memory| {
            memory.summary.as_deref() == Some("They have a sister, Olena.")
        })
        .await;
        let fact = &memory.facts[0];
        assert_eq!(
            (fact.key.as_str(), fact.value.as_str()),
            ("sister_name", "Olena")
        );
        assert_eq!(fact.source.session_id, Some(session));
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        let said = snapshot.messages.iter().find(|m| m.role == Role::User);
        assert_eq!(fact.source.message_id, said.map(|message| message.id));
        let requests = house.requests();
        assert_eq!(requests.len(), 3);
        assert!(shown(&requests[1]).contains("User: My sister Olena likes tea."));
        assert!(requests[1].tools.is_empty() && !requests[1].think);
        assert!(shown(&requests[2]).contains("sister name: Olena"));
        assert_eq!(
            house.engine.memory().summary(house.user).await.as_deref(),
            Some("They have a sister, Olena.")
        );

        // What was read is not read again: only the new turn is.
        let mut tab = house.tab(session, None).await;
        house.script(text("I see."));
        house.say(session, "Her name is Olha now.").await;
        tab.until("stream_end").await;
        house.whole(text(&OLENA.replace("Olena", "Olha")));
        house.whole(text("They have a sister, Olha."));
        read_until(&house, 5).await;
        memory_until(&house, |memory| {
            memory.summary.as_deref() == Some("They have a sister, Olha.")
        })
        .await;
        let requests = house.requests();
        assert_eq!(requests.len(), 6);
        let read = shown(&requests[4]);
        assert!(!read.contains("likes tea") && read.contains("people/sister_name: Olena"));
        let history = house.engine.memory();
        let history = history.history(house.user, "people", "sister_name").await;
        assert_eq!(history.unwrap()[0].value, "Olena");
    });
}

#[test]
fn a_message_larger_than_a_reading_is_read_to_its_end() {
    with_eager_memory(|house| async move {
        let other = |times| "I water the plants. ".repeat(times);
        let said = format!("{}My sister is called Olena. {}", other(115), other(65));
        talk(&house, &said, "Nice!").await;
        house.whole(text(OLENA));
        house.whole(text("[]"));
        house.whole(text("They have a sister, Olena."));
        read_until(&house, 4).await;
        memory_until(&house, |memory| {
            memory.summary.as_deref() == Some("They have a sister, Olena.")
        })
        .await;
        let requests = house.requests();
        assert_eq!(requests.len(), 4);
        let read: String = requests[1..3].iter().map(shown).collect();
        assert!(read.contains("My sister is called Olena."), "{read}");
        assert_eq!(read.matches("I water the plants.").count(), 180, "{read}");
    });
}

#[test]
fn sessions_that_are_not_idle_are_left_alone() {
    with_memory(MemoryTimes::default(), |house| async move {
        talk(&house, "My sister Olena likes tea.", "Nice!").await;
        house.session().await;
        // A later turn is answered: had the session been read, its call would stand before.
        talk(&house, "hello", "hi").await;
        assert_eq!(house.requests().len(), 2);
    });
}

#[test]
fn results_of_tools_cannot_write_the_memory() {
    with_eager_memory(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        let write = |content: &str| {
            Say::Call(
                "filesystem",
                json!({"action": "write", "path": "page.md", "content": content}),
            )
        };
        house.script([write("The user's boss is Mallory.")]);
        house.script([Say::Call(
            "filesystem",
            json!({"action": "read", "path": "page.md"}),
        )]);
        house.script(text("It says that your boss is Mallory."));
        house.say(session, "What does page.md say?").await;
        tab.until("stream_end").await;
        house.whole(text(
            r#"[{"category":"work","key":"boss","value":"Mallory","confidence":1}]"#,
        ));
        let done = r#"[{"category":"other","key":"reads","value":"page.md","confidence":1}]"#;
        let requests = read_until(&house, 4).await;
        let read = shown(&requests[3]);
        assert!(!read.contains("The user's boss"), "{read}");
        // A second conversation, so that there is something to wait for.
        talk(&house, "I read page.md daily", "ok").await;
        house.whole(text(done));
        read_until(&house, 6).await;
        let memory = memory_until(&house, |memory| !memory.facts.is_empty()).await;
        let keys: Vec<&str> = memory.facts.iter().map(|f| f.key.as_str()).collect();
        assert_eq!(keys, ["reads"]);
    });
}

#[test]
fn a_failed_reading_leaves_the_session_unread() {
    with_eager_memory(|house| async move {
        talk(&house, "My sister Olena likes tea.", "Nice!").await;
        let failed = LlmError::Server {
            status: 500,
            message: "out of luck".into(),
        };
        house.whole([Say::Fail(failed)]);
        house.whole(text("I found nothing that I could write as JSON."));
        house.whole(text(OLENA));
        read_until(&house, 4).await;
        memory_until(&house, |memory| memory.facts.len() == 1).await;
    });
}

#[test]
fn the_tools_find_save_and_forget() {
    with_memory(MemoryTimes::default(), |house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Call(
            "memory_save",
            json!({"category": "people", "key": "sister_name", "value": "Олена"}),
        )]);
        house.script([Say::Call("memory_search", json!({"query": "олена"}))]);
        house.script(text("saved"));
        house.say(session, "Remember: my sister is Олена").await;
        let frames = tab.until("stream_end").await;
        let results: Vec<&str> = frames
            .iter()
            .filter(|frame| frame["type"] == "tool_call")
            .map(|frame| frame["result"].as_str().unwrap())
            .collect();
        assert_eq!(
            results,
            [
                "remembered: people/sister_name: Олена",
                "1 fact:\npeople/sister_name: Олена"
            ]
        );
        let memory = house.engine.memory();
        let fact = memory.facts(house.user).await.unwrap().remove(0);
        assert_eq!(fact.source.session_id, Some(session));
        assert_eq!(fact.confidence, 1.0);
        assert_eq!(
            memory.summary(house.user).await.as_deref(),
            Some("- people, sister name: Олена")
        );

        house.script([Say::Call(
            "memory_forget",
            json!({"category": "people", "key": "sister_name"}),
        )]);
        house.script(text("forgotten"));
        house.say(session, "Forget my sister's name").await;
        let request = tab.until("approval_requested").await.pop().unwrap();
        assert_eq!(request["request"]["summary"], "forget people/sister_name");
        assert_eq!(request["request"]["details"][0]["text"], "Олена");
        let id = serde_json::from_value(request["approval_id"].clone()).unwrap();
        let engine = &house.engine;
        engine
            .approve(house.user, session, id, Decision::Once.into())
            .await
            .unwrap();
        tab.until("stream_end").await;
        assert!(memory.facts(house.user).await.unwrap().is_empty());
        assert_eq!(memory.summary(house.user).await, None);
    });
}

#[test]
fn a_profile_that_is_chosen_between_turns_knows_what_is_remembered_by_then() {
    let setup = Setup {
        profiles: vec![profile("plain"), profile("gardener")],
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let (user, memory) = (house.user, house.engine.memory());
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.say(session, "hi").await;
        tab.until("stream_end").await;
        memory.correct(user, "work", "boss", "Eve").await.unwrap();
        let wish = SessionChange {
            profile_id: Some("gardener".into()),
            ..SessionChange::default()
        };
        house.engine.change(user, session, wish).await.unwrap();
        house.say(session, "who is my boss?").await;
        tab.until("stream_end").await;
        let asked = shown(&house.asked().pop().unwrap());
        assert!(asked.contains("boss: Eve"), "{asked}");
    });
}

#[test]
fn a_model_that_was_asked_before_a_deletion_does_not_bring_the_fact_back() {
    with_eager_memory(|house| async move {
        let memory = house.engine.memory();
        house.whole([Say::Hold, Say::Text("Sister: Olena. Boss: Eve.".into())]);
        house.whole(text("Boss: Eve."));
        let user = house.user;
        memory.correct(user, "work", "boss", "Eve").await.unwrap();
        memory
            .correct(user, "people", "sister", "Olena")
            .await
            .unwrap();
        read_until(&house, 1).await;
        memory.forget_named(user, "people", "sister").await.unwrap();
        let summary = memory.summary(user).await.unwrap();
        assert_eq!(summary, "- work, boss: Eve");
        house.release();
        memory_until(&house, |memory| {
            assert!(!memory.summary.as_deref().unwrap().contains("Olena"));
            memory.summary.as_deref() == Some("Boss: Eve.")
        })
        .await;
    });
}
