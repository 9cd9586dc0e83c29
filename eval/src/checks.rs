//! The closed list of checks. Each looks at what was done, none at how it was worded; and
//! each says in a sentence what it found instead.

use std::num::NonZeroUsize;

use navi_actors::protocol::event::Event;
use navi_actors::protocol::todo::TodoStatus;
use serde::Deserialize;
use strum::IntoStaticStr;

use crate::files;
use crate::outcome::{Call, End, Outcome};
use crate::plan_text::executors;
use crate::tasks::WorkspacePath;
use crate::text::{Letters, Pattern, Script};

/// How much of an answer a reason quotes.
const QUOTE_CHARS: usize = 80;

/// One check of a task. In a file: `"completed"`, `{ file_exists = { path = "a.txt" } }`.
#[derive(Clone, Debug, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Check {
    /// Every turn was answered, and no limit ended one.
    Completed,
    FileExists {
        path: WorkspacePath,
    },
    FileMissing {
        path: WorkspacePath,
    },
    FileContains {
        path: WorkspacePath,
        matches: Pattern,
    },
    FileLacks {
        path: WorkspacePath,
        matches: Pattern,
    },
    /// A call that succeeded, of a subagent too.
    ToolCalled {
        tool: String,
        /// What its arguments must match, as JSON.
        args: Option<Pattern>,
        #[serde(default = "one_call")]
        at_least: NonZeroUsize,
    },
    ToolNotCalled {
        tool: String,
        args: Option<Pattern>,
    },
    /// Of the session itself, whether it succeeded or not.
    FirstTool {
        tool: String,
        args: Option<Pattern>,
    },
    NoTool,
    /// A call failed, and a later one of the same tool succeeded.
    Recovered {
        tool: String,
    },
    Event {
        event: String,
        #[serde(default = "one")]
        at_least: usize,
        at_most: Option<usize>,
    },
    PlanMade,
    NoPlan,
    PlanSteps {
        min: usize,
        max: usize,
    },
    /// Every executor that the plan names is there, and it names at least one.
    PlanExecutors,
    /// The session still has its plan at the end.
    PlanKept {
        min: usize,
    },
    /// The last answer. For facts (a number, a name), never for wording.
    AnswerMatches {
        matches: Pattern,
    },
    AnswerLacks {
        matches: Pattern,
    },
    /// The language of the last answer, by its letters.
    Script {
        script: Script,
        #[serde(default = "most")]
        share: f32,
    },
    /// A fact that a tool saved and that was not forgotten again.
    FactStored {
        key: Option<Pattern>,
        value: Pattern,
    },
    /// What a new session of the user is told of them. Waited for.
    Remembered {
        matches: Pattern,
    },
    /// At least so many steps on the todo list, and all of them done.
    TodoDone {
        min: usize,
    },
    TodoHas {
        min: usize,
    },
    CallsAtMost {
        tools: Option<usize>,
        model: Option<u64>,
    },
    SubagentsAtOnce {
        min: usize,
    },
    /// The session's profile at the end.
    ProfileIs {
        id: String,
    },
}

fn one() -> usize {
    1
}

fn one_call() -> NonZeroUsize {
    NonZeroUsize::MIN
}

fn most() -> f32 {
    0.7
}

