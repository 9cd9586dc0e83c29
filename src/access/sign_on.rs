//! Sign-on: who comes in because a provider of OpenID Connect, or a proxy in front, says who they
//! are. The key of a person there is the issuer with its name for them, and nothing else.

mod claims;
mod flows;
mod http;
mod logout;
mod provider;
mod proxy;

use std::time::Duration;

use chrono::Utc;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::UserId;
use navi_actors::protocol::people::{Recorded, UserRole};
use navi_actors::store::{Changed, Identity, IdentityKey, Linked, NewIdentity, SignOn, User};
use tracing::warn;
use uuid::Uuid;

use self::claims::Said;
pub(crate) use self::flows::LIFETIME as FLOW_LIFETIME;
use self::flows::{Flows, Purpose, Secrets};
pub(crate) use self::logout::MAX_TOKEN as MAX_LOGOUT_TOKEN;
use self::logout::Used;
use self::provider::{Fault, Provider, Returned, Sent, Told};
pub(crate) use self::proxy::ProxyWord;
use super::people::{no_person, role_name};
use super::sign_in::{Login, Way};
use super::{Access, AuthMethod, Key, Principal, Visitor, internal};
use crate::settings::SignOnSettings;

/// What is asked of a provider takes no longer, all together.
const PROVIDER_LIMIT: Duration = Duration::from_secs(30);
/// Signing out here waits no longer for where to sign out there.
const WAY_OUT_LIMIT: Duration = Duration::from_secs(3);
/// What the record has of an error that a provider names.
const MAX_ERROR: usize = 64;

/// Who else says who somebody is.
#[derive(Debug, Default)]
pub(crate) struct SignOns {
    settings: SignOnSettings,
    provider: Option<Provider>,
    flows: Flows,
    used: Used,
}

/// A browser that is on its way to the provider.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) location: String,
    /// Both halves of what shows that it is the browser that began.
    pub(crate) browser: Login,
}

/// What came back with a browser, and by what it shows that it is the one.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) cookie: String,
    pub(crate) key: String,
    pub(crate) state: String,
    pub(crate) code: Option<String>,
    pub(crate) iss: Option<String>,
    /// Why the provider lets nobody in.
    pub(crate) error: Option<String>,
}

impl SignOns {
    /// # Errors
    /// No HTTP client can be made.
    pub(crate) fn new(settings: SignOnSettings) -> anyhow::Result<Self> {
        let provider = settings.provider.clone();
        Ok(Self {
            provider: provider.map(Provider::new).transpose()?,
            settings,
            ..Self::default()
        })
    }
}

impl Access {
    /// What the page calls the provider, where there is one.
    pub(crate) fn provider_name(&self) -> Option<&str> {
        let provider = self.sign_on.provider.as_ref();
        provider.map(|it| it.settings().name.as_str())
    }

    /// Sends a browser to the provider, to come back as whoever it is.
    ///
    /// # Errors
    /// There is no provider, it does not answer, or too many sign-ins are under way.
    pub(crate) async fn begin_sign_on(&self, visitor: &Visitor) -> Result<Begun, NaviError> {
        self.begin(Purpose::SignIn, visitor).await
    }

    /// The same, to be what somebody is who is signed in.
    ///
    /// # Errors
    /// As [`Access::begin_sign_on`]; a token links nothing, as it would let in whom it does not.
    pub(crate) async fn begin_link(
        &self,
        who: &Principal,
        visitor: &Visitor,
    ) -> Result<Begun, NaviError> {
        self.begin(Purpose::Link(self.links(who)?), visitor).await
    }

    /// Lets in who came back.
    ///
    /// # Errors
    /// `sign_on_failed`: the answer is not to be believed; `sign_on_refused`: they may not come in;
    /// `sign_on_unavailable`: the provider does not answer.
    pub(crate) async fn finish_sign_on(
        &self,
        answer: Answer,
        visitor: Visitor,
    ) -> Result<Login, NaviError> {
        let (key, told, said) = self.told(answer, Purpose::SignIn, &visitor).await?;
        let name = self.need_provider()?.settings().name.clone();
        let domains = self.need_provider()?.settings().domains.clone();
        let role = match said.admitted(&self.sign_on.settings, &domains) {
            Ok(role) => role,
            Err(why) => return Err(self.refused(&said.name, &name, why, visitor).await),
        };
        let user = self
            .person_of(key.clone(), &said, role, &name, &visitor)
            .await?;
        let mut way = Way::by(&name, key.clone());
        way.sign_on = Some(SignOn {
            key,
            sid: told.sid,
            id_token: told.id_token,
        });
        self.let_in(&user, way, visitor).await
    }

