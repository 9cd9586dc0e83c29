//! How a response begins: where its conversation is, and what it goes on from.

use std::collections::HashMap;
use std::time::Duration;

use actix_web::http::header::HeaderMap;
use navi_actors::domain::demands::Demands;
use navi_actors::domain::permissions::Action;
use navi_actors::domain::session::command::ApprovalAnswer;
use navi_actors::protocol::command::Decision;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::ids::{CallId, RunId, SessionId};
use navi_actors::protocol::import::ImportedMessage;
use navi_actors::protocol::message::{Message, Role, ToolCall};
use serde_json::Value;

use super::ids::{ResponseId, session_name};
use super::request::{Approval, Entry, Request};
use super::{stored, unknown};
use crate::access::Principal;
use crate::doors::answer::{Answer, Approvals, Begin, Place, Repeat, Waits, was_asked_in};
use crate::doors::asked::{Asked, Said, Way, checked_name, invalid, repeat_of, session_of};
use crate::http::App;

/// How many responses a request may refer to.
const MAX_REFERRED: usize = 100;

/// What answers a request.
pub(super) enum Begun {
    /// A run, begun, joined, or gone on with.
    Run(Box<Answer>),
    /// The model alone: it was a title, tags or their like. Nothing is kept of it.
    Text(String),
}

/// # Errors
/// What is wrong with the request; nothing was begun then.
pub(super) async fn begin(
    app: &App,
    who: Principal,
    headers: &HeaderMap,
    mut request: Request,
) -> Result<Begun, NaviError> {
    let entries = std::mem::take(&mut request.entries);
    let turn = entries.iter().rev().take_while(|entry| is_turn(entry));
    let turn = turn.count();
    let first = entries.len() - turn;
    if entries[first..]
        .iter()
        .any(|it| matches!(it, Entry::Approval(_)))
    {
        let turn = entries.into_iter().skip(first);
        let gone_on = go_on(app, who, turn, request.terms.demands).await?;
        return Ok(Begun::Run(gone_on));
    }
    let repeat = repeat_of(headers, request.hash)?;
    // Two that go on from one response find it one after the other.
    let there = match request.previous {
        Some(previous) => Some(app.requests.turn(previous.session).await),
        None => None,
    };
    let Standing {
        place,
        before,
        waits,
    } = standing(app, who, headers, &request, repeat).await?;
    let said = match place {
        // It has a history of its own.
        Place::Session(_) => said_alone(entries),
        Place::New | Place::Request => resolved(app, who, entries).await?,
    };
    let instructions = request.instructions;
    let instructions = instructions.map(|text| Said::text(Role::System, text));
    let said = instructions.into_iter().chain(said).collect();
    let stores = request.stores;
    let asked = Asked::of(app, request.model, said, request.terms, request.streamed)?;
    if asked.is_task_by(headers)? {
        drop(there);
        let profile_id = asked.profile_id.clone();
        let (form, chat) = (asked.form(), asked.into_chat());
        let text = (app.engine).complete(who.user, profile_id.as_deref(), chat, form);
        return Ok(Begun::Text(text.await?));
    }
    if let Some((session, run_id)) = waits.filter(|_| turn == 0) {
        // The program says something else in place of what it was asked.
        app.engine.stop_only(who.user, session, run_id).await?;
    }
    let way = Way {
        approvals: if stores {
            Approvals::ByProgram
        } else {
            // No later request could name this response.
            Approvals::OnThePage
        },
        place,
        repeat,
    };
    let answer = asked.behind(before).answer_by(app, who, way);
    Ok(Begun::Run(answer.await?))
}

/// What a program says when it is its turn.
fn is_turn(entry: &Entry) -> bool {
    match entry {
        Entry::Approval(_) => true,
        Entry::Said(said) => said.role == Role::Tool,
        Entry::Reference(..) => false,
    }
}

