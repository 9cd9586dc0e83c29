//! `GET /api/settings`: what `navi config` prints.

use std::path::Path;

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use schemars::JsonSchema;
use serde::Serialize;

use navi_actors::domain::permissions::Action;

use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::openapi::Failures;
use crate::access::Principal;
use crate::settings::ShownValue;

/// Each setting as it was at the start, and where to change it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SettingList<'a> {
    /// The file that was read, or else the one that would be.
    file: &'a Path,
    settings: &'a [ShownValue],
}

pub(crate) fn routes() -> Endpoint {
    endpoint("/api/settings").on(Method::GET, Action::ManageService, settings)
}

#[utoipa::path(get, path = "/api/settings", tag = "service",
    responses((status = 200, description = "Every setting with where its value came from; secrets are hidden.", body = ref("#/components/schemas/SettingList")), Failures))]
pub(crate) async fn settings(app: web::Data<App>, _: Principal) -> HttpResponse {
    HttpResponse::Ok().json(SettingList {
        file: &app.loaded.file,
        settings: &app.loaded.values,
    })
}
