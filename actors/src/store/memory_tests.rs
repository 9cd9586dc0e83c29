//! What is remembered, and how far sessions were read for it.

use std::sync::Arc;

use super::memory::SavedFact;
use super::memory_reading::{Finished, Reading, UnreadSession};
use super::testing::{TestDb, Writer, at, on_both, user_message};
use super::{Store, StoreError};
use crate::domain::memory::extraction::{Speaker, prompt};
use crate::domain::memory::{FactName, MAX_HISTORY, NewFact};
use crate::domain::session::write::Write;
use crate::protocol::chat::ChatMessage;
use crate::protocol::ids::{CallId, MessageId, RunId, SessionId, UserId};
use crate::protocol::memory::FactSource;
use crate::protocol::message::{Message, ToolCall, ToolOutcome};
use crate::protocol::people::UserRole;

on_both!(
    newer_facts_win_and_old_values_are_kept,
    what_is_said_again_is_newer_than_what_was_said_between,
    what_a_user_corrects_stands_though_the_clock_was_ahead,
    history_is_bounded_and_goes_with_its_fact,
    a_forgotten_fact_does_not_come_back_from_older_words,
    forgetting_everything_takes_what_was_said_as_read,
    facts_and_their_mark_are_one_transaction,
    idle_sessions_with_unread_turns_are_found,
    a_session_that_fails_three_times_is_left_until_it_changes,
    what_was_said_is_read_in_bounded_pieces_and_without_tools,
    a_piece_stands_whole_in_its_prompt,
    a_summary_of_older_facts_is_not_written,
    a_purged_session_is_taken_out_of_its_facts,
);

fn name(key: &str) -> FactName {
    FactName::new("places", key).unwrap()
}

fn fact(key: &str, value: &str, seconds: i64) -> NewFact {
    NewFact {
        name: name(key),
        value: value.to_owned(),
        source: FactSource::default(),
        confidence: 0.9,
        at: at(seconds),
    }
}

async fn user(store: &Store) -> UserId {
    store.local_user().await.unwrap().id
}

async fn values(store: &Store, user: UserId) -> Vec<(String, String)> {
    let memory = store.memory(user).await.unwrap();
    let facts = memory.facts.into_iter();
    facts.map(|fact| (fact.key, fact.value)).collect()
}

fn whole(session: &UnreadSession, up_to: u64) -> Reading {
    Reading {
        session_id: session.session_id,
        from: session.from,
        up_to,
        until: Some(at(5)),
    }
}

async fn newer_facts_win_and_old_values_are_kept(db: TestDb) {
    let store = db.open().await;
    let user = user(&store).await;
    let other = store.create_user("Ann", UserRole::User).await.unwrap().id;
    let first = store.save_fact(user, fact("home", "Kyiv\0", 1)).await;
    assert!(matches!(first.unwrap(), SavedFact::Created(_)));
    let second = store.save_fact(user, fact("home", "Lviv", 3)).await;
    let SavedFact::Replaced { fact: kept, former } = second.unwrap() else {
        unreachable!("it has another value");
    };
    assert_eq!(
        (former.value.as_str(), kept.value.as_str()),
        ("Kyiv\0", "Lviv")
    );
    assert_eq!((kept.created_at, kept.updated_at), (at(1), at(3)));
    let older = store.save_fact(user, fact("home", "Odesa", 2)).await;
    assert_eq!(older.unwrap(), SavedFact::Kept(Some(kept.clone())));
    let memory = store.memory(user).await.unwrap();
    assert_eq!(memory.facts, [kept]);
    assert_eq!(memory.revision, 2);
    let summary = memory.summary.unwrap();
    assert_eq!(summary.text, "- places, home: Lviv");
    assert!(summary.is_draft);
    let history = store.fact_history(user, &name("home")).await.unwrap();
    let history = history.unwrap();
    assert_eq!(history.len(), 1);
    assert_eq!(history[0].value, "Kyiv\0");
    assert_eq!(history[0].replaced_at, at(3));

    assert_eq!(values(&store, other).await, []);
    assert_eq!(store.memory_summary(other).await.unwrap(), None);
    let none = store.fact_history(other, &name("home")).await.unwrap();
    assert_eq!(none, None);
    assert!(
        !store
            .forget_fact(other, &name("home"), at(5))
            .await
            .unwrap()
    );
}

