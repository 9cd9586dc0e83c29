//! HTTP towards a model server: one client a backend, its fences, and its failures in our words.

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chrono::Utc;
use futures_util::{Stream, StreamExt, stream};
use reqwest::header::{CONTENT_ENCODING, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, Url};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::LlmError;
use super::frames::ByteStream;
use super::http_error::{Refusal, retry_after, shortened};
use crate::domain::loopback::is_loopback;
use crate::https;
use crate::protocol::phrase::{Phrase, PhraseCode, Trouble};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;
const MAX_JSON_BYTES: usize = 8 * 1024 * 1024;
const MAX_REDIRECTS: usize = 5;

/// About as much of a body is read before it is wanted.
const AHEAD_BYTES: usize = 64 * 1024;

/// A client for one server, with `headers` on each request.
///
/// It never takes a proxy to this very machine, never follows a redirect to another origin
/// (the key and the conversation would go with it), and asks for no compression.
pub(super) fn client(base: &Url, headers: HeaderMap) -> Result<Client, LlmError> {
    let mut builder = https::client()
        .default_headers(headers)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .redirect(Policy::custom(|attempt| {
            let same_origin = attempt
                .previous()
                .first()
                .is_some_and(|first| first.origin() == attempt.url().origin());
            // Only these two repeat a POST as it was.
            let repeats = matches!(attempt.status().as_u16(), 307 | 308);
            if same_origin && repeats && attempt.previous().len() <= MAX_REDIRECTS {
                attempt.follow()
            } else {
                attempt.stop()
            }
        }));
    if is_loopback(base) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| {
        let reason = [("reason", root_cause(&error))];
        LlmError::NotReady(Trouble::new(
            Phrase::new(PhraseCode::NoHttpClient, reason),
            PhraseCode::CheckCertificates,
        ))
    })
}

/// Whether a URL points to this machine or into a network of one's own, where a server is what
/// somebody started there and no service for many.
pub(super) fn is_own_network(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    is_loopback(url)
        || match host.parse::<IpAddr>() {
            Ok(IpAddr::V4(ip)) => ip.is_private() || ip.is_link_local(),
            Ok(IpAddr::V6(ip)) => ip.is_unique_local() || ip.is_unicast_link_local(),
            Err(_) => {
                let host = host.trim_end_matches('.');
                !host.contains('.')
                    || [".local", ".lan", ".internal", ".home.arpa"]
                        .iter()
                        .any(|end| host.ends_with(end))
            }
        }
}

/// `base` with `path` (no leading slash) under its own path.
pub(super) fn under(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

/// A URL as a person sees it: without a password, a query or a last slash.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for URLs that have no host, and those have no password either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.as_str().trim_end_matches('/').to_owned()
}

/// One request to one server.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) request: RequestBuilder,
    pub(super) url: &'a Url,
    /// Empty where the request names none.
    pub(super) model: &'a str,
}

impl Ask<'_> {
    /// Sends it. Anything but a success is an error.
    pub(super) async fn send(self) -> Result<Response, LlmError> {
        let address = shown(self.url);
        let response = self
            .request
            .send()
            .await
            .map_err(|error| LlmError::Unreachable {
                address: address.clone(),
                reason: reason(&error),
            })?;
        if response.status().is_success() {
            return unencoded(response);
        }
        Err(refusal(response, self.model, &address).await)
    }

    /// Sends it and reads a JSON document, all within `limit`.
    pub(super) async fn json(self, limit: Duration) -> Result<Value, LlmError> {
        let address = shown(self.url);
        let read = async {
            let response = self.send().await?;
            let body = bounded(response, MAX_JSON_BYTES).await;
            serde_json::from_slice(&body).map_err(|error| LlmError::Malformed {
                message: format!("no JSON document: {error}"),
            })
        };
        tokio::time::timeout(limit, read).await.unwrap_or_else(|_| {
            Err(LlmError::Unreachable {
                address,
                reason: within(PhraseCode::NoAnswerWithin, limit),
            })
        })
    }
}

/// A response's body as a stream. A connection that breaks is an answer that ended early.
///
/// hyper hands a body over piece by piece, and each time wakes the connection's task. One beside it
/// takes them, which needs no change of thread; whoever reads is woken once for all that came.
pub(super) fn body(response: Response) -> ByteStream {
    let (to, taken) = mpsc::channel(1);
    let reading = AbortOnDropHandle::new(tokio::spawn(read_ahead(response.bytes_stream(), to)));
    let pieces = stream::unfold((taken, reading), |(mut taken, reading)| async move {
        let piece: reqwest::Result<Bytes> = taken.recv().await?;
        Some((piece, (taken, reading)))
    });
    Box::pin(pieces.map(|piece| {
        piece.map_err(|error| {
            tracing::debug!(
                reason = root_cause(&error),
                "the model server's stream broke"
            );
            LlmError::EndedEarly
        })
    }))
}

