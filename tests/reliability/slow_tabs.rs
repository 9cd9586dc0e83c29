//! A tab that never reads costs nobody anything (promise 4).

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::sleep;

use super::talking;
use crate::fake_model::Step;
use crate::server::{Server, Told};

/// One answer, in bytes: under the limit of a reply.
const ANSWER: usize = 7_000_000;

fn resident_bytes(server: &Server) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

#[tokio::test]
async fn a_tab_that_never_reads_slows_nobody_and_memory_stays_flat() {
    let (model, server) = talking();
    // Over 100 MB. Fewer tell nothing: the allocator's pools fill over the first six or so.
    let answers = 15;
    let mut resident = Vec::new();
    // The tabs that never read stay open to the end.
    let mut never_read = Vec::new();
    for _ in 0..answers {
        let piece = "0123456789abcdef".repeat(256);
        let answer = vec![Step::text(&piece); ANSWER / piece.len()];
        model.script(answer);
        let session = server.new_session().await;
        never_read.push(server.tab(&session, None).await);
        let mut tab = server.tab(&session, None).await;
        tab.send(&json!({"type": "message", "content": "go"})).await;
        let mut length = 0;
        loop {
            let Told::Frame(frame) = tab.next().await else {
                panic!("the tab that reads was closed");
            };
            let kind = frame["type"].as_str().unwrap();
            assert!(!matches!(kind, "error" | "run_interrupted"), "{frame}");
            length += frame["delta"].as_str().map_or(0, str::len);
            if kind == "stream_end" {
                break;
            }
        }
        assert_eq!(length, ANSWER / piece.len() * piece.len());
        resident.push(resident_bytes(&server));
    }
    // The first half fills what any answer takes: buffers, caches, the allocator's pools.
    let settled = resident[..resident.len() / 2].iter().max().unwrap();
    // Each tab that does not read holds a page of the log, and no more.
    let most = settled + 16_000_000 + never_read.len() * 600_000;
    // An answer's end is written and searched for words behind what tabs are told, in several times
    // its size: what stays is what it comes back to.
    let until = Instant::now() + Duration::from_secs(60);
    while resident_bytes(&server) >= most {
        assert!(
            Instant::now() < until,
            "resident memory grew over {answers} answers of {ANSWER} bytes: {resident:?}, then {}",
            resident_bytes(&server)
        );
        sleep(Duration::from_millis(50)).await;
    }
}
