//! Traces of iterations against the rows of SPEC section 5.
use serde_json::json;

use super::*;
use crate::protocol::ids::CallId;
use crate::protocol::todo::TodoStatus::{self, Done, Failed, InProgress, Pending};

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: CallId::new(),
        name: name.to_owned(),
        arguments,
    }
}

fn list(statuses: &[TodoStatus]) -> Vec<TodoItem> {
    statuses
        .iter()
        .zip(1..)
        .map(|(status, id)| TodoItem {
            id,
            held: false,
            edited: None,
            text: format!("step {id}"),
            status: *status,
            note: None,
        })
        .collect()
}

/// A run whose iterations each make one call and leave the list so.
struct Trace {
    guards: Guards,
    flags: ProfileFlags,
    todo: Vec<TodoItem>,
    iterations: u32,
    max_iterations: u32,
}

impl Trace {
    fn new(flags: ProfileFlags, todo: &[TodoStatus]) -> Self {
        Self {
            guards: Guards::default(),
            flags,
            todo: list(todo),
            iterations: 0,
            max_iterations: 50,
        }
    }

    /// The notes that follow, by their markers.
    fn iterate(&mut self, argument: u32, todo: &[TodoStatus]) -> Vec<String> {
        let after = list(todo);
        self.guards.on_iteration(
            &Iteration {
                calls: &[call("read", json!({"n": argument}))],
                todo_before: &self.todo,
                todo_after: &after,
            },
            &self.flags,
        );
        self.todo = after;
        self.iterations += 1;
        self.markers()
    }

    fn notes(&self) -> Vec<String> {
        let progress = Progress {
            iterations: self.iterations,
            max_iterations: self.max_iterations,
        };
        self.guards.notes(progress, "write the report", &self.flags)
    }

    fn markers(&self) -> Vec<String> {
        let marker = |note: &String| note.split_inclusive(']').next().unwrap().to_owned();
        self.notes().iter().map(marker).collect()
    }
}

