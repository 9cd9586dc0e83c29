//! `/api/openapi.json` and `/api/events.schema.json`, both generated from the code.
//!
//! Paths come from the handlers (utoipa), schemas from the wire types (schemars, the same
//! that make the events' schema): OpenAPI 3.1 takes JSON Schema as it is.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use actix_web::http::header::{self, ContentType};
use actix_web::{HttpResponse, Resource, web};
use navi_actors::domain::session::transition::{Branched, PlainAnswer};
use navi_actors::hub::HubFrame;
use navi_actors::protocol::change::Change;
use navi_actors::protocol::chat::ChatRequest;
use navi_actors::protocol::command::{ClientFrame, PlainInput};
use navi_actors::protocol::error::NaviError;
use navi_actors::protocol::event::Envelope;
use navi_actors::protocol::extension::{ExtensionTool, McpServer, SkillInfo};
use navi_actors::protocol::file::FileList;
use navi_actors::protocol::inspect::{CallDetails, RunDetails, RunList};
use navi_actors::protocol::memory::{Fact, FormerFact, MemoryExport, MemoryOverview};
use navi_actors::protocol::profile::Profile;
use navi_actors::protocol::session::{MessagePage, SessionSnapshot, SessionSummary};
use navi_actors::protocol::status::SystemStatus;
use navi_actors::protocol::tool::ListedTool;
use navi_actors::protocol::workspace::WorkspaceListing;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use utoipa::OpenApi as _;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};

use super::{
    agents, branches, changes, consent, extensions, files, health, inspect, login, memory,
    messages, metrics, models, resource, resume, runs, search, session, sessions, status, tokens,
    workspace,
};

pub(crate) fn document() -> Resource {
    resource("/api/openapi.json", "GET").route(web::get().to(|| async {
        static TEXT: OnceLock<String> = OnceLock::new();
        json_text(TEXT.get_or_init(|| openapi().to_string()))
    }))
}

pub(crate) fn events() -> Resource {
    resource("/api/events.schema.json", "GET").route(web::get().to(|| async {
        static TEXT: OnceLock<String> = OnceLock::new();
        json_text(TEXT.get_or_init(|| events_schema().to_string()))
    }))
}

fn json_text(text: &'static str) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .content_type(ContentType::json())
        .body(text)
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Navi",
        description = "A personal AI agent on its user's own machine. Conversations stream over WebSocket (`/ws/sessions/{session_id}` and, for the list, `/ws/sessions`; see `/api/events.schema.json`); everything else is here. A browser is logged in by a cookie and a key, which a page sends as `X-Navi-Key` (for a socket, as the subprotocol `navi-key.<key>` beside `navi`), and its changing requests must come from Navi's own page; scripts send a token.",
        license(name = "MIT", identifier = "MIT")
    ),
    paths(
        health::health,
        agents::profiles,
        agents::tools,
        sessions::create,
        sessions::list,
        session::read,
        session::change,
        session::delete,
        session::context,
        session::pin,
        session::restore,
        session::stop,
        resume::go_on,
        resume::resolve,
        messages::send,
        messages::before,
        messages::image,
        consent::set_mode,
        consent::approvals,
        consent::approve,
        consent::rules,
        consent::delete_rule,
        consent::log,
        files::list,
        files::upload,
        files::download,
        files::image,
        files::delete,
        workspace::list,
        workspace::download,
        workspace::image,
        branches::start,
        branches::show,
        changes::list,
        changes::undo,
        runs::events,
        runs::stop,
        inspect::list,
        inspect::run,
        inspect::call,
        search::search,
        memory::read,
        memory::forget_all,
        memory::export,
        memory::history,
        memory::correct,
        memory::forget,
        extensions::tools,
        extensions::allow,
        extensions::forbid,
        extensions::servers,
        extensions::restart,
        extensions::skills,
        status::status,
        models::fetch,
        metrics::metrics,
        tokens::list,
        tokens::create,
        tokens::remove,
        login::log_in,
        login::leave,
    )
)]
struct Document;

/// The errors that any operation may answer with.
pub(crate) struct Failures;

