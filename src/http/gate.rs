//! The gates that every request goes through.

use std::future::{Ready, ready};
use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use actix_web::body::{BoxBody, MessageBody};
use actix_web::cookie::time::Duration as CookieDuration;
use actix_web::cookie::{Cookie, SameSite};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, FromRequest, HttpMessage as _, HttpRequest, web};
use navi_actors::protocol::error::ErrorCode;
use tracing::{Level, debug, enabled};

use super::App;
use super::error::ApiError;
use super::messages;
use super::origin::{Trust, check_fetch_site, check_host, check_origin};
use super::pace;
use super::page::content_security_policy;
use super::prefix::{self, Outside};
use crate::access::proof::by_browser_alone;
use crate::access::{
    AuthMethod, Credentials, LOGIN_LIFETIME, PageKey, Principal, ProxyWord, Visitor,
};
use crate::doors;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PAGE_KEY: &str = "x-navi-key";
/// What the key follows in a subprotocol.
const KEY_PROTOCOL: &str = "navi-key.";
/// What a page loads without a script: images and downloads. The ids in them are random, and are
/// told to those who have the key.
const PLAIN_LOADS: [&str; 5] = [
    "/sessions/{session_id}/files/{file_id}",
    "/sessions/{session_id}/files/{file_id}/image",
    "/sessions/{session_id}/workspace/file",
    "/sessions/{session_id}/workspace/image",
    messages::IMAGE,
];

/// The first gate: answers only under our own name, waits for no trickle, and tells browsers to
/// be strict.
pub(crate) async fn front(
    app: web::Data<App>,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    pace::keep(&mut request, app.loaded.settings.slow_body);
    let outside = prefix::take_off(&mut request, &app.places);
    let started = Instant::now();
    let method = request.method().clone();
    // The pattern and not the path: a path can be a one-time link.
    let pattern = enabled!(Level::DEBUG).then(|| request.match_pattern());
    let mut response = match check_host(request.headers(), &app.places) {
        Ok(()) => match outside {
            Outside::Path => next.call(request).await?.map_into_boxed_body(),
            Outside::Page(page) => request.into_response(prefix::on_to(&page)),
        },
        Err(error) => refuse(request, &ApiError(error)),
    };
    secure(&mut response);
    debug!(
        %method,
        pattern = pattern.flatten().unwrap_or_default(),
        status = response.status().as_u16(),
        duration_ms = started.elapsed().as_millis(),
        "a request was answered"
    );
    Ok(response)
}

/// The second gate, of everything that is not public: who asks, and from which page.
pub(crate) async fn require_login(
    app: web::Data<App>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let bearer = bearer(&request);
    // Beside a token nothing else counts.
    let (cookie, visitor) = match bearer {
        Some(_) => (None, Visitor::default()),
        None => (
            login_cookie(request.request(), &app),
            visitor(request.request(), &app),
        ),
    };
    let credentials = Credentials {
        bearer,
        cookie: cookie.as_deref(),
        key: if bearer.is_some() {
            PageKey::Missing
        } else {
            page_key(&request)
        },
        proxy: proxy_word(request.request(), &app),
    };
    let principal = match app.access.authenticate(credentials, &visitor).await {
        Ok(principal) => principal,
        // No such path, whoever asks.
        Err(_) if request.match_pattern().is_none() => {
            let response = super::not_found(request.request().clone()).await;
            return Ok(request.into_response(response));
        }
        Err(error) => return Ok(refuse(request, &ApiError(error))),
    };
    if let Err(error) = check_page(&request, &app, principal.method) {
        return Ok(refuse(request, &error));
    }
    request.extensions_mut().insert(principal);
    let mut response = next.call(request).await?.map_into_boxed_body();
    if let (AuthMethod::Cookie { renewed: true, .. }, Some(secret)) = (principal.method, &cookie) {
        set_login_cookie(&mut response, &app, secret);
    }
    Ok(response)
}

/// A handler that takes this runs for somebody, or not at all.
impl FromRequest for Principal {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let principal = request.extensions().get::<Self>().copied();
        ready(principal.ok_or_else(|| ApiError::new(ErrorCode::Unauthorized, "log in first")))
    }
}