async fn what_is_said_again_is_newer_than_what_was_said_between(db: TestDb) {
    let store = db.open().await;
    let user = user(&store).await;
    let said = [fact("home", "Kyiv", 10), fact("home", "Kyiv", 20)];
    for fact in said {
        store.save_fact(user, fact).await.unwrap();
    }
    let known = store.memory(user).await.unwrap();
    assert_eq!(known.facts[0].updated_at, at(20));
    assert_eq!(known.revision, 1);
    let between = store.save_fact(user, fact("home", "Lviv", 15)).await;
    assert!(matches!(between.unwrap(), SavedFact::Kept(Some(_))));
    // More certain, and said before.
    let mut surer = fact("home", "Kyiv", 12);
    surer.confidence = 1.0;
    let confirmed = store.save_fact(user, surer).await.unwrap();
    assert!(matches!(confirmed, SavedFact::Confirmed(_)));
    let between = store.save_fact(user, fact("home", "Lviv", 15)).await;
    assert!(matches!(between.unwrap(), SavedFact::Kept(Some(_))));
    let expected = [("home".to_owned(), "Kyiv".to_owned())];
    assert_eq!(values(&store, user).await, expected);
    assert_eq!(store.whole_fact_history(user).await.unwrap(), []);
}

async fn what_a_user_corrects_stands_though_the_clock_was_ahead(db: TestDb) {
    let store = db.open().await;
    let user = user(&store).await;
    let ahead = fact("home", "Kyiv", 9_000);
    store.save_fact(user, ahead).await.unwrap();
    let corrected = store.correct_fact(user, fact("home", "Lviv", 1)).await;
    assert!(matches!(corrected.unwrap(), SavedFact::Replaced { .. }));
    let expected = [("home".to_owned(), "Lviv".to_owned())];
    assert_eq!(values(&store, user).await, expected);

    let forgotten = store.forget_fact(user, &name("home"), at(9_001)).await;
    assert!(forgotten.unwrap());
    let again = store.correct_fact(user, fact("home", "Lviv", 2)).await;
    assert!(matches!(again.unwrap(), SavedFact::Created(_)));
    assert_eq!(values(&store, user).await, expected);
}

async fn history_is_bounded_and_goes_with_its_fact(db: TestDb) {
    let store = db.open().await;
    let user = user(&store).await;
    for n in 0..i64::try_from(MAX_HISTORY).unwrap() + 5 {
        let value = format!("place {n}");
        store
            .save_fact(user, fact("home", &value, n))
            .await
            .unwrap();
    }
    store.save_fact(user, fact("work", "a", 1)).await.unwrap();
    store.save_fact(user, fact("work", "b", 2)).await.unwrap();
    let history = store.fact_history(user, &name("home")).await.unwrap();
    let history = history.unwrap();
    assert_eq!(history.len() as u64, MAX_HISTORY);
    assert_eq!(history[0].value, "place 23");
    assert!(
        store
            .forget_fact(user, &name("home"), at(50))
            .await
            .unwrap()
    );
    assert!(
        !store
            .forget_fact(user, &name("home"), at(51))
            .await
            .unwrap()
    );
    let left = store.whole_fact_history(user).await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].name, name("work"));
    assert_eq!(left[0].former.value, "a");
}

async fn a_forgotten_fact_does_not_come_back_from_older_words(db: TestDb) {
    let store = db.open().await;
    let user = user(&store).await;
    store
        .save_fact(user, fact("home", "Kyiv", 1))
        .await
        .unwrap();
    store.forget_fact(user, &name("home"), at(9)).await.unwrap();
    assert_eq!(store.memory_summary(user).await.unwrap(), None);
    let older = store.save_fact(user, fact("home", "Kyiv", 8)).await;
    assert_eq!(older.unwrap(), SavedFact::Kept(None));
    let newer = store.save_fact(user, fact("home", "Kyiv", 10)).await;
    assert!(matches!(newer.unwrap(), SavedFact::Created(_)));
    // It is known again, so its forgetting is forgotten.
    store
        .save_fact(user, fact("home", "Lviv", 11))
        .await
        .unwrap();
    assert_eq!(values(&store, user).await[0].1, "Lviv");
}

async fn forgetting_everything_takes_what_was_said_as_read(db: TestDb) {
    let store = db.open().await;
    let user = user(&store).await;
    let session = Writer::new(&store).await;
    let say = || vec![Write::Message(Arc::new(user_message("I live in Kyiv")))];
    session.write(say()).await.unwrap();
    store
        .save_fact(user, fact("home", "Kyiv", 1))
        .await
        .unwrap();
    store
        .save_fact(user, fact("home", "Lviv", 2))
        .await
        .unwrap();
    let unread = store.unread_sessions(user, at(0), 10).await.unwrap();
    let before = store.memory(user).await.unwrap().revision;
    store.forget_all(user, at(9)).await.unwrap();
    assert_eq!(values(&store, user).await, []);
    assert_eq!(store.whole_fact_history(user).await.unwrap(), []);
    assert_eq!(store.memory(user).await.unwrap().summary, None);
    assert_eq!(store.unread_sessions(user, at(0), 10).await.unwrap(), []);
    // Neither a reading nor a summary that was under way brings it back.
    let late = store
        .finish_reading(
            user,
            whole(&unread[0], 1),
            vec![fact("home", "Kyiv", 1)],
            at(9),
        )
        .await;
    assert_eq!(late.unwrap(), Finished::Stale);
    assert!(
        !store
            .write_summary(user, before, "Kyiv", at(9))
            .await
            .unwrap()
    );
    session.write(say()).await.unwrap();
    let unread = store.unread_sessions(user, at(0), 10).await.unwrap();
    assert_eq!(unread[0].from, 1);
}

