//! Who may come in: the one-time link, the browser's login, tokens for scripts.
//!
//! Nothing that opens the door is kept in the clear: links, logins and tokens are stored as
//! SHA-256 of 244 random bits, so a lookup by hash tells an attacker's clock nothing.

mod holds;
mod known;
pub(crate) mod links;
pub(crate) mod random;

use std::path::Path;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::UserId;
use navi_actors::store::{ApiToken, NewToken, SecretHash, Store, StoreError, WebLogin};
use nonzero_ext::nonzero;
use subtle::ConstantTimeEq as _;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;
use uuid::Uuid;

use self::holds::Holds;
pub(crate) use self::holds::{Hold, Key};
use self::known::Known;
pub(crate) use self::known::tell_ended;
use self::links::{Links, Redeemed};
use self::random::{Digest, digest};
use crate::settings::Secret;

/// How long a browser stays logged in after its last visit.
pub(crate) const LOGIN_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// A visit moves the login's end only when it is at least this stale, so that reading a
/// page does not write to the database at every request.
const LOGIN_RENEWAL: TimeDelta = TimeDelta::hours(6);

/// A question to the database takes no longer than this.
const STORE_LIMIT: Duration = Duration::from_secs(10);

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Principal {
    pub(crate) user: UserId,
    pub(crate) method: AuthMethod,
    pub(crate) key: Key,
}

/// How they came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthMethod {
    /// A browser, which sends its cookie whoever made it ask: `Origin` must be checked.
    Cookie {
        /// The login was prolonged: the cookie should be sent again.
        renewed: bool,
    },
    /// A script, which sends its token only of its own will.
    Token,
}

/// Where requests for consent are answered, as far as a token goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    Page,
    /// A program that has the token may pass on what its person answers, too.
    Programs,
}

/// A browser's login, in two halves. Browsers send a cookie to every port of a host: the key
/// stays in the storage of our page, which only its origin reads, and the cookie, which is made
/// of it, does not tell it.
#[derive(Debug)]
pub(crate) struct Login {
    pub(crate) cookie: String,
    pub(crate) key: String,
}

impl Login {
    fn fresh() -> Self {
        let key = random::fresh();
        Self {
            cookie: cookie_of(&key),
            key,
        }
    }
}

fn cookie_of(key: &str) -> String {
    hex::encode(digest(key))
}

/// What came with a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Credentials<'a> {
    pub(crate) bearer: Option<&'a str>,
    pub(crate) cookie: Option<&'a str>,
    pub(crate) key: PageKey<'a>,
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
    user: UserId,
    /// Wrong tries in all: Navi is reached from its own machine alone, so there is no address to
    /// count by.
    faults: DefaultDirectRateLimiter,
    holds: Holds,
    known: Known,
    _tending: AbortOnDropHandle<()>,
}

impl Access {
    pub(crate) fn new(
        store: Store,
        runtime: Handle,
        links: Links,
        api_token: Option<&Secret>,
        user: UserId,
        data_dir: &Path,
    ) -> Self {
        let (holds, known) = (Holds::default(), Known::new(data_dir));
        let tending = holds.clone().tend(store.clone(), known.clone());
        let tending = runtime.spawn(tending);
        Self {
            store,
            runtime,
            links,
            api_token: api_token.map(|token| digest(token.reveal())),
            user,
            faults: RateLimiter::direct(Quota::per_minute(nonzero!(30_u32))),
            holds,
            known,
            _tending: AbortOnDropHandle::new(tending),
        }
    }

