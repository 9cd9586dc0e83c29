//! The page: the files of `web/dist`, embedded in the program as `build.rs` lays them out.
//!
//! They hold no secrets, so they are public: a browser that is not logged in gets the page,
//! and the page says how to log in.

use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap};
use actix_web::{HttpRequest, HttpResponse, web};
use navi_actors::protocol::error::ErrorCode;
use rust_embed::{EmbeddedFile, RustEmbed};

use super::endpoint::{Endpoint, endpoint};
use super::error::ApiError;
use super::gzip;

/// By their paths; all but `index.html` have a hash of the whole page in it.
#[derive(RustEmbed)]
#[folder = "$OUT_DIR/page"]
#[exclude = "*.gz"]
struct Files;

/// The same, with `.gz` behind each path.
#[derive(RustEmbed)]
#[folder = "$OUT_DIR/page"]
#[include = "*.gz"]
struct Compressed;

/// What a page of ours may load: our own files. Nothing inline, nothing from elsewhere. Of what may
/// be framed there is one file: everything else forbids it itself.
pub(crate) fn content_security_policy() -> &'static str {
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; frame-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}

/// The frame in which diagrams are drawn, of sources that a model wrote.
const DIAGRAM_FRAME: &str = "diagram.html";
/// Its script. A frame without an origin is another site to a browser.
const DIAGRAM_SCRIPT: &str = "diagram.js";

/// What that frame may do: run its script, and style what it draws. It has no origin, so no cookie
/// and no storage, and reaches neither the page nor any network.
const DIAGRAM_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; \
     sandbox allow-scripts; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

pub(crate) fn index() -> Endpoint {
    endpoint("/")
        .on(Method::GET, None, get_index)
        .on(Method::HEAD, None, get_index)
}

pub(crate) fn files() -> Endpoint {
    endpoint("/web/{path:.*}")
        .on(Method::GET, None, get_file)
        .on(Method::HEAD, None, get_file)
}

pub(crate) fn favicon() -> Endpoint {
    endpoint("/favicon.ico")
        .on(Method::GET, None, get_favicon)
        .on(Method::HEAD, None, get_favicon)
}

/// The page's service worker. It may answer for what lies beside it: it stands at the root.
pub(crate) fn worker() -> Endpoint {
    endpoint("/sw.js")
        .on(Method::GET, None, get_worker)
        .on(Method::HEAD, None, get_worker)
}

async fn get_index(request: HttpRequest) -> HttpResponse {
    // Asked for again each time, and answered with 304: an update of Navi shows at once.
    serve("index.html", "no-cache", &request)
}

async fn get_file(request: HttpRequest, path: web::Path<String>) -> HttpResponse {
    let forever = "public, max-age=31536000, immutable";
    serve(&format!("web/{path}"), forever, &request)
}

async fn get_favicon(request: HttpRequest) -> HttpResponse {
    serve_by_name("icon.svg", &request)
}

async fn get_worker(request: HttpRequest) -> HttpResponse {
    serve_by_name("sw.js", &request)
}

/// A file at an address of its own, which stays when the page changes.
fn serve_by_name(name: &str, request: &HttpRequest) -> HttpResponse {
    let path = Files::iter().find(|path| path.rsplit('/').next() == Some(name));
    serve(&path.unwrap_or_default(), "max-age=86400", request)
}

fn serve(path: &str, caching: &'static str, request: &HttpRequest) -> HttpResponse {
    let Some(file) = Files::get(path) else {
        return ApiError::new(ErrorCode::NotFound, "the page has no such file").response();
    };
    let compressed = gzip::is_taken(request).then(|| Compressed::get(&format!("{path}.gz")));
    let compressed = compressed.flatten();
    let is_compressed = compressed.is_some();
    let name = path.rsplit('/').next();
    let file = compressed.unwrap_or(file);
    let tag = format!("\"{}\"", hex::encode(&file.metadata.sha256_hash()[..16]));
    let fresh = is_fresh(request.headers(), &tag);
    let mut response = if fresh {
        HttpResponse::NotModified()
    } else {
        HttpResponse::Ok()
    };
    response
        .insert_header((header::CACHE_CONTROL, caching))
        .insert_header((header::VARY, "accept-encoding"))
        .insert_header((header::ETAG, tag));
    match name {
        Some(DIAGRAM_FRAME) => {
            response
                .insert_header((header::CONTENT_SECURITY_POLICY, DIAGRAM_POLICY))
                .insert_header((header::X_FRAME_OPTIONS, "SAMEORIGIN"));
        }
        Some(DIAGRAM_SCRIPT) => {
            response.insert_header((header::CROSS_ORIGIN_RESOURCE_POLICY, "cross-origin"));
        }
        _ => {}
    }
    if fresh {
        return response.finish();
    }
    if is_compressed {
        response.insert_header((header::CONTENT_ENCODING, "gzip"));
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
        Some("webmanifest") => "application/manifest+json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_its_type_and_is_there_compressed() {
        for path in Files::iter() {
            assert_ne!(content_type(&path), "application/octet-stream", "{path}");
            assert!(Compressed::get(&format!("{path}.gz")).is_some(), "{path}");
        }
        assert_eq!(Files::iter().count(), Compressed::iter().count());
    }
}
