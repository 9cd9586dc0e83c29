//! What was told of a run that has ended, of one of its answers.

use std::borrow::Cow;
use std::collections::VecDeque;

use navi_actors::protocol::error::NaviError;
use navi_actors::protocol::event::Envelope;
use navi_actors::protocol::inspect::RunInfo;
use navi_actors::protocol::session::RunState;
use navi_actors::store::LogCursor;

use super::turns::Begin;
use super::view::View;
use super::{Approvals, Told};
use crate::access::Principal;
use crate::http::App;

/// What the log and the store know of an answer.
#[derive(Debug)]
pub(crate) enum Past {
    /// What was told, with its end.
    Told(Vec<Told>),
    /// It goes, or waits for its program.
    Goes,
    /// The run had fewer answers.
    Never,
}

/// The answer of this number, of a run that may still go.
///
/// # Errors
/// What the store says.
pub(crate) async fn past(
    app: &App,
    who: Principal,
    run: &RunInfo,
    approvals: Approvals,
    number: u32,
) -> Result<Past, NaviError> {
    let engine = &app.engine;
    let (session, run_id) = (run.session_id, run.run_id);
    let begin = Begin::AtAnswer(number);
    let mut view = View::of(run_id, false, approvals, begin);
    let (mut told, mut all) = (VecDeque::new(), Vec::new());
    let mut from = Some(LogCursor::default());
    while let Some(cursor) = from {
        let page = engine.run_events(who.user, session, run_id, cursor).await?;
        for event in page.events {
            match serde_json::from_str::<Envelope>(&event) {
                Ok(envelope) => view.take(Cow::Owned(envelope), &mut told),
                Err(error) => tracing::error!(%error, "an event of the log cannot be read"),
            }
            while let Some(next) = told.pop_front() {
                let is_end = matches!(next, Told::Over(_));
                all.push(next);
                if is_end && view.turns().answers() < number {
                    return Ok(Past::Never);
                }
                if is_end {
                    return Ok(Past::Told(all));
                }
            }
        }
        from = page.next;
    }
    if run.state == RunState::Running {
        return Ok(Past::Goes);
    }
    if number > 0 {
        return Ok(Past::Never);
    }
    // The log does not go back to it any more: what is stored of the conversation is left.
    let stands = engine.snapshot(who.user, session).await?;
    view.take_snapshot(&stands, &mut told);
    Ok(Past::Told(told.into()))
}
