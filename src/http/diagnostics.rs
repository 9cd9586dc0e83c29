//! `GET /api/diagnostics`: what `navi doctor` finds.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};

use navi_actors::domain::permissions::Action;

use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use crate::access::Principal;

pub(crate) fn routes() -> Endpoint {
    endpoint("/api/diagnostics").on(Method::GET, Action::ManageService, diagnostics)
}

#[utoipa::path(get, path = "/api/diagnostics", tag = "service",
    responses((status = 200, description = "What was looked at just now, and what to do about what is wrong.", body = ref("#/components/schemas/Report")), Failures))]
pub(crate) async fn diagnostics(
    app: web::Data<App>,
    _: Principal,
) -> Result<HttpResponse, ApiError> {
    let report = app.diagnostics.look(&app.engine).await?;
    Ok(HttpResponse::Ok().json(report))
}
