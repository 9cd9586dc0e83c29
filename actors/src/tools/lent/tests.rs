use std::path::Path;

use serde_json::json;

use super::*;
use crate::protocol::ids::UserId;
use crate::tools::fake_session::{FakeSession, context};
use crate::tools::registry::ToolConfig;

fn weather() -> OfferedByProgram {
    OfferedByProgram {
        name: "weather".to_owned(),
        description: "The weather.".to_owned(),
        parameters: json!({"type": "object", "required": ["city"]}),
        effect: Effect::Read,
    }
}

fn of_weather() -> LentByProgram {
    LentByProgram {
        tools: vec![weather()],
        ..LentByProgram::default()
    }
}

#[test]
fn what_is_lent_is_for_one_run_and_goes_before_ours() {
    let lending = Lending::default();
    let (session, run_id) = (SessionId::new(), RunId::new());
    let todo = OfferedByProgram {
        name: "todo".to_owned(),
        ..weather()
    };
    let ours = Registry::builtin(&ToolConfig::default());
    let lent = LentByProgram {
        instructions: "Be brief.".to_owned(),
        tools: vec![weather(), todo],
        ..LentByProgram::default()
    };
    let offer = lending.offer(session, "a", lent);
    let (other, none) = lending.take(session, RunId::new(), Some("b"), ours.clone());
    assert!(other.is(&ours) && none.is_none());
    let (with, borrowed) = lending.take(session, run_id, Some("a"), ours.clone());
    let names = with.names(&["filesystem".to_owned()]);
    assert_eq!(names, ["filesystem", "weather", "todo"]);
    assert!(with.prompts(&names).ends_with("Be brief."));
    assert!(with.is_lent("todo") && !with.is_lent("filesystem"));
    assert!(!with.with_own(ours.clone()).is_lent("todo"));
    let call = with.prepare("todo", &json!({"city": "Kyiv"}), &names);
    assert_eq!(call.unwrap().provenance, Provenance::Outside);
    assert!(with.prepare("weather", &json!({}), &names).is_err());
    assert!(lending.lends(run_id, "weather") && !lending.lends(run_id, "terminal"));
    let (next, _) = lending.take(session, RunId::new(), Some("a"), ours.clone());
    assert!(next.is(&ours));
    drop((offer, borrowed));
    assert!(!lending.lends(run_id, "weather"));
    drop(lending.offer(session, "c", LentByProgram::default()));
    assert!(lending.loans.lock().offered.is_empty());
}

#[test]
fn an_offer_takes_back_nothing_that_was_offered_in_its_place() {
    let lending = Lending::default();
    let session = SessionId::new();
    let first = lending.offer(session, "a", LentByProgram::default());
    assert!(first.is_open());
    let second = lending.offer(session, "a", of_weather());
    assert!(!first.is_open() && second.is_open());
    drop(first);
    let ours = Registry::new([]);
    let (registry, _borrowed) = lending.take(session, RunId::new(), Some("a"), ours);
    assert!(registry.is_lent("weather") && !second.is_open());
}

#[tokio::test]
async fn a_call_waits_for_what_the_program_says_came_of_it() {
    let lending = Lending::default();
    let state = Arc::new(FakeSession::default());
    let context = context(&state, Path::new(""));
    let (session, run_id) = (context.session_id, context.run_id);
    let user = context.user_id;
    let call = context.call_id.clone();
    let _offer = lending.offer(session, "a", of_weather());
    let (registry, _borrowed) = lending.take(session, run_id, Some("a"), Registry::new([]));
    let args = json!({"city": "Kyiv"});
    let prepared = registry.prepare("weather", &args, &registry.names(&[]));
    let tool = prepared.unwrap().tool;
    let called = tool.call(args.clone(), context);
    let answered = async {
        while lending.calls.waiting(run_id).is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(lending.calls.waiting(run_id)[0].args, args);
        assert_eq!(lending.calls.run_of(user, &call), Some((session, run_id)));
        lending.calls.answer(&call, Ok("snow".to_owned()));
        lending.calls.answer(&call, Ok("rain".to_owned()));
    };
    let (result, ()) = tokio::join!(called, answered);
    assert_eq!(result.unwrap().text, "snow");
    assert_eq!(lending.calls.waiting(run_id), []);
    // Who says it again is led to the same run.
    assert_eq!(lending.calls.run_of(user, &call), Some((session, run_id)));
    assert_eq!(lending.calls.run_of(UserId::new(), &call), None);
}

#[tokio::test]
async fn a_call_whose_program_has_gone_ends_at_once_and_later_runs_are_lent_nothing() {
    let lending = Lending::default();
    let state = Arc::new(FakeSession::default());
    let context = context(&state, Path::new(""));
    let (session, run_id) = (context.session_id, context.run_id);
    let lent = of_weather();
    let gone = lent.gone.clone();
    let _first = lending.offer(session, "a", lent.clone());
    let _second = lending.offer(session, "b", lent);
    let ours = Registry::new([]);
    let (registry, _borrowed) = lending.take(session, run_id, Some("a"), ours.clone());
    let args = json!({"city": "Kyiv"});
    let prepared = registry.prepare("weather", &args, &registry.names(&[]));
    let tool = prepared.unwrap().tool;
    let called = tool.call(args, context);
    let goes = async {
        while lending.calls.waiting(run_id).is_empty() {
            tokio::task::yield_now().await;
        }
        gone.cancel();
    };
    let (result, ()) = tokio::join!(called, goes);
    assert_eq!(result.unwrap_err().0, GONE);
    assert_eq!(lending.calls.waiting(run_id), []);
    let (registry, none) = lending.take(session, RunId::new(), Some("b"), ours.clone());
    assert!(registry.is(&ours) && none.is_none());
}

#[test]
fn what_is_demanded_of_a_run_is_told_once_and_only_while_it_goes() {
    let lending = Lending::default();
    let (session, run_id) = (SessionId::new(), RunId::new());
    let demands = Demands {
        calls: vec!["weather".to_owned()],
        ..Demands::default()
    };
    let lent = LentByProgram {
        demands: demands.clone(),
        ..of_weather()
    };
    let _offer = lending.offer(session, "a", lent);
    let (_, borrowed) = lending.take(session, run_id, Some("a"), Registry::new([]));
    assert_eq!(lending.demanded(run_id), Some(demands.clone()));
    assert_eq!(lending.demanded(run_id), None);
    lending.demand(run_id, demands.clone());
    drop(borrowed);
    lending.demand(run_id, demands);
    assert_eq!(lending.demanded(run_id), None);
}
