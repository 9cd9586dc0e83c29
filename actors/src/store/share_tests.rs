//! Who reaches a session, and for how long.

use chrono::{TimeDelta, Utc};

use super::testing::{TestDb, Writer, at, on_both};
use super::types::{Found, LinkRow, Listed, SecretHash};
use super::{Added, Store, StoreError};
use crate::domain::sharing::{By, MAX_LINKS, Reach};
use crate::protocol::ids::{LinkId, SessionId, UserId};
use crate::protocol::people::UserRole;

on_both!(
    people_reach_what_is_shared_with_them,
    links_reach_one_session_until_they_expire,
    nobody_reaches_what_was_somebodys_who_is_gone,
);

async fn reach(store: &Store, by: By, session: SessionId) -> Option<Reach> {
    match store.reach(by, session).await {
        Ok(Found { reach, .. }) => Some(reach),
        Err(StoreError::SessionNotFound) => None,
        Err(error) => panic!("{error}"),
    }
}

async fn people_reach_what_is_shared_with_them(db: TestDb) {
    let store = db.open().await;
    let (writer, other) = (Writer::new(&store).await, Writer::new(&store).await);
    let owner = store.session_owner_user(writer.id).await.unwrap();
    let olha = store.create_user("Olha", UserRole::User).await.unwrap().id;
    assert_eq!(
        reach(&store, owner.into(), writer.id).await,
        Some(Reach::Owns)
    );
    assert_eq!(reach(&store, olha.into(), writer.id).await, None);
    let add = async || {
        store
            .add_session_person(writer.id, olha, at(1))
            .await
            .unwrap()
    };
    assert_eq!(add().await, Added::Now);
    assert_eq!(add().await, Added::Before);
    assert_eq!(
        reach(&store, olha.into(), writer.id).await,
        Some(Reach::TakesPart)
    );
    assert_eq!(reach(&store, olha.into(), other.id).await, None);
    let list = store.list_sessions(olha, Listed::Current).await.unwrap();
    assert_eq!(list.iter().map(|it| it.id).collect::<Vec<_>>(), [writer.id]);
    let shared = store.shared(writer.id).await.unwrap();
    assert_eq!(shared.owner.id, owner);
    assert_eq!(shared.people[0].name, "Olha");
    assert!(store.remove_session_person(writer.id, olha).await.unwrap());
    assert!(!store.remove_session_person(writer.id, olha).await.unwrap());
    assert_eq!(reach(&store, olha.into(), writer.id).await, None);
    let list = store.list_sessions(olha, Listed::Current).await.unwrap();
    assert!(list.is_empty());
}

async fn links_reach_one_session_until_they_expire(db: TestDb) {
    let store = db.open().await;
    let (writer, other) = (Writer::new(&store).await, Writer::new(&store).await);
    let begin = Utc::now();
    let new = |days| LinkRow {
        id: LinkId::new(),
        created_at: begin,
        expires_at: begin + TimeDelta::days(days),
    };
    let link = new(7);
    let hash = SecretHash([1; 32]);
    let added = store.add_session_link(hash, writer.id, link).await;
    assert_eq!(added.unwrap(), Added::Now);
    let by = By::Link(link.id);
    assert_eq!(reach(&store, by, writer.id).await, Some(Reach::Looks));
    assert_eq!(reach(&store, by, other.id).await, None);
    let at = |days| begin + TimeDelta::days(days);
    let found = store.session_link(hash, at(6)).await.unwrap();
    assert_eq!(found.map(|(_, session)| session), Some(writer.id));
    assert!(store.session_link(hash, at(7)).await.unwrap().is_none());
    let wrong = SecretHash([2; 32]);
    assert!(store.session_link(wrong, at(0)).await.unwrap().is_none());
    // Whoever watches is asked about for as long as they do.
    let watched = [(by, writer.id), (by, other.id)];
    let reached = store.reached(&watched, at(6)).await.unwrap();
    assert_eq!(reached.len(), 1);
    assert!(store.reached(&watched, at(7)).await.unwrap().is_empty());

    for n in 1..MAX_LINKS {
        let hash = SecretHash([u8::try_from(n).unwrap() + 10; 32]);
        let added = store.add_session_link(hash, writer.id, new(1)).await;
        assert_eq!(added.unwrap(), Added::Now);
    }
    let one_more = store.add_session_link(SecretHash([99; 32]), writer.id, new(1));
    assert_eq!(one_more.await.unwrap(), Added::Full);
    store.purge_session_links(at(2)).await.unwrap();
    let left = store.session_links(writer.id, at(0)).await.unwrap();
    assert_eq!(left.len(), 1);
    assert!(!store.remove_session_link(other.id, link.id).await.unwrap());
    assert!(store.remove_session_link(writer.id, link.id).await.unwrap());
    assert_eq!(reach(&store, by, writer.id).await, None);
}

async fn nobody_reaches_what_was_somebodys_who_is_gone(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let owner = store.session_owner_user(writer.id).await.unwrap();
    let admin = store.create_user("Vira", UserRole::Admin).await.unwrap().id;
    let olha = store.create_user("Olha", UserRole::User).await.unwrap().id;
    let hanna = store.create_user("Hanna", UserRole::User).await.unwrap().id;
    for person in [admin, olha, hanna] {
        store
            .add_session_person(writer.id, person, at(1))
            .await
            .unwrap();
    }
    store.remove_person(olha, at(2)).await.unwrap();
    let left = async |store: &Store| -> Vec<UserId> {
        let shared = store.shared(writer.id).await.unwrap();
        shared.people.iter().map(|person| person.id).collect()
    };
    let mut expected = vec![admin, hanna];
    expected.sort_unstable();
    let mut found = left(&store).await;
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(reach(&store, olha.into(), writer.id).await, None);
    store.remove_person(owner, at(3)).await.unwrap();
    assert!(left(&store).await.is_empty());
    assert_eq!(reach(&store, hanna.into(), writer.id).await, None);
}
