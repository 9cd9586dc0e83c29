//! What a benchmark tells.

mod recorded;
mod table;

use serde::Serialize;

use crate::statistics::{median, median_ratio, spread};

pub(crate) use self::recorded::{Recorded, Worse};
pub(crate) use self::table::table;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Better {
    Lower,
    Higher,
}

/// The samples of a comparison, a round each.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Samples {
    /// Of the pass-through; empty where there is nothing of its kind.
    pub(crate) limit: Vec<f64>,
    pub(crate) navi: Vec<f64>,
}

/// What the project wants of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    /// In the row's unit.
    Value(f64),
    /// As many times the pass-through's.
    TimesLimit(f64),
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row {
    /// Its name in files, which stays.
    pub(crate) key: String,
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    #[serde(flatten)]
    pub(crate) samples: Samples,
    pub(crate) goal: Option<Goal>,
    /// Whether its ratio is nearly the same on each machine, and so is recorded and checked.
    #[serde(skip)]
    is_recorded: bool,
}

impl Row {
    /// Of a figure where less is better.
    pub(crate) fn lower(key: &str, what: &str, unit: &'static str, samples: Samples) -> Self {
        Self {
            key: key.to_owned(),
            what: what.to_owned(),
            unit,
            better: Better::Lower,
            samples,
            goal: None,
            is_recorded: true,
        }
    }

    /// Of a figure where more is better.
    pub(crate) fn higher(key: &str, what: &str, unit: &'static str, samples: Samples) -> Self {
        Self {
            better: Better::Higher,
            ..Self::lower(key, what, unit, samples)
        }
    }

    pub(crate) fn with_goal(self, goal: Goal) -> Self {
        let goal = Some(goal);
        Self { goal, ..self }
    }

    pub(crate) fn unrecorded(self) -> Self {
        Self {
            is_recorded: false,
            ..self
        }
    }

    /// How many times worse than the pass-through Navi is; none where there is none.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let Samples { limit, navi } = &self.samples;
        match self.better {
            Better::Lower => median_ratio(navi, limit),
            Better::Higher => median_ratio(limit, navi),
        }
    }

    /// Whether it is where it should be; none where nothing is wanted of it.
    pub(crate) fn meets_goal(&self) -> Option<bool> {
        match (self.goal?, self.better) {
            (Goal::TimesLimit(most), _) => Some(self.ratio()? <= most),
            (Goal::Value(most), Better::Lower) => Some(median(&self.samples.navi) <= most),
            (Goal::Value(least), Better::Higher) => Some(median(&self.samples.navi) >= least),
        }
    }
}

/// A row as it stands in a file, with what it comes to.
#[derive(Debug, Serialize)]
pub(crate) struct Told<'a> {
    #[serde(flatten)]
    row: &'a Row,
    limit_median: Option<f64>,
    navi_median: Option<f64>,
    navi_spread: Option<(f64, f64)>,
    ratio: Option<f64>,
    is_at_goal: Option<bool>,
}

impl<'a> From<&'a Row> for Told<'a> {
    fn from(row: &'a Row) -> Self {
        let Samples { limit, navi } = &row.samples;
        let some = |values: &[f64]| (!values.is_empty()).then(|| median(values));
        Self {
            row,
            limit_median: some(limit),
            navi_median: some(navi),
            navi_spread: (!navi.is_empty()).then(|| spread(navi)),
            ratio: row.ratio(),
            is_at_goal: row.meets_goal(),
        }
    }
}
