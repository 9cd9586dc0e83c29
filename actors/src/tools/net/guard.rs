//! What stands between a tool and the network.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use url::Host;

use super::NetError;
use super::address::{not_public, reached};
use super::grants::Grants;
use super::own::OwnNetworks;
use super::resolve::{Resolve, SystemResolver};
use super::url::{authority, check};

/// How long a name may take to resolve.
const RESOLVE_LIMIT: Duration = Duration::from_secs(10);
/// More addresses than this of one name are not tried.
const MAX_ADDRESSES: usize = 16;

/// Decides where a request may go. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Guard {
    grants: Arc<Grants>,
    resolver: Arc<dyn Resolve>,
}

/// A place that was looked at: the only way to send anything ([`super::send`]).
#[derive(Clone, Debug)]
pub struct Target {
    url: Url,
    addresses: Vec<SocketAddr>,
}

impl Guard {
    /// A guard that asks the machine's own resolver.
    #[must_use]
    pub fn new(grants: Grants) -> Self {
        Self::with_resolver(grants, Arc::new(SystemResolver))
    }

    #[must_use]
    pub fn with_resolver(grants: Grants, resolver: Arc<dyn Resolve>) -> Self {
        Self {
            grants: Arc::new(grants),
            resolver,
        }
    }

    /// Resolves the host of `url` once and looks at every address. One that is not public, or is
    /// this machine's own, and not granted refuses all: a name that leads to both is made to be
    /// chosen from.
    ///
    /// # Errors
    /// Why nothing may be sent there.
    pub async fn admit(&self, url: &Url) -> Result<Target, NetError> {
        check(url)?;
        let host = authority(url);
        let found = match url.host() {
            Some(Host::Ipv4(ip)) => vec![IpAddr::V4(ip)],
            Some(Host::Ipv6(ip)) => vec![IpAddr::V6(ip)],
            Some(Host::Domain(name)) => self.resolve(name).await?,
            None => Vec::new(),
        };
        let own = OwnNetworks::of_this_machine().await;
        let own = own.map_err(|error| NetError::OwnUnknown {
            host: host.clone(),
            reason: error.to_string(),
        })?;
        let mut addresses = Vec::new();
        for ip in found {
            let ip = reached(ip);
            if let Some(kind) = not_public(ip).or_else(|| own.kind_of(ip))
                && !self.grants.cover(url, ip)
            {
                return Err(NetError::NotPublic { host, ip, kind });
            }
            addresses.push(SocketAddr::new(
                ip,
                url.port_or_known_default().unwrap_or(0),
            ));
        }
        addresses.truncate(MAX_ADDRESSES);
        if addresses.is_empty() {
            return Err(NetError::UnknownHost {
                host,
                reason: "it has no address".to_owned(),
            });
        }
        Ok(Target {
            url: url.clone(),
            addresses,
        })
    }

    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, NetError> {
        let asked = tokio::time::timeout(RESOLVE_LIMIT, self.resolver.addresses(name));
        let reason = match asked.await {
            Ok(Ok(addresses)) => return Ok(addresses),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", RESOLVE_LIMIT.as_secs()),
        };
        Err(NetError::UnknownHost {
            host: name.to_owned(),
            reason,
        })
    }
}

impl Target {
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The addresses that were looked at, with the URL's port.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The host as a person writes it.
    #[must_use]
    pub fn host(&self) -> String {
        authority(&self.url)
    }
}