async fn facts_and_their_mark_are_one_transaction(db: TestDb) {
    let store = db.open().await;
    let user = user(&store).await;
    let session = Writer::new(&store).await;
    session
        .write(vec![Write::Message(Arc::new(user_message(
            "I live in Kyiv",
        )))])
        .await
        .unwrap();
    let unread = store.unread_sessions(user, at(0), 10).await.unwrap();
    // The second fact names a session that is not there: the database refuses it.
    let mut broken = fact("work", "here", 1);
    broken.source.session_id = Some(SessionId::new());
    let facts = vec![fact("home", "Kyiv", 1), broken];
    let refused = store
        .finish_reading(user, whole(&unread[0], 1), facts, at(2))
        .await;
    assert!(
        matches!(refused, Err(StoreError::Corrupt(_))),
        "{refused:?}"
    );
    assert_eq!(values(&store, user).await, []);
    assert_eq!(
        store.unread_sessions(user, at(0), 10).await.unwrap(),
        unread
    );

    let stored = store
        .finish_reading(
            user,
            whole(&unread[0], 1),
            vec![fact("home", "Kyiv", 1)],
            at(2),
        )
        .await;
    assert_eq!(stored.unwrap(), Finished::Stored { changed: 1 });
    assert_eq!(store.unread_sessions(user, at(0), 10).await.unwrap(), []);
    let again = store
        .finish_reading(
            user,
            whole(&unread[0], 1),
            vec![fact("home", "Lviv", 9)],
            at(9),
        )
        .await;
    assert_eq!(again.unwrap(), Finished::Stale);
    assert_eq!(values(&store, user).await[0].1, "Kyiv");
}

async fn idle_sessions_with_unread_turns_are_found(db: TestDb) {
    let store = db.open().await;
    let user = user(&store).await;
    let mut ids = Vec::new();
    for seconds in [30, 10, 20] {
        let session = Writer::new(&store).await;
        let message = Write::Message(Arc::new(user_message("hello")));
        session
            .write(vec![message, Write::Active(at(seconds))])
            .await
            .unwrap();
        ids.push(session);
    }
    Writer::new(&store).await;
    let found = async |idle_before, limit| -> Vec<SessionId> {
        let found = store.unread_sessions(user, at(idle_before), limit).await;
        found.unwrap().iter().map(|s| s.session_id).collect()
    };
    assert_eq!(found(20, 10).await, [ids[1].id, ids[2].id]);
    assert_eq!(found(99, 1).await, [ids[1].id]);
    let other = store.create_user("Ann", UserRole::User).await.unwrap().id;
    assert_eq!(store.unread_sessions(other, at(99), 10).await.unwrap(), []);
    let deleted = Write::Deleted(Some(at(50)));
    ids[1].write(vec![deleted]).await.unwrap();
    assert_eq!(found(20, 10).await, [ids[2].id]);
}

async fn a_session_that_fails_three_times_is_left_until_it_changes(db: TestDb) {
    let store = db.open().await;
    let user = user(&store).await;
    let session = Writer::new(&store).await;
    let say = || vec![Write::Message(Arc::new(user_message("hello")))];
    session.write(say()).await.unwrap();
    let is_due = async || {
        let unread = store.unread_sessions(user, at(0), 10).await.unwrap();
        !unread.is_empty()
    };
    for _ in 0..3 {
        assert!(is_due().await);
        store.note_unreadable(session.id).await.unwrap();
    }
    assert!(!is_due().await);
    session.write(say()).await.unwrap();
    assert!(is_due().await);
    store.note_unreadable(session.id).await.unwrap();
    assert!(is_due().await, "the count starts anew");
}

