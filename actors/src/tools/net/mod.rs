//! The network, as tools may use it: one resolution of a name, a look at every address that it
//! gave, and a connection to exactly those (DESIGN section 6). Nothing here follows a redirect,
//! takes a proxy, or reads without a limit.

mod address;
pub mod grants;
pub mod guard;
pub mod key;
pub(super) mod url;

pub use self::url::MAX_URL_BYTES;
