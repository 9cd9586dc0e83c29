use std::sync::Arc;

use chrono::DateTime;

use super::*;
use crate::domain::session::tests::store::empty as stored_session;
use crate::domain::session::write::RunRow;

fn empty() -> State {
    let loaded = stored_session();
    State::from_loaded(loaded, ConsentMode::default())
}

fn message(run_id: RunId, client_id: Option<String>) -> Message {
    Message {
        client_id,
        ..Message::user(
            MessageId::new(),
            run_id,
            "hi".to_owned(),
            DateTime::UNIX_EPOCH,
        )
    }
}

fn started(run_id: RunId, parent_run_id: Option<RunId>) -> Write {
    Write::RunStarted(RunRow {
        run_id,
        parent_run_id,
        call_id: None,
        message_id: MessageId::new(),
        profile_id: String::new(),
        backend: String::new(),
        model: String::new(),
        started_at: DateTime::UNIX_EPOCH,
    })
}

#[test]
fn the_newest_client_ids_are_known() {
    let mut state = empty();
    for n in 0..1_000 {
        state.apply_write(&Write::Message(Arc::new(message(
            RunId::new(),
            Some(n.to_string()),
        ))));
        // From the queue into the conversation: one place, not two.
        state.apply_write(&Write::Message(Arc::new(message(
            RunId::new(),
            Some(n.to_string()),
        ))));
    }
    let known = (0..1_000).filter(|n| state.accepted(&n.to_string()).is_some());
    assert!(known.eq(1_000 - CLIENT_IDS..1_000));
    assert_eq!(state.message_count, 2_000);
}

#[test]
fn a_child_leaves_the_foreground_alone() {
    let mut state = empty();
    let (run, child, next) = (RunId::new(), RunId::new(), RunId::new());
    state.apply_write(&Write::Message(Arc::new(message(run, None))));
    state.apply_write(&started(run, None));
    let call = CallId::new();
    state.started_calls.insert(call.clone(), false);
    state.apply_write(&started(child, Some(run)));
    state.apply_write(&Write::RunEnded {
        run_id: child,
        state: RunState::Failed,
        reason: None,
        iterations: 1,
        prompt_tokens: 0,
        completion_tokens: 0,
        cached_tokens: 0,
        leaked_calls: 0,
        at: DateTime::UNIX_EPOCH,
    });
    let last = state.last_run.clone().unwrap();
    assert_eq!((last.run_id, last.state), (run, RunState::Running));
    assert!(state.started_calls.contains_key(&call));
    assert_eq!(state.run_messages.len(), 1);
    // A run that goes on from another one brings no message of its own.
    state.apply_write(&started(next, None));
    assert_eq!(state.run_messages.len(), 0);
}

#[test]
fn a_context_is_of_the_branch_that_is_shown() {
    let mut state = empty();
    let starts = |start| ContextState {
        start,
        ..ContextState::default()
    };
    let context = |branch_id, start| Write::Context {
        branch_id,
        context: starts(start),
    };
    let forked = Branch {
        id: 1,
        parent_id: Some(0),
        fork_ordinal: 4,
        context: starts(2),
    };
    state.apply_write(&context(state.branch_id, 7));
    state.apply_write(&Write::Fork(forked));
    assert_eq!((state.context().start, state.path().len()), (2, 2));
    state.apply_write(&context(state.branch_id, 5));
    state.apply_write(&Write::ShowBranch(0));
    assert_eq!((state.context().start, state.path().len()), (7, 1));
    state.apply_write(&Write::ShowBranch(1));
    assert_eq!(state.context().start, 5);
}
