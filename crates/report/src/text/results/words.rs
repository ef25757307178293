//! Ratios as changes in percent, with as many digits as their intervals deserve.

use super::super::numbers::significant;
use linerate_core::stats::Estimate;

/// A rate is told as so many times another from this ratio on.
const MANY_TIMES: f64 = 2.0;

/// Decimals of a change in percent: by the width of its interval, and so many that what excludes 0 does not read as if it did not.
fn places(ratio: &Estimate) -> usize {
    let Some((low, high)) = ratio.low.zip(ratio.high) else { return 1 };
    let by_width = match 100.0 * (high - low) {
        w if w >= 10.0 => 0,
        w if w >= 0.5 => 1,
        w if w >= 0.05 => 2,
        _ => 3,
    };
    let nearest = percents(low).abs().min(percents(high).abs());
    let reads_as_0 = |places: usize| nearest < 0.5 * 0.1f64.powi(places as i32);
    let proven = low > 1.0 || high < 1.0;
    (by_width..6).find(|places| !(proven && reads_as_0(*places))).unwrap_or(6)
}

fn percents(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}

/// `-23.1`.
pub fn change(ratio: &Estimate) -> String {
    format!("{:+.*}", places(ratio), percents(ratio.median))
}

/// `-23.8..-22.5`; `None` without an interval.
pub fn change_interval(ratio: &Estimate) -> Option<String> {
    let places = places(ratio);
    let (low, high) = (percents(ratio.low?), percents(ratio.high?));
    Some(format!("{low:+.places$}..{high:+.places$}"))
}

/// `-23.1 % [-23.8, -22.5]`.
pub fn change_with_interval(ratio: &Estimate) -> String {
    let places = places(ratio);
    let interval = match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => {
            format!("[{:+.places$}, {:+.places$}]", percents(low), percents(high))
        }
        _ => format!("(no interval, {})", blocks(ratio.n)),
    };
    format!("{} % {interval}", change(ratio))
}

/// `3 blocks`.
pub fn blocks(n: usize) -> String {
    if n == 1 { "1 block".into() } else { format!("{n} blocks") }
}

/// What a comparison came to, in a word or two.
pub fn verdict(ratio: Option<&Estimate>, proven: bool) -> &'static str {
    match ratio {
        None => "not known",
        Some(r) if proven && r.median < 1.0 => "slower",
        Some(_) if proven => "faster",
        Some(r) if r.low.is_none() => "too few",
        Some(_) => "none shown",
    }
}

/// `nft-stateful forwards 23.1 % less than forwarding [22.5, 23.8].`
pub fn sentence(of: &str, than: &str, ratio: &Estimate, proven: bool) -> String {
    let (Some(low), Some(high)) = (ratio.low, ratio.high) else {
        return format!("Too few blocks to tell {of} from {than}: {}.", change_with_interval(ratio));
    };
    if !proven {
        let interval = change_interval(ratio).unwrap_or_default();
        return format!("No difference is shown between {of} and {than} ({interval} %).");
    }
    if ratio.median >= MANY_TIMES {
        let digits = |r: f64| significant(r, 3);
        let [median, low, high] = [ratio.median, low, high].map(digits);
        return format!("{of} forwards {median} times as much as {than} [{low}, {high}].");
    }
    let places = places(ratio);
    let (median, low, high) = (percents(ratio.median), percents(low), percents(high));
    let (median, low, high, word) =
        if median < 0.0 { (-median, -high, -low, "less") } else { (median, low, high, "more") };
    format!("{of} forwards {median:.places$} % {word} than {than} [{low:.places$}, {high:.places$}].")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(median: f64, low: f64, high: f64) -> Estimate {
        Estimate { median, low: Some(low), high: Some(high), n: 9 }
    }

    #[test]
    fn sentences() {
        for (ratio, proven, text) in [
            (ratio(0.769, 0.762, 0.775), true, "a forwards 23.1 % less than b [22.5, 23.8]."),
            (ratio(1.5, 1.4, 1.6), true, "a forwards 50 % more than b [40, 60]."),
            (ratio(0.94, 0.86, 0.9963), true, "a forwards 6.0 % less than b [0.4, 14.0]."),
            (ratio(1.0, 0.997, 1.004), false, "No difference is shown between a and b (-0.3..+0.4 %)."),
            (ratio(0.021, 0.02, 0.022), true, "a forwards 97.90 % less than b [97.80, 98.00]."),
            (ratio(3.5, 3.4, 3.6), true, "a forwards 3.50 times as much as b [3.40, 3.60]."),
            (
                Estimate { low: None, high: None, n: 2, ..ratio(0.9, 0.0, 0.0) },
                false,
                "Too few blocks to tell a from b: -10.0 % (no interval, 2 blocks).",
            ),
        ] {
            assert_eq!(sentence("a", "b", &ratio, proven), text);
        }
    }

    #[test]
    fn a_verdict_claims_nothing_without_an_interval() {
        let none = Estimate { low: None, high: None, ..ratio(0.5, 0.0, 0.0) };
        assert_eq!(verdict(Some(&none), false), "too few");
        assert_eq!(verdict(Some(&ratio(0.9, 0.8, 0.95)), true), "slower");
        assert_eq!(verdict(None, false), "not known");
        assert_eq!(change_with_interval(&ratio(0.9, 0.8, 0.95)), "-10 % [-20, -5]");
    }
}
