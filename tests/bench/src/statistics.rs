//! Medians, percentiles and ratios.

/// The value below which this share of the values lies, between two of them where it falls there.
/// Not a number where there are no values.
pub(crate) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    let part = place - below as f64;
    sorted[below] + (sorted[above] - sorted[below]) * part
}

/// The value in the middle; not a number where there are no values.
pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// The lowest and the highest value.
pub(crate) fn spread(values: &[f64]) -> (f64, f64) {
    (percentile(values, 0.0), percentile(values, 1.0))
}

/// The median of what each round's numerator is of its denominator: what a noisy machine does to
/// both of a round does little to it. None where a round lacks one of them.
pub(crate) fn median_ratio(numerators: &[f64], denominators: &[f64]) -> Option<f64> {
    if numerators.is_empty() || numerators.len() != denominators.len() {
        return None;
    }
    let rounds = numerators.iter().zip(denominators);
    let ratios: Vec<f64> = rounds.map(|(over, under)| over / under).collect();
    Some(median(&ratios)).filter(|ratio| ratio.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    #[test]
    fn the_median_is_in_the_middle_of_an_odd_and_an_even_number() {
        same(median(&[3.0, 1.0, 2.0]), 2.0);
        same(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        same(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn percentiles_lie_between_values() {
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        same(percentile(&values, 0.99), 99.0);
        same(percentile(&[0.0, 10.0], 0.25), 2.5);
        assert_eq!(spread(&[2.0, 9.0, 5.0]), (2.0, 9.0));
    }

    #[test]
    fn a_ratio_is_that_of_rounds_and_not_of_medians() {
        // The machine was ten times slower in the second round.
        let ratio = median_ratio(&[2.0, 20.0, 2.2], &[1.0, 10.0, 1.1]);
        same(ratio.unwrap_or_default(), 2.0);
        assert_eq!(median_ratio(&[1.0], &[]), None);
        assert_eq!(median_ratio(&[], &[]), None);
        assert_eq!(median_ratio(&[1.0], &[0.0]), None);
    }
}
