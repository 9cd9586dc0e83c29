//! The page, its REST and its WebSocket, and what stands before every door. Each request goes through the same three gates:
//! security headers, the `Host` check, then login and `Origin` for everything that is not
//! public.

mod account;
mod agents;
mod archive;
pub(crate) mod body;
mod branches;
mod changes;
mod consent;
mod diagnostics;
mod docs;
pub(crate) mod endpoint;
pub(crate) mod error;
mod extensions;
mod files;
mod gate;
mod gzip;
mod health;
mod imports;
mod inspect;
pub(crate) mod lent;
mod login;
mod mcp_servers;
mod memory;
mod messages;
mod metrics;
mod model_server;
mod models;
pub(crate) mod openapi;
pub(crate) mod origin;
mod pace;
mod page;
mod passkeys;
mod path;
mod people;
mod pictures;
mod plan;
mod prefix;
mod resume;
mod runs;
mod search;
mod server;
mod session;
mod sessions;
mod settings;
mod shares;
mod sign_in;
mod sign_on;
mod status;
mod tokens;
pub(crate) mod turns;
mod values;
mod workspace;
pub(crate) mod ws;

use std::sync::Arc;

use actix_web::dev::HttpServiceFactory;
use actix_web::middleware::from_fn;
use actix_web::{HttpRequest, HttpResponse, web};
use navi_actors::engine::Engine;
use navi_actors::metrics as counted;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use tokio_util::sync::CancellationToken;

use self::endpoint::Endpoint;
use self::error::ApiError;
pub(crate) use self::origin::Places;
use crate::access::Access;
use crate::diagnostics::Diagnostics;
use crate::doors::{self, Lenders, Requests};
use crate::mcp_servers::McpServersFile;
use crate::settings::change::SettingsFile;
use crate::settings::{Loaded, OpenDoors};

pub(crate) use self::server::{HttpDoor, IDLE_SECONDS, open};
pub(crate) use self::ws::tabs::Tabs;

/// What every handler may use.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) access: Arc<Access>,
    /// As at the start.
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) settings: Arc<SettingsFile>,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) places: Arc<Places>,
    /// Cancelled when the service begins to shut down.
    pub(crate) closing: CancellationToken,
    pub(crate) tabs: Tabs,
    pub(crate) requests: Requests,
    pub(crate) lenders: Lenders,
    pub(crate) mcp_servers: Arc<McpServersFile>,
}

/// All routes. What stands in the protected scope needs a login; a path that no route has
/// is `not_found` either way. What takes programs' messages goes before all else, which is tried in
/// its order, and slowly where a path has names in it.
fn routes(config: &mut web::ServiceConfig, doors: &OpenDoors) {
    let takes_messages = |it: &Endpoint| doors::takes_messages(it.path());
    let (first, others): (Vec<_>, Vec<_>) = endpoints(doors).into_iter().partition(takes_messages);
    for endpoint in first {
        config.service(endpoint.behind_login());
    }
    for open in public() {
        config.service(open);
    }
    config
        .service(protected(others, doors))
        .default_service(web::to(not_found));
}

fn protected(endpoints: Vec<Endpoint>, doors: &OpenDoors) -> impl HttpServiceFactory + use<> {
    let mut scope = web::scope("").wrap(from_fn(gate::require_login));
    for path in doors::closed_paths(doors) {
        scope = scope.service(doors::closed(path));
    }
    for endpoint in endpoints {
        scope = scope.service(endpoint);
    }
    if counted::on().is_some() {
        scope = scope.service(metrics::routes());
    }
    scope.default_service(web::to(not_found))
}

/// What is for everybody.
fn public() -> Vec<Endpoint> {
    vec![
        health::routes(),
        page::index(),
        page::files(),
        page::favicon(),
        page::worker(),
        login::link(),
        sign_in::routes(),
        sign_in::invitation_routes(),
        sign_in::accept_routes(),
        passkeys::begin_sign_in_routes(),
        passkeys::finish_sign_in_routes(),
        sign_on::begin_routes(),
        sign_on::callback_routes(),
        sign_on::finish_routes(),
        sign_on::proxy_routes(),
        sign_on::logout_routes(),
        shares::look_routes(),
        shares::follow_routes(),
        docs::page(),
        docs::script(),
        docs::style(),
        openapi::document(),
        openapi::events(),
    ]
}

/// All that there may be, as the document and `docs/people.md` have it.
pub(crate) fn all_endpoints() -> Vec<Endpoint> {
    let mut all = public();
    all.extend(endpoints(&OpenDoors::all()));
    all.push(metrics::routes());
    all
}

/// What is for those who came in. Paths are tried in this order, those with names in them slowly:
/// programs, whose every message is a request, go before the page, which sends its own over a
/// socket.
fn endpoints(doors: &OpenDoors) -> Vec<Endpoint> {
    let mut all = doors::endpoints(doors);
    all.extend(ws::routes());
    all.extend(agents::routes());
    all.push(sessions::routes());
    all.push(imports::routes());
    all.extend(session::routes());
    all.push(plan::routes());
    all.extend(resume::routes());
    all.extend(messages::routes());
    all.extend(shares::routes());
    all.extend(consent::routes());
    all.extend(files::routes());
    all.extend(workspace::routes());
    all.push(pictures::routes());
    all.extend(lent::routes());
    all.extend(branches::routes());
    all.extend(changes::routes());
    all.extend(runs::routes());
    all.extend(inspect::routes());
    all.push(search::routes());
    all.extend(memory::routes());
    all.extend(extensions::routes());
    all.extend(mcp_servers::routes());
    all.push(status::routes());
    all.extend(settings::routes());
    all.push(diagnostics::routes());
    all.extend(models::routes());
    all.extend(model_server::routes());
    all.extend(tokens::routes());
    all.extend(account::routes());
    all.push(archive::routes());
    all.extend(passkeys::routes());
    all.extend(sign_on::routes());
    all.extend(people::routes());
    all.push(login::log_out());
    all
}

async fn not_found(request: HttpRequest) -> HttpResponse {
    let error = ApiError(NaviError::new(
        ErrorCode::NotFound,
        "there is nothing at this path; /api/docs lists what there is",
    ));
    doors::refusal(request.path(), &error)
}

#[cfg(test)]
mod endpoint_tests;
