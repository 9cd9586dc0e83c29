//! `GET /health`: the process serves. It says nothing about model servers.

use actix_web::{HttpResponse, Resource, web};
use schemars::JsonSchema;
use serde::Serialize;

use super::resource;

/// The one answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    status: &'static str,
}

pub(crate) fn routes() -> Resource {
    resource("/health", "GET, HEAD")
        .route(web::get().to(health))
        .route(web::head().to(health))
}

#[utoipa::path(get, path = "/health", tag = "service", security(()),
    responses((status = 200, description = "The service answers.", body = ref("#/components/schemas/Health"))))]
pub(crate) async fn health() -> HttpResponse {
    HttpResponse::Ok().json(Health { status: "ok" })
}
