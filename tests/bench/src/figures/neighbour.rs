//! One person beside another who keeps the machine busy: how long their first token and their page
//! take, and how long they take when nobody else is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::task::JoinSet;

use super::first_token::{PAUSE, WARM_UP};
use super::{Bench, PACE, ms};
use crate::house::House;
use crate::http::{self, Identity};
use crate::navi::Navi;
use crate::report::{Goal, Row, Samples};
use crate::script::{Rate, Script};
use crate::statistics::median;

const RUNS: usize = 200;
/// Tokens of each of them, four seconds long.
const TOKENS: u32 = 4 * PACE;
/// So many of them have one that begins with a command.
const COMMAND_EACH: usize = 10;

const UPLOADS: usize = 3;
const UPLOAD_BYTES: usize = 4_000_000;

/// Once so many uploads are through all is on its way.
const UNDER_WAY: usize = 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// How many times the quiet time it may be.
const MOST: f64 = 2.0;

/// What the page asks for when it is opened on a conversation, without its files.
const PAGE: [&str; 3] = ["/", "/sessions", "/api/account"];

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let program = &bench.ground.program;
    let turns = bench.quick_or(20, 40);
    let (mut tokens, mut pages) = (Samples::default(), Samples::default());
    for _ in 0..bench.rounds(3) {
        // Anew each time: what one has asked for goes on after they have left.
        let house = House::new()?.with(&[("NAVI_ACCOUNTS", "on")]);
        let navi = Arc::new(house.start(&bench.ground).await?);
        navi.ready().await?;
        let busy = navi.person(program, "Busy").await?;
        let other = navi.person(program, "Other").await?;
        let powers = json!({"users": ["terminal"]});
        navi.ask_as(navi.script(), "PUT", "/api/powers", Some(&powers))
            .await?;
        let quiet = looks(&navi, &other, turns).await?;
        let _load = load(&navi, &busy).await?;
        let beside = looks(&navi, &other, turns).await?;
        for (samples, quiet, beside) in [
            (&mut tokens, quiet.0, beside.0),
            (&mut pages, quiet.1, beside.1),
        ] {
            samples.limit.push(quiet);
            samples.navi.push(beside);
        }
    }
    let row = |key: &str, what: &str, samples: Samples| {
        let row = Row::lower(key, what, "ms", samples);
        row.with_goal(Goal::TimesLimit(MOST)).unrecorded()
    };
    let what = "a person's first token beside another's 200 runs, uploads and commands, and alone";
    Ok(vec![
        row("neighbour-first-token", what, tokens),
        row("neighbour-page", "their page, likewise", pages),
    ])
}

/// The median times to the first token and to the page, in milliseconds.
async fn looks(navi: &Navi, who: &Identity, turns: usize) -> Result<(f64, f64)> {
    let session = navi.new_session_of(who).await?;
    let mut tab = navi.tab_of(who, &session).await?;
    let own = format!("/sessions/{session}");
    let (mut tokens, mut pages) = (Vec::new(), Vec::new());
    for _ in 0..WARM_UP + turns {
        let turn = tab.turn(Script::new(8, Rate::Joined)).await?;
        let began = turn.began.context("an answer without a first token")?;
        tokens.push(ms(began - turn.sent));
        let opened = Instant::now();
        for path in PAGE.into_iter().chain([&*own]) {
            navi.timed(who, path).await?;
        }
        pages.push(ms(opened.elapsed()));
        tokio::time::sleep(PAUSE).await;
    }
    Ok((median(&tokens[WARM_UP..]), median(&pages[WARM_UP..])))
}

/// Has somebody's runs, uploads and commands go on until this is dropped, once they do.
async fn load(navi: &Arc<Navi>, who: &Identity) -> Result<JoinSet<Result<()>>> {
    let mut load = JoinSet::new();
    for number in 0..RUNS {
        let session = navi.new_session_of(who).await?;
        let (navi, who) = (Arc::clone(navi), who.clone());
        load.spawn(async move {
            let path = format!("/sessions/{session}/messages");
            loop {
                let script = Script::new(TOKENS, Rate::PerSecond(PACE));
                let script = match number % COMMAND_EACH {
                    0 => script.after_command(),
                    _ => script,
                };
                let body = json!({"content": script.to_string(), "consent": "allow"});
                navi.ask_as(&who, "POST", &path, Some(&body)).await?;
            }
        });
    }
    let through = Arc::new(AtomicUsize::new(0));
    for _ in 0..UPLOADS {
        let session = navi.new_session_of(who).await?;
        let (navi, who, through) = (Arc::clone(navi), who.clone(), Arc::clone(&through));
        load.spawn(async move {
            let path = format!("/sessions/{session}/files");
            loop {
                let sent = http::upload(navi.address(), &path, &who, UPLOAD_BYTES).await?;
                let sent = sent.json();
                let file = sent["files"][0]["file_id"].as_str();
                let file = format!("{path}/{}", file.context("an upload without an id")?);
                navi.ask_as(&who, "DELETE", &file, None).await?;
                through.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let until = Instant::now() + PATIENCE;
    while through.load(Ordering::Relaxed) < UNDER_WAY {
        if let Some(ended) = load.try_join_next() {
            // Whoever keeps it busy stops by failing alone.
            ended??;
        }
        if Instant::now() > until {
            anyhow::bail!("the load is not under way within {PATIENCE:?}");
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(load)
}
