//! `/sessions/{session_id}/people` and `/links`: with whom a conversation is shared; and `/api/shared`,
//! where whoever has a link looks at it.

use actix_web::http::Method;
use actix_web::http::header::HeaderName;
use actix_web::{HttpRequest, HttpResponse, web};
use chrono::{DateTime, Utc};
use futures_util::future;
use navi_actors::domain::permissions::Action;
use navi_actors::domain::sharing::By;
use navi_actors::protocol::error::{NaviError, invalid};
use navi_actors::protocol::ids::{LinkId, SessionId, UserId};
use navi_actors::protocol::people::Recorded;
use navi_actors::protocol::session::SessionSnapshot;
use navi_actors::store::LinkRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::openapi::Failures;
use super::path::{SessionPath, id_of, session_id};
use super::ws::subscription;
use super::ws::tabs::Sitter;
use crate::access::{Principal, Visitor};
use crate::doors;
use crate::doors::events::{frames, last_event};

/// How long a link is good where nothing else is said.
const USUAL_DAYS: u32 = 7;
/// How many messages a page is sent that looks by a link.
const NEWEST: u32 = 500;
/// What carries a link's secret: a page has it behind the `#` of its address, which no browser
/// sends.
const LINK: HeaderName = HeaderName::from_static("x-navi-link");

/// Whom to share with.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct NewSessionPerson {
    /// The name by which they sign in here.
    name: String,
}

/// A link to look at a conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LinkInfo {
    id: LinkId,
    created_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
}

/// A link that is to be made.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct NewLink {
    /// How long it is good: 1 to 90, and 7 where it is left out.
    days: Option<u32>,
}

/// A link that was just made.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MadeLink {
    id: LinkId,
    expires_at: DateTime<Utc>,
    /// What follows the page's address in the link: `#/shared/…`. Told only now.
    link: String,
}

/// A conversation, for whoever has a link to it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SharedSession {
    session: SessionSnapshot,
    /// When the link ends.
    expires_at: DateTime<Utc>,
}

pub(crate) fn routes() -> [Endpoint; 5] {
    [
        endpoint("/sessions/{session_id}/people")
            .on(Method::GET, Action::ReadConversations, people)
            .on(Method::POST, Action::Share, add_person),
        endpoint("/sessions/{session_id}/people/{person_id}").on(
            Method::DELETE,
            Action::Share,
            remove_person,
        ),
        endpoint("/sessions/{session_id}/leave").on(Method::POST, Action::LeaveShared, leave),
        endpoint("/sessions/{session_id}/links")
            .on(Method::GET, Action::Share, links)
            .on(Method::POST, Action::Share, add_link),
        endpoint("/sessions/{session_id}/links/{link_id}").on(
            Method::DELETE,
            Action::Share,
            remove_link,
        ),
    ]
}

pub(crate) fn look_routes() -> Endpoint {
    endpoint("/api/shared").on(Method::GET, None, look)
}

pub(crate) fn follow_routes() -> Endpoint {
    endpoint("/api/shared/events").on(Method::GET, None, follow)
}

#[utoipa::path(get, path = "/sessions/{session_id}/people", operation_id = "list_session_people", tag = "sharing",
    params(("session_id" = Uuid, Path,)),
    responses((status = 200, description = "Whose it is, and who takes part.", body = ref("#/components/schemas/Shared")), Failures))]
pub(crate) async fn people(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
) -> Result<HttpResponse, ApiError> {
    Ok(HttpResponse::Ok().json(app.engine.session_people(who.user, session).await?))
}

#[utoipa::path(post, path = "/sessions/{session_id}/people", operation_id = "share_session", tag = "sharing",
    params(("session_id" = Uuid, Path,)),
    request_body = ref("#/components/schemas/NewSessionPerson"),
    responses((status = 201, description = "They take part. What is remembered of its owner is used in this conversation no more, for good.", body = ref("#/components/schemas/PersonRef")), Failures))]
pub(crate) async fn add_person(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    SessionPath(session): SessionPath,
    JsonBody(wanted): JsonBody<NewSessionPerson>,
) -> Result<HttpResponse, ApiError> {
    let engine = &app.engine;
    let person = engine
        .add_session_person(who.user, session, &wanted.name)
        .await?;
    let about = format!("{session}: {}", person.name);
    note(&app, &who, Recorded::Shared, about, visitor).await;
    Ok(HttpResponse::Created().json(person))
}

#[utoipa::path(delete, path = "/sessions/{session_id}/people/{person_id}", operation_id = "unshare_session", tag = "sharing",
    params(("session_id" = Uuid, Path,), ("person_id" = Uuid, Path,)),
    responses((status = 204, description = "They take part no more; what they have open of it is closed."), Failures))]
pub(crate) async fn remove_person(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let session = session_id(&path.0)?;
    let person: UserId = id_of("a person's", &path.1)?;
    let engine = &app.engine;
    engine
        .remove_session_person(who.user, session, person)
        .await?;
    let about = format!("{session}: {person}");
    note(&app, &who, Recorded::ShareEnded, about, visitor).await;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(post, path = "/sessions/{session_id}/leave", operation_id = "leave_session", tag = "sharing",
    params(("session_id" = Uuid, Path,)),
    responses((status = 204, description = "You take part no more."), Failures))]
pub(crate) async fn leave(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    SessionPath(session): SessionPath,
) -> Result<HttpResponse, ApiError> {
    app.engine.leave_session(who.user, session).await?;
    let about = format!("{session}: {}", who.user);
    note(&app, &who, Recorded::ShareEnded, about, visitor).await;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(get, path = "/sessions/{session_id}/links", operation_id = "list_session_links", tag = "sharing",
    params(("session_id" = Uuid, Path,)),
    responses((status = 200, description = "Those that are good yet, the oldest first.", body = ref("#/components/schemas/LinkList")), Failures))]