    /// Makes who came back somebody who is signed in.
    ///
    /// # Errors
    /// As [`Access::finish_sign_on`]; `identity_taken`: it is another's.
    pub(crate) async fn finish_link(
        &self,
        who: &Principal,
        answer: Answer,
        visitor: Visitor,
    ) -> Result<Identity, NaviError> {
        let user = self.links(who)?;
        let (key, _, said) = self.told(answer, Purpose::Link(user), &visitor).await?;
        let new = NewIdentity {
            key,
            address: said.address,
        };
        let store = self.store.clone();
        let linked =
            self.on_runtime(async move { store.link_identity(user, new, Utc::now()).await });
        let taken = |why: &str| Err(NaviError::new(ErrorCode::IdentityTaken, why));
        match linked.await? {
            Linked::Done(identity) => {
                let about = self.provider_name().map(str::to_owned);
                self.note(Recorded::IdentityLinked, Some(user), about, visitor)
                    .await;
                Ok(identity)
            }
            Linked::Taken => taken("somebody else here signs in by this account"),
            Linked::TooMany => taken("no more accounts can be linked; unlink one first"),
        }
    }

    /// By what else a person signs in.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn sign_ons(&self, user: UserId) -> Result<Vec<Identity>, NaviError> {
        let store = self.store.clone();
        self.on_runtime(async move { store.identities(user).await })
            .await
    }

    /// Takes one of them away, and ends the logins that it made, but for the one that asks. Tells
    /// whether there was one.
    ///
    /// # Errors
    /// They would have no way in any more, or the store cannot be used.
    pub(crate) async fn unlink(
        &self,
        who: &Principal,
        id: Uuid,
        visitor: Visitor,
    ) -> Result<bool, NaviError> {
        self.need_accounts()?;
        let account = self.account(who.user).await?;
        if !account.has_password && account.sign_ons < 2 {
            return Err(NaviError::new(
                ErrorCode::Forbidden,
                "choose a password first; without it there would be no way back in",
            ));
        }
        let but = match who.key {
            Key::Login(hash) => Some(navi_actors::store::SecretHash(hash)),
            Key::Token(_) | Key::Setting | Key::Proxy(_) => None,
        };
        let (store, user) = (self.store.clone(), who.user);
        let unlinked = self.on_runtime(async move { store.unlink_identity(user, id, but).await });
        let unlinked = unlinked.await;
        self.ended();
        let Some(identity) = unlinked? else {
            return Ok(false);
        };
        let about = Some(identity.key.iss);
        self.note(Recorded::IdentityUnlinked, Some(user), about, visitor)
            .await;
        Ok(true)
    }

    /// Ends the logins of whom the provider signed out.
    ///
    /// # Errors
    /// `sign_on_failed`: the token is not to be believed, or was used.
    pub(crate) async fn signed_out_there(
        &self,
        token: String,
        visitor: Visitor,
    ) -> Result<(), NaviError> {
        let provider = self.need_provider()?.clone();
        let iss = provider.settings().issuer.clone();
        let name = provider.settings().name.clone();
        let ended = self.at_provider(async move { provider.ended(&token).await });
        let ended = ended.await?.map_err(|fault| no_answer(&name, &fault))?;
        if !self.sign_on.used.first(&ended, Utc::now()) {
            return Err(untrue(&name, "this logout token was used"));
        }
        let (store, sid) = (self.store.clone(), ended.sid);
        let sub = ended.sub.clone();
        let done = self.on_runtime(async move {
            let count = store.end_sign_on(&iss, sub.as_deref(), sid.as_deref());
            let count = count.await?;
            let found = match sub {
                Some(sub) => store.identity(&IdentityKey { iss, sub }).await?,
                None => None,
            };
            Ok((count, found.map(|(user, _)| user.id)))
        });
        let done = done.await;
        self.ended();
        let (count, user) = done?;
        if count > 0 {
            self.note(Recorded::SignedOutByProvider, user, Some(name), visitor)
                .await;
        }
        Ok(())
    }

    /// Where whoever signed in by the provider signs out there. A provider that does not answer
    /// soon keeps nobody here.
    pub(crate) async fn way_out(&self, login: Option<SignOn>) -> Option<String> {
        let provider = self.sign_on.provider.clone()?;
        let login = login.filter(|it| it.key.iss == provider.settings().issuer)?;
        let asked = self.at_provider(async move {
            let out = provider.way_out(login.id_token.as_deref());
            tokio::time::timeout(WAY_OUT_LIMIT, out)
                .await
                .ok()
                .flatten()
        });
        asked.await.ok().flatten().map(String::from)
    }

    async fn begin(&self, purpose: Purpose, visitor: &Visitor) -> Result<Begun, NaviError> {
        self.need_accounts()?;
        let provider = self.need_provider()?.clone();
        self.tries.count_address(visitor.address)?;
        let name = provider.settings().name.clone();
        let sent = self
            .at_provider(async move { provider.send().await })
            .await?;
        let Sent {
            location,
            state,
            secrets,
        } = sent.map_err(|fault| no_answer(&name, &fault))?;
        let browser = Login::fresh();
        let flows = &self.sign_on.flows;
        flows.begin(&state, &browser, purpose, secrets)?;
        Ok(Begun {
            location: location.into(),
            browser,
        })
    }

    /// What the provider says of who came back.
    async fn told(
        &self,
        answer: Answer,
        purpose: Purpose,
        visitor: &Visitor,
    ) -> Result<(IdentityKey, Told, Said), NaviError> {
        self.need_accounts()?;
        let provider = self.need_provider()?;
        self.tries.count_address(visitor.address)?;
        let name = provider.settings().name.clone();
        let halves = (answer.cookie.as_str(), answer.key.as_str());
        let Some(secrets) = self.sign_on.flows.take(&answer.state, halves, purpose) else {
            let why = "it was not begun in this browser, or too long ago, or was ended before";
            return Err(self.failed(&name, untrue(&name, why), visitor).await);
        };
        let told = match answer.code.filter(|_| answer.error.is_none()) {
            Some(code) => {
                let returned = Returned {
                    code,
                    iss: answer.iss,
                };
                self.receive(provider, returned, secrets).await
            }
            None => Err(NaviError::new(
                ErrorCode::SignOnRefused,
                format!("{name} lets nobody in: {}", plain(answer.error)),
            )),
        };
        let told = match told {
            Ok(told) => told,
            Err(error) => return Err(self.failed(&name, error, visitor).await),
        };
        let said = Said::by_provider(&told.claims, provider.settings());
        let key = IdentityKey {
            iss: provider.settings().issuer.clone(),
            sub: told.sub.clone(),
        };
        Ok((key, told, said))
    }

    async fn receive(
        &self,
        provider: &Provider,
        returned: Returned,
        secrets: Secrets,
    ) -> Result<Told, NaviError> {
        let provider = provider.clone();
        let name = provider.settings().name.clone();
        let told = self.at_provider(async move { provider.receive(returned, secrets).await });
        told.await?.map_err(|fault| no_answer(&name, &fault))
    }

    /// Whose account this is, as what their groups make them: known, linked by an address where
    /// that was switched on, or new where that is let in.
    async fn person_of(
        &self,
        key: IdentityKey,
        said: &Said,
        role: Option<UserRole>,
        way: &str,
        visitor: &Visitor,
    ) -> Result<User, NaviError> {
        let (store, wanted) = (self.store.clone(), key.clone());
        let known = self.on_runtime(async move { store.identity(&wanted).await });
        let user = match known.await? {
            Some((user, identity)) => {
                let (store, address) = (self.store.clone(), said.address.clone());
                let noted = self.on_runtime(async move {
                    store.note_identity(identity.id, address, Utc::now()).await
                });
                noted.await?;
                user
            }
            None => self.unknown(key, said, role, way, visitor).await?,
        };
        match role {
            Some(role) if role != user.role => self.made(user, role, way, visitor).await,
            _ => Ok(user),
        }
    }

    async fn unknown(
        &self,
        key: IdentityKey,
        said: &Said,
        role: Option<UserRole>,
        way: &str,
        visitor: &Visitor,
    ) -> Result<User, NaviError> {
        let new = NewIdentity {
            address: said.address.clone(),
            key,
        };
        if let Some(user) = self.by_address(&new).await? {
            let (store, id) = (self.store.clone(), user.id);
            let linked =
                self.on_runtime(async move { store.link_identity(id, new, Utc::now()).await });
            if matches!(linked.await?, Linked::Done(_)) {
                let about = Some(format!("{way}, by a verified address"));
                self.note(
                    Recorded::IdentityLinked,
                    Some(user.id),
                    about,
                    visitor.clone(),
                )
                .await;
                return Ok(user);
            }
        } else if let Some(usual) = self.sign_on.settings.join {
            let (store, name) = (self.store.clone(), said.name.clone());
            let role = role.unwrap_or(usual);
            let joined = self.on_runtime(async move {
                store.join_by_identity(&name, role, new, Utc::now()).await
            });
            let user = joined.await?;
            self.note(
                Recorded::Joined,
                Some(user.id),
                Some(way.to_owned()),
                visitor.clone(),
            )
            .await;
            return Ok(user);
        }
        let why = "nobody here is known by this account";
        Err(self.refused(&said.name, way, why, visitor.clone()).await)
    }

    /// Whom another provider knows by the same verified address: where that was switched on, and
    /// no admin, so that an address opens nothing but what is somebody's own.
    async fn by_address(&self, new: &NewIdentity) -> Result<Option<User>, NaviError> {
        let provider = self.sign_on.provider.as_ref();
        let links = provider
            .is_some_and(|it| it.settings().link_by_email && it.settings().issuer == new.key.iss);
        let Some(address) = new.address.clone().filter(|_| links) else {
            return Ok(None);
        };
        let (store, iss) = (self.store.clone(), new.key.iss.clone());
        let found = self.on_runtime(async move { store.user_of_address(&address, &iss).await });
        Ok(found.await?.filter(|user| user.role < UserRole::Admin))
    }

    /// What their groups make of somebody, less than before, too; there is always an admin.
    async fn made(
        &self,
        user: User,
        role: UserRole,
        way: &str,
        visitor: &Visitor,
    ) -> Result<User, NaviError> {
        let (store, id) = (self.store.clone(), user.id);
        let changed = self.on_runtime(async move { store.set_role(id, role).await });
        let (what, user) = match changed.await? {
            Changed::Done(user) => (Recorded::RoleChanged, user),
            Changed::LastAdmin => (Recorded::RoleKept, user),
            Changed::Unknown => return Err(no_person()),
        };
        self.ended();
        let about = format!("{}: {} ({way})", user.name, role_name(role));
        self.note(what, Some(user.id), Some(about), visitor.clone())
            .await;
        Ok(user)
    }

    /// Somebody who is known there may not come in here.
    async fn refused(&self, name: &str, way: &str, why: &str, visitor: Visitor) -> NaviError {
        self.note_way(
            Recorded::SignInFailed,
            Some(name.to_owned()),
            format!("{way}: {why}"),
            visitor,
        )
        .await;
        NaviError::new(
            ErrorCode::SignOnRefused,
            format!("{way} knows this person, but {why}"),
        )
    }

    /// An answer that nobody comes in by.
    async fn failed(&self, way: &str, error: NaviError, visitor: &Visitor) -> NaviError {
        self.note_way(
            Recorded::SignInFailed,
            None,
            format!("{way}: {}", error.message),
            visitor.clone(),
        )
        .await;
        error
    }

    fn need_provider(&self) -> Result<&Provider, NaviError> {
        self.sign_on.provider.as_ref().ok_or_else(|| {
            NaviError::new(
                ErrorCode::NotFound,
                "there is no provider to sign in by; NAVI_OIDC_ISSUER names one",
            )
        })
    }

    /// Who links what they are elsewhere: a browser, whose login stands for its person.
    fn links(&self, who: &Principal) -> Result<UserId, NaviError> {
        self.need_accounts()?;
        self.need_provider()?;
        match who.method {
            AuthMethod::Cookie { .. } => Ok(who.user),
            AuthMethod::Token => Err(NaviError::new(
                ErrorCode::InvalidField,
                "accounts are linked from the page, not with a token",
            )),
        }
    }

    /// Runs where connections may be kept, and not for ever.
    async fn at_provider<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, NaviError> {
        let work = async move { tokio::time::timeout(PROVIDER_LIMIT, work).await };
        let done = tokio_util::task::AbortOnDropHandle::new(self.runtime.spawn(work));
        let done = done.await.map_err(|error| internal(&error))?;
        done.map_err(|_| {
            let silent = format!("no answer within {} s", PROVIDER_LIMIT.as_secs());
            no_answer("the provider", &Fault::Unavailable(silent))
        })
    }
}

/// What the page is told; the log has why.
fn no_answer(name: &str, fault: &Fault) -> NaviError {
    match fault {
        Fault::Unavailable(why) => {
            warn!(why, "the provider of sign-on does not answer");
            NaviError::new(
                ErrorCode::SignOnUnavailable,
                format!("{name} cannot be reached; try again, or sign in by a password"),
            )
        }
        Fault::Untrue(why) => untrue(name, why),
    }
}

fn untrue(name: &str, why: &str) -> NaviError {
    warn!(why, "an answer of the provider of sign-on is not believed");
    NaviError::new(
        ErrorCode::SignOnFailed,
        format!("this answer of {name} is not to be believed: {why}; begin again"),
    )
}

/// What an error is called there: a word of the protocol, and nothing that somebody made up.
fn plain(error: Option<String>) -> String {
    let is_word = |error: &String| {
        error.len() <= MAX_ERROR
            && error
                .bytes()
                .all(|it| it.is_ascii_lowercase() || it == b'_')
    };
    error
        .filter(is_word)
        .unwrap_or_else(|| "it says nothing of why".to_owned())
}
