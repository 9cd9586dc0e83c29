//! What a client makes of its frames, and what must hold of them.

use std::collections::BTreeMap;

use navi_actors::protocol::ids::PartId;
use serde_json::Value;

use crate::shelf::Shelf;

/// What a client has put together.
#[derive(Debug)]
pub(crate) struct View {
    shelf: Shelf,
    /// Where the snapshot stood that it began with.
    since: u64,
    pub(crate) seq: u64,
    pub(crate) epoch: i64,
    parts: BTreeMap<String, String>,
    /// How far each part was told on this connection.
    told: BTreeMap<String, usize>,
    pub(crate) has_the_end: bool,
}

impl View {
    /// A client that has a snapshot.
    pub(crate) fn new(shelf: Shelf, seq: u64, epoch: i64) -> Self {
        let mut view = Self {
            shelf,
            since: 0,
            seq: 0,
            epoch: 0,
            parts: BTreeMap::new(),
            told: BTreeMap::new(),
            has_the_end: false,
        };
        view.begin(seq, epoch);
        view
    }

    fn begin(&mut self, seq: u64, epoch: i64) {
        assert!(
            seq <= self.shelf.last_seq(),
            "a snapshot of what is not committed: {seq}"
        );
        self.since = seq;
        self.seq = seq;
        self.epoch = epoch;
        self.parts.clear();
        self.told.clear();
        self.has_the_end |= (1..=seq).any(|seq| {
            let event = self.shelf.event(seq).expect("the log has no gap");
            event.json.contains("\"the end\"")
        });
    }

    /// It connects again.
    pub(crate) fn connect(&mut self) {
        self.told.clear();
    }

    pub(crate) fn apply(&mut self, json: &str) {
        let frame: Value = serde_json::from_str(json).unwrap();
        match frame["type"].as_str().unwrap() {
            "resync" => {
                let session = &frame["session"];
                self.begin(
                    session["last_seq"].as_u64().unwrap(),
                    session["epoch"].as_i64().unwrap(),
                );
            }
            "notice" => self.event(&frame, json),
            "stream_delta" => self.delta(&frame),
            other => panic!("nothing tells {other}"),
        }
    }

    fn event(&mut self, frame: &Value, json: &str) {
        let seq = frame["seq"].as_u64().unwrap();
        assert_eq!(seq, self.seq + 1, "a gap or a repeat");
        self.seq = seq;
        let committed = self.shelf.event(seq);
        let committed = committed.expect("told before it was committed");
        assert_eq!(committed.json, json, "another event than the committed one");
        if frame["code"] == "over" {
            let part = PartId(frame["message"].as_str().unwrap().to_owned());
            let whole = self.shelf.text(&part);
            let has = self.parts.get(&part.0).map_or("", String::as_str);
            assert_eq!(has, whole, "{part:?} is over");
        }
        if frame["code"] == "interrupted" {
            for (part, logged) in self.shelf.parts_between(self.since, seq) {
                let has = self.parts.get(&part.0).map_or("", String::as_str);
                assert!(has.starts_with(&logged), "{has:?} of {part:?}: {logged:?}");
            }
            // Beyond that it may have what a session told that died by itself. One whose commit
            // failed leaves nobody with what no message has.
            for (part, has) in &self.parts {
                let part = PartId(part.clone());
                let logged = self.shelf.text(&part);
                assert!(
                    logged.starts_with(has.as_str()) || self.shelf.was_left(&part),
                    "{has:?} of {part:?} and no more is logged than {logged:?}"
                );
            }
        }
        self.has_the_end |= frame["code"] == "the end";
    }

    fn delta(&mut self, frame: &Value) {
        let name = frame["part_id"].as_str().unwrap().to_owned();
        let offset = usize::try_from(frame["offset"].as_u64().unwrap()).unwrap();
        let delta = frame["delta"].as_str().unwrap();
        let told = self.told.insert(name.clone(), offset + delta.len());
        assert!(
            told.is_none_or(|told| told == offset),
            "a repeat or a hole in {name}: {told:?}, then {offset}"
        );
        let has = self.parts.entry(name.clone()).or_default();
        assert!(offset <= has.len(), "a hole in {name} before {offset}");
        let known = &has[offset..];
        let (same, new) = delta.split_at(known.len().min(delta.len()));
        assert!(known.starts_with(same), "other text in {name} at {offset}");
        has.push_str(new);
    }
}
