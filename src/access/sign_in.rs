//! How a browser comes in, by a link, a password, a recovery code or an invitation, and how it
//! leaves.

use std::net::IpAddr;

use chrono::{DateTime, TimeDelta, Utc};
use navi_actors::domain::names;
use navi_actors::protocol::error::{ErrorCode, NaviError, invalid};
use navi_actors::protocol::ids::{SessionId, UserId};
use navi_actors::protocol::people::{Recorded, UserRole};
use navi_actors::store::{
    Accepted, Credentials, IdentityKey, Invitation, LinkRow, SecretHash, SignOn, User, WebLogin,
};
use tracing::warn;
use uuid::Uuid;

use super::links::Redeemed;
use super::passwords::Tried;
use super::random::digest;
use super::{Access, LOGIN_LIFETIME, Principal, SIGN_ON_LIFETIME, internal, random};

/// What is kept of what a browser says that it is.
const MAX_AGENT_CHARS: usize = 200;

/// A browser's login, in two halves. Browsers send a cookie to every port of a host: the key
/// stays in the storage of our page, which only its origin reads, and the cookie, which is made
/// of it, does not tell it.
#[derive(Debug)]
pub(crate) struct Login {
    pub(crate) cookie: String,
    pub(crate) key: String,
}

impl Login {
    pub(super) fn fresh() -> Self {
        let key = random::fresh();
        Self {
            cookie: cookie_of(&key),
            key,
        }
    }
}

pub(super) fn cookie_of(key: &str) -> String {
    hex::encode(digest(key))
}

/// From where somebody asks, and by what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visitor {
    pub(crate) address: Option<IpAddr>,
    pub(crate) agent: Option<String>,
}

impl Visitor {
    pub(crate) fn new(address: Option<IpAddr>, agent: Option<&str>) -> Self {
        Self {
            address,
            agent: agent.map(|text| text.chars().take(MAX_AGENT_CHARS).collect()),
        }
    }
}

/// By what somebody shows that an account is theirs.
#[derive(Clone, Debug)]
pub(crate) enum Proof {
    Password(String),
    RecoveryCode(String),
}

/// How somebody came in, as the record says it.
#[derive(Clone, Debug)]
pub(super) struct Way {
    about: String,
    /// By whose word, where it was another's.
    pub(super) sign_on: Option<SignOn>,
}

impl Way {
    pub(super) fn plain(about: &str) -> Self {
        Self {
            about: about.to_owned(),
            sign_on: None,
        }
    }

    pub(super) fn by(about: &str, key: IdentityKey) -> Self {
        let sign_on = SignOn {
            key,
            sid: None,
            id_token: None,
        };
        Self {
            about: about.to_owned(),
            sign_on: Some(sign_on),
        }
    }
}

impl Access {
    /// Uses up a one-time link, if it lets somebody in. A fresh login where it was good.
    ///
    /// # Errors
    /// The store or the data directory cannot be used, or there were too many wrong tries.
    pub(crate) async fn redeem(
        &self,
        secret: &str,
        visitor: Visitor,
    ) -> Result<Result<Login, Redeemed>, NaviError> {
        let (links, wanted) = (self.links.clone(), secret.to_owned());
        let redeemed = self
            .runtime
            .spawn_blocking(move || links.redeem(&wanted))
            .await
            .map_err(|error| internal(&error))?
            .map_err(|error| internal(&error))?;
        if redeemed != Redeemed::Accepted {
            if redeemed == Redeemed::Unknown {
                self.count_fault()?;
            }
            return Ok(Err(redeemed));
        }
        let login = self.let_own_user_in(visitor).await;
        if login.is_err() {
            let (links, unused) = (self.links.clone(), secret.to_owned());
            let given_back = self
                .runtime
                .spawn_blocking(move || links.give_back(&unused));
            if let Ok(Err(error)) = given_back.await {
                warn!(%error, "a link that let nobody in cannot be made good again");
            }
        }
        login.map(Ok)
    }

    /// Lets in whose machine this is.
    async fn let_own_user_in(&self, visitor: Visitor) -> Result<Login, NaviError> {
        let user = self.user;
        let Some(user) = self
            .on_runtime(async move |store| store.user(user).await)
            .await?
        else {
            return Err(NaviError::new(
                ErrorCode::Unauthorized,
                "the account of this machine's own user was removed; `navi user list` shows who there is",
            ));
        };
        let way = Way::plain("one-time link");
        self.let_in(&user, way, visitor).await
    }