impl utoipa::IntoResponses for Failures {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        [
            ("400", "What was sent is wrong."),
            ("401", "Nobody is logged in, or the token is not known."),
            (
                "403",
                "The request came under another name, or from another page.",
            ),
            ("404", "There is no such thing, or it is another user's."),
            ("409", "Not in the state that this needs."),
            ("408", "The request's body came too slowly."),
            ("413", "Too large."),
            (
                "415",
                "The body does not say that it is of the type that is taken here.",
            ),
            (
                "422",
                "The conversation does not fit into the model's window.",
            ),
            ("429", "Too much at once, or too many wrong tries."),
            ("500", "Something failed here; the log says what."),
            ("502", "The model server failed."),
            (
                "503",
                "The model server, the database or Navi is not available just now.",
            ),
            ("504", "The model server took too long."),
        ]
        .into_iter()
        .map(|(status, description)| (status.to_owned(), RefOr::T(failure(description))))
        .collect()
    }
}

fn failure(description: &str) -> Response {
    let schema = Ref::from_schema_name("NaviError");
    ResponseBuilder::new()
        .description(description)
        .content(
            "application/json",
            ContentBuilder::new().schema(Some(schema)).build(),
        )
        .build()
}

fn openapi() -> Value {
    let mut document = serde_json::to_value(Document::openapi()).unwrap_or_default();
    let mut schemas = Schemas::under("/components/schemas");
    schemas.add::<health::Health>("Health");
    schemas.add::<Vec<Profile>>("ProfileList");
    schemas.add::<Vec<ListedTool>>("ToolList");
    schemas.add::<sessions::NewSessionRequest>("NewSessionRequest");
    schemas.add::<sessions::CreatedSession>("CreatedSession");
    schemas.add::<Vec<SessionSummary>>("SessionList");
    schemas.add::<SessionSnapshot>("SessionSnapshot");
    schemas.add::<MessagePage>("MessagePage");
    schemas.add::<session::SessionChange>("SessionChange");
    schemas.add::<session::PinRequest>("PinRequest");
    schemas.add::<session::Stopped>("Stopped");
    schemas.add::<resume::Continued>("Continued");
    schemas.add::<resume::Resolution>("Resolution");
    schemas.add::<ChatRequest>("ChatRequest");
    schemas.add::<PlainInput>("PlainInput");
    schemas.add::<consent::ModeChange>("ModeChange");
    schemas.add::<consent::ApprovalList>("ApprovalList");
    schemas.add::<consent::ApprovalDecision>("ApprovalDecision");
    schemas.add::<consent::RuleList>("RuleList");
    schemas.add::<consent::ConsentLog>("ConsentLog");
    schemas.add::<PlainAnswer>("PlainAnswer");
    schemas.add::<FileList>("FileList");
    schemas.add::<WorkspaceListing>("WorkspaceListing");
    schemas.add::<Branched>("Branched");
    schemas.add::<branches::NewBranch>("NewBranch");
    schemas.add::<branches::ShownBranch>("ShownBranch");
    schemas.add::<changes::ChangeList>("ChangeList");
    schemas.add::<Change>("Change");
    schemas.add::<runs::SubagentStopped>("SubagentStopped");
    schemas.add::<RunList>("RunList");
    schemas.add::<RunDetails>("RunDetails");
    schemas.add::<CallDetails>("CallDetails");
    schemas.add::<search::SearchResult>("SearchResult");
    schemas.add::<MemoryOverview>("MemoryOverview");
    schemas.add::<MemoryExport>("MemoryExport");
    schemas.add::<Fact>("Fact");
    schemas.add::<Vec<FormerFact>>("FactHistory");
    schemas.add::<memory::FactChange>("FactChange");
    schemas.add::<Vec<ExtensionTool>>("ExtensionToolList");
    schemas.add::<extensions::AllowRequest>("AllowRequest");
    schemas.add::<Vec<McpServer>>("McpServerList");
    schemas.add::<Vec<SkillInfo>>("SkillList");
    schemas.add::<SystemStatus>("SystemStatus");
    schemas.add::<models::FetchRequest>("FetchRequest");
    schemas.add::<Vec<tokens::TokenInfo>>("TokenList");
    schemas.add::<tokens::NewTokenRequest>("NewTokenRequest");
    schemas.add::<tokens::CreatedToken>("CreatedToken");
    schemas.add::<NaviError>("NaviError");
    document["components"]["schemas"] = Value::Object(schemas.finish());
    document["components"]["securitySchemes"] = json!({
        "token": {"type": "http", "scheme": "bearer"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "navi_<port>"},
        "key": {"type": "apiKey", "in": "header", "name": "X-Navi-Key"},
    });
    document["security"] = json!([{"token": []}, {"cookie": [], "key": []}]);
    document["info"]["version"] = Value::from(env!("CARGO_PKG_VERSION"));
    document
}

