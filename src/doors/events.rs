//! `GET /sessions/{session_id}/events`: what a tab is told, as server-sent events, for scripts and
//! for proxies without WebSocket.
//!
//! The format is that of HTML's `EventSource`: `data` is a frame as a tab gets it, `id` its
//! number where it has one. A client that comes back with that as `Last-Event-ID`, as each of them
//! does by itself, misses nothing and gets nothing twice, text of parts that are open aside.

use std::pin::Pin;
use std::time::Duration;

use actix_web::http::Method;
use actix_web::http::header::HeaderName;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::{Stream, StreamExt as _, stream};
use navi_actors::domain::permissions::Action;
use navi_actors::feed::Feed;
use navi_actors::protocol::error::{ErrorCode, NaviError, invalid};
use serde::Deserialize;

use crate::access::Principal;
use crate::http::App;
use crate::http::endpoint::{Endpoint, endpoint};
use crate::http::error::ApiError;
use crate::http::openapi::Failures;
use crate::http::ws::{Admission, LOGGED_OUT, Subscription, subscription};

pub(crate) const PATH: &str = "/sessions/{session_id}/events";

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Proxies close what is silent for long: nginx after a minute.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a client waits before it comes back, in milliseconds; said at once, so that the
/// answer's head is on its way.
const BEGINNING: &[u8] = b"retry: 1000\n\n";

pub(crate) fn routes() -> Endpoint {
    endpoint(PATH).on(Method::GET, Action::ReadConversations, events)
}

#[utoipa::path(get, path = "/sessions/{session_id}/events", operation_id = "follow_session", tag = "sessions",
    params(("session_id" = Uuid, Path,),
        ("after" = Option<u64>, Query, description = "The number of the last event that is known: what came after it is told first. Without it, the run that goes is told from its start."),
        ("epoch" = Option<i64>, Query, description = "The session's `epoch` as it is known: where it is another one, a `resync` comes first."),
        ("messages" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "How many messages a `resync` has at the most; all where it is left out."),
        ("Last-Event-ID" = Option<u64>, Header, description = "As `after`, before which it goes.")),
    responses((status = 200, description = "Server-sent events without an end: `data` is an `Envelope` of /api/events.schema.json, `id` its `seq`. An event of the type `closed` holds a `NaviError` that says why nothing more comes.", content_type = "text/event-stream"), Failures))]
pub(crate) async fn events(
    app: web::Data<App>,
    who: Principal,
    path: web::Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let Subscription {
        session,
        after,
        epoch,
        newest,
    } = subscription(&path, request.query_string())?;
    let after = last_event(&request)?.or(after);
    let admission = Admission::new(&app, Some(session), &who)?;
    let attached = app.engine.attach(who.user, session, after, epoch, newest);
    let ended = Box::pin(admission.hold.ended());
    let frames = frames(attached.await?, ended, admission);
    Ok(super::streaming("text/event-stream").streaming(frames))
}

/// What the client says it had last.
pub(crate) fn last_event(request: &HttpRequest) -> Result<Option<u64>, NaviError> {
    let Some(value) = request.headers().get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or("?").trim();
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        invalid("Last-Event-ID must be the id of an event of this stream, a whole number")
    })
}

/// The feed as a client reads it, until it ends or what opened it does. What it holds meanwhile is
/// given back then.
pub(crate) fn frames<T>(
    feed: Feed,
    ended: Pin<Box<dyn Future<Output = ()>>>,
    held: T,
) -> impl Stream<Item = Result<Bytes, NaviError>> {
    let told = stream::unfold(Some((feed, ended, held)), |open| async move {
        let (mut feed, mut ended, held) = open?;
        tokio::select! {
            biased;
            () = &mut ended => Some((closed(), None)),
            frame = feed.next() => {
                let frame = event(&frame?);
                Some((frame, Some((feed, ended, held))))
            }
            () = tokio::time::sleep(KEEP_ALIVE) => {
                let silence = Bytes::from_static(b":\n\n");
                Some((silence, Some((feed, ended, held))))
            }
        }
    });
    stream::once(async { Bytes::from_static(BEGINNING) })
        .chain(told)
        .map(Ok)
}

/// A frame as an event; it is one line of JSON.
fn event(json: &str) -> Bytes {
    /// The only field that the door reads.
    #[derive(Deserialize)]
    struct Numbered {
        seq: Option<u64>,
    }
    let seq = serde_json::from_str(json).map(|it: Numbered| it.seq);
    let id = match seq {
        Ok(Some(seq)) => format!("id: {seq}\n"),
        Ok(None) | Err(_) => String::new(),
    };
    Bytes::from([&id, "data: ", json, "\n\n"].concat())
}

/// Why nothing more comes.
fn closed() -> Bytes {
    let error = NaviError::new(ErrorCode::Unauthorized, LOGGED_OUT);
    let json = serde_json::to_string(&error).unwrap_or_default();
    Bytes::from(["event: closed\ndata: ", &json, "\n\n"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_number_has_it_as_its_id() {
        let numbered = r#"{"seq":12,"at":"2026-01-01T00:00:00Z","type":"stream_stopped"}"#;
        let frame = [&b"id: 12\ndata: "[..], numbered.as_bytes(), b"\n\n"].concat();
        assert_eq!(event(numbered), frame);
        let delta = r#"{"type":"stream_delta","delta":"seq"}"#;
        assert_eq!(
            event(delta),
            [b"data: ", delta.as_bytes(), b"\n\n"].concat()
        );
    }
}