/// Hands on what comes, joined for as long as the last is not taken.
async fn read_ahead<E>(
    pieces: impl Stream<Item = Result<Bytes, E>>,
    to: mpsc::Sender<Result<Bytes, E>>,
) {
    let mut pieces = pin!(pieces);
    let mut held = BytesMut::new();
    let end = loop {
        tokio::select! {
            biased;
            room = to.reserve(), if !held.is_empty() => match room {
                Ok(room) => room.send(Ok(held.split().freeze())),
                Err(_) => return,
            },
            piece = pieces.next(), if held.len() < AHEAD_BYTES => match piece {
                Some(Ok(piece)) => held.extend_from_slice(&piece),
                end => break end,
            },
        }
    };
    let rest = (!held.is_empty()).then(|| Ok(held.freeze()));
    for last in rest.into_iter().chain(end) {
        // An error means that nobody reads any more.
        let _ = to.send(last).await;
    }
}

fn unencoded(response: Response) -> Result<Response, LlmError> {
    match response.headers().get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => Err(LlmError::Malformed {
            message: format!("a body in {encoding:?}, which was not asked for"),
        }),
        _ => Ok(response),
    }
}

async fn refusal(response: Response, model: &str, address: &str) -> LlmError {
    let status = response.status().as_u16();
    let wait = wait_asked_for(response.headers());
    let location = response
        .headers()
        .get(LOCATION)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let body = tokio::time::timeout(ERROR_BODY_TIMEOUT, bounded(response, MAX_ERROR_BODY_BYTES))
        .await
        .unwrap_or_default();
    Refusal {
        status,
        body: &String::from_utf8_lossy(&body),
        retry_after: wait,
        location: location.as_deref(),
        model,
        url: address,
    }
    .into_error()
}

fn wait_asked_for(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    if let Some(milliseconds) = text("retry-after-ms").and_then(|value| value.trim().parse().ok()) {
        return Some(Duration::from_millis(milliseconds));
    }
    retry_after(text(RETRY_AFTER.as_str())?, Utc::now())
}

/// As much of a body as is allowed and arrives.
async fn bounded(response: Response, max_bytes: usize) -> Vec<u8> {
    let mut chunks = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(Ok(chunk)) = chunks.next().await {
        let room = max_bytes - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == max_bytes {
            break;
        }
    }
    body
}

fn reason(error: &reqwest::Error) -> Phrase {
    if error.is_timeout() {
        return within(PhraseCode::NoConnectionWithin, CONNECT_TIMEOUT);
    }
    match https::innermost(error).downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            PhraseCode::ConnectionRefused.into()
        }
        _ => Phrase::plain(root_cause(error)),
    }
}

fn within(code: PhraseCode, limit: Duration) -> Phrase {
    Phrase::new(code, [("seconds", limit.as_secs().to_string())])
}

fn root_cause(error: &reqwest::Error) -> String {
    shortened(&https::innermost(error).to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn what_came_meanwhile_is_read_at_once_and_the_end_last() {
        let piece = |text: &'static str| Ok(Bytes::from_static(text.as_bytes()));
        let end = Err(LlmError::EndedEarly);
        let pieces = [piece("a"), piece("b"), piece("c"), end.clone()];
        let (to, mut taken) = mpsc::channel(1);
        let reading = tokio::spawn(read_ahead(stream::iter(pieces), to));
        let mut read = Vec::new();
        while let Some(piece) = taken.recv().await {
            read.push(piece);
        }
        assert_eq!(read, [piece("a"), piece("bc"), end]);
        reading.await.unwrap();
    }

    #[tokio::test]
    async fn no_more_is_read_ahead_than_may_be() {
        let read = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&read);
        let pieces = stream::repeat(Bytes::from_static(&[0; 1024])).map(move |piece| {
            count.fetch_add(piece.len(), Ordering::Relaxed);
            Ok::<_, LlmError>(piece)
        });
        let (to, taken) = mpsc::channel(1);
        let reading = tokio::spawn(read_ahead(pieces, to));
        while read.load(Ordering::Relaxed) < AHEAD_BYTES {
            tokio::task::yield_now().await;
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let ahead = read.load(Ordering::Relaxed);
        assert!(ahead <= AHEAD_BYTES + 1024, "{ahead}");
        // It ends with whoever reads.
        drop(taken);
        reading.await.unwrap();
    }

    #[test]
    fn a_network_of_ones_own_is_told_from_the_internet() {
        for (url, expected) in [
            ("http://localhost:1", true),
            ("http://192.168.0.2:8080", true),
            ("http://10.1.2.3", true),
            ("http://[fd00::1]:1", true),
            ("http://gpu:8000", true),
            ("http://gpu.local", true),
            ("https://api.example.com", false),
            ("https://8.8.8.8", false),
        ] {
            assert_eq!(is_own_network(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        let url = Url::parse("http://me:secret@example.com:8080/v1/?key=secret#x").unwrap();
        assert_eq!(shown(&url), "http://example.com:8080/v1");
    }
}