impl Check {
    /// Its name in a file.
    pub(crate) fn name(&self) -> &'static str {
        self.into()
    }

    /// Whether it holds only once something in the background is done.
    pub(crate) fn is_waited_for(&self) -> bool {
        matches!(self, Self::Remembered { .. })
    }

    /// Whether it holds.
    ///
    /// # Errors
    /// What was found instead.
    pub(crate) fn look(&self, at: &Outcome) -> Result<(), String> {
        match self {
            Self::Completed => completed(at),
            Self::FileExists { path } => files::find(&at.workspace, path).map(|_| ()),
            Self::FileMissing { path } => {
                let there = path.in_dir(&at.workspace).exists();
                holds(!there, || format!("{path} is there"))
            }
            Self::FileContains { path, matches } => {
                let text = files::text(&at.workspace, path)?;
                let found = matches.is_in(&text);
                holds(found, || format!("{path} has nothing like {matches}"))
            }
            Self::FileLacks { path, matches } => {
                let text = files::text(&at.workspace, path)?;
                holds(!matches.is_in(&text), || format!("{path} has {matches}"))
            }
            Self::ToolCalled {
                tool,
                args,
                at_least,
            } => tool_called(at, tool, args.as_ref(), at_least.get()),
            Self::ToolNotCalled { tool, args } => {
                let called = calls_like(at, tool, args.as_ref()).len();
                holds(called == 0, || format!("{tool} was called"))
            }
            Self::FirstTool { tool, args } => first_tool(at, tool, args.as_ref()),
            Self::NoTool => {
                let calls = at.calls();
                holds(calls.is_empty(), || {
                    format!("called were {}", names(&calls))
                })
            }
            Self::Recovered { tool } => recovered(at, tool),
            Self::Event {
                event,
                at_least,
                at_most,
            } => event_count(at, event, *at_least, *at_most),
            Self::PlanMade => plan_steps(at).map(|_| ()),
            Self::NoPlan => holds(plan_steps(at).is_err(), || "a plan was made".to_owned()),
            Self::PlanSteps { min, max } => {
                let steps = plan_steps(at)?;
                holds((*min..=*max).contains(&steps), || {
                    format!("the plan has {steps} steps, not {min} to {max}")
                })
            }
            Self::PlanExecutors => plan_executors(at),
            Self::PlanKept { min } => {
                let steps = at.session.plan.as_ref().map_or(0, |plan| plan.steps.len());
                holds(steps >= *min, || {
                    format!("the session's plan has {steps} steps at the end")
                })
            }
            Self::AnswerMatches { matches } => holds(matches.is_in(at.answer()), || {
                format!("nothing like {matches} in {}", quote(at.answer()))
            }),
            Self::AnswerLacks { matches } => holds(!matches.is_in(at.answer()), || {
                format!("{matches} is in {}", quote(at.answer()))
            }),
            Self::Script { script, share } => script_share(at.answer(), *script, *share),
            Self::FactStored { key, value } => fact_stored(at, key.as_ref(), value),
            Self::Remembered { matches } => {
                let text = at.remembered.as_deref().unwrap_or_default();
                holds(matches.is_in(text), || {
                    format!("a new session is told nothing like {matches} of the user")
                })
            }
            Self::TodoDone { min } => todo_done(at, *min),
            Self::TodoHas { min } => {
                let count = at.session.todo.len();
                holds(count >= *min, || format!("the todo list has {count} steps"))
            }
            Self::CallsAtMost { tools, model } => calls_at_most(at, *tools, *model),
            Self::SubagentsAtOnce { min } => {
                let most = at.subagents_at_once();
                holds(most >= *min, || {
                    format!("at most {most} subagents worked at the same time")
                })
            }
            Self::ProfileIs { id } => {
                let now = &at.session.summary.profile_id;
                holds(now == id, || format!("the session has the profile {now}"))
            }
        }
    }
}

fn holds(it_does: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if it_does { Ok(()) } else { Err(otherwise()) }
}

/// The start of a text, on one line.
fn quote(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = line.char_indices().nth(QUOTE_CHARS) {
        line.truncate(at);
        line.push('…');
    }
    format!("{line:?}")
}

fn completed(at: &Outcome) -> Result<(), String> {
    let is_short = |end: &End| matches!(end, End::Answered { completed: false });
    let short = at.turns.iter().any(|turn| is_short(&turn.end));
    match at.trouble() {
        Some(trouble) => Err(trouble),
        None => holds(!short, || "a limit ended the run".to_owned()),
    }
}

fn names(calls: &[Call]) -> String {
    let names: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    names.join(", ")
}

fn is_like(call: &Call, tool: &str, args: Option<&Pattern>) -> bool {
    call.tool == tool && args.is_none_or(|args| args.is_in(&call.args.to_string()))
}

fn calls_like(at: &Outcome, tool: &str, args: Option<&Pattern>) -> Vec<Call> {
    let calls = at.calls().into_iter();
    calls.filter(|call| is_like(call, tool, args)).collect()
}

/// What to say of a tool that was not called as it should have been.
fn instead(at: &Outcome, tool: &str) -> String {
    let calls = at.calls();
    if !at.tools.iter().any(|known| known == tool) {
        "this navi has no such tool".to_owned()
    } else if calls.is_empty() {
        "no tool was called".to_owned()
    } else {
        format!("called were {}", names(&calls))
    }
}