pub(crate) async fn links(
    app: web::Data<App>,
    who: Principal,
    SessionPath(session): SessionPath,
) -> Result<HttpResponse, ApiError> {
    let all = app.engine.session_links(who.user, session).await?;
    let all: Vec<LinkInfo> = all.into_iter().map(info).collect();
    Ok(HttpResponse::Ok().json(all))
}

#[utoipa::path(post, path = "/sessions/{session_id}/links", operation_id = "add_session_link", tag = "sharing",
    params(("session_id" = Uuid, Path,)),
    request_body = ref("#/components/schemas/NewLink"),
    responses((status = 201, description = "Whoever has it looks at this conversation, with or without an account.", body = ref("#/components/schemas/MadeLink")), Failures))]
pub(crate) async fn add_link(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    SessionPath(session): SessionPath,
    JsonBody(wanted): JsonBody<NewLink>,
) -> Result<HttpResponse, ApiError> {
    let (secret, hash) = app.access.new_link();
    let days = wanted.days.unwrap_or(USUAL_DAYS);
    let engine = &app.engine;
    let link = engine
        .add_session_link(who.user, session, hash, days)
        .await?;
    let about = format!("{session}: link {}", link.id);
    note(&app, &who, Recorded::Shared, about, visitor).await;
    Ok(HttpResponse::Created().json(MadeLink {
        id: link.id,
        expires_at: link.expires_at,
        link: format!("#/shared/{secret}"),
    }))
}

#[utoipa::path(delete, path = "/sessions/{session_id}/links/{link_id}", operation_id = "end_session_link", tag = "sharing",
    params(("session_id" = Uuid, Path,), ("link_id" = Uuid, Path,)),
    responses((status = 204, description = "It opens nothing any more; what is open by it is closed."), Failures))]
pub(crate) async fn remove_link(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let session = session_id(&path.0)?;
    let link: LinkId = id_of("a link's", &path.1)?;
    app.engine
        .remove_session_link(who.user, session, link)
        .await?;
    let about = format!("{session}: link {link}");
    note(&app, &who, Recorded::ShareEnded, about, visitor).await;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(get, path = "/api/shared", operation_id = "look_by_link", tag = "sharing", security(()),
    params(("X-Navi-Link" = String, Header, description = "The secret of the link.")),
    responses((status = 200, description = "The conversation, with its newest messages.", body = ref("#/components/schemas/SharedSession")), Failures))]
pub(crate) async fn look(
    app: web::Data<App>,
    visitor: Visitor,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let (link, session) = by_link(&app, &visitor, &request).await?;
    let by = By::Link(link.id);
    let session = app.engine.with_newest(by, session, Some(NEWEST)).await?;
    Ok(HttpResponse::Ok().json(SharedSession {
        session,
        expires_at: link.expires_at,
    }))
}

#[utoipa::path(get, path = "/api/shared/events", operation_id = "follow_by_link", tag = "sharing", security(()),
    params(("X-Navi-Link" = String, Header, description = "The secret of the link."),
        ("after" = Option<u64>, Query, description = "As for `/sessions/{session_id}/events`; where it is from before the run that goes, a `resync` comes first."),
        ("epoch" = Option<i64>, Query, description = "As for `/sessions/{session_id}/events`."),
        ("messages" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "As for `/sessions/{session_id}/events`."),
        ("Last-Event-ID" = Option<u64>, Header, description = "As `after`, before which it goes.")),
    responses((status = 200, description = "Server-sent events, as of `/sessions/{session_id}/events`, without pictures and what a person is asked: a `pong` with its number stands in the place of an event. They end with the link.", content_type = "text/event-stream"), Failures))]
pub(crate) async fn follow(
    app: web::Data<App>,
    visitor: Visitor,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let (link, session) = by_link(&app, &visitor, &request).await?;
    let asked = subscription(&session.to_string(), request.query_string())?;
    let after = last_event(&request)?.or(asked.after);
    let newest = asked.newest.or(Some(NEWEST));
    let by = By::Link(link.id);
    let owner = app.engine.owner_of(by, session).await?;
    let limits = app.engine.limits(owner);
    let most = limits.map(|limits| limits.tabs);
    let seat = app.tabs.look(link.id, Sitter { user: owner, most })?;
    let feed = app
        .engine
        .attach(by, session, after, asked.epoch, newest)
        .await?;
    // The feed itself ends with the link.
    let frames = frames(feed, Box::pin(future::pending()), seat);
    Ok(doors::streaming("text/event-stream").streaming(frames))
}

async fn by_link(
    app: &App,
    visitor: &Visitor,
    request: &HttpRequest,
) -> Result<(LinkRow, SessionId), NaviError> {
    let Some(secret) = request.headers().get(LINK) else {
        return Err(invalid(
            "X-Navi-Link is missing: it has the part of the link behind #/shared/",
        ));
    };
    let secret = secret.to_str().unwrap_or_default();
    app.access.link(secret.trim(), visitor).await
}

async fn note(app: &App, who: &Principal, what: Recorded, about: String, visitor: Visitor) {
    app.access
        .note(what, Some(who.user), Some(about), visitor)
        .await;
}

fn info(link: LinkRow) -> LinkInfo {
    LinkInfo {
        id: link.id,
        created_at: link.created_at,
        expires_at: link.expires_at,
    }
}
