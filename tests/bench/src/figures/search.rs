//! Search over a hundred thousand messages: the first page, for words that are everywhere and for
//! words that are nowhere else.

use anyhow::{Result, bail};

use super::{Bench, ms};
use crate::house::{Filling, House};
use crate::report::{Goal, Row, Samples};
use crate::statistics::median;

const FILLING: Filling = Filling {
    sessions: 1_000,
    messages: 100,
};

/// Of the text that the database is filled with: in more than half of all messages; in less than
/// one of a thousand; both of two that are common.
const SOUGHT: [(&str, &str); 3] = [
    ("common", "popo"),
    ("rare", "popopovu"),
    ("two", "pone%20pomi"),
];

pub(super) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let (house, _) = House::filled(FILLING).await?;
    let navi = house.start(&bench.ground).await?;
    navi.ready().await?;
    let mut rows = Vec::new();
    for (name, words) in SOUGHT {
        let path = format!("/search?q={words}");
        let mut times = Vec::new();
        for _ in 0..bench.rounds(5) {
            let mut round = Vec::new();
            for _ in 0..10 {
                let (answer, took) = navi.timed(navi.script(), &path).await?;
                if answer.json()["hits"].as_array().is_none_or(Vec::is_empty) {
                    bail!("{words} is not found");
                }
                round.push(ms(took));
            }
            times.push(median(&round));
        }
        let what = format!("search over 100,000 messages, first page, {name} words");
        let key = format!("search-{name}");
        let row = Row::lower(&key, &what, "ms", Samples::of_navi(times));
        rows.push(row.with_goal(Goal::Value(30.0)));
    }
    Ok(rows)
}
