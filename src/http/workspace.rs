//! `/sessions/{session_id}/workspace`: what the tools made there, for the session's user to look
//! at and to keep.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use serde::Deserialize;

use navi_actors::domain::permissions::Action;

use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::files::{sent, shown};
use super::openapi::Failures;
use super::path::SessionPath;
use crate::access::Principal;

/// Which directory.
#[derive(Debug, Deserialize)]
pub(crate) struct DirectoryQuery {
    #[serde(default)]
    path: String,
}

/// Which file.
#[derive(Debug, Deserialize)]
pub(crate) struct FileQuery {
    path: String,
}

pub(crate) fn routes() -> [Endpoint; 4] {
    [
        endpoint("/sessions/{session_id}/workspace").on(Method::GET, Action::ReadFiles, list),
        endpoint("/sessions/{session_id}/workspace/file").on(
            Method::GET,
            Action::ReadFiles,
            download,
        ),
        endpoint("/sessions/{session_id}/workspace/image").on(
            Method::GET,
            Action::ReadFiles,
            image,
        ),
        endpoint("/sessions/{session_id}/workspace/changes").on(
            Method::GET,
            Action::ReadFiles,
            changes,
        ),
    ]
}

#[utoipa::path(get, path = "/sessions/{session_id}/workspace", operation_id = "list_workspace", tag = "files",
    params(("session_id" = Uuid, Path,), ("path" = Option<String>, Query, description = "A directory of the workspace; without it, the workspace itself.")),
    responses((status = 200, description = "What the directory has, by name.", body = ref("#/components/schemas/WorkspaceListing")), Failures))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    query: web::Query<DirectoryQuery>,
) -> Result<HttpResponse, ApiError> {
    let listing = app.engine.workspace(who.user, session, &query.path).await?;
    Ok(HttpResponse::Ok().json(listing))
}

#[utoipa::path(get, path = "/sessions/{session_id}/workspace/file", operation_id = "download_workspace_file", tag = "files",
    params(("session_id" = Uuid, Path,), ("path" = String, Query,)),
    responses((status = 200, description = "The file as it stands in the workspace, always as an attachment.", content_type = "application/octet-stream"), Failures))]
pub(crate) async fn download(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    query: web::Query<FileQuery>,
) -> Result<HttpResponse, ApiError> {
    let file = app.engine.workspace_file(who.user, session, &query.path);
    Ok(sent(file.await?))
}

#[utoipa::path(get, path = "/sessions/{session_id}/workspace/image", operation_id = "workspace_image", tag = "files",
    params(("session_id" = Uuid, Path,), ("path" = String, Query,)),
    responses((status = 200, description = "An image (PNG or JPEG) that Navi made of the file, for the page to show.", content(("image/png"), ("image/jpeg"))), Failures))]
pub(crate) async fn image(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    query: web::Query<FileQuery>,
) -> Result<HttpResponse, ApiError> {
    let image = app.engine.workspace_image(who.user, session, &query.path);
    Ok(shown(image.await?, "no-cache"))
}

#[utoipa::path(get, path = "/sessions/{session_id}/workspace/changes", operation_id = "workspace_file_changes", tag = "files",
    params(("session_id" = Uuid, Path,), ("path" = String, Query,)),
    responses((status = 200, description = "What the filesystem tool changed in the file, newest first, under the names that it had before, too.", body = ref("#/components/schemas/FileHistory")), Failures))]
pub(crate) async fn changes(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    query: web::Query<FileQuery>,
) -> Result<HttpResponse, ApiError> {
    let changes = app.engine.workspace_changes(who.user, session, &query.path);
    Ok(HttpResponse::Ok().json(changes.await?))
}
