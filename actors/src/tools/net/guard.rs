//! What stands between a tool and the network.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use url::Host;

use super::address::not_public;
use super::grants::Grants;
use super::own::OwnNetworks;
use super::url::{authority, check};
use crate::tools::ToolError;

/// How long a name may take to resolve.
const RESOLVE_LIMIT: Duration = Duration::from_secs(10);
/// More addresses than this of one name are not tried.
const MAX_ADDRESSES: usize = 16;

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
    pub(crate) async fn admit(&self, url: &Url) -> Result<Vec<SocketAddr>, ToolError> {
        check(url)?;
        let host = authority(url);
        let found = match url.host() {
            Some(Host::Ipv4(ip)) => vec![IpAddr::V4(ip)],
            Some(Host::Ipv6(ip)) => vec![IpAddr::V6(ip)],
            Some(Host::Domain(name)) => self.resolve(name).await?,
            None => Vec::new(),
        };
        let own = OwnNetworks::of_this_machine().await.map_err(|error| {
            ToolError(format!(
                "{host} is not reached: this machine's own addresses are not known ({error})"
            ))
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

    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, ToolError> {
        let asked = tokio::time::timeout(RESOLVE_LIMIT, self.resolver.addresses(name)).await;
        let found = asked.unwrap_or_else(|_| {
            let reason = format!("no answer within {} s", RESOLVE_LIMIT.as_secs());
            Err(io::Error::other(reason))
        });
        found.map_err(|error| unknown(name, &error.to_string()))
    }
}

fn unknown(host: &str, reason: &str) -> ToolError {
    ToolError(format!(
        "there is no host {host}: {reason}; check how it is written"
    ))
}
