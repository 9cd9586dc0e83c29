//! Runs that were, their model calls, and what the model was sent at each.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::RunId;
use serde::Deserialize;

use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use super::path::{SessionPath, run_id};
use crate::access::Principal;

/// Where a page of runs starts.
#[derive(Debug, Deserialize)]
pub(crate) struct BeforeQuery {
    /// The last run of the page before.
    before: Option<String>,
}

pub(crate) fn routes() -> [Endpoint; 3] {
    [
        endpoint("/sessions/{session_id}/runs").on(Method::GET, Action::ReadConversations, list),
        endpoint("/runs/{run_id}").on(Method::GET, Action::ReadConversations, run),
        endpoint("/runs/{run_id}/calls/{n}").on(Method::GET, Action::ReadConversations, call),
    ]
}

#[utoipa::path(get, path = "/sessions/{session_id}/runs", operation_id = "list_runs", tag = "runs",
    params(("session_id" = Uuid, Path,), ("before" = Option<Uuid>, Query, description = "The last run of the page before.")),
    responses((status = 200, description = "The session's runs, newest first, 50 a page; those of subagents stand under theirs.", body = ref("#/components/schemas/RunList")), Failures))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    query: web::Query<BeforeQuery>,
) -> Result<HttpResponse, ApiError> {
    let before = query.before.as_deref().map(run_id).transpose()?;
    let runs = app.engine.session_runs(who.user, session, before).await?;
    Ok(HttpResponse::Ok().json(runs))
}

#[utoipa::path(get, path = "/runs/{run_id}", tag = "runs",
    params(("run_id" = Uuid, Path,)),
    responses((status = 200, description = "The run, its model calls that have ended, and the runs that it started.", body = ref("#/components/schemas/RunDetails")), Failures))]
pub(crate) async fn run(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let run: RunId = run_id(&path)?;
    Ok(HttpResponse::Ok().json(app.engine.run_inspected(who.user, run).await?))
}

#[utoipa::path(get, path = "/runs/{run_id}/calls/{n}", tag = "runs",
    params(("run_id" = Uuid, Path,), ("n" = u32, Path,)),
    responses((status = 200, description = "What the model was sent at this call, and what it said; without what was remembered, and so not `exact`, for a token without the scope `memory`.", body = ref("#/components/schemas/CallDetails")), Failures))]
pub(crate) async fn call(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let run = run_id(&path.0)?;
    let n = path.1.parse().map_err(|_| {
        NaviError::new(
            ErrorCode::InvalidId,
            "a model call is named by its number, which counts from 1",
        )
    })?;
    let call = app.engine.run_call(who.user, run, n, who.grant.memory());
    Ok(HttpResponse::Ok().json(call.await?))
}
