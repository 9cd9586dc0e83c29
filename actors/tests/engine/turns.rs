//! Turns from the message to the answer.

use std::pin::pin;

use futures_util::poll;
use navi_actors::protocol::command::SessionChange;
use navi_actors::protocol::error::ErrorCode;
use navi_actors::protocol::message::Role;
use navi_actors::protocol::profile::Profile;
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection};
use serde_json::json;

use crate::house::{
    House, Say, Setup, assert_gapless, first, in_system, input, kinds, plain, profile, text,
    with_house, with_setup, write_call,
};

/// Another program has the database to write in, until this is rolled back.
async fn locked(house: &House) -> DatabaseConnection {
    let url = format!("sqlite://{}", house.dir.join("navi.db").display());
    let one = ConnectOptions::new(url).max_connections(1).to_owned();
    let other = Database::connect(one).await.unwrap();
    other.execute_unprepared("BEGIN IMMEDIATE").await.unwrap();
    other
}

#[test]
fn a_model_is_asked_while_the_disk_writes_and_nobody_hears_of_it_before() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.say(session, "hi").await;
        let before = tab.until("stream_end").await;
        // All that comes of it is written.
        house.engine.snapshot(house.user, session).await.unwrap();
        house.script([Say::Text("so it is".into())]);
        let other = locked(&house).await;
        let mut said = pin!(house.engine.send(house.user, session, input("is it so?")));
        tokio::select! {
            said = &mut said => panic!("{said:?} before it was written"),
            () = house.requests_reach(2) => {}
        }
        assert!(poll!(&mut said).is_pending());
        assert!(poll!(pin!(tab.next())).is_pending());

        other.execute_unprepared("ROLLBACK").await.unwrap();
        said.await.unwrap();
        let frames = tab.until("stream_end").await;
        let kinds = kinds(&frames);
        assert_eq!(kinds[..2], ["message_accepted", "stream_start"]);
        let last = before.last().unwrap()["seq"].as_u64().unwrap();
        assert_gapless(&frames, last + 1);
        assert_eq!(text(&frames, "stream_delta"), "so it is");
        let asked = house.asked();
        assert_eq!(asked.len(), 2);
        assert!(format!("{:?}", asked[1].messages).contains("is it so?"));
    });
}

#[test]
fn a_profile_that_is_chosen_before_a_run_was_told_holds_from_its_first_call() {
    let other = Profile {
        system_prompt: "You are the other one.".into(),
        ..profile("other")
    };
    let setup = Setup {
        profiles: vec![profile("plain"), other],
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.say(session, "hi").await;
        tab.until("stream_end").await;
        let other = locked(&house).await;
        let (engine, user) = (&house.engine, house.user);
        let wish = SessionChange {
            profile_id: Some("other".into()),
            ..SessionChange::default()
        };
        let all = async {
            tokio::join!(
                engine.pin(user, session, Some(true)),
                engine.send(user, session, input("who are you?")),
                engine.change(user, session, wish),
            )
        };
        let mut all = pin!(all);
        assert!(poll!(&mut all).is_pending());
        let (done, unlocked) = tokio::join!(all, other.execute_unprepared("ROLLBACK"));
        unlocked.unwrap();
        done.0.unwrap();
        done.1.unwrap();
        done.2.unwrap();
        tab.until("stream_end").await;
        let asked = house.asked();
        let led = format!("{:?}", asked.last().unwrap().messages[0]);
        assert!(led.contains("You are the other one."), "{led}");
    });
}

#[test]
fn a_message_is_answered_in_the_order_of_the_spec() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([
            Say::Thinking("hm".into()),
            Say::Text("Hel".into()),
            Say::Text("lo".into()),
        ]);
        house.say(session, "hi").await;
        let frames = tab.until("stream_end").await;
        assert_eq!(
            kinds(&frames),
            [
                "message_accepted",
                "stream_start",
                "thinking_delta",
                "thinking_end",
                "stream_delta",
                "stream_end"
            ]
        );
        assert_gapless(&frames, 1);
        assert_eq!(text(&frames, "stream_delta"), "Hello");
        let end = frames.last().unwrap();
        assert_eq!(end["content"], "Hello");
        assert_eq!(end["context_tokens"], 15);
        assert_eq!(end["max_context_tokens"], 4096);
        assert_eq!(end["completed"], true);
        let run = &frames[0]["run_id"];
        assert!(
            frames
                .iter()
                .all(|frame| frame["run_id"] == *run && frame["at"].is_string())
        );
    });
}

