//! Tokens for scripts.

use chrono::{TimeDelta, Utc};
use navi_actors::domain::permissions::{Action, Grant};
use navi_actors::protocol::error::{ErrorCode, NaviError, invalid};
use navi_actors::protocol::ids::UserId;
use navi_actors::protocol::people::{Recorded, Scopes};
use navi_actors::protocol::phrase::{Phrase, PhraseCode};
use navi_actors::store::{ApiToken, NewToken, SecretHash, Store};
use uuid::Uuid;

use super::random::digest;
use super::{Access, Key, Principal, Visitor, random, store_error};

/// The longest name of a token, in characters.
pub(crate) const MAX_NAME_CHARS: usize = 100;
/// How many tokens one person has at most, those that expired a short while ago with them.
const MOST: usize = 200;
/// How long a token may be good for that does not last for ever.
pub(crate) const MAX_DAYS: u32 = 3_650;

/// A token that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) scopes: Scopes,
    /// None: for ever.
    pub(crate) days: Option<u32>,
}

impl Access {
    /// All tokens of a user, without what opens the door.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn tokens(&self, user: UserId) -> Result<Vec<ApiToken>, NaviError> {
        self.on_runtime(async move |store| store.list_tokens(user).await)
            .await
    }

    /// Makes a token; its text is told only now. It opens no more than what its maker came in
    /// with. One with all scopes is asked for no proof, whatever it does: so its maker is.
    ///
    /// # Errors
    /// The name is no good, it would open too much, it was not shown who asks, or the store cannot
    /// be used.
    pub(crate) async fn add_token(
        &self,
        who: &Principal,
        wanted: Wanted,
        current_password: Option<String>,
        visitor: Visitor,
    ) -> Result<(ApiToken, String), NaviError> {
        if !who.grant.scopes.include(wanted.scopes) {
            return Err(NaviError::new(
                ErrorCode::Forbidden,
                format!(
                    "what you came in with has the scopes {}; a token of its making has no others",
                    who.grant.scopes
                ),
            ));
        }
        if wanted.scopes.include(Scopes::ALL) {
            self.need_proof_in_browser(who, current_password, &visitor)
                .await?;
        }
        self.tries.count_key(who.user)?;
        let (store, user) = (self.store.clone(), who.user);
        let made = self
            .on_runtime_or(async move { add_token(&store, user, wanted).await })
            .await?;
        let about = format!("{} ({})", made.0.name, made.0.scopes);
        self.note(Recorded::TokenMade, Some(who.user), Some(about), visitor)
            .await;
        Ok(made)
    }

    /// Whether there was such a token to remove.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn remove_token(
        &self,
        user: UserId,
        id: Uuid,
        visitor: Visitor,
    ) -> Result<bool, NaviError> {
        let removed = self.on_runtime(async move |store| store.delete_token(user, id).await);
        let removed = removed.await;
        self.ended();
        if matches!(removed, Ok(true)) {
            let about = Some(id.to_string());
            self.note(Recorded::TokenRemoved, Some(user), about, visitor)
                .await;
        }
        removed
    }

    /// Whether who came in with this may pass on, for a program, what a person answers to a request
    /// for consent, as it stands now: the page's own login may, and a token that was made so.
    /// `NAVI_API_TOKEN` stands where programs read it.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn may_pass_on_consent(&self, who: &Principal) -> Result<bool, NaviError> {
        let Key::Token(hash) = who.key else {
            return Ok(!matches!(who.key, Key::Setting(_)));
        };
        let hash = SecretHash(hash);
        let owners =
            self.on_runtime(async move |store| store.token_owners(&[hash], Utc::now()).await);
        let owner = owners.await?.get(&hash).copied();
        Ok(owner.is_some_and(|owner| {
            let grant = Grant {
                role: owner.role,
                scopes: owner.scopes,
            };
            grant.check(Action::GiveConsent).is_ok()
        }))
    }
}

/// Makes and stores a token: its row, and the text that is told only now.
///
/// # Errors
/// The name is no good, or the store cannot be used.
pub(crate) async fn add_token(
    store: &Store,
    user: UserId,
    wanted: Wanted,
) -> Result<(ApiToken, String), NaviError> {
    let chars = wanted.name.chars().count();
    let name = wanted.name.trim();
    if name.is_empty() || chars > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return Err(invalid(format!(
            "name must have 1 to {MAX_NAME_CHARS} characters, none of them a control character"
        )));
    }
    if wanted.scopes.is_empty() {
        return Err(invalid("a token needs at least one scope"));
    }
    let theirs = store.list_tokens(user).await;
    if theirs.map_err(|error| store_error(&error))?.len() >= MOST {
        let full = Phrase::new(PhraseCode::TokensFull, [("n", MOST.to_string())]);
        return Err(NaviError::said(ErrorCode::Forbidden, full));
    }
    let now = Utc::now();
    let expires_at = match wanted.days {
        None => None,
        Some(days) if (1..=MAX_DAYS).contains(&days) => Some(now + TimeDelta::days(days.into())),
        Some(_) => return Err(invalid(format!("days must be 1 to {MAX_DAYS}"))),
    };
    let text = format!("navi_{}", random::fresh());
    let new = NewToken {
        user_id: user,
        name: name.to_owned(),
        hash: SecretHash(digest(&text)),
        scopes: wanted.scopes,
        expires_at,
    };
    let token = store.add_token(new, now).await;
    let token = token.map_err(|error| store_error(&error))?;
    Ok((token, text))
}
