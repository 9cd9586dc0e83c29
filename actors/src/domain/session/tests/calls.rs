//! Model calls, as a session keeps them.

use chrono::{DateTime, TimeDelta, Utc};

use super::store::empty;
use super::world::policy;
use crate::domain::model_calls::{ModelCall, Part, Prompt};
use crate::domain::session::write::Write;
use crate::domain::session::{PARTS_KNOWN_FOR, Session};
use crate::protocol::ids::RunId;
use crate::protocol::inspect::{CallKind, CallOutcome};

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
