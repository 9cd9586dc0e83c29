//! Going on from a run that was cut off: the word on calls whose outcome is unknown, and the
//! run that goes on.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::command::CallDecision;
use navi_actors::protocol::ids::{CallId, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use super::path::{SessionPath, session_id};
use crate::access::Principal;

/// The run that goes on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Continued {
    run_id: RunId,
}

/// What became of a call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resolution {
    decision: CallDecision,
}

pub(crate) fn routes() -> [Endpoint; 2] {
    [
        endpoint("/sessions/{session_id}/continue").on(Method::POST, Action::Converse, go_on),
        endpoint("/sessions/{session_id}/calls/{call_id}").on(
            Method::POST,
            Action::Converse,
            resolve,
        ),
    ]
}

#[utoipa::path(post, path = "/sessions/{session_id}/continue", tag = "sessions",
    params(("session_id" = Uuid, Path,)),
    responses((status = 202, description = "An interrupted, limited or failed run goes on; its events say how.", body = ref("#/components/schemas/Continued")), Failures))]
pub(crate) async fn go_on(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
) -> Result<HttpResponse, ApiError> {
    let run_id = app.engine.continue_run(who.user, session).await?;
    Ok(HttpResponse::Accepted().json(Continued { run_id }))
}

#[utoipa::path(post, path = "/sessions/{session_id}/calls/{call_id}", tag = "sessions",
    params(("session_id" = Uuid, Path,), ("call_id" = String, Path,)),
    request_body = ref("#/components/schemas/Resolution"),
    responses((status = 204, description = "Noted: the session's `unknown_calls` has one less. `done` it took effect, `retry` it is made again when the run goes on, `skip` it is left."), Failures))]
pub(crate) async fn resolve(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<(String, String)>,
    JsonBody(given): JsonBody<Resolution>,
) -> Result<HttpResponse, ApiError> {
    let (session, call) = path.into_inner();
    let session = session_id(&session)?;
    app.engine
        .resolve_call(who.user, session, CallId(call), given.decision)
        .await?;
    Ok(HttpResponse::NoContent().finish())
}
