//! Runs, as their session tells them: from their stored start to their stored end. So one that a
//! crash cut off has its span too, told by the process that finds it.

use std::collections::HashMap;
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use opentelemetry::trace::SpanContext;

use super::Traces;
use super::calls::set_usage;
use super::span::{Place, Span, link_to_call, link_to_run};
use crate::domain::session::change::Change;
use crate::domain::session::state::{Child, State};
use crate::domain::session::write::{RunRow, Write};
use crate::metrics::outcome_of_run;
use crate::protocol::ids::{RunId, SessionId};
use crate::protocol::session::RunState;

/// The spans of a live session's runs. Lives in its actor, and goes with it.
#[derive(Debug)]
pub(crate) struct RunSpans {
    traces: &'static Traces,
    session_id: SessionId,
    going: HashMap<RunId, Going>,
}

/// What is known of a run until it ends.
#[derive(Debug)]
struct Going {
    began: SystemTime,
    /// This and what follows is empty where it is not known.
    profile_id: String,
    backend: String,
    model: String,
    /// The call that sent a subagent out; the run that this one goes on from.
    link: Option<SpanContext>,
}

impl RunSpans {
    /// Of a session that stands so. None where nothing is traced.
    pub(crate) fn new(told: &State) -> Option<Self> {
        super::on().map(|traces| Self::of(traces, told))
    }

    pub(super) fn of(traces: &'static Traces, told: &State) -> Self {
        let foreground = told.running().map(|run| {
            let going = Going {
                began: run.started_at.into(),
                profile_id: told.summary.profile_id.clone(),
                backend: String::new(),
                model: run.model.clone(),
                link: None,
            };
            (run.run_id, going)
        });
        let children = told.children.iter().map(|(id, child)| (*id, lost(child)));
        Self {
            traces,
            session_id: told.summary.id,
            going: foreground.into_iter().chain(children).collect(),
        }
    }

    /// A session that stood as `before` has committed this change and tells it.
    pub(crate) fn told(&mut self, before: &State, change: &Change) {
        for write in &change.writes {
            match write {
                Write::RunStarted(row) => {
                    self.going.insert(row.run_id, started(before, change, row));
                }
                Write::RunModel {
                    run_id,
                    backend,
                    model,
                } => {
                    if let Some(going) = self.going.get_mut(run_id) {
                        going.backend.clone_from(backend);
                        going.model.clone_from(model);
                    }
                }
                Write::RunEnded {
                    run_id,
                    state,
                    iterations,
                    prompt_tokens,
                    completion_tokens,
                    ..
                } => {
                    if let Some(going) = self.going.remove(run_id) {
                        let mut span = going.span(self.session_id, *run_id);
                        if *iterations > 0 {
                            set_usage(&mut span, *prompt_tokens, *completion_tokens);
                            span.set("navi.iterations", i64::from(*iterations));
                        }
                        set_outcome(&mut span, *state);
                        self.traces.tell(span, SystemTime::now());
                    }
                }
                _ => {}
            }
        }
    }
}

/// A run that begins with this change.
fn started(before: &State, change: &Change, row: &RunRow) -> Going {
    let sent_out = row.parent_run_id.zip(row.call_id.as_ref());
    let link = match sent_out {
        Some((parent, call)) => Some(link_to_call(parent, call)),
        None => goes_on_from(before, change, row).map(link_to_run),
    };
    Going {
        began: row.started_at.into(),
        profile_id: row.profile_id.clone(),
        backend: row.backend.clone(),
        model: row.model.clone(),
        link,
    }
}

/// The run before this one, where that was cut off, failed or ran into a limit and this one
/// answers the same message. Its end may come with the same change.
fn goes_on_from(before: &State, change: &Change, row: &RunRow) -> Option<RunId> {
    let last = before.last_run.as_ref()?;
    let end = change.writes.iter().find_map(|write| match write {
        Write::RunEnded { run_id, state, .. } if *run_id == last.run_id => Some(*state),
        _ => None,
    });
    let unfinished = matches!(
        end.unwrap_or(last.state),
        RunState::Interrupted | RunState::Limited | RunState::Failed
    );
    (unfinished && last.message_id == row.message_id).then_some(last.run_id)
}

/// A subagent of a process that is gone.
fn lost(child: &Child) -> Going {
    let run = child.origin;
    let parent = run.parent_run_id;
    Going {
        began: born(run.run_id),
        profile_id: String::new(),
        backend: String::new(),
        model: String::new(),
        link: parent.map(|parent| link_to_call(parent, &child.call_id)),
    }
}

/// When the id was made.
fn born(run: RunId) -> SystemTime {
    let made = run.0.get_timestamp().map(|made| made.to_unix());
    let made = made.and_then(|(seconds, nanos)| {
        DateTime::<Utc>::from_timestamp(i64::try_from(seconds).ok()?, nanos)
    });
    made.map_or_else(SystemTime::now, SystemTime::from)
}

impl Going {
    fn span(self, session_id: SessionId, run_id: RunId) -> Span {
        let mut span = Span::new(Place::run(run_id), "invoke_agent navi", self.began);
        span.set("gen_ai.operation.name", "invoke_agent");
        span.set("gen_ai.agent.name", "navi");
        span.set("gen_ai.agent.version", env!("CARGO_PKG_VERSION"));
        span.set("gen_ai.conversation.id", session_id.to_string());
        for (key, text) in [
            ("gen_ai.provider.name", self.backend),
            ("gen_ai.request.model", self.model),
            ("navi.profile", self.profile_id),
        ] {
            if !text.is_empty() {
                span.set(key, text);
            }
        }
        if let Some(link) = self.link {
            span.link(link);
        }
        span
    }
}

fn set_outcome(span: &mut Span, state: RunState) {
    if let Some(outcome) = outcome_of_run(state) {
        span.set("navi.outcome", outcome);
    }
    match state {
        RunState::Failed => span.fail("run_failed"),
        RunState::Interrupted => span.fail("run_interrupted"),
        RunState::Running | RunState::Completed | RunState::Limited | RunState::Stopped => {}
    }
}
