//! The start of a run: its conversation, its profile and its model.

use actix::Addr;

use super::context::RunContext;
use super::driver::{Driver, Way};
use super::{ChildReport, From, RunActor, RunSetup, Work};
use crate::domain::context;
use crate::domain::model_choice;
use crate::domain::run_loop::{Record, RunEnd, RunLoop, RunStart, RunSummary, failed};
use crate::protocol::error::NaviError;
use crate::protocol::event::Event;
use crate::protocol::message::Role;
use crate::services::Services;
use crate::session::messages::Commit;

/// Drives a run from its start to its end.
pub(super) async fn drive(setup: RunSetup, own: Addr<RunActor>) {
    let origin = setup.origin;
    let session = setup.session.clone();
    match begin(&setup).await {
        Ok((way, context)) => {
            let (driver, records) = driver(setup, own, &way, context);
            driver.drive(way, records).await;
        }
        Err(error) => {
            tracing::warn!(code = ?error.code, %error, "run cannot begin");
            let mut records = Vec::new();
            if !origin.is_subagent() {
                records.push(Record::Event(failed(&error)));
            }
            let problem = error.message.clone();
            records.push(Record::Ended(RunSummary {
                end: RunEnd::Failed(error),
                text: String::new(),
                iterations: 0,
                prompt_tokens: 0,
                completion_tokens: 0,
                leaked_calls: 0,
            }));
            let run_id = origin.run_id;
            // A session that is gone has taken the run's end into its own hands.
            let _ = session.send(Commit { run_id, records }).await;
            if let Work::Child(task) = setup.work {
                // The parent may be gone too.
                let _ = task.finished.send(ChildReport {
                    problem: Some(problem),
                    text: String::new(),
                    outside: false,
                    tokens: 0,
                });
            }
        }
    }
}

/// Reads the conversation and finds the run's profile and model.
async fn begin(setup: &RunSetup) -> Result<(Way, RunContext), NaviError> {
    let way = find_way(&setup.services, &setup.profile_id).await?;
    let context = RunContext::read(setup).await?;
    Ok((way, context))
}

/// The profile and the model that a run goes on with.
pub(super) async fn find_way(services: &Services, profile_id: &str) -> Result<Way, NaviError> {
    let found = services.profiles.of_session(profile_id);
    let notice = found.notice();
    let profile = found.profile;
    let wanted = model_choice::wanted(&profile);
    let choice = services.models.choose(wanted).await?;
    let window = context::window(&choice.model, services.context_window);
    Ok(Way {
        profile,
        notice,
        choice,
        window,
    })
}

fn driver(
    mut setup: RunSetup,
    own: Addr<RunActor>,
    way: &Way,
    context: RunContext,
) -> (Driver, Vec<Record>) {
    let from = match &mut setup.work {
        Work::Turn(turn) => std::mem::take(&mut turn.from),
        Work::Child(_) => From::default(),
    };
    let again = match from {
        From::Stored(run_loop) => {
            tracing::info!(profile = way.profile.id, "run goes on after a restart");
            let mut driver = Driver::new(setup, own, *run_loop, context);
            driver.prepare_again(way);
            return (driver, Vec::new());
        }
        From::Start { again } => again,
    };
    let (goal, wants_plan, context_tokens) = match &setup.work {
        Work::Turn(turn) => (
            goal(&context),
            turn.plans && way.profile.flags.planning_enabled,
            turn.context_tokens,
        ),
        Work::Child(child) => (
            child.task.clone(),
            way.profile.flags.subagent_planning_enabled,
            0,
        ),
    };
    let run_loop = RunLoop::new(RunStart {
        origin: setup.origin,
        profile: &way.profile,
        goal,
        // A toy cannot plan, and would only make its user wait.
        plans: wants_plan && !way.choice.model.demo,
        max_tokens: setup.max_tokens,
        context_tokens,
        window: way.window,
    });
    let mut records = vec![Record::Began {
        backend: way.choice.kind.as_str().to_owned(),
        model: way.choice.model.name.clone(),
    }];
    records.extend(notices(&setup.services, way));
    tracing::info!(
        backend = way.choice.kind.as_str(),
        model = way.choice.model.name,
        profile = way.profile.id,
        "run begins"
    );
    let mut driver = Driver::new(setup, own, run_loop, context);
    records.extend(driver.repeat(way, &again));
    (driver, records)
}

/// What is told of the way: that the session's profile is gone, and, once, that a profile's
/// model is.
pub(super) fn notices(services: &Services, way: &Way) -> Vec<Record> {
    let missing = way.choice.instead_of.as_ref();
    let missing = missing.filter(|missing| services.tells_missing(missing));
    let missing = missing.map(|missing| Event::Notice {
        code: "model_missing".to_owned(),
        message: format!(
            "the profile's model {missing} is not there; {} answers instead",
            way.choice.model.name
        ),
        is_subagent: false,
    });
    let events = way.notice.clone().into_iter().chain(missing);
    events.map(Record::Event).collect()
}

/// What the user asked for last.
fn goal(context: &RunContext) -> String {
    let asked = context
        .messages
        .iter()
        .rev()
        .find(|message| message.role == Role::User && !message.is_summary);
    asked
        .and_then(|message| message.content.clone())
        .unwrap_or_default()
}
