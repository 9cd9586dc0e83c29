//! `GET /api/diagnostics`: what `navi doctor` finds.

use actix_web::{HttpResponse, Resource, web};

use super::error::ApiError;
use super::openapi::Failures;
use super::{App, resource};
use crate::access::Principal;

pub(crate) fn routes() -> Resource {
    resource("/api/diagnostics", "GET").route(web::get().to(diagnostics))
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
