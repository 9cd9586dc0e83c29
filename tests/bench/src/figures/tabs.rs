//! One run to a hundred tabs, and to a thousand: what a delivery costs, and how late the last ones
//! are.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use super::{Bench, PACE};
use crate::conversation::{Conversation, Heard};
use crate::ground::{Pair, Side};
use crate::model::Ledger;
use crate::report::{Goal, Row, Samples};
use crate::script::{Rate, Script};
use crate::statistics::percentile;

const SECONDS: u32 = 4;
/// From the start of the run to where processor time is counted, and from there to its end.
const EDGE: Duration = Duration::from_secs(1);

/// How many tabs, and what is wanted of their p99, in milliseconds. As many as a session may have
/// are the most.
const CROWDS: [(usize, f64); 2] = [(100, 1.5), (1_000, 25.0)];
/// Wanted of the processor for a delivery, in microseconds.
const DELIVERY_US: f64 = 8.0;

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let pair = bench.ground.pair().await?;
    let mut rows = Vec::new();
    for (tabs, p99) in CROWDS {
        let (processor, highest) = with(bench, &pair, tabs).await?;
        let key = |part: &str| format!("tabs-{tabs}-{part}");
        let what = |part: &str| format!("one run to {tabs} tabs, 50/s, {part}");
        rows.push(
            Row::lower(&key("processor"), &what("a delivery"), "µs", processor)
                .with_goal(Goal::Value(DELIVERY_US)),
        );
        rows.push(
            Row::lower(&key("p99"), &what("p99"), "ms", highest)
                .with_goal(Goal::Value(p99))
                .unrecorded(),
        );
    }
    Ok(rows)
}

/// The processor for a delivery, and the p99 of all delays.
async fn with(bench: &Bench, pair: &Pair, count: usize) -> Result<(Samples, Samples)> {
    let ledger = &bench.ground.model.ledger;
    let (mut processor, mut highest) = (Samples::default(), Samples::default());
    for round in 0..bench.rounds(3) {
        for side in pair.in_turn(round) {
            let heard = Heard::default();
            let tabs = open(side, ledger, count).await?;
            let tabs = tabs.into_iter().map(|tab| tab.counted_in(&heard)).collect();
            let script = Script::new(PACE * SECONDS, Rate::PerSecond(PACE));
            let counted = async {
                tokio::time::sleep(EDGE).await;
                let before = (side.processor_time()?, heard.tokens());
                tokio::time::sleep(Duration::from_secs(SECONDS.into()) - 2 * EDGE).await;
                let time = side.processor_time()? - before.0;
                anyhow::Ok(time.as_secs_f64() * 1e6 / (heard.tokens() - before.1) as f64)
            };
            let (delays, counted) = tokio::join!(delays(tabs, script), counted);
            ledger.take_one(script.id)?;
            processor.add(side, counted?);
            highest.add(side, percentile(&delays?, 0.99));
        }
    }
    Ok((processor, highest))
}

/// So many tabs on one conversation that has had its first turn.
async fn open(side: Side<'_>, ledger: &Ledger, count: usize) -> Result<Vec<Conversation>> {
    let first = Script::new(1, Rate::Joined);
    let mut tabs = Vec::with_capacity(count);
    match side {
        Side::Limit(_) => {
            tabs.push(side.open().await?);
            tabs[0].turn(first).await?;
            while tabs.len() < count {
                let mut tab = side.open().await?;
                tab.watch().await?;
                tabs.push(tab);
            }
        }
        Side::Navi(navi) => {
            let session = navi.new_session().await?;
            tabs.push(navi.tab(&session).await?);
            tabs[0].turn(first).await?;
            ledger.quiet().await;
            let seq = navi.last_seq(&session).await?;
            while tabs.len() < count {
                tabs.push(navi.tab_after(&session, seq).await?);
            }
        }
    }
    ledger.take_one(first.id)?;
    Ok(tabs)
}

/// The delays of all tokens in all tabs, the first of which asks.
async fn delays(mut tabs: Vec<Conversation>, script: Script) -> Result<Vec<f64>> {
    let sent = Instant::now();
    if let Some(first) = tabs.first_mut() {
        first.send(script).await?;
    }
    let mut heard = JoinSet::new();
    for mut tab in tabs {
        heard.spawn(async move { tab.hear(script, sent).await });
    }
    let mut delays = Vec::new();
    while let Some(turn) = heard.join_next().await {
        delays.extend(turn??.delays);
    }
    Ok(delays)
}
