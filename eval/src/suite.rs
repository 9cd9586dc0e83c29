//! The tasks one after the other: an engine for each kind of settings, the attempts, and what
//! is told of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use navi::console::complain;
use navi::settings::{self, Settings};
use navi_actors::llm::Backend;
use navi_actors::protocol::error::ErrorCode;
use navi_actors::protocol::event::Event;
use navi_actors::protocol::status::BackendStatus;
use tokio::runtime::Runtime;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cli::Cli;
use crate::drive::{Bounds, drive};
use crate::house::House;
use crate::meter::Meter;
use crate::outcome::{End, Outcome};
use crate::report::{self, Attempt, Report, TaskReport};
use crate::tasks::Task;

/// After so many tasks in a row that the backend failed, it is broken.
const BACKEND_FAILURES: u32 = 3;

/// How a run of the tasks ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) report: Report,
    /// Why it could not go on: the backend, or Navi herself.
    pub(crate) broken: Option<String>,
}

/// Has all these conversations, one after the other. Ends early, with what there is by then,
/// when `cancelled` is.
///
/// # Errors
/// No model answers, or no engine can be started.
pub(crate) async fn run(
    tasks: &[Task],
    settings: &Settings,
    backends: Vec<Arc<dyn Backend>>,
    call: &Call<'_>,
) -> anyhow::Result<Ended> {
    let meter = Meter::default();
    let mut suite = Suite {
        settings,
        backends: backends.into_iter().map(|one| meter.on(one)).collect(),
        meter,
        call,
        results: tasks.iter().map(|_| Vec::new()).collect(),
        model: None,
        failures: 0,
        broken: None,
        said: 0,
    };
    let date = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let mut backend = None;
    let mut complete = true;
    for (overrides, group) in groups(tasks) {
        let house = suite.open(&overrides).await?;
        let ready = house.ready_backend().await;
        let went_on = match ready {
            Ok(status) => {
                backend.get_or_insert(status);
                suite.group(&house, tasks, &group).await
            }
            Err(error) => Err(error),
        };
        house.close().await;
        match went_on {
            Ok(went_on) => complete = went_on,
            // What was measured by then is not lost.
            Err(error) if backend.is_some() => {
                suite.broken = Some(format!("{error:#}"));
                complete = false;
            }
            Err(error) => return Err(error),
        }
        if !complete {
            break;
        }
    }
    let backend = backend.context("there was no task to do")?;
    let model = suite.model.take();
    Ok(Ended {
        broken: suite.broken.take(),
        report: report(tasks, suite.results, &backend, model, date, complete),
    })
}

/// What the command line and the process bring.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) cli: &'a Cli,
    pub(crate) runtime: &'a Arc<Runtime>,
    pub(crate) cancelled: CancellationToken,
}

/// Tasks by the settings that they change, so that each kind of engine is started once.
fn groups(tasks: &[Task]) -> Vec<(BTreeMap<String, String>, Vec<usize>)> {
    let mut groups: Vec<(BTreeMap<String, String>, Vec<usize>)> = Vec::new();
    for (at, task) in tasks.iter().enumerate() {
        match groups.iter_mut().find(|(known, _)| *known == task.settings) {
            Some((_, group)) => group.push(at),
            None => groups.push((task.settings.clone(), vec![at])),
        }
    }
    groups
}

struct Suite<'a> {
    settings: &'a Settings,
    backends: Vec<Arc<dyn Backend>>,
    meter: Meter,
    call: &'a Call<'a>,
    /// By task.
    results: Vec<Vec<Attempt>>,
    model: Option<String>,
    /// Attempts in a row that the backend failed.
    failures: u32,
    broken: Option<String>,
    /// How many attempts were told.
    said: usize,
}

