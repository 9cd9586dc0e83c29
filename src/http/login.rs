//! `GET /login/{secret}` and `POST /logout`: a browser comes and goes.

use actix_web::http::Method;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderMap};
use actix_web::{HttpRequest, HttpResponse, web};
use navi_actors::domain::permissions::Action;
use navi_actors::protocol::error::ErrorCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::App;
use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::gate::{login_cookie, new_login_cookie, proxy_word};
use super::openapi::Failures;
use crate::access::links::Redeemed;
use crate::access::{Credentials, PageKey, Principal, Visitor};

/// Who came in by a provider leaves there, too.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LeftHere {
    location: String,
}

pub(crate) fn link() -> Endpoint {
    endpoint("/login/{secret}")
        .on(Method::GET, None, log_in)
        .on(Method::HEAD, None, look)
}

pub(crate) fn log_out() -> Endpoint {
    endpoint("/logout").on(Method::POST, Action::SignOut, leave)
}

/// Looking at a link does not use it up.
async fn look() -> HttpResponse {
    HttpResponse::Ok().finish()
}

#[utoipa::path(get, path = "/login/{secret}", tag = "access", security(()),
    params(("secret" = String, Path, description = "As `navi link` prints it.")),
    responses(
        (status = 303, description = "Logged in by a cookie, and by the key that stands in `Location` behind `#key=`; on to the page."),
        (status = 401, description = "The link is not known.", content((ref("#/components/schemas/NaviError") = "application/json"), ("text/html"))),
        (status = 403, description = "The request came under another name.", body = ref("#/components/schemas/NaviError")),
        (status = 410, description = "The link was used, or has expired.", content((ref("#/components/schemas/NaviError") = "application/json"), ("text/html"))),
        (status = 429, description = "Too many wrong links.", body = ref("#/components/schemas/NaviError")),
        (status = 500, description = "Something failed here; the log says what.", body = ref("#/components/schemas/NaviError")),
        (status = 503, description = "A browser that guesses ahead, which would use it up; or the database is not available just now.")))]
pub(crate) async fn log_in(
    app: web::Data<App>,
    request: HttpRequest,
    visitor: Visitor,
    secret: web::Path<String>,
) -> HttpResponse {
    if is_prefetch(request.headers()) {
        // A browser that guesses ahead would use the link up before its user opens it.
        return HttpResponse::ServiceUnavailable().finish();
    }
    match app.access.redeem(&secret, visitor).await {
        // Relative, as behind a proxy the page may have a prefix. What follows the `#` is for the
        // page alone: no browser sends it anywhere.
        Ok(Ok(login)) => HttpResponse::SeeOther()
            .insert_header((header::LOCATION, format!("../#key={}", login.key)))
            .cookie(new_login_cookie(&app, &login.cookie))
            .finish(),
        Ok(Err(redeemed)) => no_way_in(&app, &request, redeemed).await,
        Err(error) => ApiError(error).response(),
    }
}

#[utoipa::path(post, path = "/logout", tag = "access",
    responses(
        (status = 200, description = "The browser's login is forgotten; by this address it signs out at the provider, too.", body = ref("#/components/schemas/LeftHere")),
        (status = 204, description = "The browser's login is forgotten."), Failures))]
pub(crate) async fn leave(
    app: web::Data<App>,
    request: HttpRequest,
    who: Principal,
    visitor: Visitor,
) -> Result<HttpResponse, ApiError> {
    let mut left = None;
    if let Some(cookie) = login_cookie(&request, &app) {
        let login = app.access.log_out(&who, &cookie, visitor).await?;
        left = app.access.way_out(login).await;
    }
    let mut gone = new_login_cookie(&app, "");
    gone.make_removal();
    Ok(match left {
        Some(location) => HttpResponse::Ok().cookie(gone).json(LeftHere { location }),
        None => HttpResponse::NoContent().cookie(gone).finish(),
    })
}

/// Who is logged in already just goes on to the page; others are told what to do.
async fn no_way_in(app: &App, request: &HttpRequest, redeemed: Redeemed) -> HttpResponse {
    let cookie = login_cookie(request, app);
    let credentials = Credentials {
        bearer: None,
        cookie: cookie.as_deref(),
        key: PageKey::NotAsked,
        proxy: proxy_word(request, app),
    };
    if cookie.is_some()
        && (app
            .access
            .authenticate(credentials, &Visitor::default())
            .await)
            .is_ok()
    {
        return HttpResponse::SeeOther()
            .insert_header((header::LOCATION, "../"))
            .finish();
    }
    let (status, reason) = match redeemed {
        Redeemed::AlreadyUsed => (
            StatusCode::GONE,
            "this link was used already: each works once",
        ),
        Redeemed::Expired => (StatusCode::GONE, "this link has expired"),
        Redeemed::Unknown | Redeemed::Accepted => {
            (StatusCode::UNAUTHORIZED, "this link is not known")
        }
    };
    if wants_html(request.headers()) {
        return HttpResponse::build(status)
            .content_type("text/html; charset=utf-8")
            .body(sorry(reason));
    }
    let error = ApiError::new(
        ErrorCode::Unauthorized,
        format!("{reason}; run `navi link` for a new one"),
    );
    let mut response = error.response();
    *response.status_mut() = status;
    response
}

fn sorry(reason: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Navi</title>\n\
         <link rel=\"stylesheet\" href=\"../api/docs.css\">\n<main>\n<h1>Navi</h1>\n\
         <p>Sorry, {reason}.</p>\n\
         <p>Run <code>navi link</code> on the machine where Navi runs, and open the link that it prints.</p>\n\
         </main>\n</html>\n"
    )
}

fn wants_html(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"))
}

fn is_prefetch(headers: &HeaderMap) -> bool {
    ["sec-purpose", "purpose", "x-moz", "x-purpose"]
        .iter()
        .filter_map(|name| headers.get(*name)?.to_str().ok())
        .any(|value| {
            let value = value.to_ascii_lowercase();
            ["prefetch", "prerender", "preview"]
                .iter()
                .any(|word| value.contains(word))
        })
}
