//! What was told of a run and its subagents, and the stop of one of them.

use actix_web::http::Method;
use actix_web::http::header::ContentType;
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::{NaviError, invalid};
use navi_actors::protocol::ids::{RunId, SessionId};
use navi_actors::store::LogCursor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use super::path::{run_id, session_id};
use crate::access::Principal;

/// Where a page of events starts.
#[derive(Debug, Deserialize)]
pub(crate) struct PageQuery {
    /// `next` of the page before.
    cursor: Option<String>,
}

/// What a stop found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SubagentStopped {
    /// Whether it still went.
    stopped: bool,
}

pub(crate) fn routes() -> [Endpoint; 2] {
    [
        endpoint("/sessions/{session_id}/runs/{run_id}/events").on(
            Method::GET,
            Action::ReadConversations,
            events,
        ),
        endpoint("/sessions/{session_id}/subagents/{run_id}/stop").on(
            Method::POST,
            Action::Converse,
            stop,
        ),
    ]
}

#[utoipa::path(get, path = "/sessions/{session_id}/runs/{run_id}/events", operation_id = "run_events", tag = "sessions",
    params(("session_id" = Uuid, Path,), ("run_id" = Uuid, Path,), ("cursor" = Option<String>, Query,)),
    responses((status = 200, description = "`{\"events\": […], \"next\": cursor or null}`: what was told of the run and of all runs under it, in order, text joined.", body = Object), Failures))]
pub(crate) async fn events(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<(String, String)>,
    query: web::Query<PageQuery>,
) -> Result<HttpResponse, ApiError> {
    let (session, run) = ids(&path)?;
    let from = match &query.cursor {
        None => LogCursor::default(),
        Some(text) => cursor(text)
            .ok_or_else(|| invalid("cursor: give `next` of the page before, as it is"))?,
    };
    let page = app.engine.run_events(who.user, session, run, from).await?;
    let next = match page.next {
        Some(next) => format!("\"{}.{}\"", next.seq, next.chunk),
        None => "null".to_owned(),
    };
    // The log keeps events as the JSON that they are on the wire.
    let events = page.events.join(",");
    let body = format!("{{\"events\":[{events}],\"next\":{next}}}");
    Ok(HttpResponse::Ok()
        .content_type(ContentType::json())
        .body(body))
}

#[utoipa::path(post, path = "/sessions/{session_id}/subagents/{run_id}/stop", operation_id = "stop_subagent", tag = "sessions",
    params(("session_id" = Uuid, Path,), ("run_id" = Uuid, Path,)),
    responses((status = 200, description = "Whether the subagent still went.", body = ref("#/components/schemas/SubagentStopped")), Failures))]
pub(crate) async fn stop(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let (session, run) = ids(&path)?;
    let stopped = app.engine.stop_subagent(who.user, session, run).await?;
    Ok(HttpResponse::Ok().json(SubagentStopped { stopped }))
}

fn ids(path: &(String, String)) -> Result<(SessionId, RunId), NaviError> {
    Ok((session_id(&path.0)?, run_id(&path.1)?))
}

fn cursor(text: &str) -> Option<LogCursor> {
    let (seq, chunk) = text.split_once('.')?;
    // No column holds a larger one.
    let seq: i64 = seq.parse().ok()?;
    Some(LogCursor {
        seq: u64::try_from(seq).ok()?,
        chunk: chunk.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_one_that_the_store_can_look_for() {
        let read = |text| cursor(text).map(|at| (at.seq, at.chunk));
        assert_eq!(read("12.7"), Some((12, 7)));
        let most = "999999999999999999.999999999999999999";
        assert_eq!(
            read(most),
            Some((999_999_999_999_999_999, 999_999_999_999_999_999))
        );
        for wrong in ["", "12", "-1.0", "x.y", "9999999999999999999.0"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
