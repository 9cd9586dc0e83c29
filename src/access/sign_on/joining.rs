//! Who comes in by another's word: somebody who is known here, somebody new, or nobody.

use chrono::Utc;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::people::{Recorded, UserRole};
use navi_actors::store::{
    Changed, IdentityKey, JoinedBy, Joins, Linked, NewIdentity, SecretHash, User,
};

use super::claims::Said;
use crate::access::people::{no_person, role_name};
use crate::access::sign_in::no_invitation;
use crate::access::{Access, Visitor};

/// Somebody of whom another says who they are.
#[derive(Debug)]
pub(super) struct Comer<'a> {
    pub(super) key: IdentityKey,
    pub(super) said: &'a Said,
    /// What their groups make them, where they say that.
    pub(super) role: Option<UserRole>,
    /// What the record calls whose word it is.
    pub(super) way: &'a str,
    /// By which they join, where they are not here yet.
    pub(super) invitation: Option<SecretHash>,
}

impl Access {
    /// Whose account this is, as what their groups make them: known, linked by an address where
    /// that was switched on, or new where that is let in, or they were invited.
    pub(super) async fn person_of(
        &self,
        comer: Comer<'_>,
        visitor: &Visitor,
    ) -> Result<User, NaviError> {
        let (role, way) = (comer.role, comer.way);
        let wanted = comer.key.clone();
        let known = self.on_runtime(async move |store| store.identity(&wanted).await);
        let user = match known.await? {
            Some((user, identity)) => {
                let address = comer.said.address.clone();
                let noted = self.on_runtime(async move |store| {
                    store.note_identity(identity.id, address, Utc::now()).await
                });
                noted.await?;
                user
            }
            None => self.unknown(comer, visitor).await?,
        };
        match role {
            Some(role) if role != user.role => self.made(user, role, way, visitor).await,
            _ => Ok(user),
        }
    }

    async fn unknown(&self, comer: Comer<'_>, visitor: &Visitor) -> Result<User, NaviError> {
        let Comer {
            key,
            said,
            role,
            way,
            invitation,
        } = comer;
        let new = NewIdentity {
            address: said.address.clone(),
            key,
        };
        let joins = match (invitation, self.sign_on.settings.join) {
            (Some(hash), _) => Some(Joins::Invited { hash, role }),
            (None, Some(usual)) => Some(Joins::As(role.unwrap_or(usual))),
            (None, None) => None,
        };
        if let Some(user) = self.by_address(&new).await? {
            let id = user.id;
            let linked =
                self.on_runtime(async move |store| store.link_identity(id, new, Utc::now()).await);
            if matches!(linked.await?, Linked::Done(_)) {
                let about = Some(format!("{way}, by a verified address"));
                let whose = Some(user.id);
                self.note(Recorded::IdentityLinked, whose, about, visitor.clone())
                    .await;
                return Ok(user);
            }
        } else if let Some(joins) = joins {
            let name = said.name.clone();
            let joined = self.on_runtime(async move |store| {
                store.join_by_identity(&name, joins, new, Utc::now()).await
            });
            let user = match joined.await? {
                JoinedBy::Joined(user) => user,
                JoinedBy::Known(user) => return Ok(user),
                JoinedBy::NoInvitation => {
                    return Err(self.failed(way, no_invitation(), visitor).await);
                }
            };
            let about = match joins {
                Joins::As(_) => way.to_owned(),
                Joins::Invited { .. } => format!("{way}, by an invitation"),
            };
            let whose = Some(user.id);
            self.note(Recorded::Joined, whose, Some(about), visitor.clone())
                .await;
            return Ok(user);
        }
        let why = "nobody here is known by this account";
        Err(self.refused(&said.name, way, why, visitor.clone()).await)
    }

    /// Whom another provider knows by the same verified address: where that was switched on, and
    /// no admin, so that an address opens nothing but what is somebody's own.
    async fn by_address(&self, new: &NewIdentity) -> Result<Option<User>, NaviError> {
        let provider = self.sign_on.provider.as_ref();
        let links = provider
            .is_some_and(|it| it.settings().link_by_email && it.settings().issuer == new.key.iss);
        let Some(address) = new.address.clone().filter(|_| links) else {
            return Ok(None);
        };
        let iss = new.key.iss.clone();
        let found = self.on_runtime(async move |store| store.user_of_address(&address, &iss).await);
        Ok(found.await?.filter(|user| user.role < UserRole::Admin))
    }

    /// What their groups make of somebody, less than before, too; there is always an admin.
    async fn made(
        &self,
        user: User,
        role: UserRole,
        way: &str,
        visitor: &Visitor,
    ) -> Result<User, NaviError> {
        let id = user.id;
        let changed = self.on_runtime(async move |store| store.set_role(id, role).await);
        let (what, user) = match changed.await? {
            Changed::Done(user) => (Recorded::RoleChanged, user),
            Changed::LastAdmin => (Recorded::RoleKept, user),
            Changed::Unknown => return Err(no_person()),
        };
        self.ended();
        let about = format!("{}: {} ({way})", user.name, role_name(role));
        self.note(what, Some(user.id), Some(about), visitor.clone())
            .await;
        Ok(user)
    }

    /// Somebody who is known there may not come in here.
    pub(super) async fn refused(
        &self,
        name: &str,
        way: &str,
        why: &str,
        visitor: Visitor,
    ) -> NaviError {
        self.note_way(
            Recorded::SignInFailed,
            Some(name.to_owned()),
            format!("{way}: {why}"),
            visitor,
        )
        .await;
        NaviError::new(
            ErrorCode::SignOnRefused,
            format!("{way} knows this person, but {why}"),
        )
    }
}
