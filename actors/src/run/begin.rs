//! The start of a run: its conversation, its profile and its model.

use std::time::Duration;

use actix::Addr;
use tokio::time::Instant;

use super::context::RunContext;
use super::driver::{Basis, Driver};
use super::parking::as_it_stands;
use super::turn::RunTurn;
use super::{ChildReport, RunActor, RunSetup, Work};
use crate::domain::context;
use crate::domain::model_choice::{self, Choice, RunConfig};
use crate::domain::run_loop::{CallPlan, Cut, Record, RunLoop, RunStart, ended_unbegun};
use crate::domain::session::command::Command;
use crate::domain::session::transition::StartPoint;
use crate::metrics;
use crate::profiles::SessionProfile;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::message::Role;
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::protocol::powers::Powers;
use crate::protocol::session::SessionSummary;
use crate::root::store_error;
use crate::services::{Services, now};
use crate::session::messages::{Ask, Tell};
use crate::tools::registry::Registry;

/// How long until a run that cannot go on after a restart is tried again.
const PAUSE: Duration = Duration::from_secs(2);
/// How long it waits for tools, at most.
const TOOLS_WAIT: Duration = Duration::from_secs(10);

/// Drives a run from its start to its end.
pub(super) async fn drive(mut setup: RunSetup, own: Addr<RunActor>) {
    let origin = setup.origin;
    let _going = metrics::on().map(|on| on.runs.go(origin));
    let session = setup.session.clone();
    let known = match &mut setup.work {
        Work::Turn(turn) => turn.config.take(),
        Work::Child(_) => None,
    };
    let mut turn = RunTurn::of(&setup);
    if !setup.work.goes_on() {
        turn.take(&mut setup.deadline).await;
    }
    let error = match begin_in_time(&mut setup, known).await {
        Some(Ok(begun)) => {
            let (driver, config, records) = driver(setup, own, begun, turn);
            return driver.drive(config, records).await;
        }
        Some(Err(error)) => {
            tracing::warn!(code = ?error.code, %error, "run cannot begin");
            Some(error)
        }
        None if setup.ends.stop.is_cancelled() => None,
        None => return leave(&mut setup).await,
    };
    let problem = error.as_ref().map(|error| error.message.clone());
    let mut records = Vec::new();
    if let Work::Turn(turn) = &mut setup.work
        && let StartPoint::Stored(run_loop) = &mut turn.from
    {
        // Its calls are open.
        records = match &error {
            Some(error) => run_loop.on_not_resumed(error.clone(), now()),
            None => run_loop.cut(&Cut::Stopped, None, now()),
        };
    }
    if records.is_empty() {
        records = ended_unbegun(origin, error);
    }
    let run_id = origin.run_id;
    // A session that is gone has taken the run's end into its own hands.
    let ended = Command::Record { run_id, records };
    let _ = session.send(Ask::<u64>::new(ended)).await;
    if let Work::Child(task) = setup.work {
        // The parent may be gone too.
        let _ = task.finished.send(ChildReport {
            problem: problem.or_else(|| Some("it was stopped".to_owned())),
            text: String::new(),
            outside: false,
            tokens: 0,
        });
    }
}

/// Whether it was told which model answers.
#[derive(Clone, Copy)]
enum ModelTold {
    Before,
    NotYet,
}

/// What a run begins with.
struct Begun {
    config: RunConfig,
    told: ModelTold,
    context: RunContext,
    /// Its user's.
    powers: Powers,
}

