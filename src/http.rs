//! The page, its REST and its WebSocket, and what stands before every door. Each request goes through the same three gates:
//! security headers, the `Host` check, then login and `Origin` for everything that is not
//! public.

mod agents;
pub(crate) mod body;
mod branches;
mod changes;
mod consent;
mod diagnostics;
mod docs;
pub(crate) mod error;
mod extensions;
mod files;
mod gate;
mod health;
mod imports;
mod inspect;
pub(crate) mod lent;
mod login;
mod memory;
mod messages;
mod metrics;
mod models;
pub(crate) mod openapi;
pub(crate) mod origin;
mod pace;
mod page;
mod path;
mod plan;
mod resume;
mod runs;
mod search;
mod server;
mod session;
mod sessions;
mod settings;
mod status;
mod tokens;
mod workspace;
pub(crate) mod ws;

use std::net::SocketAddr;
use std::sync::Arc;

use actix_web::dev::HttpServiceFactory;
use actix_web::middleware::from_fn;
use actix_web::{HttpRequest, HttpResponse, Resource, web};
use navi_actors::engine::Engine;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use tokio_util::sync::CancellationToken;

use self::error::ApiError;
use crate::access::Access;
use crate::diagnostics::Diagnostics;
use crate::doors::{self, Requests};
use crate::settings::{Loaded, OpenDoors};

pub(crate) use self::server::{HttpDoor, open};
pub(crate) use self::ws::tabs::Tabs;

/// What every handler may use.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) access: Arc<Access>,
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) diagnostics: Diagnostics,
    /// Where the service listens.
    pub(crate) address: SocketAddr,
    /// Cancelled when the service begins to shut down.
    pub(crate) closing: CancellationToken,
    pub(crate) tabs: Tabs,
    pub(crate) requests: Requests,
}

/// All routes. What stands in the protected scope needs a login; a path that no route has
/// is `not_found` either way.
fn routes(config: &mut web::ServiceConfig, doors: &OpenDoors) {
    config
        .service(health::routes())
        .service(page::index())
        .service(page::files())
        .service(page::favicon())
        .service(page::worker())
        .service(login::link())
        .service(docs::page())
        .service(docs::script())
        .service(docs::style())
        .service(openapi::document())
        .service(openapi::events())
        .service(protected(doors.clone()))
        .default_service(web::to(not_found));
}

fn protected(doors: OpenDoors) -> impl HttpServiceFactory {
    web::scope("")
        .wrap(from_fn(gate::require_login))
        // Paths are tried in this order, those with names in them slowly: programs, whose every
        // message is a request, go before the page, which sends its own over a socket.
        .configure(move |config| doors::routes(config, &doors))
        .service(ws::session_routes())
        .service(ws::list_routes())
        .service(agents::profiles_routes())
        .service(agents::profile_file_routes())
        .service(agents::tools_routes())
        .service(sessions::routes())
        .service(imports::routes())
        .service(session::routes())
        .service(session::context_routes())
        .service(session::parts_routes())
        .service(session::pin_routes())
        .service(session::restore_routes())
        .service(session::stop_routes())
        .service(plan::routes())
        .service(resume::continue_routes())
        .service(resume::call_routes())
        .service(messages::routes())
        .service(messages::image_routes())
        .service(consent::mode_routes())
        .service(consent::approvals_routes())
        .service(consent::approval_routes())
        .service(consent::rules_routes())
        .service(consent::rule_routes())
        .service(consent::log_routes())
        .service(files::routes())
        .service(files::one_routes())
        .service(files::image_routes())
        .service(workspace::routes())
        .service(workspace::file_routes())
        .service(workspace::image_routes())
        .service(lent::lend_routes())
        .service(lent::call_routes())
        .service(branches::routes())
        .service(branches::shown_routes())
        .service(changes::routes())
        .service(changes::undo_routes())
        .service(runs::events_routes())
        .service(runs::stop_routes())
        .service(inspect::list_routes())
        .service(inspect::run_routes())
        .service(inspect::call_routes())
        .service(search::routes())
        .service(memory::routes())
        .service(memory::export_routes())
        .service(memory::fact_routes())
        .service(memory::history_routes())
        .service(extensions::tools_routes())
        .service(extensions::allow_routes())
        .service(extensions::servers_routes())
        .service(extensions::restart_routes())
        .service(extensions::skills_routes())
        .service(status::routes())
        .service(settings::routes())
        .service(diagnostics::routes())
        .service(models::fetch_routes())
        .service(models::pull_routes())
        .service(models::stop_routes())
        .configure(metrics::routes)
        .service(tokens::routes())
        .service(tokens::one_routes())
        .service(login::log_out())
        .default_service(web::to(not_found))
}

async fn not_found(request: HttpRequest) -> HttpResponse {
    let error = ApiError(NaviError::new(
        ErrorCode::NotFound,
        "there is nothing at this path; /api/docs lists what there is",
    ));
    doors::refusal(request.path(), &error)
}

/// A resource that answers other methods with 405 and the list of those it has.
pub(crate) fn resource(path: &str, allowed: &'static str) -> Resource {
    web::resource(path).default_service(web::to(move |request: HttpRequest| async move {
        let error = NaviError::new(
            ErrorCode::MethodNotAllowed,
            format!("this path takes {allowed}"),
        );
        let mut response = doors::refusal(request.path(), &ApiError(error));
        response.headers_mut().insert(
            actix_web::http::header::ALLOW,
            actix_web::http::header::HeaderValue::from_static(allowed),
        );
        response
    }))
}
