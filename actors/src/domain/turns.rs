//! Where the turns of a conversation begin.

use std::borrow::Borrow;

use crate::protocol::message::{Message, Role};

/// Whether a message begins a turn: a user message does, unless it was handed to a run that
/// was under way (it bears that run's id then) and so belongs to the turn that this run answers.
/// A run that goes on from an interrupted one has no user message, and begins no turn.
#[must_use]
pub fn begins(message: &Message, before: Option<&Message>) -> bool {
    message.role == Role::User && before.is_none_or(|before| before.run_id != message.run_id)
}

/// The index of each turn's first message, growing. The first is 0 wherever there is a message:
/// what stands before the first user message counts as a turn of its own.
#[must_use]
pub fn starts<M: Borrow<Message>>(messages: &[M]) -> Vec<usize> {
    let mut before: Option<&Message> = None;
    let mut starts = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let message = message.borrow();
        if index == 0 || begins(message, before) {
            starts.push(index);
        }
        before = Some(message);
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::talk::{asked, run, said, user};

    #[test]
    fn a_turn_is_a_user_message_and_all_that_answers_it() {
        let talk = [
            user(1, "a"),
            said(1, "b"),
            user(2, "c"),
            asked(2, &["x"]),
            said(2, "d"),
        ];
        assert_eq!(starts(&talk), [0, 2]);
        assert_eq!(starts(&talk[1..]), [0, 1]);
        assert_eq!(starts::<Message>(&[]), Vec::<usize>::new());
    }

    #[test]
    fn a_message_that_steers_a_run_and_a_run_that_goes_on_begin_none() {
        let talk = [
            user(1, "a"),
            user(1, "steer at once"),
            said(1, "cut off"),
            // Continued under a new run, and steered there.
            said(2, "goes on"),
            user(2, "steer"),
            said(2, "done"),
            user(3, "next"),
        ];
        assert_eq!(run(2), talk[3].run_id);
        assert_eq!(starts(&talk), [0, 6]);
    }
}
