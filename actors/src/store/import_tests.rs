//! Conversations from files, stored.

use std::sync::Arc;

use super::testing::{TestDb, Writer, at, on_both, user_message};
use super::types::{Commit, Listed, NewSession};
use crate::domain::import::Conversation;
use crate::domain::session::write::Write;
use crate::protocol::approval::ConsentMode;
use crate::protocol::ids::{CallId, MessageId, OwnerId, RunId, SessionId};
use crate::protocol::import::LeftOut;
use crate::protocol::message::{Message, ToolCall, ToolOutcome};

on_both!(
    an_imported_conversation_is_a_session_like_others_and_from_outside,
    an_import_that_breaks_leaves_nothing,
);

fn talk(messages: Vec<Message>) -> Conversation {
    Conversation {
        title: "Rivers".to_owned(),
        tags: vec!["geography".to_owned()],
        created_at: at(0),
        last_active: at(5),
        messages,
        left_out: LeftOut::default(),
    }
}

fn results(calls: [&str; 2]) -> Vec<Message> {
    let run = RunId::new();
    let result = |id: &str| {
        let call = ToolCall {
            id: CallId(id.to_owned()),
            name: "x".to_owned(),
            arguments: serde_json::Value::Null,
        };
        Message::tool_result(run, &call, ToolOutcome::Success, String::new(), at(2))
    };
    calls.map(result).to_vec()
}

async fn an_imported_conversation_is_a_session_like_others_and_from_outside(db: TestDb) {
    let store = db.open().await;
    let user_id = store.local_user().await.unwrap().id;
    let (id, owner) = (SessionId::new(), OwnerId::new());
    let new = NewSession {
        id,
        user_id,
        title: "Rivers".to_owned(),
        profile_id: "secretary".to_owned(),
        model: None,
        mode: ConsentMode::default(),
        ephemeral: false,
        created_at: at(0),
    };
    let said = Message {
        content: Some("To the sea\0.".to_owned()),
        ..Message::assistant(MessageId::new(), RunId::new(), at(2))
    };
    let mut messages = vec![user_message("Where do rivers run?"), said];
    messages.extend(results(["a", "b"]));
    let row = store
        .import_session(new, talk(messages.clone()), &owner, at(100))
        .await
        .unwrap();
    assert_eq!((row.created_at, row.last_active), (at(0), at(5)));
    assert_eq!(row.tags, ["geography"]);
    let listed = store.list_sessions(user_id, Listed::Current).await;
    assert_eq!(listed, Ok(vec![row]));
    let found = store.search(user_id, "rivers", 10, 0).await.unwrap();
    assert_eq!(found.len(), 2);

    let loaded = store.take_session(id, &owner).await.unwrap();
    assert_eq!(loaded.message_count, 4);
    assert_eq!((loaded.tainted_at, loaded.last_run), (Some(at(100)), None));
    let unread = store.unread_sessions(user_id, at(1_000), 10).await;
    assert_eq!(unread, Ok(vec![]));

    let goes_on = user_message("And then?");
    messages.push(goes_on.clone());
    let commit = Commit {
        session_id: id,
        owner,
        epoch: loaded.epoch,
        writes: vec![Write::Message(Arc::new(goes_on))],
    };
    assert_eq!(store.commit_group(vec![commit]).await, [Ok(())]);
    assert_eq!(store.messages(id).await, Ok(messages));
    let unread = store.unread_sessions(user_id, at(1_000), 10).await.unwrap();
    assert_eq!(unread[0].from, 4);
}

async fn an_import_that_breaks_leaves_nothing(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let user_id = store.local_user().await.unwrap().id;
    let new = NewSession {
        id: SessionId::new(),
        user_id,
        title: String::new(),
        profile_id: String::new(),
        model: None,
        mode: ConsentMode::default(),
        ephemeral: false,
        created_at: at(0),
    };
    let twice = talk(results(["a", "a"]));
    let refused = store
        .import_session(new, twice, &writer.owner, at(100))
        .await;
    assert!(refused.is_err());
    let listed = store.list_sessions(user_id, Listed::Current).await.unwrap();
    assert_eq!(listed.len(), 1);
}
