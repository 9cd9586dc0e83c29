//! `navi runs replay`.

use std::process::ExitCode;
use std::sync::Arc;

use actix::System;
use anyhow::bail;
use navi_actors::domain::replay::{Replay, ReplayEnd, ReplayStep};
use navi_actors::models::Models;
use navi_actors::protocol::ids::RunId;
use navi_actors::protocol::inspect::{CallKind, CallReply};
use navi_actors::replaying;
use serde::Serialize;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::Archive;
use super::words::{self, plain, seconds};
use crate::backends;
use crate::cli::ReplayArgs;
use crate::console::{complain, say};
use crate::engine_config::stream_limits;
use crate::settings::Settings;

/// The exit code where the other model went another way.
const OTHER_WAY: u8 = 3;
/// The exit code of a replay that a person ended.
const INTERRUPTED: u8 = 130;

/// How a replay went.
#[derive(Debug, Serialize)]
struct Report {
    run_id: RunId,
    /// The run's model, and the one that was asked now.
    recorded_model: String,
    model: String,
    /// Whether it made the same calls to the end.
    same: bool,
    steps: Vec<Step>,
    end: ReplayEnd,
}

#[derive(Debug, Serialize)]
struct Step {
    #[serde(flatten)]
    step: ReplayStep,
    first_chunk_ms: Option<u64>,
    duration_ms: u64,
}

/// Asks another model what the run's model was asked. No tool runs, nothing is stored.
///
/// # Errors
/// There is no such run, call or model; the database cannot be read.
pub(super) fn run(
    settings: &Settings,
    runtime: &Arc<Runtime>,
    args: &ReplayArgs,
) -> anyhow::Result<ExitCode> {
    let for_system = Arc::clone(runtime);
    let system = System::with_tokio_rt(move || for_system);
    let report = system.block_on(async {
        let stop = CancellationToken::new();
        actix::spawn(end_by_hand(stop.clone()));
        let archive = Archive::open(settings).await?;
        let done = replay(settings, &archive, args, &stop).await;
        archive.close(done).await
    })?;
    if args.json {
        say(&serde_json::to_string_pretty(&report)?);
    } else {
        show(&report);
    }
    Ok(match &report.end {
        ReplayEnd::Failed { message } => {
            complain(&format!("navi: the replay could not go on: {message}"));
            ExitCode::FAILURE
        }
        ReplayEnd::Interrupted => ExitCode::from(INTERRUPTED),
        _ if report.same => ExitCode::SUCCESS,
        _ => ExitCode::from(OTHER_WAY),
    })
}

async fn replay(
    settings: &Settings,
    archive: &Archive,
    args: &ReplayArgs,
    stop: &CancellationToken,
) -> anyhow::Result<Report> {
    let run_id = RunId(args.id);
    let details = archive.details(run_id).await?;
    let calls = details.calls.iter();
    let mut calls = calls.filter(|call| call.kind == CallKind::Turn);
    let from = calls.position(|call| call.after_seq >= args.from);
    let inspector = &archive.inspector;
    let recorded = inspector.loop_calls(archive.user, run_id, &details.calls);
    let recorded = recorded.await?;
    let last = recorded.last().map(|call| call.n);
    let closed = CancellationToken::new();
    // The backends' guards end with this.
    let _close = closed.clone().drop_guard();
    let models = Models::start(
        backends::build(settings)?.all,
        settings.model.parallel,
        &closed,
    );
    let choice = replaying::find_model(&models, &args.model).await?;
    let Some(mut replay) = from.and_then(|from| Replay::new(recorded, from, choice.model.clone()))
    else {
        match details
            .calls
            .iter()
            .rfind(|call| call.kind == CallKind::Turn)
        {
            Some(last) => bail!(
                "no model call of this run began after event {}; its last one began after event {}",
                args.from,
                last.after_seq
            ),
            None => bail!(
                "no model call of this run was kept: it has made none, or is of an older version of Navi"
            ),
        }
    };
    let mut steps: Vec<Step> = Vec::new();
    let limits = stream_limits(settings);
    let end = loop {
        complain(&match (steps.len() + 1, last) {
            (nth, Some(last)) => format!(
                "asking {} ({nth}; the run has {last} calls)",
                choice.model.name
            ),
            (nth, None) => format!("asking {} ({nth})", choice.model.name),
        });
        let asked = replaying::ask(&models, limits, &choice, replay.request(), stop).await;
        let answered = match asked {
            Ok(Some(answered)) => answered,
            Ok(None) => break ReplayEnd::Interrupted,
            Err(error) => {
                break ReplayEnd::Failed {
                    message: error.message,
                };
            }
        };
        let (step, end) = replay.on_reply(answered.said);
        steps.push(Step {
            step,
            first_chunk_ms: answered.first_chunk_ms,
            duration_ms: answered.duration_ms,
        });
        if let Some(end) = end {
            break end;
        }
    };
    let all_same = steps.iter().all(|it| it.step.same_calls == Some(true));
    Ok(Report {
        run_id,
        recorded_model: details.run.model,
        model: choice.model.name,
        same: all_same && end == ReplayEnd::Answered,
        steps,
        end,
    })
}

