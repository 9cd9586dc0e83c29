//! A run as a program is told of it, in no protocol's terms: how it is joined, and when it ends
//! for the program. Where the conversation is stands in `place`, what of its events is told in
//! `view`.

mod files;
mod past;
mod place;
mod told;
mod turns;
mod view;

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::StreamExt as _;
use navi_actors::domain::demands::Demands;
use navi_actors::domain::permissions::Action;
use navi_actors::feed::Feed;
use navi_actors::protocol::command::UserInput;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::event::Envelope;
use navi_actors::protocol::ids::{CallId, RunId, SessionId, UserId};
use navi_actors::protocol::import::ImportedMessage;
use navi_actors::protocol::inspect::RunDetails;
use navi_actors::protocol::session::RunState;
use navi_actors::tools::lent::{LentByProgram, Offer, TIME_LIMIT};
use tokio::time::Instant;
use uuid::Uuid;

pub(crate) use self::files::SentFile;
pub(crate) use self::past::{Past, past};
use self::place::Found;
pub(crate) use self::place::Place;
pub(crate) use self::told::{Approvals, Ending, Step, Told, Whole};
pub(crate) use self::turns::{Ask, Begin, Waits};
use self::view::View;
use super::asked::invalid;
use super::requests::{Listening, Seen};
use crate::access::Principal;
use crate::http::App;
use crate::http::ws::{Admission, LOGGED_OUT};

/// After this long without a word an answer shows that it goes on: a connection that is gone is
/// noticed by what cannot be sent.
const KEEP_ALIVE: Duration = Duration::from_millis(500);
/// What a program is told whose message is not answered for now.
const HELD: &str =
    "a stop on Navi's page held this message back: it waits there until somebody sends it on";
/// Calls of lent tools that come so soon one after the other are handed over together.
const TOGETHER: Duration = Duration::from_millis(100);

/// What a program asks.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) profile_id: Option<String>,
    pub(crate) place: Place,
    /// What was said before. It counts where the session is made for it.
    pub(crate) history: Vec<ImportedMessage>,
    pub(crate) text: String,
    pub(crate) images: Vec<String>,
    pub(crate) files: Vec<SentFile>,
    pub(crate) lent: LentByProgram,
    pub(crate) approvals: Approvals,
    /// SHA-256 of the request, or of the key that it names.
    pub(crate) hash: [u8; 32],
    /// The program says that it asks once more.
    pub(crate) again: bool,
    /// How long the program may take to come back where its connection was cut.
    pub(crate) patience: Duration,
}

/// What a program says to calls of its own tools.
#[derive(Debug)]
pub(crate) struct GoOn<'a> {
    pub(crate) results: &'a [(CallId, String)],
    /// Of the answer that comes now.
    pub(crate) demands: &'a Demands,
    pub(crate) approvals: Approvals,
    pub(crate) patience: Duration,
}

