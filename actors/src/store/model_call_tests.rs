//! Model calls: in with their commit, out in their order, and gone with their session.

use std::sync::Arc;

use sea_orm::{EntityTrait, PaginatorTrait};

use super::entities::{model_call, prompt_part, session};
use super::testing::{TestDb, Writer, at, ended, on_both, run, user_message};
use crate::domain::context::{CallOptions, CallSetup, ContextMessage, Conversation};
use crate::domain::history::{Branch, ContextState};
use crate::domain::model_calls::{MAX_OWN_BYTES, ModelCall, Recipe};
use crate::domain::session::write::{RunRow, Write};
use crate::protocol::chat::Usage;
use crate::protocol::ids::{MessageId, RunId, UserId};
use crate::protocol::inspect::{CallKind, CallOutcome, CallReply};
use crate::protocol::message::Message;
use crate::protocol::offered::OfferedTools;
use crate::protocol::prompt::PromptMessage;
use crate::protocol::session::RunState;

on_both!(
    calls_come_back_in_their_order_with_their_replies,
    parts_are_written_once_and_go_with_the_session,
    a_subagents_messages_add_up,
    messages_up_to_one_follow_its_branch,
    runs_are_listed_newest_first_page_by_page,
    another_users_run_is_not_there,
);

fn frame(system: &str) -> CallSetup {
    CallSetup {
        system: PromptMessage::system(system),
        tools: OfferedTools::default(),
        notes: Vec::new(),
        options: CallOptions {
            model: "m".to_owned(),
            temperature: 0.7,
            think: false,
            window: 4096,
            sees_images: true,
            room: None,
            form: None,
        },
    }
}

pub(super) fn call(
    system: &str,
    message_id: Option<MessageId>,
    own: Vec<ContextMessage>,
) -> ModelCall {
    let frame = frame(system);
    let sent = frame.request(&Conversation::default()).request;
    let context = ContextState::default();
    ModelCall {
        kind: CallKind::Turn,
        after_seq: Some(3),
        started_at: at(4),
        first_chunk_ms: Some(20),
        duration_ms: 70,
        backend: "ollama".to_owned(),
        model: "m".to_owned(),
        usage: Some(Usage {
            prompt_tokens: 100,
            completion_tokens: 7,
            cached_tokens: Some(60),
        }),
        outcome: CallOutcome::Done,
        attempts: 2,
        message_id,
        reply: None,
        own,
        prompt: Recipe::of_conversation(frame, &context, None, &sent).unwrap(),
    }
}

pub(super) fn made(run: &RunRow, call: ModelCall) -> Write {
    Write::ModelCall {
        run_id: run.run_id,
        call: Box::new(call),
    }
}

async fn calls_come_back_in_their_order_with_their_replies(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let user = store.local_user().await.unwrap().id;
    let run = run();
    let mut said = Message::assistant(MessageId::new(), run.run_id, at(5));
    said.content = Some("hello".to_owned());
    said.thinking = Some("hm".to_owned());
    let child = RunRow {
        run_id: RunId::new(),
        parent_run_id: Some(run.run_id),
        ..run.clone()
    };
    let asked = ModelCall {
        kind: CallKind::Plan,
        first_chunk_ms: None,
        usage: None,
        outcome: CallOutcome::Failed,
        reply: Some(CallReply::default()),
        ..call("Plan.", None, Vec::new())
    };
    let writes = vec![
        Write::RunStarted(run.clone()),
        Write::RunStarted(child.clone()),
        made(&run, asked),
        made(&run, call("You are Navi.", Some(said.id), Vec::new())),
        Write::Message(Arc::new(said)),
        // It was cut off before it said anything.
        made(
            &run,
            call("You are Navi.", Some(MessageId::new()), Vec::new()),
        ),
        ended(&run, RunState::Stopped),
    ];
    writer.write(writes).await.unwrap();

    let found = store.run_details(user, run.run_id).await.unwrap().unwrap();
    assert_eq!(found.run.run_id, run.run_id);
    assert_eq!(found.run.state, RunState::Stopped);
    assert_eq!(found.run.ended_at, Some(at(9)));
    assert_eq!((found.run.iterations, found.run.prompt_tokens), (2, 1_000));
    assert_eq!(found.children, [child.run_id]);
    let numbers: Vec<u32> = found.calls.iter().map(|call| call.n).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let plan = &found.calls[0];
    assert_eq!(
        (plan.kind, plan.outcome),
        (CallKind::Plan, CallOutcome::Failed)
    );
    assert_eq!((plan.prompt_tokens, plan.first_chunk_ms), (None, None));
    let turn = &found.calls[1];
    assert_eq!((turn.after_seq, turn.started_at), (3, at(4)));
    assert_eq!((turn.first_chunk_ms, turn.duration_ms), (Some(20), 70));
    assert_eq!(turn.cached_tokens, Some(60));
    assert_eq!(
        (turn.prompt_tokens, turn.completion_tokens),
        (Some(100), Some(7))
    );

    let stored = store
        .model_call(user, run.run_id, 2)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.reply.content.as_deref(), Some("hello"));
    assert_eq!(stored.reply.thinking.as_deref(), Some("hm"));
    let parts = store
        .prompt_parts(writer.id, &stored.recipe.names())
        .await
        .unwrap();
    assert!(
        parts.values().any(|body| body == "You are Navi."),
        "{parts:?}"
    );
    let silent = store
        .model_call(user, run.run_id, 3)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(silent.reply, CallReply::default());
    for n in [0, 4] {
        assert_eq!(store.model_call(user, run.run_id, n).await.unwrap(), None);
    }
}

