//! `/api/openapi.json` and `/api/events.schema.json`, both generated from the code.
//!
//! Paths come from the handlers (utoipa), schemas from the wire types (schemars, the same
//! that make the events' schema): OpenAPI 3.1 takes JSON Schema as it is.

mod characters;
mod demanded;
mod limits;
mod stated;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use actix_web::http::Method;
use actix_web::http::header::{self, ContentType};
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::domain::session::transition::{Branched, PlainAnswer};
use navi_actors::hub::HubFrame;
use navi_actors::protocol::change::{Change, FileHistory};
use navi_actors::protocol::chat::ChatRequest;
use navi_actors::protocol::command::{
    ClientFrame, NewSessionRequest, PlainInput, PlanEdit, SessionChange,
};
use navi_actors::protocol::context::ContextParts;
use navi_actors::protocol::error::NaviError;
use navi_actors::protocol::event::Envelope;
use navi_actors::protocol::extension::{ExtensionTool, McpServer, SkillInfo};
use navi_actors::protocol::file::FileList;
use navi_actors::protocol::import::{Imported, ImportedSession};
use navi_actors::protocol::inspect::{CallDetails, RunDetails, RunList};
use navi_actors::protocol::memory::{Fact, FormerFact, MemoryExport, MemoryOverview};
use navi_actors::protocol::people::PersonRef;
use navi_actors::protocol::profile::Profile;
use navi_actors::protocol::session::{MessagePage, SessionSnapshot, SessionSummary, Shared};
use navi_actors::protocol::status::SystemStatus;
use navi_actors::protocol::tool::ListedTool;
use navi_actors::protocol::workspace::WorkspaceListing;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use utoipa::OpenApi as _;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};

use crate::checks::Report;
use crate::doors::mcp::McpError;
use crate::doors::ollama::{self, OllamaError};
use crate::doors::openai::{self, OpenaiError};
use crate::doors::responses::ResponseRequest;
use crate::mcp_servers::draft::{McpDraft, McpEntry};
use crate::profiles::edit::ProfileText;
use crate::settings::PublicUrl;
use crate::settings::change::SettingList;

use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::{
    account, agents, archive, branches, changes, consent, diagnostics, extensions, files, health,
    imports, inspect, lent, login, mcp_servers, memory, messages, metrics, model_server, models,
    passkeys, people, pictures, plan, resume, runs, search, session, sessions, settings, shares,
    sign_in, sign_on, status, tokens, workspace,
};

pub(crate) fn document() -> Endpoint {
    endpoint("/api/openapi.json").on(Method::GET, None, |app: web::Data<App>| async move {
        static TEXT: OnceLock<String> = OnceLock::new();
        json_text(TEXT.get_or_init(|| served(app.places.public.as_ref())))
    })
}

