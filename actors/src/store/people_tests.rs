//! People, changed by several at once.

use super::testing::{TestDb, on_both};
use super::{Changed, SecretHash};
use crate::protocol::people::UserRole;

on_both!(
    two_admins_who_demote_each_other_at_once,
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
