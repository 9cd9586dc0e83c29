//! The first token by each of the other ways in, beside the page's own socket: a program's request
//! on a connection that is open, in a session that has had turns.

use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::Bench;
use super::first_token::{PAUSE, WARM_UP, added, added_by};
use crate::conversation::Turn;
use crate::http::Connection;
use crate::model::Ledger;
use crate::navi::Navi;
use crate::report::{Goal, Row, Samples};
use crate::script::{Rate, Script};
use crate::stamp;
use crate::statistics::median;

/// How much a door may take beside what the page's socket takes, in milliseconds.
const OWN_MS: f64 = 0.1;

/// A way in by a request whose answer streams.
struct Door {
    key: &'static str,
    what: &'static str,
    path: &'static str,
    body: fn(&str) -> Value,
}

const DOORS: [Door; 3] = [
    Door {
        key: "first-token-chat",
        what: "added to the first token, by Chat Completions",
        path: "/v1/chat/completions",
        body: |text| json!({"model": "navi", "stream": true, "messages": said(text)}),
    },
    Door {
        key: "first-token-responses",
        what: "the same, by Responses",
        path: "/v1/responses",
        body: |text| json!({"model": "navi", "stream": true, "input": text}),
    },
    Door {
        key: "first-token-ollama",
        what: "the same, by Ollama's API",
        path: "/api/chat",
        body: |text| json!({"model": "navi", "messages": said(text)}),
    },
];

fn said(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let pair = bench.ground.pair().await?;
    let (navi, ledger) = (&pair.navi, &bench.ground.model.ledger);
    let turns = bench.quick_or(10, 20);
    let mut page = Vec::new();
    let (mut doors, mut events) = ([const { Vec::new() }; DOORS.len()], Vec::new());
    for round in 0..bench.rounds(7) {
        // Each comes first as often as the others.
        for place in 0..DOORS.len() + 2 {
            match (place + round) % (DOORS.len() + 2) {
                0 => page.push(by_page(navi, ledger, turns).await?),
                1 => events.push(by_events(navi, ledger, turns).await?),
                n => doors[n - 2].push(by_request(navi, ledger, &DOORS[n - 2], turns).await?),
            }
        }
    }
    let goal = Goal::Value(median(&page) + OWN_MS);
    let row = |key: &str, what: &str, navi: Vec<f64>| {
        let limit = page.clone();
        let row = Row::lower(key, what, "ms", Samples { limit, navi });
        row.with_goal(goal).unrecorded()
    };
    let mut rows: Vec<Row> = std::iter::zip(&DOORS, doors)
        .map(|(door, samples)| row(door.key, door.what, samples))
        .collect();
    let what = "the same, by server-sent events, of a message of a tab's";
    rows.push(row("first-token-events", what, events));
    Ok(rows)
}

async fn by_page(navi: &Navi, ledger: &Ledger, turns: usize) -> Result<f64> {
    let session = navi.new_session().await?;
    let mut tab = navi.tab(&session).await?;
    let mut all = Vec::new();
    for turn in 0..WARM_UP + turns {
        let one = added_by(&mut tab, ledger).await?;
        settle(turn, ledger).await;
        all.push(one);
    }
    Ok(median(&all[WARM_UP..]))
}

async fn by_request(navi: &Navi, ledger: &Ledger, door: &Door, turns: usize) -> Result<f64> {
    let session = navi.new_session().await?;
    let mut connection = Connection::open(navi.address()).await?;
    let mut all = Vec::new();
    for turn in 0..WARM_UP + turns {
        let script = Script::new(8, Rate::Joined);
        let body = (door.body)(&script.to_string());
        let headers = [("x-navi-session", session.as_str())];
        let sent = Instant::now();
        connection
            .post(door.path, navi.script(), &headers, &body)
            .await?;
        let began = first_token(&mut connection).await?;
        connection.rest().await?;
        all.push(of(script, sent, began, ledger)?);
        settle(turn, ledger).await;
    }
    Ok(median(&all[WARM_UP..]))
}

/// The message goes by a tab, as who follows a session does not send.
async fn by_events(navi: &Navi, ledger: &Ledger, turns: usize) -> Result<f64> {
    let session = navi.new_session().await?;
    let mut tab = navi.tab(&session).await?;
    let mut feed = Connection::open(navi.address()).await?;
    let path = format!("/sessions/{session}/events");
    feed.get(&path, navi.script()).await?;
    let mut all = Vec::new();
    for turn in 0..WARM_UP + turns {
        let script = Script::new(8, Rate::Joined);
        let sent = Instant::now();
        tab.send(script).await?;
        let began = first_token(&mut feed).await?;
        tab.hear(script, sent).await?;
        feed.until(|body| memchr::memmem::find(body, b"\"stream_end\"").is_some())
            .await?;
        feed.forget();
        all.push(of(script, sent, began, ledger)?);
        settle(turn, ledger).await;
    }
    Ok(median(&all[WARM_UP..]))
}

async fn first_token(connection: &mut Connection) -> Result<Instant> {
    connection.until(|body| stamp::count(body) > 0).await?;
    Ok(Instant::now())
}

fn of(script: Script, sent: Instant, began: Instant, ledger: &Ledger) -> Result<f64> {
    let call = ledger.take_one(script.id)?;
    let turn = Turn {
        sent,
        began: Some(began),
        ended: began,
        delays: Vec::new(),
    };
    added(&turn, call).context("an answer without a first token")
}

/// A session's first turn has its title asked for; what a turn leaves is done before the next.
async fn settle(turn: usize, ledger: &Ledger) {
    if turn == 0 {
        ledger.quiet().await;
    }
    tokio::time::sleep(PAUSE).await;
}
