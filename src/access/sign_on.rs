//! Sign-on: who comes in because a provider of OpenID Connect, or a proxy in front, says who they
//! are. The key of a person there is the issuer with its name for them, and nothing else.

mod claims;
mod flows;
mod http;
mod joining;
mod leaving;
mod linking;
mod logout;
mod provider;
mod proxy;

use std::time::Duration;

use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::people::Recorded;
use navi_actors::store::{IdentityKey, SecretHash, SignOn};
use tracing::warn;

use self::claims::Said;
pub(crate) use self::flows::LIFETIME as FLOW_LIFETIME;
use self::flows::{Flows, Purpose, Secrets};
use self::joining::Comer;
pub(crate) use self::logout::MAX_TOKEN as MAX_LOGOUT_TOKEN;
use self::logout::Used;
use self::provider::{Fault, Provider, Returned, Sent, Told};
pub(crate) use self::proxy::ProxyWord;
use super::random::digest;
use super::sign_in::{Login, Way};
use super::{Access, Visitor, internal};
use crate::settings::SignOnSettings;

/// What is asked of a provider takes no longer, all together.
const PROVIDER_LIMIT: Duration = Duration::from_secs(30);
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

/// Who came back, as the provider says, and for what they went there.
#[derive(Debug)]
struct Back {
    purpose: Purpose,
    key: IdentityKey,
    told: Told,
    said: Said,
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

    /// Sends a browser to the provider, to come back as whoever it is; by an invitation for somebody
    /// new, where one is named.
    ///
    /// # Errors
    /// There is no provider, it does not answer, or too many sign-ins are under way;
    /// `invitation_not_found`; `invalid_field`: the invitation is for another password.
    pub(crate) async fn begin_sign_on(
        &self,
        invitation: Option<&str>,
        visitor: &Visitor,
    ) -> Result<Begun, NaviError> {
        let Some(secret) = invitation else {
            return self.begin(Purpose::SignIn, visitor).await;
        };
        self.need_provider()?;
        let (found, _) = self.invitation(secret, visitor).await?;
        if found.user_id.is_some() {
            let other = "this link is for another password, by which nobody joins; choose one";
            return Err(NaviError::new(ErrorCode::InvalidField, other));
        }
        self.begin(Purpose::Join(digest(secret)), visitor).await
    }

    /// Lets in who came back.
    ///
    /// # Errors
    /// `sign_on_failed`: the answer is not to be believed; `sign_on_refused`: they may not come in;
    /// `sign_on_unavailable`: the provider does not answer; `invitation_not_found`: it was good when
    /// they went there, and is not any more.
    pub(crate) async fn finish_sign_on(
        &self,
        answer: Answer,
        visitor: Visitor,
    ) -> Result<Login, NaviError> {
        let back = self.told(answer, Purpose::lets_in, &visitor).await?;
        let Back {
            key, told, said, ..
        } = back;
        let name = self.need_provider()?.settings().name.clone();
        let domains = self.need_provider()?.settings().domains.clone();
        let role = match said.admitted(&self.sign_on.settings, &domains) {
            Ok(role) => role,
            Err(why) => return Err(self.refused(&said.name, &name, why, visitor).await),
        };
        let comer = Comer {
            key: key.clone(),
            said: &said,
            role,
            way: &name,
            invitation: match back.purpose {
                Purpose::Join(hash) => Some(SecretHash(hash)),
                Purpose::SignIn | Purpose::Link(_) => None,
            },
        };
        let user = self.person_of(comer, &visitor).await?;
        let mut way = Way::by(&name, key.clone());
        way.sign_on = Some(SignOn {
            key,
            sid: told.sid,
            id_token: told.id_token,
        });
        self.let_in(&user, way, visitor).await
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
        is_for: impl FnOnce(Purpose) -> bool,
        visitor: &Visitor,
    ) -> Result<Back, NaviError> {
        self.need_accounts()?;
        let provider = self.need_provider()?;
        self.tries.count_address(visitor.address)?;
        let name = provider.settings().name.clone();
        let halves = (answer.cookie.as_str(), answer.key.as_str());
        let taken = self.sign_on.flows.take(&answer.state, halves, is_for);
        let Some((purpose, secrets)) = taken else {
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
        Ok(Back {
            purpose,
            key,
            told,
            said,
        })
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
