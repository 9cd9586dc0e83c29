//! Commits of sessions in whose midst a run goes: from the moment that the journal is asked to
//! the one when they are durable.

use std::time::SystemTime;

use super::span::{Place, Span, Timed};
use super::{InRun, Traces};
use crate::domain::session::write::Write;
use crate::protocol::ids::RunId;
use crate::store::{Commit, Store, StoreError};

/// One commit's span.
#[derive(Debug)]
pub(crate) struct CommitSpan(Timed);

impl CommitSpan {
    /// Of a commit that is handed over now, of a session with this run in the foreground. None
    /// where nothing is traced, no run goes, or only streamed text is logged.
    pub(crate) fn begin(commit: &Commit, foreground: Option<RunId>, store: &Store) -> Option<Self> {
        let traces = super::on()?;
        Self::of(traces, commit, foreground, store.system())
    }

    pub(super) fn of(
        traces: &'static Traces,
        commit: &Commit,
        foreground: Option<RunId>,
        system: &'static str,
    ) -> Option<Self> {
        if commit.is_text() {
            return None;
        }
        let writes = &commit.writes;
        let run_id = foreground.or_else(|| starting(writes))?;
        let run = InRun {
            session_id: commit.session_id,
            run_id,
        };
        Some(Self(Timed::begin(traces, span(run, writes.len(), system))))
    }

    pub(crate) fn ended(mut self, result: &Result<(), StoreError>) {
        if result.is_err() {
            self.0.change(|span| span.fail("store_unavailable"));
        }
    }
}

/// The run that begins with these writes.
fn starting(writes: &[Write]) -> Option<RunId> {
    writes.iter().find_map(|write| match write {
        Write::RunStarted(row) => Some(row.run_id),
        _ => None,
    })
}

fn span(run: InRun, writes: usize, system: &'static str) -> Span {
    let InRun { session_id, run_id } = run;
    let mut span = Span::new(Place::within(run_id), "COMMIT", SystemTime::now()).client();
    span.set("db.system.name", system);
    span.set("db.operation.name", "COMMIT");
    // The convention has no batch of one.
    if writes > 1 {
        let writes = i64::try_from(writes).unwrap_or(i64::MAX);
        span.set("db.operation.batch.size", writes);
    }
    span.set("gen_ai.conversation.id", session_id.to_string());
    span
}
