//! Time added to the first token: from the message until the model server has the request, and
//! from the first token until the client has it. What the server does in between is not in it.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::commit::{commit_ms, with_commits};
use super::{Bench, ms};
use crate::conversation::{Conversation, Turn};
use crate::ground::Side;
use crate::model::{Call, Ledger};
use crate::report::{Goal, Row, Samples};
use crate::script::{Rate, Script};
use crate::statistics::median;

/// Stands for a person's pause: what a turn leaves to be done is done before the next one. A longer
/// one would let processors fall asleep, and measure how long they take to wake.
pub(super) const PAUSE: Duration = Duration::from_millis(5);
/// How much of its own a first token may take beside one commit, in milliseconds.
const OWN_MS: f64 = 0.1;
/// Turns of a conversation before the first that counts.
pub(super) const WARM_UP: usize = 2;

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let pair = bench.ground.pair().await?;
    let ledger = &bench.ground.model.ledger;
    let (mut samples, mut commits) = (Samples::default(), Vec::new());
    for round in 0..bench.rounds(7) {
        commits.push(commit_ms(bench.ground.cores)?);
        for side in pair.in_turn(round) {
            samples.add(side, round_of(side, ledger, bench.quick_or(10, 20)).await?);
        }
    }
    let durable = with_commits(&samples, &commits);
    let goal = Goal::Value(OWN_MS + median(&commits));
    let what = "added to the first token, warm";
    let durable_what = "the same, beside the limit and one commit";
    Ok(vec![
        Row::lower("first-token", what, "ms", samples)
            .with_goal(goal)
            .unrecorded(),
        Row::lower("first-token-commit", durable_what, "ms", durable),
    ])
}

/// The median of some turns in a conversation of its own, in milliseconds.
async fn round_of(side: Side<'_>, ledger: &Ledger, turns: usize) -> Result<f64> {
    let mut conversation = side.open().await?;
    let mut added = Vec::new();
    for turn in 0..WARM_UP + turns {
        let one = added_by(&mut conversation, ledger).await?;
        if turn == 0 {
            ledger.quiet().await;
        }
        if turn >= WARM_UP {
            added.push(one);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(median(&added))
}

/// What is added to a turn's first token, in milliseconds.
///
/// # Errors
/// The turn fails, or is none of one model call.
pub(super) async fn added_by(conversation: &mut Conversation, ledger: &Ledger) -> Result<f64> {
    let script = Script::new(8, Rate::Joined);
    let turn = conversation.turn(script).await?;
    let call = ledger.take_one(script.id)?;
    added(&turn, call).context("an answer without a first token")
}

pub(super) fn added(turn: &Turn, call: Call) -> Option<f64> {
    let there = call.arrived.duration_since(turn.sent);
    let back = turn.began?.duration_since(call.began?);
    Some(ms(there + back))
}
