//! Tools of Model Context Protocol servers: the configuration, one connection to a server, and
//! its tools as the model calls them. Who starts servers and keeps them alive is `crate::mcp`.
//!
//! A server is somebody else's program: everything that it says is bounded, what it says of its
//! tools is pinned by hash, and what its tools give back is data from outside.

mod client;
mod config;
mod listing;
mod stdio;
mod tool;

pub use self::client::Connection;
pub(crate) use self::client::{answers, listing};
pub use self::config::{McpConfig, ServerConfig, Transport, parse, read};
pub use self::listing::{Listed, Listing};
pub use self::stdio::set_up;
pub use self::tool::{McpTool, ServerHandle};

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
mod tests;
