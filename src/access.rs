//! Who may come in: the one-time link, the browser's login, passwords and invitations where there
//! are accounts, tokens for scripts. What they may do then says `domain::permissions`.
//!
//! Nothing that opens the door is kept in the clear: passwords as argon2id makes them; links,
//! logins, tokens, invitations and recovery codes as SHA-256 of 80 random bits at the least, so that
//! a lookup by hash tells an attacker's clock nothing.

mod holds;
mod known;
pub(crate) mod links;
pub(crate) mod passkeys;
mod passwords;
mod people;
mod powers;
pub(crate) mod proof;
pub(crate) mod random;
mod sign_in;
mod sign_on;
mod tokens;
mod tries;

use std::path::Path;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use navi_actors::domain::permissions::Grant;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::UserId;
use navi_actors::protocol::people::Scopes;
use navi_actors::store::{
    ANSWER_LIMIT, KeyOwner, LOCAL_USER, SecretHash, Store, StoreError, User, WebLogin,
};
use nonzero_ext::nonzero;
use subtle::ConstantTimeEq as _;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;
use url::Url;

use self::holds::Holds;
pub(crate) use self::holds::{Hold, Key};
use self::known::Known;
pub(crate) use self::known::tell_ended;
use self::links::Links;
use self::passkeys::Passkeys;
use self::passwords::Passwords;
pub(crate) use self::passwords::{
    MAX_CHARS as MAX_PASSWORD_CHARS, MIN_CHARS as MIN_PASSWORD_CHARS,
};
pub(crate) use self::people::{Account, AccountChange, MAX_INVITATION_DAYS, role_name};
pub(crate) use self::powers::check_powers;
use self::proof::Shown;
use self::random::{Digest, digest};
use self::sign_in::cookie_of;
pub(crate) use self::sign_in::{Login, Offer, Proof, Visitor, device_id};
pub(crate) use self::sign_on::{
    Answer, Begun, FLOW_LIFETIME, MAX_LOGOUT_TOKEN, ProxyWord, SignOns,
};
pub(crate) use self::tokens::{
    MAX_DAYS as MAX_TOKEN_DAYS, MAX_NAME_CHARS as MAX_TOKEN_NAME_CHARS, Wanted as WantedToken,
    add_token,
};
use self::tries::{Tries, too_many};
use crate::settings::Secret;

/// How long a browser stays logged in after its last visit.
pub(crate) const LOGIN_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// A visit moves the login's end only when it is at least this stale, so that reading a
/// page does not write to the database at every request.
const LOGIN_RENEWAL: TimeDelta = TimeDelta::hours(6);
/// And a login that a provider or a proxy made, whatever its visits: then it is asked again who may
/// come in, and as what.
const SIGN_ON_LIFETIME: TimeDelta = TimeDelta::days(7);
/// How precise it is when a browser was last seen.
const SEEN_PRECISION: TimeDelta = TimeDelta::minutes(10);

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Principal {
    pub(crate) user: UserId,
    /// How far what they came in with goes.
    pub(crate) grant: Grant,
    pub(crate) method: AuthMethod,
    pub(crate) key: Key,
}

impl Principal {
    /// The browser's login that they came in by.
    fn login(&self) -> Option<SecretHash> {
        match self.key {
            Key::Login(hash) => Some(SecretHash(hash)),
            Key::Token(_) | Key::Setting(_) | Key::Proxy(_) => None,
        }
    }
}

/// How they came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthMethod {
    /// A browser, which sends its cookie whoever made it ask: `Origin` must be checked.
    Cookie {
        /// The login was prolonged: the cookie should be sent again.
        renewed: bool,
        /// It is good only beside a proxy's word.
        by_proxy: bool,
    },
    /// A script, which sends its token only of its own will.
    Token,
}

/// What came with a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Credentials<'a> {
    pub(crate) bearer: Option<&'a str>,
    pub(crate) cookie: Option<&'a str>,
    pub(crate) key: PageKey<'a>,
    pub(crate) proxy: ProxyWord<'a>,
}

/// The other half of a browser's login.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum PageKey<'a> {
    #[default]
    Missing,
    Sent(&'a str),
    /// For what a page loads without a script, and nobody finds who is not told where it is.
    NotAsked,
}

impl PageKey<'_> {
    fn fits(self, cookie: &str) -> bool {
        match self {
            Self::Missing => false,
            Self::Sent(key) => cookie_of(key).as_bytes().ct_eq(cookie.as_bytes()).into(),
            Self::NotAsked => true,
        }
    }
}

