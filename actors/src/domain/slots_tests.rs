use super::*;
use crate::domain::lanes::Priority::{Background, Interactive, Planning, Subagent};

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn slots(capacity: Capacity) -> Slots {
    let mut slots = Slots::new(Parallel::Auto);
    slots.said(capacity);
    slots
}

/// A stream that was let in and talks since then.
fn talking(slots: &mut Slots, id: u64, now: Duration) {
    slots.granted(id);
    slots.streams(id, now);
    slots.talks(id, now);
}

#[test]
fn what_was_set_or_told_is_the_number() {
    for (parallel, capacity, most) in [
        (Parallel::Fixed(3), Capacity::Many, 3),
        (Parallel::Fixed(3), Capacity::Told(8), 3),
        (Parallel::Auto, Capacity::Told(4), 4),
        (Parallel::Auto, Capacity::Told(0), 1),
        (Parallel::Auto, Capacity::Many, MOST),
        (Parallel::Auto, Capacity::Unknown, 1),
    ] {
        let mut slots = Slots::new(parallel);
        slots.said(capacity);
        assert_eq!(slots.most(), most, "{parallel:?} {capacity:?}");
        for id in 0..most as u64 {
            assert!(slots.admits(Background, at(0)), "{parallel:?} {capacity:?}");
            slots.granted(id);
        }
        assert!(!slots.admits(Interactive, at(0)));
        slots.ended(0, at(1));
        assert!(slots.admits(Background, at(1)));
    }
}

#[test]
fn streams_that_go_side_by_side_teach_that_more_may() {
    let mut slots = slots(Capacity::Unknown);
    assert!(!slots.granted(1), "one is always taken");
    slots.streams(1, at(0));
    assert!(!slots.admits(Interactive, at(0)), "it may take one alone");
    slots.talks(1, at(1));
    assert!(!slots.admits(Background, at(1)) && !slots.admits(Planning, at(1)));
    assert!(slots.admits(Subagent, at(1)));
    assert!(slots.granted(2), "that is a try");
    slots.streams(2, at(1));
    assert!(!slots.admits(Interactive, at(1)), "one try at a time");
    slots.talks(2, at(2));
    assert!(!slots.look(at(2)), "the first may have ended unheard");
    assert!(slots.look(at(3)));
    assert_eq!(slots.most(), 2);
    // As many again.
    talking(&mut slots, 3, at(3));
    talking(&mut slots, 4, at(3));
    assert!(!slots.admits(Interactive, at(3)));
    assert!(slots.look(at(4)));
    assert_eq!(slots.most(), 4);
    for id in 1..=4 {
        slots.ended(id, at(5));
    }
    assert_eq!(slots.most(), 4);
    slots.forget();
    assert_eq!(slots.most(), 1);
}

#[test]
fn a_stream_that_had_to_wait_for_another_is_not_tried_again_soon() {
    let mut slots = slots(Capacity::Unknown);
    talking(&mut slots, 1, at(0));
    slots.granted(2);
    slots.streams(2, at(0));
    slots.ended(1, at(4));
    slots.talks(2, at(4));
    assert!(
        slots.admits(Interactive, at(4)),
        "that may have been its prompt"
    );
    slots.granted(3);
    slots.streams(3, at(4));
    slots.ended(2, at(10));
    slots.talks(3, at(10));
    assert!(!slots.admits(Interactive, at(69)));
    assert!(slots.admits(Interactive, at(70)));
    slots.granted(4);
    slots.streams(4, at(70));
    slots.ended(3, at(80));
    slots.talks(4, at(80));
    assert!(!slots.admits(Interactive, at(199)), "the pause doubles");
    assert!(slots.admits(Interactive, at(200)));
    assert_eq!(slots.most(), 1);
}

#[test]
fn a_refusal_is_believed_and_forgotten_step_by_step() {
    let mut slots = slots(Capacity::Many);
    for id in 0..12 {
        slots.granted(id);
    }
    for id in [11, 10, 9, 8] {
        slots.refused(id, at(0));
    }
    assert_eq!(slots.most(), 8);
    assert!(!slots.admits(Interactive, at(0)));
    slots.answered(at(9));
    assert_eq!(slots.most(), 8);
    slots.answered(at(10));
    assert_eq!(slots.most(), 9);
    slots.answered(at(11));
    assert_eq!(slots.most(), 9);
    for id in 0..8 {
        slots.ended(id, at(12));
    }
    // One alone that is refused says nothing of how many go side by side.
    slots.granted(20);
    slots.refused(20, at(12));
    assert_eq!(slots.most(), 9);
    for step in 2..200 {
        slots.answered(at(step * 10));
    }
    assert_eq!(slots.most(), MOST);
}

#[test]
fn only_a_backend_whose_number_is_its_own_word_keeps_nobody_waiting() {
    for (parallel, capacity, may_queue) in [
        (Parallel::Auto, Capacity::Told(2), false),
        (Parallel::Fixed(2), Capacity::Told(2), false),
        (Parallel::Fixed(3), Capacity::Told(2), true),
        (Parallel::Fixed(3), Capacity::Many, false),
        (Parallel::Auto, Capacity::Unknown, true),
    ] {
        let mut slots = Slots::new(parallel);
        slots.said(capacity);
        assert_eq!(slots.may_queue(), may_queue, "{parallel:?} {capacity:?}");
    }
}
