//! A session of ten thousand messages after a restart, when none of it is in memory: what the page
//! asks for when it opens it, all of it, as a program may ask, and the first answer to a message.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{Bench, ms};
use crate::house::{Filling, House};
use crate::navi::Navi;
use crate::report::{Goal, Row, Samples};
use crate::script::{Rate, Script};

const FILLING: Filling = Filling {
    sessions: 1,
    messages: 10_000,
};

/// What the page asks for first when a person opens a session: of its messages, the newest.
const NEWEST: &str = "?messages=100";

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let (house, sessions) = House::filled(FILLING).await?;
    let session = sessions.first().context("no session was made")?;
    let [mut opened, mut again, mut whole, mut answered] = [const { Vec::new() }; 4];
    for _ in 0..bench.rounds(5) {
        let navi = restarted(bench, &house).await?;
        opened.push(ms(read(&navi, session, NEWEST).await?));
        again.push(ms(read(&navi, session, NEWEST).await?));
        whole.push(ms(read(&navi, session, "").await?));
        let seq = navi.last_seq(session).await?;
        navi.process.end().await;
        let navi = restarted(bench, &house).await?;
        answered.push(ms(first_answer(bench, &navi, session, seq).await?));
        navi.process.end().await;
    }
    let what = |part: &str| format!("a session of 10,000 messages, {part}");
    let [opened, again, whole, answered] = [opened, again, whole, answered].map(Samples::of_navi);
    Ok(vec![
        Row::lower("cold-open", &what("opened after a restart"), "ms", opened)
            .with_goal(Goal::Value(15.0)),
        Row::lower("warm-open", &what("opened again"), "ms", again),
        Row::lower("whole-open", &what("all of it"), "ms", whole),
        Row::lower(
            "cold-answer",
            &what("first answer after a restart"),
            "ms",
            answered,
        )
        .with_goal(Goal::Value(15.0)),
    ])
}

async fn restarted(bench: &Bench, house: &House) -> Result<Navi> {
    let navi = house.start(&bench.ground).await?;
    navi.ready().await?;
    Ok(navi)
}

async fn read(navi: &Navi, session: &str, part: &str) -> Result<Duration> {
    let path = format!("/sessions/{session}{part}");
    let (_, took) = navi.timed(navi.script(), &path).await?;
    Ok(took)
}

/// From where a tab comes back to the end of the answer to its message, without the time in which
/// the model server had it.
async fn first_answer(bench: &Bench, navi: &Navi, session: &str, seq: u64) -> Result<Duration> {
    let script = Script::new(1, Rate::Joined);
    let begun = std::time::Instant::now();
    let mut tab = navi.tab_after(session, seq).await?;
    let turn = tab.turn(script).await?;
    let call = bench.ground.model.ledger.take_one(script.id)?;
    let model = call.ended.context("a model call without an end")? - call.arrived;
    Ok(turn.ended.duration_since(begun).saturating_sub(model))
}
