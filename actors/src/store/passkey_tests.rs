//! What lets people in without a password.

use uuid::Uuid;

use super::testing::{TestDb, at, on_both};
use super::types::{Invitation, SecretHash};
use super::{
    Accepted, AddedPasskey, Changed, Credentials, IdentityKey, NewIdentity, Passkey,
    RemovedPasskey, Store, Unlinked, WaysIn,
};
use crate::protocol::ids::UserId;
use crate::protocol::people::UserRole;

on_both!(
    passkeys_are_of_one_person_each,
    the_last_way_in_stays,
    a_passkey_and_an_account_elsewhere_stand_in_for_each_other,
    passkeys_go_with_who_is_removed_or_chooses_another_password,
);

const HOST: &str = "home.example";
const ISSUER: &str = "https://login.example";

fn ways(issuers: &[&str]) -> WaysIn {
    WaysIn {
        host: HOST.to_owned(),
        issuers: issuers.iter().map(|it| (*it).to_owned()).collect(),
    }
}

fn new(user: UserId, n: u128) -> Passkey {
    Passkey {
        id: Uuid::from_u128(n),
        user_id: user,
        handle: Uuid::from_u128(99),
        host: HOST.to_owned(),
        name: format!("key {n}"),
        credential: format!("{{\"counter\":{n}}}"),
        created_at: at(i64::try_from(n).unwrap()),
        last_used_at: None,
    }
}

async fn add(store: &Store, user: UserId, n: u8) -> AddedPasskey {
    let (hash, passkey) = (SecretHash([n; 32]), new(user, n.into()));
    store.add_passkey(hash, passkey, 2).await.unwrap()
}

async fn ann(store: &Store) -> UserId {
    store.create_user("Ann", UserRole::User).await.unwrap().id
}

async fn passkeys_are_of_one_person_each(db: TestDb) {
    let store = db.open().await;
    let (local, ann) = (store.local_user().await.unwrap().id, ann(&store).await);
    assert_eq!(add(&store, ann, 1).await, AddedPasskey::Done);
    assert_eq!(add(&store, local, 1).await, AddedPasskey::Known);
    assert_eq!(add(&store, ann, 2).await, AddedPasskey::Done);
    assert_eq!(add(&store, ann, 3).await, AddedPasskey::TooMany);
    assert_eq!(add(&store, local, 3).await, AddedPasskey::Done);
    let nobody = UserId(Uuid::from_u128(5));
    assert_eq!(add(&store, nobody, 4).await, AddedPasskey::NobodyThere);
    assert_eq!(
        store.passkeys(ann).await.unwrap(),
        [new(ann, 1), new(ann, 2)]
    );
    let people = store.people().await.unwrap();
    let counts: Vec<u64> = people.iter().map(|it| it.passkeys).collect();
    assert_eq!(counts, [1, 2]);

    let (whose, found) = store.passkey(SecretHash([1; 32])).await.unwrap().unwrap();
    assert_eq!((whose.id, found.id), (ann, Uuid::from_u128(1)));
    assert_eq!(store.passkey(SecretHash([9; 32])).await.unwrap(), None);
    // As it was a moment ago it is used once.
    let used = |to: &str| store.note_passkey_use(&found, to.to_owned(), at(50));
    assert!(used("second").await.unwrap());
    assert!(!used("third").await.unwrap());
    let now = &store.passkeys(ann).await.unwrap()[0];
    assert_eq!(
        (now.credential.as_str(), now.last_used_at),
        ("second", Some(at(50)))
    );

    let rename = |who, id| store.rename_passkey(who, Uuid::from_u128(id), "phone".to_owned());
    assert!(!rename(local, 1).await.unwrap());
    assert!(rename(ann, 1).await.unwrap());
    let here = ways(&[]);
    let gone = store.remove_passkey(local, Uuid::from_u128(1), &here);
    assert_eq!(gone.await.unwrap(), RemovedPasskey::Unknown);
    let gone = store.remove_passkey(ann, Uuid::from_u128(1), &here);
    let done = RemovedPasskey::Done("phone".to_owned());
    assert_eq!(gone.await.unwrap(), done);
}

