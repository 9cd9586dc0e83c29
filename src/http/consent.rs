//! Consent over REST: what waits for an answer, the session's mode, rules, and the list of
//! what was allowed.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::domain::session::command::ApprovalAnswer;
use navi_actors::protocol::approval::{ConsentEntry, ConsentMode, ConsentRule, PendingApproval};
use navi_actors::protocol::command::Decision;
use navi_actors::protocol::ids::{ApprovalId, RuleId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use super::path::{SessionPath, id_of, session_id};
use crate::access::Principal;

/// Lines of a page of the list where the request does not say.
const LOG_PAGE: u64 = 50;

/// How much a session may do without asking.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModeChange {
    mode: ConsentMode,
}

/// What waits for an answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovalList {
    approvals: Vec<PendingApproval>,
}

/// An answer to a request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalDecision {
    decision: RestDecision,
    /// Whether it holds for all such calls from then on.
    #[serde(default)]
    always: bool,
    /// Why not, for the model: with a denial, at most 500 characters on one line.
    #[serde(default)]
    note: Option<String>,
}

/// `allow` or `deny`; and the socket's words, of which `once` is `allow`, `always` is `allow`
/// with `always: true`, and `never` is `deny` with it.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RestDecision {
    #[serde(alias = "once")]
    Allow,
    Always,
    Deny,
    Never,
}

impl From<ApprovalDecision> for ApprovalAnswer {
    fn from(given: ApprovalDecision) -> Self {
        let decision = match (given.decision, given.always) {
            (RestDecision::Allow, false) => Decision::Once,
            (RestDecision::Allow, true) | (RestDecision::Always, _) => Decision::Always,
            (RestDecision::Deny, false) => Decision::Deny,
            (RestDecision::Deny, true) | (RestDecision::Never, _) => Decision::Never,
        };
        Self {
            decision,
            note: given.note,
        }
    }
}

/// A user's rules.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RuleList {
    rules: Vec<ConsentRule>,
}

/// Which page of the list.
#[derive(Debug, Deserialize)]
pub(crate) struct LogQuery {
    /// `next` of the page before.
    before: Option<i64>,
    limit: Option<u64>,
}

/// A page of what was allowed, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConsentLog {
    entries: Vec<ConsentEntry>,
    /// Where the next page starts; null where this was the last.
    next: Option<i64>,
}

pub(crate) fn routes() -> [Endpoint; 6] {
    [
        endpoint("/sessions/{session_id}/mode").on(Method::PATCH, Action::GiveConsent, set_mode),
        endpoint("/sessions/{session_id}/approvals").on(
            Method::GET,
            Action::ReadConsent,
            approvals,
        ),
        endpoint("/sessions/{session_id}/approvals/{approval_id}").on(
            Method::POST,
            Action::GiveConsent,
            approve,
        ),
        endpoint("/consent/rules").on(Method::GET, Action::ReadConsent, rules),
        endpoint("/consent/rules/{rule_id}").on(Method::DELETE, Action::GiveConsent, delete_rule),
        endpoint("/consent/log").on(Method::GET, Action::ReadConsent, log),
    ]
}

#[utoipa::path(patch, path = "/sessions/{session_id}/mode", tag = "consent",
    params(("session_id" = Uuid, Path,)),
    request_body = ref("#/components/schemas/ModeChange"),
    responses((status = 200, description = "The mode from here on. What waits for an answer already waits on.", body = ref("#/components/schemas/ModeChange")), Failures))]
pub(crate) async fn set_mode(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
    JsonBody(change): JsonBody<ModeChange>,
) -> Result<HttpResponse, ApiError> {
    app.engine.set_mode(who.user, session, change.mode).await?;
    Ok(HttpResponse::Ok().json(change))
}

#[utoipa::path(get, path = "/sessions/{session_id}/approvals", tag = "consent",
    params(("session_id" = Uuid, Path,)),
    responses((status = 200, description = "What waits for an answer, oldest first.", body = ref("#/components/schemas/ApprovalList")), Failures))]
pub(crate) async fn approvals(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
) -> Result<HttpResponse, ApiError> {
    let approvals = app.engine.approvals(who.user, session).await?;
    Ok(HttpResponse::Ok().json(ApprovalList { approvals }))
}

#[utoipa::path(post, path = "/sessions/{session_id}/approvals/{approval_id}", tag = "consent",
    params(("session_id" = Uuid, Path,), ("approval_id" = Uuid, Path,)),
    request_body = ref("#/components/schemas/ApprovalDecision"),
    responses((status = 204, description = "The answer counts. A second one is `approval_resolved`."), Failures))]
pub(crate) async fn approve(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<(String, String)>,
    JsonBody(given): JsonBody<ApprovalDecision>,
) -> Result<HttpResponse, ApiError> {
    let session = session_id(&path.0)?;
    let approval: ApprovalId = id_of("an approval's", &path.1)?;
    app.engine
        .approve(who.user, session, approval, given.into())
        .await?;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(get, path = "/consent/rules", tag = "consent",
    responses((status = 200, description = "What was allowed or forbidden once and for all, newest first.", body = ref("#/components/schemas/RuleList")), Failures))]
pub(crate) async fn rules(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    let rules = app.engine.consent_rules(who.user).await?;
    Ok(HttpResponse::Ok().json(RuleList { rules }))
}

#[utoipa::path(delete, path = "/consent/rules/{rule_id}", tag = "consent",
    params(("rule_id" = Uuid, Path,)),
    responses((status = 204, description = "Such calls are asked about again."), Failures))]
pub(crate) async fn delete_rule(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let rule: RuleId = id_of("a rule's", &path)?;
    app.engine.delete_consent_rule(who.user, rule).await?;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(get, path = "/consent/log", tag = "consent",
    params(("before" = Option<i64>, Query,), ("limit" = Option<u64>, Query,)),
    responses((status = 200, description = "What was allowed or denied, and by whom, newest first; calls that only read are not in it. Kept for 90 days, and the newest 10,000.", body = ref("#/components/schemas/ConsentLog")), Failures))]
pub(crate) async fn log(
    app: web::Data<App>,
    who: Principal,
    query: web::Query<LogQuery>,
) -> Result<HttpResponse, ApiError> {
    let limit = query.limit.unwrap_or(LOG_PAGE);
    let entries = app
        .engine
        .consent_log(who.user, query.before, limit)
        .await?;
    let is_full = u64::try_from(entries.len()).is_ok_and(|count| count == limit);
    let next = entries.last().filter(|_| is_full).map(|entry| entry.id);
    Ok(HttpResponse::Ok().json(ConsentLog { entries, next }))
}
