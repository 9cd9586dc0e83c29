//! `/sessions/{session_id}/changes`: what was done to files, and taking it back.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::change::Change;
use schemars::JsonSchema;
use serde::Serialize;

use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use super::path::{SessionPath, id_of};
use crate::access::Principal;

/// A session's changes to files.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeList {
    /// Newest first.
    changes: Vec<Change>,
}

pub(crate) fn routes() -> [Endpoint; 2] {
    [
        endpoint("/sessions/{session_id}/changes").on(Method::GET, Action::ReadConversations, list),
        endpoint("/sessions/{session_id}/changes/{change_id}/undo").on(
            Method::POST,
            Action::Converse,
            undo,
        ),
    ]
}

#[utoipa::path(get, path = "/sessions/{session_id}/changes", operation_id = "list_changes", tag = "sessions",
    params(("session_id" = Uuid, Path,)),
    responses((status = 200, description = "What the filesystem tool did to files, newest first, and whether it can be undone.", body = ref("#/components/schemas/ChangeList")), Failures))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
) -> Result<HttpResponse, ApiError> {
    let changes = app.engine.changes(who.user, session).await?;
    Ok(HttpResponse::Ok().json(ChangeList { changes }))
}

#[utoipa::path(post, path = "/sessions/{session_id}/changes/{change_id}/undo", tag = "sessions",
    params(("session_id" = Uuid, Path,), ("change_id" = Uuid, Path,)),
    responses((status = 200, description = "Taken back: the change that this is, which can be undone itself.", body = ref("#/components/schemas/Change")), Failures))]
pub(crate) async fn undo(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let change = id_of("a change's", &path.1)?;
    let undone = app.engine.undo_change(who.user, session, change).await?;
    Ok(HttpResponse::Ok().json(undone))
}
