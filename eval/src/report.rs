//! The results: a table for a person, JSON to compare one run with another.

use std::collections::BTreeMap;
use std::time::Duration;

use navi_actors::protocol::event::Event;
use serde::Serialize;
use serde_json::{Value, json};

use crate::checks::Check;
use crate::outcome::Outcome;
use crate::tasks::Task;

/// How much of a result or an answer the transcript keeps.
const KEPT_CHARS: usize = 2_000;

/// How much of a reason the table shows.
const REASON_CHARS: usize = 120;

/// A whole run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) version: &'static str,
    /// When it began, UTC.
    pub(crate) date: String,
    pub(crate) backend: String,
    pub(crate) address: String,
    /// The model that answered most recently; the default one where none did.
    pub(crate) model: String,
    /// False where a person, the time or a backend ended it early.
    pub(crate) complete: bool,
    pub(crate) tasks: Vec<TaskReport>,
    pub(crate) areas: Vec<AreaReport>,
    pub(crate) passed: usize,
    pub(crate) attempts: usize,
}

/// A task and how each attempt at it went.
#[derive(Debug, Serialize)]
pub(crate) struct TaskReport {
    pub(crate) task: String,
    pub(crate) area: String,
    pub(crate) attempts: Vec<Attempt>,
}

/// The attempts of an area.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct AreaReport {
    pub(crate) area: String,
    pub(crate) passed: usize,
    pub(crate) attempts: usize,
}

/// One attempt.
#[derive(Debug, Serialize)]
pub(crate) struct Attempt {
    pub(crate) passed: bool,
    pub(crate) seconds: f64,
    pub(crate) model_calls: u64,
    pub(crate) tool_calls: usize,
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    /// Why the conversation did not come to its end.
    pub(crate) trouble: Option<String>,
    pub(crate) checks: Vec<CheckReport>,
    /// The answer of each turn; null where there was none.
    pub(crate) answers: Vec<Option<String>>,
    /// The events by their types, tool calls with what they said.
    pub(crate) transcript: Vec<Value>,
}

/// How a check came out.
#[derive(Debug, Serialize)]
pub(crate) struct CheckReport {
    pub(crate) check: &'static str,
    pub(crate) passed: bool,
    /// What was found instead.
    pub(crate) found: Option<String>,
}

impl Attempt {
    /// Looks at what a task left behind.
    pub(crate) fn of(task: &Task, outcome: &Outcome, took: Duration) -> Self {
        let trouble = outcome.trouble();
        let look = |check: &Check| {
            let found = check.look(outcome).err();
            CheckReport {
                check: check.name(),
                passed: found.is_none(),
                found,
            }
        };
        let checks: Vec<CheckReport> = task.checks.iter().map(look).collect();
        let answers = outcome.turns.iter().map(|turn| turn.answer.as_deref());
        Self {
            passed: trouble.is_none() && checks.iter().all(|check| check.passed),
            seconds: (took.as_secs_f64() * 10.0).round() / 10.0,
            model_calls: outcome.spent.calls,
            tool_calls: outcome.calls().len(),
            prompt_tokens: outcome.spent.prompt_tokens,
            completion_tokens: outcome.spent.completion_tokens,
            trouble,
            checks,
            answers: answers.map(|answer| answer.map(start_of)).collect(),
            transcript: transcript(outcome),
        }
    }

    /// The first thing that was wrong.
    pub(crate) fn failure(&self) -> Option<String> {
        let failed = self.checks.iter().find(|check| !check.passed);
        let failed = failed.map(|check| {
            let found = check.found.as_deref().unwrap_or_default();
            format!("{}: {found}", check.check)
        });
        self.trouble.clone().or(failed)
    }
}

fn start_of(text: &str) -> String {
    text.chars().take(KEPT_CHARS).collect()
}

