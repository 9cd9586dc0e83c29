//! Faults on demand, for tests of whole processes. Armed only in a build with `failpoints`.
//!
//! `FAILPOINTS` arms fail points as the `fail` crate reads it (`run::step=3*off->panic`).
//! `NAVI_KILL_AT=POINT:N` ends the process, as `kill -9` does, when it comes to the point for
//! the `N`th time. `NAVI_FAULTS_FILE=PATH` is for faults at a moment of the test's choice: a
//! file that appears there is read, its lines are armed (`POINT=ACTIONS`, `kill POINT:N`, or
//! `log POINT`, which logs each time that it is passed), and when it is gone they hold.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

/// How often it is looked whether there is a file.
const LOOK_EVERY: Duration = Duration::from_millis(10);

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
        kill_at(&asked).map_err(|wrong| format!("NAVI_KILL_AT: {wrong}"))?;
    }
    if let Some(file) = std::env::var_os("NAVI_FAULTS_FILE") {
        let file = PathBuf::from(file);
        std::thread::spawn(move || {
            loop {
                if let Ok(orders) = std::fs::read_to_string(&file) {
                    for order in orders.lines() {
                        if let Err(wrong) = arm_one(order) {
                            tracing::error!(wrong, "no fault");
                        }
                    }
                    // The test waits for this, and fails where it does not come.
                    let _ = std::fs::remove_file(&file);
                }
                std::thread::sleep(LOOK_EVERY);
            }
        });
    }
    Ok(Faults(scenario))
}

fn arm_one(order: &str) -> Result<(), String> {
    if let Some(asked) = order.strip_prefix("kill ") {
        return kill_at(asked);
    }
    if let Some(point) = order.strip_prefix("log ") {
        let name = point.to_owned();
        return fail::cfg_callback(point, move || tracing::info!("passes {name}"));
    }
    let (point, actions) = order
        .split_once('=')
        .ok_or_else(|| format!("{order} is no POINT=ACTIONS"))?;
    fail::cfg(point, actions)
}

fn kill_at(asked: &str) -> Result<(), String> {
    let wrong = || format!("{asked} is no POINT:N");
    let (point, at) = asked.rsplit_once(':').ok_or_else(wrong)?;
    let at: u64 = at.parse().map_err(|_| wrong())?;
    let passed = AtomicU64::new(0);
    fail::cfg_callback(point, move || {
        if passed.fetch_add(1, Ordering::Relaxed) + 1 == at {
            // Nothing after this runs, and nothing could be done about an error.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    })
}