/// What the sockets carry: frames of a client, envelopes of a session, and what the list tells.
fn events_schema() -> Value {
    let mut schemas = Schemas::under("/$defs");
    schemas.add::<Envelope>("Envelope");
    schemas.add::<ClientFrame>("ClientFrame");
    schemas.add::<HubFrame>("HubFrame");
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What Navi's WebSockets carry",
        "description": "`Envelope` and `ClientFrame` on /ws/sessions/{session_id}, `HubFrame` on /ws/sessions.",
        "anyOf": [
            {"$ref": "#/$defs/Envelope"},
            {"$ref": "#/$defs/ClientFrame"},
            {"$ref": "#/$defs/HubFrame"},
        ],
        "$defs": schemas.finish(),
    })
}

/// Gathers schemas that refer to each other.
struct Schemas {
    generator: SchemaGenerator,
    named: Map<String, Value>,
}

impl Schemas {
    fn under(path: &'static str) -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = path.into();
        });
        Self {
            generator: settings.into_generator(),
            named: Map::new(),
        }
    }

    fn add<T: JsonSchema>(&mut self, name: &str) {
        let schema = self.generator.subschema_for::<T>();
        self.named.insert(name.to_owned(), schema.to_value());
    }

    fn finish(mut self) -> Map<String, Value> {
        let mut all = self.named;
        // A type that is found under its own name is defined there, not a reference to itself.
        all.extend(self.generator.take_definitions(true));
        all
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use navi_actors::protocol::error::ErrorCode;

    use super::super::error;
    use super::*;

    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match (name.as_str(), value) {
                        ("$ref", Value::String(target)) => found.push(target),
                        (_, value) => references(value, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    fn every_reference_leads_somewhere(document: &Value) {
        let mut found = Vec::new();
        references(document, &mut found);
        assert!(!found.is_empty());
        for target in found {
            let pointer = target.strip_prefix('#').unwrap();
            let schema = document.pointer(pointer);
            assert!(schema.is_some(), "{target} leads nowhere");
            let to_itself = json!({"$ref": target});
            assert_ne!(schema, Some(&to_itself), "{target} is only itself");
        }
    }

    #[test]
    fn both_documents_are_whole() {
        every_reference_leads_somewhere(&openapi());
        every_reference_leads_somewhere(&events_schema());
    }

    #[test]
    fn every_operation_says_how_it_fails() {
        let document = openapi();
        let paths = document["paths"].as_object().unwrap();
        assert!(paths.len() >= 15);
        for (path, item) in paths {
            for (method, operation) in item.as_object().unwrap() {
                let public = operation.get("security").is_some();
                let told = operation["responses"].get("401").is_some();
                assert!(public || told, "{method} {path}");
            }
        }
    }

    #[test]
    fn every_error_code_has_a_status_that_the_document_names() {
        let document = openapi();
        let told = &document["paths"]["/sessions"]["get"]["responses"];
        let codes = &document["components"]["schemas"]["ErrorCode"];
        let mut names: Vec<String> = Vec::new();
        for list in [codes.get("enum"), codes.get("oneOf")]
            .into_iter()
            .flatten()
        {
            for item in list.as_array().unwrap() {
                match item.get("const").or(Some(item)) {
                    Some(Value::String(name)) => names.push(name.clone()),
                    _ => names.extend(
                        item["enum"]
                            .as_array()
                            .unwrap()
                            .iter()
                            .map(|n| n.as_str().unwrap().to_owned()),
                    ),
                }
            }
        }
        assert!(names.len() > 30, "{codes}");
        for name in names {
            let code: ErrorCode = serde_json::from_value(Value::from(name.clone())).unwrap();
            let status = error::status(code).as_u16().to_string();
            assert!(
                told.get(&status).is_some() || status == "405",
                "{name}: {status}"
            );
        }
    }
}