    /// Says who asks.
    ///
    /// # Errors
    /// `unauthorized`, or `rate_limited` after too many wrong tries. What is right always
    /// comes in, so nobody can lock the user out.
    pub(crate) async fn authenticate(
        &self,
        credentials: Credentials<'_>,
    ) -> Result<Principal, NaviError> {
        if let Some(bearer) = credentials.bearer {
            return match self.token_owner(bearer).await? {
                Some((user, key)) => Ok(Principal {
                    user,
                    method: AuthMethod::Token,
                    key,
                }),
                None => Err(self.denied("the token is not known; make one with `navi token add`")),
            };
        }
        if let Some(cookie) = credentials.cookie
            && credentials.key.fits(cookie)
            && let Some(principal) = self.login_owner(cookie).await?
        {
            return Ok(principal);
        }
        match credentials.cookie {
            Some(_) => Err(self
                .denied("the login has expired; run `navi link` and open the link that it prints")),
            None => Err(NaviError::new(
                ErrorCode::Unauthorized,
                "log in first: run `navi link` and open the link that it prints, or send a token as `Authorization: Bearer …`",
            )),
        }
    }

    /// Uses up a one-time link. A fresh login where it was good.
    ///
    /// # Errors
    /// The store or the data directory cannot be used, or there were too many wrong tries.
    pub(crate) async fn redeem(&self, secret: &str) -> Result<Result<Login, Redeemed>, NaviError> {
        let links = self.links.clone();
        let secret = secret.to_owned();
        let redeemed = self
            .runtime
            .spawn_blocking(move || links.redeem(&secret))
            .await
            .map_err(|error| internal(&error))?
            .map_err(|error| internal(&error))?;
        if redeemed != Redeemed::Accepted {
            if redeemed == Redeemed::Unknown && self.faults.check().is_err() {
                return Err(too_many());
            }
            return Ok(Err(redeemed));
        }
        let login = Login::fresh();
        let (store, now) = (self.store.clone(), Utc::now());
        let row = WebLogin {
            hash: SecretHash(digest(&login.cookie)),
            user_id: self.user,
            created_at: now,
            expires_at: now + LOGIN_LIFETIME,
        };
        self.on_runtime(async move { store.add_web_login(row).await })
            .await?;
        Ok(Ok(login))
    }

