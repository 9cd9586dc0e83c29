//! User tools: a folder each in `TOOLS_DIR`, with a manifest and an executable in any language.
//! Arguments come as JSON on standard input, the result goes to standard output
//! (`docs/user-tools.md`).
//!
//! Nothing of a folder runs before its owner allowed it by the hash of everything in it. What
//! runs is a copy of the very bytes that were hashed: a folder that changes between the check
//! and the call changes nothing of the call.

mod call;
mod folder;
mod run;
mod scan;

pub use self::call::{UserTool, Workshop};
pub use self::folder::Copies;
pub use self::run::Runner;
pub use self::scan::{Manifest, Scan, ScannedTool, Scanner};

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
mod tests;
