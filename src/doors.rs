//! The doors beside the page and its API: each shows a session as one protocol has it. A door
//! turns requests into what the engine is asked, and a session's events into frames; who may,
//! and how much, is decided before it, as for every other request.

pub(crate) mod acp;
mod answer;
pub(crate) mod asked;
pub(crate) mod chat;
pub(crate) mod events;
mod heard;
mod lenders;
pub(crate) mod mcp;
pub(crate) mod ollama;
pub(crate) mod openai;
mod requests;
pub(crate) mod responses;

pub(crate) use self::lenders::{Here, Lenders};
pub(crate) use self::requests::Requests;

use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::{HttpResponse, HttpResponseBuilder, Resource, web};
use navi_actors::protocol::error::ErrorCode;

use self::answer::Answer;
use self::asked::SESSION;
use crate::http::endpoint::Endpoint;
use crate::http::error::ApiError;
use crate::settings::{Door, OpenDoors};

/// The run that answers.
const RUN: HeaderName = HeaderName::from_static("x-navi-run");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Those that are open.
pub(crate) fn endpoints(open: &OpenDoors) -> Vec<Endpoint> {
    let mut all = Vec::new();
    if open.contains(Door::Events) {
        all.push(events::routes());
    }
    if open.contains(Door::Openai) {
        all.extend([
            openai::models_routes(),
            openai::model_routes(),
            openai::completions_routes(),
        ]);
        all.extend(responses::routes());
    }
    if open.contains(Door::Mcp) {
        all.push(mcp::routes());
    }
    if open.contains(Door::Ollama) {
        all.extend(ollama::routes());
    }
    all
}

/// The paths of those that are closed.
pub(crate) fn closed_paths(open: &OpenDoors) -> Vec<&'static str> {
    let mut all = Vec::new();
    let doors: [(Door, &[&[&'static str]]); 4] = [
        (Door::Events, &[&[events::PATH]]),
        (Door::Openai, &[&openai::PATHS, &responses::PATHS]),
        (Door::Mcp, &[&[mcp::PATH]]),
        (Door::Ollama, &[&ollama::PATHS]),
    ];
    for (door, paths) in doors {
        if !open.contains(door) {
            all.extend(paths.concat());
        }
    }
    all
}

/// Whether programs send their messages there.
pub(crate) fn takes_messages(path: &str) -> bool {
    openai::TAKES == path || responses::TAKES == path || ollama::TAKE.contains(&path)
}

/// The head of an answer that streams, as this type.
pub(crate) fn streaming(kind: &'static str) -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::CONTENT_TYPE, HeaderValue::from_static(kind)))
        // nginx would keep what comes until it is 4 KB.
        .insert_header((ACCEL_BUFFERING, HeaderValue::from_static("no")));
    response
}

/// Where the answer can be found again.
fn places(answer: &Answer) -> Vec<(HeaderName, HeaderValue)> {
    // A session of one answer is nobody's to come back to.
    let session = (!answer.ephemeral).then(|| answer.session.to_string());
    let ids = session.map(|id| (SESSION, id));
    let ids = ids.into_iter().chain([(RUN, answer.run_id.to_string())]);
    ids.filter_map(|(name, id)| {
        let value = HeaderValue::from_str(&id).ok()?;
        Some((name, value))
    })
    .collect()
}

/// A closed door says which setting opens it.
pub(crate) fn closed(path: &str) -> Resource {
    web::resource(path).default_service(web::to(|| async {
        ApiError::new(
            ErrorCode::NotFound,
            "this door is closed; NAVI_DOORS names those that are open",
        )
    }))
}

/// An error of a path, in the form that its door has for errors.
pub(crate) fn refusal(path: &str, error: &ApiError) -> HttpResponse {
    if path.starts_with(openai::PREFIX) {
        openai::refusal(error)
    } else if path == mcp::PATH {
        mcp::refusal(error)
    } else if ollama::PATHS.contains(&path) {
        ollama::refusal(error)
    } else {
        error.response()
    }
}