    /// Lets a person in by their name and what only they have.
    ///
    /// # Errors
    /// `unauthorized`, the same whether there is such an account; `rate_limited`.
    pub(crate) async fn sign_in(
        &self,
        name: &str,
        proof: Proof,
        visitor: Visitor,
    ) -> Result<Login, NaviError> {
        self.need_accounts()?;
        // Nobody's is longer than the longest.
        let name: String = name.chars().take(names::MAX_CHARS + 1).collect();
        let key = names::key(&name);
        self.tries.count(&key, visitor.address)?;
        let found = self.on_runtime(async move |store| store.user_by_name(&key).await);
        let (user, stored) = found.await?.unzip();
        let way = Way::plain(match proof {
            Proof::Password(_) => "password",
            Proof::RecoveryCode(_) => "recovery code",
        });
        let is_right = match proof {
            Proof::Password(password) => {
                let tried = self.passwords.verify(&password, stored.flatten()).await?;
                if let (Some(user), Tried::Right { outdated: true }) = (&user, tried) {
                    self.store_password_anew(user.id, &password).await;
                }
                tried != Tried::Wrong
            }
            Proof::RecoveryCode(code) => {
                // The database is asked as much where there is no such account.
                let of = user.as_ref().map_or_else(UserId::new, |user| user.id);
                self.use_recovery_code(of, &code).await?
            }
        };
        match user {
            Some(user) if is_right => self.let_in(&user, way, visitor).await,
            user => {
                let user = user.map(|user| user.id);
                self.note_by_name(Recorded::SignInFailed, user, name, visitor)
                    .await;
                Err(NaviError::new(
                    ErrorCode::Unauthorized,
                    "name or password are wrong",
                ))
            }
        }
    }

    /// What an invitation is for, and whose it is.
    ///
    /// # Errors
    /// `invitation_not_found`: it was used, taken back, has expired, or never was.
    pub(crate) async fn invitation(
        &self,
        secret: &str,
        visitor: &Visitor,
    ) -> Result<(Invitation, Option<String>), NaviError> {
        self.need_accounts()?;
        self.tries.count_address(visitor.address)?;
        let hash = SecretHash(digest(secret));
        let found = self.on_runtime(async move |store| {
            let Some(invitation) = store.invitation(hash, Utc::now()).await? else {
                return Ok(None);
            };
            let user = match invitation.user_id {
                Some(user) => store.user(user).await?,
                None => None,
            };
            Ok(Some((invitation, user.map(|user| user.name))))
        });
        found.await?.ok_or_else(no_invitation)
    }

    /// The secret of a new link to a conversation, and what is kept of it.
    pub(crate) fn new_link(&self) -> (String, SecretHash) {
        let secret = random::fresh();
        let hash = SecretHash(digest(&secret));
        (secret, hash)
    }

    /// The link to a conversation with this secret. Wrong ones slow down whoever tries them; what
    /// is right always opens it.
    ///
    /// # Errors
    /// `not_found`: it was ended, has expired, or never was.
    pub(crate) async fn link(
        &self,
        secret: &str,
        visitor: &Visitor,
    ) -> Result<(LinkRow, SessionId), NaviError> {
        self.need_accounts()?;
        let hash = SecretHash(digest(secret));
        let found = self.on_runtime(async move |store| store.session_link(hash, Utc::now()).await);
        if let Some(found) = found.await? {
            return Ok(found);
        }
        self.tries.count_address(visitor.address)?;
        Err(NaviError::new(
            ErrorCode::NotFound,
            "this link opens nothing: it has ended, or was never made",
        ))
    }

    /// Uses an invitation up: an account with this name and password, and a login of it.
    ///
    /// # Errors
    /// Name or password are no good, the name is another's, or the invitation is none.
    pub(crate) async fn accept(
        &self,
        secret: &str,
        name: &str,
        password: &str,
        visitor: Visitor,
    ) -> Result<Login, NaviError> {
        // What is no invitation costs no password.
        self.invitation(secret, &visitor).await?;
        let new = self.credentials(name, password).await?;
        let hash = SecretHash(digest(secret));
        let accepted = self.on_runtime(async move |store| {
            let now = Utc::now();
            store.accept_invitation(hash, new, now).await
        });
        let (user, what) = match accepted.await? {
            Accepted::Joined(user) => (user, Recorded::Joined),
            Accepted::Renewed(user) => (user, Recorded::PasswordChanged),
            Accepted::NameTaken => return Err(name_taken()),
            Accepted::Unknown => return Err(no_invitation()),
        };
        self.ended();
        self.note_by_name(what, Some(user.id), user.name.clone(), visitor.clone())
            .await;
        self.let_in(&user, Way::plain("invitation"), visitor).await
    }

