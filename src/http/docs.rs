//! `/api/docs`: a page that reads `/api/openapi.json`, in files of our own so that it works
//! under the strict policy.

use actix_web::http::header;
use actix_web::{HttpResponse, Resource, web};

use super::resource;

pub(crate) fn page() -> Resource {
    resource("/api/docs", "GET").route(
        web::get()
            .to(|| async { file("text/html; charset=utf-8", include_str!("docs/docs.html")) }),
    )
}

pub(crate) fn script() -> Resource {
    resource("/api/docs.js", "GET").route(web::get().to(|| async {
        file(
            "text/javascript; charset=utf-8",
            include_str!("docs/docs.js"),
        )
    }))
}

pub(crate) fn style() -> Resource {
    resource("/api/docs.css", "GET").route(
        web::get().to(|| async { file("text/css; charset=utf-8", include_str!("docs/docs.css")) }),
    )
}

fn file(content_type: &'static str, text: &'static str) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .content_type(content_type)
        .body(text)
}
