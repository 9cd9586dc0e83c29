//! `GET /metrics`: what this process counted, for Prometheus. There only where `NAVI_METRICS` is
//! on.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::metrics::CONTENT_TYPE;
use navi_actors::protocol::error::ErrorCode;

use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use crate::access::Principal;

pub(crate) fn routes() -> Endpoint {
    endpoint("/metrics").on(Method::GET, Action::ReadMetrics, metrics)
}

#[utoipa::path(get, path = "/metrics", tag = "service",
    responses((status = 200, description = "What this process counted, in Prometheus' text format. The path is not there unless `NAVI_METRICS` is on.", body = String, content_type = "text/plain; version=0.0.4; charset=utf-8"), Failures))]
pub(crate) async fn metrics(app: web::Data<App>, _: Principal) -> Result<HttpResponse, ApiError> {
    let text = app.engine.metrics(app.tabs.open()).await;
    let text = text.ok_or_else(|| ApiError::new(ErrorCode::NotFound, "nothing is counted here"))?;
    Ok(HttpResponse::Ok().content_type(CONTENT_TYPE).body(text))
}
