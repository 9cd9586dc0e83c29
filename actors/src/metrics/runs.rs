//! Sessions, their runs, and the tools that those call.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::labels::{
    Make, OfEndedRun, OfRun, OfToolCall, kind_of, long, outcome_of_call, outcome_of_run, short,
};
use crate::domain::session::change::Change;
use crate::domain::session::state::State;
use crate::domain::session::transition::{Effect, StartPoint};
use crate::domain::session::write::Write;
use crate::protocol::event::Event;
use crate::protocol::ids::{Origin, RunId};
use crate::protocol::session::RunState;
use crate::protocol::tool::ToolSource;
use crate::tools::toolbox::Toolbox;

/// The most turns that are on their way to their first request. Those of sessions that died
/// before it are never heard of again.
const TURNS: usize = 4096;

/// See the module.
#[derive(Debug)]
pub(crate) struct Runs {
    started: Family<OfRun, Counter>,
    ended: Family<OfEndedRun, Counter>,
    in_progress: Family<OfRun, Gauge>,
    first_request: Histogram,
    tool_calls: Family<OfToolCall, Histogram, Make>,
    sessions: Gauge,
    waiting: Gauge,
    /// The turns that asked no model yet, and when each was accepted.
    turns: Mutex<HashMap<RunId, Instant>>,
}

impl Runs {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let new = Self {
            started: Family::default(),
            ended: Family::default(),
            in_progress: Family::default(),
            first_request: short(),
            tool_calls: Family::new_with_constructor(long),
            sessions: Gauge::default(),
            waiting: Gauge::default(),
            turns: Mutex::default(),
        };
        registry.register("runs_started", "Runs that began", new.started.clone());
        registry.register(
            "runs_ended",
            "Runs that ended, those among them that an earlier process left open",
            new.ended.clone(),
        );
        registry.register(
            "runs_in_progress",
            "Runs that go now",
            new.in_progress.clone(),
        );
        registry.register_with_unit(
            "turn_first_request",
            "From when a message is accepted, or its turn comes, to the first request to a model",
            Unit::Seconds,
            new.first_request.clone(),
        );
        registry.register_with_unit(
            "tool_call",
            "Tool calls, from their start to their result",
            Unit::Seconds,
            new.tool_calls.clone(),
        );
        registry.register("sessions_live", "Sessions in memory", new.sessions.clone());
        registry.register(
            "messages_waiting",
            "Messages that wait for the run before theirs, of the sessions in memory",
            new.waiting.clone(),
        );
        new.show_zeros();
        new
    }

    /// A rate is only known of what was there before it grew.
    fn show_zeros(&self) {
        for kind in ["foreground", "subagent"] {
            self.started.get_or_create(&OfRun { kind }).inc_by(0);
            self.in_progress.get_or_create(&OfRun { kind }).set(0);
            for state in [
                RunState::Completed,
                RunState::Limited,
                RunState::Stopped,
                RunState::Failed,
                RunState::Interrupted,
            ] {
                if let Some(outcome) = outcome_of_run(state) {
                    let ended = OfEndedRun { kind, outcome };
                    self.ended.get_or_create(&ended).inc_by(0);
                }
            }
        }
    }

    /// Turns among these effects were accepted just now. One that goes on after a restart, or
    /// makes calls again first, says nothing of how fast a model is asked.
    pub(crate) fn turns_begin(&self, then: &[Effect]) {
        for effect in then {
            if let Effect::Launch(launch) = effect
                && let StartPoint::Start { again, .. } = &launch.from
                && again.is_empty()
            {
                let mut turns = self.turns.lock();
                if turns.len() >= TURNS {
                    turns.clear();
                }
                turns.insert(launch.run_id, Instant::now());
            }
        }
    }

    /// A request of this run leaves for a model. Only a turn's first counts.
    pub(crate) fn request_leaves(&self, run_id: RunId) {
        if let Some(accepted) = self.turns.lock().remove(&run_id) {
            self.first_request.observe(accepted.elapsed().as_secs_f64());
        }
    }

    /// A run goes until what this gives back is dropped.
    pub(crate) fn go(&'static self, origin: Origin) -> Going {
        let kind = kind_of(origin);
        self.in_progress.get_or_create(&OfRun { kind }).inc();
        Going {
            runs: self,
            kind,
            run_id: origin.run_id,
        }
    }

    fn tool_called(&self, tool: String, outcome: &'static str, took: Duration) {
        self.tool_calls
            .get_or_create(&OfToolCall { tool, outcome })
            .observe(took.as_secs_f64());
    }
}

