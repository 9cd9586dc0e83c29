//! Who may come in.

use chrono::TimeDelta;

use super::testing::{TestDb, at, on_both};
use super::types::{ApiToken, KeyOwner, NewToken, SecretHash, WebLogin};
use super::{Credentials, KeptLogins, StoreError};
use crate::protocol::ids::UserId;
use crate::protocol::people::{Scopes, UserRole};

on_both!(
    tokens_let_their_user_in,
    logins_expire,
    another_password_ends_the_other_logins_with_it,
);

async fn tokens_let_their_user_in(db: TestDb) {
    let store = db.open().await;
    let local = store.local_user().await.unwrap();
    assert_eq!(local.role, UserRole::Admin);
    let other = store.create_user("Ann", UserRole::User).await.unwrap();
    let (hash, unknown) = (SecretHash([1; 32]), SecretHash([2; 32]));
    let new = |user_id, name: &str| NewToken {
        user_id,
        name: name.to_owned(),
        hash,
        scopes: Scopes::ALL,
        expires_at: None,
    };
    let token = store
        .add_token(new(local.id, "backup script"), at(0))
        .await
        .unwrap();
    let twice = store.add_token(new(other.id, "same"), at(0)).await;
    assert!(matches!(twice, Err(StoreError::Corrupt(_))), "{twice:?}");

    let used = async |seconds| {
        let owner = store.token_owner(hash, at(seconds)).await.unwrap();
        let of_local = KeyOwner {
            user: local.id,
            role: UserRole::Admin,
            scopes: Scopes::ALL,
            by_proxy: false,
        };
        assert_eq!(owner, Some(of_local));
        store.list_tokens(local.id).await.unwrap()[0].last_used_at
    };
    assert_eq!(used(10).await, Some(at(10)));
    assert_eq!(used(69).await, Some(at(10)), "a write a minute is enough");
    assert_eq!(used(70).await, Some(at(70)));
    let nobody = store.token_owner(unknown, at(80)).await.unwrap();
    assert_eq!(nobody, None);

    let listed = ApiToken {
        last_used_at: Some(at(70)),
        ..token.clone()
    };
    assert_eq!(store.list_tokens(local.id).await.unwrap(), [listed]);
    assert_eq!(store.list_tokens(other.id).await.unwrap(), []);
    assert!(!store.delete_token(other.id, token.id).await.unwrap());
    assert!(store.delete_token(local.id, token.id).await.unwrap());
    let nobody = store.token_owner(hash, at(80)).await.unwrap();
    assert_eq!(nobody, None);
}

fn login(user_id: UserId, byte: u8, expires: i64) -> WebLogin {
    WebLogin {
        hash: SecretHash([byte; 32]),
        user_id,
        created_at: at(0),
        expires_at: at(expires),
        agent: None,
        address: None,
        last_used_at: None,
        sign_on: None,
    }
}

async fn logins_expire(db: TestDb) {
    let store = db.open().await;
    let local = store.local_user().await.unwrap();
    for (byte, expires) in [(1, 10), (2, 20), (3, 30)] {
        let login = login(local.id, byte, expires);
        store.add_web_login(login).await.unwrap();
    }
    let who = async |byte, now| {
        let found = store.web_login(SecretHash([byte; 32]), now).await;
        found.unwrap().map(|(owner, _)| owner.user)
    };
    let just_before = at(10) - TimeDelta::microseconds(1);
    assert_eq!(who(1, just_before).await, Some(local.id));
    assert_eq!(who(1, at(10)).await, None);
    assert_eq!(who(9, at(1)).await, None);

    store.delete_web_login(SecretHash([3; 32])).await.unwrap();
    assert_eq!(who(3, at(1)).await, None);
    assert_eq!(store.purge_web_logins(at(10)).await.unwrap(), 1);
    assert_eq!(who(2, at(10)).await, Some(local.id));
}

async fn another_password_ends_the_other_logins_with_it(db: TestDb) {
    let store = db.open().await;
    let local = store.local_user().await.unwrap().id;
    let ann = store.create_user("Ann", UserRole::User).await.unwrap().id;
    for (user, byte) in [(local, 1), (ann, 2), (ann, 3)] {
        store.add_web_login(login(user, byte, 10)).await.unwrap();
    }
    let left = async || {
        let mut left = Vec::new();
        for byte in 1..=3 {
            let found = store.web_login(SecretHash([byte; 32]), at(1)).await;
            left.extend(found.unwrap().map(|_| byte));
        }
        left
    };
    let change = async |user, name: &str, kept| {
        let new = Credentials {
            name: name.to_owned(),
            name_key: name.to_lowercase(),
            password: "$argon2id$".to_owned(),
        };
        store.set_credentials(user, new, kept).await.unwrap()
    };
    let own = KeptLogins::Only(Some(SecretHash([3; 32])));
    assert!(change(local, "Bob", KeptLogins::All).await.is_some());
    assert_eq!(change(ann, "Bob", own).await, None);
    assert_eq!(left().await, [1, 2, 3]);
    assert!(change(ann, "Ann", own).await.is_some());
    assert_eq!(left().await, [1, 3]);
    assert!(change(ann, "Ann", KeptLogins::Only(None)).await.is_some());
    assert_eq!(left().await, [1]);
}
