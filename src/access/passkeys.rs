//! Passkeys: how a person makes one, and comes in by it.
//!
//! One is made in a browser whose person has just shown who they are (`proof`). The authenticator makes sure of its person each time (a PIN, a finger,
//! a face), and knows who they are, so that to sign in they write nothing.

mod ceremonies;
pub(crate) mod site;

use std::sync::Arc;
use std::time::Instant;

use chrono::Utc;
use navi_actors::protocol::error::{ErrorCode, NaviError, invalid};
use navi_actors::protocol::ids::UserId;
use navi_actors::protocol::people::Recorded;
use navi_actors::store::{AddedPasskey, Passkey, RemovedPasskey, SecretHash};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tracing::{debug, warn};
use url::Url;
use uuid::Uuid;
use webauthn_rs::prelude::{
    DiscoverableAuthentication, Passkey as Credential, PasskeyRegistration, PublicKeyCredential,
    RegisterPublicKeyCredential, WebauthnError,
};

use self::ceremonies::Ceremonies;
use self::site::Site;
use super::random::{self, Digest, digest};
use super::sign_in::Way;
use super::{Access, Key, Login, Principal, Visitor, internal};

/// How many a person may have.
pub(crate) const MAX_PASSKEYS: u64 = 20;
/// The longest name of one, in characters.
pub(crate) const MAX_NAME_CHARS: usize = 64;
/// What is kept of one: a key and its counter, and what little comes with them.
const MAX_CREDENTIAL_BYTES: usize = 8 * 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Passkeys {
    /// None: no browser offers any here.
    site: Option<Arc<Site>>,
    /// By the login of the browser that makes one.
    making: Ceremonies<Key, Making>,
    /// By what names the ceremony to the page that began it.
    coming_in: Ceremonies<Digest, ComingIn>,
}

/// One that is being made.
#[derive(Debug)]
struct Making {
    user: UserId,
    handle: Uuid,
    name: String,
    question: PasskeyRegistration,
}

/// Somebody who comes in, nobody knows yet who.
#[derive(Debug)]
struct ComingIn {
    /// The browser in which this began.
    browser: Digest,
    question: DiscoverableAuthentication,
}

/// What a page asks an authenticator, and by what name it brings the answer.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) ceremony: String,
    /// As `PublicKeyCredential.parseRequestOptionsFromJSON` takes it.
    pub(crate) options: Value,
}

/// An answer to a page, in the browser in which it asked.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) browser: String,
    pub(crate) ceremony: String,
    pub(crate) credential: Value,
}

impl Passkeys {
    pub(super) fn at(page: Option<Url>) -> Self {
        Self {
            site: page.and_then(Site::new).map(Arc::new),
            ..Self::default()
        }
    }

    fn site(&self) -> Result<Arc<Site>, NaviError> {
        self.site.clone().ok_or_else(|| {
            NaviError::new(
                ErrorCode::Forbidden,
                "browsers offer passkeys only at a name with TLS, or at localhost; NAVI_PUBLIC_URL says under which name Navi is reached",
            )
        })
    }

    /// The host that those of today are bound to.
    pub(super) fn host(&self) -> &str {
        self.site.as_ref().map_or("", |site| &site.host)
    }
}

impl Access {
    /// The page's address under which passkeys work, where there are any.
    pub(crate) fn passkeys_at(&self) -> Option<&Url> {
        let site = self.passkeys.site.as_ref().filter(|_| self.accounts);
        site.map(|site| &site.page)
    }

    /// A person's passkeys, the oldest first.
    ///
    /// # Errors
    /// There are no accounts, or the store cannot be used.
    pub(crate) async fn passkeys(&self, user: UserId) -> Result<Vec<Passkey>, NaviError> {
        self.need_accounts()?;
        self.on_runtime(async move |store| store.passkeys(user).await)
            .await
    }

    /// Begins to make one of this name: what the browser's authenticator is asked.
    ///
    /// # Errors
    /// `invalid_field`: the name is no good, or the password is wrong. `forbidden`: who has none
    /// signed in too long ago, or has all the passkeys that one may have.
    pub(crate) async fn begin_passkey(
        &self,
        who: &Principal,
        name: &str,
        current_password: Option<String>,
        visitor: &Visitor,
    ) -> Result<Value, NaviError> {
        self.need_accounts()?;
        let site = self.passkeys.site()?;
        let name = checked_name(name)?;
        self.need_proof(who, current_password, visitor).await?;
        let account = self.account(who.user).await?;
        let theirs = self.passkeys(who.user).await?;
        if theirs.len() as u64 >= MAX_PASSKEYS {
            return Err(too_many());
        }
        let handle = theirs.first().map_or_else(Uuid::new_v4, |it| it.handle);
        let known = theirs.iter().filter_map(|it| {
            let credential: Credential = serde_json::from_str(&it.credential).ok()?;
            Some(credential.cred_id().clone())
        });
        let called = &account.user.name;
        let (options, question) = site
            .webauthn
            .start_passkey_registration(handle, called, called, Some(known.collect()))
            .map_err(|error| internal(&error))?;
        let mut options = json_of(&options)?;
        // It says itself whose it is, so that nobody writes a name to sign in.
        let selection = &mut options["authenticatorSelection"];
        selection["residentKey"] = "required".into();
        selection["requireResidentKey"] = true.into();
        let making = Making {
            user: who.user,
            handle,
            name,
            question,
        };
        self.passkeys.making.begin(who.key, making, Instant::now());
        Ok(options)
    }

