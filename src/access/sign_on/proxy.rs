//! A proxy in front that says who somebody is: whose word counts, and beside which login.

use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::UserId;
use navi_actors::protocol::people::Scopes;
use navi_actors::store::{IdentityKey, KeyOwner, SecretHash};

use super::claims::Said;
use super::joining::Comer;
use crate::access::random::digest;
use crate::access::sign_in::{Login, Way};
use crate::access::{Access, AuthMethod, Key, Principal, Visitor};

/// The longest name of a person, in bytes.
const MAX_PERSON: usize = 255;
/// What the record calls it.
const PROXY: &str = "proxy";

/// What a proxy that is trusted says of who asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ProxyWord<'a> {
    /// None is asked, or the request did not come from one.
    #[default]
    None,
    /// It names nobody, or more than one.
    Nobody,
    Person(&'a str),
}

impl Access {
    /// Whether a login counts beside what the proxy says: one of the same person's. What the proxy
    /// let in counts nowhere else, and ends when the proxy names another.
    pub(in crate::access) async fn is_theirs(
        &self,
        who: &Principal,
        word: ProxyWord<'_>,
    ) -> Result<bool, NaviError> {
        let by_proxy = matches!(who.method, AuthMethod::Cookie { by_proxy: true, .. });
        let ProxyWord::Person(person) = word else {
            return Ok(!by_proxy);
        };
        let same = self.person_by_proxy(person).await? == Some(who.user);
        if !same
            && by_proxy
            && let Key::Login(hash) = who.key
        {
            self.on_runtime(async move |store| store.delete_web_login(SecretHash(hash)).await)
                .await?;
            self.ended();
        }
        Ok(same)
    }

    async fn person_by_proxy(&self, person: &str) -> Result<Option<UserId>, NaviError> {
        let key = Key::Proxy(digest(person));
        let before = match self.known.find(&key) {
            Ok(owner) => return Ok(Some(owner.user)),
            Err(before) => before,
        };
        let identity = identity(person);
        let found = self.on_runtime(async move |store| store.identity(&identity).await);
        Ok(found.await?.map(|(user, _)| {
            let owner = KeyOwner {
                user: user.id,
                role: user.role,
                scopes: Scopes::ALL,
                by_proxy: true,
            };
            self.known.keep(before, key, owner);
            user.id
        }))
    }

    /// Lets somebody in by the proxy's word.
    ///
    /// # Errors
    /// `unauthorized` where no proxy that is trusted says who it is; `sign_on_refused`.
    pub(crate) async fn sign_in_by_proxy(
        &self,
        word: ProxyWord<'_>,
        groups: &str,
        visitor: Visitor,
    ) -> Result<Login, NaviError> {
        self.need_accounts()?;
        self.tries.count_address(visitor.address)?;
        let fits =
            |person: &&str| person.len() <= MAX_PERSON && !person.chars().any(char::is_control);
        let person = match word {
            ProxyWord::Person(person) if fits(&person) => person,
            ProxyWord::Person(_) | ProxyWord::Nobody | ProxyWord::None => {
                return Err(NaviError::new(
                    ErrorCode::Unauthorized,
                    "no proxy that is trusted says who this is",
                ));
            }
        };
        let said = Said::by_proxy(person, groups);
        let role = match said.admitted(&self.sign_on.settings, &[]) {
            Ok(role) => role,
            Err(why) => return Err(self.refused(&said.name, PROXY, why, visitor).await),
        };
        let key = identity(person);
        let way = Way::by(PROXY, key.clone());
        let comer = Comer {
            key,
            said: &said,
            role,
            way: PROXY,
            invitation: None,
        };
        let user = self.person_of(comer, &visitor).await?;
        self.let_in(&user, way, visitor).await
    }
}

fn identity(person: &str) -> IdentityKey {
    IdentityKey {
        iss: IdentityKey::PROXY.to_owned(),
        sub: person.to_owned(),
    }
}
