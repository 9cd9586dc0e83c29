//! What a program demands, in the run's loop.
use chrono::{DateTime, Utc};

use super::demands::Demands;
use super::run_loop::{Cut, Record, RunEnd, RunLoop, Step, ToolUse};
use super::run_loop_tests::{Tools, result, says, start};
use crate::protocol::chat::ReplyForm;
use crate::protocol::error::ErrorCode;

const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

fn demanding(calls: &[&str], form: Option<ReplyForm>) -> RunLoop {
    let mut run = start(10);
    run.demand(Demands {
        calls: calls.iter().map(|name| (*name).to_owned()).collect(),
        form,
        ..Demands::default()
    });
    run
}

fn reply(run: &mut RunLoop, text: &str, calls: &[&str]) -> Vec<Record> {
    run.on_reply(says(text, calls), &mut Tools, NOW)
}

fn tells_nobody(records: &[Record]) -> bool {
    let quiet = |record: &Record| matches!(record, Record::ContextTokens(_));
    records.iter().all(quiet)
}

fn failure(run: &RunLoop) -> String {
    match run.next_step() {
        Step::Finish(RunEnd::Failed(error)) => {
            assert_eq!(error.code, ErrorCode::RunFailed);
            error.message
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_of_another_form_is_told_nobody_and_asked_for_once_more() {
    let mut run = demanding(&[], Some(ReplyForm::Json));
    assert!(run.holds_text());
    assert!(tells_nobody(&reply(&mut run, "It is Paris.", &[])));
    let tools = ToolUse::Formed;
    assert_eq!(run.next_step(), Step::CallModel { tools });
    assert!(!run.holds_text(), "what comes now is the answer");
    assert!(run.notes()[0].ends_with("It is Paris."));
    reply(&mut run, r#"{"city": "Paris"}"#, &[]);
    assert_eq!(run.next_step(), Step::Finish(RunEnd::Answered));
}

#[test]
fn an_answer_that_has_its_form_ends_the_run_at_once() {
    let mut run = demanding(&[], Some(ReplyForm::Json));
    // A small model's calls look like this, too.
    reply(&mut run, r#"{"tool": "read", "path": "x"}"#, &[]);
    assert_eq!(run.next_step(), Step::Finish(RunEnd::Answered));
}

#[test]
fn words_beside_calls_are_no_part_of_an_answer_that_has_a_form() {
    let mut run = demanding(&[], Some(ReplyForm::Json));
    let beside = says("I look.", &["read"]);
    assert!(!run.tells_text(&beside, &Tools));
    let records = run.on_reply(beside, &mut Tools, NOW);
    let message = records.iter().find_map(|record| match record {
        Record::Message(message) => Some(message),
        _ => None,
    });
    assert!(message.is_some_and(|it| it.content.is_none() && it.tool_calls.len() == 1));
}

#[test]
fn a_model_that_never_keeps_to_the_form_fails_the_run() {
    let mut run = demanding(&[], Some(ReplyForm::Json));
    reply(&mut run, "Paris", &[]);
    reply(&mut run, "Paris!", &["read"]);
    assert!(failure(&run).contains("no JSON"));
}

#[test]
fn a_draft_is_neither_told_nor_kept_where_time_runs_out() {
    for form in [None, Some(ReplyForm::Json)] {
        let calls: &[&str] = if form.is_none() { &["weather"] } else { &[] };
        let mut run = demanding(calls, form.clone());
        let records = run.on_time_up(Some(says("It is Paris, I th", &[])), NOW);
        let said = |record: &Record| matches!(record, Record::Message(_));
        assert!(!records.iter().any(said), "{records:?}");
        assert!(failure(&run).contains("time was up"));

        for cut in [
            Cut::Stopped,
            Cut::Interrupted {
                reason: String::new(),
            },
        ] {
            let mut run = demanding(calls, form.clone());
            let records = run.cut(&cut, Some(says("It is Paris, I th", &[])), NOW);
            assert!(!records.iter().any(said), "{records:?}");
        }
    }
}

#[test]
fn at_its_limit_a_run_answers_in_the_form_that_is_demanded_or_fails() {
    for (answer, keeps) in [(r#"{"city": "Paris"}"#, true), ("Paris, I think", false)] {
        let mut run = start(1);
        run.demand(Demands {
            form: Some(ReplyForm::Json),
            ..Demands::default()
        });
        reply(&mut run, "", &["read"]);
        let Step::RunTools(group) = run.next_step() else {
            panic!("{:?}", run.next_step());
        };
        run.on_tools_started(&group);
        run.on_tool_result(&group[0].call.id, result("seen"), NOW);
        let tools = ToolUse::Formed;
        assert_eq!(run.next_step(), Step::CallModel { tools });
        assert!(!run.notes()[0].contains("what you answered"));
        reply(&mut run, answer, &[]);
        if keeps {
            assert_eq!(run.next_step(), Step::Finish(RunEnd::Answered));
        } else {
            assert!(failure(&run).contains("no JSON"));
        }
    }
    let mut run = demanding(&["weather"], None);
    run.on_time_up(None, NOW);
    assert!(failure(&run).contains("time was up"));
}

#[test]
fn a_form_that_is_demanded_at_the_limit_is_what_the_last_answer_has() {
    let mut run = start(1);
    reply(&mut run, "", &["read"]);
    let Step::RunTools(group) = run.next_step() else {
        panic!("{:?}", run.next_step());
    };
    run.on_tools_started(&group);
    run.on_tool_result(&group[0].call.id, result("seen"), NOW);
    let last = |tools| Step::CallModel { tools };
    assert_eq!(run.next_step(), last(ToolUse::Withheld));
    run.demand(Demands {
        form: Some(ReplyForm::Json),
        ..Demands::default()
    });
    assert_eq!(run.next_step(), last(ToolUse::Formed));
    reply(&mut run, "Paris, I think", &[]);
    assert!(failure(&run).contains("no JSON"));
}

#[test]
fn an_answer_in_place_of_a_call_is_asked_for_as_a_call() {
    let mut run = demanding(&["weather"], None);
    assert!(run.notes()[0].contains("`weather`"));
    assert!(tells_nobody(&reply(&mut run, "It snows, I think.", &[])));
    let tools = ToolUse::Demanded;
    assert_eq!(run.next_step(), Step::CallModel { tools });
    reply(&mut run, "", &["weather"]);
    let Step::RunTools(group) = run.next_step() else {
        panic!("{:?}", run.next_step());
    };
    run.on_tools_started(&group);
    // It was made: whatever comes of it is answered freely.
    assert!(run.demands().is_empty());
}

#[test]
fn other_tools_may_be_called_before_the_one_that_is_demanded() {
    let mut run = demanding(&["weather"], None);
    reply(&mut run, "", &["read"]);
    let Step::RunTools(group) = run.next_step() else {
        panic!("{:?}", run.next_step());
    };
    run.on_tools_started(&group);
    assert!(!run.demands().is_empty());
}

#[test]
fn calls_of_a_programs_tools_go_one_by_one_where_that_is_demanded() {
    let mut groups = Vec::new();
    for one_by_one in [false, true] {
        let mut run = start(10);
        run.demand(Demands {
            one_by_one,
            ..Demands::default()
        });
        reply(&mut run, "", &["read1", "read2", "read3lent", "read4lent"]);
        while let Step::RunTools(group) = run.next_step() {
            groups.push(group.len());
            run.on_tools_started(&group);
            for planned in &group {
                run.on_tool_result(&planned.call.id, result("seen"), NOW);
            }
        }
    }
    // Navi's own still go side by side.
    assert_eq!(groups, [4, 2, 1, 1]);
}

#[test]
fn a_model_that_never_makes_the_call_fails_the_run() {
    let mut run = demanding(&["weather"], None);
    reply(&mut run, "It snows.", &[]);
    reply(&mut run, "It snows!", &[]);
    assert!(failure(&run).contains("(weather)"));
}
