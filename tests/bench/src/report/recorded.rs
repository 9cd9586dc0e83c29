//! Ratios that were recorded before: a run is compared with them, and with nothing absolute.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::Row;

/// How many times its recorded ratio a measured one may be.
const ALLOWED: f64 = 2.0;

/// Ratios to the pass-through by the rows' keys.
type Ratios = BTreeMap<String, f64>;

/// Writes the ratios of these rows; those that have none, or none of use elsewhere, are left out.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn record(file: &Path, rows: &[Row]) -> Result<()> {
    let rounded = |ratio: f64| (ratio * 100.0).round() / 100.0;
    let ratios = rows
        .iter()
        .filter(|row| row.is_recorded)
        .filter_map(|row| Some((row.key.clone(), rounded(row.ratio()?))));
    let text = serde_json::to_string_pretty(&ratios.collect::<Ratios>())?;
    fs::write(file, text + "\n").with_context(|| format!("{} cannot be written", file.display()))
}

/// What got far worse than it was recorded, a line each.
///
/// # Errors
/// The file is not there, or holds no ratio of what was measured.
pub(crate) fn check(file: &Path, rows: &[Row]) -> Result<Vec<String>> {
    let named = || file.display().to_string();
    let text = fs::read_to_string(file).with_context(named)?;
    let recorded: Ratios = serde_json::from_str(&text).with_context(named)?;
    if !rows.iter().any(|row| recorded.contains_key(&row.key)) {
        bail!(
            "{} has nothing of what was measured; write it with --record",
            named()
        );
    }
    Ok(worse(&recorded, rows))
}

fn worse(recorded: &Ratios, rows: &[Row]) -> Vec<String> {
    let compared = rows.iter().filter_map(|row| {
        let (measured, recorded) = (row.ratio()?, *recorded.get(&row.key)?);
        (measured > ALLOWED * recorded).then(|| {
            format!(
                "{}: {measured:.1} times the pass-through, {recorded:.1} are recorded",
                row.key
            )
        })
    });
    compared.collect()
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
        let recorded = names.map(|name| (name.to_owned(), 10.0)).into();
        let worse = worse(&recorded, &rows);
        assert_eq!(worse.len(), 2, "{worse:?}");
        assert!(worse[0].starts_with("slow: 25.0 times"), "{worse:?}");
        assert!(worse[1].starts_with("few: 25.0 times"), "{worse:?}");
    }

    #[test]
    fn what_is_recorded_is_read_again() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("recorded.json");
        let rows = [Row::lower("a", "", "ms", samples(1.0, 3.0))];
        record(&file, &rows)?;
        assert_eq!(check(&file, &rows)?, Vec::<String>::new());
        let slower = [Row::lower("a", "", "ms", samples(1.0, 7.0))];
        assert_eq!(check(&file, &slower)?.len(), 1);
        assert!(check(&dir.path().join("none"), &rows).is_err());
        let other = [Row::lower("b", "", "ms", samples(1.0, 1.0))];
        assert!(check(&file, &other).is_err());
        Ok(())
    }
}
