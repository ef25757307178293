//! How many trials show a difference of so many percent, and which difference so many trials can show.

use crate::Unit::{Count, Share};
use crate::{CalcError, Calculation, Result, amounts, within};
use linerate_stats::means::{Moments, POWER, least_for_ranks, smallest_difference, trials_needed};

/// The question about trials of two variants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Asked {
    /// How many of each variant show this difference, as a share of the rate?
    Difference(f64),
    /// Which difference do so many of each variant show?
    Trials(f64),
}

/// Trials of each of two variants, by Welch's test with a power of 80 %.
///
/// `deviation` is the standard deviation of a trial as a share of the rate, `confidence` that of the test.
///
/// # Errors
/// Impossible numbers; a difference so small that a billion trials do not show it.
pub fn trials(asked: Asked, deviation: f64, confidence: f64) -> Result {
    within("a standard deviation", deviation, 1e-9, 10.0, Share)?;
    within("a confidence", confidence, 0.5, 0.9999, Share)?;
    let alpha = 1.0 - confidence;
    let needed = |difference: f64| {
        trials_needed(difference, (deviation, deviation), alpha, POWER).map(f64::ceil)
    };
    let shown = |n: usize| {
        let set = Moments {
            n,
            mean: 1.0,
            stddev: Some(deviation),
        };
        smallest_difference(&set, &set, alpha, POWER)
    };
    let page = Calculation::new("Trials of two variants")
        .given("standard deviation of a trial", deviation, Share)
        .given("confidence", confidence, Share)
        .given("power", POWER, Share);
    let page = match asked {
        Asked::Difference(difference) => {
            within("a difference", difference, 1e-9, 10.0, Share)?;
            let many = || {
                CalcError::new(
                    "more than a billion trials would be needed: the difference is too small for this deviation",
                )
            };
            let n = needed(difference).ok_or_else(many)?;
            let (trials, least) = (Count.show(n), Share.show(difference));
            page.given("difference", difference, Share)
                .answer(format!(
                    "{trials} trials of each variant show a difference of {least} in 80 of 100 campaigns."
                ))
                .result("trials of each variant", n, Count)
        }
        Asked::Trials(n) => {
            let n = within("a number of trials", n, 2.0, 1e6, Count)?.floor();
            let none = || CalcError::new("no difference is shown by so few trials");
            let smallest = shown(n as usize).ok_or_else(none)?;
            let (trials, least) = (Count.show(n), Share.show(smallest));
            page.given("trials of each variant", n, Count)
                .answer(format!("{trials} trials of each variant show a difference from {least} on in 80 of 100 campaigns."))
                .result("smallest difference", smallest, Share)
        }
    };
    let least = least_for_ranks(alpha) as f64;
    let differences = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1]
        .into_iter()
        .filter_map(|difference| Some((difference, needed(difference)?)));
    let rows = differences.map(|(difference, n)| amounts(None, &[(difference, Share), (n, Count)]));
    Ok(page
        .result("least trials for tests by ranks", least, Count)
        .table(&["difference", "trials of each"], rows.collect())
        .formula(&["the least n at which Welch's t test of two sets of n has a power of 80 % (noncentral t distribution)"])
        .source("Welch 1947; Cohen, \"Statistical power analysis for the behavioral sciences\" (1988), section 2.4")
        .note("The deviation is that of trials in one campaign, which `linerate stat` prints. Trials one after the other drift: let them alternate (`linerate run`).")
        .note("The intervals of `linerate run` assume no distribution and may be looked at several times: they need somewhat more trials."))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R, help page of power.t.test: delta = 1, sd = 1 needs 17 values in each set at a power of 80 %; Cohen 1988, table 2.4.1: an
    /// effect of 0.5 needs 64.
    #[test]
    fn published_numbers_of_trials() {
        let n = |difference| {
            trials(Asked::Difference(difference), 0.01, 0.95)
                .unwrap()
                .number("trials of each variant")
        };
        assert_eq!((n(0.01), n(0.005)), (Some(17.0), Some(64.0)));
    }

    #[test]
    fn both_questions_are_each_others_reverse() {
        for n in [2.0, 5.0, 64.0, 1e4] {
            let smallest = trials(Asked::Trials(n), 0.004, 0.95)
                .unwrap()
                .number("smallest difference")
                .unwrap();
            let back = trials(Asked::Difference(smallest * 1.000_001), 0.004, 0.95).unwrap();
            assert_eq!(back.number("trials of each variant"), Some(n));
        }
        assert!(
            trials(Asked::Difference(1e-9), 10.0, 0.95)
                .unwrap_err()
                .to_string()
                .contains("billion")
        );
        for (asked, deviation) in [
            (Asked::Difference(0.0), 0.1),
            (Asked::Trials(1.0), 0.1),
            (Asked::Trials(f64::NAN), 0.1),
            (Asked::Trials(5.0), 0.0),
        ] {
            assert!(trials(asked, deviation, 0.95).is_err());
        }
    }
}
