//! People, changed by several at once.

use uuid::Uuid;

use super::testing::{TestDb, at, on_both};
use super::{Accepted, Changed, Credentials, Invitation, SecretHash};
use crate::protocol::people::UserRole;

on_both!(
    two_admins_who_demote_each_other_at_once,
    two_links_for_another_password_at_once,
    a_wrong_recovery_code_waits_for_nobody_who_writes,
);

async fn two_admins_who_demote_each_other_at_once(db: TestDb) {
    let store = db.open().await;
    let mut one = store.local_user().await.unwrap().id;
    let mut other = store.create_user("Ann", UserRole::Admin).await.unwrap().id;
    // Which is first is up to the database.
    for _ in 0..20 {
        let (of_one, of_other) = tokio::join!(
            store.set_role(one, UserRole::User),
            store.set_role(other, UserRole::User)
        );
        let demoted = match (of_one.unwrap(), of_other.unwrap()) {
            (Changed::Done(_), Changed::LastAdmin) => one,
            (Changed::LastAdmin, Changed::Done(_)) => other,
            both => unreachable!("{both:?}"),
        };
        store.set_role(demoted, UserRole::Admin).await.unwrap();
        std::mem::swap(&mut one, &mut other);
    }
}

async fn two_links_for_another_password_at_once(db: TestDb) {
    let store = db.open().await;
    let ann = store.create_user("Ann", UserRole::User).await.unwrap().id;
    let links = [1, 2].map(|n| SecretHash([n; 32]));
    let chosen = || Credentials {
        name: "Ann".to_owned(),
        name_key: "ann".to_owned(),
        password: "$argon2id$".to_owned(),
    };
    // Which is first is up to the database.
    for _ in 0..20 {
        for hash in links {
            let link = Invitation {
                id: Uuid::now_v7(),
                role: UserRole::User,
                user_id: Some(ann),
                made_by: None,
                created_at: at(0),
                expires_at: at(100),
            };
            store.add_invitation(hash, link).await.unwrap();
        }
        let [one, other] = links.map(|hash| store.accept_invitation(hash, chosen(), at(1)));
        let (one, other) = tokio::join!(one, other);
        let both = (one.unwrap(), other.unwrap());
        let is_one = matches!(
            both,
            (Accepted::Renewed(_), Accepted::Unknown) | (Accepted::Unknown, Accepted::Renewed(_))
        );
        assert!(is_one, "{both:?}");
        assert_eq!(store.invitations(at(1)).await.unwrap(), []);
    }
}

async fn a_wrong_recovery_code_waits_for_nobody_who_writes(db: TestDb) {
    let store = db.open().await;
    let user = store.local_user().await.unwrap().id;
    let [right, wrong] = [1, 2].map(|n| SecretHash([n; 32]));
    store.set_recovery_codes(user, &[right]).await.unwrap();
    let writing = store.begin_write().await.unwrap();
    assert_eq!(store.use_recovery_code(user, wrong).await, Ok(false));
    drop(writing);
    assert_eq!(store.use_recovery_code(user, right).await, Ok(true));
    assert_eq!(store.use_recovery_code(user, right).await, Ok(false));
}
