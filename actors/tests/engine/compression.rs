//! SPEC section 8: the compression of a context, row by row.

use navi_actors::domain::permissions::Memory;
use navi_actors::protocol::ids::SessionId;
use navi_actors::services::CompressionPolicy;
use serde_json::json;

use crate::house::{House, Say, Setup, Tab, with_setup};

/// A summary's question speaks of this.
const SUMMARY: &str = "write the notes on this conversation";

/// Due after every turn: a turn takes 15 tokens here.
fn eager() -> Setup {
    Setup {
        window: 4096,
        compression: CompressionPolicy {
            threshold: 0.001,
            keep_recent: 1,
            ..CompressionPolicy::default()
        },
        ..Setup::default()
    }
}

async fn begin(house: &House) -> (SessionId, Tab) {
    let session = house.session().await;
    let tab = house.tab(session, None).await;
    (session, tab)
}

async fn turn(house: &House, session: SessionId, tab: &mut Tab, said: &str) {
    house.script([Say::Text(format!("heard: {said}"))]);
    house.say(session, said).await;
    tab.until("stream_end").await;
}

#[test]
fn after_a_turn_old_turns_become_a_summary_and_messages_stay() {
    with_setup(eager(), |house| async move {
        let (session, mut tab) = begin(&house).await;
        turn(&house, session, &mut tab, "my cat is Murka").await;
        // Before the turn the model has nothing to say; after it, it has.
        house.answer(SUMMARY, []);
        house.answer(SUMMARY, [Say::Text("- the cat is Murka".into())]);
        turn(&house, session, &mut tab, "and my dog is Rex").await;
        let told = tab.until("context_compressed").await;
        let event = told.last().unwrap();
        assert_eq!(
            (&event["messages_before"], &event["messages_after"]),
            (&json!(4), &json!(3))
        );
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        assert_eq!(
            snapshot.messages.len(),
            4,
            "messages is the whole conversation"
        );
        assert_eq!(snapshot.summary.context_token_count, 0);
        let compression = snapshot.compression.unwrap();
        assert!(compression.summary.contains("the cat is Murka"));
        assert_eq!(compression.first_kept, Some(snapshot.messages[2].id));
        // What the model sees from now on.
        let context = house
            .engine
            .context(house.user, session, Memory::Shown)
            .await
            .unwrap();
        let sent = format!("{:?}", context.messages);
        assert!(sent.contains("- the cat is Murka") && sent.contains("my dog is Rex"));
        assert!(!sent.contains("my cat is Murka"), "{sent}");
    });
}

#[test]
fn an_earlier_summary_is_folded_into_the_new_one() {
    with_setup(eager(), |house| async move {
        let (session, mut tab) = begin(&house).await;
        turn(&house, session, &mut tab, "one").await;
        house.answer(SUMMARY, [Say::Text("- first notes".into())]);
        turn(&house, session, &mut tab, "two").await;
        house.answer(SUMMARY, [Say::Text("- second notes".into())]);
        turn(&house, session, &mut tab, "three").await;
        let asked = house.requests();
        let last = asked.iter().rfind(|r| !r.streamed).unwrap();
        assert!(format!("{:?}", last.messages).contains("- first notes"));
        let context = house
            .engine
            .context(house.user, session, Memory::Shown)
            .await
            .unwrap();
        let sent = format!("{:?}", context.messages);
        assert!(
            sent.contains("- second notes") && !sent.contains("- first notes"),
            "{sent}"
        );
    });
}

#[test]
fn a_failed_summary_leaves_the_context_as_it_was_and_the_next_turn_tries_again_first() {
    with_setup(eager(), |house| async move {
        let (session, mut tab) = begin(&house).await;
        turn(&house, session, &mut tab, "one").await;
        // An empty answer is no summary, neither before this turn's answer nor after it.
        turn(&house, session, &mut tab, "two").await;
        house.requests_reach(4).await;
        let context = house
            .engine
            .context(house.user, session, Memory::Shown)
            .await
            .unwrap();
        assert!(format!("{:?}", context.messages).contains("heard: one"));
        house.answer(SUMMARY, [Say::Text("- later notes".into())]);
        house.script([Say::Text("heard: three".into())]);
        house.say(session, "three").await;
        let frames = tab.until("stream_end").await;
        let kinds: Vec<_> = frames.iter().map(|f| f["type"].as_str().unwrap()).collect();
        let compressed = kinds.iter().position(|kind| *kind == "context_compressed");
        let text = kinds.iter().position(|kind| *kind == "stream_delta");
        assert!(compressed.is_some() && compressed < text, "{kinds:?}");
    });
}
