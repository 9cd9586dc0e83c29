//! How many values a JSON text has, counted before any of them is made: two bytes of it can come
//! to a hundred in memory.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// From this size on a text is large: its values are counted, and it is parsed beside the arbiter,
/// as that takes longer than the half millisecond that a handler may block. What is smaller comes
/// to little, whatever it is made of.
pub(super) const LARGE_BYTES: usize = 64 * 1024;

/// A list counts as so many: it has room for as many values as soon as it has one.
pub(super) const LIST: usize = 4;
/// An object likewise, with a table of its keys. Each key counts as one more.
pub(super) const OBJECT: usize = 6;

/// An object whose key this is becomes whatever its text is parsed to (serde_json's feature
/// `raw_value`): what is in there cannot be seen from here, and nobody who means well sends it.
const PARSED_AGAIN: &str = "$serde_json::private::RawValue";

/// Whether a large text has more values than this. Broken JSON has those before its fault, and
/// whoever parses it makes no others.
pub(super) fn are_more_than(most: usize, json: &[u8]) -> bool {
    if json.len() < LARGE_BYTES {
        return false;
    }
    let left = Cell::new(Some(most));
    // What else is wrong with it is told by whoever parses it.
    let _ = Count(&left).deserialize(&mut serde_json::Deserializer::from_slice(json));
    left.get().is_none()
}

/// A value with all in it. Takes from what is left, which is nothing where that is too little.
#[derive(Clone, Copy)]
struct Count<'a>(&'a Cell<Option<usize>>);

impl Count<'_> {
    fn take<E: de::Error>(self, values: usize) -> Result<(), E> {
        let left = self.0.get().and_then(|left| left.checked_sub(values));
        self.0.set(left);
        match left {
            Some(_) => Ok(()),
            None => Err(E::custom("too many values")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Count<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Count<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.take(1)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        self.take(1)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        self.take(1)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        self.take(1)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        self.take(1)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        self.take(1)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.take(LIST)?;
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        self.take(OBJECT)?;
        while fields.next_key_seed(Key(self))?.is_some() {
            fields.next_value_seed(self)?;
        }
        Ok(())
    }
}

struct Key<'a>(Count<'a>);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<(), E> {
        let values = if key == PARSED_AGAIN { usize::MAX } else { 1 };
        self.0.take(values)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The same text, long enough to be counted.
    fn large(json: &str) -> Vec<u8> {
        format!("{json}{}", " ".repeat(LARGE_BYTES)).into_bytes()
    }

    /// How many values it has.
    fn count(json: &str) -> usize {
        let json = large(json);
        (0..100).find(|most| !are_more_than(*most, &json)).unwrap()
    }

    #[test]
    fn each_value_counts_wherever_it_stands() {
        for one in ["null", "true", "0", "-7", "1.5e3", "\"x\"", "\"\\u00e9\""] {
            assert_eq!(count(one), 1, "{one}");
        }
        assert_eq!(count("[]"), LIST);
        assert_eq!(count("[1, [2, 3], \"x\"]"), 2 * LIST + 4);
        assert_eq!(count("{}"), OBJECT);
        assert_eq!(count("{\"a\": {\"b\": [null]}}"), 2 * OBJECT + LIST + 3);
        // Though only the last of them stays.
        assert_eq!(count("{\"a\": 1, \"a\": 2, \"a\": 3}"), OBJECT + 6);
    }

    #[test]
    fn many_small_values_are_too_many_and_one_long_text_is_not() {
        let zeros = |n: usize| format!("{{\"x\": [0{}]}}", ",0".repeat(n - 1)).into_bytes();
        let most = 100_000;
        let rest = OBJECT + LIST + 1;
        assert!(!are_more_than(most, &zeros(most - rest)));
        assert!(are_more_than(most, &zeros(most - rest + 1)));
        let long = format!("{{\"x\": \"{}\"}}", "[0,".repeat(most)).into_bytes();
        assert!(!are_more_than(OBJECT + 2, &long));
        // A small one is left to whoever parses it.
        assert!(!are_more_than(0, b"[0,0,0]"));
    }

    #[test]
    fn broken_json_has_what_stands_before_its_fault() {
        for broken in ["", "[1, 2", "[1, 2}", "[1, 2, x", "{\"a\"}", "{1: 2}"] {
            let broken = large(broken);
            assert!(!are_more_than(20, &broken));
            assert!(serde_json::from_slice::<Value>(&broken).is_err());
        }
        assert!(are_more_than(5, &large("[1, 2, x")));
        let deep = "[".repeat(LARGE_BYTES);
        assert!(!are_more_than(200 * LIST, deep.as_bytes()));
    }

    #[test]
    fn json_in_a_text_is_a_text_but_where_it_is_parsed_again() {
        assert_eq!(count("{\"a\": \"[0, 0, 0]\"}"), OBJECT + 2);
        let hidden = format!("{{\"a\": {{\"{PARSED_AGAIN}\": \"[0, 0, 0]\"}}}}");
        assert!(are_more_than(1_000_000, &large(&hidden)));
        // What this is for: were it otherwise, there would be nothing to refuse.
        let read: Value = serde_json::from_str(&hidden).unwrap();
        assert_eq!(read["a"], serde_json::json!([0, 0, 0]));
    }
}
