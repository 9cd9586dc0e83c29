//! One request to a place that the guard admits, and its answer, read up to a limit that holds for
//! what it unpacks to.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use itertools::Itertools as _;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Request, Response, Url};
use serde_json::Value;

use super::guard::Guard;
use super::url::authority;
use crate::https;
use crate::tools::ToolError;
use crate::tools::output::{human_size, shortened};

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// The longest pause in an answer.
const READ_LIMIT: Duration = Duration::from_secs(15);
/// As much of a library's words as an error shows.
const REASON_BYTES: usize = 200;

/// What Navi calls itself. Many servers turn away what has no name.
const USER_AGENT: &str = concat!(
    "Mozilla/5.0 (compatible; Navi/",
    env!("CARGO_PKG_VERSION"),
    ")"
);

/// Gives back the addresses that were looked at, whatever it is asked. So the name is resolved
/// once, and nobody can answer differently the second time.
#[derive(Clone, Debug)]
struct Pinned(Vec<SocketAddr>);

impl Resolve for Pinned {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// A POST with this as its body.
pub(crate) fn post_json(url: Url, body: &Value) -> Request {
    let mut request = Request::new(Method::POST, url);
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(CONTENT_TYPE, json);
    *request.body_mut() = Some(body.to_string().into());
    request
}

impl Guard {
    /// Sends a request where its address may lead: the only way to send anything. The client is
    /// made for this one request: a kept one would keep its connections, and those would outlive
    /// the look at their addresses. An error says why there is no answer.
    pub(crate) async fn send(&self, request: Request) -> Result<Response, ToolError> {
        let client = client(self.admit(request.url()).await?)?;
        let host = authority(request.url());
        let answer = client.execute(request).await;
        answer.map_err(|error| failed(&error, &host, &format!("no connection to {host}")))
    }
}

/// A body of no more than `limit` bytes. One that is longer, that breaks off, or that is packed in
/// a way nobody asked for is an error.
pub(crate) async fn read_body(response: Response, limit: usize) -> Result<Vec<u8>, ToolError> {
    let host = authority(response.url());
    // The client takes away what it undoes.
    let packings = response.headers().get_all(CONTENT_ENCODING).iter();
    let packings = packings
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .join(", ");
    if !matches!(packings.as_str(), "" | "identity") {
        refuse!(
            "the answer of {host} is encoded in {}, which was not asked for",
            shortened(&packings, 60)
        );
    }
    let broke_off = format!("the answer of {host} broke off");
    let too_large = || {
        ToolError(format!(
            "the answer of {host} is larger than {}, which is all that is read",
            human_size(limit as u64)
        ))
    };
    // A length that is told too small changes nothing: what comes is counted.
    let told = response.content_length().unwrap_or(0);
    if told > limit as u64 {
        return Err(too_large());
    }
    let mut body = Vec::with_capacity(usize::try_from(told).unwrap_or(0).min(64 * 1024));
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| failed(&error, &host, &broke_off))?;
        if body.len() + chunk.len() > limit {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// What went wrong with `host`, in words for the model; `what` where it was not too slow.
fn failed(error: &reqwest::Error, host: &str, what: &str) -> ToolError {
    if !error.is_timeout() {
        return ToolError(format!("{what}: {}", reason(error)));
    }
    let limit = if error.is_connect() {
        CONNECT_LIMIT
    } else {
        READ_LIMIT
    };
    ToolError(format!(
        "{host} did not answer within {} s",
        limit.as_secs()
    ))
}

fn client(addresses: Vec<SocketAddr>) -> Result<Client, ToolError> {
    https::client()
        .user_agent(USER_AGENT)
        .gzip(true)
        .dns_resolver(Pinned(addresses))
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .connect_timeout(CONNECT_LIMIT)
        .read_timeout(READ_LIMIT)
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|error| ToolError(format!("no HTTP client can be made: {}", reason(&error))))
}

/// The innermost cause: what the outer ones say of it is only where it happened, and the
/// address, which may carry a key.
fn reason(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (**cause).source());
    let text = causes.last().map_or_else(
        || "the request failed".to_owned(),
        |cause| cause.to_string(),
    );
    shortened(&text, REASON_BYTES)
}
