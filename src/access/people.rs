//! Accounts: one's own, and those of all people, as an admin manages them; the record.

use chrono::Utc;
use navi_actors::domain::names;
use navi_actors::protocol::error::{ErrorCode, NaviError, invalid};
use navi_actors::protocol::ids::UserId;
use navi_actors::protocol::people::{Recorded, UserRole};
use navi_actors::store::{
    Changed, Credentials, Invitation, KeptLogins, Person, RecordEntry, RecordRow, SecretHash, User,
};
use tracing::warn;
use uuid::Uuid;

use super::proof::{LINK_OPENS_MORE, need_all_scopes};
use super::random::digest;
use super::sign_in::{name_taken, recovery_hash};
use super::{Access, Offer, Principal, Visitor, random};

/// The longest an invitation may be good for.
pub(crate) const MAX_INVITATION_DAYS: u32 = 30;
/// How many recovery codes a person is given at once.
const RECOVERY_CODES: usize = 8;

/// A person as they see themselves.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) user: User,
    pub(crate) has_password: bool,
    pub(crate) recovery_codes: u64,
    pub(crate) passkeys: u64,
    /// How many accounts elsewhere let them in.
    pub(crate) sign_ons: u64,
}

/// What a person changes of their account.
#[derive(Clone, Debug)]
pub(crate) struct AccountChange {
    pub(crate) name: Option<String>,
    pub(crate) password: Option<String>,
    /// Asked for where there is one.
    pub(crate) current_password: Option<String>,
}

