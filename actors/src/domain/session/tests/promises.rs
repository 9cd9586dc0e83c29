//! What people do at once, before anything of it is told.

use std::collections::HashSet;

use super::runs::{WINDOW, profile};
use super::store::Stored;
use super::world::{NOW, policy};
use crate::domain::history::{ContextState, MessagePosition};
use crate::domain::model_calls::{ModelCall, Prompt};
use crate::domain::planning::ToolSteps;
use crate::domain::run_loop::{EndReason, Record, RunEnd, RunLoop, RunStart, RunSummary, failed};
use crate::domain::scratchpad::ScratchpadCommand;
use crate::domain::session::command::{BranchStart, ChildStart, Command, Incoming, SessionChange};
use crate::domain::session::state::State;
use crate::domain::session::stored::LoadedSession;
use crate::domain::session::transition::{
    Accepted, Compacted, Effect, Refused, Reply, ReplyTo, StartPoint, Transition,
};
use crate::domain::session::write::Write;
use crate::domain::session::{QUEUE_HELD, Session};
use crate::domain::todo::{StepMark, TodoCommand};
use crate::protocol::approval::ConsentMode;
use crate::protocol::chat::Usage;
use crate::protocol::command::{PlainConsent, SendMode, UserInput};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::{Event, WaitReason};
use crate::protocol::ids::{CallId, MessageId, Origin, RunId};
use crate::protocol::inspect::{CallKind, CallOutcome};
use crate::protocol::message::{Message, ToolCall};
use crate::protocol::phrase::Phrase;
use crate::protocol::plan::{Executor, Plan, PlanStep};
use crate::protocol::session::RunState;
use crate::protocol::todo::TodoStatus;

/// A session of which nothing is told: what is submitted piles up.
struct Desk {
    session: Session,
    told: State,
    submitted: Vec<Transition>,
    asked: u64,
}

impl Desk {
    fn new() -> Self {
        Self::of(Stored::new().load())
    }

    fn of(loaded: LoadedSession) -> Self {
        let (session, told, _) = Session::load(loaded, policy());
        Self {
            session,
            told,
            submitted: Vec::new(),
            asked: 0,
        }
    }

    /// Does a command, and gives back what it is answered: now, or once it is told.
    fn ask(&mut self, command: Command) -> Result<Reply, Refused> {
        self.asked += 1;
        let to = ReplyTo(self.asked);
        let transition = self.session.handle(command, to, NOW);
        let mut effects = transition.now.iter().chain(&transition.then);
        let reply = effects.find_map(|effect| match effect {
            Effect::Reply(whom, reply) if *whom == to => Some(reply.clone()),
            _ => None,
        });
        self.submitted.push(transition);
        reply.unwrap_or(Ok(Reply::Done(())))
    }

    fn send(&mut self, content: &str, mode: SendMode) -> Accepted {
        let incoming = Incoming {
            input: UserInput {
                content: content.to_owned(),
                images: Vec::new(),
                files: Vec::new(),
                attached: Vec::new(),
                author: None,
                client_id: Some(content.to_owned()),
                mode,
            },
            plain: None,
            config: None,
            stored: None,
        };
        match self.ask(Command::Send(Box::new(incoming))) {
            Ok(Reply::Accepted(accepted)) => accepted,
            other => panic!("{other:?}"),
        }
    }

    fn record(&mut self, run_id: RunId, records: Vec<Record>) {
        self.ask(Command::Record { run_id, records }).unwrap();
    }

    fn ends(&mut self, run_id: RunId, end: RunEnd) {
        let summary = RunSummary {
            end,
            text: String::new(),
            iterations: 1,
            prompt_tokens: 0,
            completion_tokens: 0,
            cached_tokens: 0,
            leaked_calls: 0,
        };
        self.record(run_id, vec![Record::Ended(summary)]);
    }

    fn writes(&self) -> impl Iterator<Item = &Write> {
        self.submitted
            .iter()
            .flat_map(|transition| &transition.change.writes)
    }

    /// All of it is told.
    fn settle(&mut self) -> &State {
        for transition in self.submitted.drain(..) {
            self.told.apply(&transition.change);
        }
        assert_eq!(self.told, *self.session.ahead());
        &self.told
    }
}

