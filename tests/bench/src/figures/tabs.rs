//! One run to a hundred tabs: what a delivery costs, and how late the last ones are.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use super::{Bench, PACE};
use crate::conversation::{Conversation, Heard};
use crate::report::{Row, Samples};
use crate::script::{Rate, Script};
use crate::statistics::percentile;

const TABS: usize = 100;
const SECONDS: u32 = 4;
/// From the start of the run to where processor time is counted, and from there to its end.
const EDGE: Duration = Duration::from_secs(1);

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let pair = bench.ground.pair().await?;
    let (navi, ledger) = (&pair.navi, &bench.ground.model.ledger);
    let (mut processor, mut highest) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds(3) {
        let session = navi.new_session().await?;
        let heard = Heard::default();
        let mut tabs = vec![navi.tab(&session).await?.counted_in(&heard)];
        tabs[0].turn(Script::new(1, Rate::Joined)).await?;
        ledger.quiet().await;
        let seq = navi.last_seq(&session).await?;
        while tabs.len() < TABS {
            tabs.push(navi.tab_after(&session, seq).await?.counted_in(&heard));
        }
        let script = Script::new(PACE * SECONDS, Rate::PerSecond(PACE));
        let counted = async {
            tokio::time::sleep(EDGE).await;
            let before = (navi.process.processor_time()?, heard.tokens());
            tokio::time::sleep(Duration::from_secs(SECONDS.into()) - 2 * EDGE).await;
            let time = navi.process.processor_time()? - before.0;
            anyhow::Ok(time.as_secs_f64() * 1e6 / (heard.tokens() - before.1) as f64)
        };
        let (delays, counted) = tokio::join!(delays(tabs, script), counted);
        processor.push(counted?);
        highest.push(percentile(&delays?, 0.99));
    }
    let what = |part: &str| format!("one run to 100 tabs, 50/s, {part}");
    let [processor, highest] = [processor, highest].map(Samples::of_navi);
    Ok(vec![
        Row::lower("tabs-processor", &what("a delivery"), "µs", processor).with_goal("8"),
        Row::lower("tabs-p99", &what("p99"), "ms", highest).with_goal("1.5"),
    ])
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
