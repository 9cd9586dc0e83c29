//! A client as SPEC section 12 wants one: applies events by number and deltas by offset.

use std::collections::BTreeMap;

use serde_json::Value;

/// What a client has put together so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View {
    /// The last event that was applied.
    pub(crate) seq: u64,
    /// Every event, by number, as it came.
    events: BTreeMap<u64, Value>,
    /// Every part's text.
    parts: BTreeMap<String, String>,
}

impl View {
    /// Applies a frame. Fails the test on a gap, a repeat or a hole.
    pub(crate) fn apply(&mut self, frame: &Value) {
        if let Some(seq) = frame["seq"].as_u64() {
            assert_eq!(seq, self.seq + 1, "a gap or a repeat: {frame}");
            self.seq = seq;
            self.events.insert(seq, frame.clone());
            return;
        }
        let part = frame["part_id"].as_str().expect("a delta").to_owned();
        let offset = usize::try_from(frame["offset"].as_u64().unwrap()).unwrap();
        let text = self.parts.entry(part).or_default();
        let have = text.encode_utf16().count();
        assert!(offset <= have, "a hole at {have}: {frame}");
        let delta: Vec<u16> = frame["delta"].as_str().unwrap().encode_utf16().collect();
        if let Some(new) = delta.get(have - offset..) {
            text.push_str(&String::from_utf16(new).expect("whole characters"));
        }
    }

    pub(crate) fn apply_all(&mut self, frames: &[Value]) {
        for frame in frames {
            self.apply(frame);
        }
    }

    /// The text of the part that ends with this (`.text`, `.thinking`), all of them together.
    pub(crate) fn text(&self, kind: &str) -> String {
        self.parts
            .iter()
            .filter(|(part, _)| part.ends_with(kind))
            .map(|(_, text)| text.as_str())
            .collect()
    }

    pub(crate) fn types(&self) -> Vec<&str> {
        self.events
            .values()
            .map(|event| event["type"].as_str().unwrap())
            .collect()
    }
}
