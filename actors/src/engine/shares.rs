//! What a door asks of sharing: who takes part in a session, and links by which others look.

use chrono::TimeDelta;

use super::Engine;
use crate::domain::names;
use crate::domain::session::command::Command;
use crate::domain::sharing::{By, MAX_LINK_DAYS, MAX_LINKS, MAX_PEOPLE};
use crate::protocol::error::{ErrorCode, NaviError, invalid};
use crate::protocol::ids::{LinkId, SessionId, UserId};
use crate::protocol::people::PersonRef;
use crate::protocol::session::{SessionSummary, Shared};
use crate::root::OpenSession;
use crate::services::now;
use crate::store::{Added, LinkRow, SecretHash};

impl Engine {
    /// Whose a session is, and who takes part.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn session_people(
        &self,
        user: UserId,
        session: SessionId,
    ) -> Result<Shared, NaviError> {
        self.find(OpenSession::as_participant(user, session))
            .await?;
        self.stored(async move |store| store.shared(session).await)
            .await
    }

    /// Has somebody take part. From the first of them on nothing that is remembered of its owner
    /// is used in it any more, for good.
    ///
    /// # Errors
    /// `forbidden`: it is another's; `person_not_found`: nobody is called so; `session_busy`: a run
    /// goes, and it was never shared before; `invalid_field`: it is there for one answer, or as
    /// many take part as may.
    pub async fn add_session_person(
        &self,
        user: UserId,
        session: SessionId,
        name: &str,
    ) -> Result<PersonRef, NaviError> {
        self.need_accounts()?;
        let owner = self.find(OpenSession::as_owner(user, session)).await?;
        let _turn = self.services.sharing.take(session).await;
        let key = names::key(name);
        let found = self.stored(async move |store| store.user_by_name(&key).await);
        let Some((person, _)) = found.await? else {
            return Err(no_person());
        };
        if person.id == owner {
            return Err(invalid("this conversation is yours already"));
        }
        // What is remembered leaves it before anybody comes in.
        self.tell_people(session, owner).await?;
        let added = self
            .stored(async move |store| store.add_session_person(session, person.id, now()).await);
        if added.await? == Added::Full {
            return Err(invalid(format!(
                "at most {MAX_PEOPLE} people take part in a conversation"
            )));
        }
        self.tell_people(session, owner).await?;
        Ok(PersonRef {
            id: person.id,
            name: person.name,
        })
    }

    /// Whose a session is, for whoever sees it.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn owner_of(&self, by: By, session: SessionId) -> Result<UserId, NaviError> {
        self.find(OpenSession::as_onlooker(by, session)).await
    }

    /// Takes somebody out. What they have open of it ends.
    ///
    /// # Errors
    /// `forbidden`: it is another's; `person_not_found`: they do not take part.
    pub async fn remove_session_person(
        &self,
        user: UserId,
        session: SessionId,
        person: UserId,
    ) -> Result<(), NaviError> {
        let owner = self.find(OpenSession::as_owner(user, session)).await?;
        let _turn = self.services.sharing.take(session).await;
        self.take_out(session, owner, person).await
    }

    /// Goes out of another's session.
    ///
    /// # Errors
    /// `session_not_found`; `invalid_field` where it is their own.
    pub async fn leave_session(&self, user: UserId, session: SessionId) -> Result<(), NaviError> {
        let open = OpenSession::as_participant(user, session);
        let owner = self.find(open).await?;
        let _turn = self.services.sharing.take(session).await;
        if owner == user {
            return Err(invalid(
                "this conversation is yours: delete it, or take the others out of it",
            ));
        }
        self.take_out(session, owner, user).await
    }

    async fn take_out(
        &self,
        session: SessionId,
        owner: UserId,
        person: UserId,
    ) -> Result<(), NaviError> {
        let removed =
            self.stored(async move |store| store.remove_session_person(session, person).await);
        let removed = removed.await?;
        if !removed {
            // The session has them yet where what took them out came no further than the store.
            let known = self.standing(owner, session).await?.summary;
            if known.others().all(|it| it != person) {
                return Err(no_person());
            }
        }
        self.onlookers().end(By::Person(person), session);
        self.hub().session_left(session, person);
        self.tell_people(session, owner).await
    }

    /// The sessions of others in which somebody takes part.
    ///
    /// # Errors
    /// What the store says.
    pub async fn shared_with(&self, person: UserId) -> Result<Vec<SessionId>, NaviError> {
        self.stored(async move |store| store.shared_with(person).await)
            .await
    }

    /// Tells these sessions that somebody who took part is gone.
    pub async fn tell_gone(&self, person: UserId, sessions: Vec<SessionId>) {
        for session in sessions {
            let _turn = self.services.sharing.take(session).await;
            self.onlookers().end(By::Person(person), session);
            let owner = self.stored(async move |store| store.session_owner_user(session).await);
            let told = match owner.await {
                Ok(owner) => self.tell_people(session, owner).await,
                Err(error) => Err(error),
            };
            if let Err(error) = told {
                tracing::debug!(%session, %error, "who takes part could not be told");
            }
        }
    }

    /// Tells a session who is in it, as the store has it.
    async fn tell_people(&self, session: SessionId, owner: UserId) -> Result<(), NaviError> {
        let shared = self.stored(async move |store| store.shared(session).await);
        let share = Command::Share(shared.await?);
        let open = OpenSession::as_owner(owner, session);
        self.request::<SessionSummary>(open, share).await.map(drop)
    }

    /// The links to a session that are good yet.
    ///
    /// # Errors
    /// `session_not_found`; `forbidden`: it is another's.
    pub async fn session_links(
        &self,
        user: UserId,
        session: SessionId,
    ) -> Result<Vec<LinkRow>, NaviError> {
        self.find(OpenSession::as_owner(user, session)).await?;
        self.stored(async move |store| store.session_links(session, now()).await)
            .await
    }

    /// Makes a link of a secret with this hash, good for so many days.
    ///
    /// # Errors
    /// `forbidden`: it is another's; `invalid_field`: too many days, or too many links.
    pub async fn add_session_link(
        &self,
        user: UserId,
        session: SessionId,
        hash: SecretHash,
        days: u32,
    ) -> Result<LinkRow, NaviError> {
        self.need_accounts()?;
        if !(1..=MAX_LINK_DAYS).contains(&days) {
            return Err(invalid(format!("days must be 1 to {MAX_LINK_DAYS}")));
        }
        self.find(OpenSession::as_owner(user, session)).await?;
        let at = now();
        let link = LinkRow {
            id: LinkId::new(),
            created_at: at,
            expires_at: at + TimeDelta::days(days.into()),
        };
        let added =
            self.stored(async move |store| store.add_session_link(hash, session, link).await);
        if added.await? == Added::Full {
            return Err(invalid(format!(
                "there are {MAX_LINKS} links to this conversation already; end one first"
            )));
        }
        Ok(link)
    }

    /// Ends a link, and what is open by it.
    ///
    /// # Errors
    /// `forbidden`: it is another's; `not_found` where there is no such link.
    pub async fn remove_session_link(
        &self,
        user: UserId,
        session: SessionId,
        link: LinkId,
    ) -> Result<(), NaviError> {
        self.find(OpenSession::as_owner(user, session)).await?;
        let removed =
            self.stored(async move |store| store.remove_session_link(session, link).await);
        if !removed.await? {
            return Err(NaviError::new(
                ErrorCode::NotFound,
                "there is no such link; it may have ended already",
            ));
        }
        self.onlookers().end(By::Link(link), session);
        Ok(())
    }

    fn need_accounts(&self) -> Result<(), NaviError> {
        if self.services.people.are_several() {
            return Ok(());
        }
        Err(NaviError::new(
            ErrorCode::NotFound,
            "there are no accounts here, and nobody to share with; NAVI_ACCOUNTS=on makes some",
        ))
    }
}

fn no_person() -> NaviError {
    NaviError::new(
        ErrorCode::PersonNotFound,
        "there is no such person here, or they do not take part",
    )
}
