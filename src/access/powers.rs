//! What an admin grants: of what is powerful, to a person or to all users; of what all share, how
//! much a person has.

use std::collections::{BTreeSet, HashMap};

use navi_actors::protocol::error::{NaviError, invalid};
use navi_actors::protocol::limits::LimitsChange;
use navi_actors::protocol::people::Recorded;
use navi_actors::protocol::powers::Power;
use navi_actors::store::{Holder, MAX_POWERS};

use super::people::no_person;
use super::{Access, Principal, Visitor};

/// As much of what was granted as a line of the record has.
const ABOUT_CHARS: usize = 500;

impl Access {
    /// What everybody was granted.
    ///
    /// # Errors
    /// There are no accounts, or the store cannot be used.
    pub(crate) async fn granted(&self) -> Result<HashMap<Holder, BTreeSet<Power>>, NaviError> {
        self.need_accounts()?;
        self.on_runtime(async move |store| store.granted().await)
            .await
    }

    /// Puts these powers in the place of those that somebody was granted before. What was taken
    /// back holds for the next call of a tool.
    ///
    /// # Errors
    /// There are no accounts or no such person, or these are too many.
    pub(crate) async fn grant(
        &self,
        by: &Principal,
        holder: Holder,
        powers: BTreeSet<Power>,
        visitor: Visitor,
    ) -> Result<(), NaviError> {
        self.need_accounts()?;
        check_powers(&powers)?;
        let whose = match holder {
            Holder::Users => "users".to_owned(),
            Holder::Person(user) => self.account(user).await?.user.name,
        };
        let named: Vec<&str> = powers.iter().map(Power::as_str).collect();
        let about = format!("{whose}: {}", named.join(", "));
        let about = about.chars().take(ABOUT_CHARS).collect();
        let granted = self.on_runtime(async move |store| store.grant(holder, powers).await);
        if !granted.await? {
            return Err(no_person());
        }
        self.note(Recorded::PowersGranted, Some(by.user), Some(about), visitor)
            .await;
        Ok(())
    }

    /// Notes that a person's own limits are others now.
    pub(crate) async fn note_limits(
        &self,
        by: &Principal,
        whose: &str,
        change: LimitsChange,
        visitor: Visitor,
    ) {
        let changed = change.told().map(|(name, limit)| match limit {
            Some(limit) => format!("{name} {limit}"),
            None => format!("{name} as all"),
        });
        let changed: Vec<String> = changed.collect();
        let about = Some(format!("{whose}: {}", changed.join(", ")));
        self.note(Recorded::LimitsChanged, Some(by.user), about, visitor)
            .await;
    }
}

/// Whether somebody can be granted these.
///
/// # Errors
/// `invalid_field`: they are too many.
pub(crate) fn check_powers(powers: &BTreeSet<Power>) -> Result<(), NaviError> {
    if powers.len() > MAX_POWERS {
        return Err(invalid(format!(
            "at most {MAX_POWERS} can be granted one by one; grant whole kinds"
        )));
    }
    Ok(())
}
