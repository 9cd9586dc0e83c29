//! Lines for the person at the terminal.

use std::io::{self, Write as _};

use navi_actors::domain::redact::redacted;
use parking_lot::Mutex;

/// Why a line could not be written, the first time.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// A line on standard output. A reader that went away is no fault.
pub fn say(line: &str) {
    if let Err(error) = writeln!(io::stdout(), "{line}")
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.lock().get_or_insert(error);
    }
}

/// Why something that was to be said was not. Told once.
pub(crate) fn lost() -> Option<io::Error> {
    LOST.lock().take()
}

/// A line on standard error, without the secrets of addresses.
pub fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{}", redacted(line));
}

/// A table with aligned columns; the last one is left as it is.
pub fn table<const N: usize>(rows: &[[String; N]]) {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in rows {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
            let padding = if index + 1 == N {
                0
            } else {
                width + 2 - cell.chars().count()
            };
            line.push_str(cell);
            line.push_str(&" ".repeat(padding));
        }
        say(line.trim_end());
    }
}