/// Who asks, in a browser that is signed in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InBrowser(pub(super) Principal);

impl FromRequest for InBrowser {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let who = Principal::from_request(request, payload).into_inner();
        ready(who.and_then(|who| match who.method {
            AuthMethod::Cookie { .. } => Ok(Self(who)),
            AuthMethod::Token => Err(by_browser_alone().into()),
        }))
    }
}

/// From where a request comes: what is nearest of those whom no trusted proxy speaks for.
fn visitor(request: &HttpRequest, app: &App) -> Visitor {
    let text = |name| request.headers().get(name)?.to_str().ok();
    let agent = text(header::USER_AGENT);
    let proxies = &app.loaded.settings.people.proxies;
    let is_proxy = |address: &IpAddr| proxies.iter().any(|net| net.contains(address));
    let mut address = request.peer_addr().map(|peer| peer.ip().to_canonical());
    if address.as_ref().is_some_and(is_proxy) {
        let said: Vec<&HeaderValue> = request.headers().get_all(FORWARDED_FOR).collect();
        let values = said.iter().rev();
        // Each stands to the right of what it was told. Left of one that cannot be read anything
        // may be claimed.
        let hops = values.flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
        let nearest = hops.map_while(hop).find(|hop| !is_proxy(hop));
        address = nearest.or(address);
    }
    Visitor::new(address, agent)
}

/// An address as a proxy names it, with its port or without.
fn hop(said: &[u8]) -> Option<IpAddr> {
    let said = std::str::from_utf8(said).ok()?.trim();
    let address = said.parse::<IpAddr>();
    let address = address.or_else(|_| said.parse::<SocketAddr>().map(|with_port| with_port.ip()));
    address.ok().map(|address| address.to_canonical())
}

/// Who it is, as a proxy in front says: one that is named in the settings, by the address of its
/// socket. What others write into this header counts for nothing.
pub(crate) fn proxy_word<'a>(request: &'a HttpRequest, app: &App) -> ProxyWord<'a> {
    let settings = &app.loaded.settings;
    let Some(proxy) = &settings.sign_on.proxy else {
        return ProxyWord::None;
    };
    let peer = request.peer_addr().map(|peer| peer.ip().to_canonical());
    let proxies = &settings.people.proxies;
    if !peer.is_some_and(|peer| proxies.iter().any(|net| net.contains(&peer))) {
        return ProxyWord::None;
    }
    let mut said = request.headers().get_all(&proxy.user_header);
    let (Some(person), None) = (said.next(), said.next()) else {
        return ProxyWord::Nobody;
    };
    match std::str::from_utf8(person.as_bytes()).map(str::trim) {
        Ok(person) if !person.is_empty() => ProxyWord::Person(person),
        Ok(_) | Err(_) => ProxyWord::Nobody,
    }
}

/// Their groups, as that proxy names them, separated by commas.
pub(crate) fn proxy_groups(request: &HttpRequest, app: &App) -> String {
    let proxy = app.loaded.settings.sign_on.proxy.as_ref();
    let Some(name) = proxy.and_then(|proxy| proxy.groups_header.as_ref()) else {
        return String::new();
    };
    let said = request.headers().get_all(name);
    let said = said.filter_map(|value| std::str::from_utf8(value.as_bytes()).ok());
    said.collect::<Vec<_>>().join(",")
}

impl FromRequest for Visitor {
    type Error = Error;
    type Future = Ready<Result<Self, Error>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let app = request.app_data::<web::Data<App>>();
        ready(Ok(
            app.map_or_else(Self::default, |app| visitor(request, app))
        ))
    }
}

/// The secret in the request's login cookie.
pub(crate) fn login_cookie(request: &HttpRequest, app: &App) -> Option<String> {
    request
        .cookie(&cookie_name(app))
        .map(|cookie| cookie.value().to_owned())
}

/// The cookie that logs a browser in.
pub(crate) fn new_login_cookie(app: &App, secret: &str) -> Cookie<'static> {
    own_cookie(app, cookie_name(app), secret, LOGIN_LIFETIME)
}

