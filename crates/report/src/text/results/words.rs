//! Ratios as changes in percent, with as many digits as their intervals deserve.

use super::super::numbers::{counted, percent, significant, time};
use crate::document::Cell;
use linerate_measure::summary::Row;
use linerate_plan::settings::Mode;
use linerate_stats::Estimate;

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
pub fn change(ratio: &Estimate) -> Cell {
    let value = percents(ratio.median);
    Cell::Number { value, text: format!("{value:+.*}", places(ratio)) }
}

/// `-23.8..-22.5`; `None` without an interval.
pub fn change_interval(ratio: &Estimate) -> Option<Cell> {
    let places = places(ratio);
    let (low, high) = (percents(ratio.low?), percents(ratio.high?));
    Some(Cell::Interval { low, high, text: format!("{low:+.places$}..{high:+.places$}") })
}

/// `-23.1 %, 95 % interval -23.8..-22.5 %`.
pub fn change_with_interval(ratio: &Estimate) -> String {
    match change_interval(ratio) {
        Some(interval) => format!("{} %, 95 % interval {} %", change(ratio).text(), interval.text()),
        None => format!("{} % (no interval, {})", change(ratio).text(), counted(ratio.n, "block")),
    }
}

/// What a comparison came to, in a word or two. `drops`: whether it is the first of the two that drops the more frames; `None` where
/// neither drops any.
pub fn verdict(ratio: Option<&Estimate>, proven: bool, drops: Option<bool>) -> &'static str {
    match ratio {
        _ if drops == Some(true) => "drops",
        _ if drops == Some(false) => "drops less",
        None => "not known",
        Some(r) if proven && r.median < 1.0 => "slower",
        Some(_) if proven => "faster",
        Some(r) if r.low.is_none() => "too few",
        Some(_) => "none shown",
    }
}

/// `nft-stateful forwards 23.1 % less than forwarding, 95 % interval 22.5..23.8 %.`
pub fn sentence(of: &str, than: &str, ratio: &Estimate, proven: bool) -> String {
    let (Some(low), Some(high)) = (ratio.low, ratio.high) else {
        return format!("Too few blocks to tell {of} from {than}: {}.", change_with_interval(ratio));
    };
    if !proven {
        let interval = Cell::from(change_interval(ratio));
        return format!("No difference is shown between {of} and {than} ({} %).", interval.text());
    }
    if ratio.median >= MANY_TIMES {
        let digits = |r: f64| significant(r, 3);
        let [median, low, high] = [ratio.median, low, high].map(digits);
        return format!("{of} forwards {median} times as much as {than}, 95 % interval {low}..{high}.");
    }
    let (amount, interval) = amount(ratio, (low, high));
    format!("{of} forwards {amount} than {than}, 95 % interval {interval} %.")
}

/// A change that is proven without its sign, and its interval: `23.1 % less`, `22.5..23.8`.
fn amount(ratio: &Estimate, (low, high): (f64, f64)) -> (String, String) {
    let places = places(ratio);
    let (median, low, high) = (percents(ratio.median), percents(low), percents(high));
    let (median, low, high, word) =
        if median < 0.0 { (-median, -high, -low, "less") } else { (median, low, high, "more") };
    (format!("{median:.places$} % {word}"), format!("{low:.places$}..{high:.places$}"))
}

/// `mine passes 50.0 % of the frames, at 812 ns per offered frame (forwarding: 837 ns); in that no difference is shown (-5..+1 %).`
pub fn dropping(of: (&str, &Row), than: (&str, &Row), cost: &Estimate, mode: Mode) -> String {
    let passed =
        |(name, row): (&str, &Row)| format!("{name} passes {} % of the frames", percent(1.0 - row.dropped));
    let others = if than.1.drops() { format!(", {}", passed(than)) } else { String::new() };
    // Inline, the load waits for the DUT: it takes in all that is offered.
    let frame = if mode == Mode::Inline { "offered frame" } else { "frame that it takes in" };
    let difference = match cost.low.zip(cost.high) {
        None => "too few blocks for an interval of that".into(),
        Some((low, high)) if low <= 1.0 && high >= 1.0 => {
            format!("in that no difference is shown ({} %)", Cell::from(change_interval(cost)).text())
        }
        Some(interval) => {
            let (amount, interval) = amount(cost, interval);
            format!("{amount}, 95 % interval {interval} %")
        }
    };
    format!(
        "{}{others}, at {} per {frame} ({}: {}); {difference}.",
        passed(of),
        time(of.1.ns_per_frame),
        than.0,
        time(than.1.ns_per_frame),
    )
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
            (ratio(0.769, 0.762, 0.775), true, "a forwards 23.1 % less than b, 95 % interval 22.5..23.8 %."),
            (ratio(1.5, 1.4, 1.6), true, "a forwards 50 % more than b, 95 % interval 40..60 %."),
            (ratio(0.94, 0.86, 0.9963), true, "a forwards 6.0 % less than b, 95 % interval 0.4..14.0 %."),
            (ratio(1.0, 0.997, 1.004), false, "No difference is shown between a and b (-0.3..+0.4 %)."),
            (
                ratio(0.021, 0.02, 0.022),
                true,
                "a forwards 97.90 % less than b, 95 % interval 97.80..98.00 %.",
            ),
            (ratio(3.5, 3.4, 3.6), true, "a forwards 3.50 times as much as b, 95 % interval 3.40..3.60."),
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
        assert_eq!(verdict(Some(&none), false, None), "too few");
        assert_eq!(verdict(Some(&ratio(0.9, 0.8, 0.95)), true, None), "slower");
        assert_eq!(verdict(None, false, None), "not known");
        assert_eq!(change_with_interval(&ratio(0.9, 0.8, 0.95)), "-10 %, 95 % interval -20..-5 %");
    }
}
