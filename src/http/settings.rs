//! `GET /api/settings`: what `navi config` prints.

use std::path::Path;

use actix_web::{HttpResponse, Resource, web};
use schemars::JsonSchema;
use serde::Serialize;

use super::openapi::Failures;
use super::{App, resource};
use crate::access::Principal;
use crate::settings::ShownValue;

/// Each setting as it was at the start, and where to change it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SettingList<'a> {
    /// The file that was read, or else the one that would be.
    file: &'a Path,
    settings: &'a [ShownValue],
}

pub(crate) fn routes() -> Resource {
    resource("/api/settings", "GET").route(web::get().to(settings))
}

#[utoipa::path(get, path = "/api/settings", tag = "service",
    responses((status = 200, description = "Every setting with where its value came from; secrets are hidden.", body = ref("#/components/schemas/SettingList")), Failures))]
pub(crate) async fn settings(app: web::Data<App>, _: Principal) -> HttpResponse {
    HttpResponse::Ok().json(SettingList {
        file: &app.loaded.file,
        settings: &app.loaded.values,
    })
}
