//! Sign-ins that are under way at the provider: each is good once, for a while, and for the browser
//! that began it.

use std::collections::HashMap;
use std::time::Duration;

use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::UserId;
use openidconnect::{Nonce, PkceCodeVerifier};
use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use crate::access::random::{Digest, digest};
use crate::access::sign_in::{Login, cookie_of};

/// How long somebody may take at the provider.
pub(crate) const LIFETIME: Duration = Duration::from_secs(600);
/// As many at once; then nobody begins another.
const MOST: usize = 4_096;

/// What the provider's answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    SignIn,
    /// Whoever it is joins by the invitation with this hash, where they are not here yet.
    Join(Digest),
    /// Somebody who is signed in is this to the provider, too.
    Link(UserId),
}

impl Purpose {
    /// Whether it is to be let in.
    pub(super) fn lets_in(self) -> bool {
        match self {
            Self::SignIn | Self::Join(_) => true,
            Self::Link(_) => false,
        }
    }
}

/// What the provider's answer is held against.
#[derive(Debug)]
pub(super) struct Secrets {
    pub(super) nonce: Nonce,
    pub(super) verifier: PkceCodeVerifier,
}

#[derive(Debug)]
struct Flow {
    purpose: Purpose,
    secrets: Secrets,
    /// Of the cookie in the browser that began it.
    browser: Digest,
    begun: Instant,
}

/// All of them, by the hash of their state.
#[derive(Debug, Default)]
pub(super) struct Flows(Mutex<HashMap<Digest, Flow>>);

impl Flows {
    /// Begins one in a browser, which is known by both halves of what it is given.
    ///
    /// # Errors
    /// `rate_limited`: there are too many.
    pub(super) fn begin(
        &self,
        state: &str,
        browser: &Login,
        purpose: Purpose,
        secrets: Secrets,
    ) -> Result<(), NaviError> {
        let mut flows = self.0.lock();
        if flows.len() >= MOST {
            flows.retain(|_, flow| flow.begun.elapsed() < LIFETIME);
        }
        if flows.len() >= MOST {
            return Err(NaviError::new(
                ErrorCode::RateLimited,
                "too many sign-ins are under way; try again in a minute",
            ));
        }
        let flow = Flow {
            purpose,
            secrets,
            browser: digest(&browser.cookie),
            begun: Instant::now(),
        };
        flows.insert(digest(state), flow);
        Ok(())
    }

    /// Takes the one of this state, where it is this browser's and for such a purpose. What another
    /// browser says of it leaves it as it is.
    pub(super) fn take(
        &self,
        state: &str,
        (cookie, key): (&str, &str),
        is_for: impl FnOnce(Purpose) -> bool,
    ) -> Option<(Purpose, Secrets)> {
        let mut flows = self.0.lock();
        let state = digest(state);
        let flow = flows.get(&state)?;
        if flow.begun.elapsed() >= LIFETIME {
            flows.remove(&state);
            return None;
        }
        let halves: bool = cookie_of(key).as_bytes().ct_eq(cookie.as_bytes()).into();
        let is_its: bool = digest(cookie).ct_eq(&flow.browser).into();
        if !halves || !is_its || !is_for(flow.purpose) {
            return None;
        }
        let flow = flows.remove(&state)?;
        Some((flow.purpose, flow.secrets))
    }
}

#[cfg(test)]
mod tests {
    use openidconnect::PkceCodeChallenge;

    use super::*;

    fn secrets() -> Secrets {
        Secrets {
            nonce: Nonce::new("n".to_owned()),
            verifier: PkceCodeChallenge::new_random_sha256().1,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sign_in_is_good_once_for_a_while_and_in_its_browser() {
        let flows = Flows::default();
        let (browser, other) = (Login::fresh(), Login::fresh());
        let begin = |state| {
            let begun = flows.begin(state, &browser, Purpose::SignIn, secrets());
            begun.unwrap();
        };
        let take = |state, login: &Login, purpose| {
            let halves = (login.cookie.as_str(), login.key.as_str());
            flows.take(state, halves, |it| it == purpose).is_some()
        };
        begin("a");
        assert!(!take("b", &browser, Purpose::SignIn));
        assert!(!take("a", &other, Purpose::SignIn));
        let mixed = Login {
            cookie: browser.cookie.clone(),
            key: other.key.clone(),
        };
        assert!(!take("a", &mixed, Purpose::SignIn));
        let somebody = Purpose::Link(UserId(uuid::Uuid::now_v7()));
        assert!(!take("a", &browser, somebody));
        assert!(take("a", &browser, Purpose::SignIn));
        assert!(!take("a", &browser, Purpose::SignIn));
        begin("c");
        tokio::time::advance(LIFETIME).await;
        assert!(!take("c", &browser, Purpose::SignIn));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_are_under_way_than_so_many() {
        let flows = Flows::default();
        let browser = Login::fresh();
        let begin = |n: usize| flows.begin(&n.to_string(), &browser, Purpose::SignIn, secrets());
        for n in 0..MOST {
            begin(n).unwrap();
        }
        assert_eq!(begin(MOST).unwrap_err().code, ErrorCode::RateLimited);
        tokio::time::advance(LIFETIME).await;
        begin(MOST).unwrap();
    }
}
