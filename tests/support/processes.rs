//! The processes of this machine, for what must leave none behind.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "test code, included by several programs that each use a part of it"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::server::PATIENCE;

/// A user without a name of its own on most machines, and never root.
pub(crate) const NOBODY: u32 = 65534;

/// Whether the tests run as root.
pub(crate) fn is_root() -> bool {
    navi_actors::tools::sandbox::user::is_root()
}

/// A number that no other process of this machine has on its command line, for `sleep`.
pub(crate) fn marker() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}", (u64::from(std::process::id()) + 10_000) * 1000 + next)
}

/// The living processes of this machine that have this word on their command line.
pub(crate) fn processes_with(word: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let with = processes.filter(|entry| {
        let stat = std::fs::read(entry.path().join("stat")).unwrap_or_default();
        let is_dead = String::from_utf8_lossy(&stat).contains(") Z ");
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        !is_dead && line.split('\0').any(|part| part == word)
    });
    with.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Whether there is one.
pub(crate) fn runs(word: &str) -> bool {
    !processes_with(word).is_empty()
}

/// Waits until no process has this word on its command line.
pub(crate) async fn gone(word: &str) {
    let until = Instant::now() + PATIENCE;
    while runs(word) {
        assert!(Instant::now() < until, "a process with `{word}` is left");
        // Processes of others cannot be awaited.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a process has this word on its command line.
pub(crate) async fn begun(word: &str) {
    let until = Instant::now() + PATIENCE;
    while !runs(word) {
        assert!(Instant::now() < until, "no process with `{word}` began");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