#[test]
fn a_tool_is_called_and_its_result_goes_to_the_model() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Thinking("a file".into()), write_call("a.txt", "x")]);
        house.script([Say::Text("done".into())]);
        house.say(session, "write").await;
        let frames = tab.until("stream_end").await;
        assert_eq!(
            kinds(&frames),
            [
                "message_accepted",
                "stream_start",
                "thinking_delta",
                "thinking_end",
                "turn_thinking",
                "tool_started",
                "tool_call",
                "stream_delta",
                "stream_end"
            ]
        );
        let call = first(&frames, "tool_call");
        assert_eq!(call["success"], true, "{call}");
        let file = house
            .dir
            .join("session_files")
            .join(session.to_string())
            .join("a.txt");
        assert_eq!(std::fs::read_to_string(file).unwrap(), "x");
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        let roles: Vec<Role> = snapshot.messages.iter().map(|m| m.role).collect();
        assert_eq!(
            roles,
            [Role::User, Role::Assistant, Role::Tool, Role::Assistant]
        );
        assert_eq!(house.requests().len(), 2);
    });
}

#[test]
fn reasoning_that_began_in_the_prompt_is_no_part_of_the_answer() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Text("musing over it</think>\n\nHi".into())]);
        house.say(session, "hello").await;
        let frames = tab.until("stream_end").await;
        assert_eq!(frames.last().unwrap()["content"], "Hi");
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        let answer = snapshot.messages.last().unwrap();
        assert_eq!(answer.content.as_deref(), Some("Hi"));
        assert_eq!(answer.thinking.as_deref(), Some("musing over it"));

        house.script([Say::Text("Well".into())]);
        house.say(session, "and now?").await;
        tab.until("stream_end").await;
        let sent = format!("{:?}", house.asked().last().unwrap().messages);
        assert!(!sent.contains("musing over it"), "{sent}");
    });
}

#[test]
fn broken_calls_are_answered_to_the_model_and_end_nothing() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([
            Say::Call("nothing", json!({})),
            Say::Call("filesystem", json!("{\"action\": ")),
            Say::Call("filesystem", json!({"action": "read"})),
        ]);
        house.script([Say::Text("sorry".into())]);
        house.say(session, "go").await;
        let frames = tab.until("stream_end").await;
        let results: Vec<_> = frames.iter().filter(|f| f["type"] == "tool_call").collect();
        assert_eq!(results.len(), 3);
        assert!(results.iter().all(|result| result["success"] == false));
    });
}

#[test]
fn at_its_limit_the_model_says_how_things_stand() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        for n in 0..4 {
            house.script([write_call(&format!("{n}"), "x")]);
        }
        house.script([Say::Text("half done".into())]);
        house.say(session, "go").await;
        let frames = tab.until("stream_end").await;
        assert_eq!(frames.last().unwrap()["completed"], false);
        assert_eq!(frames.last().unwrap()["content"], "half done");
        let requests = house.requests();
        assert_eq!(requests.len(), 5);
        assert!(requests[4].tools.is_empty() && !requests[3].tools.is_empty());
    });
}

#[test]
fn silence_is_asked_once_more_and_then_is_an_error() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([]);
        house.script([Say::Text("  \n".into())]);
        house.say(session, "hi").await;
        let frames = tab.until("error").await;
        assert_eq!(frames.last().unwrap()["code"], "empty_reply");
        assert_eq!(house.requests().len(), 2);
    });
}

#[test]
fn a_message_during_a_run_waits_and_is_answered_next() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Text("one".into()), Say::Hold]);
        house.script([Say::Text("two".into())]);
        house.say(session, "first").await;
        tab.until("stream_delta").await;
        let second = house
            .engine
            .send(house.user, session, input("second"))
            .await
            .unwrap();
        assert!(second.queued);
        house.release();
        let frames = tab.until("stream_end").await;
        assert_eq!(frames.last().unwrap()["content"], "one");
        let frames = tab.until("stream_end").await;
        assert_eq!(frames.last().unwrap()["content"], "two");
        assert_eq!(frames.last().unwrap()["run_id"], json!(second.run_id));
    });
}