pub(crate) fn events() -> Endpoint {
    endpoint("/api/events.schema.json").on(Method::GET, None, || async {
        static TEXT: OnceLock<String> = OnceLock::new();
        json_text(TEXT.get_or_init(|| events_schema().to_string()))
    })
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
        agents::profile_file,
        agents::write_profile_file,
        agents::tools,
        sessions::create,
        sessions::list,
        imports::import,
        session::read,
        session::change,
        session::delete,
        session::context,
        session::parts,
        session::pin,
        session::restore,
        session::stop,
        plan::edit,
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
        workspace::changes,
        pictures::image,
        lent::lend,
        lent::waiting,
        lent::answer,
        branches::start,
        branches::show,
        changes::list,
        changes::undo,
        crate::doors::events::events,
        crate::doors::openai::models,
        crate::doors::openai::model,
        crate::doors::openai::completions,
        crate::doors::responses::create,
        crate::doors::responses::read,
        crate::doors::responses::delete,
        crate::doors::responses::cancel,
        crate::doors::responses::input_items,
        crate::doors::mcp::ask,
        crate::doors::mcp::listen,
        crate::doors::mcp::leave,
        crate::doors::ollama::version,
        crate::doors::ollama::tags,
        crate::doors::ollama::ps,
        crate::doors::ollama::show,
        crate::doors::ollama::chat,
        crate::doors::ollama::generate,
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
        extensions::folders,
        extensions::tools,
        extensions::allow,
        extensions::forbid,
        extensions::servers,
        extensions::restart,
        mcp_servers::entry,
        mcp_servers::write,
        mcp_servers::remove,
        mcp_servers::restore,
        mcp_servers::try_out,
        extensions::skills,
        status::status,
        settings::settings,
        settings::change,
        settings::undo,
        diagnostics::diagnostics,
        models::fetch,
        models::pull,
        models::stop,
        model_server::try_out,
        model_server::use_it,
        metrics::metrics,
        shares::people,
        shares::add_person,
        shares::remove_person,
        shares::leave,
        shares::links,
        shares::add_link,
        shares::remove_link,
        shares::look,
        shares::follow,
        sign_in::ways,
        sign_in::sign_in,
        sign_in::look,
        sign_in::accept,
        archive::archive,
        passkeys::list,
        passkeys::begin,
        passkeys::finish,
        passkeys::rename,
        passkeys::remove,
        passkeys::begin_sign_in,
        passkeys::finish_sign_in,
        account::read,
        account::change,
        account::recover,
        account::devices,
        account::sign_out_others,
        account::sign_out,
        sign_on::begin,
        sign_on::hand_on,
        sign_on::finish,
        sign_on::by_proxy,
        sign_on::signed_out_there,
        sign_on::list,
        sign_on::begin_link,
        sign_on::finish_link,
        sign_on::unlink,
        people::list,
        people::change,
        people::remove,
        people::reset,
        people::powers,
        people::grant,
        people::invitations,
        people::invite,
        people::remove_invitation,
        people::record,
        people::export,
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
        failures("NaviError")
    }
}

/// The same, in the form that OpenAI's clients read.
pub(crate) struct OpenaiFailures;

const RUN_FAILED: &str = "The run failed, and is not to be begun again.";

impl utoipa::IntoResponses for OpenaiFailures {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut all = failures("OpenaiError");
        let failed = failure("OpenaiError", RUN_FAILED);
        all.insert("424".to_owned(), RefOr::T(failed));
        all
    }
}

/// The same, in the form that Ollama's clients read.
pub(crate) struct OllamaFailures;

impl utoipa::IntoResponses for OllamaFailures {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut all = failures("OllamaError");
        let failed = failure("OllamaError", RUN_FAILED);
        all.insert("424".to_owned(), RefOr::T(failed));
        all
    }
}

/// The same, in the form that MCP's clients read, and what only rmcp says.
pub(crate) struct McpFailures;

impl utoipa::IntoResponses for McpFailures {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut failures = failures("McpError");
        for (status, description) in [
            ("405", "The session's revision knows no such request."),
            ("406", "`Accept` must name what is answered here."),
        ] {
            failures.insert(
                status.to_owned(),
                RefOr::T(failure("McpError", description)),
            );
        }
        failures
    }
}

/// All of them, told as this schema has it.
fn failures(schema: &str) -> BTreeMap<String, RefOr<Response>> {
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
    .map(|(status, description)| (status.to_owned(), RefOr::T(failure(schema, description))))
    .collect()
}

fn failure(schema: &str, description: &str) -> Response {
    let schema = Ref::from_schema_name(schema);
    ResponseBuilder::new()
        .description(description)
        .content(
            "application/json",
            ContentBuilder::new().schema(Some(schema)).build(),
        )
        .build()
}

/// The document, with where all of it is for those outside: a prefix stands in no path.
fn served(public: Option<&PublicUrl>) -> String {
    let mut document = openapi();
    if let Some(public) = public {
        let url = public.url.as_str().trim_end_matches('/');
        document["servers"] = json!([{"url": url}]);
    }
    document.to_string()
}