/// The doorkeeper. Database calls run on the shared runtime: a pooled connection must not
/// hang on one HTTP worker.
#[derive(Debug)]
pub(crate) struct Access {
    store: Store,
    runtime: Handle,
    links: Links,
    api_token: Option<Digest>,
    /// Whether people sign in.
    accounts: bool,
    /// Whose machine this is.
    user: UserId,
    /// Wrong keys in all: they are too long for anybody to find one by trying.
    faults: DefaultDirectRateLimiter,
    /// To sign in by what a person knows.
    tries: Tries,
    shown: Shown,
    passwords: Passwords,
    passkeys: Passkeys,
    sign_on: SignOns,
    holds: Holds,
    known: Known,
    _tending: AbortOnDropHandle<()>,
}

impl Access {
    pub(crate) fn new(
        store: Store,
        runtime: Handle,
        api_token: Option<&Secret>,
        accounts: bool,
        data_dir: &Path,
    ) -> Self {
        let (holds, known) = (Holds::default(), Known::new(data_dir));
        let tending = holds.clone().tend(store.clone(), known.clone());
        let tending = runtime.spawn(tending);
        Self {
            passwords: Passwords::new(runtime.clone()),
            passkeys: Passkeys::default(),
            store,
            runtime,
            links: Links::new(data_dir),
            api_token: api_token.map(|token| digest(token.reveal())),
            accounts,
            user: LOCAL_USER,
            tries: Tries::default(),
            shown: Shown::default(),
            sign_on: SignOns::default(),
            faults: RateLimiter::direct(Quota::per_minute(nonzero!(30_u32))),
            holds,
            known,
            _tending: AbortOnDropHandle::new(tending),
        }
    }

    /// The same, with passkeys for the page at this address; with none, where browsers offer none.
    #[must_use]
    pub(crate) fn with_passkeys_at(self, page: Option<Url>) -> Self {
        Self {
            passkeys: Passkeys::at(page),
            ..self
        }
    }

    /// The same, with others who say who somebody is.
    pub(crate) fn with_sign_on(self, sign_on: SignOns) -> Self {
        Self { sign_on, ..self }
    }

    /// Says who asks.
    ///
    /// # Errors
    /// `unauthorized`, or `rate_limited` after too many wrong tries. What is right always
    /// comes in, so nobody can lock the user out.
    pub(crate) async fn authenticate(
        &self,
        credentials: Credentials<'_>,
        visitor: &Visitor,
    ) -> Result<Principal, NaviError> {
        if let Some(bearer) = credentials.bearer {
            return match self.by_token(bearer).await? {
                Some(principal) => Ok(principal),
                None => {
                    Err(self.denied("the token is not known; make one with `navi token add NAME`"))
                }
            };
        }
        if let Some(cookie) = credentials.cookie
            && credentials.key.fits(cookie)
            && let Some(principal) = self.by_cookie(cookie, visitor).await?
            && self.is_theirs(&principal, credentials.proxy).await?
        {
            return Ok(principal);
        }
        match credentials.cookie {
            Some(_) if self.accounts => Err(self.denied("the login has expired; sign in again")),
            Some(_) => Err(self
                .denied("the login has expired; run `navi link` and open the link that it prints")),
            None if self.accounts => Err(NaviError::new(
                ErrorCode::Unauthorized,
                "sign in first, or send a token as `Authorization: Bearer …`",
            )),
            None => Err(NaviError::new(
                ErrorCode::Unauthorized,
                "log in first: run `navi link` and open the link that it prints, or send a token as `Authorization: Bearer …`",
            )),
        }
    }

    /// Whether people sign in here; otherwise all who come in are the one user of this machine.
    pub(crate) const fn has_accounts(&self) -> bool {
        self.accounts
    }

    /// What a socket holds while it is open: it ends with what opened it.
    pub(crate) fn hold(&self, who: &Principal) -> Hold {
        let owner = KeyOwner {
            user: who.user,
            role: who.grant.role,
            scopes: who.grant.scopes,
            by_proxy: matches!(who.method, AuthMethod::Cookie { by_proxy: true, .. }),
        };
        self.holds.hold(who.key, owner)
    }

    /// A key opens nothing any more, or something else, from now on.
    fn ended(&self) {
        self.known.end();
        self.holds.look();
    }

