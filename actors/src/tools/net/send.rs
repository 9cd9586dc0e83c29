//! One request to a place that the guard admitted.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, Request, Response};

use super::NetError;
use super::guard::Target;
use crate::tools::output::shortened;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// The longest pause in an answer.
pub const READ_LIMIT: Duration = Duration::from_secs(15);
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

/// Sends the request that `make` builds. The client is made for this one request: a kept one
/// would keep its connections, and those would outlive the look at their addresses.
///
/// # Errors
/// Why there is no answer.
pub async fn send(
    target: &Target,
    make: impl FnOnce(&Client) -> reqwest::Result<Request>,
) -> Result<Response, NetError> {
    let client = client(target.addresses().to_vec()).await?;
    let unreachable = |error: &reqwest::Error| NetError::Unreachable {
        host: target.host(),
        reason: reason(error),
    };
    let request = make(&client).map_err(|error| unreachable(&error))?;
    // Whoever builds the request has the client, but not the say in where it goes.
    if request.url() != target.url() && request.url().origin() != target.url().origin() {
        return Err(NetError::Unreachable {
            host: target.host(),
            reason: "the request is for another host".to_owned(),
        });
    }
    client.execute(request).await.map_err(|error| {
        if error.is_timeout() {
            NetError::TooSlow {
                host: target.host(),
                limit: if error.is_connect() {
                    CONNECT_LIMIT
                } else {
                    READ_LIMIT
                },
            }
        } else {
            unreachable(&error)
        }
    })
}

async fn client(addresses: Vec<SocketAddr>) -> Result<Client, NetError> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Losing a race here means that another thread has just installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    // The machine's certificates are read from files.
    let built = tokio::task::spawn_blocking(move || {
        Client::builder()
            .user_agent(USER_AGENT)
            .dns_resolver(Pinned(addresses))
            .no_proxy()
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_LIMIT)
            .read_timeout(READ_LIMIT)
            .pool_max_idle_per_host(0)
            .build()
    });
    match built.await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(error)) => Err(NetError::NoClient {
            reason: reason(&error),
        }),
        Err(error) => Err(NetError::NoClient {
            reason: error.to_string(),
        }),
    }
}

/// The innermost cause: what the outer ones say of it is only where it happened, and the
/// address, which may carry a key.
pub(super) fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    let mut source = error.source();
    while let Some(inner) = source {
        cause = inner;
        source = inner.source();
    }
    let text = if error.source().is_none() {
        "the request failed".to_owned()
    } else {
        cause.to_string()
    };
    shortened(&text, REASON_BYTES)
}