fn openapi() -> Value {
    let mut document = generated();
    stated::state(&mut document);
    document
}

/// As the code has it, without what it checks beside the types.
fn generated() -> Value {
    let mut document = serde_json::to_value(Document::openapi()).unwrap_or_default();
    let mut schemas = Schemas::under("/components/schemas");
    rest(&mut schemas);
    of_programs(&mut schemas);
    document["components"]["schemas"] = Value::Object(schemas.finish());
    document["components"]["securitySchemes"] = json!({
        "token": {"type": "http", "scheme": "bearer"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "navi_<port>"},
        "key": {"type": "apiKey", "in": "header", "name": "X-Navi-Key"},
    });
    document["security"] = json!([{"token": []}, {"cookie": [], "key": []}]);
    document["info"]["version"] = Value::from(env!("CARGO_PKG_VERSION"));
    state_needs(&mut document["paths"]);
    document
}

/// What each operation needs of who asks: the least role, and the scope of a token.
fn state_needs(paths: &mut Value) {
    for endpoint in super::all_endpoints() {
        for (method, action) in endpoint.methods() {
            let method = method.as_str().to_ascii_lowercase();
            let operation = paths
                .get_mut(endpoint.path())
                .and_then(|it| it.get_mut(method));
            if let (Some(operation), Some(needs)) = (operation, action.map(Action::needs)) {
                operation["x-navi-needs"] = json!(needs);
            }
        }
    }
}