    async fn by_token(&self, bearer: &str) -> Result<Option<Principal>, NaviError> {
        let hash = digest(bearer);
        let is_setting = self
            .api_token
            .is_some_and(|token| token.as_slice().ct_eq(hash.as_slice()).into());
        let key = if is_setting {
            Key::Setting(self.user)
        } else {
            Key::Token(hash)
        };
        let before = match self.known.find(&key) {
            Ok(owner) => return Ok(Some(principal(owner, AuthMethod::Token, key))),
            Err(before) => before,
        };
        let found = self.on_runtime(async move |store| match key {
            Key::Setting(user) => Ok(store.user(user).await?.as_ref().map(owner_by_setting)),
            _ => store.token_owner(SecretHash(hash), Utc::now()).await,
        });
        Ok(found.await?.map(|owner| {
            self.known.keep(before, key, owner);
            principal(owner, AuthMethod::Token, key)
        }))
    }

    async fn by_cookie(
        &self,
        cookie: &str,
        visitor: &Visitor,
    ) -> Result<Option<Principal>, NaviError> {
        let hash = SecretHash(digest(cookie));
        let key = Key::Login(hash.0);
        let method = |renewed, owner: &KeyOwner| AuthMethod::Cookie {
            renewed,
            by_proxy: owner.by_proxy,
        };
        let before = match self.known.find(&key) {
            Ok(owner) => return Ok(Some(principal(owner, method(false, &owner), key))),
            Err(before) => before,
        };
        let visitor = visitor.clone();
        let login = self
            .on_runtime(async move |store| {
                let now = Utc::now();
                let Some((owner, login)) = store.web_login(hash, now).await? else {
                    return Ok(None);
                };
                let renewed = login.sign_on.is_none()
                    && login.expires_at < now + LOGIN_LIFETIME - LOGIN_RENEWAL;
                let seen = login.last_used_at;
                if renewed || seen.is_none_or(|seen| now - seen > SEEN_PRECISION) {
                    let visit = WebLogin {
                        expires_at: match login.sign_on {
                            Some(_) => login.expires_at,
                            None => now + LOGIN_LIFETIME,
                        },
                        agent: visitor.agent.or(login.agent),
                        address: visitor.address.map(|address| address.to_string()),
                        last_used_at: Some(now),
                        ..login
                    };
                    store.note_visit(&visit).await?;
                }
                Ok(Some((owner, renewed)))
            })
            .await?;
        Ok(login.map(|(owner, renewed)| {
            self.known.keep(before, key, owner);
            principal(owner, method(renewed, &owner), key)
        }))
    }

    fn denied(&self, message: &str) -> NaviError {
        match self.count_fault() {
            Ok(()) => NaviError::new(ErrorCode::Unauthorized, message),
            Err(too_many) => too_many,
        }
    }

    /// Counts a wrong login, token or link.
    fn count_fault(&self) -> Result<(), NaviError> {
        self.faults.check().map_err(|until| {
            let wait = until.wait_time_from(DefaultClock::default().now());
            too_many("wrong logins or tokens", wait)
        })
    }

    /// Begins at once, so that who waits for it holds none of it.
    fn on_runtime<T, F>(
        &self,
        ask: impl FnOnce(Store) -> F,
    ) -> impl Future<Output = Result<T, NaviError>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let work = ask(self.store.clone());
        self.on_runtime_or(async move { work.await.map_err(|error| store_error(&error)) })
    }

    fn on_runtime_or<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, NaviError>> + Send + 'static,
    ) -> impl Future<Output = Result<T, NaviError>> {
        let work = async move { tokio::time::timeout(ANSWER_LIMIT, work).await };
        // Whoever asked may have gone: then nobody needs the answer.
        let done = AbortOnDropHandle::new(self.runtime.spawn(work));
        async move {
            let done = done.await.map_err(|error| internal(&error))?;
            done.unwrap_or_else(|_| {
                let silent = format!("no answer within {} s", ANSWER_LIMIT.as_secs());
                Err(store_error(&StoreError::Unavailable(silent)))
            })
        }
    }
}

/// To whom `NAVI_API_TOKEN` opens the door.
fn owner_by_setting(user: &User) -> KeyOwner {
    KeyOwner {
        user: user.id,
        role: user.role,
        scopes: Scopes::ALL,
        by_proxy: false,
    }
}

fn principal(owner: KeyOwner, method: AuthMethod, key: Key) -> Principal {
    Principal {
        user: owner.user,
        grant: Grant {
            role: owner.role,
            scopes: owner.scopes,
        },
        method,
        key,
    }
}

fn store_error(error: &StoreError) -> NaviError {
    warn!(%error, "the database could not answer who asks");
    NaviError::new(
        ErrorCode::StoreUnavailable,
        "the database is not available; `navi doctor` says why",
    )
}

fn internal(error: &(dyn std::error::Error + 'static)) -> NaviError {
    warn!(error, "a login failed for a reason of our own");
    NaviError::new(
        ErrorCode::Internal,
        "something failed here; the log says what",
    )
}
