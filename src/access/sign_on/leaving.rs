//! How whom a provider let in leaves: there and here.

use std::time::Duration;

use chrono::Utc;
use navi_actors::protocol::error::NaviError;
use navi_actors::protocol::people::Recorded;
use navi_actors::store::{IdentityKey, SignOn};

use super::{no_answer, untrue};
use crate::access::{Access, Visitor};

/// Signing out here waits no longer for where to sign out there.
const WAY_OUT_LIMIT: Duration = Duration::from_secs(3);

impl Access {
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
        let Some(using) = self.sign_on.used.first(&ended, Utc::now()) else {
            return Err(untrue(&name, "this logout token was used"));
        };
        let sid = ended.sid;
        let sub = ended.sub.clone();
        let done = self.on_runtime(async move |store| {
            let key = sub.clone().map(|sub| IdentityKey {
                iss: iss.clone(),
                sub,
            });
            let found = match key {
                Some(key) => store.identity(&key).await?,
                None => None,
            };
            let count = store.end_sign_on(&iss, sub.as_deref(), sid.as_deref());
            Ok((count.await?, found.map(|(user, _)| user.id)))
        });
        let done = done.await;
        self.ended();
        let (count, user) = done?;
        using.done();
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
}
