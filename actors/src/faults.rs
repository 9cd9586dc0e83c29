//! Faults on demand, for tests of whole processes. Only in a build with `failpoints`.
//!
//! `FAILPOINTS` arms fail points as the `fail` crate reads it (`run::step=3*off->panic`).
//! `NAVI_KILL_AT=POINT:N` ends the process, as `kill -9` does, when it comes to the point for
//! the `N`th time.

use std::sync::atomic::{AtomicU64, Ordering};

use fail::FailScenario;
use rustix::process::{Signal, getpid, kill_process};

/// The fail points that a process can be killed at, in the order that a run comes to them.
pub const POINTS: &[&str] = &[
    "session::send",
    "journal::append",
    "journal::write",
    "journal::written",
    "session::tell",
    "run::step",
    "llm::acquire",
    "session::stream",
    "tool::call",
    "tool::done",
];

/// The armed faults; they end with this.
#[derive(Debug)]
pub struct Faults(#[expect(dead_code, reason = "held for its end")] FailScenario<'static>);

/// Arms what the environment asks for.
///
/// # Errors
/// Where `NAVI_KILL_AT` is no `POINT:N`.
pub fn arm() -> Result<Faults, String> {
    let scenario = FailScenario::setup();
    if let Ok(asked) = std::env::var("NAVI_KILL_AT") {
        let wrong = || format!("NAVI_KILL_AT: {asked} is no POINT:N");
        let (point, at) = asked.rsplit_once(':').ok_or_else(wrong)?;
        let at: u64 = at.parse().map_err(|_| wrong())?;
        let passed = AtomicU64::new(0);
        fail::cfg_callback(point, move || {
            if passed.fetch_add(1, Ordering::Relaxed) + 1 == at {
                // Nothing after this runs, and nothing could be done about an error.
                let _ = kill_process(getpid(), Signal::KILL);
            }
        })?;
    }
    Ok(Faults(scenario))
}
