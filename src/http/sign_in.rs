//! `/api/sign-in` and `/api/invitation`: how people come in where there are accounts.

use actix_web::http::Method;
use actix_web::{HttpRequest, HttpResponse, web};
use chrono::{DateTime, Utc};
use navi_actors::protocol::error::invalid;
use navi_actors::protocol::people::UserRole;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::gate::{new_login_cookie, proxy_word};
use super::openapi::Failures;
use super::origin::{Trust, check_origin};
use crate::access::{Login, Proof, ProxyWord, Visitor};

/// Whether people sign in here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WaysIn {
    /// Without accounts there is only the link that `navi link` prints.
    accounts: bool,
    /// The page's address at which passkeys work; left out where no browser offers any.
    #[serde(skip_serializing_if = "Option::is_none")]
    passkeys_at: Option<String>,
    /// The name of a provider that lets people in, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    /// Whom a proxy in front names, where it names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    proxy: Option<String>,
}

/// By what somebody signs in: one of the two.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SignInRequest {
    name: String,
    password: Option<String>,
    /// One that was written down, in the place of the password, which was lost: it works once, and
    /// another password is to be chosen.
    recovery_code: Option<String>,
}

/// The other half of the cookie.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SignedIn {
    /// The page keeps it, and sends it as `X-Navi-Key`.
    key: String,
}

/// An invitation, by the secret of its link.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct InvitationRequest {
    invitation: String,
}

/// What an invitation is for.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InvitationOffer {
    role: UserRole,
    expires_at: DateTime<Utc>,
    /// Who is to choose another password; null: somebody new.
    name: Option<String>,
    /// The name of a provider by which somebody new joins, where there is one.
    provider: Option<String>,
}

/// What makes an account of an invitation.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct AcceptRequest {
    invitation: String,
    /// 1 to 64 characters; nobody else's, and none that looks like one.
    name: String,
    /// 10 to 200 characters.
    password: String,
}

pub(crate) fn routes() -> Endpoint {
    endpoint("/api/sign-in")
        .on(Method::GET, None, ways)
        .on(Method::POST, None, sign_in)
}

pub(crate) fn invitation_routes() -> Endpoint {
    endpoint("/api/invitation").on(Method::POST, None, look)
}

pub(crate) fn accept_routes() -> Endpoint {
    endpoint("/api/invitation/accept").on(Method::POST, None, accept)
}

#[utoipa::path(get, path = "/api/sign-in", operation_id = "ways_in", tag = "access", security(()),
    responses((status = 200, description = "How one comes in.", body = ref("#/components/schemas/WaysIn")), Failures))]
pub(crate) async fn ways(app: web::Data<App>, request: HttpRequest) -> HttpResponse {
    let proxy = match proxy_word(&request, &app) {
        ProxyWord::Person(person) => Some(person.to_owned()),
        ProxyWord::Nobody | ProxyWord::None => None,
    };
    HttpResponse::Ok().json(WaysIn {
        accounts: app.access.has_accounts(),
        passkeys_at: app.access.passkeys_at().map(ToString::to_string),
        provider: app.access.provider_name().map(str::to_owned),
        proxy,
    })
}

#[utoipa::path(post, path = "/api/sign-in", tag = "access", security(()),
    request_body = ref("#/components/schemas/SignInRequest"),
    responses((status = 200, description = "Signed in by a cookie and this key.", body = ref("#/components/schemas/SignedIn")), Failures))]
pub(crate) async fn sign_in(
    app: web::Data<App>,
    request: HttpRequest,
    visitor: Visitor,
    JsonBody(wanted): JsonBody<SignInRequest>,
) -> Result<HttpResponse, ApiError> {
    from_our_page(&app, &request)?;
    let proof = match (wanted.password, wanted.recovery_code) {
        (Some(password), None) => Proof::Password(password),
        (None, Some(code)) => Proof::RecoveryCode(code),
        _ => return Err(invalid("send a password or a recovery_code, one of the two").into()),
    };
    let login = app.access.sign_in(&wanted.name, proof, visitor).await?;
    Ok(come_in(&app, &login))
}

#[utoipa::path(post, path = "/api/invitation", operation_id = "look_at_invitation", tag = "access", security(()),
    request_body = ref("#/components/schemas/InvitationRequest"),
    responses((status = 200, description = "What it is for.", body = ref("#/components/schemas/InvitationOffer")), Failures))]
pub(crate) async fn look(
    app: web::Data<App>,
    visitor: Visitor,
    JsonBody(wanted): JsonBody<InvitationRequest>,
) -> Result<HttpResponse, ApiError> {
    let (found, name) = app.access.invitation(&wanted.invitation, &visitor).await?;
    Ok(HttpResponse::Ok().json(InvitationOffer {
        role: found.role,
        expires_at: found.expires_at,
        provider: match found.user_id {
            None => app.access.provider_name().map(str::to_owned),
            Some(_) => None,
        },
        name,
    }))
}

#[utoipa::path(post, path = "/api/invitation/accept", operation_id = "accept_invitation", tag = "access", security(()),
    request_body = ref("#/components/schemas/AcceptRequest"),
    responses((status = 200, description = "There is an account, and a cookie and this key sign it in.", body = ref("#/components/schemas/SignedIn")), Failures))]
pub(crate) async fn accept(
    app: web::Data<App>,
    request: HttpRequest,
    visitor: Visitor,
    JsonBody(wanted): JsonBody<AcceptRequest>,
) -> Result<HttpResponse, ApiError> {
    from_our_page(&app, &request)?;
    let AcceptRequest {
        invitation,
        name,
        password,
    } = wanted;
    let accepted = app.access.accept(&invitation, &name, &password, visitor);
    Ok(come_in(&app, &accepted.await?))
}

/// No other page signs a browser in, as whoever it likes.
pub(crate) fn from_our_page(app: &App, request: &HttpRequest) -> Result<(), ApiError> {
    Ok(check_origin(request.headers(), &app.places, Trust::Token)?)
}

pub(crate) fn come_in(app: &App, login: &Login) -> HttpResponse {
    HttpResponse::Ok()
        .cookie(new_login_cookie(app, &login.cookie))
        .json(SignedIn {
            key: login.key.clone(),
        })
}
