//! What we lean on in actix 0.13, each fact a test, so that an upgrade cannot change it
//! silently. A red test here means: read DESIGN section 3 again before anything else.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking, and panics are what is tested"
)]

mod context;
mod mailbox;
mod panics;
mod probe;
mod runtime;
mod supervision;

use std::future::Future;
use std::time::Duration;

use actix::System;

/// Runs a test on one arbiter with the real clock. The limit turns a hang into a failure.
fn on_arbiter<F: Future>(test: F) -> F::Output {
    System::new().block_on(async {
        tokio::time::timeout(Duration::from_secs(60), test)
            .await
            .expect("the test hangs")
    })
}

/// Runs a test on one arbiter whose clock stands still until everything waits for it.
fn on_paused_arbiter<F: Future>(test: F) -> F::Output {
    System::with_tokio_rt(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime")
    })
    .block_on(test)
}
