//! A tool iteration over the model's time: from the end of a reply that calls a tool to the next
//! request with its result. The tool reads, and costs next to nothing.
//!
//! The pass-through has no tools: there the client asks again as soon as it has the whole answer,
//! which is the least that anything in this place does.

use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use super::commit::{commit_ms, with_commits};
use super::{Bench, ms};
use crate::conversation::Conversation;
use crate::ground::Side;
use crate::model::Ledger;
use crate::report::{Goal, Row, Samples};
use crate::script::{Rate, Script};
use crate::statistics::median;

/// Fewer than the repetitions that a run is warned of.
const CALLS_A_TURN: u32 = 3;

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let pair = bench.ground.pair().await?;
    let ledger = &bench.ground.model.ledger;
    let (mut samples, mut commits) = (Samples::default(), Vec::new());
    for round in 0..bench.rounds(5) {
        commits.push(commit_ms(bench.ground.cores)?);
        for side in pair.in_turn(round) {
            let mut conversation = side.open().await?;
            conversation.turn(Script::new(1, Rate::Joined)).await?;
            ledger.quiet().await;
            let mut between = Vec::new();
            for _ in 0..bench.quick_or(5, 10) {
                between.extend(match side {
                    Side::Limit(_) => ask_again(&mut conversation, ledger).await?,
                    Side::Navi(_) => iterate(&mut conversation, ledger).await?,
                });
            }
            samples.add(side, median(&between));
        }
    }
    let what = "a tool iteration, over the model's time";
    let durable = with_commits(&samples, &commits);
    let durable_what = "the same, beside the limit and one commit";
    Ok(vec![
        Row::lower("tool-iteration", what, "ms", samples)
            .with_goal(Goal::Value(0.4))
            .unrecorded(),
        Row::lower("tool-iteration-commit", durable_what, "ms", durable),
    ])
}

/// The times between the replies of a turn, in milliseconds.
async fn iterate(conversation: &mut Conversation, ledger: &Ledger) -> Result<Vec<f64>> {
    let script = Script::new(1, Rate::Joined).after_calls(CALLS_A_TURN);
    conversation.turn(script).await?;
    let calls = ledger.take(script.id);
    if calls.len() != CALLS_A_TURN as usize + 1 {
        bail!(
            "a turn of {CALLS_A_TURN} iterations made {} model calls",
            calls.len()
        );
    }
    let pairs = calls.windows(2);
    let between = pairs.map(|pair| since(pair[0].ended, pair[1].arrived));
    between.collect()
}

/// The times between turns that follow each other at once, in milliseconds.
async fn ask_again(conversation: &mut Conversation, ledger: &Ledger) -> Result<Vec<f64>> {
    let mut between = Vec::new();
    let mut before = None;
    for _ in 0..=CALLS_A_TURN {
        let script = Script::new(1, Rate::Joined);
        conversation.turn(script).await?;
        let call = ledger.take_one(script.id)?;
        if let Some(ended) = before {
            between.push(since(Some(ended), call.arrived)?);
        }
        before = call.ended;
    }
    Ok(between)
}

fn since(ended: Option<Instant>, arrived: Instant) -> Result<f64> {
    let ended = ended.context("a model call without an end")?;
    Ok(ms(arrived.duration_since(ended)))
}
