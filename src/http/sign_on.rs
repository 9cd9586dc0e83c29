//! `/api/sign-on`: how people come in by a provider, or by a proxy's word, and leave with it.
//!
//! Who begins gets two halves, as a login has: a cookie, and a key that stays in the storage of our
//! page. The provider sends the browser back to an address that only hands its answer on to the
//! page, behind the `#`. The page asks for what comes of it: no other page can, and no address that
//! somebody was sent does.

use actix_web::cookie::Cookie;
use actix_web::http::Method;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use chrono::{DateTime, Utc};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::{ErrorCode, invalid};
use navi_actors::store::Identity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::form_urlencoded;
use uuid::Uuid;

use super::App;
use super::account::ProofRequest;
use super::body::{JsonBody, OptionalJsonBody, unreadable};
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::gate::{InBrowser, own_cookie, proxy_groups, proxy_word};
use super::openapi::Failures;
use super::path::id_of;
use super::sign_in::{come_in, from_our_page};
use crate::access::{Answer, Begun, FLOW_LIFETIME, MAX_LOGOUT_TOKEN, Principal, Visitor};

/// The longest answer that is handed on to the page, in bytes.
const MAX_ANSWER: usize = 8 * 1024;
/// What a form may have around its token.
const FORM_ROOM: usize = 1024;

/// How somebody is to come in. The body may be left out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignOnRequest {
    /// The secret of an invitation's link, for somebody new: who is not here yet joins by it, and
    /// it is used up.
    invitation: Option<String>,
}

/// Where a browser goes to sign in.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SignOnBegun {
    location: String,
    /// The page keeps it until the browser comes back.
    key: String,
}

/// What came back with a browser.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SignOnAnswer {
    /// As it was given when the sign-in began.
    key: String,
    state: String,
    code: Option<String>,
    iss: Option<String>,
    /// Why the provider lets nobody in.
    error: Option<String>,
}

/// An account elsewhere that lets somebody in.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LinkedSignOn {
    id: Uuid,
    /// Who says who they are there: a provider by its address, or the proxy in front.
    iss: String,
    /// Of mail, as the provider verified it.
    address: Option<String>,
    created_at: DateTime<Utc>,
    last_used_at: Option<DateTime<Utc>>,
}

impl From<Identity> for LinkedSignOn {
    fn from(identity: Identity) -> Self {
        Self {
            id: identity.id,
            iss: identity.key.iss,
            address: identity.address,
            created_at: identity.created_at,
            last_used_at: identity.last_used_at,
        }
    }
}

/// What a provider sends when it signed somebody out.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "for the document: a form is read by its fields")]
pub(crate) struct LogoutNotice {
    /// Signed by the provider.
    logout_token: String,
}

pub(crate) fn begin_routes() -> Endpoint {
    endpoint("/api/sign-on").on(Method::POST, None, begin)
}

pub(crate) fn callback_routes() -> Endpoint {
    endpoint("/api/sign-on/callback").on(Method::GET, None, hand_on)
}

pub(crate) fn finish_routes() -> Endpoint {
    endpoint("/api/sign-on/finish").on(Method::POST, None, finish)
}

pub(crate) fn proxy_routes() -> Endpoint {
    endpoint("/api/sign-on/proxy").on(Method::POST, None, by_proxy)
}

pub(crate) fn logout_routes() -> Endpoint {
    endpoint("/api/sign-on/logout")
        .on(Method::POST, None, signed_out_there)
        .body_limit(MAX_LOGOUT_TOKEN + FORM_ROOM)
}

pub(crate) fn routes() -> [Endpoint; 3] {
    [
        endpoint("/api/account/sign-ons")
            .on(Method::GET, Action::ReadAccount, list)
            .on(Method::POST, Action::ManageAccount, begin_link),
        endpoint("/api/account/sign-ons/finish").on(
            Method::POST,
            Action::ManageAccount,
            finish_link,
        ),
        endpoint("/api/account/sign-ons/{sign_on_id}").on(
            Method::DELETE,
            Action::ManageAccount,
            unlink,
        ),
    ]
}

