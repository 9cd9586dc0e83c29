//! What a turn costs on sessions of several lengths, as a table. The test of the same name holds
//! what it shows: statements and bytes don't grow with the conversation.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    dead_code,
    reason = "a benchmark prints; what it shares with the tests is used in part"
)]

#[path = "../tests/engine/house.rs"]
mod house;
#[path = "../tests/turn_cost/measure.rs"]
mod measure;

use measure::{Cost, measure};

const TURNS: usize = 31;

fn row(name: &str, cost: Cost) {
    println!(
        "{name:<24} {:>10} {:>12} {:>10} {:>8} {:>9.2}",
        cost.statements,
        cost.written / 1024,
        cost.read / 1024,
        cost.sent,
        cost.time.as_secs_f64() * 1e3
    );
}

fn main() {
    println!("medians of {TURNS} turns, each with one tool call; the model answers at once\n");
    println!(
        "{:<24} {:>10} {:>12} {:>10} {:>8} {:>9}",
        "session", "statements", "written KiB", "read KiB", "sent", "ms"
    );
    let all: Vec<_> = [10, 1_000, 10_000]
        .map(|messages| measure(messages, TURNS))
        .into();
    for costs in &all {
        row(&format!("{} messages", costs.messages), costs.usual);
    }
    for costs in &all {
        row(&format!("{}, first turn", costs.messages), costs.first);
    }
    let (short, long) = (all[0].usual, all[all.len() - 1].usual);
    println!(
        "\n10,000 against 10: statements {:.2}, bytes written {:.2}, time {:.2}",
        ratio(long.statements as f64, short.statements as f64),
        ratio(long.written as f64, short.written as f64),
        ratio(long.time.as_secs_f64(), short.time.as_secs_f64()),
    );
}

fn ratio(a: f64, b: f64) -> f64 {
    a / b.max(f64::MIN_POSITIVE)
}
