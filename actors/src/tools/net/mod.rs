//! The network, as tools may use it: one resolution of a name, a look at every address that it
//! gave, and a connection to exactly those (DESIGN section 6). Nothing here follows a redirect,
//! takes a proxy, or reads without a limit.

pub mod address;
pub mod body;
pub mod grants;
pub mod guard;
pub mod key;
mod own;
pub mod resolve;
pub mod send;
pub mod url;

use std::time::Duration;

use super::ToolError;

/// Why nothing came back, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    #[error("{0}")]
    Address(#[from] url::UrlError),
    #[error("there is no host {host}: {reason}; check how it is written")]
    UnknownHost { host: String, reason: String },
    /// Where an address leads that nobody granted.
    #[error(
        "{host} is {kind} ({ip}), which Navi does not reach by itself; the owner can allow it with NAVI_FETCH_ALLOWED_HOSTS={host}"
    )]
    NotPublic {
        host: String,
        ip: std::net::IpAddr,
        kind: &'static str,
    },
    #[error("{host} is not reached: this machine's own addresses are not known ({reason})")]
    OwnUnknown { host: String, reason: String },
    #[error("no connection to {host}: {reason}")]
    Unreachable { host: String, reason: String },
    #[error("{host} did not answer within {} s", limit.as_secs())]
    TooSlow { host: String, limit: Duration },
    #[error("the answer of {host} broke off: {reason}")]
    BrokeOff { host: String, reason: String },
    #[error("the answer of {host} is larger than {limit}, which is all that is read")]
    TooLarge { host: String, limit: String },
    #[error("the answer of {host} is encoded in {encoding}, which was not asked for")]
    Encoding { host: String, encoding: String },
    #[error("no HTTP client can be made: {reason}; check the machine's certificates")]
    NoClient { reason: String },
}

impl From<NetError> for ToolError {
    fn from(error: NetError) -> Self {
        Self(error.to_string())
    }
}
