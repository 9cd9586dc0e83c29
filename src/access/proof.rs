//! What is asked of who makes another way into an account: to show that they are there themselves,
//! by the password, or by having come in a moment ago. So a browser that was left open, or a login
//! that was stolen, makes none, and a token never does: it would open more than the token.

use chrono::{TimeDelta, Utc};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::people::Scopes;
use navi_actors::store::SecretHash;

use super::passwords::Tried;
use super::{Access, Key, Principal, Visitor};

/// How long ago somebody without a password may have signed in.
const FRESH: TimeDelta = TimeDelta::minutes(10);

impl Access {
    /// Who asks shows that they are there themselves, and no login of theirs that somebody found.
    pub(super) async fn need_proof(
        &self,
        who: &Principal,
        current_password: Option<String>,
        visitor: &Visitor,
    ) -> Result<(), NaviError> {
        let (store, user) = (self.store.clone(), who.user);
        let stored = self.on_runtime(async move { store.password(user).await });
        if let Some(stored) = stored.await? {
            self.tries.count(&user.to_string(), visitor.address)?;
            let given = current_password.unwrap_or_default();
            return match self.passwords.verify(&given, Some(stored)).await? {
                Tried::Right { .. } => Ok(()),
                Tried::Wrong => Err(NaviError::new(
                    ErrorCode::InvalidField,
                    "current_password is wrong",
                )),
            };
        }
        let Key::Login(hash) = who.key else {
            return Err(by_browser_alone());
        };
        let (store, now) = (self.store.clone(), Utc::now());
        let login = self.on_runtime(async move { store.web_login(SecretHash(hash), now).await });
        let is_fresh = |created_at| now - created_at < FRESH;
        match login.await? {
            Some((_, login)) if is_fresh(login.created_at) => Ok(()),
            _ => Err(NaviError::new(
                ErrorCode::Forbidden,
                "you signed in too long ago; come in again, by what you sign in by or by a link that `navi link` prints, and then do this",
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
pub(super) fn need_all_scopes(who: &Principal) -> Result<(), NaviError> {
    if who.grant.scopes.include(Scopes::ALL) {
        return Ok(());
    }
    Err(NaviError::new(
        ErrorCode::Forbidden,
        "a link that lets somebody in opens more than this token; make it in the page, or by a token that has all scopes",
    ))
}
