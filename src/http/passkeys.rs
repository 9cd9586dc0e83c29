//! `/api/account/passkeys` and `/api/sign-in/passkey`: passkeys, as the browser's authenticator and
//! its person make them, and how one comes in by them.

use std::time::Duration;

use actix_web::cookie::Cookie;
use actix_web::http::Method;
use actix_web::{HttpRequest, HttpResponse, web};
use chrono::{DateTime, Utc};
use navi_actors::domain::permissions::Action;
use navi_actors::store::Passkey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::App;
use super::body::JsonBody;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::gate::{InBrowser, cookie_name, own_cookie};
use super::openapi::Failures;
use super::path::id_of;
use super::sign_in::{come_in, from_our_page};
use crate::access::passkeys::Answer;
use crate::access::{Principal, Visitor, random};

/// As long as a ceremony.
const BROWSER_LIFETIME: Duration = Duration::from_secs(300);
/// The digits of a secret of our making.
const SECRET_CHARS: usize = 64;

/// A passkey of one's own.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PasskeyInfo {
    id: Uuid,
    name: String,
    /// The host that it is bound to: it works nowhere else.
    host: String,
    created_at: DateTime<Utc>,
    /// When somebody signed in by it last.
    last_used_at: Option<DateTime<Utc>>,
}

/// A passkey that is to be made.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct NewPasskeyRequest {
    /// 1 to 64 characters.
    name: String,
    /// Needed where there is one. Who has none signed in a moment ago.
    current_password: Option<String>,
}

/// What the browser is to ask its authenticator.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PasskeyOptions {
    /// For `PublicKeyCredential.parseCreationOptionsFromJSON`.
    options: Map<String, Value>,
}

/// What the authenticator answered.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct MadePasskeyRequest {
    /// As the credential's `toJSON` writes it.
    credential: Map<String, Value>,
}

/// What it is called from now on.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PasskeyChange {
    /// 1 to 64 characters.
    name: String,
}

/// What the browser is to ask, and by what it brings the answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PasskeySignInOptions {
    ceremony: String,
    /// For `PublicKeyCredential.parseRequestOptionsFromJSON`.
    options: Map<String, Value>,
}

/// The answer, within five minutes, in the browser that asked.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PasskeySignInRequest {
    ceremony: String,
    /// As the credential's `toJSON` writes it.
    credential: Map<String, Value>,
}

pub(crate) fn routes() -> [Endpoint; 4] {
    [
        endpoint("/api/account/passkeys").on(Method::GET, Action::ReadAccount, list),
        endpoint("/api/account/passkeys/begin").on(Method::POST, Action::ManageAccount, begin),
        endpoint("/api/account/passkeys/finish").on(Method::POST, Action::ManageAccount, finish),
        endpoint("/api/account/passkeys/{passkey_id}")
            .on(Method::PATCH, Action::ManageAccount, rename)
            .on(Method::DELETE, Action::ManageAccount, remove),
    ]
}

pub(crate) fn begin_sign_in_routes() -> Endpoint {
    endpoint("/api/sign-in/passkey/begin").on(Method::POST, None, begin_sign_in)
}

pub(crate) fn finish_sign_in_routes() -> Endpoint {
    endpoint("/api/sign-in/passkey/finish").on(Method::POST, None, finish_sign_in)
}

#[utoipa::path(get, path = "/api/account/passkeys", operation_id = "list_passkeys", tag = "access",
    responses((status = 200, description = "One's own, the oldest first.", body = ref("#/components/schemas/PasskeyList")), Failures))]
pub(crate) async fn list(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    let passkeys = app.access.passkeys(who.user).await?.into_iter();
    let passkeys: Vec<PasskeyInfo> = passkeys.map(info).collect();
    Ok(HttpResponse::Ok().json(passkeys))
}

#[utoipa::path(post, path = "/api/account/passkeys/begin", operation_id = "begin_passkey", tag = "access",
    request_body = ref("#/components/schemas/NewPasskeyRequest"),
    responses((status = 200, description = "What the authenticator is to be asked, within five minutes. By a browser that is signed in, and no token.", body = ref("#/components/schemas/PasskeyOptions")), Failures))]
pub(crate) async fn begin(
    app: web::Data<App>,
    InBrowser(who): InBrowser,
    visitor: Visitor,
    JsonBody(wanted): JsonBody<NewPasskeyRequest>,
) -> Result<HttpResponse, ApiError> {
    let NewPasskeyRequest {
        name,
        current_password,
    } = wanted;
    let begun = app
        .access
        .begin_passkey(&who, &name, current_password, &visitor);
    let options = object(begun.await?);
    Ok(HttpResponse::Ok().json(PasskeyOptions { options }))
}

