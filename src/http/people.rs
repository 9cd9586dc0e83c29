//! `/api/people`, `/api/invitations` and `/api/record`: what an admin does with accounts.

use std::collections::BTreeSet;

use actix_web::http::{Method, header};
use actix_web::{HttpResponse, web};
use chrono::{DateTime, Utc};
use navi_actors::domain::permissions::Action;
use navi_actors::engine::check_limits;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::UserId;
use navi_actors::protocol::limits::{LimitsChange, LimitsInfo};
use navi_actors::protocol::people::{Recorded, UserRole};
use navi_actors::protocol::powers::Power;
use navi_actors::store::{Holder, Invitation, Person, RecordRow};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::App;
use super::account::ProofRequest;
use super::body::{JsonBody, OptionalJsonBody};
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::messages::page_size;
use super::openapi::Failures;
use super::path::id_of;
use crate::access::{Offer, Principal, Visitor, check_powers};

/// How long a link for another password is good.
const RESET_DAYS: u32 = 1;
/// How many lines of the record there are in a page, where nothing else is asked for.
const PAGE: u32 = 100;

/// A person, as an admin sees them. Nothing that they said or keep is here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PersonInfo {
    id: UserId,
    name: String,
    role: UserRole,
    created_at: DateTime<Utc>,
    last_seen_at: Option<DateTime<Utc>>,
    has_password: bool,
    passkeys: u64,
    /// What they were granted beside what all users were. An admin may all.
    powers: BTreeSet<Power>,
    /// How much of what all share is theirs, and what they have of it.
    limits: LimitsInfo,
    /// It is the one who asks.
    you: bool,
}

/// What a person becomes. What is left out stays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PersonChange {
    role: Option<UserRole>,
    /// In the place of what they were granted before.
    #[schemars(length(max = 200))]
    powers: Option<BTreeSet<Power>>,
    /// For what begins from now on: what goes on is not ended.
    #[serde(default, deserialize_with = "an_object")]
    limits: Option<LimitsChange>,
    /// Needed for the role of an admin by who asks in a browser and has one.
    current_password: Option<String>,
}

/// Serde would take a list for them, too, in the order of their fields.
fn an_object<'de, D: Deserializer<'de>>(value: D) -> Result<Option<LimitsChange>, D::Error> {
    let fields: Option<Map<String, Value>> = Option::deserialize(value)?;
    let limits = fields.map(|fields| serde_json::from_value(Value::Object(fields)));
    limits.transpose().map_err(D::Error::custom)
}

/// What all users may use.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsersPowers {
    /// In the place of what they were granted before.
    #[schemars(length(max = 200))]
    users: BTreeSet<Power>,
}

/// What is granted, and what could be.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PowersInfo {
    /// What all users may use.
    users: BTreeSet<Power>,
    /// What there is to grant: each kind, and the names that there are now.
    grantable: Vec<Power>,
}

/// Whom to invite.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct NewInvitation {
    role: UserRole,
    /// How long it is good: 1 to 30, and 7 where it is left out.
    days: Option<u32>,
    /// Needed for the role of an admin by who asks in a browser and has one.
    current_password: Option<String>,
}

/// An invitation that nobody used yet.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InvitationInfo {
    id: Uuid,
    role: UserRole,
    /// Whose password is to be chosen anew; null: somebody new.
    person: Option<UserId>,
    created_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
}

/// An invitation that was just made.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MadeInvitation {
    id: Uuid,
    role: UserRole,
    expires_at: DateTime<Utc>,
    /// The whole link where Navi has a public address, else what follows the page's address in it:
    /// `#invitation=…`. Told only now.
    link: String,
}

/// One line of the record.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RecordLine {
    id: i64,
    at: DateTime<Utc>,
    what: Recorded,
    /// Who did it, where that is known.
    person: Option<UserId>,
    name: Option<String>,
    /// Whom or what it concerns.
    about: Option<String>,
    address: Option<String>,
}

