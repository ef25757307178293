//! A comparison in a sentence, and the numbers in it.

use super::{Comparison, Pair, Settings};
use crate::Estimate;
use crate::effect::Magnitude;

impl Pair<'_> {
    /// The sentence of a comparison.
    pub(super) fn verdict(&self, c: &Comparison) -> String {
        let (reference, other, settings) = (&c.reference, &c.other, self.settings);
        let Some(test) = c.mann_whitney else {
            return format!("{other} cannot be compared with {reference}: a set is empty.");
        };
        let (n, m) = self.counts();
        let counted = format!("{n} and {m} {}", settings.words.many);
        let p = format!("p {}", p_value(c.p_holm.unwrap_or(test.p)));
        if c.shown {
            let (claim, interval) = claim(c, settings);
            let negligible = c
                .cliffs_delta
                .is_some_and(|d| d.magnitude == Magnitude::Negligible);
            let negligible = if negligible {
                "; the sets overlap so much that it is negligible"
            } else {
                ""
            };
            return format!(
                "{other} is {claim} {reference}{interval}, {counted}, {p}{negligible}."
            );
        }
        if test.smallest_p > self.level() {
            return too_few(c, &counted, settings);
        }
        let interval = relative(c).and_then(|r| r.signed_interval(settings));
        let interval = interval.map_or(String::new(), |i| format!("{i}, "));
        let reach = c.reach_of_ranks.as_ref().map_or(String::new(), |r| {
            let percent = r.smallest_percent.map(|p| format!("{} %", figure(p, 2)));
            let size = percent.unwrap_or_else(|| figure(r.smallest_difference, 2));
            format!(
                "; one of {size} would have shown with {:.0} % probability",
                100.0 * r.power
            )
        });
        format!(
            "No difference shown between {reference} and {other} ({interval}{counted}, {p}){reach}."
        )
    }
}

/// The verdict if no outcome of the test could have shown a difference: the observed difference, which may still be plain to see.
fn too_few(c: &Comparison, counted: &str, settings: &Settings) -> String {
    let (reference, other) = (&c.reference, &c.other);
    let welch = c
        .welch
        .filter(|w| w.p <= settings.alpha())
        .map_or(String::new(), |w| {
            format!(
                " (p {} by Welch's t test, which takes the values for normal)",
                p_value(w.p)
            )
        });
    let so_far = match relative(c) {
        Some(told) if told.difference.median != 0.0 => {
            format!(
                "; so far {other} is {} {reference}{welch}",
                told_claim(&told, settings).0
            )
        }
        _ => String::new(),
    };
    format!("{counted} are too few to show a difference between {reference} and {other}{so_far}.")
}

/// A difference in its clearest form: of a ratio or of medians in percent, or else in units.
struct Told {
    /// In percent or units, 0 for no difference.
    difference: Estimate,
    /// ` %`, or nothing.
    unit: &'static str,
    /// Ratio of the other to the reference.
    ratio: Option<Estimate>,
}

fn relative(c: &Comparison) -> Option<Told> {
    let told = |unit| {
        move |difference| Told {
            difference,
            unit,
            ratio: None,
        }
    };
    c.ratio
        .map(Told::of_ratio)
        .or(c.shift_percent.map(told(" %")))
        .or(c.shift.map(told("")))
}

impl Told {
    fn of_ratio(ratio: Estimate) -> Told {
        Told {
            difference: ratio.map(|v| 100.0 * (v - 1.0)),
            unit: " %",
            ratio: Some(ratio),
        }
    }

    fn signed_interval(&self, settings: &Settings) -> Option<String> {
        let Told {
            difference: d,
            unit,
            ..
        } = self;
        let (low, high) = (d.low?, d.high?);
        let digits = places(low, high);
        Some(format!(
            "{} interval {low:+.digits$}..{high:+.digits$}{unit}",
            confidence(settings)
        ))
    }
}

/// The difference as a ratio: `31 % lower than` and `, 95 % interval 28..34 %`.
pub fn ratio_claim(ratio: Estimate, settings: &Settings) -> (String, String) {
    told_claim(&Told::of_ratio(ratio), settings)
}

