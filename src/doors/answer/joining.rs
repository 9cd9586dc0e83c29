//! How a run is joined: a question begins it, or it is known from before.

use std::collections::VecDeque;
use std::time::Duration;

use navi_actors::domain::permissions::Action;
use navi_actors::feed::Events;
use navi_actors::protocol::command::UserInput;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::{RunId, SessionId};
use navi_actors::protocol::session::RunState;
use navi_actors::tools::lent::Offer;
use uuid::Uuid;

use super::listening::Ear;
use super::place::{Found, check_key};
use super::view::View;
use super::{Answer, Approvals, Begin, GoOn, Place, Question, StopWords, Waits, files};
use crate::access::Principal;
use crate::doors::asked::invalid;
use crate::doors::requests::{Listening, Seen};
use crate::http::App;
use crate::http::ws::Admission;

/// A run, and what it is heard by.
struct Joined {
    session: SessionId,
    run_id: RunId,
    ephemeral: bool,
    view: View,
    ear: Ear,
    listening: Listening,
    seen: Option<Seen>,
    offer: Option<Offer>,
}

impl Answer {
    /// Sends the question, or joins the run that answers it already.
    ///
    /// # Errors
    /// What is wrong with it; nothing was sent then.
    pub(crate) async fn of(
        app: &App,
        who: Principal,
        question: Question,
    ) -> Result<Box<Self>, NaviError> {
        if !question.files.is_empty() {
            who.grant.check(Action::ChangeFiles)?;
        }
        let found = Found::of(app, who, &question).await?;
        let was_known = found.was_known;
        match Self::begun(app, who, &question, found).await {
            // It was deleted since: the name begins another one.
            Err(error) if error.code == ErrorCode::SessionNotFound && was_known => {
                app.requests.forget_names(who.user);
                let found = Found::of(app, who, &question).await?;
                Self::begun(app, who, &question, found).await
            }
            begun => begun,
        }
    }

    async fn begun(
        app: &App,
        who: Principal,
        question: &Question,
        found: Found,
    ) -> Result<Box<Self>, NaviError> {
        let engine = &app.engine;
        let Found {
            sameness,
            session,
            mut client_id,
            asked,
            joins,
            ..
        } = found;
        let ephemeral = question.place == Place::Request;
        let is_its_own = question.place.is_its_own();
        let listening = app.requests.listen(session);
        let admission = Admission::new(app, Some(session), &who)?;
        let files = files::store(app, who, session, &question.files).await?;
        let input = |client_id: &str| UserInput {
            content: question.text.clone(),
            images: question.images.clone(),
            files: files.clone(),
            client_id: Some(client_id.to_owned()),
            ..UserInput::default()
        };
        let lend = |client_id: &str| engine.lend(session, client_id, question.lent.clone());
        let send = |client_id: &str| engine.send_watched(who.user, session, input(client_id));
        let mut offer = lend(&client_id);
        let (mut accepted, mut events) = send(&client_id).await?;
        let is_same = || {
            let known = app.requests.find(who.user, &sameness);
            known.is_some_and(|seen| seen.asked == asked)
        };
        if accepted.duplicate && question.repeat.is_of_key && !is_same() {
            check_key(app, who, (session, client_id.clone()), question).await?;
        }
        if accepted.duplicate && is_its_own {
            events = from_the_beginning(app, who, session).await?;
        } else if accepted.duplicate {
            let stands = engine.standing(who.user, session).await?;
            let goes = stands.run.is_some_and(|run| run.run_id == accepted.run_id);
            if goes || joins {
                events = from_its_start(app, who, session, accepted.run_id).await?;
            } else if !accepted.queued {
                client_id = format!("{client_id}:{}", Uuid::now_v7().simple());
                offer = lend(&client_id);
                (accepted, events) = send(&client_id).await?;
            }
        }
        let seen = Seen::new(session, client_id, asked);
        app.requests.keep(who.user, sameness, seen.clone());
        let run_id = accepted.run_id;
        let mut view = View::of(run_id, ephemeral, question.approvals, Begin::AtOnce);
        if accepted.duplicate && accepted.queued {
            view = view.of_what_waited();
        }
        let joined = Joined {
            session,
            run_id,
            ephemeral,
            view,
            ear: Ear::new(events, admission),
            listening,
            seen: Some(seen),
            offer: Some(offer),
        };
        Ok(Self::new(app, who, joined).patient(question.patience))
    }

