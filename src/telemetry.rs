//! Logs: readable lines on standard error, which leaves standard output to answers.

use std::io::{self, IsTerminal as _, Write};

use navi_actors::domain::redact::redacted;
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Libraries that say much of little use; they stay at warnings unless all is traced.
const NOISY: [&str; 8] = [
    "actix_server",
    "actix_http",
    "h2",
    "hyper",
    "hyper_util",
    "reqwest",
    "sqlx",
    "sea_orm_migration",
];

/// Starts logging. A second call changes nothing.
pub(crate) fn start(level: Level) {
    let mut filter = Targets::new().with_default(LevelFilter::from_level(level));
    if level < Level::TRACE {
        for library in NOISY {
            filter = filter.with_target(library, level.min(Level::WARN));
        }
        // It logs addresses whole, and a query may be a key. What fails we log ourselves.
        filter = filter.with_target("rmcp", LevelFilter::OFF);
    }
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| Redacting(io::stderr()))
        .with_ansi(io::stderr().is_terminal());
    let _ = tracing_subscriber::registry()
        .with(lines)
        .with(filter)
        .try_init();
}

/// Takes the secrets out of addresses, whoever logs them: a library knows nothing of ours. It is
/// given a whole line at a time.
struct Redacting<W>(W);

impl<W: Write> Write for Redacting<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let shown = String::from_utf8_lossy(line);
        self.0.write_all(redacted(&shown).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
