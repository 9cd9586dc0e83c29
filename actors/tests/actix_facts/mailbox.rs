//! What bounds a mailbox, and what doesn't.

use actix::dev::SendError;
use actix::prelude::*;

use crate::on_arbiter;
use crate::probe::{Add, Probe};

/// The mailbox's capacity where nobody sets another.
const CAPACITY: usize = 16;

/// Sends until the mailbox says that it is full. The actor isn't polled meanwhile, since
/// nothing here awaits.
fn fill(addr: &Addr<Probe>) -> usize {
    (0..10 * CAPACITY)
        .take_while(|_| addr.try_send(Add).is_ok())
        .count()
}

#[test]
fn do_send_ignores_the_mailbox_limit() {
    on_arbiter(async {
        let addr = Probe::sound().start();
        for _ in 0..100 * CAPACITY {
            addr.do_send(Add);
        }
        assert_eq!(addr.send(Add).await, Ok(100 * CAPACITY + 1));
    });
}

#[test]
fn try_send_heeds_the_limit_for_one_addr() {
    on_arbiter(async {
        let addr = Probe::sound().start();
        assert_eq!(fill(&addr), CAPACITY);
        assert!(matches!(addr.try_send(Add), Err(SendError::Full(_))));
    });
}

#[test]
fn each_clone_of_an_addr_has_a_slot_of_its_own_in_a_full_mailbox() {
    on_arbiter(async {
        let addr = Probe::sound().start();
        fill(&addr);
        for _ in 0..CAPACITY {
            let clone = addr.clone();
            assert!(clone.try_send(Add).is_ok());
            assert!(matches!(clone.try_send(Add), Err(SendError::Full(_))));
        }
    });
}
