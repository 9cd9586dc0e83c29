//! Responses that were made before.

use actix_web::HttpResponse;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::inspect::{RunDetails, RunInfo};
use navi_actors::protocol::message::Role;
use navi_actors::protocol::session::QueuedMessage;
use serde_json::{Map, Value, json};

use super::ids::{self, ResponseId};
use super::items::{Items, Status};
use super::{ReadQuery, Source, head, stream_of, unknown};
use crate::access::Principal;
use crate::doors::answer::{Answer, Approvals, Begin, Past, Told, past, used};
use crate::http::App;

/// A response as it is found.
enum Found {
    /// Its run waits for the one that goes.
    Queued(Box<QueuedMessage>),
    Begun(Box<RunDetails>),
}

async fn found(app: &App, who: Principal, text: &str) -> Result<(ResponseId, Found), NaviError> {
    let id = ResponseId::read(text).ok_or_else(|| unknown(text))?;
    let session = app.engine.standing(who.user, id.session).await;
    let mut queue = session.map_err(|_| unknown(text))?.queue.into_iter();
    if let Some(queued) = queue.find(|queued| queued.run_id == id.run) {
        return Ok((id, Found::Queued(Box::new(queued))));
    }
    match app.engine.run(who.user, id.run).await {
        Ok(run) if run.run.session_id == id.session => Ok((id, Found::Begun(Box::new(run)))),
        Err(error) if error.code != ErrorCode::NotFound => Err(error),
        Ok(_) | Err(_) => Err(unknown(text)),
    }
}

/// What is known of a response, beside what was told.
fn head_of(id: ResponseId, run: &RunInfo) -> Map<String, Value> {
    let model = format!("navi/{}", run.profile_id);
    let mut head = head(&model, run.started_at.timestamp());
    let conversation = ids::conversation(id.session);
    head.insert("conversation".to_owned(), json!({"id": conversation}));
    head
}

pub(super) async fn read(
    app: &App,
    who: Principal,
    text: &str,
    query: &ReadQuery,
) -> Result<HttpResponse, NaviError> {
    let (id, found) = found(app, who, text).await?;
    let details = match found {
        Found::Begun(details) => details,
        Found::Queued(queued) => {
            let head = head("navi", queued.created_at.timestamp());
            let items = Items::new(id, head, query.starting_after);
            if query.stream {
                let answer = joined(app, who, id).await?;
                return Ok(stream_of(Source::Live(answer), items));
            }
            let mut response = items.response(&Status::InProgress, None);
            response["status"] = json!("queued");
            return Ok(HttpResponse::Ok().json(response));
        }
    };
    let run = &details.run;
    let known = query.starting_after.filter(|_| query.stream);
    let mut items = Items::new(id, head_of(id, run), known);
    let told = match past(app, who, run, Approvals::ByProgram, id.number).await? {
        Past::Never => return Err(unknown(text)),
        Past::Told(told) => told,
        Past::Goes if query.stream => {
            let answer = joined(app, who, id).await?;
            return Ok(stream_of(Source::Live(answer), items));
        }
        Past::Goes => match waiting(app, who, id).await? {
            Some(told) => told,
            None => {
                let response = items.response(&Status::InProgress, None);
                return Ok(HttpResponse::Ok().json(response));
            }
        },
    };
    if query.stream {
        let source = Source::Past(told.into(), used(&details));
        return Ok(stream_of(source, items));
    }
    let status = take_all(&mut items, told);
    let response = items.response(&status, Some(used(&details)));
    Ok(HttpResponse::Ok().json(response))
}

/// What a response's output says.
pub(super) async fn output(
    app: &App,
    who: Principal,
    id: ResponseId,
) -> Result<Vec<Value>, NaviError> {
    let (id, found) = found(app, who, &id.text()).await?;
    let Found::Begun(details) = found else {
        return Ok(Vec::new());
    };
    let Past::Told(told) = past(app, who, &details.run, Approvals::ByProgram, id.number).await?
    else {
        return Ok(Vec::new());
    };
    let mut items = Items::new(id, Map::new(), None);
    take_all(&mut items, told);
    Ok(items.output().to_vec())
}

