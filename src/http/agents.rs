//! `/agents`: profiles and tools.

use actix_web::{HttpResponse, Resource, web};

use super::openapi::Failures;
use super::{App, resource};
use crate::access::Principal;

pub(crate) fn profiles_routes() -> Resource {
    resource("/agents/profiles", "GET").route(web::get().to(profiles))
}

pub(crate) fn tools_routes() -> Resource {
    resource("/agents/tools", "GET").route(web::get().to(tools))
}

#[utoipa::path(get, path = "/agents/profiles", tag = "agents",
    responses((status = 200, description = "All profiles.", body = ref("#/components/schemas/ProfileList")), Failures))]
pub(crate) async fn profiles(app: web::Data<App>, _: Principal) -> HttpResponse {
    HttpResponse::Ok().json(app.engine.profiles())
}

#[utoipa::path(get, path = "/agents/tools", tag = "agents",
    responses((status = 200, description = "All tools.", body = ref("#/components/schemas/ToolList")), Failures))]
pub(crate) async fn tools(app: web::Data<App>, _: Principal) -> HttpResponse {
    HttpResponse::Ok().json(app.engine.tools())
}
