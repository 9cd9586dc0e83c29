//! `/mcp/{name}`: MCP servers, added, tried, changed and taken out by whoever administers.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::people::Recorded;
use navi_actors::protocol::tool::Effect;
use navi_actors::tools::mcp::{Connection, ServerConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use crate::access::{Principal, Visitor};
use crate::mcp_servers::McpServersFile;
use crate::mcp_servers::draft::McpDraft;

/// What became of trying a server.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct McpTrial {
    /// What it offers.
    tools: Vec<TriedTool>,
    /// What of that was left out, and why.
    problems: Vec<String>,
    /// Why it could not be talked to; null where it could.
    error: Option<String>,
}

/// A tool of a server that was tried.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TriedTool {
    /// As the model would know it.
    name: String,
    description: String,
    effect: Effect,
}

/// Which one is meant.
#[derive(Debug, Deserialize)]
pub(crate) struct RemovalQuery {
    version: String,
}

pub(crate) fn entry_routes() -> Endpoint {
    endpoint("/mcp/{name}")
        .on(Method::GET, Action::ManageService, entry)
        .on(Method::PUT, Action::ManageService, write)
        .on(Method::DELETE, Action::ManageService, remove)
}

pub(crate) fn try_routes() -> Endpoint {
    endpoint("/mcp/{name}/try").on(Method::POST, Action::ManageService, try_out)
}

pub(crate) fn restore_routes() -> Endpoint {
    endpoint("/mcp/{name}/restore").on(Method::POST, Action::ManageService, restore)
}

#[utoipa::path(get, path = "/mcp/{name}", operation_id = "mcp_server", tag = "extensions",
    params(("name" = String, Path,)),
    responses((status = 200, description = "The server as it stands in the file, without its secrets.", body = ref("#/components/schemas/McpEntry")), Failures))]
pub(crate) async fn entry(
    app: web::Data<App>,
    _: Principal,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let entry = on_file(&app, move |file| file.entry(&path)).await?;
    Ok(HttpResponse::Ok().json(entry))
}

#[utoipa::path(put, path = "/mcp/{name}", operation_id = "write_mcp_server", tag = "extensions",
    params(("name" = String, Path,)),
    request_body = ref("#/components/schemas/McpDraft"),
    responses((status = 204, description = "It is written and, unless it is switched off, being started: a command runs on this machine as Navi herself does. `GET /mcp` tells how it is."), Failures))]
pub(crate) async fn write(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<String>,
    JsonBody(draft): JsonBody<McpDraft>,
) -> Result<HttpResponse, ApiError> {
    let name = path.into_inner();
    let about = name.clone();
    on_file(&app, move |file| file.write(&name, &draft)).await?;
    written(&app, Recorded::McpServerWritten, who, about, visitor).await;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(delete, path = "/mcp/{name}", operation_id = "remove_mcp_server", tag = "extensions",
    params(("name" = String, Path,), ("version" = String, Query, description = "That of the entry that is meant.")),
    responses((status = 204, description = "It is ended and taken out of the file. Until the service ends, the last eight can be put back."), Failures))]
pub(crate) async fn remove(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<RemovalQuery>,
) -> Result<HttpResponse, ApiError> {
    let name = path.into_inner();
    let about = name.clone();
    on_file(&app, move |file| file.remove(&name, &query.version)).await?;
    written(&app, Recorded::McpServerRemoved, who, about, visitor).await;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(post, path = "/mcp/{name}/restore", operation_id = "restore_mcp_server", tag = "extensions",
    params(("name" = String, Path,)),
    responses((status = 204, description = "It is in the file again as it was."), Failures))]
pub(crate) async fn restore(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let name = path.into_inner();
    let about = name.clone();
    on_file(&app, move |file| file.restore(&name)).await?;
    written(&app, Recorded::McpServerWritten, who, about, visitor).await;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(post, path = "/mcp/{name}/try", operation_id = "try_mcp_server", tag = "extensions",
    params(("name" = String, Path,)),
    request_body = ref("#/components/schemas/McpDraft"),
    responses((status = 200, description = "What it offers, or why it could not be talked to. It was started as any server is, asked, and ended; nothing is kept.", body = ref("#/components/schemas/McpTrial")), Failures))]
pub(crate) async fn try_out(
    app: web::Data<App>,
    _: Principal,
    path: web::Path<String>,
    JsonBody(draft): JsonBody<McpDraft>,
) -> Result<HttpResponse, ApiError> {
    let _leave = app.mcp_servers.trial()?;
    let name = path.into_inner();
    let config = on_file(&app, move |file| file.config(&name, &draft)).await?;
    // Dropped with this where whoever asked has gone, or the service closes, and its program with it.
    let trial = app.closing.run_until_cancelled(trial(config)).await;
    let trial = trial.ok_or_else(|| {
        let closing = "navi is shutting down; try it again when it is back";
        ApiError::new(ErrorCode::ShuttingDown, closing)
    })?;
    Ok(HttpResponse::Ok().json(trial))
}

async fn trial(config: ServerConfig) -> McpTrial {
    let (connection, listing) = match Connection::open(&config, Default::default()).await {
        Ok(opened) => opened,
        Err(error) => {
            return McpTrial {
                error: Some(error),
                ..McpTrial::default()
            };
        }
    };
    let closing = CancellationToken::new();
    closing.cancel();
    connection.ended(closing).await;
    let tools = listing.tools.iter().map(|tool| TriedTool {
        name: tool.spec.name.clone(),
        description: tool.spec.description.clone(),
        effect: tool.spec.effect,
    });
    McpTrial {
        tools: tools.collect(),
        problems: listing.problems,
        error: None,
    }
}

/// Puts in force what was written, and notes who wrote it.
async fn written(app: &App, what: Recorded, who: Principal, name: String, visitor: Visitor) {
    app.engine.extensions().rescan().await;
    app.access
        .note(what, Some(who.user), Some(name), visitor)
        .await;
}

async fn on_file<T: Send + 'static>(
    app: &web::Data<App>,
    work: impl FnOnce(&McpServersFile) -> Result<T, NaviError> + Send + 'static,
) -> Result<T, NaviError> {
    let app = app.clone();
    let work = web::block(move || work(&app.mcp_servers));
    work.await.unwrap_or_else(|_| {
        let failed = "something failed here; Navi's log says what";
        Err(NaviError::new(ErrorCode::Internal, failed))
    })
}
