//! Tokens a second on one processor, as fast as they go: from the first that the model server
//! writes to the end of the answer at the client. It writes many events at once (joined), or each
//! alone (single).

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{Bench, Form};
use crate::fleet::{Done, Fleet};
use crate::ground::{Pair, Side};
use crate::report::{Goal, Row, Samples};
use crate::script::Rate;

/// How many sessions stream side by side, beside one alone.
const MANY: usize = 50;

/// Wanted, in tokens a second: joined, and single.
const JOINED: f64 = 500_000.0;
const SINGLE: f64 = 300_000.0;

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let pair = bench.ground.pair().await?;
    let row = |key: &str, what: &str, samples, goal| {
        let what = format!("flat out, {what}");
        Row::higher(key, &what, "tokens/s", samples).with_goal(Goal::Value(goal))
    };
    let joined = with(bench, &pair, 1, Rate::Joined).await?;
    let joined = row("flat-one-joined", "one session, joined", joined, JOINED);
    if bench.form == Form::Quick {
        return Ok(vec![joined]);
    }
    let single = with(bench, &pair, 1, Rate::Single).await?;
    let many = with(bench, &pair, MANY, Rate::Joined).await?;
    Ok(vec![
        joined,
        row("flat-one-single", "one session, single", single, SINGLE),
        row("flat-fifty-joined", "50 sessions, joined", many, JOINED),
    ])
}

async fn with(bench: &Bench, pair: &Pair, sessions: usize, rate: Rate) -> Result<Samples> {
    let mut samples = Samples::default();
    for round in 0..bench.rounds(5) {
        for side in pair.in_turn(round) {
            let mut fleet = Fleet::new(&Arc::clone(&bench.ground.model.ledger));
            fleet.grow(side, sessions).await?;
            let all = match side {
                Side::Limit(_) => bench.quick_or(500_000, 1_000_000),
                Side::Navi(_) => bench.quick_or(30_000, 100_000),
            };
            let tokens = all / u32::try_from(sessions)?;
            let done = fleet
                .turns(sessions, (tokens, rate), Duration::ZERO)
                .await?;
            let took = took(&done).context("no answer began")?;
            let tokens = f64::from(tokens) * sessions as f64;
            samples.add(side, tokens / took.as_secs_f64());
        }
    }
    Ok(samples)
}

/// From the first token that was sent to the last end of an answer that came.
fn took(done: &[Done]) -> Option<Duration> {
    let begun = done.iter().filter_map(|one| one.call.began).min();
    let ended = done.iter().map(|one| one.turn.ended).max();
    Some(ended?.duration_since(begun?))
}
