//! Promise 8: a turn on a session with 10,000 messages costs what one on a session with 10 does.
//! A program of its own, since the bytes are the whole process's.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    unused_imports,
    reason = "tests; the house is shared with the engine's other tests"
)]

#[path = "../engine/house/mod.rs"]
mod house;
mod measure;

use measure::measure;

/// More than `base` by no more than so many hundredths.
fn within(cost: u64, base: u64, hundredths: u64) -> bool {
    cost * 100 <= base * (100 + hundredths)
}

#[test]
fn a_turn_costs_the_same_on_ten_thousand_messages() {
    let [short, middle, long] = [10, 1_000, 10_000].map(|messages| measure(messages, 15));
    let told = format!("{short:#?}\n{middle:#?}\n{long:#?}");
    let (less, between, more) = (short.least, middle.least, long.least);
    assert_eq!(less.statements, more.statements, "{told}");
    assert_eq!(less.sent, more.sent, "{told}");
    assert!(less.statements > 10, "{told}");
    // The database writes whole pages. While a table or an index is a single one, rows that a
    // longer one keeps on several share it: so much comes to it once, and then no more.
    assert!(within(more.written, less.written, 20), "{told}");
    assert!(within(more.written, between.written, 5), "{told}");
    // What is read is read by index: a few pages more where trees are deeper.
    let few_pages = 200 << 10;
    assert!(more.read < less.read + few_pages, "{told}");
    assert!(long.first.read < short.first.read + 2 * few_pages, "{told}");
}
