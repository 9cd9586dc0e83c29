//! How much each person may have of what all share.

use tokio::time::timeout;

use super::Engine;
use crate::people::Turn;
use crate::protocol::error::{ErrorCode, NaviError, invalid};
use crate::protocol::ids::UserId;
use crate::protocol::limits::{LimitsChange, LimitsInfo, PersonLimits};
use crate::root::store_error;
use crate::store::{ANSWER_LIMIT, StoreError};

impl Engine {
    /// What a person has at the most; none where there is one user.
    #[must_use]
    pub fn limits(&self, user: UserId) -> Option<PersonLimits> {
        self.services.people.limits(user)
    }

    /// A turn for a large body of a request, once there is one. It is over when this is dropped.
    pub async fn large_body(&self, user: UserId) -> Turn {
        self.services.people.large_body(user).await
    }

    /// How these people stand to what is limited, in their order; nothing where there is one user.
    /// Their tabs are the door's to count.
    ///
    /// # Errors
    /// `store_unavailable`.
    pub async fn limits_of(&self, users: Vec<UserId>) -> Result<Vec<LimitsInfo>, NaviError> {
        let people = self.services.people.clone();
        self.stored(async move |_| people.limits_of(&users).await)
            .await
    }

    /// Gives a person limits of their own, or takes them back. They hold for what begins from now
    /// on.
    ///
    /// # Errors
    /// `invalid_field`: nobody can have these; `person_not_found`; `store_unavailable`.
    pub async fn change_limits(&self, user: UserId, change: LimitsChange) -> Result<(), NaviError> {
        check_limits(change)?;
        let people = self.services.people.clone();
        // Done once begun, whether who asked is still there or not: what the database has is what
        // holds here.
        let changing = self
            .runtime
            .spawn(async move { people.change_limits(user, change).await });
        let changed = match timeout(ANSWER_LIMIT, changing).await {
            Ok(Ok(changed)) => changed,
            Ok(Err(error)) => Err(StoreError::Unavailable(error.to_string())),
            Err(_) => Err(StoreError::Unavailable("no answer in time".to_owned())),
        };
        if changed.map_err(|error| store_error(&error))? {
            return Ok(());
        }
        let unknown = "there is no such person";
        Err(NaviError::new(ErrorCode::PersonNotFound, unknown))
    }
}

/// Whether somebody can have these.
///
/// # Errors
/// `invalid_field`: which of them nobody can have.
pub fn check_limits(change: LimitsChange) -> Result<(), NaviError> {
    change.check().map_err(invalid)
}
