//! How far a run may go, what it asks about, and when its context is compressed.

use std::time::Duration;

use chrono::TimeDelta;
use navi_actors::domain::hangs::Patience;
use navi_actors::domain::session::PARTS_KNOWN_FOR;
use navi_actors::domain::slots::{self, Parallel};
use navi_actors::files::FileLimits;
use navi_actors::protocol::approval::ConsentMode;
use navi_actors::services::{CompressionPolicy, ConsentPolicy, ResumePolicy, RunLimits};
use navi_actors::store::LogLimits;

use super::keys;
use super::read::{self, Reader};

/// A week, in minutes.
const LONGEST: u32 = 7 * 24 * 60;

/// `None` only together with problems.
pub(super) fn runs(r: &mut Reader<'_>) -> Option<RunLimits> {
    let time = r.required(&keys::RUN_TIME, minutes);
    let child_time = r.required(&keys::SUBAGENT_TIME, minutes);
    let tokens = r.required(&keys::RUN_TOKENS, read::number(1000..=1_000_000_000_000));
    let child_depth = r.required(&keys::SUBAGENT_DEPTH, read::number(0..=8));
    let parallel_children = r.required(&keys::SUBAGENTS_AT_ONCE, read::number(1..=64));
    let children = r.required(&keys::SUBAGENTS_PER_RUN, read::number(1..=10_000));
    let plan_tokens = r.required(&keys::PLAN_TOKENS, read::number(100..=100_000));
    Some(RunLimits {
        time: time?,
        child_time: child_time?,
        tokens: tokens?,
        child_depth: child_depth?,
        parallel_children: parallel_children?,
        children: children?,
        plan_tokens: plan_tokens?,
    })
}

/// `None` only together with problems; in it none where nothing is watched.
pub(super) fn patience(r: &mut Reader<'_>) -> Option<Option<Patience>> {
    let hang = r.required(&keys::WATCHDOG, read::number(0.0..=3600.0))?;
    Some((hang > 0.0).then(|| Patience::of(Duration::from_secs_f64(hang))))
}

/// `None` only together with problems.
pub(super) fn resume(r: &mut Reader<'_>) -> Option<ResumePolicy> {
    r.required(
        &keys::RESUME,
        read::choice(&[("ask", ResumePolicy::Ask), ("reads", ResumePolicy::Reads)]),
    )
}

/// `None` only together with problems.
pub(super) fn consent(r: &mut Reader<'_>) -> Option<ConsentPolicy> {
    let mode = r.required(
        &keys::CONSENT_MODE,
        read::choice(&[
            ("ask", ConsentMode::Ask),
            ("edits", ConsentMode::Edits),
            ("auto", ConsentMode::Auto),
        ]),
    );
    let timeout = r.required(&keys::APPROVAL_TIMEOUT, minutes);
    Some(ConsentPolicy {
        mode: mode?,
        timeout: timeout?,
    })
}

/// `None` only together with problems.
pub(super) fn compression(r: &mut Reader<'_>) -> Option<CompressionPolicy> {
    let enabled = r.required(&keys::COMPRESSION, read::boolean);
    let threshold = r.required(&keys::THRESHOLD, read::number(0.001..=1.0));
    let keep_recent = r.required(&keys::KEEP_RECENT, read::number(0..=1000));
    let temperature = r.required(&keys::SUMMARY_TEMPERATURE, read::number(0.0..=2.0));
    Some(CompressionPolicy {
        enabled: enabled?,
        threshold: threshold?,
        keep_recent: keep_recent?,
        temperature: temperature?,
    })
}

/// In bytes. `None` only together with problems.
pub(super) fn context_cache(r: &mut Reader<'_>) -> Option<usize> {
    let megabytes = r.required(&keys::CONTEXT_CACHE, read::number(0_usize..=1_000_000))?;
    Some(megabytes * 1024 * 1024)
}

/// `None` only together with problems.
pub(super) fn files(r: &mut Reader<'_>) -> Option<FileLimits> {
    let file_mb = r.required(&keys::FILES_MAX, read::number(1_u32..=1_000_000));
    let hours = r.required(&keys::FILES_TTL, read::number(0.0001..=100_000.0));
    let count = r.required(&keys::FILES_MAX_COUNT, read::number(1_u32..=100_000));
    let total_mb = r.required(&keys::FILES_MAX_TOTAL, read::number(1_u32..=10_000_000));
    let bytes = |megabytes: u32| u64::from(megabytes) * 1024 * 1024;
    Some(FileLimits {
        file_bytes: bytes(file_mb?),
        keep: Duration::from_secs_f64(hours? * 3600.0),
        session_files: count?.into(),
        session_bytes: bytes(total_mb?),
        ..FileLimits::default()
    })
}

/// `None` only together with problems.
pub(super) fn log(r: &mut Reader<'_>) -> Option<LogLimits> {
    let days = r.required(&keys::LOG_DAYS, read::number(0_u32..=36_500));
    let calls = r.required(&keys::LOG_CALLS, log_calls);
    let record = r.required(&keys::RECORD_DAYS, read::number(1_u32..=3_650));
    Some(LogLimits {
        keep: Some(days?)
            .filter(|days| *days > 0)
            .map(|days| TimeDelta::days(days.into())),
        calls: calls?,
        record: TimeDelta::days(record?.into()),
    })
}

fn log_calls(text: &str) -> Result<Option<u64>, String> {
    if text.trim() == "0" {
        return Ok(None);
    }
    read::number(PARTS_KNOWN_FOR as u64..=1_000_000)(text)
        .map(Some)
        .map_err(|expected| format!("0, or {expected}"))
}

/// `LLM_PARALLEL`: `auto`, or a number.
pub(super) fn parallel(text: &str) -> Result<Parallel, String> {
    if text.eq_ignore_ascii_case("auto") {
        return Ok(Parallel::Auto);
    }
    read::number(1..=slots::MOST)(text)
        .map(Parallel::Fixed)
        .map_err(|expected| format!("auto, or {expected}"))
}

fn minutes(text: &str) -> Result<Duration, String> {
    read::number(1..=LONGEST)(text)
        .map(|minutes| Duration::from_secs(u64::from(minutes) * 60))
        .map_err(|expected| format!("minutes: {expected}"))
}
