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

pub(crate) use self::server::{HttpDoor, open};
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
    all.extend([
        ws::session_routes(),
        ws::list_routes(),
        agents::profiles_routes(),
        agents::profile_file_routes(),
        agents::tools_routes(),
        sessions::routes(),
        imports::routes(),
        session::routes(),
        session::context_routes(),
        session::parts_routes(),
        session::pin_routes(),
        session::restore_routes(),
        session::stop_routes(),
        plan::routes(),
        resume::continue_routes(),
        resume::call_routes(),
        messages::routes(),
        messages::image_routes(),
        shares::people_routes(),
        shares::person_routes(),
        shares::leave_routes(),
        shares::links_routes(),
        shares::link_routes(),
        consent::mode_routes(),
        consent::approvals_routes(),
        consent::approval_routes(),
        consent::rules_routes(),
        consent::rule_routes(),
        consent::log_routes(),
        files::routes(),
        files::one_routes(),
        files::image_routes(),
        workspace::routes(),
        workspace::file_routes(),
        workspace::image_routes(),
        workspace::changes_routes(),
        pictures::routes(),
        lent::lend_routes(),
        lent::call_routes(),
        branches::routes(),
        branches::shown_routes(),
        changes::routes(),
        changes::undo_routes(),
        runs::events_routes(),
        runs::stop_routes(),
        inspect::list_routes(),
        inspect::run_routes(),
        inspect::call_routes(),
        search::routes(),
        memory::routes(),
        memory::export_routes(),
        memory::fact_routes(),
        memory::history_routes(),
        extensions::tools_routes(),
        extensions::folders_routes(),
        extensions::allow_routes(),
        extensions::servers_routes(),
        extensions::restart_routes(),
        mcp_servers::entry_routes(),
        mcp_servers::try_routes(),
        mcp_servers::restore_routes(),
        extensions::skills_routes(),
        status::routes(),
        settings::routes(),
        settings::undo_routes(),
        diagnostics::routes(),
        models::fetch_routes(),
        models::pull_routes(),
        models::stop_routes(),
        model_server::try_routes(),
        model_server::routes(),
        tokens::routes(),
        tokens::one_routes(),
        account::routes(),
        archive::routes(),
        account::recovery_routes(),
        account::devices_routes(),
        account::device_routes(),
        passkeys::routes(),
        passkeys::begin_routes(),
        passkeys::finish_routes(),
        passkeys::one_routes(),
        sign_on::routes(),
        sign_on::finish_link_routes(),
        sign_on::one_routes(),
        people::routes(),
        people::one_routes(),
        people::reset_routes(),
        people::powers_routes(),
        people::invitations_routes(),
        people::invitation_routes(),
        people::record_routes(),
        people::export_routes(),
        login::log_out(),
    ]);
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
