//! Attacks on passkeys. The authenticator is ours, and answers as it is told to.

mod asking;
mod making;
mod removing;
mod signing_in;
