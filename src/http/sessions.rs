//! `/sessions`: making one, and the list.

use actix_web::http::Method;
use actix_web::{HttpResponse, web};
use chrono::{DateTime, Utc};
use navi_actors::domain::permissions::Action;
use navi_actors::domain::tags;
use navi_actors::protocol::command::NewSessionRequest;
use navi_actors::protocol::ids::SessionId;
use navi_actors::store::Listed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::body::OptionalJsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use crate::access::Principal;

/// Which sessions to list.
#[derive(Debug, Deserialize)]
pub(crate) struct ListQuery {
    #[serde(default)]
    archived: bool,
    tag: Option<String>,
}

/// A session that was just made.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CreatedSession {
    session_id: SessionId,
    profile_id: String,
    created_at: DateTime<Utc>,
}

pub(crate) fn routes() -> Endpoint {
    endpoint("/sessions")
        .on(Method::GET, Action::ReadConversations, list)
        .on(Method::POST, Action::Converse, create)
}

#[utoipa::path(post, path = "/sessions", operation_id = "create_session", tag = "sessions",
    request_body(content = ref("#/components/schemas/NewSessionRequest"), description = "May be left out."),
    responses((status = 201, description = "The new session.", body = ref("#/components/schemas/CreatedSession")), Failures))]
pub(crate) async fn create(
    app: web::Data<App>,
    who: Principal,
    OptionalJsonBody(body): OptionalJsonBody<NewSessionRequest>,
) -> Result<HttpResponse, ApiError> {
    let wish = body.unwrap_or_default();
    if wish.mode.is_some() {
        who.grant.check(Action::GiveConsent)?;
    }
    let session = app.engine.create_session(who.user, wish).await?;
    Ok(HttpResponse::Created().json(CreatedSession {
        session_id: session.id,
        profile_id: session.profile_id,
        created_at: session.created_at,
    }))
}

#[utoipa::path(get, path = "/sessions", operation_id = "list_sessions", tag = "sessions",
    params(("archived" = Option<bool>, Query, description = "Those that are put away, in place of the others."),
        ("tag" = Option<String>, Query, description = "Those alone that have this tag, in whatever case.")),
    responses((status = 200, description = "All sessions: pinned ones first, then by latest activity.", body = ref("#/components/schemas/SessionList")), Failures))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: Principal,
    query: web::Query<ListQuery>,
) -> Result<HttpResponse, ApiError> {
    let listed = if query.archived {
        Listed::Archived
    } else {
        Listed::Current
    };
    let mut sessions = app.engine.sessions(who.user, listed).await?;
    if let Some(tag) = &query.tag {
        sessions.retain(|session| tags::holds(&session.tags, tag));
    }
    Ok(HttpResponse::Ok().json(sessions))
}