/// Which lines.
#[derive(Debug, Deserialize)]
pub(crate) struct RecordQuery {
    person: Option<UserId>,
    before: Option<i64>,
    limit: Option<u32>,
}

pub(crate) fn routes() -> [Endpoint; 8] {
    [
        endpoint("/api/people").on(Method::GET, Action::ManagePeople, list),
        endpoint("/api/people/{person_id}")
            .on(Method::PATCH, Action::ManagePeople, change)
            .on(Method::DELETE, Action::ManagePeople, remove),
        endpoint("/api/people/{person_id}/reset").on(Method::POST, Action::ManagePeople, reset),
        endpoint("/api/powers")
            .on(Method::GET, Action::ManagePeople, powers)
            .on(Method::PUT, Action::ManagePeople, grant),
        endpoint("/api/invitations")
            .on(Method::GET, Action::ManagePeople, invitations)
            .on(Method::POST, Action::ManagePeople, invite),
        endpoint("/api/invitations/{invitation_id}").on(
            Method::DELETE,
            Action::ManagePeople,
            remove_invitation,
        ),
        endpoint("/api/record").on(Method::GET, Action::ReadRecord, record),
        endpoint("/api/record/export").on(Method::GET, Action::ReadRecord, export),
    ]
}

#[utoipa::path(get, path = "/api/people", operation_id = "list_people", tag = "people",
    responses((status = 200, description = "Everybody, in the order in which they came.", body = ref("#/components/schemas/PersonList")), Failures))]
pub(crate) async fn list(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    let people = app.access.people().await?;
    let mut granted = app.access.granted().await?;
    let ids = people.iter().map(|person| person.user.id).collect();
    let limits = limits_of(&app, ids).await?;
    let people: Vec<PersonInfo> = people
        .into_iter()
        .zip(limits)
        .map(|(person, limits)| {
            let powers = granted.remove(&Holder::Person(person.user.id));
            info(person, powers.unwrap_or_default(), limits, &who)
        })
        .collect();
    Ok(HttpResponse::Ok().json(people))
}

#[utoipa::path(patch, path = "/api/people/{person_id}", operation_id = "change_person", tag = "people",
    params(("person_id" = Uuid, Path,)),
    request_body = ref("#/components/schemas/PersonChange"),
    responses((status = 204, description = "They are that from now on; what they have open is opened anew."), Failures))]
pub(crate) async fn change(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<String>,
    JsonBody(wanted): JsonBody<PersonChange>,
) -> Result<HttpResponse, ApiError> {
    let person: UserId = id_of("a person's", &path)?;
    let limits = wanted.limits.unwrap_or_default();
    check_limits(limits)?;
    if let Some(powers) = &wanted.powers {
        check_powers(powers)?;
    }
    // Of what is left this alone may be refused: nothing is changed then.
    if let Some(role) = wanted.role {
        app.access
            .set_role(&who, person, role, wanted.current_password, visitor.clone())
            .await?;
    }
    if let Some(powers) = wanted.powers {
        let holder = Holder::Person(person);
        app.access
            .grant(&who, holder, powers, visitor.clone())
            .await?;
    }
    if limits != LimitsChange::default() {
        let name = app.access.account(person).await?.user.name;
        app.engine.change_limits(person, limits).await?;
        app.access.note_limits(&who, &name, limits, visitor).await;
    }
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(get, path = "/api/powers", operation_id = "read_powers", tag = "people",
    responses((status = 200, description = "What all users may use of what is powerful, and what there is to grant.", body = ref("#/components/schemas/PowersInfo")), Failures))]
pub(crate) async fn powers(app: web::Data<App>, _: Principal) -> Result<HttpResponse, ApiError> {
    let mut granted = app.access.granted().await?;
    Ok(HttpResponse::Ok().json(PowersInfo {
        users: granted.remove(&Holder::Users).unwrap_or_default(),
        grantable: app.engine.grantable(),
    }))
}