#[utoipa::path(post, path = "/api/sign-on", operation_id = "begin_sign_on", tag = "access", security(()),
    request_body = ref("#/components/schemas/SignOnRequest"),
    responses((status = 200, description = "Where the browser goes; it comes back to the page.", body = ref("#/components/schemas/SignOnBegun")), Failures))]
pub(crate) async fn begin(
    app: web::Data<App>,
    request: HttpRequest,
    visitor: Visitor,
    OptionalJsonBody(wanted): OptionalJsonBody<SignOnRequest>,
) -> Result<HttpResponse, ApiError> {
    from_our_page(&app, &request)?;
    let invitation = wanted.and_then(|wanted| wanted.invitation);
    let begun = app.access.begin_sign_on(invitation.as_deref(), &visitor);
    let begun = begun.await?;
    Ok(sent(&app, &begun))
}

#[utoipa::path(get, path = "/api/sign-on/callback", operation_id = "sign_on_callback", tag = "access", security(()),
    responses((status = 303, description = "On to the page, which finds the provider's answer behind `#sign-on?`."), Failures))]
pub(crate) async fn hand_on(request: HttpRequest) -> HttpResponse {
    let answer = request.query_string();
    let answer = if answer.len() > MAX_ANSWER {
        ""
    } else {
        answer
    };
    // Relative, as behind a proxy the page may have a prefix.
    HttpResponse::SeeOther()
        .insert_header((header::LOCATION, format!("../../#sign-on?{answer}")))
        .finish()
}

#[utoipa::path(post, path = "/api/sign-on/finish", operation_id = "finish_sign_on", tag = "access", security(()),
    request_body = ref("#/components/schemas/SignOnAnswer"),
    responses((status = 200, description = "Signed in by a cookie and this key.", body = ref("#/components/schemas/SignedIn")), Failures))]
pub(crate) async fn finish(
    app: web::Data<App>,
    request: HttpRequest,
    visitor: Visitor,
    JsonBody(said): JsonBody<SignOnAnswer>,
) -> Result<HttpResponse, ApiError> {
    from_our_page(&app, &request)?;
    let answer = answer(&app, &request, said);
    let login = app.access.finish_sign_on(answer, visitor).await?;
    let mut response = come_in(&app, &login);
    forget_browser(&app, &mut response);
    Ok(response)
}

#[utoipa::path(post, path = "/api/sign-on/proxy", operation_id = "sign_in_by_proxy", tag = "access", security(()),
    responses((status = 200, description = "Signed in as whom the proxy in front names.", body = ref("#/components/schemas/SignedIn")), Failures))]
pub(crate) async fn by_proxy(
    app: web::Data<App>,
    request: HttpRequest,
    visitor: Visitor,
) -> Result<HttpResponse, ApiError> {
    from_our_page(&app, &request)?;
    let (word, groups) = (proxy_word(&request, &app), proxy_groups(&request, &app));
    let login = app.access.sign_in_by_proxy(word, &groups, visitor).await?;
    Ok(come_in(&app, &login))
}

#[utoipa::path(post, path = "/api/sign-on/logout", operation_id = "sign_on_logout", tag = "access", security(()),
    request_body(content = ref("#/components/schemas/LogoutNotice"), content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "Whom the provider signed out is signed out here."), Failures))]
pub(crate) async fn signed_out_there(
    app: web::Data<App>,
    visitor: Visitor,
    form: Result<web::Bytes, actix_web::Error>,
) -> Result<HttpResponse, ApiError> {
    let form = form.map_err(|error| unreadable(&error))?;
    let mut fields = form_urlencoded::parse(&form);
    let token = fields.find(|(name, _)| name == "logout_token");
    let Some((_, token)) = token else {
        return Err(invalid("a form with a logout_token is wanted").into());
    };
    let done = app.access.signed_out_there(token.into_owned(), visitor);
    done.await?;
    Ok(HttpResponse::Ok().finish())
}

#[utoipa::path(get, path = "/api/account/sign-ons", operation_id = "list_sign_ons", tag = "access",
    responses((status = 200, description = "The accounts elsewhere that let somebody in.", body = ref("#/components/schemas/SignOnList")), Failures))]