fn code(refused: Result<Reply, Refused>) -> ErrorCode {
    match refused {
        Err(Refused::Error(error)) => error.code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_is_withdrawn_once_and_not_edited_after() {
    let mut desk = Desk::new();
    desk.send("first", SendMode::Queue);
    let waiting = desk.send("second", SendMode::Queue).message_id;
    assert_eq!(desk.ask(Command::Withdraw(waiting)), Ok(Reply::Done(())));
    assert_eq!(
        code(desk.ask(Command::Withdraw(waiting))),
        ErrorCode::MessageNotFound
    );
    let edit = Command::EditQueued {
        message_id: waiting,
        content: "other".to_owned(),
        author: None,
    };
    assert_eq!(code(desk.ask(edit)), ErrorCode::MessageNotFound);
    let dequeued = desk
        .writes()
        .filter(|write| matches!(write, Write::Dequeue(_)));
    assert_eq!(dequeued.count(), 1);
}

#[test]
fn a_message_that_was_handed_to_the_run_is_not_withdrawn() {
    let mut desk = Desk::new();
    let first = desk.send("first", SendMode::Queue);
    let steered = desk.send("also", SendMode::Steer).message_id;
    desk.ask(Command::Checkpoint(first.run_id)).unwrap();
    assert_eq!(
        code(desk.ask(Command::Withdraw(steered))),
        ErrorCode::MessageNotFound
    );
}

#[test]
fn an_edit_before_the_runs_end_is_what_the_next_run_answers() {
    let mut desk = Desk::new();
    let first = desk.send("first", SendMode::Queue);
    let waiting = desk.send("second", SendMode::Queue).message_id;
    let edit = Command::EditQueued {
        message_id: waiting,
        content: "other words".to_owned(),
        author: None,
    };
    desk.ask(edit).unwrap();
    desk.ends(first.run_id, RunEnd::Answered);
    let said = desk.writes().find_map(|write| match write {
        Write::Message(message) if message.id == waiting => message.content.clone(),
        _ => None,
    });
    assert_eq!(said.as_deref(), Some("other words"));
}

#[test]
fn a_mode_that_is_set_back_is_set_back() {
    let mut desk = Desk::new();
    let before = desk.session.ahead().mode;
    desk.ask(Command::SetMode(ConsentMode::Auto)).unwrap();
    desk.ask(Command::SetMode(before)).unwrap();
    assert_eq!(desk.settle().mode, before);
}

#[test]
fn a_model_that_is_set_back_is_set_back() {
    let mut desk = Desk::new();
    for model in [Some("big".to_owned()), None] {
        let change = SessionChange {
            model: Some(model.clone()),
            ..SessionChange::default()
        };
        let changed = desk.ask(Command::Change(change));
        assert!(matches!(changed, Ok(Reply::Summary(summary)) if summary.model == model));
    }
    assert_eq!(desk.settle().summary.model, None);
}

#[test]
fn two_toggles_of_a_pin_have_two_answers() {
    let mut desk = Desk::new();
    let pinned = [(); 2].map(|()| match desk.ask(Command::TogglePin) {
        Ok(Reply::Summary(summary)) => summary.pinned,
        other => panic!("{other:?}"),
    });
    assert_eq!(pinned, [true, false]);
}

#[test]
fn what_is_put_away_is_not_pinned_and_comes_back_with_what_goes_on() {
    let mut desk = Desk::new();
    let put_away = |desk: &mut Desk| {
        desk.ask(Command::Pin(true)).unwrap();
        let archive = SessionChange {
            archived: Some(true),
            ..SessionChange::default()
        };
        match desk.ask(Command::Change(archive)) {
            Ok(Reply::Summary(row)) => assert!(row.archived && !row.pinned, "{row:?}"),
            other => panic!("{other:?}"),
        }
    };
    put_away(&mut desk);
    let rename = SessionChange {
        title: Some("Another".to_owned()),
        ..SessionChange::default()
    };
    desk.ask(Command::Change(rename)).unwrap();
    assert!(desk.session.ahead().summary.archived);

    desk.ask(Command::Pin(true)).unwrap();
    assert!(!desk.session.ahead().summary.archived);

    put_away(&mut desk);
    desk.send("hello", SendMode::Queue);
    assert!(!desk.session.ahead().summary.archived);

    // While its run goes: what waits for it was said before.
    desk.send("and then?", SendMode::Queue);
    put_away(&mut desk);
    assert!(desk.settle().summary.archived);
    desk.send("one more", SendMode::Queue);
    assert!(!desk.settle().summary.archived);
}

#[test]
fn a_message_sent_twice_before_it_is_told_is_one() {
    let mut desk = Desk::new();
    let first = desk.send("first", SendMode::Queue);
    let again = desk.send("first", SendMode::Queue);
    assert!(again.duplicate && again.message_id == first.message_id);
    assert_eq!(desk.settle().message_count, 1);
}

#[test]
fn a_stop_of_one_run_stops_none_that_came_after_it() {
    let mut desk = Desk::new();
    let first = desk.send("first", SendMode::Queue);
    let second = desk.send("second", SendMode::Queue);
    desk.send("third", SendMode::Queue);
    desk.ends(first.run_id, RunEnd::Answered);
    let stop = |desk: &mut Desk, run_id| desk.ask(Command::StopOnly { run_id, hold: true });
    assert_eq!(stop(&mut desk, first.run_id), Ok(Reply::Found(false)));
    assert!(!desk.settle().is_held());
    assert_eq!(stop(&mut desk, second.run_id), Ok(Reply::Found(true)));
    assert!(desk.settle().is_held());
}

#[test]
fn what_waits_is_not_begun_by_a_stop_that_holds_it() {
    let mut desk = Desk::new();
    let stop = |hold| Command::Stop { hold };
    let first = desk.send("first", SendMode::Queue);
    let waits = desk.send("second", SendMode::Queue);
    desk.ask(stop(true)).unwrap();
    desk.ends(first.run_id, RunEnd::Stopped);
    assert!(desk.session.is_idle() && desk.settle().is_held());
    let went_on = desk.ask(Command::Continue { queue: false });
    assert_eq!(went_on, Ok(Reply::Continued(waits.run_id)));
    assert!(desk.settle().queue.is_empty());

    // What one writes then comes first, and the rest behind it.
    let third = desk.send("third", SendMode::Queue);
    desk.ask(stop(true)).unwrap();
    desk.ends(waits.run_id, RunEnd::Stopped);
    let instead = desk.send("instead", SendMode::Queue);
    assert!(!instead.queued);
    desk.ends(instead.run_id, RunEnd::Answered);
    let running = |desk: &mut Desk| desk.settle().running().map(|run| run.run_id);
    assert_eq!(running(&mut desk), Some(third.run_id));

    // It holds only where that was asked.
    let fourth = desk.send("fourth", SendMode::Queue);
    desk.ask(stop(false)).unwrap();
    desk.ends(third.run_id, RunEnd::Stopped);
    assert_eq!(running(&mut desk), Some(fourth.run_id));
    let fifth = desk.send("fifth", SendMode::Queue);
    desk.ask(stop(false)).unwrap();
    desk.ends(fourth.run_id, RunEnd::Stopped);
    assert_eq!(running(&mut desk), Some(fifth.run_id));
}

#[test]
fn nothing_begins_by_itself_after_a_stop_whatever_ends_the_run() {
    let ends = [
        RunEnd::Answered,
        RunEnd::Limited,
        RunEnd::Stopped,
        RunEnd::Failed(NaviError::new(ErrorCode::RunFailed, "no model")),
    ];
    for end in ends {
        let mut desk = Desk::new();
        let first = desk.send("first", SendMode::Queue);
        let waits = desk.send("second", SendMode::Queue);
        desk.ask(Command::Stop { hold: true }).unwrap();
        // It had ended when the stop came, and that is what is told.
        desk.ends(first.run_id, end.clone());
        let mut told = desk.submitted.iter().flat_map(|it| &it.change.events);
        let says_so = told
            .any(|(_, event)| matches!(event, Event::Notice { code, .. } if code == QUEUE_HELD));
        assert_eq!(says_so, end != RunEnd::Stopped, "{end:?}");
        assert!(desk.session.is_idle() && desk.settle().is_held(), "{end:?}");
        let went_on = desk.ask(Command::Continue { queue: false }).unwrap();
        let goes_on = matches!(end, RunEnd::Limited | RunEnd::Failed(_));
        assert_eq!(went_on == Reply::Continued(waits.run_id), !goes_on);
        assert!(
            !desk.settle().held,
            "what goes on is followed by what waits"
        );
    }
}

#[test]
fn what_is_held_is_released_alone_whatever_the_last_run_left() {
    for end in [
        RunEnd::Answered,
        RunEnd::Limited,
        RunEnd::Stopped,
        RunEnd::Failed(NaviError::new(ErrorCode::RunFailed, "no model")),
    ] {
        let mut desk = Desk::new();
        let first = desk.send("first", SendMode::Queue);
        let waits = desk.send("second", SendMode::Queue);
        desk.ask(Command::Stop { hold: true }).unwrap();
        desk.ends(first.run_id, end.clone());
        let release = || Command::Continue { queue: true };
        let went_on = desk.ask(release());
        assert_eq!(went_on, Ok(Reply::Continued(waits.run_id)), "{end:?}");
        assert_eq!(code(desk.ask(release())), ErrorCode::NothingToContinue);
    }
}

#[test]
fn a_run_whose_actor_or_process_died_as_it_was_stopped_was_stopped() {
    let mut desk = Desk::new();
    let first = desk.send("first", SendMode::Queue);
    let waits = desk.send("second", SendMode::Queue);
    desk.ask(Command::Stop { hold: true }).unwrap();
    let mut stored = Stored::new();
    for transition in &desk.submitted {
        stored.commit(&transition.change);
    }
    let died = Command::RunDied {
        run_id: first.run_id,
        unfinished: Vec::new(),
        reads: HashSet::new(),
    };
    desk.ask(died).unwrap();
    let last = |state: &State| state.last_run.as_ref().map(|run| (run.run_id, run.state));
    let stopped = Some((first.run_id, RunState::Stopped));
    assert_eq!(last(desk.settle()), stopped);

    let (mut session, _, found) = Session::load(stored.load(), policy());
    session.recover(found, &HashSet::new(), NOW);
    assert_eq!(last(session.ahead()), stopped);
    assert!(session.ahead().is_held());
    let to = ReplyTo(1);
    let went_on = session.handle(Command::Continue { queue: false }, to, NOW);
    let released = Effect::Reply(to, Ok(Reply::Continued(waits.run_id)));
    assert!(went_on.then.contains(&released), "it is no run to continue");
}

#[test]
fn a_run_that_goes_on_after_a_restart_asks_where_somebody_can_answer() {
    for (ephemeral, consent) in [(false, PlainConsent::Ask), (true, PlainConsent::Deny)] {
        let mut stored = Stored::new();
        stored.state.summary.ephemeral = ephemeral;
        let mut desk = Desk::of(stored.load());
        let run_id = desk.send("first", SendMode::Queue).run_id;
        let mut run_loop = RunLoop::new(RunStart {
            origin: Origin::foreground(run_id),
            profile: &profile(),
            goal: "first".to_owned(),
            plans: false,
            steps: ToolSteps::default(),
            edits_since: None,
            max_tokens: u64::MAX,
            context_tokens: 0,
            window: WINDOW,
        });
        run_loop.park(None, NOW);
        let stands = serde_json::to_string(&run_loop).unwrap();
        desk.record(run_id, vec![Record::Waits(stands)]);
        for transition in &desk.submitted {
            stored.commit(&transition.change);
        }
        let (mut session, _, found) = Session::load(stored.load(), policy());
        let recovered = session.recover(found, &HashSet::new(), NOW);
        let launched = recovered.then.iter().find_map(|effect| match effect {
            Effect::Launch(launch) => Some((launch.run_id, launch.consent)),
            _ => None,
        });
        assert_eq!(launched, Some((run_id, consent)), "{ephemeral}");
    }
}

#[test]
fn a_message_after_a_stop_goes_on_behind_those_before_it() {
    let mut desk = Desk::new();
    let first = desk.send("first", SendMode::Queue);
    let older = desk.send("older", SendMode::Queue);
    desk.ask(Command::Stop { hold: true }).unwrap();
    // The run has not been cut off yet.
    let newer = desk.send("newer", SendMode::Queue);
    assert!(newer.queued);
    let running = |desk: &mut Desk| desk.settle().running().map(|run| run.run_id);
    desk.ends(first.run_id, RunEnd::Stopped);
    assert_eq!(running(&mut desk), Some(older.run_id));
    desk.ends(older.run_id, RunEnd::Answered);
    assert_eq!(running(&mut desk), Some(newer.run_id));
}

#[test]
fn a_run_that_is_being_stopped_is_handed_no_message() {
    for hold in [true, false] {
        let mut desk = Desk::new();
        let first = desk.send("first", SendMode::Queue);
        desk.send("also", SendMode::Steer);
        desk.ask(Command::Stop { hold }).unwrap();
        desk.send("and this", SendMode::Steer);
        match desk.ask(Command::Checkpoint(first.run_id)) {
            Ok(Reply::Checkpoint(state)) => assert_eq!(state.steered, [], "{hold}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(desk.settle().queue.len(), 2, "{hold}");
    }
}

#[test]
fn a_stop_that_holds_is_answered_when_that_is_told_and_cuts_off_at_once() {
    for hold in [true, false] {
        let mut desk = Desk::new();
        let first = desk.send("first", SendMode::Queue);
        let to = ReplyTo(99);
        let stop = desk.session.handle(Command::Stop { hold }, to, NOW);
        let found = Effect::Reply(to, Ok(Reply::Found(true)));
        assert!(stop.now.contains(&Effect::Cancel(first.run_id)));
        assert_eq!(stop.then.contains(&found), hold);
        assert_eq!(stop.now.contains(&found), !hold);
    }
}

#[test]
fn a_summary_of_a_branch_that_is_not_shown_any_more_is_dropped() {
    let mut desk = Desk::new();
    let first = desk.send("first", SendMode::Queue);
    desk.record(first.run_id, vec![Record::ContextTokens(99)]);
    desk.ends(first.run_id, RunEnd::Answered);
    let mut effects = desk
        .submitted
        .iter()
        .flat_map(|transition| &transition.then);
    let summary = effects.find_map(|effect| match effect {
        Effect::Summarise { summary, .. } => Some(*summary),
        _ => None,
    });
    let summary = summary.unwrap();
    assert!(desk.session.wants_summary(summary));
    desk.ask(Command::ShowBranch(0)).unwrap();
    assert!(!desk.session.wants_summary(summary));
    let compacted = Compacted {
        run_id: first.run_id,
        branch_id: 0,
        context: ContextState::default(),
        event: Event::StreamStopped {},
        call: None,
    };
    let command = Command::Summarised {
        summary,
        compacted: Some(Box::new(compacted)),
    };
    desk.ask(command).unwrap();
    assert!(
        !desk
            .writes()
            .any(|write| matches!(write, Write::Context { .. }))
    );
}

#[test]
fn what_a_panic_left_unclear_can_be_said_at_once() {
    let mut desk = Desk::new();
    let run_id = desk.send("first", SendMode::Queue).run_id;
    let call = ToolCall {
        id: CallId::new(),
        name: "write".to_owned(),
        arguments: serde_json::json!({}),
    };
    let mut message = Message::assistant(MessageId::new(), run_id, NOW);
    message.tool_calls = vec![call.clone()];
    let started = Event::ToolStarted {
        tool: call.name.clone(),
        args: call.arguments.clone(),
        is_subagent: false,
        call_id: call.id.clone(),
        message_id: message.id,
        lent: false,
    };
    desk.record(
        run_id,
        vec![Record::Message(message), Record::Event(started)],
    );
    let died = Command::RunDied {
        run_id,
        unfinished: Vec::new(),
        reads: HashSet::new(),
    };
    desk.ask(died).unwrap();
    let unknown = desk.settle().unknown_calls();
    assert_eq!(unknown.len(), 1);
    assert_eq!(unknown[0].call_id, call.id);
}

/// A run that reads its own list, or changes it, goes on while the disk writes.
#[test]
fn a_run_is_answered_for_its_list_and_its_notes_at_once() {
    let mut desk = Desk::new();
    let run_id = desk.send("first", SendMode::Queue).run_id;
    let step = vec!["one".to_owned()];
    let lists =
        [TodoCommand::List, TodoCommand::Add { texts: step }].map(|command| Command::ChangeTodo {
            run_id,
            profile: profile(),
            command,
        });
    let notes = Command::ChangeScratchpad {
        run_id,
        profile: profile(),
        command: ScratchpadCommand::Read,
    };
    for command in lists.into_iter().chain([notes]) {
        let to = ReplyTo(99);
        let done = desk.session.handle(command, to, NOW);
        let answers = |effect: &Effect| matches!(effect, Effect::Reply(whom, Ok(_)) if *whom == to);
        assert!(done.now.iter().any(answers), "{done:?}");
    }
}

#[test]
fn what_a_child_used_stays_used_where_its_parent_ends_it() {
    let mut desk = Desk::new();
    let parent = desk.send("first", SendMode::Queue).run_id;
    let child = RunId::new();
    let start = ChildStart {
        origin: Origin {
            run_id: child,
            parent_run_id: Some(parent),
        },
        call_id: CallId::new(),
        profile_id: "test".to_owned(),
        task: "do it".to_owned(),
    };
    desk.ask(Command::StartChild(Box::new(start))).unwrap();
    let usage = Usage {
        prompt_tokens: 7,
        completion_tokens: 3,
        cached_tokens: Some(5),
    };
    for usage in [Some(usage), None, Some(usage)] {
        let called = ModelCall {
            kind: CallKind::Turn,
            after_seq: None,
            started_at: NOW,
            first_chunk_ms: None,
            duration_ms: 1,
            backend: "fake".to_owned(),
            model: "m".to_owned(),
            usage,
            outcome: CallOutcome::Done,
            attempts: 1,
            message_id: None,
            reply: None,
            own: Vec::new(),
            prompt: Prompt {
                recipe: String::new(),
                parts: Vec::new(),
                sha256: String::new(),
            },
        };
        desk.record(child, vec![Record::Called(Box::new(called))]);
    }
    desk.ends(parent, RunEnd::Stopped);
    let used = desk.writes().find_map(|write| match write {
        Write::RunEnded {
            run_id,
            prompt_tokens,
            completion_tokens,
            cached_tokens,
            ..
        } if *run_id == child => Some((*prompt_tokens, *completion_tokens, *cached_tokens)),
        _ => None,
    });
    assert_eq!(used, Some((14, 6, 10)));
    desk.settle();
}

#[test]
fn a_first_turn_has_a_title_of_what_was_said_first_though_it_was_steered_or_failed() {
    for fails in [false, true] {
        let mut desk = Desk::new();
        let mut run_id = desk.send("first", SendMode::Queue).run_id;
        if fails {
            let error = NaviError::new(ErrorCode::RunFailed, "no model");
            desk.ends(run_id, RunEnd::Failed(error));
            run_id = match desk.ask(Command::Continue { queue: false }) {
                Ok(Reply::Continued(run_id)) => run_id,
                other => panic!("{other:?}"),
            };
        }
        desk.send("also", SendMode::Steer);
        desk.ask(Command::Checkpoint(run_id)).unwrap();
        let mut answer = Message::assistant(MessageId::new(), run_id, NOW);
        answer.content = Some("done".to_owned());
        desk.record(run_id, vec![Record::Message(answer)]);
        desk.ends(run_id, RunEnd::Answered);
        let mut effects = desk.submitted.iter().flat_map(|it| &it.then);
        let asked = effects.find_map(|effect| match effect {
            Effect::FindTitle(exchange) => Some(exchange.asked.as_str()),
            _ => None,
        });
        assert_eq!(asked, Some("first"), "{fails}");
        desk.settle();
    }
}

#[test]
fn two_changes_of_the_list_are_both_kept() {
    let mut desk = Desk::new();
    let run_id = desk.send("first", SendMode::Queue).run_id;
    for step in ["one", "two"] {
        let command = Command::ChangeTodo {
            run_id,
            profile: profile(),
            command: TodoCommand::Add {
                texts: vec![step.to_owned()],
            },
        };
        desk.ask(command).unwrap();
    }
    assert_eq!(desk.settle().todo.len(), 2);
}

#[test]
fn a_run_that_goes_on_follows_the_plan_from_where_it_stood() {
    let mut desk = Desk::new();
    let run_id = desk.send("first", SendMode::Queue).run_id;
    let step = |number, tool: &str| PlanStep {
        number,
        text: "do it".to_owned(),
        executor: Executor::Tool {
            tool: tool.to_owned(),
        },
        milestone: None,
    };
    let plan = Plan {
        run_id,
        message_id: MessageId::new(),
        text: "the plan".to_owned(),
        steps: vec![step(1, "read"), step(2, "read"), step(3, "write")],
    };
    let done = StepMark {
        number: 1,
        status: TodoStatus::Done,
        note: None,
    };
    desk.record(run_id, vec![Record::Plan(plan), Record::Mark(done)]);
    let reason = "it was shut down".to_owned();
    desk.ends(run_id, RunEnd::Interrupted { reason });
    desk.ask(Command::Continue { queue: false }).unwrap();
    let went_on = desk.submitted.last_mut().unwrap();
    let launched = went_on.then.iter_mut().find_map(|effect| match effect {
        Effect::Launch(launch) => Some(&mut launch.from),
        _ => None,
    });
    let Some(StartPoint::Start { steps, .. }) = launched else {
        panic!("{launched:?}");
    };
    let call = ToolCall {
        id: CallId::new(),
        name: "read".to_owned(),
        arguments: serde_json::json!({}),
    };
    assert_eq!(steps.begin(&call).map(|mark| mark.number), Some(2));
}

#[test]
fn a_reload_knows_what_a_run_waits_for_and_why_it_failed() {
    let mut desk = Desk::new();
    let run_id = desk.send("first", SendMode::Queue).run_id;
    let waits = Event::waiting(WaitReason::Lane, Phrase::plain("another call goes"), false);
    desk.record(run_id, vec![Record::Event(waits)]);
    let waiting = desk.settle().waiting.clone().unwrap();
    assert_eq!(waiting.detail, "another call goes");
    assert_eq!(waiting.phrase, Some(Phrase::plain("another call goes")));
    let error = NaviError::said(ErrorCode::RunFailed, Phrase::plain("the model fell silent"));
    let failed = Record::Event(failed(&error));
    desk.record(run_id, vec![failed]);
    desk.ends(run_id, RunEnd::Failed(error));
    let told = desk.settle();
    assert_eq!(told.waiting, None);
    let reason = told.last_run.as_ref().and_then(|run| run.reason.clone());
    let expected = EndReason {
        text: "the model fell silent".to_owned(),
        phrase: Some(Phrase::plain("the model fell silent")),
    };
    assert_eq!(reason, Some(expected));
}

#[test]
fn a_message_that_is_answered_anew_stands_word_for_word() {
    let message = Message::user(MessageId::new(), RunId::new(), "hi".to_owned(), NOW);
    let ordinal = 4;
    // From where on messages stand so; what is before that is in the summary.
    for (start, keeps_summary) in [(ordinal, true), (ordinal + 1, false)] {
        let mut loaded = Stored::new().load();
        loaded.branches[0].context = ContextState {
            start,
            summary: Some(message.clone()),
            ..ContextState::default()
        };
        let mut desk = Desk::of(loaded);
        let anew = BranchStart {
            ordinal,
            branch_id: 0,
            message: message.clone(),
            path: desk.told.path(),
            before: Some(MessagePosition { branch: 0, ordinal }),
            content: None,
            author: None,
        };
        desk.ask(Command::StartBranch(Box::new(anew))).unwrap();
        let summary = &desk.session.ahead().context().summary;
        assert_eq!(summary.is_some(), keeps_summary, "{start}");
    }
}
