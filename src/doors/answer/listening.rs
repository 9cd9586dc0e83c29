//! How a run is listened to, until it ends for the program.

use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use navi_actors::feed::{self, Events};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::inspect::RunDetails;
use navi_actors::tools::lent::{Offer, TIME_LIMIT};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::{Answer, Ending, Step, TOGETHER, Told, Whole};
use crate::doors::requests::Seen;
use crate::http::ws::{Admission, LOGGED_OUT};

/// After this long without a word an answer shows that it goes on: a connection that is gone is
/// noticed by what cannot be sent.
const KEEP_ALIVE: Duration = Duration::from_millis(500);
/// What a program is told whose message is not answered for now.
const HELD: &str =
    "a stop on Navi's page held this message back: it waits there until somebody sends it on";

/// What a run is heard by.
pub(super) struct Ear {
    events: Events,
    /// What opened the door opens it no more.
    ended: Pin<Box<dyn Future<Output = ()>>>,
    /// Kept from one word to the next.
    silence: Pin<Box<Sleep>>,
    /// When something was told last.
    told_at: Instant,
    _admission: Admission,
}

enum Sound {
    LoggedOut,
    /// What waits for the program is to be handed over.
    Turn,
    Silence,
    Word(feed::Told),
    /// The session is gone.
    End,
}

impl Ear {
    pub(super) fn new(events: Events, admission: Admission) -> Self {
        Self {
            events,
            ended: Box::pin(admission.hold.ended()),
            silence: Box::pin(sleep(KEEP_ALIVE)),
            told_at: Instant::now(),
            _admission: admission,
        }
    }

    async fn hear(&mut self, turn_by: Option<Instant>) -> Sound {
        loop {
            tokio::select! {
                biased;
                () = &mut self.ended => return Sound::LoggedOut,
                () = sleep_until(turn_by.unwrap_or(self.told_at)), if turn_by.is_some() => {
                    return Sound::Turn;
                }
                () = &mut self.silence => {
                    let now = Instant::now();
                    let is_silent = now >= self.told_at + KEEP_ALIVE;
                    if is_silent {
                        self.told_at = now;
                    }
                    self.silence.as_mut().reset(self.told_at + KEEP_ALIVE);
                    if is_silent {
                        return Sound::Silence;
                    }
                }
                word = self.events.next() => return word.map_or(Sound::End, Sound::Word),
            }
        }
    }
}

impl Answer {
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
                let Some(told) = self.pass(told).await else {
                    continue;
                };
                self.ear.told_at = Instant::now();
                if let Told::Over(ending) = &told {
                    self.ending = Some(ending.clone());
                    self.deliver();
                }
                return told;
            }
            match self.ear.hear(self.view.turn_by).await {
                Sound::LoggedOut => {
                    // Who may not hear of it has no run go on unseen.
                    self.patience = Duration::ZERO;
                    let error = NaviError::new(ErrorCode::Unauthorized, LOGGED_OUT);
                    return Told::Over(Ending::Failed(error));
                }
                Sound::Turn => self.hand_over(),
                Sound::Silence if self.view.may_be_held() && self.is_held().await => {
                    let error = NaviError::new(ErrorCode::RunFailed, HELD);
                    self.told.push_back(Told::Over(Ending::Failed(error)));
                }
                Sound::Silence => return Told::Silence,
                Sound::Word(word) => match word.envelope() {
                    Ok(envelope) => self.view.take(envelope, &mut self.told),
                    Err(error) => tracing::error!(%error, "a frame of ours cannot be read"),
                },
                Sound::End => {
                    let (code, message) = if self.app.closing.is_cancelled() {
                        (ErrorCode::ShuttingDown, "navi is shutting down")
                    } else {
                        (ErrorCode::SessionNotFound, "the session was closed")
                    };
                    let error = NaviError::new(code, message);
                    self.told.push_back(Told::Over(Ending::Failed(error)));
                }
            }
        }
    }

    /// What of it is told. At a stop word the run is stopped, and its end is the answer's: what it
    /// used is known then.
    async fn pass(&mut self, told: Told) -> Option<Told> {
        if self.stops.are_none() {
            return Some(told);
        }
        let was_found = self.stops.is_found();
        match told {
            Told::Text(piece) => {
                let text = self.stops.take(&piece);
                if self.stops.is_found() && !was_found {
                    let (user, session) = (self.who.user, self.session);
                    let requests = &self.app.requests;
                    requests.keep_stopped(user, self.run_id, self.stops.hash());
                    // It may have ended by itself.
                    let _ = (self.app.engine)
                        .stop_only(user, session, self.run_id)
                        .await;
                }
                (!text.is_empty()).then_some(Told::Text(text))
            }
            Told::Over(_) if was_found => Some(Told::Over(Ending::Whole)),
            _ if was_found => None,
            Told::Over(_) | Told::Call(_) | Told::Step(Step::Began { .. }) => {
                let Some(rest) = self.stops.end_reply() else {
                    return Some(told);
                };
                self.told.push_front(told);
                Some(Told::Text(rest))
            }
            Told::Thinking(_) | Told::Step(_) | Told::Silence => Some(told),
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

    /// What is lent to a run that is yet to begin waits with its message.
    fn leave_offer(&mut self) {
        let open = self.offer.take().filter(Offer::is_open);
        if let (Some(offer), Some(seen)) = (open, &self.seen)
            && !self.view.goes()
        {
            let (user, client_id) = (self.who.user, seen.client_id.clone());
            let requests = &self.app.requests;
            requests.offer(user, self.session, client_id, |_| offer);
        }
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

impl Drop for Answer {
    fn drop(&mut self) {
        self.listening = None;
        let has_calls = match &self.ending {
            None if !self.ephemeral => return self.leave_offer(),
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
