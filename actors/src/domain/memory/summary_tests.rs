use chrono::{DateTime, TimeDelta};

use super::*;
use crate::protocol::memory::FactSource;

fn fact(key: &str, value: &str, confidence: f32, seconds: i64) -> Fact {
    Fact {
        category: "people".into(),
        key: key.into(),
        value: value.into(),
        source: FactSource::default(),
        confidence,
        created_at: DateTime::UNIX_EPOCH,
        updated_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds),
    }
}

#[test]
fn a_summary_without_a_model_lists_what_is_confirmed() {
    let facts = [
        fact("sister_name", "Олена", 0.8, 1),
        fact("brother_name", "Taras", 1.0, 2),
        fact("cousin", "from a web page", 0.5, 3),
    ];
    assert_eq!(
        fallback(&facts),
        "- people, brother name: Taras\n- people, sister name: Олена"
    );
    assert_eq!(fallback(&facts[2..]), "");
    assert_eq!(prompt(&facts[2..]), None);
}

#[test]
fn a_summary_is_bounded_and_says_what_is_missing() {
    let facts: Vec<Fact> = (0..40)
        .map(|n| fact(&format!("friend_{n}"), &"ї".repeat(100), 1.0, n))
        .collect();
    let text = fallback(&facts);
    assert!(text.chars().count() <= MAX_CHARS);
    assert!(text.starts_with("- people, friend 39: "));
    let lines = text.lines().count() - 1;
    assert!(text.ends_with(&format!(
        "- and {} more, which memory_search finds",
        40 - lines
    )));
}

#[test]
fn an_answer_that_does_not_stop_is_cut_at_a_sentence() {
    assert_eq!(from_answer(" ```\n "), None);
    assert_eq!(from_answer("Ann is a nurse. ").unwrap(), "Ann is a nurse.");
    let long = from_answer(&"Їй подобається чай. ".repeat(400)).unwrap();
    assert!(long.ends_with("чай."));
    assert!(long.chars().count() <= MAX_CHARS);
    let one = from_answer(&"я".repeat(9_000)).unwrap();
    assert_eq!(one.chars().count(), MAX_CHARS);
}
