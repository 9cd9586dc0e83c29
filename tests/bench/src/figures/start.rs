//! From the start of the process to its first answer with 200: with a database that is there,
//! and with none.

use anyhow::Result;

use super::{Bench, ms};
use crate::house::House;
use crate::report::{Goal, Row, Samples};

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let ground = &bench.ground;
    let (mut there, mut new) = (Samples::default(), Samples::default());
    for _ in 0..bench.rounds(7) {
        let (limit, took) = ground.pass_through().await?;
        drop(limit);
        let house = House::new()?;
        let first = house.start(ground).await?;
        new.limit.push(ms(took));
        new.navi.push(ms(first.started_in));
        first.process.end().await;
        let second = house.start(ground).await?;
        there.limit.push(ms(took));
        there.navi.push(ms(second.started_in));
        second.process.end().await;
    }
    let what = |database: &str| format!("start to the first 200, {database}");
    Ok(vec![
        Row::lower("start", &what("database there"), "ms", there).with_goal(Goal::Value(20.0)),
        Row::lower("start-new", &what("new database"), "ms", new).with_goal(Goal::Value(150.0)),
    ])
}
