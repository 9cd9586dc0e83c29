//! From a name to its addresses.

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

/// Asks what a name stands for. A trait, so that a test can answer with what an attacker's name
/// server would.
#[async_trait]
pub trait Resolve: Debug + Send + Sync {
    /// Every address of a name.
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The machine's own resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        // Not every resolver knows `localhost.`.
        let host = host.strip_suffix('.').unwrap_or(host);
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