    /// Makes it, of what the authenticator answered.
    ///
    /// # Errors
    /// `invalid_field`: it answered something else, or too late. `forbidden`: there are enough.
    pub(crate) async fn finish_passkey(
        &self,
        who: &Principal,
        credential: Value,
        visitor: Visitor,
    ) -> Result<Passkey, NaviError> {
        self.need_accounts()?;
        let site = self.passkeys.site()?;
        let making = self.passkeys.making.end(&who.key, Instant::now());
        let Some(making) = making.filter(|it| it.user == who.user) else {
            return Err(invalid(
                "nothing waits for this passkey: it was begun too long ago, or in another browser",
            ));
        };
        let answer: RegisterPublicKeyCredential = serde_json::from_value(credential)
            .map_err(|error| invalid(format!("credential: {error}")))?;
        let (question, host) = (making.question, site.host.clone());
        let checked = self.runtime.spawn_blocking(move || {
            site.webauthn
                .finish_passkey_registration(&answer, &question)
        });
        let checked = checked.await.map_err(|error| internal(&error))?;
        let made = checked.map_err(|error| {
            debug!(%error, "a passkey was refused");
            invalid(format!("this passkey cannot be taken: {error}"))
        })?;
        let credential = serde_json::to_string(&made).map_err(|error| internal(&error))?;
        if credential.len() > MAX_CREDENTIAL_BYTES {
            return Err(invalid("this passkey brings too much with it"));
        }
        let new = Passkey {
            id: Uuid::now_v7(),
            user_id: who.user,
            handle: making.handle,
            host,
            name: making.name,
            credential,
            created_at: Utc::now(),
            last_used_at: None,
        };
        let (hash, row) = (hash_of(made.cred_id()), new.clone());
        let added =
            self.on_runtime(async move |store| store.add_passkey(hash, row, MAX_PASSKEYS).await);
        match added.await? {
            AddedPasskey::Done => {}
            AddedPasskey::TooMany => return Err(too_many()),
            AddedPasskey::Known => return Err(invalid("this passkey is known already")),
            AddedPasskey::NobodyThere => {
                let gone = "this account was removed";
                return Err(NaviError::new(ErrorCode::PersonNotFound, gone));
            }
        }
        let about = Some(new.name.clone());
        self.note(Recorded::PasskeyMade, Some(who.user), about, visitor)
            .await;
        Ok(new)
    }

    /// Calls one something else.
    ///
    /// # Errors
    /// The name is no good, or there is no such passkey.
    pub(crate) async fn rename_passkey(
        &self,
        user: UserId,
        id: Uuid,
        name: &str,
    ) -> Result<(), NaviError> {
        self.need_accounts()?;
        let name = checked_name(name)?;
        let renamed =
            self.on_runtime(async move |store| store.rename_passkey(user, id, name).await);
        if renamed.await? {
            Ok(())
        } else {
            Err(no_passkey())
        }
    }

    /// Removes one. Nobody signs in by it any more; who did stays signed in.
    ///
    /// # Errors
    /// There is no such passkey, or nothing else would let its person in.
    pub(crate) async fn remove_passkey(
        &self,
        user: UserId,
        id: Uuid,
        visitor: Visitor,
    ) -> Result<(), NaviError> {
        self.need_accounts()?;
        let ways = self.ways_in();
        let removed =
            self.on_runtime(async move |store| store.remove_passkey(user, id, &ways).await);
        match removed.await? {
            RemovedPasskey::Done(name) => {
                self.note(Recorded::PasskeyRemoved, Some(user), Some(name), visitor)
                    .await;
                Ok(())
            }
            RemovedPasskey::Unknown => Err(no_passkey()),
            RemovedPasskey::LastWayIn => Err(NaviError::new(
                ErrorCode::Forbidden,
                "you sign in by nothing else; choose a password or make another passkey first",
            )),
        }
    }

    /// Begins to let somebody in, nobody knows yet whom.
    ///
    /// # Errors
    /// There are no accounts or no passkeys here; `rate_limited`.
    pub(crate) fn begin_passkey_sign_in(
        &self,
        browser: &str,
        visitor: &Visitor,
    ) -> Result<Asked, NaviError> {
        self.need_accounts()?;
        let site = self.passkeys.site()?;
        self.tries.count_address(visitor.address)?;
        let (options, question) = site
            .webauthn
            .start_discoverable_authentication()
            .map_err(|error| internal(&error))?;
        let ceremony = random::fresh();
        let coming_in = ComingIn {
            browser: digest(browser),
            question,
        };
        let name = digest(&ceremony);
        self.passkeys
            .coming_in
            .begin(name, coming_in, Instant::now());
        Ok(Asked {
            ceremony,
            options: json_of(&options)?,
        })
    }

