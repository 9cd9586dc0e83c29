//! Processor time for a token, in the midst of many streams at 50 tokens a second.

use std::time::Duration;

use anyhow::Result;

use super::{Bench, Form, PACE};
use crate::fleet::Fleet;
use crate::ground::Side;
use crate::report::{Goal, Row, Samples};
use crate::script::Rate;

/// The time in which streams begin, and that in which they end; nothing is counted then.
const EDGE: Duration = Duration::from_secs(1);

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let crowds: &[usize] = match bench.form {
        Form::Quick => &[100],
        Form::Usual | Form::Long => &[100, 400],
    };
    for sessions in crowds {
        let samples = with(bench, *sessions).await?;
        let what = format!("processor for a token, {sessions} sessions at 50/s");
        let key = format!("processor-{sessions}");
        rows.push(Row::lower(&key, &what, "µs", samples).with_goal(Goal::Value(20.0)));
    }
    Ok(rows)
}

async fn with(bench: &Bench, sessions: usize) -> Result<Samples> {
    let pair = bench.ground.pair().await?;
    let ledger = &bench.ground.model.ledger;
    let (mut limit, mut navi) = (Fleet::new(ledger), Fleet::new(ledger));
    limit.grow(Side::Limit(&pair.limit), sessions).await?;
    navi.grow(Side::Navi(&pair.navi), sessions).await?;
    let mut samples = Samples::default();
    for round in 0..bench.rounds(3) {
        for side in pair.in_turn(round) {
            let fleet = match side {
                Side::Limit(_) => &mut limit,
                Side::Navi(_) => &mut navi,
            };
            samples.add(side, a_token(bench, side, fleet, sessions).await?);
        }
    }
    Ok(samples)
}

/// The processor time for a token that is told, in microseconds, while all streams go.
async fn a_token(bench: &Bench, side: Side<'_>, fleet: &mut Fleet, sessions: usize) -> Result<f64> {
    let window = Duration::from_secs(bench.quick_or(2, 4));
    let tokens = (window + 2 * EDGE).as_secs() as u32 * PACE;
    let heard = fleet.heard.clone();
    let streams = fleet.turns(sessions, (tokens, Rate::PerSecond(PACE)), EDGE / 2);
    let counted = async {
        tokio::time::sleep(EDGE).await;
        let before = (side.processor_time()?, heard.tokens());
        tokio::time::sleep(window).await;
        let time = side.processor_time()? - before.0;
        anyhow::Ok(time.as_secs_f64() * 1e6 / (heard.tokens() - before.1) as f64)
    };
    let (streamed, counted) = tokio::join!(streams, counted);
    streamed?;
    counted
}
