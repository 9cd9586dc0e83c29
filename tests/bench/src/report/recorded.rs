//! Ratios that were recorded before: a run is compared with them, and with nothing absolute.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::Row;

/// How many times its recorded ratio a measured one may be on a machine that does nothing else.
const ALLOWED: f64 = 2.0;

/// How this program was built, and so what it measures: nothing optimises a debug build, which
/// changes both sides, but not by the same factor.
const BUILD: &str = if cfg!(debug_assertions) {
    "debug"
} else {
    "release"
};

/// Ratios to the pass-through by the rows' keys.
type Ratios = BTreeMap<String, f64>;

/// The ratios that a file has of this kind of build.
#[derive(Clone, Debug)]
pub(crate) struct Recorded(Ratios);

/// A row that is far worse than it was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Worse {
    pub(crate) key: String,
    measured: f64,
    recorded: f64,
}

impl fmt::Display for Worse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            measured,
            recorded,
        } = self;
        write!(
            f,
            "{key} is {measured:.1} times the pass-through, {recorded:.1} are recorded"
        )
    }
}

impl Recorded {
    /// What the file has.
    ///
    /// # Errors
    /// It is not there, or is no record.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        Ok(Self(all(file)?.remove(BUILD).unwrap_or_default()))
    }

    /// Writes the ratios of these rows into the file, beside what else it has. Those that have
    /// none, or none of use elsewhere, are left out.
    ///
    /// # Errors
    /// The file is no record, or cannot be written.
    pub(crate) fn record(file: &Path, rows: &[Row]) -> Result<()> {
        let mut all = all(file)?;
        let rounded = |ratio: f64| (ratio * 100.0).round() / 100.0;
        let ratios = rows
            .iter()
            .filter(|row| row.is_recorded)
            .filter_map(|row| Some((row.key.clone(), rounded(row.ratio()?))));
        all.entry(BUILD.to_owned()).or_default().extend(ratios);
        let text = serde_json::to_string_pretty(&all)?;
        fs::write(file, text + "\n")
            .with_context(|| format!("{} cannot be written", file.display()))
    }

    /// Whether any of these is recorded.
    pub(crate) fn knows(&self, rows: &[Row]) -> bool {
        rows.iter().any(|row| self.0.contains_key(&row.key))
    }

    /// What got far worse. Where the machine had a computation take `stretch` times its time, as
    /// much more is allowed.
    pub(crate) fn worse(&self, rows: &[Row], stretch: f64) -> Vec<Worse> {
        let compared = rows.iter().filter_map(|row| {
            let (measured, recorded) = (row.ratio()?, *self.0.get(&row.key)?);
            let key = row.key.clone();
            (measured > ALLOWED * stretch * recorded).then_some(Worse {
                key,
                measured,
                recorded,
            })
        });
        compared.collect()
    }
}

/// The ratios of a file by the kind of build.
fn all(file: &Path) -> Result<BTreeMap<String, Ratios>> {
    let named = || file.display().to_string();
    let text = fs::read_to_string(file).with_context(named)?;
    serde_json::from_str(&text).with_context(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Samples;

    fn samples(limit: f64, navi: f64) -> Samples {
        Samples {
            limit: vec![limit],
            navi: vec![navi],
        }
    }

    #[test]
    fn only_what_is_over_twice_its_recorded_ratio_is_worse() {
        let rows = [
            Row::lower("slow", "", "ms", samples(1.0, 25.0)),
            Row::lower("well", "", "ms", samples(1.0, 19.0)),
            Row::higher("few", "", "tokens/s", samples(100.0, 4.0)),
            Row::higher("many", "", "tokens/s", samples(100.0, 6.0)),
            Row::lower("new", "", "ms", samples(1.0, 99.0)),
            Row::lower("alone", "", "ms", Samples::default()),
        ];
        let names = ["slow", "well", "few", "many", "alone", "gone"];
        let recorded = Recorded(names.map(|name| (name.to_owned(), 10.0)).into());
        let worse = |stretch| -> Vec<String> {
            let worse = recorded.worse(&rows, stretch);
            worse.iter().map(Worse::to_string).collect()
        };
        let text = "is 25.0 times the pass-through, 10.0 are recorded";
        assert_eq!(worse(1.0), [format!("slow {text}"), format!("few {text}")]);
        assert!(worse(1.5).is_empty());
    }

    #[test]
    fn what_is_recorded_is_read_again_and_the_rest_stays() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("recorded.json");
        assert!(Recorded::record(&file, &[]).is_err());
        fs::write(&file, r#"{"other": {"a": 1.0}}"#)?;
        let rows = [Row::lower("a", "", "ms", samples(1.0, 3.0))];
        Recorded::record(&file, &rows)?;
        let more = [Row::lower("b", "", "ms", samples(1.0, 2.0))];
        Recorded::record(&file, &more)?;
        let recorded = Recorded::read(&file)?;
        assert!(recorded.worse(&rows, 1.0).is_empty());
        let slower = [Row::lower("a", "", "ms", samples(1.0, 7.0))];
        assert_eq!(recorded.worse(&slower, 1.0).len(), 1);
        assert!(recorded.knows(&more));
        let new = [Row::lower("c", "", "ms", samples(1.0, 1.0))];
        assert!(!recorded.knows(&new));
        assert!(fs::read_to_string(&file)?.contains("other"));
        Ok(())
    }
}