/// Where the conversation is, as a request finds it.
struct Standing {
    place: Place,
    /// What was said before, where the place does not know it.
    before: Vec<ImportedMessage>,
    /// The run there that waits for the program.
    waits: Option<(SessionId, RunId)>,
}

impl From<Place> for Standing {
    fn from(place: Place) -> Self {
        Self {
            place,
            before: Vec::new(),
            waits: None,
        }
    }
}

async fn standing(
    app: &App,
    who: Principal,
    headers: &HeaderMap,
    request: &Request,
    repeat: Repeat,
) -> Result<Standing, NaviError> {
    if let Some(name) = &request.conversation {
        let name = checked_name("conversation", session_name(name))?;
        return Ok(Place::Session(name).into());
    }
    if let Some(previous) = request.previous {
        return behind(app, who, previous, request.stores, repeat).await;
    }
    let place = match (session_of(headers)?, request.stores) {
        (Some(name), _) => Place::Session(name),
        (None, true) => Place::New,
        (None, false) => Place::Request,
    };
    Ok(place.into())
}

/// Behind a response: in its session, where that has gone no further but by this request, and this
/// is kept; else in a new one that knows what was said up to there.
async fn behind(
    app: &App,
    who: Principal,
    previous: ResponseId,
    stores: bool,
    repeat: Repeat,
) -> Result<Standing, NaviError> {
    let (engine, user, session) = (&app.engine, who.user, previous.session);
    let gone = |_| unknown(&previous.text());
    let stands = engine.standing(user, session).await.map_err(gone)?;
    let there = Place::Session(session.to_string());
    if !stands.summary.ephemeral && stores {
        if was_asked_in(app, who, session, repeat).await? {
            return Ok(there.into());
        }
        let runs = engine.session_runs(user, session, None).await?.runs;
        let newest = runs.first().map(|run| run.run_id);
        if newest == Some(previous.run) && stands.queue.is_empty() {
            let waits = !stands.approvals.is_empty() || engine.waits_for_program(previous.run);
            return Ok(Standing {
                waits: waits.then_some((session, previous.run)),
                ..there.into()
            });
        }
    }
    let all = engine.snapshot(user, session).await.map_err(gone)?.messages;
    let last = all
        .iter()
        .rposition(|message| message.run_id == previous.run);
    let Some(last) = last else {
        return Err(unknown(&previous.text()));
    };
    let before = all.into_iter().take(last + 1).map(imported);
    Ok(Standing {
        place: if stores { Place::New } else { Place::Request },
        before: before.collect::<Result<_, _>>()?,
        waits: None,
    })
}

/// A message as an import has it: the form of an export is that of the wire.
fn imported(message: Message) -> Result<ImportedMessage, NaviError> {
    let unlike = |error: serde_json::Error| {
        tracing::error!(%error, "a message cannot be read as an import has it");
        NaviError::new(
            ErrorCode::Internal,
            "something failed here; the log says what",
        )
    };
    serde_json::from_value(serde_json::to_value(message).map_err(unlike)?).map_err(unlike)
}

fn said_alone(entries: Vec<Entry>) -> Vec<Said> {
    let said = entries.into_iter().filter_map(|entry| match entry {
        Entry::Said(said) => Some(said),
        Entry::Reference(..) | Entry::Approval(_) => None,
    });
    said.collect()
}

/// All that was said, with what references stand for.
async fn resolved(app: &App, who: Principal, entries: Vec<Entry>) -> Result<Vec<Said>, NaviError> {
    let mut responses: HashMap<ResponseId, Vec<Value>> = HashMap::new();
    let mut all = Vec::new();
    for entry in entries {
        match entry {
            Entry::Said(said) => all.push(said),
            Entry::Approval(_) => {}
            Entry::Reference(id, at) => {
                if !responses.contains_key(&id) {
                    if responses.len() == MAX_REFERRED {
                        return Err(invalid(format!(
                            "item references may lead to {MAX_REFERRED} responses at most; previous_response_id leads to all before it"
                        )));
                    }
                    responses.insert(id, stored::output(app, who, id).await?);
                }
                let item = responses.get(&id).and_then(|items| items.get(at));
                all.extend(item.and_then(said_of));
            }
        }
    }
    Ok(all)
}

