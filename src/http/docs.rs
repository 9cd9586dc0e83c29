//! `/api/docs`: a page that reads `/api/openapi.json`, in files of our own so that it works
//! under the strict policy.

use actix_web::HttpResponse;
use actix_web::http::{Method, header};

use super::endpoint::{Endpoint, endpoint};

pub(crate) fn page() -> Endpoint {
    endpoint("/api/docs").on(Method::GET, None, || async {
        file("text/html; charset=utf-8", include_str!("docs/docs.html"))
    })
}

pub(crate) fn script() -> Endpoint {
    endpoint("/api/docs.js").on(Method::GET, None, || async {
        file(
            "text/javascript; charset=utf-8",
            include_str!("docs/docs.js"),
        )
    })
}

pub(crate) fn style() -> Endpoint {
    endpoint("/api/docs.css").on(Method::GET, None, || async {
        file("text/css; charset=utf-8", include_str!("docs/docs.css"))
    })
}

fn file(content_type: &'static str, text: &'static str) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .content_type(content_type)
        .body(text)
}
