//! `/mcp/{name}`: MCP servers, added, tried, changed and taken out by whoever administers.

use std::sync::Arc;

use actix_web::http::Method;
use actix_web::{HttpResponse, rt, web};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::people::Recorded;
use navi_actors::protocol::phrase::PhraseCode;
use navi_actors::protocol::tool::Effect;
use navi_actors::tools::mcp::{Connection, ServerConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::App;
use super::agents::blocking;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use crate::access::{Key, Principal, Visitor};
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

pub(crate) fn routes() -> [Endpoint; 3] {
    [
        endpoint("/mcp/{name}")
            .on(Method::GET, Action::ManageService, entry)
            .on(Method::PUT, Action::ManageService, write)
            .on(Method::DELETE, Action::ManageService, remove),
        endpoint("/mcp/{name}/try").on(Method::POST, Action::ManageService, try_out),
        endpoint("/mcp/{name}/restore").on(Method::POST, Action::ManageService, restore),
    ]
}

#[utoipa::path(get, path = "/mcp/{name}", operation_id = "mcp_server", tag = "extensions",
    params(("name" = String, Path,)),
    responses((status = 200, description = "The server as it stands in the file, without its secrets.", body = ref("#/components/schemas/McpEntry")), Failures))]
pub(crate) async fn entry(
    app: web::Data<App>,
    _: Principal,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let file = Arc::clone(&app.mcp_servers);
    let entry = blocking(move || file.entry(&path)).await?;
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
    JsonBody(mut draft): JsonBody<McpDraft>,
) -> Result<HttpResponse, ApiError> {
    need_leave_to_run(&app, &who, &mut draft, &visitor).await?;
    let name = path.into_inner();
    let change = Change {
        what: Recorded::McpServerWritten,
        name: name.clone(),
        who,
        visitor,
    };
    carried_out(&app, change, move |file| file.write(&name, &draft)).await?;
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
    let change = Change {
        what: Recorded::McpServerRemoved,
        name: name.clone(),
        who,
        visitor,
    };
    let remove = move |file: &McpServersFile| file.remove(&name, &query.version);
    carried_out(&app, change, remove).await?;
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
    // It may be a program. In a browser this is the page's undo, which asks for no password: the
    // server was there before.
    let leave = match who.key {
        Key::Login(_) => Ok(()),
        _ => app.access.need_leave_to_run(&who, None, &visitor).await,
    };
    let name = path.into_inner();
    let change = Change {
        what: Recorded::McpServerWritten,
        name: name.clone(),
        who,
        visitor,
    };
    carried_out(&app, change, move |file| file.restore(&name, leave)).await?;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(post, path = "/mcp/{name}/try", operation_id = "try_mcp_server", tag = "extensions",
    params(("name" = String, Path,)),
    request_body = ref("#/components/schemas/McpDraft"),
    responses((status = 200, description = "What it offers, or why it could not be talked to. It was started as any server is, asked, and ended; nothing is kept.", body = ref("#/components/schemas/McpTrial")), Failures))]
pub(crate) async fn try_out(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<String>,
    JsonBody(mut draft): JsonBody<McpDraft>,
) -> Result<HttpResponse, ApiError> {
    need_leave_to_run(&app, &who, &mut draft, &visitor).await?;
    let _leave = app.mcp_servers.trial()?;
    let (name, file) = (path.into_inner(), Arc::clone(&app.mcp_servers));
    let config = blocking(move || file.config(&name, &draft)).await?;
    // Before it runs: what it does may end all else.
    let about = format!("{} ({})", config.name, config.transport.word());
    noted(&app, Recorded::McpServerTried, about, &who, visitor).await;
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

/// Before anything: a program runs as Navi herself does, and a variable of hers may be a secret.
async fn need_leave_to_run(
    app: &App,
    who: &Principal,
    draft: &mut McpDraft,
    visitor: &Visitor,
) -> Result<(), NaviError> {
    // It goes no further.
    let password = draft.current_password.take();
    if !draft.needs_leave_to_run() {
        return Ok(());
    }
    app.access.need_leave_to_run(who, password, visitor).await
}

/// What is done to which server's entry, and by whom.
struct Change {
    what: Recorded,
    name: String,
    who: Principal,
    visitor: Visitor,
}

/// To its end, whoever goes away meanwhile: of what is written the record says who wrote it, and it
/// is put in force.
async fn carried_out(
    app: &App,
    change: Change,
    write: impl FnOnce(&McpServersFile) -> Result<(), NaviError> + Send + 'static,
) -> Result<(), NaviError> {
    let (app, file) = (app.clone(), Arc::clone(&app.mcp_servers));
    let work = rt::spawn(async move {
        blocking(move || write(&file)).await?;
        let Change {
            what,
            name,
            who,
            visitor,
        } = change;
        noted(&app, what, name, &who, visitor).await;
        app.engine.extensions().rescan().await;
        Ok(())
    });
    work.await.unwrap_or_else(|_| {
        Err(NaviError::said(
            ErrorCode::Internal,
            PhraseCode::SomethingFailed,
        ))
    })
}

/// In the log and, where there are accounts, in the record.
async fn noted(app: &App, what: Recorded, about: String, who: &Principal, visitor: Visitor) {
    info!(
        server = about,
        ?what,
        "an MCP server, by the page or the API"
    );
    app.access
        .note(what, Some(who.user), Some(about), visitor)
        .await;
}
