//! The table on the terminal.

use super::{Goal, Row, Samples};
use crate::statistics::{median, spread};

const HEADS: [&str; 8] = [
    "figure",
    "unit",
    "pass-through",
    "navi",
    "lowest to highest",
    "times the limit",
    "goal",
    "met",
];

/// The rows as lines, with a line of heads.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut lines = vec![HEADS.map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let line = |cells: &[String; 8]| {
        let padded = cells.iter().zip(&widths).enumerate();
        let padded = padded.map(|(column, (cell, width))| match column {
            0 | 1 | 6 | 7 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn cells(row: &Row) -> [String; 8] {
    let Samples { limit, navi } = &row.samples;
    let (lowest, highest) = spread(navi);
    let between = if navi.is_empty() {
        String::new()
    } else {
        format!("{} to {}", number(lowest), number(highest))
    };
    [
        row.what.clone(),
        row.unit.to_owned(),
        middle(limit),
        middle(navi),
        between,
        row.ratio().map_or_else(String::new, number),
        row.goal.map_or_else(String::new, wanted),
        row.meets_goal().map_or("", yes_or_no).to_owned(),
    ]
}

fn wanted(goal: Goal) -> String {
    match goal {
        Goal::Value(value) => number(value),
        Goal::TimesLimit(times) => format!("{} times the limit", number(times)),
    }
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn middle(values: &[f64]) -> String {
    if values.is_empty() {
        "–".to_owned()
    } else {
        number(median(values))
    }
}

/// Three digits that count, thousands with a comma.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let plain = format!("{value:.decimals$}");
    if decimals > 0 || !value.is_finite() {
        return plain;
    }
    let first = plain.len() % 3;
    let mut grouped = String::new();
    for (place, digit) in plain.chars().enumerate() {
        if place > 0 && place % 3 == first && digit.is_ascii_digit() && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count() {
        for (value, text) in [
            (0.0612, "0.061"),
            (1.849, "1.85"),
            (58.24, "58.2"),
            (300.4, "300"),
            (76_000.0, "76,000"),
            (4_200_000.0, "4,200,000"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn columns_stand_below_each_other() {
        let samples = Samples {
            limit: vec![2.0, 1.0],
            navi: vec![10.0, 30.0],
        };
        let rows = [Row::lower("a", "something", "ms", samples).with_goal(Goal::Value(3.0))];
        let text = table(&rows);
        let [heads, row] = text.lines().collect::<Vec<_>>()[..] else {
            unreachable!("{text}");
        };
        let end = |line: &str, word: &str| line.find(word).map(|at| at + word.len());
        assert_eq!(end(heads, "navi"), end(row, "20.0"));
        assert!(row.contains("10.0 to 30.0"), "{row}");
        assert!(row.ends_with("3.00  no"), "{row}");
    }
}
