//! `POST /api/models/fetch`: the starter's models.

use actix_web::{HttpResponse, Resource, web};
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::JsonBody;
use super::error::ApiError;
use super::openapi::Failures;
use super::{App, resource};
use crate::access::Principal;

/// Which model.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FetchRequest {
    /// One of `fetchable` in the status.
    name: String,
}

pub(crate) fn routes() -> Resource {
    resource("/api/models/fetch", "POST").route(web::post().to(fetch))
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
