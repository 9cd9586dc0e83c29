//! A warm turn on a long conversation, whole: from the message to the end of the answer, without
//! the time in which the model server had it.
//!
//! The pass-through holds the very request that Navi sends, in memory, and puts its line into that.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{Bench, ms};
use crate::conversation::Conversation;
use crate::ground::{Pair, Side};
use crate::house::{Filling, House};
use crate::model::Ledger;
use crate::report::{Goal, Row, Samples};
use crate::script::{Rate, Script};
use crate::statistics::median;

const PAUSE: Duration = Duration::from_millis(30);
const LENGTHS: [usize; 3] = [10, 1_000, 10_000];

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for messages in LENGTHS {
        let filling = Filling {
            sessions: 1,
            messages,
        };
        let (house, sessions) = House::filled(filling).await?;
        let session = sessions.first().context("no session was made")?;
        let pair = bench.ground.pair_in(&house).await?;
        let samples = at(bench, &pair, session).await?;
        let what = format!("a warm turn at {messages} messages, whole");
        let row = Row::lower(&format!("context-{messages}"), &what, "ms", samples);
        rows.push(row.with_goal(Goal::TimesLimit(1.2)));
    }
    Ok(rows)
}

async fn at(bench: &Bench, pair: &Pair, session: &str) -> Result<Samples> {
    let ledger = &bench.ground.model.ledger;
    let seq = pair.navi.last_seq(session).await?;
    let mut navi = pair.navi.tab_after(session, seq).await?;
    turn(&mut navi, ledger).await?;
    let mut limit = Side::Limit(&pair.limit).open().await?;
    limit.hold(ledger.last_body()).await?;
    turn(&mut limit, ledger).await?;
    let mut samples = Samples::default();
    for round in 0..bench.rounds(5) {
        for side in pair.in_turn(round) {
            let conversation = match side {
                Side::Limit(_) => &mut limit,
                Side::Navi(_) => &mut navi,
            };
            let mut times = Vec::new();
            for _ in 0..5 {
                times.push(turn(conversation, ledger).await?);
                tokio::time::sleep(PAUSE).await;
            }
            samples.add(side, median(&times));
        }
    }
    Ok(samples)
}

/// A turn without the model server's part of it, in milliseconds.
async fn turn(conversation: &mut Conversation, ledger: &Ledger) -> Result<f64> {
    let script = Script::new(1, Rate::Joined);
    let turn = conversation.turn(script).await?;
    let call = ledger.take_one(script.id)?;
    let answered = call.ended.context("a model call without an end")?;
    let whole = turn.ended.duration_since(turn.sent);
    Ok(ms(whole.saturating_sub(answered - call.arrived)))
}
