//! The price table as its file has it now. It is looked at whenever a cost is asked for, which is
//! rare, so that nothing has to watch it.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::domain::prices::PriceTable;

/// Larger than any sensible table; keeps a wrong file from being read into memory.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// See the module.
#[derive(Debug)]
pub struct Prices {
    /// It need not exist.
    path: PathBuf,
    last: Mutex<Last>,
}

/// What was read last.
#[derive(Debug)]
struct Last {
    /// The file's text, or why it cannot be read.
    found: Result<String, String>,
    /// The last table that was well formed.
    table: Arc<PriceTable>,
}

impl Prices {
    /// Prices of this file, which is looked at now: what is wrong with it is told at the start.
    /// Blocks.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        let prices = Self {
            path,
            last: Mutex::new(Last {
                found: Ok(String::new()),
                table: Arc::default(),
            }),
        };
        prices.now();
        prices
    }

    /// The table as it is now; where it is wrong, as it was last, and the log says why. Blocks.
    pub fn now(&self) -> Arc<PriceTable> {
        let found = read(&self.path);
        let mut last = self.last.lock();
        if found != last.found {
            match found.clone().and_then(|text| parse(&text)) {
                Ok(table) => last.table = Arc::new(table),
                Err(problem) => tracing::warn!(
                    "price table {}: {problem}; what was read from it before stays in force",
                    self.path.display()
                ),
            }
            last.found = found;
        }
        Arc::clone(&last.table)
    }
}

/// No file, or an empty one, is no prices.
fn parse(text: &str) -> Result<PriceTable, String> {
    if text.trim().is_empty() {
        return Ok(PriceTable::default());
    }
    PriceTable::parse(text)
}

fn read(path: &Path) -> Result<String, String> {
    let metadata = match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
        found => found.map_err(|error| error.to_string())?,
    };
    // Opening a pipe would wait for a writer.
    if !metadata.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("the file is larger than {MAX_FILE_BYTES} bytes"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::domain::prices::Used;

    fn table(prompt: &str) -> String {
        format!("currency = \"EUR\"\n[[price]]\nmodel = \"m\"\nprompt = {prompt}\ncompletion = 0\n")
    }

    fn price(prices: &Prices) -> Option<f64> {
        let used = Used {
            backend: "openai".to_owned(),
            model: "m".to_owned(),
            prompt_tokens: 1_000_000,
            completion_tokens: 0,
            cached_tokens: 0,
        };
        prices.now().cost(&[used]).map(|cost| cost.amount)
    }

    #[test]
    fn the_file_may_come_change_be_wrong_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("prices.toml");
        let prices = Prices::new(path.clone());
        assert_eq!(price(&prices), None);
        fs::write(&path, table("2")).unwrap();
        assert_eq!(price(&prices), Some(2.0));
        fs::write(&path, table("2 and a half")).unwrap();
        assert_eq!(price(&prices), Some(2.0), "the last good one stays");
        fs::write(&path, table("2.5")).unwrap();
        assert_eq!(price(&prices), Some(2.5));
        fs::remove_file(&path).unwrap();
        assert_eq!(price(&prices), None);
        fs::create_dir(&path).unwrap();
        assert_eq!(price(&prices), None);
    }
}