/// The interval of a ratio as a signed one of its difference from 1: `95 % interval -1.2..+0.8 %`.
pub fn ratio_interval(ratio: Estimate, settings: &Settings) -> Option<String> {
    Told::of_ratio(ratio).signed_interval(settings)
}

fn claim(c: &Comparison, settings: &Settings) -> (String, String) {
    match relative(c) {
        Some(told) => told_claim(&told, settings),
        None => {
            let more = c.cliffs_delta.is_some_and(|d| d.delta > 0.0);
            let words = settings.words;
            (
                format!("{} than", if more { words.more } else { words.less }),
                String::new(),
            )
        }
    }
}

fn told_claim(told: &Told, settings: &Settings) -> (String, String) {
    let words = settings.words;
    if let Some(r) = told.ratio.filter(|r| r.median >= 2.0) {
        let interval = r.low.zip(r.high).map_or(String::new(), |(low, high)| {
            // A multiple that is not 1 does not read as 1.
            let digits = (3..12)
                .find(|digits| low == 1.0 || figure(low, *digits) != "1")
                .unwrap_or(12);
            format!(
                ", {} interval {}..{} times",
                confidence(settings),
                figure(low, digits),
                figure(high, 3)
            )
        });
        return (
            format!("{} times as {} as", figure(r.median, 3), words.as_much),
            interval,
        );
    }
    let Told {
        difference: d,
        unit,
        ..
    } = *told;
    let (d, word) = if d.median < 0.0 {
        (turned(d), words.less)
    } else {
        (d, words.more)
    };
    let Some((low, high)) = d.low.zip(d.high) else {
        return (
            format!("{}{unit} {word} than", figure(d.median, 2)),
            String::new(),
        );
    };
    let digits = places(low, high);
    let interval = format!(
        ", {} interval {low:.digits$}..{high:.digits$}{unit}",
        confidence(settings)
    );
    (format!("{:.digits$}{unit} {word} than", d.median), interval)
}

fn turned(d: Estimate) -> Estimate {
    Estimate {
        median: -d.median,
        low: d.high.map(|v| -v),
        high: d.low.map(|v| -v),
        ..d
    }
}

/// Decimals that an interval around 0 deserves: by its width, and enough that an interval that excludes 0 does not appear to
/// include it.
pub fn places(low: f64, high: f64) -> usize {
    let by_width = match high - low {
        w if w >= 10.0 || w <= 0.0 || !w.is_finite() => 0,
        w => (1.0 - (2.0 * w).log10().floor()).clamp(1.0, 9.0) as usize,
    };
    let (excludes_0, nearest) = (low > 0.0 || high < 0.0, low.abs().min(high.abs()));
    let reads_as_0 = |places: usize| nearest < 0.5 * 0.1f64.powi(places as i32);
    (by_width..9)
        .find(|places| !(excludes_0 && reads_as_0(*places)))
        .unwrap_or(9)
}

/// `95 %`, `99.5 %`.
pub fn confidence(settings: &Settings) -> String {
    format!("{} %", figure(100.0 * settings.confidence, 4))
}

/// A p value: two digits, never 0.
pub fn p_value(p: f64) -> String {
    match p {
        p if p < 1e-15 => "< 1e-15".into(),
        p if p < 0.001 => format!("{p:.0e}"),
        p => figure(p, 2),
    }
}

/// A number with this number of significant digits, trailing zeros of the fraction left out.
pub fn figure(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let scientific = format!("{:.*e}", digits.saturating_sub(1), value);
    let exponent: i32 = scientific
        .split_once('e')
        .and_then(|(_, e)| e.parse().ok())
        .unwrap_or(0);
    if !(-5..15).contains(&exponent) {
        return scientific;
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_digits_as_mean_something() {
        let figures = [0.0, 1.25, 99.96, 1234.5, 0.00123, 1e-9, 1e308, -7.0].map(|v| figure(v, 3));
        assert_eq!(
            figures,
            [
                "0", "1.25", "100", "1234", "0.00123", "1.00e-9", "1.00e308", "-7"
            ]
        );
        let p = [0.0, 1e-9, 0.00049, 0.0494, 0.05, 1.0].map(p_value);
        assert_eq!(p, ["< 1e-15", "1e-9", "5e-4", "0.049", "0.05", "1"]);
    }
}