/// Begins the run. One from before a restart, which may wait for a person, is not ended by a model
/// server or a database that is not there yet: it is tried again, for as long as a run may take.
/// None where it was stopped, or is to be left.
async fn begin_in_time(
    setup: &mut RunSetup,
    mut known: Option<Box<RunConfig>>,
) -> Option<Result<Begun, NaviError>> {
    let began = Instant::now();
    if setup.work.goes_on() {
        tokio::select! {
            biased;
            () = setup.ends.stop.cancelled() => return None,
            () = setup.ends.leaves() => return None,
            () = tools_are_there(setup) => {}
        }
    }
    loop {
        let begun = tokio::select! {
            biased;
            () = setup.ends.stop.cancelled() => return None,
            begun = begin(setup, known.take()) => begun,
        };
        let is_in_time = setup.work.goes_on() && Instant::now() < setup.deadline;
        let error = match begun {
            Err(error) if is_in_time && may_pass(&error) => error,
            begun => {
                if setup.work.goes_on() {
                    // That wait is not its time.
                    setup.deadline += began.elapsed();
                }
                return Some(begun);
            }
        };
        tracing::warn!(code = ?error.code, %error, "run cannot go on yet");
        tokio::select! {
            biased;
            () = setup.ends.stop.cancelled() => return None,
            () = setup.ends.leaves() => return None,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

/// Waits for the tools that the run had before a restart: those of an MCP server come when it has
/// started. A server that fails at first is awaited only for the calls that are left to be made.
async fn tools_are_there(setup: &RunSetup) {
    let Work::Turn(turn) = &setup.work else {
        return;
    };
    let StartPoint::Stored(run_loop) = &turn.from else {
        return;
    };
    let mut calls = run_loop.not_begun();
    calls.retain(|planned| !planned.lent && matches!(planned.plan, CallPlan::Run { .. }));
    let enough = |tools: &Registry| calls.iter().all(|planned| tools.has(&planned.call.name));
    let complete = setup.services.toolbox.complete(enough);
    let _ = tokio::time::timeout(TOOLS_WAIT, complete).await;
}

/// Whether it may be otherwise in a moment.
fn may_pass(error: &NaviError) -> bool {
    matches!(
        error.code,
        ErrorCode::BackendUnavailable | ErrorCode::StoreUnavailable
    )
}

/// The service shuts down before the run could go on: it is left in the store as it stands.
async fn leave(setup: &mut RunSetup) {
    let run_id = setup.origin.run_id;
    if setup.ends.park.is_cancelled()
        && let Work::Turn(turn) = &mut setup.work
        && let StartPoint::Stored(run_loop) = &mut turn.from
    {
        let mut records = run_loop.park(None, now());
        records.extend(as_it_stands(run_loop));
        let stands = Command::Record { run_id, records };
        let _ = setup.session.send(Ask::<u64>::new(stands)).await;
    }
    // A session that is gone has nothing to leave.
    let park = Tell(Command::Park(run_id), None);
    let _ = setup.session.send(park).await;
}

/// Reads the conversation and finds the run's profile, its model, and what its user may use.
async fn begin(setup: &RunSetup, known: Option<Box<RunConfig>>) -> Result<Begun, NaviError> {
    // What goes on was let in by the process before.
    if matches!(setup.work, Work::Turn(_)) && !setup.work.goes_on() {
        setup.services.people.check_tokens(setup.user_id).await?;
    }
    let (config, told) = match known {
        Some(config) => (*config, ModelTold::Before),
        None => {
            let model = setup.model.as_deref();
            let found = find_config(&setup.services, &setup.profile_id, model).await?;
            (found, ModelTold::NotYet)
        }
    };
    let context = RunContext::read(setup).await?;
    let powers = setup.services.people.powers(setup.user_id).await;
    Ok(Begun {
        config,
        told,
        context,
        powers: powers.map_err(|error| store_error(&error))?,
    })
}

/// The profile and the model that a run goes on with; `model` is the one that was chosen for it.
pub(super) async fn find_config(
    services: &Services,
    profile_id: &str,
    model: Option<&str>,
) -> Result<RunConfig, NaviError> {
    let found = services.profiles.of_session(profile_id);
    let wanted = model_choice::wanted(&found.profile, model);
    let choice = services.models.choose(wanted).await?;
    Ok(config_of(services, found, choice))
}

/// The same, where nothing has to be asked for it.
pub(crate) fn known_config(services: &Services, session: &SessionSummary) -> Option<RunConfig> {
    let found = services.profiles.of_session(&session.profile_id);
    let wanted = model_choice::wanted(&found.profile, session.model.as_deref());
    let choice = services.models.choose_known(wanted)?;
    Some(config_of(services, found, choice))
}

fn config_of(services: &Services, found: SessionProfile, choice: Choice) -> RunConfig {
    RunConfig {
        notice: found.notice(),
        profile: found.profile,
        window: context::window(&choice.model, services.context_window),
        choice,
    }
}

fn driver(
    mut setup: RunSetup,
    own: Addr<RunActor>,
    begun: Begun,
    turn: RunTurn,
) -> (Box<Driver>, RunConfig, Vec<Record>) {
    let Begun {
        config,
        told,
        context,
        powers,
    } = begun;
    let basis = Basis {
        context,
        powers,
        turn,
    };
    let from = match &mut setup.work {
        Work::Turn(turn) => std::mem::take(&mut turn.from),
        Work::Child(_) => StartPoint::default(),
    };
    let (again, steps) = match from {
        StartPoint::Stored(run_loop) => {
            tracing::info!(profile = config.profile.id, "run goes on after a restart");
            let mut driver = Driver::new(setup, own, *run_loop, basis);
            driver.prepare_again(&config);
            driver.run_loop.on_switch(&config.profile, config.window);
            let window = Record::Window(config.window);
            return (driver, config, vec![window]);
        }
        StartPoint::Start { again, steps } => (again, steps),
    };
    let (goal, wants_plan, context_tokens) = match &setup.work {
        Work::Turn(turn) => (
            goal(&basis.context),
            turn.plans && config.profile.flags.planning_enabled,
            turn.context_tokens,
        ),
        Work::Child(child) => (
            child.task.clone(),
            config.profile.flags.subagent_planning_enabled,
            0,
        ),
    };
    let run_loop = RunLoop::new(RunStart {
        origin: setup.origin,
        profile: &config.profile,
        goal,
        // A toy cannot plan, and would only make its user wait.
        plans: wants_plan && !config.choice.model.demo,
        steps,
        edits_since: basis.context.last_told(setup.origin.run_id),
        max_tokens: setup.max_tokens,
        context_tokens,
        window: config.window,
    });
    let mut records = match told {
        ModelTold::Before => Vec::new(),
        ModelTold::NotYet => vec![Record::Began {
            backend: config.choice.kind.as_str().to_owned(),
            model: config.choice.model.name.clone(),
            window: config.window,
        }],
    };
    records.extend(notices(&setup.services, &config));
    tracing::info!(
        backend = config.choice.kind.as_str(),
        model = config.choice.model.name,
        profile = config.profile.id,
        "run begins"
    );
    let mut driver = Driver::new(setup, own, run_loop, basis);
    records.extend(driver.repeat(&config, &again));
    (driver, config, records)
}

/// What is told of the config: that the session's profile is gone, and, once, which models and
/// which backend are that should answer.
pub(super) fn notices(services: &Services, config: &RunConfig) -> Vec<Record> {
    let model = ("model", config.choice.model.name.clone());
    let untold =
        |model: &Option<String>| model.clone().filter(|model| services.tells_missing(model));
    let own = untold(&config.choice.instead_of);
    let default = untold(&config.choice.model.stands_for);
    let missing = match (own, default) {
        (None, None) => None,
        (Some(own), None) => Some(Phrase::new(
            PhraseCode::OwnMissing,
            [("own", own), model.clone()],
        )),
        (None, Some(default)) => Some(Phrase::new(
            PhraseCode::DefaultMissing,
            [("default", default), model.clone()],
        )),
        (Some(own), Some(default)) => Some(Phrase::new(
            PhraseCode::NeitherModel,
            [("own", own), ("default", default), model.clone()],
        )),
    };
    let missing = missing.map(|phrase| Event::notice("model_missing", phrase));
    let chosen = untold(&config.choice.instead_of_chosen).map(|chosen| {
        let params = [("chosen", chosen), model.clone()];
        Event::notice(
            "model_missing",
            Phrase::new(PhraseCode::ChosenMissing, params),
        )
    });
    let fell_back = config.choice.fell_back_from.and_then(|kind| {
        let asked = kind.as_str();
        let first = services.tells_missing(&format!("backend {asked}"));
        let backend = config.choice.kind.as_str().to_owned();
        let params = [
            ("asked", asked.to_owned()),
            model.clone(),
            ("backend", backend),
        ];
        first.then(|| {
            Event::notice(
                "backend_missing",
                Phrase::new(PhraseCode::BackendMissing, params),
            )
        })
    });
    let events = config
        .notice
        .clone()
        .into_iter()
        .chain(chosen)
        .chain(fell_back)
        .chain(missing);
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