fn tool_called(
    at: &Outcome,
    tool: &str,
    args: Option<&Pattern>,
    at_least: usize,
) -> Result<(), String> {
    let calls = calls_like(at, tool, args);
    let well = calls.iter().filter(|call| call.success == Some(true));
    let well = well.count();
    holds(well >= at_least, || {
        let like = args.map_or_else(String::new, |args| format!(" with {args}"));
        if calls.len() >= at_least {
            format!("{tool}{like} was called, and failed")
        } else if at_least > 1 {
            format!("{tool}{like} was called {well} times, not {at_least}")
        } else {
            format!("{tool}{like} was not called: {}", instead(at, tool))
        }
    })
}

fn first_tool(at: &Outcome, tool: &str, args: Option<&Pattern>) -> Result<(), String> {
    let calls = at.calls();
    match calls.iter().find(|call| !call.is_subagent) {
        Some(first) if is_like(first, tool, args) => Ok(()),
        Some(first) => Err(format!("the first call was {} {}", first.tool, first.args)),
        None => Err(instead(at, tool)),
    }
}

fn recovered(at: &Outcome, tool: &str) -> Result<(), String> {
    let calls = calls_like(at, tool, None);
    let Some(failed) = calls.iter().position(|call| call.success == Some(false)) else {
        return Err(format!("no call of {tool} failed"));
    };
    let later = calls.iter().skip(failed + 1);
    let well = later.filter(|call| call.success == Some(true)).count();
    holds(well > 0, || {
        format!("after a failed call of {tool} none succeeded")
    })
}

fn event_count(
    at: &Outcome,
    event: &str,
    at_least: usize,
    at_most: Option<usize>,
) -> Result<(), String> {
    let events = at.events.iter().map(|envelope| envelope.event.name());
    let count = events.filter(|name| *name == event).count();
    let fits = count >= at_least && at_most.is_none_or(|most| count <= most);
    holds(fits, || format!("{event} came {count} times"))
}

/// How many steps the session's own newest plan has.
fn plan_steps(at: &Outcome) -> Result<usize, String> {
    let plans = at.events.iter().rev();
    let steps = plans.filter_map(|envelope| match &envelope.event {
        Event::PlanReady {
            steps,
            is_subagent: false,
            ..
        } => Some(steps.len()),
        _ => None,
    });
    let mut steps = steps;
    steps.next().ok_or_else(|| "no plan was made".to_owned())
}

fn plan_executors(at: &Outcome) -> Result<(), String> {
    plan_steps(at)?;
    let texts = at
        .events
        .iter()
        .filter_map(|envelope| match &envelope.event {
            Event::PlanReady { plan, .. } => Some(plan.as_str()),
            _ => None,
        });
    let named: Vec<_> = texts.flat_map(executors).collect();
    if named.is_empty() {
        return Err("the plan names no executor".to_owned());
    }
    match named
        .iter()
        .find(|named| !named.is_in(&at.tools, &at.profiles))
    {
        Some(unknown) => Err(format!("the plan names {unknown}, which is not there")),
        None => Ok(()),
    }
}

fn script_share(answer: &str, script: Script, wanted: f32) -> Result<(), String> {
    let share = Letters::of(answer).share(script);
    holds(share >= wanted, || {
        let percent = share * 100.0;
        format!("{percent:.0}% of {} is {script:?}", quote(answer)).to_lowercase()
    })
}

fn fact_stored(at: &Outcome, key: Option<&Pattern>, value: &Pattern) -> Result<(), String> {
    let facts = at.facts();
    let found = facts.iter().any(|fact| {
        let name = format!("{} {}", fact.category, fact.key);
        value.is_in(&fact.value) && key.is_none_or(|key| key.is_in(&name))
    });
    holds(found, || match facts.last() {
        None => format!("no fact was saved: {}", instead(at, "memory_save")),
        Some(last) => format!(
            "none like {value}; the last is {}/{}: {}",
            last.category,
            last.key,
            quote(&last.value)
        ),
    })
}

fn todo_done(at: &Outcome, min: usize) -> Result<(), String> {
    let todo = &at.session.todo;
    let done = todo.iter().filter(|item| item.status == TodoStatus::Done);
    let done = done.count();
    holds(todo.len() >= min && done == todo.len(), || {
        format!("{done} of {} steps are done", todo.len())
    })
}

fn calls_at_most(at: &Outcome, tools: Option<usize>, model: Option<u64>) -> Result<(), String> {
    let called = at.calls().len();
    holds(tools.is_none_or(|most| called <= most), || {
        format!("{called} tools were called")
    })?;
    let asked = at.spent.calls;
    holds(model.is_none_or(|most| asked <= most), || {
        format!("the model was called {asked} times")
    })
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
