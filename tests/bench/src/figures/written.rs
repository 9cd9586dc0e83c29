//! Bytes written to the disk for a byte of answer, as the kernel counts them (whole pages): of a
//! long answer that comes at once, and of many that come slowly.

use std::time::Duration;

use anyhow::{Result, bail};

use super::{Bench, PACE};
use crate::fleet::Fleet;
use crate::ground::Side;
use crate::navi::Navi;
use crate::report::{Goal, Row, Samples};
use crate::script::Rate;
use crate::stamp::TOKEN_BYTES;

/// How many stream slowly side by side.
const SESSIONS: usize = 10;
/// Of the long answer: 400 KB.
const TOKENS: u32 = 50_000;
/// Of those that come slowly: eight seconds.
const SLOW_TOKENS: u32 = PACE * 8;
/// How long what a turn leaves to be written may take.
const SETTLED: Duration = Duration::from_secs(1);

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let pair = bench.ground.pair().await?;
    let mut fleet = Fleet::new(&bench.ground.model.ledger);
    fleet.grow(Side::Navi(&pair.navi), SESSIONS).await?;
    let (mut fast, mut slow) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds(3) {
        fast.push(written(&pair.navi, &mut fleet, 1, (TOKENS, Rate::Joined)).await?);
        let answer = (SLOW_TOKENS, Rate::PerSecond(PACE));
        slow.push(written(&pair.navi, &mut fleet, SESSIONS, answer).await?);
    }
    let what = |how: &str| format!("written for a byte of answer, {how}");
    let [fast, slow] = [fast, slow].map(Samples::of_navi);
    Ok(vec![
        Row::lower("written-fast", &what("400 KB at once"), "bytes", fast)
            .with_goal(Goal::Value(2.0)),
        Row::lower("written-slow", &what("at 50/s"), "bytes", slow).with_goal(Goal::Value(2.0)),
    ])
}

async fn written(
    navi: &Navi,
    fleet: &mut Fleet,
    sessions: usize,
    answer: (u32, Rate),
) -> Result<f64> {
    tokio::time::sleep(SETTLED).await;
    let before = navi.process.written()?;
    fleet.turns(sessions, answer, SETTLED).await?;
    tokio::time::sleep(SETTLED).await;
    let written = navi.process.written()? - before;
    if written == 0 {
        bail!("the kernel counts no bytes: set TMPDIR to a directory on a disk");
    }
    let answered = answer.0 as usize * TOKEN_BYTES * sessions;
    Ok(written as f64 / answered as f64)
}
