//! Who people are elsewhere.

use super::identities::{JoinedBy, Joins, Linked, MAX_IDENTITIES, NewIdentity, Unlinked};
use super::people::Changed;
use super::testing::{TestDb, at, on_both};
use super::types::{IdentityKey, Invitation, SecretHash, SignOn, WebLogin};
use super::{Store, StoreError, WaysIn};
use crate::protocol::ids::UserId;
use crate::protocol::people::UserRole;

on_both!(
    an_identity_is_one_persons,
    who_is_new_has_a_name_of_their_own,
    who_is_invited_joins_once,
    an_address_is_one_persons_and_of_another_provider,
    logins_end_with_what_made_them,
);

fn new(iss: &str, sub: &str, address: Option<&str>) -> NewIdentity {
    NewIdentity {
        key: key(iss, sub),
        address: address.map(str::to_owned),
    }
}

fn key(iss: &str, sub: &str) -> IdentityKey {
    IdentityKey {
        iss: iss.to_owned(),
        sub: sub.to_owned(),
    }
}

async fn an_identity_is_one_persons(db: TestDb) {
    let store = db.open().await;
    let local = store.local_user().await.unwrap();
    let ann = store.create_user("Ann", UserRole::User).await.unwrap();
    let link = async |user, sub: &str| {
        let linked = store.link_identity(user, new("https://a", sub, None), at(1));
        linked.await.unwrap()
    };
    let Linked::Done(first) = link(ann.id, "1").await else {
        panic!("it is nobody's");
    };
    assert_eq!(link(ann.id, "1").await, Linked::Done(first.clone()));
    assert_eq!(link(local.id, "1").await, Linked::Taken);
    // Another's word for somebody is another person.
    let other = store.identity(&key("https://b", "1")).await.unwrap();
    assert_eq!(other, None);
    let found = store.identity(&first.key).await.unwrap();
    assert_eq!(found.map(|(user, _)| user.id), Some(ann.id));
    for n in 1..MAX_IDENTITIES {
        assert!(matches!(
            link(ann.id, &format!("n{n}")).await,
            Linked::Done(_)
        ));
    }
    assert_eq!(link(ann.id, "more").await, Linked::TooMany);

    let ways = WaysIn {
        issuers: vec!["https://a".to_owned()],
        ..WaysIn::default()
    };
    let unlink = async |user| {
        let unlinked = store.unlink_identity(user, first.id, None, &ways);
        unlinked.await.unwrap()
    };
    assert_eq!(unlink(local.id).await, Unlinked::Unknown);
    assert_eq!(unlink(ann.id).await, Unlinked::Done(first.clone()));
    assert_eq!(store.identity(&first.key).await.unwrap(), None);
    // Whoever is removed is nobody there, either.
    let removed = store.remove_person(ann.id, at(2)).await.unwrap();
    assert!(matches!(removed, Changed::Done(_)));
    assert_eq!(store.identity(&key("https://a", "n1")).await.unwrap(), None);
    assert_eq!(store.identities(ann.id).await.unwrap(), []);
}

async fn who_is_new_has_a_name_of_their_own(db: TestDb) {
    let store = db.open().await;
    let join = async |name: &str, sub: &str| {
        let new = new("https://a", sub, None);
        let joined = store.join_by_identity(name, Joins::As(UserRole::Guest), new, at(1));
        match joined.await.unwrap() {
            JoinedBy::Joined(user) | JoinedBy::Known(user) => user,
            JoinedBy::NoInvitation => panic!("none was asked for"),
        }
    };
    let anna = join("Anna", "1").await;
    assert_eq!((anna.name.as_str(), anna.role), ("Anna", UserRole::Guest));
    assert_eq!(join("Another", "1").await, anna, "she is here already");
    // With a Cyrillic letter.
    assert_eq!(join("Аnna", "2").await.name, "Аnna 2");
    let long = "x".repeat(64);
    assert_eq!(join(&long, "3").await.name, long);
    assert_eq!(join(&long, "4").await.name, format!("{} 2", &long[2..]));
    assert_eq!(store.people().await.unwrap().len(), 5);
}

