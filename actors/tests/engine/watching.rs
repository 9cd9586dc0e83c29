//! Tabs: whoever joins, whenever, sees the same.

use navi_actors::domain::names;
use navi_actors::protocol::command::SessionChange;
use navi_actors::protocol::error::ErrorCode;
use navi_actors::protocol::limits::PersonLimits;
use navi_actors::protocol::people::UserRole;
use navi_actors::store::{Credentials, KeptLogins};
use serde_json::{Value, json};

use crate::house::{Say, Setup, assert_gapless, text, with_house, with_setup, write_call};

/// Everything that counts, without times: events whole, parts put together.
fn seen(frames: &[Value]) -> (Vec<Value>, String) {
    let events = frames
        .iter()
        .filter(|frame| frame["seq"].is_u64())
        .cloned()
        .collect();
    (events, text(frames, "stream_delta"))
}

#[test]
fn a_tab_that_joins_in_mid_answer_sees_the_same() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut first = house.tab(session, None).await;
        house.script([
            Say::Text("Grüße ".into()),
            Say::Hold,
            Say::Text("🌍 Welt".into()),
            Say::Hold,
            Say::Text("!".into()),
        ]);
        house.say(session, "hi").await;
        let mut a = first.until("stream_delta").await;
        let mut second = house.tab(session, None).await;
        let mut b = second.until("stream_delta").await;
        house.release();
        a.extend(first.until("stream_delta").await);
        let mut third = house.tab(session, Some(1)).await;
        house.release();
        a.extend(first.until("stream_end").await);
        b.extend(second.until("stream_end").await);
        let c = third.until("stream_end").await;
        let mut late = house.tab(session, Some(0)).await;
        let d = late.until("stream_end").await;
        assert_eq!(seen(&a), seen(&b));
        assert_eq!(seen(&a), seen(&d));
        assert_eq!(seen(&a).0[1..], seen(&c).0[..]);
        assert_eq!(seen(&a).1, seen(&c).1);
        assert_eq!(seen(&a).1, "Grüße 🌍 Welt!");
        assert_gapless(&a, 1);
    });
}

#[test]
fn a_cursor_ahead_gets_a_snapshot() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, Some(99)).await;
        let frame = tab.next().await;
        assert_eq!(frame["type"], "resync");
        assert_eq!(frame["reason"], "cursor_ahead");
        assert_eq!(frame["session"]["last_seq"], 0);
        house.say(session, "hi").await;
        let frames = tab.until("stream_end").await;
        assert_gapless(&frames, 1);
    });
}

#[test]
fn a_cursor_from_before_the_log_gets_a_snapshot_and_what_comes() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Text("one".into())]);
        house.say(session, "hi").await;
        let told = tab.until("stream_end").await;
        let last = told.last().unwrap()["seq"].as_u64().unwrap();
        let later = chrono::Utc::now() + chrono::TimeDelta::days(1);
        while house.store.shorten_log(session, later).await.unwrap() {}

        let mut late = house.tab(session, Some(1)).await;
        let frame = late.next().await;
        assert_eq!(
            (&frame["type"], &frame["reason"]),
            (&"resync".into(), &"log_expired".into())
        );
        assert_eq!(frame["session"]["messages"][1]["content"], "one");
        let from = frame["seq"].as_u64().unwrap();
        assert!(from >= last);
        house.script([Say::Text("two".into())]);
        house.say(session, "more").await;
        assert_gapless(&late.until("stream_end").await, from + 1);
        // Who has all of it misses nothing.
        let mut after = house.tab(session, Some(from)).await;
        assert_gapless(&after.until("stream_end").await, from + 1);
    });
}

#[test]
fn a_tab_that_never_reads_is_caught_up_from_the_log() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut idle = house.tab(session, None).await;
        let mut reader = house.tab(session, None).await;
        let words: Vec<Say> = (0..3000).map(|n| Say::Text(format!("{n} "))).collect();
        house.script([write_call("a", "x")]);
        house.script(words.clone());
        house.say(session, "hi").await;
        let a = reader.until("stream_end").await;
        // More frames than the broadcast holds, over several turns.
        for _ in 0..120 {
            house.script([write_call("a", "x")]);
            house.script([Say::Text("z".into())]);
            house.say(session, "more").await;
            reader.until("stream_end").await;
        }
        let b = idle.until("stream_end").await;
        assert_eq!(seen(&a), seen(&b));
    });
}

#[test]
fn a_run_that_waits_says_for_what() {
    with_house(|house| async move {
        let (busy, waits) = (house.session().await, house.session().await);
        let mut first = house.tab(busy, None).await;
        let mut second = house.tab(waits, None).await;
        house.script([Say::Text("Hm".into()), Say::Hold]);
        house.script([Say::Text("ok".into())]);
        house.say(busy, "a secret").await;
        first.until("stream_delta").await;
        house.say(waits, "hi").await;
        let told = second.until("run_waiting").await.pop().unwrap();
        assert_eq!(told["reason"], "lane");
        assert_eq!(
            told["detail"],
            "the model is busy with an answer in another conversation; this is next"
        );
        house.release();
        first.until("stream_end").await;
        second.until("stream_end").await;
    });
}

#[test]
fn a_removal_that_came_no_further_than_the_store_is_told_when_it_is_asked_for_again() {
    let setup = Setup {
        people: Some(PersonLimits {
            runs: 1,
            uploads: 1,
            sessions: 10,
            files_mb: 1,
            tokens_a_day: 0,
            tabs: 10,
        }),
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let ann = house.store.create_user("Ann", UserRole::User).await;
        let ann = ann.unwrap().id;
        let credentials = Credentials {
            name: "Ann".into(),
            name_key: names::key("Ann"),
            password: "$argon2id$".into(),
        };
        let store = &house.store;
        let named = store.set_credentials(ann, credentials, KeptLogins::All);
        named.await.unwrap().unwrap();
        let session = house.session().await;
        let mut page = house.page(ann, UserRole::User);
        page.until("sessions").await;
        let (engine, owner) = (&house.engine, house.user);
        let unknown = engine.remove_session_person(owner, session, ann).await;
        assert_eq!(unknown.unwrap_err().code, ErrorCode::PersonNotFound);
        let alone = engine.standing(owner, session).await.unwrap().summary;
        assert_eq!(alone.shared, None, "nobody ever took part");

        let added = engine.add_session_person(owner, session, "Ann").await;
        assert_eq!(added.unwrap().id, ann);
        page.until("session_changed").await;
        let removed = store.remove_session_person(session, ann).await;
        assert!(removed.unwrap());
        let again = engine.remove_session_person(owner, session, ann).await;
        again.unwrap();
        let told = page.until("session_removed").await.pop().unwrap();
        assert_eq!(told["session_id"], json!(session));
        let title = SessionChange {
            title: Some("not for Ann".into()),
            ..SessionChange::default()
        };
        let named = engine.change(owner, session, title).await.unwrap();
        assert_eq!(named.others().count(), 0);
    });
}
