//! How long a token is under way, from the model server's write to the client's frame: one
//! session, 50 tokens a second.

use anyhow::Result;

use super::{Bench, PACE};
use crate::report::{Goal, Row, Samples};
use crate::script::{Rate, Script};
use crate::statistics::{median, percentile};

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let pair = bench.ground.pair().await?;
    let (mut medians, mut highest) = (Samples::default(), Samples::default());
    let seconds = bench.quick_or(2, 4);
    for round in 0..bench.rounds(5) {
        for side in pair.in_turn(round) {
            let mut conversation = side.open().await?;
            conversation.turn(Script::new(1, Rate::Joined)).await?;
            bench.ground.model.ledger.quiet().await;
            let script = Script::new(PACE * seconds, Rate::PerSecond(PACE));
            let turn = conversation.turn(script).await?;
            bench.ground.model.ledger.take_one(script.id)?;
            medians.add(side, median(&turn.delays));
            highest.add(side, percentile(&turn.delays, 0.99));
        }
    }
    let what = |part: &str| format!("a token under way, 50/s, {part}");
    Ok(vec![
        Row::lower("per-token-median", &what("median"), "ms", medians)
            .with_goal(Goal::TimesLimit(1.5)),
        // The one token of a hundred that is latest is a matter of what else the machine does.
        Row::lower("per-token-p99", &what("p99"), "ms", highest)
            .with_goal(Goal::TimesLimit(1.5))
            .unrecorded(),
    ])
}
