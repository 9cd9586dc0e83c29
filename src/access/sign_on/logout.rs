//! Logout tokens, by which a provider says that it signed somebody out (OpenID Connect
//! Back-Channel Logout 1.0, 2.4 and 2.6).

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use openidconnect::core::{CoreJsonWebKey, CoreJwsSigningAlgorithm};
use openidconnect::{JsonWebKey as _, JsonWebKeySet, JsonWebKeyUse as _};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::provider::{ALGORITHMS, SKEW, payload};
use crate::access::random::{Digest, digest};

/// The longest token.
pub(crate) const MAX_TOKEN: usize = 16 * 1024;
/// A token is no older than this, whatever it says.
const MAX_AGE: TimeDelta = TimeDelta::minutes(10);
/// As many are known at once that were used; the next is refused then.
const MOST_USED: usize = 4_096;
/// What makes it one.
const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// A token as it came, of which nothing is believed yet.
#[derive(Debug)]
pub(super) struct Token<'a> {
    header: Header,
    /// What is signed.
    signed: &'a str,
    signature: Vec<u8>,
    claims: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Header {
    alg: CoreJwsSigningAlgorithm,
    kid: Option<String>,
    typ: Option<String>,
    /// What must be understood, and is not.
    crit: Option<Value>,
}

/// Whose logins end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) sub: Option<String>,
    pub(super) sid: Option<String>,
    pub(super) jti: String,
}

impl<'a> Token<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (signed, signature) = text.rsplit_once('.')?;
        if text.len() > MAX_TOKEN || signed.matches('.').count() != 1 {
            return None;
        }
        let header = part(signed.split('.').next()?)?;
        Some(Self {
            header: serde_json::from_slice(&header).ok()?,
            signature: part(signature)?,
            claims: payload(text)?,
            signed,
        })
    }

    /// Whether one of these keys signed it.
    pub(super) fn is_signed(&self, keys: &JsonWebKeySet<CoreJsonWebKey>) -> bool {
        let Header { alg, kid, crit, .. } = &self.header;
        if !ALGORITHMS.contains(alg) || crit.is_some() {
            return false;
        }
        let may_sign = |key: &&CoreJsonWebKey| {
            let named = key.key_id().map(|id| id.as_str());
            key.key_use().is_none_or(|it| it.allows_signature())
                && (kid.is_none() || kid.as_deref() == named)
        };
        let mut keys = keys.keys().iter().filter(may_sign);
        keys.any(|key| {
            key.verify_signature(alg, self.signed.as_bytes(), &self.signature)
                .is_ok()
        })
    }

    /// Whose logins end by it.
    ///
    /// # Errors
    /// Why nobody's do.
    pub(super) fn ended(
        &self,
        issuer: &str,
        client_id: &str,
        now: DateTime<Utc>,
    ) -> Result<Ended, &'static str> {
        let text = |name: &str| self.claims.get(name).and_then(Value::as_str);
        // An ID token must not pass for one.
        let typ = self.header.typ.as_deref().map(str::to_ascii_lowercase);
        if !matches!(
            typ.as_deref(),
            None | Some("jwt" | "logout+jwt" | "application/logout+jwt")
        ) {
            return Err("it is of another type");
        }
        if text("iss") != Some(issuer) {
            return Err("it is another issuer's");
        }
        let is_for_us = match self.claims.get("aud") {
            Some(Value::String(one)) => one == client_id,
            Some(Value::Array(all)) => all.iter().any(|it| it.as_str() == Some(client_id)),
            _ => false,
        };
        if !is_for_us {
            return Err("it is for another client");
        }
        if self.claims.contains_key("nonce") {
            return Err("it has a nonce, as ID tokens have");
        }
        let events = self.claims.get("events").and_then(Value::as_object);
        if !events.is_some_and(|events| events.get(EVENT).is_some_and(Value::is_object)) {
            return Err("it tells of no logout");
        }
        let at = |name: &str| {
            let seconds = self.claims.get(name).and_then(Value::as_i64);
            seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        };
        let (Some(issued), Some(expires)) = (at("iat"), at("exp")) else {
            return Err("it does not say when it is good");
        };
        if issued > now + SKEW || issued < now - MAX_AGE - SKEW || expires <= now - SKEW {
            return Err("it is too old, or of a time to come");
        }
        let (sub, sid) = (text("sub"), text("sid"));
        if sub.is_none() && sid.is_none() {
            return Err("it names nobody");
        }
        let jti = text("jti").ok_or("it has no name of its own")?;
        Ok(Ended {
            sub: sub.map(str::to_owned),
            sid: sid.map(str::to_owned),
            jti: jti.to_owned(),
        })
    }
}

/// Tokens that were used: each is good once.
#[derive(Debug, Default)]
pub(super) struct Used(Mutex<HashMap<Digest, DateTime<Utc>>>);

/// A token that is being used. Where nothing came of it, it may be sent again.
#[derive(Debug)]
pub(super) struct Using<'a> {
    used: &'a Used,
    token: Option<Digest>,
}

impl Used {
    /// Uses a token, if it was not used before.
    pub(super) fn first(&self, ended: &Ended, now: DateTime<Utc>) -> Option<Using<'_>> {
        let mut used = self.0.lock();
        // Those from before are too old to be used again.
        used.retain(|_, at| now - *at <= MAX_AGE + SKEW + SKEW);
        let token = digest(&ended.jti);
        if used.len() >= MOST_USED || used.insert(token, now).is_some() {
            return None;
        }
        Some(Using {
            used: self,
            token: Some(token),
        })
    }
}

impl Using<'_> {
    /// It did what it was for.
    pub(super) fn done(mut self) {
        self.token = None;
    }
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        if let Some(token) = &self.token {
            self.used.0.lock().remove(token);
        }
    }
}

/// A part of a token.
pub(super) fn part(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_used_once_and_again_where_that_failed() {
        let ended = Ended {
            sub: None,
            sid: None,
            jti: "one".to_owned(),
        };
        let (used, now) = (Used::default(), Utc::now());
        let first = used.first(&ended, now);
        assert!(first.is_some());
        assert!(used.first(&ended, now).is_none(), "it is being used");
        // The database did not answer.
        drop(first);
        let again = used.first(&ended, now);
        again.into_iter().for_each(Using::done);
        assert!(used.first(&ended, now).is_none(), "it was used");
    }
}
