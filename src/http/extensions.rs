//! `/tools`, `/mcp`, `/skills`: what is added to Navi from outside, and what of it is allowed.

use std::path::Path;
use std::sync::Arc;

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::people::Recorded;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::agents::blocking;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use crate::access::{Principal, Visitor};

/// What a person saw and allows.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct AllowRequest {
    /// The tool's `sha256`, as `GET /tools` told it.
    sha256: String,
}

/// Where they are looked for.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExtensionFolders<'a> {
    tools_dir: &'a Path,
    skills_dir: &'a Path,
    mcp_config: &'a Path,
}

pub(crate) fn routes() -> [Endpoint; 6] {
    [
        endpoint("/tools").on(Method::GET, Action::ReadService, tools),
        endpoint("/extensions").on(Method::GET, Action::ManageService, folders),
        endpoint("/tools/{name}/allow")
            .on(Method::POST, Action::ManageService, allow)
            .on(Method::DELETE, Action::ManageService, forbid),
        endpoint("/mcp").on(Method::GET, Action::ReadService, servers),
        endpoint("/mcp/{name}/restart").on(Method::POST, Action::ManageService, restart),
        endpoint("/skills").on(Method::GET, Action::ReadService, skills),
    ]
}

#[utoipa::path(get, path = "/extensions", operation_id = "extension_folders", tag = "extensions",
    responses((status = 200, description = "The folders of tools and skills, and the file of MCP servers. They need not exist.", body = ref("#/components/schemas/ExtensionFolders")), Failures))]
pub(crate) async fn folders(app: web::Data<App>, _: Principal) -> HttpResponse {
    let places = &app.loaded.settings.extensions;
    HttpResponse::Ok().json(ExtensionFolders {
        tools_dir: &places.tools_dir,
        skills_dir: &places.skills_dir,
        mcp_config: &places.mcp_config,
    })
}

#[utoipa::path(get, path = "/tools", operation_id = "list_extension_tools", tag = "extensions",
    responses((status = 200, description = "The user's own tools and those of MCP servers, and whether each may be called.", body = ref("#/components/schemas/ExtensionToolList")), Failures))]
pub(crate) async fn tools(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    let view = app.engine.extensions_of(who.user).await?;
    Ok(HttpResponse::Ok().json(view.tools))
}

#[utoipa::path(post, path = "/tools/{name}/allow", tag = "extensions",
    params(("name" = String, Path,)),
    request_body = ref("#/components/schemas/AllowRequest"),
    responses((status = 204, description = "It may be called as it is now, from the next run on. What it becomes has to be allowed again."), Failures))]
pub(crate) async fn allow(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<String>,
    JsonBody(request): JsonBody<AllowRequest>,
) -> Result<HttpResponse, ApiError> {
    let extensions = app.engine.extensions();
    let name = path.into_inner();
    let about = Some(name.clone());
    extensions.allow(name, request.sha256, who.user).await?;
    app.access
        .note(Recorded::ToolAllowed, Some(who.user), about, visitor)
        .await;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(delete, path = "/tools/{name}/allow", tag = "extensions",
    params(("name" = String, Path,)),
    responses((status = 204, description = "It may not be called any more, at once."), Failures))]
pub(crate) async fn forbid(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let name = path.into_inner();
    app.engine.extensions().forbid(name.clone()).await?;
    app.access
        .note(Recorded::ToolForbidden, Some(who.user), Some(name), visitor)
        .await;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(get, path = "/mcp", tag = "extensions",
    responses((status = 200, description = "The configured MCP servers, and how each is.", body = ref("#/components/schemas/McpServerList")), Failures))]
pub(crate) async fn servers(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    let mut servers = app.engine.extensions_of(who.user).await?.servers;
    let file = Arc::clone(&app.mcp_servers);
    let mut versions = blocking(move || Ok(file.versions())).await?;
    for server in &mut servers {
        server.version = versions.remove(&server.name);
    }
    Ok(HttpResponse::Ok().json(servers))
}

#[utoipa::path(post, path = "/mcp/{name}/restart", tag = "extensions",
    params(("name" = String, Path,)),
    responses((status = 202, description = "It is started again; `GET /mcp` tells how that goes."), Failures))]
pub(crate) async fn restart(
    app: web::Data<App>,
    _: Principal,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let extensions = app.engine.extensions();
    extensions.restart_server(path.into_inner()).await?;
    Ok(HttpResponse::Accepted().finish())
}

#[utoipa::path(get, path = "/skills", tag = "extensions",
    responses((status = 200, description = "The skills that there are.", body = ref("#/components/schemas/SkillList")), Failures))]
pub(crate) async fn skills(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    let view = app.engine.extensions_of(who.user).await?;
    Ok(HttpResponse::Ok().json(view.skills))
}
