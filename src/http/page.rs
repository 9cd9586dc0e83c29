//! The page: files of `web/`, embedded in the program.
//!
//! They hold no secrets, so they are public: a browser that is not logged in gets the page,
//! and the page says how to log in.

use actix_web::http::header::{self, HeaderMap};
use actix_web::{HttpRequest, HttpResponse, Resource, web};
use navi_actors::protocol::error::ErrorCode;
use rust_embed::{EmbeddedFile, RustEmbed};

use super::error::ApiError;
use super::resource;

#[derive(RustEmbed)]
#[folder = "web"]
#[include = "*.html"]
#[include = "*.js"]
#[include = "*.css"]
#[include = "*.svg"]
#[include = "*.png"]
#[include = "*.json"]
#[include = "*.woff2"]
#[include = "*.webmanifest"]
#[include = "*.txt"]
#[exclude = "node_modules/*"]
#[exclude = "tests/*"]
#[exclude = "*.d.ts"]
#[exclude = "package.json"]
#[exclude = "package-lock.json"]
#[exclude = "tsconfig.json"]
struct Files;

/// What a page of ours may load: our own files. Nothing inline, nothing from elsewhere.
pub(crate) fn content_security_policy() -> &'static str {
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; \
     form-action 'self'; frame-ancestors 'none'"
}

pub(crate) fn index() -> Resource {
    resource("/", "GET, HEAD")
        .route(web::get().to(get_index))
        .route(web::head().to(get_index))
}

pub(crate) fn files() -> Resource {
    resource("/web/{path:.*}", "GET, HEAD")
        .route(web::get().to(get_file))
        .route(web::head().to(get_file))
}

pub(crate) fn favicon() -> Resource {
    resource("/favicon.ico", "GET, HEAD")
        .route(web::get().to(get_favicon))
        .route(web::head().to(get_favicon))
}

async fn get_index(request: HttpRequest) -> HttpResponse {
    serve("index.html", request.headers())
}

async fn get_file(request: HttpRequest, path: web::Path<String>) -> HttpResponse {
    serve(&path, request.headers())
}

async fn get_favicon(request: HttpRequest) -> HttpResponse {
    serve("icon.svg", request.headers())
}

fn serve(path: &str, headers: &HeaderMap) -> HttpResponse {
    let Some(file) = Files::get(path) else {
        return ApiError::new(ErrorCode::NotFound, "the page has no such file").response();
    };
    let tag = format!("\"{}\"", hex::encode(&file.metadata.sha256_hash()[..16]));
    let mut response = if is_fresh(headers, &tag) {
        HttpResponse::NotModified()
    } else {
        HttpResponse::Ok()
    };
    // Asked for again each time, and answered with 304: an update of Navi shows at once.
    response
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((header::ETAG, tag.clone()));
    if is_fresh(headers, &tag) {
        return response.finish();
    }
    response.content_type(content_type(path)).body(bytes(file))
}

fn bytes(file: EmbeddedFile) -> web::Bytes {
    match file.data {
        std::borrow::Cow::Borrowed(data) => web::Bytes::from_static(data),
        std::borrow::Cow::Owned(data) => web::Bytes::from(data),
    }
}

fn is_fresh(headers: &HeaderMap, tag: &str) -> bool {
    headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|known| {
            known
                .split(',')
                .map(|known| known.trim().trim_start_matches("W/"))
                .any(|known| known == tag || known == "*")
        })
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_page_needs_is_embedded() {
        for path in Files::iter() {
            assert!(!path.starts_with("node_modules/"), "{path}");
            assert!(!path.starts_with("tests/"), "{path}");
            assert_ne!(content_type(&path), "application/octet-stream", "{path}");
        }
    }
}