    /// Lets in whose passkey it was that answered.
    ///
    /// # Errors
    /// `unauthorized`, the same whatever is wrong; `rate_limited`.
    pub(crate) async fn finish_passkey_sign_in(
        &self,
        answer: Answer,
        visitor: Visitor,
    ) -> Result<Login, NaviError> {
        self.need_accounts()?;
        let site = self.passkeys.site()?;
        self.tries.count_address(visitor.address)?;
        let name = digest(&answer.ceremony);
        let coming_in = self.passkeys.coming_in.end(&name, Instant::now());
        let browser = digest(&answer.browser);
        let asked = coming_in.filter(|it| it.browser == browser);
        let given: Option<PublicKeyCredential> = serde_json::from_value(answer.credential).ok();
        let (Some(ComingIn { question, .. }), Some(given)) = (asked, given) else {
            return Err(self
                .refused_passkey(None, "asked for by nobody", visitor)
                .await);
        };
        let named = site.webauthn.identify_discoverable_authentication(&given);
        let Some((handle, hash)) = named.ok().map(|(handle, id)| (handle, hash_of(id))) else {
            return Err(self.refused_passkey(None, "of nobody", visitor).await);
        };
        let found = self.on_runtime(async move |store| store.passkey(hash).await);
        let found = found.await?.filter(|(_, it)| it.handle == handle);
        let Some((user, passkey)) = found else {
            return Err(self.refused_passkey(None, "not known here", visitor).await);
        };
        self.tries
            .count(&format!("passkeys of {}", user.id), None)?;
        let stored = passkey.credential.clone();
        let checked = self.runtime.spawn_blocking(move || {
            let mut credential: Credential =
                serde_json::from_str(&stored).map_err(|_| WebauthnError::CredentialNotFound)?;
            let result = site.webauthn.finish_discoverable_authentication_v2(
                &given,
                question,
                &credential,
            )?;
            credential.update_credential(&result);
            Ok(credential)
        });
        let checked: Result<Credential, WebauthnError> =
            checked.await.map_err(|error| internal(&error))?;
        let credential = match checked {
            Ok(credential) => credential,
            Err(WebauthnError::CredentialPossibleCompromise) => {
                warn!(user = %user.id, passkey = %passkey.id, "a passkey's counter went back: there may be a copy of it");
                let why = format!(
                    "{}: its counter went back, it may have been copied",
                    passkey.name
                );
                return Err(self.refused_passkey(Some(user.id), &why, visitor).await);
            }
            Err(error) => {
                debug!(%error, "a passkey was refused");
                return Err(self
                    .refused_passkey(Some(user.id), &passkey.name, visitor)
                    .await);
            }
        };
        let now_it_is = serde_json::to_string(&credential).map_err(|error| internal(&error))?;
        let name = passkey.name.clone();
        let noted = self.on_runtime(async move |store| {
            store
                .note_passkey_use(&passkey, now_it_is, Utc::now())
                .await
        });
        if !noted.await? {
            return Err(self.refused_passkey(Some(user.id), &name, visitor).await);
        }
        self.let_in(&user, Way::plain(&format!("passkey: {name}")), visitor)
            .await
    }

    async fn refused_passkey(
        &self,
        user: Option<UserId>,
        why: &str,
        visitor: Visitor,
    ) -> NaviError {
        let about = Some(format!("passkey: {why}"));
        self.note(Recorded::SignInFailed, user, about, visitor)
            .await;
        NaviError::new(
            ErrorCode::Unauthorized,
            "this passkey opens nothing here; try again, or sign in by something else",
        )
    }
}

/// What stands in `publicKey`: a page asks in its own way for the rest.
fn json_of(options: &impl serde::Serialize) -> Result<Value, NaviError> {
    let mut all = serde_json::to_value(options).map_err(|error| internal(&error))?;
    Ok(all["publicKey"].take())
}

fn hash_of(credential_id: &[u8]) -> SecretHash {
    SecretHash(Sha256::digest(credential_id).into())
}

fn checked_name(name: &str) -> Result<String, NaviError> {
    let chars = name.chars().count();
    let trimmed = name.trim();
    if trimmed.is_empty() || chars > MAX_NAME_CHARS || trimmed.chars().any(char::is_control) {
        return Err(invalid(format!(
            "name must have 1 to {MAX_NAME_CHARS} characters, none of them a control character"
        )));
    }
    Ok(trimmed.to_owned())
}

fn too_many() -> NaviError {
    NaviError::new(
        ErrorCode::Forbidden,
        format!(
            "you have {MAX_PASSKEYS} passkeys, which is all that one may have; remove one first"
        ),
    )
}

fn no_passkey() -> NaviError {
    NaviError::new(ErrorCode::NotFound, "you have no such passkey")
}