#[test]
fn a_waiting_message_can_be_changed_and_withdrawn() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Text("one".into()), Say::Hold]);
        house.say(session, "first").await;
        tab.until("stream_delta").await;
        let (user, engine) = (house.user, &house.engine);
        let keep = engine.send(user, session, input("b")).await.unwrap();
        let drop = engine.send(user, session, input("c")).await.unwrap();
        engine
            .edit_queued(user, session, keep.message_id, "better".into())
            .await
            .unwrap();
        engine
            .withdraw(user, session, drop.message_id)
            .await
            .unwrap();
        let error = engine
            .withdraw(user, session, drop.message_id)
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::MessageNotFound);
        house.release();
        tab.until("stream_end").await;
        tab.until("stream_end").await;
        let snapshot = engine.snapshot(user, session).await.unwrap();
        let said: Vec<_> = snapshot
            .messages
            .iter()
            .filter(|m| m.role == Role::User)
            .collect();
        assert_eq!(said.len(), 2);
        assert_eq!(said[1].content.as_deref(), Some("better"));
    });
}

#[test]
fn the_same_client_id_twice_is_one_message() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        let mut message = input("once");
        message.client_id = Some("c1".into());
        let (a, b) = tokio::join!(
            house.engine.send(house.user, session, message.clone()),
            house.engine.send(house.user, session, message.clone()),
        );
        let (a, b) = (a.unwrap(), b.unwrap());
        assert_eq!(a.message_id, b.message_id);
        assert!(a.duplicate != b.duplicate);
        tab.until("stream_end").await;
        let again = house
            .engine
            .send(house.user, session, message)
            .await
            .unwrap();
        assert!(again.duplicate);
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        assert_eq!(snapshot.messages.len(), 2);
    });
}

#[test]
fn a_plain_run_gives_its_answer_and_is_refused_while_another_goes() {
    with_house(|house| async move {
        let session = house.session().await;
        house.script([Say::Text("plain".into())]);
        let answer = house
            .engine
            .run_plain(house.user, session, plain("q"))
            .await
            .unwrap();
        assert_eq!(answer.content, "plain");
        assert!(answer.completed);
        let mut tab = house.tab(session, Some(0)).await;
        tab.until("stream_end").await;
        house.script([Say::Text("x".into()), Say::Hold]);
        house.say(session, "busy").await;
        let error = house
            .engine
            .run_plain(house.user, session, plain("q"))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::SessionBusy);
        house.release();
        tab.until("stream_end").await;
    });
}

#[test]
fn a_restart_keeps_the_conversation() {
    in_system(|runtime, dir| async move {
        let house = House::open(&dir, runtime.clone()).await;
        let session = house.session().await;
        house
            .engine
            .run_plain(house.user, session, plain("remember me"))
            .await
            .unwrap();
        house
            .engine
            .shutdown(std::time::Duration::from_secs(5))
            .await;
        let house = House::open(&dir, runtime).await;
        house
            .engine
            .run_plain(house.user, session, plain("who am I"))
            .await
            .unwrap();
        // The prompt and the conversation.
        assert_eq!(house.requests()[0].messages.len(), 4);
    });
}

#[test]
fn a_deleted_session_is_gone_and_can_be_had_back() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([write_call("keep.txt", "x"), Say::Text("ok".into())]);
        house.say(session, "hi").await;
        tab.until("stream_end").await;
        let (user, engine) = (house.user, &house.engine);
        engine.delete(user, session).await.unwrap();
        assert!(tab.ended().await);
        assert_eq!(
            engine.snapshot(user, session).await.unwrap_err().code,
            ErrorCode::SessionNotFound
        );
        assert!(
            !house
                .dir
                .join("session_files")
                .join(session.to_string())
                .exists()
        );
        engine.restore(user, session).await.unwrap();
        assert!(
            house
                .dir
                .join("session_files")
                .join(session.to_string())
                .join("keep.txt")
                .exists()
        );
        assert_eq!(
            engine.snapshot(user, session).await.unwrap().messages.len(),
            4
        );
    });
}

#[test]
fn a_deletion_that_is_taken_back_twice_at_once_is_taken_back_once_with_its_files() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([write_call("uploads/keep.txt", "x"), Say::Text("ok".into())]);
        house.say(session, "hi").await;
        tab.until("stream_end").await;
        let (user, engine) = (house.user, &house.engine);
        engine.delete(user, session).await.unwrap();
        let back = || engine.restore(user, session);
        let (one, two) = tokio::join!(back(), back());
        let refused = [one, two].into_iter().filter_map(Result::err);
        let codes: Vec<ErrorCode> = refused.map(|error| error.code).collect();
        assert_eq!(codes, [ErrorCode::SessionNotFound]);
        let workspace = house.dir.join("session_files").join(session.to_string());
        assert!(workspace.join("uploads/keep.txt").exists());
        let snapshot = engine.snapshot(user, session).await.unwrap();
        assert_eq!(snapshot.messages.len(), 4);
    });
}