    /// Forgets a browser's login.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn log_out(&self, cookie: &str) -> Result<(), NaviError> {
        let (store, hash) = (self.store.clone(), SecretHash(digest(cookie)));
        let done = self.on_runtime(async move { store.delete_web_login(hash).await });
        let done = done.await.map(drop);
        // It may be done where nobody could say so.
        self.ended();
        done
    }

    /// What a socket holds while it is open: it ends with what opened it.
    pub(crate) fn hold(&self, key: Key) -> Hold {
        self.holds.hold(key)
    }

    /// All tokens of a user, without what opens the door.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn tokens(&self, user: UserId) -> Result<Vec<ApiToken>, NaviError> {
        let store = self.store.clone();
        self.on_runtime(async move { store.list_tokens(user).await })
            .await
    }

    /// Makes a token; its text is told only now.
    ///
    /// # Errors
    /// The name is no good, or the store cannot be used.
    pub(crate) async fn add_token(
        &self,
        user: UserId,
        name: &str,
    ) -> Result<(ApiToken, String), NaviError> {
        let (store, name) = (self.store.clone(), name.to_owned());
        self.on_runtime_or(async move { add_token(&store, user, &name, Consent::Page).await })
            .await
    }

    /// Whether there was such a token to remove.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn remove_token(&self, user: UserId, id: Uuid) -> Result<bool, NaviError> {
        let store = self.store.clone();
        let removed = self.on_runtime(async move { store.delete_token(user, id).await });
        let removed = removed.await;
        self.ended();
        removed
    }

    /// A key opens nothing any more, from now on.
    fn ended(&self) {
        self.known.end();
        self.holds.look();
    }

    /// Whether who came in with this may answer requests for consent through a program: the page's
    /// own login may, and a token that was made so.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn may_consent(&self, key: Key) -> Result<bool, NaviError> {
        let hash = match key {
            Key::Login(_) => return Ok(true),
            Key::Setting => return Ok(false),
            Key::Token(hash) => SecretHash(hash),
        };
        let store = self.store.clone();
        self.on_runtime(async move { store.token_may_consent(hash).await })
            .await
    }

    async fn token_owner(&self, bearer: &str) -> Result<Option<(UserId, Key)>, NaviError> {
        let hash = digest(bearer);
        if let Some(token) = &self.api_token
            && bool::from(token.as_slice().ct_eq(hash.as_slice()))
        {
            return Ok(Some((self.user, Key::Setting)));
        }
        let key = Key::Token(hash);
        let before = match self.known.find(&key) {
            Ok(user) => return Ok(Some((user, key))),
            Err(before) => before,
        };
        let store = self.store.clone();
        let found = self
            .on_runtime(async move {
                let now = Utc::now();
                store.user_by_token_hash(SecretHash(hash), now).await
            })
            .await?;
        Ok(found.map(|user| {
            self.known.keep(before, key, user.id);
            (user.id, key)
        }))
    }

    async fn login_owner(&self, cookie: &str) -> Result<Option<Principal>, NaviError> {
        let (store, hash) = (self.store.clone(), SecretHash(digest(cookie)));
        let key = Key::Login(hash.0);
        let principal = |user, renewed| Principal {
            user,
            method: AuthMethod::Cookie { renewed },
            key,
        };
        let before = match self.known.find(&key) {
            Ok(user) => return Ok(Some(principal(user, false))),
            Err(before) => before,
        };
        let login = self
            .on_runtime(async move {
                let now = Utc::now();
                let Some(user) = store.user_by_web_login(hash, now).await? else {
                    return Ok(None);
                };
                let end = now + LOGIN_LIFETIME;
                let renewed = store
                    .extend_web_login(hash, end, end - LOGIN_RENEWAL)
                    .await?;
                Ok(Some((user.id, renewed)))
            })
            .await?;
        Ok(login.map(|(user, renewed)| {
            self.known.keep(before, key, user);
            principal(user, renewed)
        }))
    }

    fn denied(&self, message: &str) -> NaviError {
        if self.faults.check().is_ok() {
            NaviError::new(ErrorCode::Unauthorized, message)
        } else {
            too_many()
        }
    }

    async fn on_runtime<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, NaviError> {
        self.on_runtime_or(async move { work.await.map_err(|error| store_error(&error)) })
            .await
    }

    async fn on_runtime_or<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, NaviError>> + Send + 'static,
    ) -> Result<T, NaviError> {
        let work = async move { tokio::time::timeout(STORE_LIMIT, work).await };
        // Whoever asked may have gone: then nobody needs the answer.
        AbortOnDropHandle::new(self.runtime.spawn(work))
            .await
            .map_err(|error| internal(&error))?
            .unwrap_or_else(|_| {
                let silent = format!("no answer within {} s", STORE_LIMIT.as_secs());
                Err(store_error(&StoreError::Unavailable(silent)))
            })
    }
}

/// The longest name of a token, in characters.
pub(crate) const MAX_TOKEN_NAME_CHARS: usize = 100;

/// Makes and stores a token: its row, and the text that is told only now.
///
/// # Errors
/// The name is no good, or the store cannot be used.
pub(crate) async fn add_token(
    store: &Store,
    user: UserId,
    name: &str,
    consent: Consent,
) -> Result<(ApiToken, String), NaviError> {
    let chars = name.chars().count();
    let name = name.trim();
    if name.is_empty() || chars > MAX_TOKEN_NAME_CHARS || name.chars().any(char::is_control) {
        return Err(NaviError::new(
            ErrorCode::InvalidField,
            format!(
                "name must have 1 to {MAX_TOKEN_NAME_CHARS} characters, none of them a control character"
            ),
        ));
    }
    let text = format!("navi_{}", random::fresh());
    let new = NewToken {
        user_id: user,
        name: name.to_owned(),
        hash: SecretHash(digest(&text)),
        may_consent: consent == Consent::Programs,
    };
    let token = store
        .add_token(new, Utc::now())
        .await
        .map_err(|error| store_error(&error))?;
    Ok((token, text))
}

fn too_many() -> NaviError {
    NaviError::new(
        ErrorCode::RateLimited,
        "too many wrong logins or tokens; wait a minute",
    )
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
