//! What stands between a tool and the network: one request to a place that may be reached, and its
//! answer, read up to a limit that holds for what it unpacks to.

use std::error::Error;
use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use itertools::Itertools as _;
use reqwest::dns::{self, Addrs, Name, Resolving};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Request, Response, Url};
use serde_json::Value;
use tokio::time::timeout;
use url::Host;

use super::address::{OwnNetworks, not_public};
use super::grants::Grants;
use super::url::{authority, check};
use crate::https;
use crate::tools::output::{human_size, shortened};
use crate::tools::{ToolError, ToolResult};

/// How long a name may take to resolve.
const RESOLVE_LIMIT: Duration = Duration::from_secs(10);
/// More addresses than this of one name are not tried.
const MAX_ADDRESSES: usize = 16;

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

/// Asks what a name stands for. A trait, so that a test can answer with what an attacker's name
/// server would.
#[async_trait]
pub trait Resolve: Debug + Send + Sync {
    /// Every address of a name.
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The machine's own resolver.
#[derive(Debug)]
struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        // Not every resolver knows `localhost.`.
        let host = host.strip_suffix('.').unwrap_or(host);
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// Decides where a request may go. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Guard {
    grants: Arc<Grants>,
    resolver: Arc<dyn Resolve>,
}

impl Guard {
    /// The same, for who may reach what everybody may, and nothing of the owner's network.
    pub fn public(&self) -> Self {
        Self {
            grants: Arc::default(),
            resolver: Arc::clone(&self.resolver),
        }
    }

    /// A guard that asks the machine's own resolver.
    pub fn new(grants: Grants) -> Self {
        Self::with_resolver(grants, Arc::new(SystemResolver))
    }

    pub fn with_resolver(grants: Grants, resolver: Arc<dyn Resolve>) -> Self {
        Self {
            grants: Arc::new(grants),
            resolver,
        }
    }

    /// Resolves the host of `url` once and looks at every address. One that is not public, or is
    /// this machine's own, and not granted refuses all: a name that leads to both is made to be
    /// chosen from. Gives back those addresses, with the URL's port, or
    /// says why nothing may be sent there.
    pub(crate) async fn admit(&self, url: &Url) -> ToolResult<Vec<SocketAddr>> {
        check(url)?;
        let host = authority(url);
        let found = match url.host() {
            Some(Host::Ipv4(ip)) => vec![IpAddr::V4(ip)],
            Some(Host::Ipv6(ip)) => vec![IpAddr::V6(ip)],
            Some(Host::Domain(name)) => {
                let asked = timeout(RESOLVE_LIMIT, self.resolver.addresses(name)).await;
                let found = asked.unwrap_or_else(|_| {
                    let reason = format!("no answer within {} s", RESOLVE_LIMIT.as_secs());
                    Err(io::Error::other(reason))
                });
                found.map_err(|error| unknown(name, &error.to_string()))?
            }
            None => Vec::new(),
        };
        let own = OwnNetworks::of_this_machine().await.map_err(|error| {
            refusal!("{host} is not reached: this machine's own addresses are not known ({error})")
        })?;
        let port = url.port_or_known_default().unwrap_or(0);
        let mut addresses = Vec::new();
        for ip in found {
            // One that is written as IPv6 is the IPv4 one that really is reached.
            let ip = ip.to_canonical();
            if let Some(kind) = not_public(ip).or_else(|| own.kind_of(ip))
                && !self.grants.cover(url, ip)
            {
                refuse!(
                    "{host} is {kind} ({ip}), which Navi does not reach by itself; the owner can allow it with NAVI_FETCH_ALLOWED_HOSTS={host}"
                );
            }
            addresses.push(SocketAddr::new(ip, port));
        }
        addresses.truncate(MAX_ADDRESSES);
        if addresses.is_empty() {
            return Err(unknown(&host, "it has no address"));
        }
        Ok(addresses)
    }

    /// Sends a request where its address may lead: the only way to send anything. The client is
    /// made for this one request: a kept one would keep its connections, and those would outlive
    /// the look at their addresses. An error says why there is no answer.
    pub(crate) async fn send(&self, request: Request) -> ToolResult<Response> {
        let client = client(self.admit(request.url()).await?)?;
        let host = authority(request.url());
        let answer = client.execute(request).await;
        answer.map_err(|error| failed(&error, &host, &format!("no connection to {host}")))
    }
}

fn unknown(host: &str, reason: &str) -> ToolError {
    refusal!("there is no host {host}: {reason}; check how it is written")
}

/// Gives back the addresses that were looked at, whatever it is asked. So the name is resolved
/// once, and nobody can answer differently the second time.
#[derive(Clone, Debug)]
struct Pinned(Vec<SocketAddr>);

impl dns::Resolve for Pinned {
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

/// A body of no more than `limit` bytes. One that is longer, that breaks off, or that is packed in
/// a way nobody asked for is an error.
pub(crate) async fn read_body(response: Response, limit: usize) -> ToolResult<Vec<u8>> {
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
        refusal!(
            "the answer of {host} is larger than {}, which is all that is read",
            human_size(limit as u64)
        )
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
        return refusal!("{what}: {}", reason(error));
    }
    let limit = match error.is_connect() {
        true => CONNECT_LIMIT,
        false => READ_LIMIT,
    };
    refusal!("{host} did not answer within {} s", limit.as_secs())
}

fn client(addresses: Vec<SocketAddr>) -> ToolResult<Client> {
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
        .map_err(|error| refusal!("no HTTP client can be made: {}", reason(&error)))
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
