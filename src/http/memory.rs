//! `/memory`: what is remembered of the user, to see, correct, take along and forget.

use actix_web::http::Method;
use actix_web::http::header::{ContentDisposition, DispositionParam, DispositionType};
use actix_web::{HttpResponse, web};
use schemars::JsonSchema;
use serde::Deserialize;

use navi_actors::domain::permissions::Action;

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use crate::access::Principal;

/// A fact as the user wants it.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FactChange {
    /// 1 to 500 characters.
    value: String,
}

pub(crate) fn routes() -> [Endpoint; 4] {
    [
        endpoint("/memory")
            .on(Method::GET, Action::ReadMemory, read)
            .on(Method::DELETE, Action::ChangeMemory, forget_all),
        endpoint("/memory/export").on(Method::GET, Action::ReadMemory, export),
        endpoint("/memory/facts/{category}/{key}")
            .on(Method::PUT, Action::ChangeMemory, correct)
            .on(Method::DELETE, Action::ChangeMemory, forget),
        endpoint("/memory/facts/{category}/{key}/history").on(
            Method::GET,
            Action::ReadMemory,
            history,
        ),
    ]
}

#[utoipa::path(get, path = "/memory", operation_id = "read_memory", tag = "memory",
    responses((status = 200, description = "All facts about the user, and the summary that every conversation begins with.", body = ref("#/components/schemas/MemoryOverview")), Failures))]
pub(crate) async fn read(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    Ok(HttpResponse::Ok().json(app.engine.memory().overview(who.user).await?))
}

#[utoipa::path(delete, path = "/memory", tag = "memory",
    responses((status = 204, description = "Everything is forgotten, with the summary and the history."), Failures))]
pub(crate) async fn forget_all(
    app: web::Data<App>,
    who: Principal,
) -> Result<HttpResponse, ApiError> {
    app.engine.memory().forget_all(who.user).await?;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(get, path = "/memory/export", tag = "memory",
    responses((status = 200, description = "All facts with their history, as a file.", body = ref("#/components/schemas/MemoryExport")), Failures))]
pub(crate) async fn export(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    let export = app.engine.memory().export(who.user).await?;
    let name = format!("navi-memory-{}.json", export.exported_at.format("%Y-%m-%d"));
    Ok(HttpResponse::Ok()
        .insert_header(ContentDisposition {
            disposition: DispositionType::Attachment,
            parameters: vec![DispositionParam::Filename(name)],
        })
        .json(export))
}

#[utoipa::path(get, path = "/memory/facts/{category}/{key}/history", tag = "memory",
    params(("category" = String, Path,), ("key" = String, Path,)),
    responses((status = 200, description = "The values that the fact had before, newest first.", body = ref("#/components/schemas/FactHistory")), Failures))]
pub(crate) async fn history(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let (category, key) = path.into_inner();
    let history = app
        .engine
        .memory()
        .history(who.user, &category, &key)
        .await?;
    Ok(HttpResponse::Ok().json(history))
}

#[utoipa::path(put, path = "/memory/facts/{category}/{key}", tag = "memory",
    params(("category" = String, Path,), ("key" = String, Path,)),
    request_body = ref("#/components/schemas/FactChange"),
    responses((status = 200, description = "The fact as it stands now. A key of one word stays as it is; any other is brought into snake_case.", body = ref("#/components/schemas/Fact")), Failures))]
pub(crate) async fn correct(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<(String, String)>,
    JsonBody(change): JsonBody<FactChange>,
) -> Result<HttpResponse, ApiError> {
    let (category, key) = path.into_inner();
    let memory = app.engine.memory();
    let fact = memory
        .correct(who.user, &category, &key, &change.value)
        .await?;
    Ok(HttpResponse::Ok().json(fact))
}

#[utoipa::path(delete, path = "/memory/facts/{category}/{key}", tag = "memory",
    params(("category" = String, Path,), ("key" = String, Path,)),
    responses((status = 204, description = "Forgotten, with its history."), Failures))]
pub(crate) async fn forget(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let (category, key) = path.into_inner();
    let memory = app.engine.memory();
    memory.forget_named(who.user, &category, &key).await?;
    Ok(HttpResponse::NoContent().finish())
}