/// What an item of an output says; none of those that tell what Navi did.
fn said_of(item: &Value) -> Option<Said> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let said = |text: String| Said::text(Role::Assistant, text);
    match item["type"].as_str()? {
        "message" => Some(said(text(&item["content"][0]["text"])?)),
        "function_call" => {
            let call = ToolCall {
                id: CallId(text(&item["call_id"])?),
                name: text(&item["name"])?,
                arguments: serde_json::from_str(item["arguments"].as_str()?).ok()?,
            };
            Some(Said {
                calls: vec![call],
                ..said(String::new())
            })
        }
        _ => None,
    }
}

/// Goes on with the run that asked, by a person's answers, and what came of calls beside them.
async fn go_on(
    app: &App,
    who: Principal,
    turn: impl Iterator<Item = Entry>,
    demands: Demands,
) -> Result<Box<Answer>, NaviError> {
    who.grant.check(Action::GiveConsent)?;
    let (mut approvals, mut results): (Vec<Approval>, Vec<(CallId, String)>) = Default::default();
    for entry in turn {
        match entry {
            Entry::Approval(approval) => approvals.push(approval),
            Entry::Said(Said { text, answers, .. }) => {
                results.extend(answers.map(|call| (call, text)));
            }
            Entry::Reference(..) => {}
        }
    }
    let place = approvals
        .first()
        .map(|approval| (approval.id.session, approval.id.run));
    let Some((session, run)) = place else {
        return Err(invalid("no request for approval is answered"));
    };
    if approvals
        .iter()
        .any(|it| (it.id.session, it.id.run) != (session, run))
    {
        return Err(invalid(
            "requests for approval are answered for one run at a time",
        ));
    }
    let engine = &app.engine;
    let run_of = |_| unknown_run(run);
    let found = engine.run(who.user, run).await.map_err(run_of)?;
    if found.run.session_id != session {
        return Err(unknown_run(run));
    }
    for (call, _) in &results {
        if engine.run_of_lent_call(who.user, call).await != Some((session, run)) {
            return Err(invalid("a result is of no call of the run that asked"));
        }
    }
    let asked = approvals.iter().map(|it| Waits::Approval(it.id.approval));
    let called = results.iter().map(|(call, _)| Waits::Call(call.clone()));
    let waits = asked.chain(called).collect();
    let begin = Begin::Behind(waits);
    let place = (session, run);
    let joined = Answer::joined(app, who, place, Approvals::ByProgram, begin).await?;
    // A request that comes again finds nothing that waits, and demands nothing once more.
    let open = engine.approvals(who.user, session).await?;
    let is_open = |it: &Approval| open.iter().any(|one| one.approval_id == it.id.approval);
    let waits = |(call, _): &(CallId, String)| engine.lent_call_waits(call);
    if approvals.iter().any(is_open) || results.iter().any(waits) {
        engine.demand(run, demands);
    }
    for Approval {
        id,
        approves,
        reason,
    } in approvals
    {
        let answer = ApprovalAnswer {
            decision: if approves {
                Decision::Once
            } else {
                Decision::Deny
            },
            note: reason.filter(|_| !approves).map(|reason| one_line(&reason)),
        };
        match engine.approve(who.user, session, id.approval, answer).await {
            // On the page, or by this request the time before.
            Err(error) if error.code == ErrorCode::ApprovalResolved => {}
            answered => answered?,
        }
    }
    for (call, result) in results {
        engine.answer_lent_call(&call, Ok(result));
    }
    Ok(joined.patient(Duration::ZERO))
}

fn unknown_run(run: RunId) -> NaviError {
    NaviError::new(ErrorCode::NotFound, format!("there is no run {run} here"))
}

/// A note has one line, and not too long a one.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(500).collect()
}