/// See [`Runs::go`].
#[derive(Debug)]
pub(crate) struct Going {
    runs: &'static Runs,
    kind: &'static str,
    run_id: RunId,
}

impl Drop for Going {
    fn drop(&mut self) {
        let kind = self.kind;
        self.runs.in_progress.get_or_create(&OfRun { kind }).dec();
        // It may have ended before it asked any model.
        self.runs.turns.lock().remove(&self.run_id);
    }
}

/// Counts what a live session tells. Lives in its actor, and goes with it.
#[derive(Debug)]
pub(crate) struct SessionMeter {
    runs: Option<&'static Runs>,
    /// Its own part of the messages that wait.
    waiting: i64,
}

impl SessionMeter {
    /// Of a session in which so many messages wait. Where nothing is counted it does nothing.
    pub(crate) fn new(waiting: usize) -> Self {
        Self::of(super::on().map(|on| &on.runs), waiting)
    }

    pub(super) fn of(runs: Option<&'static Runs>, waiting: usize) -> Self {
        let waiting = i64::try_from(waiting).unwrap_or(i64::MAX);
        if let Some(runs) = runs {
            runs.sessions.inc();
            runs.waiting.inc_by(waiting);
        }
        Self { runs, waiting }
    }

    /// A session that stood as `before` has committed this change and tells it.
    pub(crate) fn told(&mut self, before: &State, change: &Change, toolbox: &Toolbox) {
        let Some(runs) = self.runs else {
            return;
        };
        for write in &change.writes {
            match write {
                Write::RunStarted(row) => {
                    let kind = kind_of(Origin {
                        run_id: row.run_id,
                        parent_run_id: row.parent_run_id,
                    });
                    runs.started.get_or_create(&OfRun { kind }).inc();
                }
                Write::RunEnded { run_id, state, .. } => {
                    let kind = before.origin_of(*run_id).map_or("foreground", kind_of);
                    if let Some(outcome) = outcome_of_run(*state) {
                        let ended = OfEndedRun { kind, outcome };
                        runs.ended.get_or_create(&ended).inc();
                    }
                }
                Write::Enqueue(_) => self.wait(1),
                Write::Dequeue(_) => self.wait(-1),
                _ => {}
            }
        }
        for (_, event) in &change.events {
            if let Event::ToolCall {
                tool,
                outcome,
                duration_ms,
                ..
            } = event
            {
                let tool = shown(tool, toolbox);
                let took = Duration::from_millis(*duration_ms);
                runs.tool_called(tool, outcome_of_call(*outcome), took);
            }
        }
    }

    fn wait(&mut self, more: i64) {
        self.waiting += more;
        if let Some(runs) = self.runs {
            runs.waiting.inc_by(more);
        }
    }
}

impl Drop for SessionMeter {
    fn drop(&mut self) {
        if let Some(runs) = self.runs {
            runs.sessions.dec();
            runs.waiting.dec_by(self.waiting);
        }
    }
}

/// A tool's label: Navi's own are few, and each has its own. The names of others are as many as
/// people and models make them.
fn shown(tool: &str, toolbox: &Toolbox) -> String {
    match toolbox.now().source_of(tool) {
        Some(ToolSource::BuiltIn) => tool,
        Some(ToolSource::User) => "user",
        Some(ToolSource::Mcp) => "mcp",
        None => "unknown",
    }
    .to_owned()
}