fn transcript(outcome: &Outcome) -> Vec<Value> {
    let lines = outcome.events.iter().map(|envelope| {
        let mut line = json!({"event": envelope.event.name()});
        let more = match &envelope.event {
            Event::ToolCall {
                tool,
                args,
                result,
                success,
                is_subagent,
                ..
            } => json!({
                "tool": tool,
                "args": args,
                "success": success,
                "result": start_of(result),
                "is_subagent": is_subagent,
            }),
            Event::PlanReady { plan, steps, .. } => {
                json!({"plan": start_of(plan), "steps": steps.len()})
            }
            Event::StreamStart {
                model, profile_id, ..
            } => {
                json!({"model": model, "profile_id": profile_id})
            }
            Event::SubagentStarted {
                profile_id, task, ..
            } => {
                json!({"profile_id": profile_id, "task": start_of(task)})
            }
            Event::SubagentFinished {
                completed_normally, ..
            } => json!({"completed_normally": completed_normally}),
            Event::ProfileSwitched { profile_id, .. } => json!({"profile_id": profile_id}),
            Event::ContextCompressed {
                messages_before,
                messages_after,
                ..
            } => json!({"messages_before": messages_before, "messages_after": messages_after}),
            Event::Error { message, .. } | Event::Notice { message, .. } => {
                json!({"message": message})
            }
            _ => Value::Null,
        };
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        line
    });
    lines.collect()
}

/// The attempts by area.
pub(crate) fn areas(tasks: &[TaskReport]) -> Vec<AreaReport> {
    let mut areas: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for task in tasks {
        let (passed, attempts) = areas.entry(&task.area).or_default();
        *passed += task.attempts.iter().filter(|a| a.passed).count();
        *attempts += task.attempts.len();
    }
    let report = |(area, (passed, attempts)): (&str, (usize, usize))| AreaReport {
        area: area.to_owned(),
        passed,
        attempts,
    };
    areas.into_iter().map(report).collect()
}

/// A row a task. Of several attempts, numbers are means, and the reason is the first one.
pub(crate) fn task_rows(tasks: &[TaskReport]) -> Vec<[String; 8]> {
    let head = [
        "task", "area", "result", "seconds", "calls", "tools", "tokens", "failed",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(tasks.iter().map(task_row));
    rows
}

fn task_row(task: &TaskReport) -> [String; 8] {
    let attempts = &task.attempts;
    let passed = attempts.iter().filter(|attempt| attempt.passed).count();
    let result = match (passed, attempts.len()) {
        (1, 1) => "pass".to_owned(),
        (0, 1) => "FAIL".to_owned(),
        (passed, all) => format!("{passed} of {all}"),
    };
    // No task is tried often enough for an f64 to lose count.
    #[expect(clippy::cast_precision_loss, reason = "a mean need not be exact")]
    let mean = |sum: f64| sum / attempts.len().max(1) as f64;
    let count = |of: fn(&Attempt) -> f64| mean(attempts.iter().map(of).sum());
    #[expect(clippy::cast_precision_loss, reason = "a mean need not be exact")]
    let cells = [
        format!("{:.1}", count(|attempt| attempt.seconds)),
        format!("{:.0}", count(|attempt| attempt.model_calls as f64)),
        format!("{:.0}", count(|attempt| attempt.tool_calls as f64)),
        format!(
            "{:.0}",
            count(|attempt| (attempt.prompt_tokens + attempt.completion_tokens) as f64)
        ),
    ];
    let [seconds, calls, tools, tokens] = cells;
    let failure = attempts.iter().find_map(Attempt::failure);
    let failure = failure.unwrap_or_default();
    let failure = failure.split_whitespace().collect::<Vec<_>>().join(" ");
    [
        task.task.clone(),
        task.area.clone(),
        result,
        seconds,
        calls,
        tools,
        tokens,
        failure.chars().take(REASON_CHARS).collect(),
    ]
}

/// A row an area, and one for all.
pub(crate) fn area_rows(report: &Report) -> Vec<[String; 2]> {
    let of = |passed: usize, attempts: usize| format!("{passed} of {attempts}");
    let mut rows: Vec<[String; 2]> = report
        .areas
        .iter()
        .map(|area| [area.area.clone(), of(area.passed, area.attempts)])
        .collect();
    rows.push(["all".to_owned(), of(report.passed, report.attempts)]);
    rows
}
