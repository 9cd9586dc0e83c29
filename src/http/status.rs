//! `GET /api/status`: how the service is.

use actix_web::{HttpResponse, Resource, web};

use super::openapi::Failures;
use super::{App, resource};
use crate::access::Principal;

pub(crate) fn routes() -> Resource {
    resource("/api/status", "GET").route(web::get().to(status))
}

#[utoipa::path(get, path = "/api/status", tag = "service",
    responses((status = 200, description = "Backends, models, and what is wrong.", body = ref("#/components/schemas/SystemStatus")), Failures))]
pub(crate) async fn status(app: web::Data<App>, _: Principal) -> HttpResponse {
    HttpResponse::Ok().json(app.engine.status())
}
