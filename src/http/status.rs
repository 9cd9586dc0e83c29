//! `GET /api/status`: how the service is.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};

use navi_actors::domain::permissions::Action;

use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::openapi::Failures;
use crate::access::Principal;

pub(crate) fn routes() -> Endpoint {
    endpoint("/api/status").on(Method::GET, Action::ReadService, status)
}

#[utoipa::path(get, path = "/api/status", tag = "service",
    responses((status = 200, description = "Backends, models, and, for an admin, what is wrong.", body = ref("#/components/schemas/SystemStatus")), Failures))]
pub(crate) async fn status(app: web::Data<App>, who: Principal) -> HttpResponse {
    HttpResponse::Ok().json(app.engine.status().seen_by(who.grant.role))
}