#[utoipa::path(put, path = "/api/powers", operation_id = "grant_to_users", tag = "people",
    request_body = ref("#/components/schemas/UsersPowers"),
    responses((status = 204, description = "All users may use that from their next run on; what was taken back, nobody may from now on."), Failures))]
pub(crate) async fn grant(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    JsonBody(wanted): JsonBody<UsersPowers>,
) -> Result<HttpResponse, ApiError> {
    app.access
        .grant(&who, Holder::Users, wanted.users, visitor)
        .await?;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(delete, path = "/api/people/{person_id}", operation_id = "remove_person", tag = "people",
    params(("person_id" = Uuid, Path,)),
    responses((status = 204, description = "They are signed out and cannot sign in; their conversations, files and memory are deleted."), Failures))]
pub(crate) async fn remove(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let person: UserId = id_of("a person's", &path)?;
    let shared = app.engine.shared_with(person).await?;
    app.access.remove_person(&who, person, visitor).await?;
    app.engine.tell_gone(person, shared).await;
    app.engine.delete_all(person).await?;
    app.requests.forget_person(person);
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(post, path = "/api/people/{person_id}/reset", operation_id = "reset_person", tag = "people",
    params(("person_id" = Uuid, Path,)),
    request_body = ref("#/components/schemas/ProofRequest"),
    responses((status = 201, description = "A link by which they choose another password, good for a day.", body = ref("#/components/schemas/MadeInvitation")), Failures))]
pub(crate) async fn reset(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<String>,
    OptionalJsonBody(proof): OptionalJsonBody<ProofRequest>,
) -> Result<HttpResponse, ApiError> {
    let person: UserId = id_of("a person's", &path)?;
    let given = proof.and_then(|proof| proof.current_password);
    let role = app.access.account(person).await?.user.role;
    let offer = Offer {
        role,
        user: Some(person),
        days: RESET_DAYS,
    };
    let link = app.access.invite(&who, offer, given, visitor).await?;
    made(&app, link)
}

#[utoipa::path(get, path = "/api/invitations", operation_id = "list_invitations", tag = "people",
    responses((status = 200, description = "Those that nobody used yet.", body = ref("#/components/schemas/InvitationList")), Failures))]
pub(crate) async fn invitations(
    app: web::Data<App>,
    _: Principal,
) -> Result<HttpResponse, ApiError> {
    let all = app.access.invitations().await?.into_iter();
    let all: Vec<InvitationInfo> = all
        .map(|it| InvitationInfo {
            id: it.id,
            role: it.role,
            person: it.user_id,
            created_at: it.created_at,
            expires_at: it.expires_at,
        })
        .collect();
    Ok(HttpResponse::Ok().json(all))
}

#[utoipa::path(post, path = "/api/invitations", operation_id = "invite", tag = "people",
    request_body = ref("#/components/schemas/NewInvitation"),
    responses((status = 201, description = "A link by which somebody chooses a name and a password.", body = ref("#/components/schemas/MadeInvitation")), Failures))]
pub(crate) async fn invite(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    JsonBody(wanted): JsonBody<NewInvitation>,
) -> Result<HttpResponse, ApiError> {
    let offer = Offer {
        role: wanted.role,
        user: None,
        days: wanted.days.unwrap_or(7),
    };
    let given = wanted.current_password;
    let link = app.access.invite(&who, offer, given, visitor).await?;
    made(&app, link)
}

#[utoipa::path(delete, path = "/api/invitations/{invitation_id}", operation_id = "remove_invitation", tag = "people",
    params(("invitation_id" = Uuid, Path,)),
    responses((status = 204, description = "Its link opens nothing any more."), Failures))]
pub(crate) async fn remove_invitation(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let id = id_of("an invitation's", &path)?;
    if app.access.remove_invitation(&who, id, visitor).await? {
        Ok(HttpResponse::NoContent().finish())
    } else {
        Err(ApiError::new(
            ErrorCode::InvitationNotFound,
            "there is no such invitation: it was used, taken back, or has expired",
        ))
    }
}

