//! `/agents`: profiles, their files, and tools.

use actix_web::http::Method;
use actix_web::{HttpRequest, HttpResponse, web};

use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::gzip;
use super::openapi::Failures;
use crate::access::Principal;
use crate::profiles::edit;

/// What a profile's file is to be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewProfileText {
    /// TOML, as the loader takes it.
    text: String,
    /// What stood in the file when it was read; null where there was none.
    before: Option<String>,
}

pub(crate) fn routes() -> [Endpoint; 3] {
    [
        endpoint("/agents/profiles").on(Method::GET, Action::ReadService, profiles),
        endpoint("/agents/profiles/{id}/file")
            .on(Method::GET, Action::ReadService, profile_file)
            .on(Method::PUT, Action::ManageService, write_profile_file),
        endpoint("/agents/tools").on(Method::GET, Action::ReadService, tools),
    ]
}

#[utoipa::path(get, path = "/agents/profiles", tag = "agents",
    responses((status = 200, description = "All profiles.", body = ref("#/components/schemas/ProfileList")), Failures))]
pub(crate) async fn profiles(
    app: web::Data<App>,
    _: Principal,
    request: HttpRequest,
) -> HttpResponse {
    gzip::json(&request, &app.engine.profiles())
}

#[utoipa::path(get, path = "/agents/profiles/{id}/file", tag = "agents",
    params(("id" = String, Path,)),
    responses((status = 200, description = "What the profile is made of, and where.", body = ref("#/components/schemas/ProfileText")), Failures))]
pub(crate) async fn profile_file(
    app: web::Data<App>,
    _: Principal,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let dir = app.loaded.settings.profiles_dir.clone();
    let text = blocking(move || edit::read(&dir, &path)).await?;
    Ok(HttpResponse::Ok().json(text))
}

#[utoipa::path(put, path = "/agents/profiles/{id}/file", tag = "agents",
    params(("id" = String, Path,)),
    request_body = ref("#/components/schemas/NewProfileText"),
    responses((status = 204, description = "It is written, and holds in a moment. One of a built-in profile's id replaces that."), Failures))]
pub(crate) async fn write_profile_file(
    app: web::Data<App>,
    _: Principal,
    path: web::Path<String>,
    JsonBody(new): JsonBody<NewProfileText>,
) -> Result<HttpResponse, ApiError> {
    let dir = app.loaded.settings.profiles_dir.clone();
    let write = move || edit::write(&dir, &path, &new.text, new.before.as_deref());
    blocking(write).await?;
    Ok(HttpResponse::NoContent().finish())
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, NaviError> + Send + 'static,
) -> Result<T, NaviError> {
    web::block(work).await.unwrap_or_else(|_| {
        let failed = "something failed here; Navi's log says what";
        Err(NaviError::new(ErrorCode::Internal, failed))
    })
}

#[utoipa::path(get, path = "/agents/tools", operation_id = "list_tools", tag = "agents",
    responses((status = 200, description = "The tools that whoever asks may use.", body = ref("#/components/schemas/ToolList")), Failures))]
pub(crate) async fn tools(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    Ok(HttpResponse::Ok().json(app.engine.tools_of(who.user).await?))
}
