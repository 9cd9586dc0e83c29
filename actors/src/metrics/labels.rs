//! Labels, each with a closed list of values, and the bounds of what is timed.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::domain::lanes::Priority;
use crate::protocol::ids::Origin;
use crate::protocol::message::ToolOutcome;
use crate::protocol::session::RunState;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OfRun {
    pub(super) kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OfEndedRun {
    pub(super) kind: &'static str,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OfToolCall {
    /// One of Navi's own tools, or what stands for all others.
    pub(super) tool: String,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OfBackend {
    pub(super) backend: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OfLane {
    pub(super) backend: &'static str,
    pub(super) lane: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OfEndedCall {
    pub(super) backend: &'static str,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OfTokens {
    pub(super) backend: &'static str,
    pub(super) kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OfOutcome {
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OfActor {
    pub(super) actor: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OfThread {
    pub(super) thread: &'static str,
}

/// For a gauge that has no value where it cannot be had.
pub(super) type Alone = [(&'static str, &'static str); 0];

/// A kind of run.
pub(super) fn kind_of(origin: Origin) -> &'static str {
    if origin.is_subagent() {
        "subagent"
    } else {
        "foreground"
    }
}

/// How a run ended; none while it goes.
pub(crate) fn outcome_of_run(state: RunState) -> Option<&'static str> {
    (state != RunState::Running).then(|| state.into())
}

pub(crate) fn outcome_of_call(outcome: ToolOutcome) -> &'static str {
    outcome.into()
}

pub(crate) fn lane(priority: Priority) -> &'static str {
    priority.into()
}

/// Of what Navi does by itself, from 50 µs on.
pub(super) fn short() -> Histogram {
    Histogram::new([
        0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
        0.5, 1.0, 2.5, 10.0, 60.0,
    ])
}

/// Of what models and tools take, up to an hour.
pub(super) fn long() -> Histogram {
    Histogram::new([
        0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0,
        300.0, 900.0, 3600.0,
    ])
}

/// How a family makes the histogram of a label that is new.
pub(super) type Make = fn() -> Histogram;

/// A number of things that are there now.
pub(super) fn set(gauge: &Gauge, number: usize) {
    gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
}
