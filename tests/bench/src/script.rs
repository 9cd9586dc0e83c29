//! What the model server is to answer, as a line of the user's message:
//! `bench: id=7 tokens=50 rate=50 calls=0 tool=todo;`

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memchr::{memchr, memmem};

const BEGIN: &[u8] = b"bench: ";
const END: u8 = b';';

/// How fast tokens come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    /// So many a second, each written alone.
    PerSecond(u32),
    /// As fast as they are taken, many in a write.
    Joined,
    /// As fast as they are taken, each written alone.
    Single,
}

/// What a reply before the last calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// It reads, costs next to nothing, and asks nobody.
    Todo,
    /// A command that takes all of a processor that it gets, for half a minute.
    Terminal,
}

/// One answer: perhaps some calls of a tool, each in a reply of its own, then tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// Of this answer alone, by which the ledger has its calls.
    pub(crate) id: u64,
    pub(crate) tokens: u32,
    pub(crate) rate: Rate,
    /// How many replies before the last call a tool.
    pub(crate) calls: u32,
    pub(crate) tool: Tool,
}

impl Script {
    pub(crate) fn new(tokens: u32, rate: Rate) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            tokens,
            rate,
            calls: 0,
            tool: Tool::Todo,
        }
    }

    /// The same, with so many calls of a tool first.
    pub(crate) fn after_calls(self, calls: u32) -> Self {
        Self { calls, ..self }
    }

    /// The same, with a command first.
    pub(crate) fn after_command(self) -> Self {
        Self {
            calls: 1,
            tool: Tool::Terminal,
            ..self
        }
    }

    /// How long its answer takes at its own pace.
    pub(crate) fn duration(&self) -> Duration {
        match self.rate {
            Rate::PerSecond(rate) => {
                Duration::from_secs_f64(f64::from(self.tokens) / f64::from(rate))
            }
            Rate::Joined | Rate::Single => Duration::ZERO,
        }
    }

    /// The last script of a request, and where it stands. Notes of a run may follow it, and
    /// what was asked before stands above it.
    pub(crate) fn find(body: &[u8]) -> Option<(Self, Range<usize>)> {
        let begin = memmem::rfind(body, BEGIN)?;
        let length = memchr(END, &body[begin..])?;
        let place = begin..begin + length + 1;
        let line = std::str::from_utf8(&body[begin + BEGIN.len()..begin + length]).ok()?;
        Some((Self::read(line)?, place))
    }

    fn read(line: &str) -> Option<Self> {
        let mut script = Self {
            id: 0,
            tokens: 1,
            rate: Rate::Joined,
            calls: 0,
            tool: Tool::Todo,
        };
        for field in line.split(' ') {
            let (name, value) = field.split_once('=')?;
            match name {
                "id" => script.id = value.parse().ok()?,
                "tokens" => script.tokens = value.parse().ok()?,
                "calls" => script.calls = value.parse().ok()?,
                "tool" => script.tool = Tool::read(value)?,
                "rate" => script.rate = Rate::read(value)?,
                _ => return None,
            }
        }
        Some(script)
    }
}

impl Tool {
    fn read(text: &str) -> Option<Self> {
        [Self::Todo, Self::Terminal]
            .into_iter()
            .find(|tool| tool.name() == text)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Todo => "todo",
            Self::Terminal => "terminal",
        }
    }
}

impl Rate {
    fn read(text: &str) -> Option<Self> {
        match text {
            "joined" => Some(Self::Joined),
            "single" => Some(Self::Single),
            number => match number.parse().ok()? {
                0 => None,
                rate => Some(Self::PerSecond(rate)),
            },
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerSecond(rate) => write!(f, "{rate}"),
            Self::Joined => f.write_str("joined"),
            Self::Single => f.write_str("single"),
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            id,
            tokens,
            rate,
            calls,
            tool,
        } = self;
        let tool = tool.name();
        write!(
            f,
            "bench: id={id} tokens={tokens} rate={rate} calls={calls} tool={tool};"
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn the_last_line_of_a_request_counts_and_its_place_is_known() {
        let scripts = [
            Script::new(5, Rate::Joined),
            Script::new(50, Rate::PerSecond(20)).after_command(),
        ];
        let [first, last] = scripts;
        let body = format!("[\"{first}\",\"{last}\\n\\n[navi-note-x] 49 left\"]");
        let (found, place) = Script::find(body.as_bytes()).unwrap();
        assert_eq!(found, last);
        assert_eq!(body[place], last.to_string());
    }

    #[test]
    fn what_is_no_script_is_none() {
        for body in [
            "hello",
            "bench: tokens=5",
            "bench: tokens=x;",
            "bench: rate=0;",
            "bench: colour=red;",
        ] {
            assert_eq!(Script::find(body.as_bytes()), None, "{body}");
        }
    }
}