/// Takes all that was told. How the response ended.
pub(super) fn take_all(items: &mut Items, told: Vec<Told>) -> Status {
    let mut status = Status::Completed;
    for told in told {
        match told {
            Told::Over(ending) => status = ending.into(),
            told => items.take(told),
        }
        drop(items.ready());
    }
    items.end(&status, (0, 0));
    status
}

async fn joined(app: &App, who: Principal, id: ResponseId) -> Result<Box<Answer>, NaviError> {
    let begin = Begin::AtAnswer(id.number);
    let place = (id.session, id.run);
    Answer::joined(app, who, place, Approvals::ByProgram, begin).await
}

/// What was told of a run that waits for its program; none where it goes.
async fn waiting(
    app: &App,
    who: Principal,
    id: ResponseId,
) -> Result<Option<Vec<Told>>, NaviError> {
    let engine = &app.engine;
    let asks = engine.approvals(who.user, id.session).await?;
    if asks.is_empty() && engine.lent_calls(id.run).is_empty() {
        return Ok(None);
    }
    let mut answer = joined(app, who, id).await?;
    let mut all = Vec::new();
    loop {
        match answer.next().await {
            // It goes on after all.
            Told::Silence => return Ok(None),
            told => {
                let is_end = matches!(told, Told::Over(_));
                all.push(told);
                if is_end {
                    return Ok(Some(all));
                }
            }
        }
    }
}

pub(super) async fn cancel(
    app: &App,
    who: Principal,
    text: &str,
) -> Result<HttpResponse, NaviError> {
    let (engine, user) = (&app.engine, who.user);
    let (id, found) = found(app, who, text).await?;
    match found {
        Found::Queued(queued) => {
            engine.withdraw(user, id.session, queued.message_id).await?;
            let items = Items::new(id, head("navi", queued.created_at.timestamp()), None);
            let response = items.response(&Status::Cancelled, None);
            Ok(HttpResponse::Ok().json(response))
        }
        Found::Begun(details) => {
            let stands = engine.standing(user, id.session).await?;
            let goes = stands.run.is_some_and(|run| run.run_id == id.run);
            if goes {
                let mut answer = joined(app, who, id).await?;
                engine.stop_only(user, id.session, id.run).await?;
                let head = head_of(id, &details.run);
                let mut items = Items::new(id, head, None);
                let status = loop {
                    match answer.next().await {
                        Told::Over(ending) => break ending.into(),
                        told => items.take(told),
                    }
                    drop(items.ready());
                };
                let used = answer.usage().await;
                items.end(&status, used);
                return Ok(HttpResponse::Ok().json(items.response(&status, Some(used))));
            }
            read(app, who, text, &ReadQuery::default()).await
        }
    }
}

pub(super) async fn delete(app: &App, who: Principal, text: &str) -> Result<Value, NaviError> {
    let (engine, user) = (&app.engine, who.user);
    let (id, _) = found(app, who, text).await?;
    let runs = engine.session_runs(user, id.session, None).await?.runs;
    if runs.iter().any(|run| run.run_id != id.run) {
        return Err(NaviError::new(
            ErrorCode::SessionBusy,
            format!(
                "its session has other answers, too; DELETE /sessions/{} deletes all of it",
                id.session
            ),
        ));
    }
    engine.delete(user, id.session).await?;
    Ok(json!({"id": text, "object": "response", "deleted": true}))
}

/// The message that the response answers.
pub(super) async fn input_items(app: &App, who: Principal, text: &str) -> Result<Value, NaviError> {
    let (id, _) = found(app, who, text).await?;
    let messages = app.engine.snapshot(who.user, id.session).await?.messages;
    let asked = messages.into_iter();
    let asked = asked.filter(|message| message.run_id == id.run && message.role == Role::User);
    let items: Vec<Value> = asked
        .map(|message| {
            let text = json!({"type": "input_text", "text": message.content});
            json!({
                "id": format!("msg_{}", message.id.0.simple()),
                "type": "message",
                "role": "user",
                "status": "completed",
                "content": [text],
            })
        })
        .collect();
    let id_of = |item: Option<&Value>| item.map(|item| item["id"].clone());
    Ok(json!({
        "object": "list",
        "first_id": id_of(items.first()),
        "last_id": id_of(items.last()),
        "data": items,
        "has_more": false,
    }))
}