async fn who_is_invited_joins_once(db: TestDb) {
    let store = db.open().await;
    let local = store.local_user().await.unwrap().id;
    let invite = async |n: u8, user_id| {
        let invitation = Invitation {
            id: uuid::Uuid::from_u128(n.into()),
            role: UserRole::User,
            user_id,
            made_by: None,
            created_at: at(0),
            expires_at: at(100),
        };
        let hash = SecretHash([n; 32]);
        store.add_invitation(hash, invitation).await.unwrap();
        hash
    };
    let join = async |hash, role, sub: &str, now| {
        let (new, joins) = (new("https://a", sub, None), Joins::Invited { hash, role });
        let joined = store.join_by_identity(sub, joins, new, at(now)).await;
        joined.unwrap()
    };
    let none = JoinedBy::NoInvitation;
    let first = invite(1, None).await;
    assert_eq!(join(first, None, "late", 100).await, none);
    // Several at once, of whom one is first; she herself from two browsers, too.
    let (anna, again, other) = tokio::join!(
        join(first, None, "anna", 1),
        join(first, None, "anna", 1),
        join(first, None, "borys", 1),
    );
    let all = [&anna, &again, &other];
    let joined = all.iter().filter(|it| matches!(it, JoinedBy::Joined(_)));
    assert_eq!(joined.count(), 1, "{all:?}");
    let people = store.people().await.unwrap();
    assert_eq!(people.len(), 2);
    assert_eq!(people[1].user.role, UserRole::User);
    assert_eq!(store.invitations(at(1)).await.unwrap(), []);
    // Who is here uses none up.
    let second = invite(2, None).await;
    let who = people[1].user.name.clone();
    let known = join(second, None, &who, 1).await;
    assert!(matches!(known, JoinedBy::Known(_)), "{known:?}");
    assert_eq!(store.invitations(at(1)).await.unwrap().len(), 1);
    // Groups say more of a role than the invitation does.
    let vira = join(second, Some(UserRole::Guest), "vira", 1).await;
    assert!(matches!(vira, JoinedBy::Joined(user) if user.role == UserRole::Guest));
    // By a link for another password nobody joins, and it is as good as before.
    let reset = invite(3, Some(local)).await;
    assert_eq!(join(reset, None, "olha", 1).await, none);
    assert_eq!(store.invitations(at(1)).await.unwrap().len(), 1);
}

async fn an_address_is_one_persons_and_of_another_provider(db: TestDb) {
    let store = db.open().await;
    let ann = store.create_user("Ann", UserRole::User).await.unwrap();
    let bob = store.create_user("Bob", UserRole::User).await.unwrap();
    let link = async |user, iss: &str, sub: &str, address: &str| {
        let new = new(iss, sub, Some(address));
        store.link_identity(user, new, at(1)).await.unwrap();
    };
    let who = async |address: &str, iss: &str| -> Result<Option<UserId>, StoreError> {
        let found = store.user_of_address(address, iss).await?;
        Ok(found.map(|user| user.id))
    };
    link(ann.id, "https://old", "1", "ann@example.org").await;
    assert_eq!(
        who("ann@example.org", "https://new").await,
        Ok(Some(ann.id))
    );
    assert_eq!(who("bob@example.org", "https://new").await, Ok(None));
    // There it is somebody else who has her address now.
    assert_eq!(who("ann@example.org", "https://old").await, Ok(None));
    link(bob.id, "https://other", "1", "ann@example.org").await;
    assert_eq!(who("ann@example.org", "https://new").await, Ok(None));
}

async fn logins_end_with_what_made_them(db: TestDb) {
    let store = db.open().await;
    let ann = store.create_user("Ann", UserRole::User).await.unwrap();
    let login = async |byte, sign_on: Option<(&str, &str, Option<&str>)>| {
        let sign_on = sign_on.map(|(iss, sub, sid)| SignOn {
            key: key(iss, sub),
            sid: sid.map(str::to_owned),
            id_token: None,
        });
        let login = WebLogin {
            hash: SecretHash([byte; 32]),
            user_id: ann.id,
            created_at: at(0),
            expires_at: at(100),
            agent: None,
            address: None,
            last_used_at: None,
            sign_on,
        };
        store.add_web_login(login).await.unwrap();
    };
    let left = async |store: &Store| {
        let logins = store.web_logins(ann.id, at(1)).await.unwrap();
        let mut left: Vec<u8> = logins.iter().map(|login| login.hash.0[0]).collect();
        left.sort_unstable();
        left
    };
    login(1, None).await;
    login(2, Some(("https://a", "1", Some("s1")))).await;
    login(3, Some(("https://a", "1", Some("s2")))).await;
    login(4, Some(("https://a", "1", None))).await;
    login(5, Some(("https://a", "2", Some("s3")))).await;
    login(6, Some(("proxy", "1", None))).await;
    let (owner, _) = store
        .web_login(SecretHash([6; 32]), at(1))
        .await
        .unwrap()
        .unwrap();
    assert!(owner.by_proxy);
    let end = async |sub, sid| store.end_sign_on("https://a", sub, sid).await.unwrap();
    assert_eq!(end(None, None).await, 0);
    assert_eq!(end(None, Some("s3")).await, 1);
    assert_eq!(left(&store).await, [1, 2, 3, 4, 6]);
    // Of which session the fourth is, nobody said.
    assert_eq!(end(Some("1"), Some("s1")).await, 2);
    assert_eq!(left(&store).await, [1, 3, 6]);
    assert_eq!(end(Some("1"), None).await, 1);
    let Linked::Done(linked) = store
        .link_identity(ann.id, new("proxy", "1", None), at(1))
        .await
        .unwrap()
    else {
        panic!("it is nobody's");
    };
    login(7, Some(("proxy", "1", None))).await;
    let but = Some(SecretHash([7; 32]));
    let none = WaysIn::default();
    let unlinked = store.unlink_identity(ann.id, linked.id, but, &none);
    assert!(matches!(unlinked.await.unwrap(), Unlinked::Done(_)));
    assert_eq!(left(&store).await, [1, 7]);
}