/// What requests and their answers are made of.
fn rest(schemas: &mut Schemas) {
    schemas.told::<health::Health>("Health");
    schemas.told::<Vec<Profile>>("ProfileList");
    schemas.told::<ProfileText>("ProfileText");
    schemas.taken::<agents::NewProfileText>("NewProfileText");
    schemas.told::<Vec<ListedTool>>("ToolList");
    schemas.taken::<NewSessionRequest>("NewSessionRequest");
    schemas.told::<sessions::CreatedSession>("CreatedSession");
    schemas.told::<Vec<SessionSummary>>("SessionList");
    schemas.told::<SessionSnapshot>("SessionSnapshot");
    schemas.told::<MessagePage>("MessagePage");
    schemas.taken::<SessionChange>("SessionChange");
    schemas.taken::<session::PinRequest>("PinRequest");
    schemas.told::<session::Stopped>("Stopped");
    schemas.taken::<PlanEdit>("PlanEdit");
    schemas.told::<plan::StepList>("StepList");
    schemas.told::<resume::Continued>("Continued");
    schemas.taken::<resume::Resolution>("Resolution");
    schemas.told::<ChatRequest>("ChatRequest");
    schemas.told::<ContextParts>("ContextParts");
    schemas.taken::<ImportedSession>("ImportedSession");
    schemas.told::<Imported>("Imported");
    schemas.taken::<PlainInput>("PlainInput");
    schemas.taken::<consent::ModeChange>("ModeChange");
    schemas.told::<consent::ApprovalList>("ApprovalList");
    schemas.taken::<consent::ApprovalDecision>("ApprovalDecision");
    schemas.told::<consent::RuleList>("RuleList");
    schemas.told::<consent::ConsentLog>("ConsentLog");
    schemas.told::<PlainAnswer>("PlainAnswer");
    schemas.told::<FileList>("FileList");
    schemas.told::<WorkspaceListing>("WorkspaceListing");
    schemas.told::<Branched>("Branched");
    schemas.taken::<branches::NewBranch>("NewBranch");
    schemas.taken::<branches::ShownBranch>("ShownBranch");
    schemas.told::<changes::ChangeList>("ChangeList");
    schemas.told::<Change>("Change");
    schemas.told::<FileHistory>("FileHistory");
    schemas.told::<runs::SubagentStopped>("SubagentStopped");
    schemas.told::<RunList>("RunList");
    schemas.told::<RunDetails>("RunDetails");
    schemas.told::<CallDetails>("CallDetails");
    schemas.told::<search::SearchResult>("SearchResult");
    schemas.told::<MemoryOverview>("MemoryOverview");
    schemas.told::<MemoryExport>("MemoryExport");
    schemas.told::<Fact>("Fact");
    schemas.told::<Vec<FormerFact>>("FactHistory");
    schemas.taken::<memory::FactChange>("FactChange");
    schemas.told::<extensions::ExtensionFolders<'_>>("ExtensionFolders");
    schemas.told::<Vec<ExtensionTool>>("ExtensionToolList");
    schemas.taken::<extensions::AllowRequest>("AllowRequest");
    schemas.told::<Vec<McpServer>>("McpServerList");
    schemas.told::<McpEntry>("McpEntry");
    schemas.taken::<McpDraft>("McpDraft");
    schemas.told::<mcp_servers::McpTrial>("McpTrial");
    schemas.told::<Vec<SkillInfo>>("SkillList");
    schemas.told::<SystemStatus>("SystemStatus");
    schemas.told::<SettingList>("SettingList");
    schemas.taken::<settings::SettingsChange>("SettingsChange");
    schemas.taken::<settings::SettingsUndo>("SettingsUndo");
    schemas.taken::<model_server::ModelServerTrial>("ModelServerTrial");
    schemas.told::<model_server::ModelServerFound>("ModelServerFound");
    schemas.taken::<model_server::ModelServerChoice>("ModelServerChoice");
    schemas.told::<Report>("Report");
    schemas.taken::<models::FetchRequest>("FetchRequest");
    schemas.taken::<models::PullRequest>("PullRequest");
    schemas.told::<sign_in::WaysIn>("WaysIn");
    schemas.taken::<sign_in::SignInRequest>("SignInRequest");
    schemas.told::<sign_in::SignedIn>("SignedIn");
    schemas.taken::<sign_in::InvitationRequest>("InvitationRequest");
    schemas.told::<sign_in::InvitationOffer>("InvitationOffer");
    schemas.taken::<sign_in::AcceptRequest>("AcceptRequest");
    schemas.told::<Vec<passkeys::PasskeyInfo>>("PasskeyList");
    schemas.told::<passkeys::PasskeyInfo>("PasskeyInfo");
    schemas.taken::<passkeys::NewPasskeyRequest>("NewPasskeyRequest");
    schemas.told::<passkeys::PasskeyOptions>("PasskeyOptions");
    schemas.taken::<passkeys::MadePasskeyRequest>("MadePasskeyRequest");
    schemas.taken::<passkeys::PasskeyChange>("PasskeyChange");
    schemas.told::<passkeys::PasskeySignInOptions>("PasskeySignInOptions");
    schemas.taken::<passkeys::PasskeySignInRequest>("PasskeySignInRequest");
    schemas.told::<account::AccountInfo>("AccountInfo");
    schemas.taken::<account::AccountChangeRequest>("AccountChangeRequest");
    schemas.taken::<account::ProofRequest>("ProofRequest");
    schemas.told::<account::RecoveryCodes>("RecoveryCodes");
    schemas.told::<Vec<account::Device>>("DeviceList");
    schemas.told::<account::SignedOut>("SignedOut");
    schemas.told::<login::LeftHere>("LeftHere");
    schemas.taken::<sign_on::SignOnRequest>("SignOnRequest");
    schemas.told::<sign_on::SignOnBegun>("SignOnBegun");
    schemas.taken::<sign_on::SignOnAnswer>("SignOnAnswer");
    schemas.taken::<sign_on::LogoutNotice>("LogoutNotice");
    schemas.told::<sign_on::LinkedSignOn>("LinkedSignOn");
    schemas.told::<Vec<sign_on::LinkedSignOn>>("SignOnList");
    schemas.told::<Shared>("Shared");
    schemas.told::<PersonRef>("PersonRef");
    schemas.taken::<shares::NewSessionPerson>("NewSessionPerson");
    schemas.told::<Vec<shares::LinkInfo>>("LinkList");
    schemas.taken::<shares::NewLink>("NewLink");
    schemas.told::<shares::MadeLink>("MadeLink");
    schemas.told::<shares::SharedSession>("SharedSession");
    schemas.told::<Vec<people::PersonInfo>>("PersonList");
    schemas.taken::<people::PersonChange>("PersonChange");
    schemas.told::<people::PowersInfo>("PowersInfo");
    schemas.taken::<people::UsersPowers>("UsersPowers");
    schemas.told::<Vec<people::InvitationInfo>>("InvitationList");
    schemas.taken::<people::NewInvitation>("NewInvitation");
    schemas.told::<people::MadeInvitation>("MadeInvitation");
    schemas.told::<Vec<people::RecordLine>>("RecordPage");
    schemas.told::<Vec<tokens::TokenInfo>>("TokenList");
    schemas.taken::<tokens::NewTokenRequest>("NewTokenRequest");
    schemas.told::<tokens::CreatedToken>("CreatedToken");
    schemas.told::<NaviError>("NaviError");
    schemas.told::<OpenaiError>("OpenaiError");
    schemas.told::<OllamaError>("OllamaError");
    schemas.told::<McpError>("McpError");
}

