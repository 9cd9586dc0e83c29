//! `GET /health`: the process serves. It says nothing about model servers.

use actix_web::HttpResponse;
use actix_web::http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use super::endpoint::{Endpoint, endpoint};

/// The one answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    status: &'static str,
}

pub(crate) fn routes() -> Endpoint {
    endpoint("/health")
        .on(Method::GET, None, health)
        .on(Method::HEAD, None, health)
}

#[utoipa::path(get, path = "/health", tag = "service", security(()),
    responses((status = 200, description = "The service answers.", body = ref("#/components/schemas/Health")),
        (status = 403, description = "The request came under another name.", body = ref("#/components/schemas/NaviError"))))]
pub(crate) async fn health() -> HttpResponse {
    HttpResponse::Ok().json(Health { status: "ok" })
}