async fn the_last_way_in_stays(db: TestDb) {
    let store = db.open().await;
    let ann = ann(&store).await;
    add(&store, ann, 1).await;
    let here = ways(&[]);
    let remove = |n| store.remove_passkey(ann, Uuid::from_u128(n), &here);
    assert_eq!(remove(1).await.unwrap(), RemovedPasskey::LastWayIn);
    // One of another host is no way in, and none that is missed.
    let elsewhere = Passkey {
        host: "old.example".to_owned(),
        ..new(ann, 2)
    };
    let added = store.add_passkey(SecretHash([2; 32]), elsewhere, 2).await;
    assert_eq!(added.unwrap(), AddedPasskey::Done);
    assert_eq!(remove(1).await.unwrap(), RemovedPasskey::LastWayIn);
    assert!(matches!(remove(2).await.unwrap(), RemovedPasskey::Done(_)));
    add(&store, ann, 3).await;
    assert!(matches!(remove(3).await.unwrap(), RemovedPasskey::Done(_)));
    store
        .set_recovery_codes(ann, &[SecretHash([7; 32])])
        .await
        .unwrap();
    assert!(matches!(remove(1).await.unwrap(), RemovedPasskey::Done(_)));
}

async fn a_passkey_and_an_account_elsewhere_stand_in_for_each_other(db: TestDb) {
    let store = db.open().await;
    let ann = ann(&store).await;
    add(&store, ann, 1).await;
    let passkey = Uuid::from_u128(1);
    let new = NewIdentity {
        key: IdentityKey {
            iss: ISSUER.to_owned(),
            sub: "ann".to_owned(),
        },
        address: None,
    };
    store.link_identity(ann, new, at(1)).await.unwrap();
    let linked = store.identities(ann).await.unwrap()[0].clone();
    // A provider that is none any more lets nobody in.
    for issuers in [&[][..], &["https://another.example"], &["proxy"]] {
        let removed = store.remove_passkey(ann, passkey, &ways(issuers)).await;
        assert_eq!(removed.unwrap(), RemovedPasskey::LastWayIn, "{issuers:?}");
    }
    let here = ways(&[ISSUER]);
    let unlink = |ways| store.unlink_identity(ann, linked.id, None, ways);
    let elsewhere = WaysIn {
        host: "new.example".to_owned(),
        ..here.clone()
    };
    assert_eq!(unlink(&elsewhere).await.unwrap(), Unlinked::LastWayIn);
    // Of the two that do, one may go.
    let both = (
        store.remove_passkey(ann, passkey, &here).await.unwrap(),
        unlink(&here).await.unwrap(),
    );
    let done = RemovedPasskey::Done("key 1".to_owned());
    assert_eq!(both, (done, Unlinked::LastWayIn));
    add(&store, ann, 2).await;
    assert!(matches!(unlink(&here).await.unwrap(), Unlinked::Done(_)));
    let last = store.remove_passkey(ann, Uuid::from_u128(2), &here).await;
    assert_eq!(last.unwrap(), RemovedPasskey::LastWayIn);
}

async fn passkeys_go_with_who_is_removed_or_chooses_another_password(db: TestDb) {
    let store = db.open().await;
    let ann = ann(&store).await;
    add(&store, ann, 1).await;
    let reset = Invitation {
        id: Uuid::from_u128(8),
        role: UserRole::User,
        user_id: Some(ann),
        made_by: None,
        created_at: at(0),
        expires_at: at(100),
    };
    let hash = SecretHash([8; 32]);
    store.add_invitation(hash, reset).await.unwrap();
    assert_eq!(store.count_passkeys(ann).await.unwrap(), 1);
    let chosen = Credentials {
        name: "Ann".to_owned(),
        name_key: "ann".to_owned(),
        password: "$argon2id$".to_owned(),
    };
    let accepted = store.accept_invitation(hash, chosen, at(1)).await.unwrap();
    assert!(matches!(accepted, Accepted::Renewed(_)));
    assert_eq!(store.count_passkeys(ann).await.unwrap(), 0);

    add(&store, ann, 2).await;
    let removed = store.remove_person(ann, at(2)).await.unwrap();
    assert!(matches!(removed, Changed::Done(_)));
    assert_eq!(store.count_passkeys(ann).await.unwrap(), 0);
    assert_eq!(add(&store, ann, 3).await, AddedPasskey::NobodyThere);
}