pub(crate) async fn list(app: web::Data<App>, who: Principal) -> Result<HttpResponse, ApiError> {
    let sign_ons = app.access.sign_ons(who.user).await?.into_iter();
    let sign_ons: Vec<LinkedSignOn> = sign_ons.map(LinkedSignOn::from).collect();
    Ok(HttpResponse::Ok().json(sign_ons))
}

#[utoipa::path(post, path = "/api/account/sign-ons", operation_id = "begin_link", tag = "access",
    request_body = ref("#/components/schemas/ProofRequest"),
    responses((status = 200, description = "Where the browser goes; it comes back to the page.", body = ref("#/components/schemas/SignOnBegun")), Failures))]
pub(crate) async fn begin_link(
    app: web::Data<App>,
    InBrowser(who): InBrowser,
    visitor: Visitor,
    OptionalJsonBody(proof): OptionalJsonBody<ProofRequest>,
) -> Result<HttpResponse, ApiError> {
    let given = proof.and_then(|proof| proof.current_password);
    let begun = app.access.begin_link(&who, given, &visitor);
    Ok(sent(&app, &begun.await?))
}

#[utoipa::path(post, path = "/api/account/sign-ons/finish", operation_id = "finish_link", tag = "access",
    request_body = ref("#/components/schemas/SignOnAnswer"),
    responses((status = 200, description = "That account lets its person in from now on.", body = ref("#/components/schemas/LinkedSignOn")), Failures))]
pub(crate) async fn finish_link(
    app: web::Data<App>,
    request: HttpRequest,
    InBrowser(who): InBrowser,
    visitor: Visitor,
    JsonBody(said): JsonBody<SignOnAnswer>,
) -> Result<HttpResponse, ApiError> {
    let answer = answer(&app, &request, said);
    let linked = app.access.finish_link(&who, answer, visitor).await?;
    let mut response = HttpResponse::Ok().json(LinkedSignOn::from(linked));
    forget_browser(&app, &mut response);
    Ok(response)
}

#[utoipa::path(delete, path = "/api/account/sign-ons/{sign_on_id}", operation_id = "unlink_sign_on", tag = "access",
    params(("sign_on_id" = Uuid, Path,)),
    responses((status = 204, description = "It lets nobody in any more; what it had let in is signed out, but for the browser that asks."), Failures))]
pub(crate) async fn unlink(
    app: web::Data<App>,
    who: Principal,
    visitor: Visitor,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let id = id_of("its", &path)?;
    if app.access.unlink(&who, id, visitor).await? {
        Ok(HttpResponse::NoContent().finish())
    } else {
        Err(ApiError::new(
            ErrorCode::NotFound,
            "no such account is linked",
        ))
    }
}

fn sent(app: &App, begun: &Begun) -> HttpResponse {
    HttpResponse::Ok()
        .cookie(browser_cookie(app, &begun.browser.cookie))
        .json(SignOnBegun {
            location: begun.location.clone(),
            key: begun.browser.key.clone(),
        })
}

fn answer(app: &App, request: &HttpRequest, said: SignOnAnswer) -> Answer {
    let cookie = request.cookie(&cookie_name(app));
    Answer {
        cookie: cookie.map_or_else(String::new, |cookie| cookie.value().to_owned()),
        key: said.key,
        state: said.state,
        code: said.code,
        iss: said.iss,
        error: said.error,
    }
}

/// By it a browser is the one that began. Our page alone has it sent: `Lax` would do for a request
/// that comes from the provider, and there is none.
fn browser_cookie(app: &App, secret: &str) -> Cookie<'static> {
    own_cookie(app, cookie_name(app), secret, FLOW_LIFETIME)
}

fn forget_browser(app: &App, response: &mut HttpResponse) {
    let mut gone = browser_cookie(app, "");
    gone.make_removal();
    // One that stays is good for nothing.
    let _ = response.add_cookie(&gone);
}

fn cookie_name(app: &App) -> String {
    let port = app.places.address.port();
    if app.places.is_secure() {
        format!("__Host-navi_sign_on_{port}")
    } else {
        format!("navi_sign_on_{port}")
    }
}
