//! Memory: of an idle service, of sessions that are idle and that stream, and after many.

use std::time::Duration;

use anyhow::Result;

use super::{Bench, Form, PACE};
use crate::fleet::Fleet;
use crate::ground::{Pair, Side};
use crate::report::{Goal, Row, Samples};
use crate::script::Rate;

/// How many sessions a session's share is taken from.
const SESSIONS: usize = 200;
/// How many are there at once before it is idle again.
const CROWD: usize = 300;
/// How long after its start, or after the last turn, a service is idle.
const SETTLED: Duration = Duration::from_secs(3);
/// How long after its last tab a session is put away (five minutes), and some more.
const PUT_AWAY: Duration = Duration::from_secs(330);

pub(super) const KB: f64 = 1024.0;
pub(super) const MB: f64 = 1024.0 * 1024.0;

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let (mut resident, mut anonymous) = (Samples::default(), Samples::default());
    let [mut idle, mut streaming, mut after] = [const { Vec::new() }; 3];
    for round in 0..bench.rounds(1) {
        let pair = bench.ground.pair().await?;
        tokio::time::sleep(SETTLED).await;
        for side in pair.in_turn(round) {
            let memory = match side {
                Side::Limit(limit) => limit.process.memory()?,
                Side::Navi(navi) => navi.process.memory()?,
            };
            resident.add(side, memory.resident as f64 / MB);
            anonymous.add(side, memory.anonymous as f64 / MB);
        }
        let shares = shares(bench, &pair).await?;
        idle.push(shares.idle / KB);
        streaming.push(shares.streaming / KB);
        after.push(after_a_crowd(bench, &pair).await? / MB);
    }
    let of = Samples::of_navi;
    let when = match bench.form {
        Form::Quick | Form::Usual => "seconds after",
        Form::Long => "all put away",
    };
    let after_what = format!("resident after 300 sessions at once, {when}");
    Ok(vec![
        Row::lower("memory-idle", "resident, idle", "MB", resident).with_goal(Goal::Value(20.0)),
        Row::lower("memory-idle-anonymous", "anonymous, idle", "MB", anonymous)
            .with_goal(Goal::Value(10.0)),
        Row::lower(
            "memory-session",
            "an idle session with its tab",
            "KB",
            of(idle),
        )
        .with_goal(Goal::Value(16.0)),
        Row::lower(
            "memory-streaming",
            "a streaming session with its tab",
            "KB",
            of(streaming),
        )
        .with_goal(Goal::Value(60.0)),
        Row::lower("memory-after-300", &after_what, "MB", of(after)).with_goal(Goal::Value(30.0)),
    ])
}

/// What a session adds to the anonymous memory, in bytes.
struct Shares {
    idle: f64,
    streaming: f64,
}

async fn shares(bench: &Bench, pair: &Pair) -> Result<Shares> {
    let anonymous = || anyhow::Ok(pair.navi.process.memory()?.anonymous as f64);
    let ledger = &bench.ground.model.ledger;
    // What the first sessions bring with them for good is nobody's share.
    let mut fleet = Fleet::new(ledger);
    fleet.grow(Side::Navi(&pair.navi), SESSIONS / 10).await?;
    tokio::time::sleep(SETTLED).await;
    let before = anonymous()?;
    let mut measured = Fleet::new(ledger);
    measured.grow(Side::Navi(&pair.navi), SESSIONS).await?;
    tokio::time::sleep(SETTLED).await;
    let idle = anonymous()?;
    let answer = (PACE * 4, Rate::PerSecond(PACE));
    let streams = measured.turns(SESSIONS, answer, Duration::from_secs(1));
    let counted = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        anonymous()
    };
    let (streamed, streaming) = tokio::join!(streams, counted);
    streamed?;
    let share = |bytes: f64| (bytes - before) / SESSIONS as f64;
    Ok(Shares {
        idle: share(idle),
        streaming: share(streaming?),
    })
}

/// The resident memory when they have gone, in bytes.
async fn after_a_crowd(bench: &Bench, pair: &Pair) -> Result<f64> {
    let mut fleet = Fleet::new(&bench.ground.model.ledger);
    fleet.grow(Side::Navi(&pair.navi), CROWD).await?;
    let answer = (PACE * 3, Rate::PerSecond(PACE));
    fleet.turns(CROWD, answer, Duration::from_secs(1)).await?;
    drop(fleet);
    let wait = match bench.form {
        Form::Quick | Form::Usual => SETTLED,
        Form::Long => PUT_AWAY,
    };
    tokio::time::sleep(wait).await;
    Ok(pair.navi.process.memory()?.resident as f64)
}
