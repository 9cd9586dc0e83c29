//! What lets a person in, and that something does.

use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, PaginatorTrait as _, QueryFilter};
use uuid::Uuid;

use super::StoreError;
use super::entities::{identity, passkey, recovery_code, user};
use super::values::DbText;
use crate::protocol::ids::UserId;

/// By what people come in here now, beside passwords and recovery codes. What is bound to another
/// host, or known to another provider, lets nobody in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaysIn {
    /// Of passkeys; empty where there are none.
    pub host: String,
    /// Who says who somebody is: a provider, a proxy.
    pub issuers: Vec<String>,
}

impl WaysIn {
    pub(super) fn are_by(&self, iss: &str) -> bool {
        self.issuers.iter().any(|issuer| issuer == iss)
    }
}

/// Whether something lets a person in when the passkey or the identity of this id is gone.
pub(super) async fn has_another_way_in(
    db: &impl ConnectionTrait,
    user: UserId,
    ways: &WaysIn,
    gone: Uuid,
) -> Result<bool, StoreError> {
    let password = user::Entity::find_by_id(user.0)
        .filter(user::Column::Password.is_not_null())
        .count(db)
        .await?;
    let codes = recovery_code::Entity::find()
        .filter(recovery_code::Column::UserId.eq(user.0))
        .count(db)
        .await?;
    let passkeys = passkey::Entity::find()
        .filter(passkey::Column::UserId.eq(user.0))
        .filter(passkey::Column::Id.ne(gone))
        .filter(passkey::Column::Host.eq(ways.host.as_str()))
        .count(db)
        .await?;
    let issuers = ways.issuers.iter().map(|it| DbText::from(it.as_str()));
    let identities = identity::Entity::find()
        .filter(identity::Column::UserId.eq(user.0))
        .filter(identity::Column::Id.ne(gone))
        .filter(identity::Column::Iss.is_in(issuers))
        .count(db)
        .await?;
    Ok(password + codes + passkeys + identities > 0)
}
