//! How many sessions at 50 tokens a second one processor holds: 99 of 100 tokens are there within
//! 50 ms, and turns end on time. Turns begin and end all the while, as people's do.

use std::time::Duration;

use anyhow::Result;

use super::{Bench, PACE};
use crate::fleet::{Done, Fleet};
use crate::ground::Side;
use crate::report::{Goal, Row, Samples};
use crate::script::{Rate, Script};
use crate::statistics::percentile;

/// How late a token may be, in milliseconds.
const LATE_MS: f64 = 50.0;
/// How much longer than at its own pace a turn may take.
const SLACK: Duration = Duration::from_millis(500);

const FIRST: usize = 50;
/// As many model calls as Navi sends at once at most.
const MOST_OF_NAVI: usize = 1024;
/// More than the client and the model server hold on one processor.
const MOST_OF_LIMIT: usize = 4096;
/// How near to the truth it goes on: an eighth.
const NEAR: usize = 8;
const SECONDS: u32 = 4;

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let pair = bench.ground.pair().await?;
    let mut samples = Samples::default();
    for round in 0..bench.rounds(1) {
        for side in pair.in_turn(round) {
            let mut crowd = Crowd {
                side,
                fleet: Fleet::new(&bench.ground.model.ledger),
            };
            samples.add(side, crowd.most().await? as f64);
        }
    }
    let what = "sessions at 50/s, p99 under 50 ms, on time";
    Ok(vec![
        Row::higher("capacity", what, "sessions", samples).with_goal(Goal::Value(1_000.0)),
    ])
}

struct Crowd<'a> {
    side: Side<'a>,
    fleet: Fleet,
}

impl Crowd<'_> {
    /// The most that are held: doubled until too many, then halved in between.
    async fn most(&mut self) -> Result<usize> {
        let most = match self.side {
            Side::Limit(_) => MOST_OF_LIMIT,
            Side::Navi(_) => MOST_OF_NAVI,
        };
        let (mut held, mut too_many) = (0, None);
        loop {
            let next = match too_many {
                None if held == most => return Ok(held),
                None => (held * 2).clamp(FIRST, most),
                Some(above) if above - held <= (held / NEAR).max(1) => return Ok(held),
                Some(above) => held.midpoint(above),
            };
            if self.holds(next).await? {
                held = next;
            } else {
                too_many = Some(next);
            }
        }
    }

    async fn holds(&mut self, sessions: usize) -> Result<bool> {
        self.fleet.grow(self.side, sessions).await?;
        let script = Script::new(PACE * SECONDS, Rate::PerSecond(PACE));
        let own = script.duration();
        let answer = (script.tokens, script.rate);
        let done = self.fleet.turns(sessions, answer, own).await?;
        let on_time = |one: &Done| one.turn.ended - one.turn.sent <= own + SLACK;
        let delays: Vec<f64> = done
            .iter()
            .flat_map(|one| &one.turn.delays)
            .copied()
            .collect();
        Ok(done.iter().all(on_time) && percentile(&delays, 0.99) < LATE_MS)
    }
}
