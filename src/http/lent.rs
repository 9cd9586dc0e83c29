//! Tools that a program lends to the run that its message begins, where the program follows the run
//! by its events: what it lends, the calls that wait for it, and what came of them.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::input::validate_client_id;
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::{CallId, RunId};
use navi_actors::tools::lent::{LentByProgram, LentCall, OfferedByProgram};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use super::path::{SessionPath, run_id};
use super::ws::checked_lender;
use crate::access::Principal;
use crate::doors::asked::checked;

/// A request with all that may be lent, or with what an editor had to say.
const MAX_BODY_BYTES: usize = 2 * 1024 * 1024;

/// What is lent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LentTools {
    /// Of the message that is sent next, and whose run they are for.
    pub(crate) client_id: String,
    /// At most 512 KiB of names, descriptions and parameters together.
    pub(crate) tools: Vec<OfferedByProgram>,
    /// What the program calls itself on its socket (`/ws/sessions/{session_id}?lender=…`): a few
    /// seconds after the last socket of this name was closed its calls end, and it lends no more;
    /// after ten minutes where nothing was heard there before, as its machine may have slept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lender: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WaitingCalls {
    pub(crate) calls: Vec<LentCall>,
}

/// What came of a call.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReturnedCall {
    pub(crate) call_id: CallId,
    pub(crate) content: String,
    /// It did not do what was asked, and `content` says why.
    #[serde(default)]
    pub(crate) failed: bool,
}

pub(crate) fn routes() -> [Endpoint; 2] {
    [
        endpoint("/sessions/{session_id}/lent")
            .body_limit(MAX_BODY_BYTES)
            .on(Method::POST, Action::Converse, lend),
        endpoint("/runs/{run_id}/lent")
            .body_limit(MAX_BODY_BYTES)
            .on(Method::GET, Action::ReadConversations, waiting)
            .on(Method::POST, Action::Converse, answer),
    ]
}

#[utoipa::path(post, path = "/sessions/{session_id}/lent", operation_id = "lend_tools", tag = "sessions",
    params(("session_id" = Uuid, Path,)),
    request_body = ref("#/components/schemas/LentTools"),
    responses((status = 204, description = "The run that the message with this `client_id` begins may call these; the newest 64 such offers of one person are kept."), Failures))]
pub(crate) async fn lend(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    JsonBody(asked): JsonBody<LentTools>,
) -> Result<HttpResponse, ApiError> {
    let LentTools {
        client_id,
        tools,
        lender,
    } = asked;
    validate_client_id(&client_id)?;
    let lender = lender.map(checked_lender).transpose()?;
    let tools = checked(tools)?;
    app.engine.standing(who.user, session).await?;
    let gone = lender.map(|name| app.lenders.gone(who.user, session, &name));
    let lent = LentByProgram {
        tools,
        gone: gone.unwrap_or_default(),
        ..LentByProgram::default()
    };
    let lend = |client_id: &str| app.engine.lend(session, client_id, lent);
    app.requests.offer(who.user, session, client_id, lend);
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(get, path = "/runs/{run_id}/lent", operation_id = "waiting_lent_calls", tag = "runs",
    params(("run_id" = Uuid, Path,)),
    responses((status = 200, description = "The calls of lent tools that wait for what came of them.", body = ref("#/components/schemas/WaitingCalls")), Failures))]
pub(crate) async fn waiting(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let run = of_user(&app, who, &path).await?;
    let calls = app.engine.lent_calls(run);
    Ok(HttpResponse::Ok().json(WaitingCalls { calls }))
}

#[utoipa::path(post, path = "/runs/{run_id}/lent", operation_id = "answer_lent_call", tag = "runs",
    params(("run_id" = Uuid, Path,)),
    request_body = ref("#/components/schemas/ReturnedCall"),
    responses((status = 204, description = "The run goes on with it."), Failures))]
pub(crate) async fn answer(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<String>,
    JsonBody(returned): JsonBody<ReturnedCall>,
) -> Result<HttpResponse, ApiError> {
    let run = of_user(&app, who, &path).await?;
    let ReturnedCall {
        call_id,
        content,
        failed,
    } = returned;
    let of = app.engine.run_of_lent_call(who.user, &call_id).await;
    let is_its = of.is_some_and(|(_, of)| of == run);
    if !is_its || !app.engine.lent_call_waits(&call_id) {
        let message = "no such call waits for what came of it, or not any more";
        return Err(NaviError::new(ErrorCode::NotFound, message).into());
    }
    let result = if failed { Err(content) } else { Ok(content) };
    app.engine.answer_lent_call(&call_id, result);
    Ok(HttpResponse::NoContent().finish())
}

async fn of_user(app: &App, who: Principal, path: &str) -> Result<RunId, NaviError> {
    let run = run_id(path)?;
    app.engine.own_run(who.user, run).await?;
    Ok(run)
}