    /// Forgets a browser's login. Tells by whose word it was made, where it was another's.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn log_out(
        &self,
        who: &Principal,
        cookie: &str,
        visitor: Visitor,
    ) -> Result<Option<SignOn>, NaviError> {
        let hash = SecretHash(digest(cookie));
        let done = self.on_runtime(async move |store| {
            let login = store.web_login(hash, Utc::now()).await?;
            store.delete_web_login(hash).await?;
            Ok(login.and_then(|(_, login)| login.sign_on))
        });
        let done = done.await;
        // It may be done where nobody could say so.
        self.ended();
        self.note(Recorded::SignedOut, Some(who.user), None, visitor)
            .await;
        done
    }

    /// A person's browsers.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn devices(&self, user: UserId) -> Result<Vec<WebLogin>, NaviError> {
        self.on_runtime(async move |store| store.web_logins(user, Utc::now()).await)
            .await
    }

    /// Signs one of a person's browsers out. Tells whether there was such a one.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn sign_out_device(
        &self,
        user: UserId,
        id: Uuid,
        visitor: Visitor,
    ) -> Result<bool, NaviError> {
        let devices = self.devices(user).await?;
        let Some(device) = devices.into_iter().find(|it| device_id(it.hash) == id) else {
            return Ok(false);
        };
        self.on_runtime(async move |store| store.delete_web_login(device.hash).await)
            .await?;
        self.ended();
        self.note(Recorded::DeviceSignedOut, Some(user), device.agent, visitor)
            .await;
        Ok(true)
    }

    /// Signs all of a person's browsers out but the one that asks.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn sign_out_others(
        &self,
        who: &Principal,
        visitor: Visitor,
    ) -> Result<u64, NaviError> {
        let (user, but) = (who.user, who.login());
        let ended = self.on_runtime(async move |store| store.delete_web_logins(user, but).await);
        let ended = ended.await;
        self.ended();
        let ended = ended?;
        let about = Some(format!("{ended} others"));
        self.note(Recorded::DeviceSignedOut, Some(user), about, visitor)
            .await;
        Ok(ended)
    }

    /// A name and a password as they are kept.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) async fn credentials(
        &self,
        name: &str,
        password: &str,
    ) -> Result<Credentials, NaviError> {
        let name = names::checked(name).map_err(invalid)?;
        Ok(Credentials {
            name_key: names::key(&name),
            password: self.passwords.hash(password).await?,
            name,
        })
    }

    pub(super) fn need_accounts(&self) -> Result<(), NaviError> {
        if self.accounts {
            return Ok(());
        }
        Err(NaviError::new(
            ErrorCode::NotFound,
            "there are no accounts here; NAVI_ACCOUNTS=on makes some",
        ))
    }

    pub(super) async fn let_in(
        &self,
        user: &User,
        way: Way,
        visitor: Visitor,
    ) -> Result<Login, NaviError> {
        let login = Login::fresh();
        let now = Utc::now();
        let expires_at = match way.sign_on {
            Some(_) => now + SIGN_ON_LIFETIME,
            None => now + LOGIN_LIFETIME,
        };
        let row = WebLogin {
            hash: SecretHash(digest(&login.cookie)),
            user_id: user.id,
            created_at: now,
            expires_at,
            agent: visitor.agent.clone(),
            address: visitor.address.map(|address| address.to_string()),
            last_used_at: Some(now),
            sign_on: way.sign_on,
        };
        self.on_runtime(async move |store| store.add_web_login(row).await)
            .await?;
        self.note_signed_in(user, way.about, visitor).await;
        Ok(login)
    }

    async fn store_password_anew(&self, user: UserId, password: &str) {
        let Ok(hash) = self.passwords.hash(password).await else {
            return;
        };
        let stored = self.on_runtime(async move |store| store.set_password(user, hash).await);
        // It is right as it is stored, too.
        let _ = stored.await;
    }

    async fn use_recovery_code(&self, user: UserId, code: &str) -> Result<bool, NaviError> {
        let hash = recovery_hash(code);
        self.on_runtime(async move |store| store.use_recovery_code(user, hash).await)
            .await
    }
}

/// What names a browser to its person: half of the hash of its cookie, which opens nothing.
pub(crate) fn device_id(SecretHash(hash): SecretHash) -> Uuid {
    let mut half = [0; 16];
    half.copy_from_slice(&hash[..16]);
    Uuid::from_bytes(half)
}

/// However somebody typed it.
pub(super) fn recovery_hash(code: &str) -> SecretHash {
    let letters = code.chars().filter(char::is_ascii_alphanumeric);
    let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    SecretHash(digest(&letters))
}

/// An invitation that is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub(crate) role: UserRole,
    /// Whose password is to be chosen anew.
    pub(crate) user: Option<UserId>,
    pub(crate) days: u32,
}

impl Offer {
    /// The invitation, and the secret that stands in its link.
    pub(crate) fn made(self, by: Option<UserId>, now: DateTime<Utc>) -> (Invitation, String) {
        let invitation = Invitation {
            made_by: by,
            id: Uuid::now_v7(),
            role: self.role,
            user_id: self.user,
            created_at: now,
            expires_at: now + TimeDelta::days(self.days.into()),
        };
        (invitation, random::fresh())
    }
}

pub(super) fn name_taken() -> NaviError {
    NaviError::new(
        ErrorCode::NameTaken,
        "somebody has this name, or one that looks like it",
    )
}

pub(super) fn no_invitation() -> NaviError {
    NaviError::new(
        ErrorCode::InvitationNotFound,
        "this invitation is not known: each works once, and for a while; ask for another",
    )
}
