//! The first token by each of the other ways in, beside the page's own socket: a program's request
//! on a connection that is open, in a session that has had turns.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context as _, Result};
use memchr::memmem;
use serde_json::{Value, json};

use super::Bench;
use super::first_token::{PAUSE, WARM_UP, added, added_by};
use crate::conversation::{Conversation, Turn};
use crate::ground::Side;
use crate::http::{Connection, Identity};
use crate::model::Ledger;
use crate::report::{Goal, Row, Samples};
use crate::script::{Rate, Script};
use crate::stamp;
use crate::statistics::median;

/// How much a door may take over what the page's socket takes, in milliseconds.
const OWN_MS: f64 = 0.1;
/// What the pass-through added to a first token on the machine that this was wanted of, in
/// milliseconds: 0.06 to 0.09. Where it adds more, so may a door, as many times.
const SET_BESIDE_MS: f64 = 0.075;
/// What an answer's end is to who follows, by Navi and by the pass-through.
const ENDS: [&[u8]; 3] = [b"\"stream_end\"", b"[DONE]", b"\"done\":true"];

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
        what: "a first token by Chat Completions, over the page's socket",
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

/// A server as programs reach it.
struct Server<'a> {
    side: Side<'a>,
    address: SocketAddr,
    identity: &'a Identity,
}

impl<'a> Server<'a> {
    fn of(side: Side<'a>) -> Self {
        let (address, identity) = match side {
            Side::Limit(limit) => (limit.address, &Identity::Nobody),
            Side::Navi(navi) => (navi.address(), navi.script()),
        };
        Self {
            side,
            address,
            identity,
        }
    }

    /// A new conversation's name, which the pass-through has no use for.
    async fn session(&self) -> Result<String> {
        match self.side {
            Side::Limit(_) => Ok(String::new()),
            Side::Navi(navi) => navi.new_session().await,
        }
    }

    async fn tab(&self, session: &str) -> Result<Conversation> {
        match self.side {
            Side::Limit(_) => self.side.open().await,
            Side::Navi(navi) => navi.tab(session).await,
        }
    }
}

/// A conversation by one of the ways in.
enum Way {
    Page(Conversation),
    Request {
        door: &'static Door,
        session: String,
        connection: Connection,
    },
    /// The message goes by a tab, as who follows a session does not send.
    Events {
        tab: Conversation,
        feed: Connection,
    },
}

impl Way {
    async fn page(server: &Server<'_>) -> Result<Self> {
        Ok(Self::Page(server.tab(&server.session().await?).await?))
    }

    async fn request(server: &Server<'_>, door: &'static Door) -> Result<Self> {
        Ok(Self::Request {
            door,
            session: server.session().await?,
            connection: Connection::open(server.address).await?,
        })
    }

    async fn events(server: &Server<'_>) -> Result<Self> {
        let session = server.session().await?;
        let tab = server.tab(&session).await?;
        let mut feed = Connection::open(server.address).await?;
        let path = format!("/sessions/{session}/events");
        feed.get(&path, server.identity).await?;
        Ok(Self::Events { tab, feed })
    }

    /// What is added to the first token of a turn, in milliseconds.
    async fn turn(&mut self, server: &Server<'_>, ledger: &Ledger) -> Result<f64> {
        let script = Script::new(8, Rate::Joined);
        if let Self::Events { feed, .. } = self {
            // What others were told, who ask the same pass-through.
            feed.pass_over()?;
        }
        let sent = Instant::now();
        let began = match self {
            Self::Page(tab) => return added_by(tab, ledger).await,
            Self::Request {
                door,
                session,
                connection,
            } => {
                let body = (door.body)(&script.to_string());
                let headers = [("x-navi-session", session.as_str())];
                connection
                    .post(door.path, server.identity, &headers, &body)
                    .await?;
                let began = first_token(connection).await?;
                connection.rest().await?;
                began
            }
            Self::Events { tab, feed } => {
                tab.send(script).await?;
                let began = first_token(feed).await?;
                tab.hear(script, sent).await?;
                let ends = |body: &[u8]| ENDS.iter().any(|end| memmem::find(body, end).is_some());
                feed.until(ends).await?;
                began
            }
        };
        of(script, sent, began, ledger)
    }
}

/// How many ways in there are: the page's, the doors', and that of who follows. A prime: so that
/// `round_of` has each in all its orders.
const WAYS: usize = DOORS.len() + 2;

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let pair = bench.ground.pair().await?;
    let ledger = &bench.ground.model.ledger;
    let turns = bench.quick_or(10, 60);
    let mut all = [const { (Vec::new(), Vec::new()) }; WAYS];
    for round in 0..bench.rounds(7) {
        for side in pair.in_turn(round) {
            let medians = round_of(&Server::of(side), ledger, turns).await?;
            for ((limit, navi), one) in std::iter::zip(&mut all, medians) {
                match side {
                    Side::Limit(_) => limit.push(one),
                    Side::Navi(_) => navi.push(one),
                }
            }
        }
    }
    Ok(rows(all.map(|(limit, navi)| Samples { limit, navi })))
}

/// The median of some turns by each way, in milliseconds. A turn by each comes after the other, so
/// that what else the machine does falls on all of them.
async fn round_of(server: &Server<'_>, ledger: &Ledger, turns: usize) -> Result<[f64; WAYS]> {
    let mut ways = vec![Way::page(server).await?];
    for door in &DOORS {
        ways.push(Way::request(server, door).await?);
    }
    ways.push(Way::events(server).await?);
    let mut all = [const { Vec::new() }; WAYS];
    for turn in 0..WARM_UP + turns {
        // Each comes first as often as the others, and behind each of the others as often: what the
        // one before has left in the processor's caches helps those that are like it.
        for place in 0..WAYS {
            let which = (place * (1 + turn % (WAYS - 1)) + turn) % WAYS;
            let one = ways[which].turn(server, ledger).await?;
            settle(turn, ledger).await;
            if turn >= WARM_UP {
                all[which].push(one);
            }
        }
    }
    Ok(all.map(|all| median(&all)))
}

/// What a door costs is what it takes over the page's socket, each beside a pass-through that speaks
/// as it does: what HTTP costs whoever speaks it, and the client that reads it, is nobody's here.
fn rows(all: [Samples; WAYS]) -> Vec<Row> {
    let [page, doors @ .., events] = all;
    let goal = Goal::Value(OWN_MS * (median(&page.limit) / SET_BESIDE_MS).max(1.0));
    let own = |of: &Samples| -> Vec<f64> {
        let both = std::iter::zip(&of.navi, &of.limit);
        both.map(|(navi, limit)| navi - limit).collect()
    };
    let of_page = own(&page);
    let door = |key: &str, what: &str, of: &Samples| {
        let both = std::iter::zip(own(of), &of_page);
        let samples = Samples {
            limit: Vec::new(),
            navi: both.map(|(door, page)| door - page).collect(),
        };
        Row::lower(key, what, "ms", samples).with_goal(goal)
    };
    let what = "added to the first token, by the page's socket";
    let mut rows = vec![Row::lower("first-token-page", what, "ms", page).unrecorded()];
    for (Door { key, what, .. }, of) in std::iter::zip(&DOORS, &doors) {
        rows.push(door(key, what, of));
    }
    let what = "the same, by server-sent events, of a message of a tab's";
    rows.push(door("first-token-events", what, &events));
    rows
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
