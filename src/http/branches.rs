//! `/sessions/{session_id}/branches` and `/branch`: other ways that a conversation could go.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::input::MAX_MESSAGE_JSON_BYTES;
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::ids::MessageId;
use schemars::JsonSchema;
use serde::Deserialize;

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use super::path::SessionPath;
use crate::access::Principal;

/// Where a branch starts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewBranch {
    /// A message of the user's that is shown.
    message_id: MessageId,
    /// What stands in its place; where absent, the message is answered anew.
    #[serde(default)]
    content: Option<String>,
}

/// The branch to show.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShownBranch {
    branch_id: u32,
}

pub(crate) fn routes() -> [Endpoint; 2] {
    [
        endpoint("/sessions/{session_id}/branches")
            .body_limit(MAX_MESSAGE_JSON_BYTES)
            .on(Method::POST, Action::Converse, start),
        endpoint("/sessions/{session_id}/branch").on(Method::PUT, Action::Converse, show),
    ]
}

#[utoipa::path(post, path = "/sessions/{session_id}/branches", operation_id = "start_branch", tag = "sessions",
    params(("session_id" = Uuid, Path,)),
    request_body = ref("#/components/schemas/NewBranch"),
    responses((status = 202, description = "The branch is shown, and its run has begun.", body = ref("#/components/schemas/Branched")), Failures))]
pub(crate) async fn start(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    JsonBody(new): JsonBody<NewBranch>,
) -> Result<HttpResponse, ApiError> {
    let branched = app
        .engine
        .start_branch(who.user, session, new.message_id, new.content)
        .await?;
    Ok(HttpResponse::Accepted().json(branched))
}

#[utoipa::path(put, path = "/sessions/{session_id}/branch", operation_id = "show_branch", tag = "sessions",
    params(("session_id" = Uuid, Path,)),
    request_body = ref("#/components/schemas/ShownBranch"),
    responses((status = 204, description = "Every tab shows that branch now."), Failures))]
pub(crate) async fn show(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    JsonBody(shown): JsonBody<ShownBranch>,
) -> Result<HttpResponse, ApiError> {
    app.engine
        .show_branch(who.user, session, shown.branch_id)
        .await?;
    Ok(HttpResponse::NoContent().finish())
}
