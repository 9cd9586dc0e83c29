//! The figures, a file each.

mod capacity;
mod cold;
mod commit;
mod context;
mod doors;
mod first_token;
mod flat_out;
mod live;
mod memory;
mod model_server;
mod neighbour;
mod observed;
mod per_token;
mod processor;
mod programs;
mod search;
mod start;
mod tabs;
mod tool_iteration;
mod written;

use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::ground::{Ground, Side};
use crate::report::{Row, Samples};

/// Tokens a second of a stream that goes at its own pace, as a good server's does.
pub(crate) const PACE: u32 = 50;

/// How long one figure may take.
const LIMIT: Duration = Duration::from_secs(5 * 60);
/// The same of the long form, which waits until sessions are put away.
const LONG_LIMIT: Duration = Duration::from_secs(20 * 60);

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Figure {
    /// The model server alone: far faster than what it measures.
    ModelServer,
    /// Time added to the first token, warm.
    FirstToken,
    /// Time that a token is under way, one session at 50/s.
    PerToken,
    /// Processor time for a token, many sessions at 50/s.
    Processor,
    /// Tokens a second as fast as they go.
    FlatOut,
    /// Sessions at 50 tokens/s with a p99 under 50 ms.
    Capacity,
    /// One run to a hundred tabs, and to a thousand.
    Tabs,
    /// A tool's call and its result, between two model calls.
    ToolIteration,
    /// A turn on a long conversation.
    Context,
    /// A long session after a restart: opened, and its first answer.
    Cold,
    /// Search over a hundred thousand messages.
    Search,
    /// A request and a new tab, by a token and by a browser's login.
    Doors,
    /// The first token by each of the other ways in, beside the page's socket.
    Programs,
    /// A person's first token and page while another has 200 runs, uploads and commands.
    Neighbour,
    /// Memory: idle, with sessions, after many.
    Memory,
    /// Ten thousand sessions in memory, two thousand tabs.
    Live,
    /// From the start to the first answer.
    Start,
    /// Bytes written to the database for a byte of answer.
    Written,
    /// Processor time of a turn, with metrics and traces and without.
    Observed,
}

/// How thoroughly it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Few rounds of few figures, for a check on each change.
    Quick,
    Usual,
    /// With what takes minutes.
    Long,
}

/// What a figure is given.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) ground: Ground,
    pub(crate) form: Form,
    /// How many rounds each figure has; as many as it thinks right where none is given.
    pub(crate) rounds: Option<usize>,
}

impl Bench {
    fn rounds(&self, usual: usize) -> usize {
        let own = match self.form {
            Form::Quick => usual.div_ceil(2),
            Form::Usual | Form::Long => usual,
        };
        self.rounds.unwrap_or(own)
    }

    /// This in the quick form, that in the others.
    fn quick_or<T>(&self, quick: T, usual: T) -> T {
        match self.form {
            Form::Quick => quick,
            Form::Usual | Form::Long => usual,
        }
    }
}

impl Figure {
    /// All of them, in the order in which they are measured.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied()
    }

    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// What it measures, in a line.
    pub(crate) fn about(self) -> String {
        let value = self.to_possible_value();
        let help = value.as_ref().and_then(PossibleValue::get_help);
        help.map_or_else(String::new, ToString::to_string)
    }

    /// Whether the quick form has it.
    pub(crate) fn is_quick(self) -> bool {
        matches!(
            self,
            Self::FirstToken
                | Self::PerToken
                | Self::Processor
                | Self::FlatOut
                | Self::ToolIteration
        )
    }

    /// Measures it.
    ///
    /// # Errors
    /// A server fails, or it takes too long.
    pub(crate) async fn measure(self, bench: &Bench) -> Result<Vec<Row>> {
        let limit = match bench.form {
            Form::Quick | Form::Usual => LIMIT,
            Form::Long => LONG_LIMIT,
        };
        let measured = async {
            match self {
                Self::ModelServer => model_server::measure(bench).await,
                Self::FirstToken => first_token::measure(bench).await,
                Self::PerToken => per_token::measure(bench).await,
                Self::Processor => processor::measure(bench).await,
                Self::FlatOut => flat_out::measure(bench).await,
                Self::Capacity => capacity::measure(bench).await,
                Self::Tabs => tabs::measure(bench).await,
                Self::ToolIteration => tool_iteration::measure(bench).await,
                Self::Context => context::measure(bench).await,
                Self::Cold => cold::measure(bench).await,
                Self::Search => search::measure(bench).await,
                Self::Doors => doors::measure(bench).await,
                Self::Programs => programs::measure(bench).await,
                Self::Neighbour => neighbour::measure(bench).await,
                Self::Memory => memory::measure(bench).await,
                Self::Live => live::measure(bench).await,
                Self::Start => start::measure(bench).await,
                Self::Written => written::measure(bench).await,
                Self::Observed => observed::measure(bench).await,
            }
        };
        tokio::time::timeout(limit, measured)
            .await
            .with_context(|| format!("it took over {limit:?}"))?
    }
}

impl Samples {
    fn add(&mut self, side: Side<'_>, value: f64) {
        match side {
            Side::Limit(_) => self.limit.push(value),
            Side::Navi(_) => self.navi.push(value),
        }
    }

    /// Of what has nothing to be compared with.
    fn of_navi(navi: Vec<f64>) -> Self {
        Self {
            limit: Vec::new(),
            navi,
        }
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