/// Only the anti-stall guard.
fn anti_stall(threshold: u32) -> ProfileFlags {
    ProfileFlags {
        iteration_budget_enabled: false,
        goal_anchoring_enabled: false,
        anti_stall_threshold: threshold,
        ..ProfileFlags::default()
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn anti_stall_warns_after_n_iterations_in_a_row_without_todo_progress() {
    let mut trace = Trace::new(anti_stall(3), &[Pending]);
    assert_eq!(trace.iterate(1, &[Pending]), NOTHING);
    assert_eq!(trace.iterate(2, &[Pending]), NOTHING);
    assert_eq!(trace.iterate(3, &[Pending]), ["[stall]"]);
    assert!(trace.notes()[0].contains("3 iterations in a row without a change in the todo list"));
    // Said once, and again only a whole threshold later.
    assert_eq!(trace.iterate(4, &[Pending]), NOTHING);
    assert_eq!(trace.iterate(5, &[Pending]), NOTHING);
    assert_eq!(trace.iterate(6, &[Pending]), ["[stall]"]);
}

#[test]
fn anti_stall_counts_any_change_of_status_as_progress() {
    let mut trace = Trace::new(anti_stall(2), &[Pending, Pending]);
    assert_eq!(trace.iterate(1, &[Pending, Pending]), NOTHING);
    for (n, next) in [(2, [InProgress, Pending]), (3, [Failed, Pending])] {
        assert_eq!(trace.iterate(n, &next), NOTHING);
    }
    assert_eq!(trace.iterate(4, &[Failed, Pending]), NOTHING);
    // A step more is no step further.
    assert_eq!(trace.iterate(5, &[Failed, Pending, Pending]), ["[stall]"]);
}

#[test]
fn anti_stall_warns_when_the_same_call_is_repeated() {
    // The list changes to and fro, but nothing else happens.
    let mut trace = Trace::new(anti_stall(2), &[Pending]);
    assert_eq!(trace.iterate(1, &[InProgress]), NOTHING);
    assert_eq!(trace.iterate(1, &[Pending]), NOTHING);
    assert_eq!(trace.iterate(1, &[InProgress]), ["[stall]"]);
    assert!(trace.notes()[0].contains("repeated the same call"));
}

#[test]
fn anti_stall_says_what_fits_a_run_without_a_list() {
    let mut trace = Trace::new(anti_stall(1), &[]);
    trace.iterate(1, &[]);
    let note = &trace.notes()[0];
    assert!(
        !note.contains("todo list") && note.contains("answer now"),
        "{note}"
    );
}

#[test]
fn anti_stall_is_off_where_its_flag_is() {
    let flags = ProfileFlags {
        anti_stall_enabled: false,
        ..anti_stall(1)
    };
    let mut trace = Trace::new(flags, &[Pending]);
    assert_eq!(trace.iterate(1, &[Pending]), NOTHING);
}

#[test]
fn the_same_call_three_times_running_is_refused_with_a_hint() {
    let mut guard = RepeatGuard::default();
    let same = json!({"path": "a", "range": {"from": 1, "to": 2}});
    let turned: Value = serde_json::from_str(r#"{"range":{"to":2,"from":1},"path":"a"}"#).unwrap();
    let as_text = json!(r#"{"path": "a", "range": {"from": 1, "to": 2}}"#);
    assert_eq!(guard.on_call("read", &same), None);
    assert_eq!(guard.on_call("read", &turned), None);
    let refusal = guard.on_call("read", &as_text).unwrap();
    assert!(refusal.contains("same call of `read`"), "{refusal}");
    assert!(refusal.contains("3 times running"), "{refusal}");
    assert!(guard.on_call("read", &same).unwrap().contains("4 times"));

    // A different call in between makes it new.
    assert_eq!(guard.on_call("read", &json!({"path": "b"})), None);
    assert_eq!(guard.on_call("read", &same), None);
    assert_eq!(guard.on_call("read", &same), None);
    assert_eq!(guard.on_call("write", &same), None);
}

#[test]
fn goal_anchoring_repeats_the_goal_every_n_iterations() {
    let mut trace = Trace::new(
        ProfileFlags {
            iteration_budget_enabled: false,
            anti_stall_enabled: false,
            goal_anchoring_interval: 2,
            ..ProfileFlags::default()
        },
        &[],
    );
    assert_eq!(trace.markers(), NOTHING);
    assert_eq!(trace.iterate(1, &[]), NOTHING);
    assert_eq!(trace.iterate(2, &[]), ["[goal]"]);
    assert!(trace.notes()[0].contains("write the report"));
    assert_eq!(trace.iterate(3, &[]), NOTHING);
    assert_eq!(trace.iterate(4, &[]), ["[goal]"]);
    trace.flags.goal_anchoring_enabled = false;
    assert_eq!(trace.markers(), NOTHING);
}

#[test]
fn a_goal_is_shortened_and_may_be_missing() {
    let note = goal::note(5, 5, &"слово\n".repeat(1_000)).unwrap();
    assert!(note.chars().count() < 650, "{note}");
    assert!(note.starts_with("[goal] What the user asked for: слово слово"));
    assert_eq!(goal::note(5, 5, " \n"), None);
    assert_eq!(goal::note(5, 0, "x"), None);
}

#[test]
fn the_iteration_budget_is_told_plainly_and_then_more_strongly() {
    let note = |iterations, max_iterations| {
        budget::note(Progress {
            iterations,
            max_iterations,
        })
    };
    let plain = |left, max| {
        Some(format!(
            "[budget] {left} of {max} iterations left. Answer the user in words as soon as you can; call a tool only for what is still missing."
        ))
    };
    let few = |left, max| {
        Some(format!(
            "[budget] Only {left} of {max} iterations left. Start nothing new: finish what matters most, then answer."
        ))
    };
    let last = Some(
        "[budget] This is the last iteration. Call only what you cannot do without; or answer the user now, and say what is not done."
            .to_owned(),
    );
    // Nothing is used yet: there is nothing to tell.
    assert_eq!(note(0, 50), None);
    assert_eq!(note(1, 50), plain(49, 50));
    assert_eq!(note(44, 50), plain(6, 50));
    assert_eq!(note(45, 50), few(5, 50));
    assert_eq!(note(48, 50), few(2, 50));
    assert_eq!(note(49, 50), last);
    // Then the model is asked to say how things stand, in other words than these.
    assert_eq!(note(50, 50), None);
    assert_eq!([note(0, 3), note(1, 3)], [plain(3, 3), plain(2, 3)]);
    assert_eq!(note(2, 3), last);
    assert_eq!(note(0, 1), last);
}

#[test]
fn adaptive_replan_asks_for_the_steps_that_newly_failed() {
    let flags = ProfileFlags {
        adaptive_replan_enabled: true,
        ..anti_stall(50)
    };
    let mut trace = Trace::new(flags, &[Pending, Failed, Pending]);
    assert_eq!(trace.iterate(1, &[Done, Failed, Pending]), NOTHING);
    assert_eq!(trace.iterate(2, &[Done, Failed, Failed]), ["[replan]"]);
    let note = &trace.notes()[0];
    assert!(
        note.contains("- step 3: step 3") && !note.contains("step 2"),
        "{note}"
    );
    // Only for the next iteration.
    assert_eq!(trace.iterate(3, &[Done, Failed, Failed]), NOTHING);
    // What was tried again can fail again.
    assert_eq!(trace.iterate(4, &[Done, Pending, Failed]), NOTHING);
    assert_eq!(trace.iterate(5, &[Done, Failed, Failed]), ["[replan]"]);
    trace.flags.adaptive_replan_enabled = false;
    assert_eq!(trace.iterate(6, &[Failed, Failed, Failed]), NOTHING);
}

#[test]
fn a_replan_request_names_reasons_and_is_bounded() {
    let mut failed = list(&[Failed; 8]);
    failed[0].note = Some(format!("no network\n{}", "x".repeat(2_000)));
    let note = replan::note(&replan::newly_failed(&[], &failed)).unwrap();
    assert!(note.starts_with("[replan] Failed:\n- step 1: step 1 (no network xxx"));
    assert!(note.contains("\n- and 3 more\n"), "{note}");
    assert!(note.chars().count() < 1_500);

    // A plan that replaced the list gave the numbers to other steps.
    let mut replaced = failed.clone();
    replaced[0].text = "another".to_owned();
    let newly = replan::newly_failed(&failed, &replaced);
    assert_eq!(newly, [&replaced[0]]);
    assert_eq!(replan::note(&[]), None);
}

#[test]
fn all_notes_stand_in_the_order_of_section_7_and_outlive_a_restart() {
    let flags = ProfileFlags {
        goal_anchoring_interval: 1,
        anti_stall_threshold: 1,
        adaptive_replan_enabled: true,
        ..ProfileFlags::default()
    };
    let mut trace = Trace::new(flags, &[Pending]);
    trace.iterate(1, &[Pending]);
    // The same call and a failed step: a stall and a reason to plan anew.
    let all = ["[budget]", "[goal]", "[stall]", "[replan]"];
    assert_eq!(trace.iterate(1, &[Failed]), all);
    let _ = trace.guards.on_call("read", &json!({}));
    let stored = serde_json::to_string(&trace.guards).unwrap();
    let mut read: Guards = serde_json::from_str(&stored).unwrap();
    assert_eq!(read, trace.guards);
    assert_eq!(read.on_call("read", &json!({})), None);
    assert!(read.on_call("read", &json!({})).is_some());
}