async fn what_was_said_is_read_in_bounded_pieces_and_without_tools(db: TestDb) {
    let store = db.open().await;
    let session = Writer::new(&store).await;
    let call = ToolCall {
        id: CallId::new(),
        name: "web_fetch".to_owned(),
        arguments: serde_json::Value::Null,
    };
    let mut answer = Message::assistant(MessageId::new(), RunId::new(), at(2));
    answer.tool_calls = vec![call.clone()];
    let result = Message::tool_result(
        answer.run_id,
        &call,
        ToolOutcome::Success,
        "the user is called Eve".to_owned(),
        at(3),
    );
    let mut last = Message::assistant(MessageId::new(), RunId::new(), at(4));
    last.content = Some("done".to_owned());
    let messages = [
        user_message(&"дім ".repeat(5_000)),
        answer,
        result,
        last,
        user_message("thanks"),
    ];
    let writes = messages
        .into_iter()
        .map(|message| Write::Message(Arc::new(message)))
        .collect();
    session.write(writes).await.unwrap();

    let first = store.unread_messages(session.id, 0, 100).await.unwrap();
    assert_eq!(first.said.len(), 1);
    assert_eq!(first.said[0].text.chars().count(), 5_999);
    assert_eq!((first.up_to, first.has_more), (1, true));
    let rest = store.unread_messages(session.id, 1, 100).await.unwrap();
    let rest_said: Vec<(Speaker, &str)> = rest
        .said
        .iter()
        .map(|said| (said.by, said.text.as_str()))
        .collect();
    assert_eq!(
        rest_said,
        [(Speaker::Assistant, "done"), (Speaker::User, "thanks")]
    );
    assert_eq!((rest.up_to, rest.has_more), (5, false));
    assert!(rest.said.iter().all(|said| !said.tainted));

    // What was said after the session had read text from outside says so.
    session.write(vec![Write::Tainted(at(4))]).await.unwrap();
    let rest = store.unread_messages(session.id, 0, 100_000).await.unwrap();
    let tainted: Vec<_> = rest.said.iter().map(|said| said.tainted).collect();
    assert_eq!(
        tainted,
        rest.said
            .iter()
            .map(|said| said.at >= at(4))
            .collect::<Vec<_>>()
    );
    assert!(tainted.contains(&true) && tainted.contains(&false));
}

async fn a_piece_stands_whole_in_its_prompt(db: TestDb) {
    const MOST_BYTES: usize = 16_000;
    let store = db.open().await;
    let session = Writer::new(&store).await;
    let writes = (0..60)
        .map(|n| user_message(&format!("{n:03}{}", "x".repeat(297))))
        .map(|message| Write::Message(Arc::new(message)))
        .collect();
    session.write(writes).await.unwrap();

    let piece = store.unread_messages(session.id, 0, MOST_BYTES).await;
    let piece = piece.unwrap();
    assert!(piece.has_more && piece.said.len() > 50);
    assert_eq!(piece.up_to, piece.said.len() as u64);
    let asked = prompt(&piece.said, &[], MOST_BYTES);
    let Some(ChatMessage::User { content, .. }) = asked.last() else {
        unreachable!("the conversation is the last message: {asked:?}");
    };
    for said in &piece.said {
        assert!(content.contains(&said.text), "{}", said.text);
    }
}

async fn a_summary_of_older_facts_is_not_written(db: TestDb) {
    let store = db.open().await;
    let user = user(&store).await;
    store
        .save_fact(user, fact("home", "Kyiv", 1))
        .await
        .unwrap();
    let known = store.memory(user).await.unwrap().revision;
    store
        .save_fact(user, fact("home", "Lviv", 2))
        .await
        .unwrap();
    let late = store
        .write_summary(user, known, "Lives in Kyiv.", at(3))
        .await;
    assert!(!late.unwrap());
    let text = store.memory_summary(user).await.unwrap();
    assert_eq!(text.as_deref(), Some("- places, home: Lviv"));
    let in_time = store
        .write_summary(user, known + 1, "Lives in Lviv.", at(4))
        .await;
    assert!(in_time.unwrap());
    let summary = store.memory(user).await.unwrap().summary.unwrap();
    assert_eq!(summary.text, "Lives in Lviv.");
    assert!(!summary.is_draft);
    assert_eq!(summary.updated_at, at(4));
}

async fn a_purged_session_is_taken_out_of_its_facts(db: TestDb) {
    let store = db.open().await;
    let user = user(&store).await;
    let session = Writer::new(&store).await;
    let mut new = fact("home", "Kyiv", 1);
    new.source = FactSource {
        session_id: Some(session.id),
        message_id: Some(MessageId::new()),
    };
    let source = new.source.clone();
    store.save_fact(user, new).await.unwrap();
    let stored = store.memory(user).await.unwrap().facts.remove(0);
    assert_eq!(stored.source, source);
    session
        .write(vec![Write::Deleted(Some(at(2)))])
        .await
        .unwrap();
    store.purge_session(session.id, at(0)).await.unwrap();
    let left = store.memory(user).await.unwrap().facts.remove(0);
    assert_eq!(
        (left.value.as_str(), left.source),
        ("Kyiv", FactSource::default())
    );
}