fn show(report: &Report) {
    say(&format!(
        "run {}: {} then, {} now\n",
        report.run_id,
        plain(&report.recorded_model),
        plain(&report.model)
    ));
    for Step {
        step, duration_ms, ..
    } in &report.steps
    {
        let compared = match (step.n, step.same_calls, step.same_text) {
            (Some(n), Some(true), Some(true)) => format!("call {n}: the same"),
            (Some(n), Some(true), _) => format!("call {n}: the same calls, other words"),
            (Some(n), _, _) => format!("call {n}: OTHER CALLS"),
            (None, _, _) => "on its own way".to_owned(),
        };
        let usage = step.said.usage.map_or_else(String::new, |usage| {
            format!(
                ", {} + {} tokens",
                usage.prompt_tokens, usage.completion_tokens
            )
        });
        say(&format!("{compared} ({}{usage})", seconds(*duration_ms)));
        if step.exact == Some(false) {
            say("  the request is not exactly what was sent then");
        }
        if let Some(recorded) = &step.recorded {
            lines("then", &words::reply(recorded));
        }
        let said = CallReply {
            content: Some(step.said.content.clone()),
            ..CallReply::default()
        };
        let calls = step.said.tool_calls.iter();
        let calls = calls.map(|call| words::tool(&call.name, &call.arguments));
        let mut now = words::reply(&said);
        if !step.said.tool_calls.is_empty() && step.said.content.trim().is_empty() {
            now.clear();
        }
        now.extend(calls);
        lines("now", &now);
    }
    say("");
    say(&match &report.end {
        ReplayEnd::Answered if report.same => {
            "It went the same way: the same calls, and then an answer.".to_owned()
        }
        ReplayEnd::Answered => "It answered, on another way.".to_owned(),
        ReplayEnd::Parted { tool, arguments } => format!(
            "Here it goes another way, and the replay ends: the run has no result of {}",
            words::tool(tool, arguments)
        ),
        ReplayEnd::Limit => "It goes on and on in its own way; the replay ends here.".to_owned(),
        ReplayEnd::Failed { .. } => "The model failed here.".to_owned(),
        ReplayEnd::Interrupted => "Ended by hand.".to_owned(),
    });
}

fn lines(when: &str, lines: &[String]) {
    for line in lines {
        say(&format!("  {when:>4}: {line}"));
    }
}

/// A first Ctrl-C ends the replay with what there is; a second one ends the process.
async fn end_by_hand(stop: CancellationToken) {
    if tokio::signal::ctrl_c().await.is_err() {
        return;
    }
    complain("ending; once more ends navi at once");
    stop.cancel();
    if tokio::signal::ctrl_c().await.is_ok() {
        std::process::exit(i32::from(INTERRUPTED));
    }
}
