//! Who people are elsewhere, as they link it to their account and take it back.

use chrono::Utc;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::UserId;
use navi_actors::protocol::people::Recorded;
use navi_actors::store::{Identity, IdentityKey, Linked, NewIdentity, Unlinked, WaysIn};
use uuid::Uuid;

use super::flows::Purpose;
use super::{Answer, Begun};
use crate::access::{Access, Principal, Visitor};

impl Access {
    /// Sends a browser to the provider, to be there and here the one who is signed in.
    ///
    /// # Errors
    /// As [`Access::begin_sign_on`]; `invalid_field`, `forbidden`: it was not shown who asks.
    pub(crate) async fn begin_link(
        &self,
        who: &Principal,
        current_password: Option<String>,
        visitor: &Visitor,
    ) -> Result<Begun, NaviError> {
        let user = self.links(who)?;
        self.need_proof(who, current_password, visitor).await?;
        self.begin(Purpose::Link(user), visitor).await
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
        let is_for = |purpose| purpose == Purpose::Link(user);
        let back = self.told(answer, is_for, &visitor).await?;
        let new = NewIdentity {
            key: back.key,
            address: back.said.address,
        };
        let linked =
            self.on_runtime(async move |store| store.link_identity(user, new, Utc::now()).await);
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
        self.on_runtime(async move |store| store.identities(user).await)
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
        let (user, but, ways) = (who.user, who.login(), self.ways_in());
        let unlinked =
            self.on_runtime(async move |store| store.unlink_identity(user, id, but, &ways).await);
        let unlinked = unlinked.await;
        self.ended();
        let identity = match unlinked? {
            Unlinked::Done(identity) => identity,
            Unlinked::Unknown => return Ok(false),
            Unlinked::LastWayIn => {
                return Err(NaviError::new(
                    ErrorCode::Forbidden,
                    "choose a password first; without it there would be no way back in",
                ));
            }
        };
        let about = Some(identity.key.iss);
        self.note(Recorded::IdentityUnlinked, Some(user), about, visitor)
            .await;
        Ok(true)
    }

    /// By what people come in here now, beside what they know.
    pub(in crate::access) fn ways_in(&self) -> WaysIn {
        let settings = &self.sign_on.settings;
        let provider = settings.provider.as_ref().map(|it| it.issuer.clone());
        let proxy = settings.proxy.as_ref();
        let proxy = proxy.map(|_| IdentityKey::PROXY.to_owned());
        WaysIn {
            host: self.passkeys.host().to_owned(),
            issuers: provider.into_iter().chain(proxy).collect(),
        }
    }

    /// Who links what they are elsewhere: a browser, whose login stands for its person.
    fn links(&self, who: &Principal) -> Result<UserId, NaviError> {
        self.need_accounts()?;
        self.need_provider()?;
        Ok(who.user)
    }
}