/// What is asked in forms that the page has no types of.
fn of_programs(schemas: &mut Schemas) {
    schemas.taken::<lent::LentTools>("LentTools");
    schemas.told::<lent::WaitingCalls>("WaitingCalls");
    schemas.taken::<lent::ReturnedCall>("ReturnedCall");
    schemas.taken::<files::UploadForm>("UploadForm");
    schemas.taken::<openai::ChatCompletionRequest>("ChatCompletionRequest");
    schemas.taken::<ResponseRequest>("ResponseRequest");
    schemas.taken::<ollama::ChatRequest>("OllamaChatRequest");
    schemas.taken::<ollama::GenerateRequest>("OllamaGenerateRequest");
    schemas.taken::<ollama::ShowRequest>("OllamaShowRequest");
}

/// What the sockets carry: frames of a client, envelopes of a session, and what the list tells.
pub(super) fn events_schema() -> Value {
    let mut schemas = Schemas::under("/$defs");
    sockets(&mut schemas);
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

fn sockets(schemas: &mut Schemas) {
    schemas.told::<Envelope>("Envelope");
    schemas.taken::<ClientFrame>("ClientFrame");
    schemas.told::<HubFrame>("HubFrame");
}

/// Gathers schemas that refer to each other. What Navi tells has every field that it always
/// writes as required; what it takes may leave out more.
struct Schemas {
    telling: SchemaGenerator,
    taking: SchemaGenerator,
    named: Map<String, Value>,
}

impl Schemas {
    fn under(path: &'static str) -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = path.into();
        });
        Self {
            telling: settings.clone().for_serialize().into_generator(),
            taking: settings.into_generator(),
            named: Map::new(),
        }
    }

    fn told<T: JsonSchema>(&mut self, name: &str) {
        let schema = self.telling.subschema_for::<T>();
        self.named.insert(name.to_owned(), schema.to_value());
    }

    fn taken<T: JsonSchema>(&mut self, name: &str) {
        let schema = self.taking.subschema_for::<T>();
        self.named.insert(name.to_owned(), schema.to_value());
    }

    fn finish(mut self) -> Map<String, Value> {
        let mut all = self.named;
        // A type that is found under its own name is defined there, not a reference to itself.
        all.extend(self.taking.take_definitions(true));
        all.extend(self.telling.take_definitions(true));
        all
    }
}

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod tests;
