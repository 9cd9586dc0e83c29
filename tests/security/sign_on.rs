//! Attacks on sign-on: a provider that lies, answers that are forged, replayed or another's, and a
//! proxy's word from who is no proxy.

mod answers;
mod going;
mod invitations;
mod logout;
mod people;
mod proxy;

pub(super) use going::somebody;

/// The close code of a socket whose login opens nothing any more.
const NOT_LOGGED_IN: u16 = 4001;
