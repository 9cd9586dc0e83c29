//! Processor time of a turn with calls of a tool: as it is, with metrics, and with traces,
//! which the model server takes and throws away.

use std::time::Duration;

use anyhow::Result;

use super::{Bench, ms};
use crate::ground::Side;
use crate::house::House;
use crate::model::Ledger;
use crate::navi::Navi;
use crate::report::{Row, Samples};
use crate::script::{Rate, Script};

const CALLS_A_TURN: u32 = 3;
/// Traces are sent every two seconds: those of the turns are to be among what is counted.
const SENT: Duration = Duration::from_millis(2_500);

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let collector = format!("http://{}", bench.ground.model.address);
    let metrics = ("NAVI_METRICS", "on");
    let traces = ("NAVI_OTLP_ENDPOINT", collector.as_str());
    let plain = "processor for a turn with 3 calls of a tool";
    let mut measured = Vec::new();
    for (key, what, settings) in [
        ("turn", plain, vec![]),
        ("turn-metrics", "the same, with metrics", vec![metrics]),
        ("turn-traces", "the same, with traces", vec![traces]),
    ] {
        let navi = House::new()?.with(&settings).start(&bench.ground).await?;
        navi.ready().await?;
        measured.push((key, what, navi, Vec::new()));
    }
    for _ in 0..bench.rounds(7) {
        for (_, _, navi, samples) in &mut measured {
            let turns = bench.quick_or(50, 100);
            samples.push(a_turn(navi, &bench.ground.model.ledger, turns).await?);
        }
    }
    let rows = measured.into_iter().map(|(key, what, _, samples)| {
        Row::lower(key, what, "ms", Samples::of_navi(samples)).unrecorded()
    });
    Ok(rows.collect())
}

/// The processor time of one of so many turns, in milliseconds.
async fn a_turn(navi: &Navi, ledger: &Ledger, turns: u32) -> Result<f64> {
    let side = Side::Navi(navi);
    let mut conversation = side.open().await?;
    conversation.turn(Script::new(1, Rate::Joined)).await?;
    ledger.quiet().await;
    let before = side.processor_time()?;
    for _ in 0..turns {
        let script = Script::new(1, Rate::Joined).after_calls(CALLS_A_TURN);
        conversation.turn(script).await?;
        ledger.take(script.id);
    }
    tokio::time::sleep(SENT).await;
    let spent = side.processor_time()? - before;
    Ok(ms(spent) / f64::from(turns))
}