async fn parts_are_written_once_and_go_with_the_session(db: TestDb) {
    let store = db.open().await;
    let (writer, other) = (Writer::new(&store).await, Writer::new(&store).await);
    for writer in [&writer, &other] {
        let run = run();
        let once = vec![
            Write::RunStarted(run.clone()),
            made(&run, call("You are Navi.", None, Vec::new())),
            made(&run, call("You are Navi.", None, Vec::new())),
        ];
        writer.write(once).await.unwrap();
        let again = vec![made(&run, call("You are Navi.", None, Vec::new()))];
        writer.write(again).await.unwrap();
    }
    let counts = async || {
        let parts = prompt_part::Entity::find()
            .count(&store.read)
            .await
            .unwrap();
        let calls = model_call::Entity::find().count(&store.read).await.unwrap();
        (parts, calls)
    };
    // The system message, no tools, an empty context: of each session its own.
    assert_eq!(counts().await, (6, 6));
    session::Entity::delete_by_id(writer.id.0)
        .exec(&store.write)
        .await
        .unwrap();
    assert_eq!(counts().await, (3, 3));
}

async fn a_subagents_messages_add_up(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let run = run();
    let own = |text: &str| vec![user_message(text).into()];
    writer
        .write(vec![
            Write::RunStarted(run.clone()),
            made(&run, call("s", None, own("a\0"))),
            made(&run, call("s", None, Vec::new())),
            made(&run, call("s", None, own(&"x".repeat(MAX_OWN_BYTES)))),
            made(&run, call("s", None, own("d"))),
        ])
        .await
        .unwrap();
    let texts = async |n| -> Vec<String> {
        let all = store.own_messages(run.run_id, n).await.unwrap();
        let texts = all.into_iter().filter_map(|message| message.content);
        texts.collect()
    };
    assert_eq!(texts(2).await, ["a\0"]);
    // What was too long was not kept.
    assert_eq!(texts(4).await, ["a\0", "d"]);
}

async fn messages_up_to_one_follow_its_branch(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let messages = ["a", "b", "c", "d", "e"].map(user_message);
    let ids = messages.clone().map(|message| message.id);
    let [a, b, c, d, e] = messages.map(|message| Write::Message(Arc::new(message)));
    let fork = Branch {
        id: 1,
        parent_id: Some(0),
        fork_ordinal: 2,
        context: ContextState::default(),
    };
    let writes = vec![a, b, c, Write::Fork(fork), d, e];
    writer.write(writes).await.unwrap();
    for (from, last, expected) in [
        (0, Some(ids[4]), "abde"),
        (1, Some(ids[3]), "bd"),
        (0, Some(ids[2]), "abc"),
        (0, Some(ids[1]), "ab"),
        (0, Some(MessageId::new()), ""),
        (0, None, ""),
    ] {
        let found = store.messages_up_to(writer.id, from, last).await.unwrap();
        let texts: String = found.into_iter().filter_map(|it| it.content).collect();
        assert_eq!(texts, expected);
    }
}

async fn runs_are_listed_newest_first_page_by_page(db: TestDb) {
    let store = db.open().await;
    let (writer, other) = (Writer::new(&store).await, Writer::new(&store).await);
    let user = store.local_user().await.unwrap().id;
    let mut ids = Vec::new();
    for n in 0..60 {
        let run = RunRow {
            // Some begin in the same moment.
            started_at: at(n / 3),
            ..run()
        };
        let child = RunRow {
            run_id: RunId::new(),
            parent_run_id: Some(run.run_id),
            ..run.clone()
        };
        ids.push((run.started_at, run.run_id));
        let writes = vec![Write::RunStarted(run), Write::RunStarted(child)];
        writer.write(writes).await.unwrap();
    }
    let elsewhere = RunRow {
        started_at: at(100),
        ..run()
    };
    let writes = vec![Write::RunStarted(elsewhere.clone())];
    other.write(writes).await.unwrap();
    ids.sort();
    ids.reverse();
    let first = store.session_runs(user, writer.id, None).await.unwrap();
    assert_eq!(first.len(), 50);
    let last = first.last().map(|run| run.run_id);
    let second = store.session_runs(user, writer.id, last).await.unwrap();
    let all: Vec<_> = first.iter().chain(&second).collect();
    let listed: Vec<_> = all.iter().map(|run| (run.started_at, run.run_id)).collect();
    assert_eq!(listed, ids);
    let newest = store.newest_runs(user).await.unwrap();
    assert_eq!(newest.len(), 50);
    assert_eq!(newest[0].run_id, elsewhere.run_id);
    // A run of another session is no place in this one.
    let strange = Some(elsewhere.run_id);
    let none = store.session_runs(user, writer.id, strange).await.unwrap();
    assert!(none.is_empty());
}

async fn another_users_run_is_not_there(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let run = run();
    let writes = vec![
        Write::RunStarted(run.clone()),
        made(&run, call("s", None, Vec::new())),
    ];
    writer.write(writes).await.unwrap();
    let user = store.local_user().await.unwrap().id;
    let other = UserId::new();
    assert_eq!(store.run_details(other, run.run_id).await.unwrap(), None);
    assert_eq!(store.model_call(other, run.run_id, 1).await.unwrap(), None);
    assert!(store.session_runs(other, writer.id, None).await.is_err());
    assert!(store.newest_runs(other).await.unwrap().is_empty());
    assert!(store.run_details(user, run.run_id).await.unwrap().is_some());
    // Nor is one of a session that was deleted.
    writer
        .write(vec![Write::Deleted(Some(at(9)))])
        .await
        .unwrap();
    assert_eq!(store.run_details(user, run.run_id).await.unwrap(), None);
    assert!(store.newest_runs(user).await.unwrap().is_empty());
}
