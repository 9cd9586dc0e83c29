//! How people share a backend's slots.

use super::*;
use crate::protocol::ids::UserId;

/// Waits in line for somebody, holds the slot until told, and says whose turn it was.
async fn line_up_for(
    house: &House,
    person: UserId,
    order: &Arc<Mutex<Vec<UserId>>>,
) -> tokio::sync::oneshot::Sender<()> {
    let (done, until) = tokio::sync::oneshot::channel();
    let (ticket, models, told) = (Ticket::new(), house.models.clone(), Arc::clone(order));
    actix::spawn(async move {
        let asked = models.acquire(
            KIND,
            Acquire {
                ticket,
                person: Some(person),
                ..Acquire::new(Priority::Interactive)
            },
        );
        let lease = asked.await;
        told.lock().unwrap().push(person);
        let _ = until.await;
        drop(lease);
    });
    while house.models.queue(KIND, ticket).await.is_none()
        && !order.lock().unwrap().contains(&person)
    {
        yield_now().await;
    }
    done
}

#[test]
fn people_take_turns_however_many_calls_one_of_them_has() {
    on_paused_arbiter(async {
        let house = House::new(1);
        let order = Arc::default();
        let (anna, borys) = (UserId::new(), UserId::new());
        let mut going = Vec::new();
        for person in [anna, anna, anna, anna, borys, borys] {
            going.push(line_up_for(&house, person, &order).await);
        }
        for at in 0..going.len() {
            while order.lock().unwrap().len() <= at {
                yield_now().await;
            }
            // Whose turn it is ends theirs: of Anna's and of Borys's in their order.
            let whose = order.lock().unwrap()[at];
            let first = if whose == anna { 0 } else { 4 };
            let before = order.lock().unwrap()[..at]
                .iter()
                .filter(|it| **it == whose)
                .count();
            let (never, _) = tokio::sync::oneshot::channel();
            let _ = std::mem::replace(&mut going[first + before], never).send(());
        }
        let order = order.lock().unwrap();
        assert_eq!(*order, [anna, borys, anna, borys, anna, anna]);
    });
}

#[test]
fn a_slot_is_left_to_others_where_others_ask() {
    on_paused_arbiter(async {
        let house = House::new(3);
        let (anna, borys) = (UserId::new(), UserId::new());
        let take = |person| {
            let asked = house.models.acquire(
                KIND,
                Acquire {
                    person: Some(person),
                    ..Acquire::new(Priority::Interactive)
                },
            );
            tokio::time::timeout(Duration::from_secs(1), asked)
        };
        // Alone she has all of them.
        let hers = [take(anna).await, take(anna).await, take(anna).await];
        assert!(hers.iter().all(Result::is_ok));
        drop(hers);
        drop(take(borys).await.unwrap());
        let hers = [take(anna).await, take(anna).await];
        assert!(hers.iter().all(Result::is_ok));
        assert!(take(anna).await.is_err(), "the last is for others");
        assert!(take(borys).await.is_ok());
        // An hour later nobody else is there.
        drop(hers);
        tokio::time::sleep(Duration::from_secs(3_601)).await;
        let hers = [take(anna).await, take(anna).await, take(anna).await];
        assert!(hers.iter().all(Result::is_ok));
    });
}

#[test]
fn who_is_held_back_presses_on_their_own_background_work_alone() {
    on_paused_arbiter(async {
        let house = House::new(2);
        let (anna, borys) = (UserId::new(), UserId::new());
        let take = |priority, person| {
            let asked = Acquire {
                person: Some(person),
                ..Acquire::new(priority)
            };
            house.models.acquire(KIND, asked)
        };
        let is_asked_back = async |lease: &Lease| {
            let limit = Duration::from_secs(1);
            let asked = tokio::time::timeout(limit, lease.asked_back());
            asked.await.is_ok()
        };
        let her_title = take(Priority::Background, anna).await.unwrap();
        let his_title = take(Priority::Background, borys).await.unwrap();
        // It is the newest that would make way.
        let order = Arc::default();
        let waits = line_up_for(&house, anna, &order).await;
        assert!(is_asked_back(&her_title).await);
        assert!(!is_asked_back(&his_title).await);
        drop(her_title);
        while order.lock().unwrap().is_empty() {
            yield_now().await;
        }
        // She answers, and the last slot is for others: nothing is to be had for more of hers.
        let more = line_up_for(&house, anna, &order).await;
        assert!(!is_asked_back(&his_title).await);
        drop((waits, more, his_title));
    });
}