impl Access {
    /// Who somebody is.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn account(&self, user: UserId) -> Result<Account, NaviError> {
        let found = self.on_runtime(async move |store| {
            let Some(found) = store.user(user).await? else {
                return Ok(None);
            };
            let has_password = store.password(user).await?.is_some();
            let recovery_codes = store.recovery_codes(user).await?;
            let passkeys = store.count_passkeys(user).await?;
            let sign_ons = store.identities(user).await?.len();
            Ok(Some(Account {
                user: found,
                has_password,
                recovery_codes,
                passkeys,
                sign_ons: sign_ons.try_into().unwrap_or(u64::MAX),
            }))
        });
        found.await?.ok_or_else(no_person)
    }

    /// Changes the name or the password by which somebody signs in. With the password, all their
    /// other browsers are signed out.
    ///
    /// # Errors
    /// The current password is wrong, name or password are no good, or the name is another's.
    pub(crate) async fn change_account(
        &self,
        who: &Principal,
        change: AccountChange,
        visitor: Visitor,
    ) -> Result<Account, NaviError> {
        self.need_accounts()?;
        let user = who.user;
        self.need_proof(who, change.current_password, &visitor)
            .await?;
        let stored = self.on_runtime(async move |store| store.password(user).await);
        let stored = stored.await?;
        let account = self.account(user).await?;
        let name = change.name.unwrap_or(account.user.name);
        let changes_password = change.password.is_some();
        let kept = if changes_password {
            KeptLogins::Only(who.login())
        } else {
            KeptLogins::All
        };
        let new = match (change.password, stored) {
            (Some(password), _) => self.credentials(&name, &password).await?,
            (None, Some(password)) => {
                let name = names::checked(&name).map_err(invalid)?;
                Credentials {
                    name_key: names::key(&name),
                    password,
                    name,
                }
            }
            (None, None) => {
                let lacking = "choose a password, too: without one nobody signs in by a name";
                return Err(invalid(lacking));
            }
        };
        let set = self.on_runtime(async move |store| store.set_credentials(user, new, kept).await);
        let set = set.await;
        // It may be done where nobody could say so.
        self.ended();
        set?.ok_or_else(name_taken)?;
        if changes_password {
            self.note(Recorded::PasswordChanged, Some(user), None, visitor)
                .await;
        }
        self.account(user).await
    }

    /// New recovery codes in the place of the old ones. They are told only now.
    ///
    /// # Errors
    /// `invalid_field`, `forbidden`: it was not shown who asks. The store cannot be used.
    pub(crate) async fn make_recovery_codes(
        &self,
        who: &Principal,
        current_password: Option<String>,
        visitor: Visitor,
    ) -> Result<Vec<String>, NaviError> {
        self.need_accounts()?;
        self.need_proof(who, current_password, &visitor).await?;
        self.tries.count_key(who.user)?;
        let user = who.user;
        let codes: Vec<String> = (0..RECOVERY_CODES).map(|_| recovery_code()).collect();
        let hashes: Vec<SecretHash> = codes.iter().map(|code| recovery_hash(code)).collect();
        self.on_runtime(async move |store| store.set_recovery_codes(user, &hashes).await)
            .await?;
        self.note(Recorded::RecoveryCodesMade, Some(user), None, visitor)
            .await;
        Ok(codes)
    }

    /// Everybody.
    ///
    /// # Errors
    /// There are no accounts, or the store cannot be used.
    pub(crate) async fn people(&self) -> Result<Vec<Person>, NaviError> {
        self.need_accounts()?;
        self.on_runtime(async move |store| store.people().await)
            .await
    }

    /// Makes a person something else. What they have open is closed, and opens as what they are.
    ///
    /// # Errors
    /// There is no such person, or no other admin. For an admin: it was not shown who asks.
    pub(crate) async fn set_role(
        &self,
        by: &Principal,
        person: UserId,
        role: UserRole,
        current_password: Option<String>,
        visitor: Visitor,
    ) -> Result<User, NaviError> {
        self.need_accounts()?;
        if role == UserRole::Admin {
            self.need_proof_in_browser(by, current_password, &visitor)
                .await?;
        }
        let changed = self.on_runtime(async move |store| store.set_role(person, role).await);
        let user = settled(changed.await?)?;
        self.ended();
        let about = format!("{}: {}", user.name, role_name(role));
        self.note(Recorded::RoleChanged, Some(by.user), Some(about), visitor)
            .await;
        Ok(user)
    }

    /// Takes from a person all that lets them in, and what is remembered of them; their sessions
    /// are for the engine to clear away.
    ///
    /// # Errors
    /// There is no such person, or no other admin.
    pub(crate) async fn remove_person(
        &self,
        by: &Principal,
        person: UserId,
        visitor: Visitor,
    ) -> Result<User, NaviError> {
        self.need_accounts()?;
        let removed =
            self.on_runtime(async move |store| store.remove_person(person, Utc::now()).await);
        let user = settled(removed.await?)?;
        self.ended();
        let about = Some(user.name.clone());
        self.note(Recorded::PersonRemoved, Some(by.user), about, visitor)
            .await;
        Ok(user)
    }

    /// Makes an invitation: the row, and the secret for its link.
    ///
    /// # Errors
    /// There is no such person, or the store cannot be used. For an admin, or for somebody who is
    /// here: it was not shown who asks.
    pub(crate) async fn invite(
        &self,
        by: &Principal,
        offer: Offer,
        current_password: Option<String>,
        visitor: Visitor,
    ) -> Result<(Invitation, String), NaviError> {
        self.need_accounts()?;
        if !(1..=MAX_INVITATION_DAYS).contains(&offer.days) {
            return Err(invalid(format!("days must be 1 to {MAX_INVITATION_DAYS}")));
        }
        let about = match offer.user {
            Some(user) => self.account(user).await?.user.name,
            None => role_name(offer.role).to_owned(),
        };
        need_all_scopes(by, LINK_OPENS_MORE)?;
        if offer.role == UserRole::Admin || offer.user.is_some() {
            self.need_proof_in_browser(by, current_password, &visitor)
                .await?;
        }
        let (invitation, secret) = offer.made(Some(by.user), Utc::now());
        let (hash, row) = (SecretHash(digest(&secret)), invitation.clone());
        self.on_runtime(async move |store| store.add_invitation(hash, row).await)
            .await?;
        self.note(Recorded::Invited, Some(by.user), Some(about), visitor)
            .await;
        Ok((invitation, secret))
    }

    /// The invitations that nobody used yet.
    ///
    /// # Errors
    /// There are no accounts, or the store cannot be used.
    pub(crate) async fn invitations(&self) -> Result<Vec<Invitation>, NaviError> {
        self.need_accounts()?;
        self.on_runtime(async move |store| store.invitations(Utc::now()).await)
            .await
    }

    /// Takes an invitation back. Tells whether there was one.
    ///
    /// # Errors
    /// There are no accounts, or the store cannot be used.
    pub(crate) async fn remove_invitation(
        &self,
        by: &Principal,
        id: Uuid,
        visitor: Visitor,
    ) -> Result<bool, NaviError> {
        self.need_accounts()?;
        let removed = self.on_runtime(async move |store| store.delete_invitation(id).await);
        let removed = removed.await?;
        if removed {
            let about = Some(id.to_string());
            self.note(Recorded::InvitationRemoved, Some(by.user), about, visitor)
                .await;
        }
        Ok(removed)
    }

    /// Lines of the record, the newest first.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn record(
        &self,
        of: Option<UserId>,
        before: Option<i64>,
        limit: u64,
    ) -> Result<Vec<RecordRow>, NaviError> {
        self.need_accounts()?;
        self.on_runtime(async move |store| store.record(of, before, limit).await)
            .await
    }

    /// Adds a line to the record, where there are accounts.
    pub(crate) async fn note(
        &self,
        what: Recorded,
        user: Option<UserId>,
        about: Option<String>,
        visitor: Visitor,
    ) {
        if !self.accounts {
            return;
        }
        let name = match user {
            Some(user) => {
                let found = self
                    .on_runtime(async move |store| store.user(user).await)
                    .await;
                found.ok().flatten().map(|user| user.name)
            }
            None => None,
        };
        self.record_entry(RecordEntry {
            what,
            user_id: user,
            name,
            about,
            address: visitor.address.map(|address| address.to_string()),
        })
        .await;
    }

    pub(super) async fn note_by_name(
        &self,
        what: Recorded,
        user: Option<UserId>,
        name: String,
        visitor: Visitor,
    ) {
        self.record_entry(RecordEntry {
            what,
            user_id: user,
            name: Some(name),
            about: None,
            address: visitor.address.map(|address| address.to_string()),
        })
        .await;
    }

    /// Who came in, and how.
    pub(super) async fn note_signed_in(&self, user: &User, way: String, visitor: Visitor) {
        self.record_entry(RecordEntry {
            what: Recorded::SignedIn,
            user_id: Some(user.id),
            name: Some(user.name.clone()),
            about: Some(way),
            address: visitor.address.map(|address| address.to_string()),
        })
        .await;
    }

    /// What became of somebody's way in who is nobody here.
    pub(super) async fn note_way(
        &self,
        what: Recorded,
        name: Option<String>,
        way: String,
        visitor: Visitor,
    ) {
        self.record_entry(RecordEntry {
            what,
            user_id: None,
            name,
            about: Some(way),
            address: visitor.address.map(|address| address.to_string()),
        })
        .await;
    }

    async fn record_entry(&self, entry: RecordEntry) {
        if !self.accounts {
            return;
        }
        let what = entry.what;
        let added = self.on_runtime(async move |store| store.add_record(entry, Utc::now()).await);
        // What was done is done: the log of the service says what the record lacks.
        if let Err(error) = added.await {
            warn!(%error, ?what, "a line of the record could not be written");
        }
    }
}

/// Sixteen letters and digits that are hard to take for others: 80 bits.
fn recovery_code() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";
    let bytes = digest(&random::fresh());
    let letters = bytes.iter().take(16);
    let text: String = letters
        .map(|byte| char::from(LETTERS[usize::from(byte % 32)]))
        .collect();
    let parts = [&text[..4], &text[4..8], &text[8..12], &text[12..]];
    parts.join("-")
}

fn settled(changed: Changed) -> Result<User, NaviError> {
    match changed {
        Changed::Done(user) => Ok(user),
        Changed::Unknown => Err(no_person()),
        Changed::LastAdmin => Err(NaviError::new(
            ErrorCode::Forbidden,
            "there is no other admin; make somebody one first",
        )),
    }
}

pub(crate) fn role_name(role: UserRole) -> &'static str {
    match role {
        UserRole::Guest => "guest",
        UserRole::User => "user",
        UserRole::Admin => "admin",
    }
}

pub(super) fn no_person() -> NaviError {
    NaviError::new(ErrorCode::PersonNotFound, "there is no such person")
}
