//! What is asked of who makes another way into an account: to show that they are there themselves,
//! by the password, or by having come in a moment ago. So a browser that was left open, or a login
//! that was stolen, makes none, and a token never does: it would open more than the token. The same
//! is asked of who has a program run here, and in a browser of who makes what opens as much as the
//! login does (a token with all scopes, or another admin), or lets into somebody's account: a link
//! for another password.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use navi_actors::protocol::error::{ErrorCode, NaviError, invalid};
use navi_actors::protocol::people::Scopes;
use navi_actors::protocol::phrase::PhraseCode;
use navi_actors::store::SecretHash;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::passwords::Tried;
use super::random::Digest;
use super::{Access, Key, Principal, Visitor};

/// How long ago somebody without a password may have signed in.
const FRESH: TimeDelta = TimeDelta::minutes(10);
/// How long a login by which a password was shown has programs run without it.
const SHOWN_FOR: Duration = Duration::from_secs(10 * 60);
/// As many such logins are known; with more the password is asked for each time.
const MOST_SHOWN: usize = 1_024;

/// The logins by which a password was shown a moment ago: who tries a server again and again is no
/// guesser.
#[derive(Debug, Default)]
pub(super) struct Shown(Mutex<HashMap<Digest, Instant>>);

impl Shown {
    fn has(&self, login: &Digest) -> bool {
        let shown = self.0.lock();
        shown.get(login).is_some_and(|at| at.elapsed() < SHOWN_FOR)
    }

    fn keep(&self, login: Digest) {
        let mut shown = self.0.lock();
        if shown.len() >= MOST_SHOWN {
            shown.retain(|_, at| at.elapsed() < SHOWN_FOR);
        }
        if shown.len() < MOST_SHOWN {
            shown.insert(login, Instant::now());
        }
    }
}

impl Access {
    /// Who has a program run here, or variables of Navi's sent out, shows that they are there
    /// themselves; a token for it has all scopes, as what runs could do whatever they allow.
    ///
    /// # Errors
    /// `invalid_field`, `forbidden`: it was not shown who asks, or the token opens too little.
    pub(crate) async fn need_leave_to_run(
        &self,
        who: &Principal,
        password: Option<String>,
        visitor: &Visitor,
    ) -> Result<(), NaviError> {
        let Key::Login(login) = who.key else {
            return need_all_scopes(who, RUNS_MORE);
        };
        if self.shown.has(&login) {
            return Ok(());
        }
        if self.need_password(who, password, visitor).await? {
            self.shown.keep(login);
            return Ok(());
        }
        self.need_fresh_login(who).await
    }

    /// Who asks shows that they are there themselves, and no login of theirs that somebody found.
    pub(super) async fn need_proof(
        &self,
        who: &Principal,
        current_password: Option<String>,
        visitor: &Visitor,
    ) -> Result<(), NaviError> {
        match self.need_password(who, current_password, visitor).await? {
            true => Ok(()),
            false => self.need_fresh_login(who).await,
        }
    }

    /// The same of who asks in a browser: what a token may do, its scopes say.
    pub(super) async fn need_proof_in_browser(
        &self,
        who: &Principal,
        current_password: Option<String>,
        visitor: &Visitor,
    ) -> Result<(), NaviError> {
        match who.key {
            Key::Login(_) => self.need_proof(who, current_password, visitor).await,
            Key::Token(_) | Key::Setting(_) | Key::Proxy(_) => Ok(()),
        }
    }

    /// Whether somebody has a password, which then is the right one.
    async fn need_password(
        &self,
        who: &Principal,
        current_password: Option<String>,
        visitor: &Visitor,
    ) -> Result<bool, NaviError> {
        let user = who.user;
        let stored = self.on_runtime(async move |store| store.password(user).await);
        let Some(stored) = stored.await? else {
            return Ok(false);
        };
        self.tries.count(&user.to_string(), visitor.address)?;
        let given = current_password.unwrap_or_default();
        match self.passwords.verify(&given, Some(stored)).await? {
            Tried::Right { .. } => Ok(true),
            Tried::Wrong => Err(invalid("current_password is wrong")),
        }
    }

    async fn need_fresh_login(&self, who: &Principal) -> Result<(), NaviError> {
        let Key::Login(hash) = who.key else {
            return Err(by_browser_alone());
        };
        let now = Utc::now();
        let login =
            self.on_runtime(async move |store| store.web_login(SecretHash(hash), now).await);
        let is_fresh = |created_at| now - created_at < FRESH;
        match login.await? {
            Some((_, login)) if is_fresh(login.created_at) => Ok(()),
            _ => Err(NaviError::said(
                ErrorCode::Forbidden,
                PhraseCode::SignedInLongAgo,
            )),
        }
    }
}

/// By what a person comes in is theirs to make and remove, in a browser.
pub(crate) fn by_browser_alone() -> NaviError {
    NaviError::new(
        ErrorCode::Forbidden,
        "by what you come in is changed in a browser that is signed in, by no token",
    )
}

/// Who makes a link by which an account is made or taken over could do whatever that account may.
pub(super) const LINK_OPENS_MORE: &str = "a link that lets somebody in opens more than this token; make it in the page, or by a token that has all scopes";
const RUNS_MORE: &str = "a program that runs here, or a variable that is sent out, opens more than this token; do it in the page, or by a token that has all scopes";

/// What opens more than one scope is for a token that has them all.
pub(super) fn need_all_scopes(who: &Principal, refused: &str) -> Result<(), NaviError> {
    if who.grant.scopes.include(Scopes::ALL) {
        return Ok(());
    }
    Err(NaviError::new(ErrorCode::Forbidden, refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_password_that_was_shown_holds_for_its_login_and_a_while() {
        let shown = Shown::default();
        shown.keep([1; 32]);
        assert!(shown.has(&[1; 32]) && !shown.has(&[2; 32]));
        tokio::time::advance(SHOWN_FOR).await;
        assert!(!shown.has(&[1; 32]));
    }

    #[tokio::test(start_paused = true)]
    async fn logins_that_showed_a_password_are_known_up_to_a_bound() {
        let shown = Shown::default();
        let login =
            |n: usize| std::array::from_fn(|at| n.to_le_bytes().get(at).copied().unwrap_or(0));
        for n in 0..=MOST_SHOWN {
            shown.keep(login(n));
        }
        assert!(shown.has(&login(0)) && !shown.has(&login(MOST_SHOWN)));
        tokio::time::advance(SHOWN_FOR).await;
        shown.keep(login(MOST_SHOWN));
        assert!(shown.has(&login(MOST_SHOWN)) && !shown.has(&login(0)));
    }
}
