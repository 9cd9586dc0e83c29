//! `/sessions/{session_id}/plan`: the list of steps, changed by its user.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::command::PlanEdit;
use navi_actors::protocol::todo::TodoItem;
use schemars::JsonSchema;
use serde::Serialize;

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use super::path::SessionPath;
use crate::access::Principal;

/// The list of steps.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StepList {
    items: Vec<TodoItem>,
}

pub(crate) fn routes() -> Endpoint {
    endpoint("/sessions/{session_id}/plan").on(Method::PATCH, Action::Converse, edit)
}

#[utoipa::path(patch, path = "/sessions/{session_id}/plan", tag = "sessions",
    params(("session_id" = Uuid, Path,)),
    request_body = ref("#/components/schemas/PlanEdit"),
    responses((status = 200, description = "The list of steps from here on. The model is told before its next call.", body = ref("#/components/schemas/StepList")), Failures))]
pub(crate) async fn edit(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    JsonBody(edit): JsonBody<PlanEdit>,
) -> Result<HttpResponse, ApiError> {
    let items = app.engine.edit_plan(who.user, session, edit).await?;
    Ok(HttpResponse::Ok().json(StepList { items }))
}
