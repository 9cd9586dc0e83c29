use chrono::TimeDelta;

use super::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

fn fact(category: &str, key: &str, value: &str, seconds: i64) -> Fact {
    Fact {
        category: category.to_owned(),
        key: key.to_owned(),
        value: value.to_owned(),
        source: FactSource::default(),
        confidence: 0.8,
        created_at: at(0),
        updated_at: at(seconds),
    }
}

fn new(value: &str, confidence: f32, seconds: i64) -> NewFact {
    NewFact {
        name: FactName::new("places", "home").unwrap(),
        value: value.to_owned(),
        source: FactSource::default(),
        confidence,
        at: at(seconds),
    }
}

#[test]
fn newer_wins_and_an_equal_value_is_said_again() {
    let known = fact("places", "home", "Kyiv", 10);
    for (new, expected) in [
        (new("Lviv", 0.6, 20), Merge::Replace),
        // What outside text says does not push out what the user said.
        (new("Lviv", UNCONFIRMED, 20), Merge::Keep),
        (new("Lviv", 1.0, 10), Merge::Replace),
        (new("Lviv", 1.0, 9), Merge::Keep),
        (new("Kyiv", 0.8, 20), Merge::Renew),
        (new("Kyiv", 0.8, 9), Merge::Keep),
        (new("Kyiv", UNCONFIRMED, 20), Merge::Keep),
        (new("Kyiv", 1.0, 20), Merge::Confirm),
        (new("Kyiv", 1.0, 9), Merge::Confirm),
    ] {
        assert_eq!(merge(Some(&known), None, &new), expected, "{new:?}");
    }
    assert_eq!(merge(None, None, &new("Kyiv", 0.5, 1)), Merge::Create);
}

#[test]
fn what_was_forgotten_stays_forgotten_until_it_is_said_again() {
    assert_eq!(merge(None, Some(at(5)), &new("Kyiv", 1.0, 5)), Merge::Keep);
    assert_eq!(
        merge(None, Some(at(5)), &new("Kyiv", 1.0, 6)),
        Merge::Create
    );
}

#[test]
fn names_are_brought_into_form_or_refused() {
    for (key, expected) in [
        ("sister_name", "sister_name"),
        ("Sister's Name ", "sister_s_name"),
        ("sisterName", "sisterName"),
        (" tea-time.2 ", "tea-time.2"),
        ("--Улюблена Їжа!!", "улюблена_їжа"),
        ("IPv6 host", "ipv6_host"),
    ] {
        let name = FactName::new(" People", key).unwrap();
        assert_eq!(
            (name.category.as_str(), name.key.as_str()),
            ("people", expected)
        );
    }
    for (category, expected) in [
        ("pets", "pets"),
        ("WORK", "work"),
        ("Fast cars", "fast_cars"),
    ] {
        assert_eq!(FactName::new(category, "x").unwrap().category, expected);
    }
    let long = "k".repeat(MAX_KEY_CHARS + 1);
    for (category, key) in [
        ("!?", "dog"),
        (long.as_str(), "dog"),
        ("people", "?!"),
        ("people", long.as_str()),
        ("", "x"),
    ] {
        FactName::new(category, key).unwrap_err();
    }
}

#[test]
fn a_value_is_one_line_of_a_bounded_length() {
    assert_eq!(value(" two\nlines\t\u{0}here ").unwrap(), "two lines here");
    value(" \n").unwrap_err();
    value(&"я".repeat(MAX_VALUE_CHARS)).unwrap();
    value(&"я".repeat(MAX_VALUE_CHARS + 1)).unwrap_err();
}

#[test]
fn a_search_knows_words_of_any_script_and_their_endings() {
    let facts = [
        fact("people", "sister_name", "Олена, живе у Львові", 1),
        fact("people", "brother_name", "Taras", 2),
        fact("preferences", "tea", "green, no sugar", 3),
    ];
    let keys = |query| -> Vec<&str> {
        search(&facts, query)
            .into_iter()
            .map(|fact| fact.key.as_str())
            .collect()
    };
    assert_eq!(keys("ОЛЕНА"), ["sister_name"]);
    assert_eq!(keys("Оленою"), ["sister_name"]);
    assert_eq!(keys("the sister's name"), ["sister_name", "brother_name"]);
    assert_eq!(keys("people taras"), ["brother_name", "sister_name"]);
    assert_eq!(keys("  "), ["tea", "brother_name", "sister_name"]);
    assert!(keys("car").is_empty());
}
