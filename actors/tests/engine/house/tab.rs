//! What a tab is sent.

use std::path::Path;

use futures_util::StreamExt;
use navi_actors::feed::Feed;
use serde_json::Value;

use super::PATIENCE;

/// A tab: what it was sent, frame by frame.
pub(crate) struct Tab {
    pub(super) feed: Feed,
}

impl Tab {
    pub(crate) async fn next(&mut self) -> Value {
        let frame = tokio::time::timeout(PATIENCE, self.feed.next())
            .await
            .expect("nothing came")
            .expect("the feed ended");
        serde_json::from_str(&frame).unwrap()
    }

    /// Everything up to and with the first frame of this type.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await;
            let found = frame["type"] == kind;
            frames.push(frame);
            if found {
                return frames;
            }
        }
    }

    /// Whether the feed has ended.
    pub(crate) async fn ended(&mut self) -> bool {
        tokio::time::timeout(PATIENCE, self.feed.next())
            .await
            .is_ok_and(|frame| frame.is_none())
    }
}

/// Waits for a file that a tool leaves.
pub(crate) async fn appears(path: &Path) {
    let there = async {
        while !path.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, there)
        .await
        .unwrap_or_else(|_| panic!("{} never came", path.display()));
}

/// Types in order, runs of the same delta as one. That a run waits for a machine that is busy is
/// left out.
pub(crate) fn kinds(frames: &[Value]) -> Vec<String> {
    let mut kinds: Vec<String> = frames
        .iter()
        .map(|frame| frame["type"].as_str().unwrap().to_owned())
        .filter(|kind| kind != "run_waiting")
        .collect();
    kinds.dedup_by(|a, b| a == b && a.ends_with("delta"));
    kinds
}

/// The first frame of a type.
pub(crate) fn first<'a>(frames: &'a [Value], kind: &str) -> &'a Value {
    frames.iter().find(|frame| frame["type"] == kind).unwrap()
}

/// The text of all deltas of a type, put together by offset.
pub(crate) fn text(frames: &[Value], kind: &str) -> String {
    let mut text = String::new();
    for frame in frames.iter().filter(|frame| frame["type"] == kind) {
        assert_eq!(
            frame["offset"].as_u64().unwrap(),
            text.encode_utf16().count() as u64,
            "{frame}"
        );
        text.push_str(frame["delta"].as_str().unwrap());
    }
    text
}

/// That numbers have no gap and no repeat.
pub(crate) fn assert_gapless(frames: &[Value], first: u64) {
    let seqs: Vec<u64> = frames.iter().filter_map(|f| f["seq"].as_u64()).collect();
    let expected: Vec<u64> = (first..first + seqs.len() as u64).collect();
    assert_eq!(seqs, expected);
}
