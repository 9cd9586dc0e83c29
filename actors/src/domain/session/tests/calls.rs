//! Model calls, as a session keeps them.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::store::empty;
use super::world::{NOW, policy};
use crate::domain::model_calls::{ModelCall, Part, Prompt};
use crate::domain::session::state::TokensUsed;
use crate::domain::session::stored::{LoadedSession, StoredRun};
use crate::domain::session::write::{RunRow, Write};
use crate::domain::session::{PARTS_KNOWN_FOR, Session};
use crate::protocol::ids::{CallId, MessageId, RunId};
use crate::protocol::inspect::{CallKind, CallOutcome};
use crate::protocol::session::RunState;

fn call(started_at: DateTime<Utc>) -> Box<ModelCall> {
    Box::new(ModelCall {
        kind: CallKind::Turn,
        after_seq: None,
        started_at,
        first_chunk_ms: None,
        duration_ms: 1,
        backend: String::new(),
        model: String::new(),
        usage: None,
        outcome: CallOutcome::Done,
        attempts: 1,
        message_id: None,
        reply: None,
        own: Vec::new(),
        prompt: Prompt {
            recipe: String::new(),
            parts: vec![Part {
                sha256: "the system message".to_owned(),
                body: "You are Navi.".into(),
            }],
            sha256: String::new(),
        },
    })
}

/// The store may have forgotten a part that only calls of another day named, or calls long ago.
#[test]
fn a_part_is_written_again_on_another_day_and_after_many_calls() {
    let (mut session, _, _) = Session::load(empty(), policy());
    let mut writes_part = |at| {
        session.keep_call(RunId::new(), call(at));
        match session.out.change.writes.pop() {
            Some(Write::ModelCall { call, .. }) => !call.prompt.parts.is_empty(),
            other => panic!("no call: {other:?}"),
        }
    };
    let noon = DateTime::UNIX_EPOCH + TimeDelta::hours(12);
    assert!(writes_part(noon));
    assert!(!writes_part(noon + TimeDelta::hours(11)));
    assert!(writes_part(noon + TimeDelta::hours(13)));
    for _ in 1..PARTS_KNOWN_FOR {
        assert!(!writes_part(noon + TimeDelta::hours(14)));
    }
    assert!(writes_part(noon + TimeDelta::hours(15)));
}

#[test]
fn what_runs_used_stays_used_where_a_crash_cut_them_off() {
    let run = RunRow {
        run_id: RunId::new(),
        parent_run_id: None,
        call_id: None,
        message_id: MessageId::new(),
        profile_id: "test".to_owned(),
        backend: String::new(),
        model: String::new(),
        started_at: NOW,
    };
    let child = RunRow {
        run_id: RunId::new(),
        parent_run_id: Some(run.run_id),
        call_id: Some(CallId::new()),
        ..run.clone()
    };
    let used = |prompt| TokensUsed {
        prompt,
        completion: 3,
        cached: 2,
    };
    let (run_id, child_id) = (run.run_id, child.run_id);
    let loaded = LoadedSession {
        running_children: vec![child],
        last_run: Some(StoredRun {
            row: run,
            state: RunState::Running,
            reason: None,
            loop_state: None,
        }),
        used: [(run_id, used(7)), (child_id, used(11))].into(),
        ..empty()
    };
    let (mut session, _, found) = Session::load(loaded, policy());
    let closed = session.recover(found, &HashSet::new(), NOW);
    let ended = closed.change.writes.iter().filter_map(|write| match write {
        Write::RunEnded {
            run_id,
            prompt_tokens,
            completion_tokens,
            cached_tokens,
            ..
        } => Some((*run_id, *prompt_tokens, *completion_tokens, *cached_tokens)),
        _ => None,
    });
    let ended: Vec<_> = ended.collect();
    assert_eq!(ended, [(child_id, 11, 3, 2), (run_id, 7, 3, 2)]);
}