impl Suite<'_> {
    /// An engine with these settings changed.
    async fn open(&self, overrides: &BTreeMap<String, String>) -> anyhow::Result<House> {
        let backends = self.backends.clone();
        let runtime = Arc::clone(self.call.runtime);
        if overrides.is_empty() {
            return House::open(self.settings, backends, runtime).await;
        }
        let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (variable, value) in overrides {
            environment.insert(OsString::from(variable), OsString::from(value));
        }
        let loaded = settings::load(&self.call.cli.overrides(), &environment)
            .context("a task changes settings to what they cannot be")?;
        House::open(&loaded.settings, backends, runtime).await
    }

    /// Tries these tasks. False where that was ended early.
    async fn group(
        &mut self,
        house: &House,
        tasks: &[Task],
        group: &[usize],
    ) -> anyhow::Result<bool> {
        let repeat = self.call.cli.repeat;
        let all = tasks.len() * usize::try_from(repeat)?;
        let named = group.iter().filter_map(|at| Some((*at, tasks.get(*at)?)));
        for (at, task) in named {
            for _ in 0..repeat {
                if self.call.cancelled.is_cancelled() {
                    return Ok(false);
                }
                self.said += 1;
                complain(&format!(
                    "[{}/{all}] {}/{}",
                    self.said, task.area, task.name
                ));
                let Some(attempt) = self.attempt(house, task).await? else {
                    return Ok(false);
                };
                complain(&line(&attempt));
                if let Some(attempts) = self.results.get_mut(at) {
                    attempts.push(attempt);
                }
                if self.broken.is_some() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// One attempt. None where it was ended by hand, which says nothing of the model.
    async fn attempt(&mut self, house: &House, task: &Task) -> anyhow::Result<Option<Attempt>> {
        let usual = Duration::from_secs(u64::from(self.call.cli.task_minutes) * 60);
        let bounds = Bounds {
            time: task.time_limit(usual),
            model_calls: task.max_model_calls(),
            cancelled: self.call.cancelled.clone(),
        };
        let began = Instant::now();
        let outcome = drive(house, &self.meter, task, bounds).await?;
        if outcome.turns.iter().any(|turn| turn.end == End::Cancelled) {
            return Ok(None);
        }
        self.model = model_of(&outcome).or_else(|| self.model.take());
        self.look_at_backend(house, &outcome).await;
        Ok(Some(Attempt::of(task, &outcome, began.elapsed())))
    }

    /// Whether the backend is still one that can be measured.
    async fn look_at_backend(&mut self, house: &House, outcome: &Outcome) {
        let failed = outcome.turns.iter().find_map(|turn| match &turn.end {
            End::Failed { code, message } if is_backends(*code) => Some(message.clone()),
            _ => None,
        });
        let Some(message) = failed else {
            self.failures = 0;
            return;
        };
        self.failures += 1;
        house.engine.probe().await;
        if house.engine.status().active.is_none() || self.failures >= BACKEND_FAILURES {
            self.broken = Some(message);
        }
    }
}

/// Whether an error is the backend's, whatever the task was.
fn is_backends(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::BackendUnavailable
            | ErrorCode::BackendUnauthorized
            | ErrorCode::BackendError
            | ErrorCode::BackendStreamBroken
            | ErrorCode::ModelNotFound
            | ErrorCode::FirstChunkTimeout
    )
}

fn model_of(outcome: &Outcome) -> Option<String> {
    let mut newest = outcome.events.iter().rev();
    newest.find_map(|envelope| match &envelope.event {
        Event::StreamStart { model, .. } => Some(model.clone()),
        _ => None,
    })
}

/// What is said of an attempt while others are still to come.
fn line(attempt: &Attempt) -> String {
    let result = attempt
        .failure()
        .map_or_else(|| "pass".to_owned(), |failure| format!("FAIL {failure}"));
    format!(
        "      {:.1} s, {} model calls, {} tools: {result}",
        attempt.seconds, attempt.model_calls, attempt.tool_calls
    )
}

fn report(
    tasks: &[Task],
    results: Vec<Vec<Attempt>>,
    backend: &BackendStatus,
    model: Option<String>,
    date: String,
    complete: bool,
) -> Report {
    let tried = tasks.iter().zip(results);
    let tasks: Vec<TaskReport> = tried
        .filter(|(_, attempts)| !attempts.is_empty())
        .map(|(task, attempts)| TaskReport {
            task: task.name.clone(),
            area: task.area.clone(),
            attempts,
        })
        .collect();
    let areas = report::areas(&tasks);
    let default = backend.default_model.clone();
    Report {
        version: env!("CARGO_PKG_VERSION"),
        date,
        backend: backend.kind.as_str().to_owned(),
        address: backend.address.clone(),
        model: model.or(default).unwrap_or_default(),
        complete,
        passed: areas.iter().map(|area| area.passed).sum(),
        attempts: areas.iter().map(|area| area.attempts).sum(),
        tasks,
        areas,
    }
}