#[utoipa::path(get, path = "/api/record", operation_id = "read_record", tag = "people",
    params(("person" = Option<Uuid>, Query, description = "Only what this person did."),
        ("before" = Option<i64>, Query, description = "Only lines from before this one."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "100 where it is left out.")),
    responses((status = 200, description = "Who came in and who changed what, the newest first.", body = ref("#/components/schemas/RecordPage")), Failures))]
pub(crate) async fn record(
    app: web::Data<App>,
    _: Principal,
    query: web::Query<RecordQuery>,
) -> Result<HttpResponse, ApiError> {
    let limit = page_size("limit", query.limit.unwrap_or(PAGE))?;
    let lines = app
        .access
        .record(query.person, query.before, limit.into())
        .await?;
    let lines: Vec<RecordLine> = lines.into_iter().map(line).collect();
    Ok(HttpResponse::Ok().json(lines))
}

#[utoipa::path(get, path = "/api/record/export", operation_id = "export_record", tag = "people",
    responses((status = 200, description = "All of it, a line of JSON each, the newest first.", body = String, content_type = "application/jsonl"), Failures))]
pub(crate) async fn export(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    let hold = app.access.hold(&who);
    // Asked for once before the answer begins, so that what is wrong is told by its status.
    let first = app.access.record(None, None, PAGE.into()).await?;
    let pages = futures_util::stream::unfold((Some(first), hold), move |(page, hold)| {
        let app = app.clone();
        async move {
            let page = page?;
            if hold.has_ended() {
                // Half a list does not end as a whole one does.
                let ended = actix_web::error::ErrorUnauthorized("signed out meanwhile");
                return Some((Err(ended), (None, hold)));
            }
            let last = page.last()?.id;
            let mut text = String::new();
            for row in page {
                text.push_str(&serde_json::to_string(&line(row)).unwrap_or_default());
                text.push('\n');
            }
            let next = app.access.record(None, Some(last), PAGE.into()).await.ok();
            Some((Ok(web::Bytes::from(text)), (next, hold)))
        }
    });
    Ok(HttpResponse::Ok()
        .content_type("application/jsonl")
        .insert_header((
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"navi-record.jsonl\"",
        ))
        .streaming(pages))
}

/// How these people stand to what is limited, in their order; nothing where there is one user.
pub(super) async fn limits_of(
    app: &App,
    people: Vec<UserId>,
) -> Result<Vec<LimitsInfo>, NaviError> {
    let tabs: Vec<usize> = people.iter().map(|user| app.tabs.of(*user)).collect();
    let mut limits = app.engine.limits_of(people).await?;
    for (limits, tabs) in limits.iter_mut().zip(tabs) {
        limits.used.tabs = tabs as u64;
    }
    Ok(limits)
}

fn made(app: &App, (invitation, secret): (Invitation, String)) -> Result<HttpResponse, ApiError> {
    let public = app.places.public.as_ref();
    let page = public.map_or("", |public| public.url.as_str());
    Ok(HttpResponse::Created().json(MadeInvitation {
        id: invitation.id,
        role: invitation.role,
        expires_at: invitation.expires_at,
        link: format!("{page}#invitation={secret}"),
    }))
}

fn info(
    person: Person,
    powers: BTreeSet<Power>,
    limits: LimitsInfo,
    who: &Principal,
) -> PersonInfo {
    PersonInfo {
        powers,
        limits,
        you: person.user.id == who.user,
        id: person.user.id,
        name: person.user.name,
        role: person.user.role,
        created_at: person.user.created_at,
        last_seen_at: person.last_seen_at,
        has_password: person.has_password,
        passkeys: person.passkeys,
    }
}

fn line(row: RecordRow) -> RecordLine {
    RecordLine {
        id: row.id,
        at: row.at,
        what: row.entry.what,
        person: row.entry.user_id,
        name: row.entry.name,
        about: row.entry.about,
        address: row.entry.address,
    }
}
