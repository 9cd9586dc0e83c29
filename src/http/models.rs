//! `/api/models`: the starter's models are fetched, and Ollama's pulled.

use actix_web::http::Method;
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

/// Which model.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FetchRequest {
    /// One of `fetchable` in the status.
    name: String,
}

/// Which model Ollama is to pull, or not to pull any more.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PullRequest {
    /// As Ollama's library has it, or another registry: `qwen3:8b`, `hf.co/owner/model:Q4_K_M`.
    name: String,
}

pub(crate) fn routes() -> [Endpoint; 3] {
    [
        endpoint("/api/models/fetch").on(Method::POST, Action::ManageService, fetch),
        endpoint("/api/models/pull").on(Method::POST, Action::ManageService, pull),
        endpoint("/api/models/pull/stop").on(Method::POST, Action::ManageService, stop),
    ]
}

#[utoipa::path(post, path = "/api/models/fetch", tag = "service",
    request_body = ref("#/components/schemas/FetchRequest"),
    responses((status = 202, description = "It is being fetched; the status tells how far it is."), Failures))]
pub(crate) async fn fetch(
    app: web::Data<App>,
    _: Principal,
    JsonBody(request): JsonBody<FetchRequest>,
) -> Result<HttpResponse, ApiError> {
    app.engine.fetch_model(&request.name).await?;
    Ok(HttpResponse::Accepted().finish())
}

#[utoipa::path(post, path = "/api/models/pull", tag = "service",
    request_body = ref("#/components/schemas/PullRequest"),
    responses((status = 202, description = "Ollama is asked to pull it, or does already; the status tells how far it is, and why it failed."), Failures))]
pub(crate) async fn pull(
    app: web::Data<App>,
    _: Principal,
    JsonBody(request): JsonBody<PullRequest>,
) -> Result<HttpResponse, ApiError> {
    app.engine.pull_model(&request.name)?;
    Ok(HttpResponse::Accepted().finish())
}

#[utoipa::path(post, path = "/api/models/pull/stop", operation_id = "stop_pull", tag = "service",
    request_body = ref("#/components/schemas/PullRequest"),
    responses((status = 204, description = "It is not pulled any more, and the status has nothing of it. What Ollama has of it stays there."), Failures))]
pub(crate) async fn stop(
    app: web::Data<App>,
    _: Principal,
    JsonBody(request): JsonBody<PullRequest>,
) -> Result<HttpResponse, ApiError> {
    app.engine.stop_pull(&request.name)?;
    Ok(HttpResponse::NoContent().finish())
}
