//! Secrets of our making, and what is kept of them.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// SHA-256 of a secret.
pub(crate) type Digest = [u8; 32];

/// A fresh secret: 64 hexadecimal digits, 244 bits of them random.
pub(crate) fn fresh() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

pub(crate) fn digest(secret: &str) -> Digest {
    Sha256::digest(secret.as_bytes()).into()
}