/// A secret of a browser's, which our own page alone has sent.
pub(super) fn own_cookie(
    app: &App,
    name: String,
    secret: &str,
    lifetime: Duration,
) -> Cookie<'static> {
    let lifetime = i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX);
    Cookie::build(name, secret.to_owned())
        .path("/")
        .http_only(true)
        .secure(app.places.is_secure())
        .same_site(SameSite::Strict)
        .max_age(CookieDuration::seconds(lifetime))
        .finish()
}

/// Browsers share cookies between the ports of a host: the port in the name keeps two
/// services on one machine apart. Where there is TLS, no other host of the same domain can set it.
pub(crate) fn cookie_name(app: &App) -> String {
    let port = app.places.address.port();
    if app.places.is_secure() {
        format!("__Host-navi_{port}")
    } else {
        format!("navi_{port}")
    }
}

fn set_login_cookie(response: &mut ServiceResponse<BoxBody>, app: &App, secret: &str) {
    let cookie = new_login_cookie(app, secret).to_string();
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}

fn bearer(request: &ServiceRequest) -> Option<&str> {
    let value = request
        .headers()
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
}

/// The key that our page holds: a header, or for a socket, which takes none from a page, one of
/// its subprotocols.
fn page_key(request: &ServiceRequest) -> PageKey<'_> {
    let text = |name| request.headers().get(name)?.to_str().ok();
    if let Some(key) = text(PAGE_KEY) {
        return PageKey::Sent(key);
    }
    let protocols = text(header::SEC_WEBSOCKET_PROTOCOL.as_str()).unwrap_or_default();
    let mut protocols = protocols.split(',').map(str::trim);
    if let Some(key) = protocols.find_map(|protocol| protocol.strip_prefix(KEY_PROTOCOL)) {
        return PageKey::Sent(key);
    }
    let is_plain = matches!(*request.method(), Method::GET | Method::HEAD)
        && (request.match_pattern()).is_some_and(|path| PLAIN_LOADS.contains(&path.as_str()));
    if is_plain {
        PageKey::NotAsked
    } else {
        PageKey::Missing
    }
}

fn check_page(request: &ServiceRequest, app: &App, method: AuthMethod) -> Result<(), ApiError> {
    let headers = request.headers();
    let trust = match method {
        AuthMethod::Cookie { .. } => Trust::Cookie,
        AuthMethod::Token => Trust::Token,
    };
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads || headers.contains_key(header::UPGRADE) {
        check_origin(headers, &app.places, trust)?;
    } else if trust == Trust::Cookie {
        check_fetch_site(headers)?;
    }
    Ok(())
}

fn refuse(request: ServiceRequest, error: &ApiError) -> ServiceResponse<BoxBody> {
    let response = doors::refusal(request.path(), error);
    request.into_response(response)
}

/// What every answer says.
static SECURE: [(HeaderName, HeaderValue); 4] = [
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    ),
    (
        header::CROSS_ORIGIN_RESOURCE_POLICY,
        HeaderValue::from_static("same-origin"),
    ),
];
/// Checked once, and not for each answer.
static POLICY: LazyLock<HeaderValue> =
    LazyLock::new(|| HeaderValue::from_static(content_security_policy()));
/// What means something for documents alone.
static SECURE_DOCUMENT: [(HeaderName, HeaderValue); 2] = [
    (
        header::CROSS_ORIGIN_OPENER_POLICY,
        HeaderValue::from_static("same-origin"),
    ),
    (
        header::PERMISSIONS_POLICY,
        HeaderValue::from_static(
            "camera=(), geolocation=(), microphone=(self), payment=(), usb=()",
        ),
    ),
];

fn secure(response: &mut ServiceResponse<BoxBody>) {
    let headers = response.headers_mut();
    let kind = headers.get(header::CONTENT_TYPE);
    let is_document = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let of_document = is_document.then_some(&SECURE_DOCUMENT);
    for (name, value) in SECURE.iter().chain(of_document.into_iter().flatten()) {
        // What a file says of itself stands.
        if !headers.contains_key(name) {
            headers.insert(name.clone(), value.clone());
        }
    }
    // What is stricter than the page stays so.
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        headers.insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}