/// A run that is listened to. Dropped before its end, it goes on where its session can be seen,
/// and is stopped soon where nobody could ever read it.
pub(crate) struct Answer {
    app: App,
    who: Principal,
    pub(crate) session: SessionId,
    pub(crate) run_id: RunId,
    pub(crate) ephemeral: bool,
    patience: Duration,
    /// None while it goes on.
    ending: Option<Ending>,
    seen: Option<Seen>,
    feed: Feed,
    view: View,
    told: VecDeque<Told>,
    admission: Admission,
    _offer: Option<Offer>,
    listening: Option<Listening>,
    /// Calls that were handed over.
    handed: Vec<CallId>,
    /// When something was told last.
    told_at: Instant,
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
    ) -> Result<Self, NaviError> {
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
    ) -> Result<Self, NaviError> {
        let engine = &app.engine;
        let Found {
            sameness,
            session,
            mut client_id,
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
        let (mut accepted, mut feed) = send(&client_id).await?;
        if accepted.duplicate && is_its_own {
            feed = engine
                .attach(who.user, session, Some(0), None, Some(1))
                .await?;
        } else if accepted.duplicate {
            let stands = engine.standing(who.user, session).await?;
            let goes = stands.run.is_some_and(|run| run.run_id == accepted.run_id);
            if goes || joins {
                feed = from_its_start(app, who, session, accepted.run_id).await?;
            } else if !accepted.queued {
                client_id = format!("{client_id}:{}", Uuid::now_v7().simple());
                offer = lend(&client_id);
                (accepted, feed) = send(&client_id).await?;
            }
        }
        let seen = app.requests.keep(who.user, sameness, session, client_id);
        let run_id = accepted.run_id;
        let (engine, approvals) = (engine.clone(), question.approvals);
        let view = View::of(engine, run_id, ephemeral, approvals, Begin::AtOnce);
        Ok(Self {
            app: app.clone(),
            who,
            session,
            run_id,
            ephemeral,
            patience: question.patience,
            ending: None,
            seen: Some(seen),
            feed,
            view,
            told: VecDeque::new(),
            admission,
            _offer: Some(offer),
            listening: Some(listening),
            handed: Vec::new(),
            told_at: Instant::now(),
        })
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
    ) -> Result<Option<Self>, NaviError> {
        let engine = &app.engine;
        let GoOn {
            results,
            demands,
            approvals,
            patience,
        } = go_on;
        let Some((first, _)) = results.first() else {
            return Ok(None);
        };
        let Some((session, run_id)) = engine.run_of_lent_call(who.user, first).await else {
            return Ok(None);
        };
        let run = engine.run(who.user, run_id).await?.run;
        if !matches!(
            run.state,
            RunState::Running | RunState::Completed | RunState::Limited
        ) {
            // What ended otherwise is nothing to go on with.
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
    ) -> Result<Self, NaviError> {
        let engine = &app.engine;
        let listening = app.requests.listen(session);
        let admission = Admission::new(app, Some(session), &who)?;
        let feed = from_its_start(app, who, session, run_id).await?;
        let stands = engine.standing(who.user, session).await?;
        let ephemeral = stands.summary.ephemeral;
        let mut view = View::of(engine.clone(), run_id, ephemeral, approvals, begin);
        if stands.run.is_none_or(|run| run.run_id != run_id) {
            view = view.of_the_past();
        }
        Ok(Self {
            app: app.clone(),
            who,
            session,
            run_id,
            ephemeral,
            patience: Duration::ZERO,
            ending: None,
            seen: None,
            feed,
            view,
            told: VecDeque::new(),
            admission,
            _offer: None,
            listening: Some(listening),
            handed: Vec::new(),
            told_at: Instant::now(),
        })
    }

    /// The same, where the program may take so long to come back.
    pub(crate) fn patient(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Who asked.
    pub(crate) fn by(&self) -> UserId {
        self.who.user
    }

    /// Which of the run's answers this is, counted from none; known when something was told.
    pub(crate) fn number(&self) -> u32 {
        self.view.turns().answers()
    }

    /// Reads on to where this answer begins.
    pub(crate) async fn begin(&mut self) {
        while self.view.turns().passes_over() {
            let told = self.next().await;
            if told != Told::Silence {
                return self.told.push_front(told);
            }
        }
    }

    /// What is told next. Nothing comes behind [`Told::Over`].
    pub(crate) async fn next(&mut self) -> Told {
        loop {
            if let Some(told) = self.told.pop_front() {
                self.told_at = Instant::now();
                if let Told::Over(ending) = &told {
                    self.ending = Some(ending.clone());
                    self.seen.iter().for_each(Seen::deliver);
                }
                return told;
            }
            let turn_by = self.view.turn_by;
            let silent_until = self.told_at + KEEP_ALIVE;
            let frame = tokio::select! {
                biased;
                () = self.admission.hold.ended() => {
                    // Who may not hear of it has no run go on unseen.
                    self.patience = Duration::ZERO;
                    let error = NaviError::new(ErrorCode::Unauthorized, LOGGED_OUT);
                    return Told::Over(Ending::Failed(error));
                }
                () = tokio::time::sleep_until(turn_by.unwrap_or_else(Instant::now)),
                    if turn_by.is_some() =>
                {
                    self.hand_over();
                    continue;
                }
                () = tokio::time::sleep_until(silent_until) => {
                    self.told_at = Instant::now();
                    if self.view.may_be_held() && self.is_held().await {
                        let error = NaviError::new(ErrorCode::RunFailed, HELD);
                        self.told.push_back(Told::Over(Ending::Failed(error)));
                        continue;
                    }
                    return Told::Silence;
                }
                frame = self.feed.next() => frame,
            };
            let Some(frame) = frame else {
                let (code, message) = if self.app.closing.is_cancelled() {
                    (ErrorCode::ShuttingDown, "navi is shutting down")
                } else {
                    (ErrorCode::SessionNotFound, "the session was closed")
                };
                let error = NaviError::new(code, message);
                self.told.push_back(Told::Over(Ending::Failed(error)));
                continue;
            };
            match serde_json::from_str::<Envelope>(&frame) {
                Ok(envelope) => self.view.take(envelope, &mut self.told),
                Err(error) => tracing::error!(%error, "a frame of ours cannot be read"),
            }
        }
    }

    /// Whether it waits, and nothing goes that it waits for.
    async fn is_held(&self) -> bool {
        let stands = self.app.engine.standing(self.who.user, self.session).await;
        stands.is_ok_and(|stands| {
            let waits = stands.queue.iter().any(|it| it.run_id == self.run_id);
            waits && stands.run.is_none()
        })
    }

    /// All that is told, to its end.
    pub(crate) async fn whole(&mut self) -> Whole {
        let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
        let ending = loop {
            match self.next().await {
                Told::Text(piece) => text.push_str(&piece),
                Told::Thinking(piece) => thinking.push_str(&piece),
                Told::Call(call) => calls.push(call),
                Told::Step(_) | Told::Silence => {}
                Told::Over(ending) => break ending,
            }
        };
        Whole {
            text,
            thinking,
            calls,
            ending,
        }
    }

    /// Tells what waits for the program, and that it is its turn.
    fn hand_over(&mut self) {
        let calls = self.app.engine.lent_calls(self.run_id);
        let turns = self.view.turns();
        if turns.passes_over() || (calls.is_empty() && turns.asks().is_empty()) {
            // Told to begin and on their way; or refused; or handed over before.
            let waits = !turns.passes_over() && turns.is_waited_for();
            self.view.turn_by = waits.then(|| Instant::now() + TOGETHER);
            return;
        }
        let asks = turns.asks().iter().cloned();
        let asks = asks.map(|ask| Told::Step(Step::Asks(ask)));
        self.told.extend(asks);
        self.app.engine.tell_lent_calls(&calls);
        self.handed = calls.iter().map(|call| call.id.clone()).collect();
        self.told.extend(calls.into_iter().map(Told::Call));
        self.told.push_back(Told::Over(Ending::Turn));
    }

    /// What the run's model calls came to so far: tokens read, and written.
    pub(crate) async fn usage(&self) -> (u64, u64) {
        let run = self.app.engine.run(self.who.user, self.run_id).await;
        run.map(|run| used(&run)).unwrap_or_default()
    }
}

/// What a run's model calls came to: tokens read, and written.
pub(crate) fn used(run: &RunDetails) -> (u64, u64) {
    run.calls.iter().fold((0, 0), |(read, written), call| {
        (
            read + u64::from(call.prompt_tokens.unwrap_or(0)),
            written + u64::from(call.completion_tokens.unwrap_or(0)),
        )
    })
}

/// The session's events from the start of this run, or of an answer that it gave already.
async fn from_its_start(
    app: &App,
    who: Principal,
    session: SessionId,
    run_id: RunId,
) -> Result<Feed, NaviError> {
    let (engine, user) = (&app.engine, who.user);
    let goes = async || {
        let stands = engine.standing(user, session).await?;
        Ok::<_, NaviError>(stands.run.is_some_and(|run| run.run_id == run_id))
    };
    if goes().await? {
        let feed = engine.attach(user, session, None, None, Some(1)).await?;
        // It may have ended in between: then nothing of it comes.
        if goes().await? {
            return Ok(feed);
        }
    }
    engine.attach(user, session, Some(0), None, Some(1)).await
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.listening = None;
        let has_calls = match &self.ending {
            None => false,
            Some(Ending::Turn) => true,
            Some(_) => return,
        };
        if !self.ephemeral {
            return;
        }
        let (app, user) = (self.app.clone(), self.who.user);
        let (session, run_id) = (self.session, self.run_id);
        let patience = if has_calls {
            // Just before its calls would fail, and the run go on for nobody.
            TIME_LIMIT.saturating_sub(Duration::from_secs(5))
        } else {
            self.patience
        };
        let (handed, seen) = (std::mem::take(&mut self.handed), self.seen.take());
        actix::spawn(async move {
            tokio::time::sleep(patience).await;
            let engine = &app.engine;
            let is_wanted = if has_calls {
                // It goes on by the results of these.
                !handed.iter().any(|call| engine.lent_call_waits(call))
            } else {
                engine.waits_for_program(run_id)
            };
            if app.requests.is_heard(session) || is_wanted {
                return;
            }
            // Who asks the same again wants another answer.
            seen.iter().for_each(Seen::deliver);
            // It may have ended by itself.
            let _ = engine.stop(user, session).await;
        });
    }
}