#[utoipa::path(post, path = "/api/account/passkeys/finish", operation_id = "finish_passkey", tag = "access",
    request_body = ref("#/components/schemas/MadePasskeyRequest"),
    responses((status = 201, description = "It signs in from now on.", body = ref("#/components/schemas/PasskeyInfo")), Failures))]
pub(crate) async fn finish(
    app: web::Data<App>,
    InBrowser(who): InBrowser,
    visitor: Visitor,
    JsonBody(made): JsonBody<MadePasskeyRequest>,
) -> Result<HttpResponse, ApiError> {
    let credential = Value::Object(made.credential);
    let made = app.access.finish_passkey(&who, credential, visitor).await?;
    Ok(HttpResponse::Created().json(info(made)))
}

#[utoipa::path(patch, path = "/api/account/passkeys/{passkey_id}", operation_id = "rename_passkey", tag = "access",
    params(("passkey_id" = Uuid, Path,)),
    request_body = ref("#/components/schemas/PasskeyChange"),
    responses((status = 204, description = "It has this name."), Failures))]
pub(crate) async fn rename(
    app: web::Data<App>,
    InBrowser(who): InBrowser,
    path: web::Path<String>,
    JsonBody(wanted): JsonBody<PasskeyChange>,
) -> Result<HttpResponse, ApiError> {
    let id = id_of("a passkey's", &path)?;
    app.access
        .rename_passkey(who.user, id, &wanted.name)
        .await?;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(delete, path = "/api/account/passkeys/{passkey_id}", operation_id = "remove_passkey", tag = "access",
    params(("passkey_id" = Uuid, Path,)),
    responses((status = 204, description = "It opens nothing any more. The last way in is not removed."), Failures))]
pub(crate) async fn remove(
    app: web::Data<App>,
    InBrowser(who): InBrowser,
    visitor: Visitor,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let id = id_of("a passkey's", &path)?;
    app.access.remove_passkey(who.user, id, visitor).await?;
    Ok(HttpResponse::NoContent().finish())
}

#[utoipa::path(post, path = "/api/sign-in/passkey/begin", operation_id = "begin_passkey_sign_in", tag = "access", security(()),
    responses((status = 200, description = "What an authenticator is to be asked, and a cookie of the browser that asks.", body = ref("#/components/schemas/PasskeySignInOptions")), Failures))]
pub(crate) async fn begin_sign_in(
    app: web::Data<App>,
    request: HttpRequest,
    visitor: Visitor,
) -> Result<HttpResponse, ApiError> {
    from_our_page(&app, &request)?;
    // Two tabs of a browser may ask at once.
    let browser = browser(&app, &request).unwrap_or_else(random::fresh);
    let asked = app.access.begin_passkey_sign_in(&browser, &visitor)?;
    Ok(HttpResponse::Ok()
        .cookie(browser_cookie(&app, &browser))
        .json(PasskeySignInOptions {
            ceremony: asked.ceremony,
            options: object(asked.options),
        }))
}

#[utoipa::path(post, path = "/api/sign-in/passkey/finish", operation_id = "finish_passkey_sign_in", tag = "access", security(()),
    request_body = ref("#/components/schemas/PasskeySignInRequest"),
    responses((status = 200, description = "Signed in by a cookie and this key.", body = ref("#/components/schemas/SignedIn")), Failures))]
pub(crate) async fn finish_sign_in(
    app: web::Data<App>,
    request: HttpRequest,
    visitor: Visitor,
    JsonBody(given): JsonBody<PasskeySignInRequest>,
) -> Result<HttpResponse, ApiError> {
    from_our_page(&app, &request)?;
    let answer = Answer {
        browser: browser(&app, &request).unwrap_or_default(),
        ceremony: given.ceremony,
        credential: Value::Object(given.credential),
    };
    let login = app.access.finish_passkey_sign_in(answer, visitor).await?;
    Ok(come_in(&app, &login))
}

fn browser_cookie_name(app: &App) -> String {
    format!("{}_passkey", cookie_name(app))
}

/// What tells a browser from others before anybody is signed in there.
fn browser(app: &App, request: &HttpRequest) -> Option<String> {
    let cookie = request.cookie(&browser_cookie_name(app))?;
    let secret = cookie.value();
    (secret.len() == SECRET_CHARS).then(|| secret.to_owned())
}

fn browser_cookie(app: &App, secret: &str) -> Cookie<'static> {
    own_cookie(app, browser_cookie_name(app), secret, BROWSER_LIFETIME)
}

fn object(options: Value) -> Map<String, Value> {
    match options {
        Value::Object(options) => options,
        _ => Map::new(),
    }
}

fn info(passkey: Passkey) -> PasskeyInfo {
    PasskeyInfo {
        id: passkey.id,
        name: passkey.name,
        host: passkey.host,
        created_at: passkey.created_at,
        last_used_at: passkey.last_used_at,
    }
}
