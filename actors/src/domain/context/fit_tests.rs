//! SPEC section 8: what a call that would overflow goes without.

use super::tests::{acceptable, arcs, contents, offer, plain, profile, request, summary_of};
use super::*;
use crate::domain::talk::{asked, planned, result, run, said, user};

/// Turns of about 1,000 tokens each.
fn long_turns(count: u128) -> Vec<ContextMessage> {
    arcs((1..=count).flat_map(|number| {
        [
            user(number, &format!("turn {number}")),
            said(number, &"word ".repeat(850)),
        ]
    }))
}

#[test]
fn the_parts_of_a_call_add_up_to_its_prompt() {
    let messages = long_turns(6);
    let summary = summary_of("- old");
    let conversation = Conversation {
        memory: Some("Olha"),
        summary: Some(&summary),
        ..plain(&messages)
    };
    let call = call_setup(
        &profile(),
        "You are Navi.",
        &ModelInfo::default(),
        offer(RunKind::Session),
    );
    let parts = call.parts(&conversation);
    let sum = parts.system + parts.memory + parts.summary + parts.turns + parts.tools;
    assert_eq!(sum, request_tokens(&call.request(&conversation).request));
    assert!(
        parts.system > 0 && parts.memory > 0 && parts.summary > 0 && parts.tools > 0,
        "{parts:?}"
    );
    assert_eq!((parts.window, parts.left_out_turns), (8_192, 0));
    assert!(sum + parts.answer <= parts.window);

    let many = long_turns(20);
    let crowded = call.parts(&plain(&many));
    assert!(
        crowded.left_out_turns > 0 && crowded.memory == 0,
        "{crowded:?}"
    );
    assert!(crowded.turns < crowded.window);
}

#[test]
fn the_oldest_whole_turns_are_left_out_and_counted() {
    let mut messages = long_turns(6);
    messages.push(ContextMessage::from(user(7, "and now?")));
    let summary = summary_of("- old");
    let conversation = Conversation {
        memory: Some("Olha"),
        summary: Some(&summary),
        ..plain(&messages)
    };
    let sent = |window| {
        let notes = ["a note".to_owned()];
        fit(assemble("sys", &conversation, 4096, &notes), window, 500)
    };
    assert_eq!((sent(8_000).left_out_turns, sent(0).left_out_turns), (0, 0));
    let fitted = sent(4_000);
    assert_eq!(fitted.left_out_turns, 3);
    assert!(estimate_tokens(&fitted.messages) <= 3_500);
    let texts = contents(&fitted.messages);
    assert!(
        texts[1].ends_with("Olha") && texts[2..4] == ["- old", "turn 4"],
        "{texts:?}"
    );
    let last = texts[texts.len() - 1];
    assert!(
        last.starts_with("and now?\n\n[") && last.ends_with("\na note"),
        "{last}"
    );
    // However small the window, the newest turn stays.
    let least = sent(510);
    assert_eq!((least.left_out_turns, least.messages.len()), (6, 4));
}

#[test]
fn a_plan_stays_when_its_turn_is_left_out() {
    let (_, plan) = planned(1, "1. Write it. SELF");
    let mut messages = vec![
        ContextMessage::from(user(1, "write")),
        ContextMessage::from(plan),
    ];
    messages.extend(long_turns(4).into_iter().skip(1));
    let fitted = fit(assemble("", &plain(&messages), 4096, &[]), 3_000, 0);
    assert_eq!(fitted.left_out_turns, 2);
    assert_eq!(
        contents(&fitted.messages)[1..3],
        ["1. Write it. SELF", "turn 3"]
    );
    assert_eq!(acceptable(&fitted.messages), Ok(()));
}

#[test]
fn a_turn_that_overflows_alone_has_its_oldest_results_shortened() {
    let long = "word ".repeat(700);
    let messages = arcs([
        user(1, "read all"),
        asked(1, &["a", "b"]),
        result(1, "a", &long),
        result(1, "b", "short"),
        asked(1, &["c"]),
        result(1, "c", &long),
    ]);
    let fitted = fit(assemble("", &plain(&messages), 4096, &[]), 1_500, 0);
    assert_eq!((fitted.left_out_turns, fitted.shortened_results), (0, 1));
    let texts = contents(&fitted.messages);
    assert_eq!(texts[2].chars().count(), 300);
    assert!(texts[2].ends_with("[shortened to make room: 3500 characters in all]"));
    assert_eq!((texts[3], texts[5]), ("short", long.as_str()));
    assert!(estimate_tokens(&fitted.messages) <= 1_500);
    assert_eq!(acceptable(&fitted.messages), Ok(()));
    // Where nothing helps, the guess says so.
    let fitted = fit(assemble("", &plain(&messages), 4096, &[]), 100, 0);
    assert_eq!(fitted.shortened_results, 2);
    assert!(estimate_tokens(&fitted.messages) > 100);
}

#[test]
fn a_request_keeps_room_for_tools_and_answer() {
    let messages = long_turns(9);
    let model = ModelInfo {
        context_window: Some(4_096),
        ..ModelInfo::default()
    };
    let mut offer = offer(RunKind::Session);
    let mut tools = offer.tools.to_vec();
    tools[0].description = "word ".repeat(900);
    offer.tools = tools.into();
    let with_tools = request(&profile(), "", &plain(&messages), &model, &offer);
    let no_tools = ModelInfo {
        tools: Some(false),
        ..model
    };
    let without = request(&profile(), "", &plain(&messages), &no_tools, &offer);
    assert_eq!((with_tools.left_out_turns, without.left_out_turns), (7, 6));
    assert!(request_tokens(&with_tools.request) + answer_room(4_096) <= 4_096);
    assert!(without.request.tools.is_empty());
}

#[test]
fn a_run_id_is_all_that_steering_needs() {
    // A steered message belongs to the turn under way: they are left out together or not at all.
    let mut messages = long_turns(2);
    messages.push(ContextMessage::from(user(2, "steered")));
    messages.push(ContextMessage::from(user(3, "next")));
    assert_eq!(messages[4].run_id, run(2));
    let fitted = fit(assemble("", &plain(&messages), 4096, &[]), 300, 0);
    assert_eq!(fitted.left_out_turns, 2);
    assert_eq!(contents(&fitted.messages), ["next"]);
}
