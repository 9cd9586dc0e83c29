//! Passwords: made into what may be stored, and looked at.

use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Argon2, Params};
use navi_actors::protocol::error::{ErrorCode, NaviError, invalid};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tracing::warn;

/// Of a password, in characters. Length is what makes one good (NIST SP 800-63B).
pub(crate) const MIN_CHARS: usize = 10;
pub(crate) const MAX_CHARS: usize = 200;
/// Each takes 19 MB and a core for as long as it takes.
const AT_ONCE: usize = 2;
/// How long one waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// What became of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tried {
    Wrong,
    Right {
        /// It is stored by weaker parameters than those of today.
        outdated: bool,
    },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Passwords {
    runtime: Handle,
    slots: Semaphore,
}

impl Passwords {
    pub(super) fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            slots: Semaphore::new(AT_ONCE),
        }
    }

    /// What is stored of a password: argon2id, with its parameters and a salt of its own.
    ///
    /// # Errors
    /// It is too short or too long.
    pub(super) async fn hash(&self, password: &str) -> Result<String, NaviError> {
        let chars = password.chars().count();
        if !(MIN_CHARS..=MAX_CHARS).contains(&chars) {
            return Err(invalid(format!(
                "password must have {MIN_CHARS} to {MAX_CHARS} characters"
            )));
        }
        let password = password.to_owned();
        self.aside(move || hash(&password)).await
    }

    /// Whether it is the one that is stored. Where none is stored, it takes as long to say no: how
    /// long an answer took says nothing about whether there is such an account.
    ///
    /// # Errors
    /// Something failed here.
    pub(super) async fn verify(
        &self,
        password: &str,
        stored: Option<String>,
    ) -> Result<Tried, NaviError> {
        if password.chars().count() > MAX_CHARS {
            return Ok(Tried::Wrong);
        }
        let password = password.to_owned();
        self.aside(move || match stored {
            Some(stored) => verify(&password, &stored),
            None => hash(&password).map(|_| Tried::Wrong),
        })
        .await
    }

    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, NaviError> {
        let failed = |error: &dyn std::fmt::Display| {
            warn!(%error, "a password could not be looked at");
            NaviError::new(
                ErrorCode::Internal,
                "something failed here; the log says what",
            )
        };
        let turn = tokio::time::timeout(PATIENCE, self.slots.acquire()).await;
        let turn = turn.map_err(|_| {
            let busy = "too many people sign in at once; try again in a minute";
            NaviError::new(ErrorCode::RateLimited, busy)
        })?;
        let _turn = turn.map_err(|error| failed(&error))?;
        let done = self.runtime.spawn_blocking(work).await;
        done.map_err(|error| failed(&error))?
            .map_err(|error| failed(&error))
    }
}

fn hash(password: &str) -> Result<String, String> {
    let hashed = Argon2::default().hash_password(password.as_bytes());
    hashed
        .map(|hash: PasswordHash| hash.to_string())
        .map_err(|error| error.to_string())
}

fn verify(password: &str, stored: &str) -> Result<Tried, String> {
    let stored = PasswordHash::new(stored).map_err(|error| error.to_string())?;
    let argon2 = Argon2::default();
    if argon2
        .verify_password(password.as_bytes(), &stored)
        .is_err()
    {
        return Ok(Tried::Wrong);
    }
    let its = Params::try_from(&stored).map_err(|error| error.to_string())?;
    let ours = argon2.params();
    Ok(Tried::Right {
        outdated: its.m_cost() < ours.m_cost() || its.t_cost() < ours.t_cost(),
    })
}

#[cfg(test)]
mod tests {
    use argon2::{Algorithm, Version};

    use super::*;

    #[tokio::test]
    async fn a_password_is_known_again_and_no_other_is() {
        let passwords = Passwords::new(Handle::current());
        let stored = passwords.hash("correct horse").await.unwrap();
        assert!(stored.starts_with("$argon2id$"), "{stored}");
        let tried = |password: &'static str, stored: Option<&String>| {
            passwords.verify(password, stored.cloned())
        };
        let right = Tried::Right { outdated: false };
        assert_eq!(tried("correct horse", Some(&stored)).await, Ok(right));
        assert_eq!(
            tried("correct horsf", Some(&stored)).await,
            Ok(Tried::Wrong)
        );
        assert_eq!(tried("correct horse", None).await, Ok(Tried::Wrong));
        let short = passwords.hash("too short").await.unwrap_err();
        assert_eq!(short.code, ErrorCode::InvalidField);
    }

    #[tokio::test]
    async fn what_was_stored_by_weaker_parameters_is_found() {
        let params = Params::new(8 * 1024, 1, 1, None).unwrap();
        let weak = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let stored: PasswordHash = weak.hash_password(b"correct horse").unwrap();
        let passwords = Passwords::new(Handle::current());
        let tried = passwords.verify("correct horse", Some(stored.to_string()));
        assert_eq!(tried.await, Ok(Tried::Right { outdated: true }));
    }
}
