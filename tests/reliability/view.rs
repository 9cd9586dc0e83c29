//! A client as SPEC section 12 wants one: applies events by number and deltas by offset.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::server::{Server, Told};

/// What a client has put together so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View {
    /// The last event that was applied.
    pub(crate) seq: u64,
    /// Every event, by number, as it came.
    events: BTreeMap<u64, Value>,
    /// Every part's text.
    parts: BTreeMap<String, String>,
    /// Their lengths, in UTF-16 code units.
    lengths: BTreeMap<String, usize>,
}

impl View {
    /// Of a client that has all up to this event from elsewhere.
    pub(crate) fn after(seq: u64) -> Self {
        Self {
            seq,
            ..Self::default()
        }
    }

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
        let have = self.lengths.entry(part.clone()).or_default();
        let text = self.parts.entry(part).or_default();
        assert!(offset <= *have, "a hole at {have}: {frame}");
        let delta: Vec<u16> = frame["delta"].as_str().unwrap().encode_utf16().collect();
        if let Some(new) = delta.get(*have - offset..) {
            *have += new.len();
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

    pub(crate) fn events(&self) -> impl Iterator<Item = &Value> {
        self.events.values()
    }

    /// Fails the test where this view, of a tab that was there all the time, is not the one of
    /// a tab that comes after a crash: the same events, and of each part the same beginning.
    /// The last moment of a text that was cut off is nowhere but before the eyes of the first.
    pub(crate) fn assert_goes_with(&self, later: &Self) {
        assert_eq!(self.events, later.events);
        for (part, text) in &later.parts {
            let had = self.parts.get(part).map(String::as_str).unwrap_or_default();
            assert!(had.starts_with(text.as_str()), "{part}: {had:?}, {text:?}");
        }
    }

    pub(crate) fn types(&self) -> Vec<&str> {
        self.events
            .values()
            .map(|event| event["type"].as_str().unwrap())
            .collect()
    }
}

/// That each call that was told to begin was told to end once, and each frame too; and that a
/// subagent's frame ends before the call that asked for it.
pub(crate) fn assert_whole(frames: &[Value]) {
    let mut calls: Vec<&str> = Vec::new();
    let mut children: Vec<(&str, &str)> = Vec::new();
    for frame in frames {
        let field = |name: &str| frame[name].as_str().unwrap_or_default();
        match field("type") {
            "tool_started" => calls.push(field("call_id")),
            "tool_call" => {
                let at = calls.iter().position(|call| *call == field("call_id"));
                calls.remove(at.unwrap_or_else(|| panic!("it never began: {frame}")));
                let open = children.iter().any(|(_, call)| *call == field("call_id"));
                assert!(!open, "its subagent is still there: {frame}");
            }
            "subagent_started" => {
                assert!(calls.contains(&field("call_id")), "{frame}");
                children.push((field("run_id"), field("call_id")));
            }
            "subagent_finished" => {
                let at = children.iter().position(|(run, _)| *run == field("run_id"));
                children.remove(at.unwrap_or_else(|| panic!("it never began: {frame}")));
            }
            _ => {}
        }
    }
    assert!(calls.is_empty(), "never ended: {calls:?} in {frames:#?}");
    assert!(
        children.is_empty(),
        "never ended: {children:?} in {frames:#?}"
    );
}

/// Everything that was told of a session so far, as one who comes anew is told it.
pub(crate) async fn told(server: &Server, session: &str) -> Vec<Value> {
    let head = server.get(&format!("/sessions/{session}")).await["last_seq"].as_u64();
    let mut tab = server.tab(session, Some(0)).await;
    let mut frames: Vec<Value> = Vec::new();
    let mut view = View::default();
    while Some(view.seq) < head {
        match tab.next().await {
            Told::Frame(frame) => {
                view.apply(&frame);
                frames.push(frame);
            }
            Told::Closed(code) => panic!("closed with {code}"),
        }
    }
    frames
}