    /// Goes on with the run that waits for these results of lent tools, or had them already. None
    /// where no run does (any more).
    ///
    /// # Errors
    /// What the store says.
    pub(crate) async fn going_on(
        app: &App,
        who: Principal,
        go_on: GoOn<'_>,
    ) -> Result<Option<Box<Self>>, NaviError> {
        let engine = &app.engine;
        let GoOn {
            results,
            demands,
            approvals,
            patience,
            stops,
        } = go_on;
        let Some((first, _)) = results.first() else {
            return Ok(None);
        };
        let Some((session, run_id)) = engine.run_of_lent_call(who.user, first).await else {
            return Ok(None);
        };
        let run = engine.run(who.user, run_id).await?.run;
        let goes_on = match run.state {
            RunState::Running | RunState::Completed | RunState::Limited => true,
            // By the program's own words, whose answer that was.
            RunState::Stopped => {
                let requests = &app.requests;
                requests.was_stopped_at(who.user, run_id, stops.hash())
            }
            RunState::Failed | RunState::Interrupted => false,
        };
        if !goes_on {
            return Ok(None);
        }
        let mut ours = Vec::new();
        for (call, result) in results {
            if engine.run_of_lent_call(who.user, call).await == Some((session, run_id)) {
                ours.push((call.clone(), result.clone()));
            }
        }
        // What was told before is passed over.
        let waits = ours.iter().map(|(call, _)| Waits::Call(call.clone()));
        let begin = Begin::Behind(waits.collect());
        let joined = Self::joined(app, who, (session, run_id), approvals, begin).await?;
        if ours.iter().any(|(call, _)| engine.lent_call_waits(call)) {
            let mut demanded = demands.calls.iter();
            if let Some(name) = demanded.find(|name| !engine.lends(run_id, name)) {
                return Err(invalid(format!(
                    "tool_choice demands {name}, which this run was not lent with its first request; send what it lends from the beginning, or choose another"
                )));
            }
            engine.demand(run_id, demands.clone());
        }
        for (call, result) in ours {
            engine.answer_lent_call(&call, Ok(result));
        }
        Ok(Some(joined.patient(patience)))
    }

    /// A run that goes, or that has ended, as it is told from its start, but for what belongs to
    /// answers before this one.
    ///
    /// # Errors
    /// What the store says.
    pub(crate) async fn joined(
        app: &App,
        who: Principal,
        (session, run_id): (SessionId, RunId),
        approvals: Approvals,
        begin: Begin,
    ) -> Result<Box<Self>, NaviError> {
        let engine = &app.engine;
        let listening = app.requests.listen(session);
        let admission = Admission::new(app, Some(session), &who)?;
        let events = from_its_start(app, who, session, run_id).await?;
        let stands = engine.standing(who.user, session).await?;
        let ephemeral = stands.summary.ephemeral;
        let view = View::of(run_id, ephemeral, approvals, begin);
        let joined = Joined {
            session,
            run_id,
            ephemeral,
            view,
            ear: Ear::new(events, admission),
            listening,
            seen: None,
            offer: None,
        };
        Ok(Self::new(app, who, joined))
    }

    fn new(app: &App, who: Principal, joined: Joined) -> Box<Self> {
        let Joined {
            session,
            run_id,
            ephemeral,
            view,
            ear,
            listening,
            seen,
            offer,
        } = joined;
        Box::new(Self {
            app: app.clone(),
            who,
            session,
            run_id,
            ephemeral,
            patience: Duration::ZERO,
            ending: None,
            seen,
            ear,
            view,
            told: VecDeque::new(),
            stops: StopWords::default(),
            offer,
            listening: Some(listening),
            handed: Vec::new(),
        })
    }
}

/// The session's events from the start of this run, or of an answer that it gave already.
async fn from_its_start(
    app: &App,
    who: Principal,
    session: SessionId,
    run_id: RunId,
) -> Result<Events, NaviError> {
    let (engine, user) = (&app.engine, who.user);
    let goes = async || {
        let stands = engine.standing(user, session).await?;
        Ok::<_, NaviError>(stands.run.is_some_and(|run| run.run_id == run_id))
    };
    if goes().await? {
        let events = engine.follow(user, session, None, Some(1)).await?;
        // It may have ended in between: then nothing of it comes.
        if goes().await? {
            return Ok(events);
        }
    }
    from_the_beginning(app, who, session).await
}

async fn from_the_beginning(
    app: &App,
    who: Principal,
    session: SessionId,
) -> Result<Events, NaviError> {
    app.engine.follow(who.user, session, Some(0), Some(1)).await
}
