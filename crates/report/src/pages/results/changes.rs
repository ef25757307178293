//! Ratios as changes in percent, with as many digits as their intervals deserve.

use crate::prelude::*;
use linerate_stats::analysis::{Settings, Words, places, ratio_claim};

fn percents(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}

fn bounds(ratio: &Estimate) -> Option<(f64, f64)> {
    Some((percents(ratio.low?), percents(ratio.high?)))
}

/// `-23.1`.
pub fn change(ratio: &Estimate) -> Cell {
    let places = bounds(ratio).map_or(1, |(low, high)| places(low, high));
    signed(percents(ratio.median), places)
}

/// `-23.8..-22.5`; `None` without an interval.
pub fn change_interval(ratio: &Estimate) -> Option<Cell> {
    let (low, high) = bounds(ratio)?;
    let places = places(low, high);
    Some(Cell::range(
        low,
        high,
        format!("{low:+.places$}..{high:+.places$}"),
    ))
}

/// `-23.1 %, 95 % interval -23.8..-22.5 %`; no figure with a sign where the interval has none.
pub fn change_with_interval(ratio: &Estimate) -> String {
    match (change_interval(ratio), ratio.side_of(1.0)) {
        (Some(interval), Some(_)) => {
            format!(
                "{} %, 95 % interval {} %",
                change(ratio).text(),
                interval.text()
            )
        }
        (Some(interval), None) => {
            format!("no difference shown, 95 % interval {} %", interval.text())
        }
        (None, _) => format!("too few for an interval ({})", counted(ratio.n, "block")),
    }
}

/// The result of a comparison in a word or two. `drops`: whether the first of the two drops more frames; `None` if neither drops
/// any.
pub fn verdict(ratio: Option<&Estimate>, proven: bool, drops: Option<bool>) -> &'static str {
    match ratio {
        _ if drops == Some(true) => "drops",
        _ if drops == Some(false) => "drops less",
        None => "not known",
        Some(r) if proven && r.median < 1.0 => "slower",
        Some(_) if proven => "faster",
        Some(r) if r.low.is_none() => "too few",
        Some(_) => "not proven",
    }
}

/// A claim about two things, and its interval.
fn claim(of: &str, than: &str, ratio: &Estimate, words: Words) -> String {
    let settings = Settings {
        words,
        ..Settings::default()
    };
    let (claim, interval) = ratio_claim(*ratio, &settings);
    format!("{of}{claim} {than}{interval}")
}

/// `nft-stateful is 23.1 % slower than forwarding, 95 % interval 22.5..23.8 %`
pub fn sentence(of: &str, than: &str, ratio: &Estimate, proven: bool) -> String {
    match change_interval(ratio) {
        None => format!(
            "Too short to compare {of} with {than} ({})",
            counted(ratio.n, "block")
        ),
        Some(_) if !proven => {
            let [low, high] = bounds(ratio).map_or([0.0; 2], |(low, high)| [0.0 - low, high]);
            let places = places(-low, high);
            format!(
                "{of} is between {low:.places$} % slower and {high:.places$} % faster than {than}: undecided"
            )
        }
        Some(_) => claim(&format!("{of} is "), than, ratio, Words::RATES),
    }
}

/// `mine passes 50.0 % of the frames; an offered frame costs 3.1 % more than with forwarding, 95 % interval 2.7..3.7 %`
pub fn dropping(
    of: (&str, &Row),
    than: (&str, &Row),
    cost: &Estimate,
    asked: (Mode, &str),
) -> String {
    let (mode, noun) = asked;
    let passed = |(name, row): (&str, &Row)| {
        let share = percent(1.0 - row.dropped);
        format!("{name} passes {share} % of the {noun}s")
    };
    let others = when(than.1.drops(), format!(", {}", passed(than)));
    // Inline, the load waits for the DUT: it takes in all that is offered.
    let frame = match mode {
        Mode::Inline => format!("an offered {noun}"),
        _ => format!("a {noun} that it takes in"),
    };
    let difference = match (change_interval(cost), cost.side_of(1.0)) {
        (Some(interval), None) => {
            format!(
                "no difference in the cost of {frame} is shown ({} %)",
                interval.text()
            )
        }
        (Some(_), Some(_)) => {
            let words = Words {
                more: "more",
                less: "less",
                as_much: "much",
                ..Words::RATES
            };
            let (of, than) = (format!("{frame} costs "), format!("with {}", than.0));
            claim(&of, &than, cost, words)
        }
        (None, _) => format!("too few blocks for an interval of the cost of {frame}"),
    };
    format!("{}{others}; {difference}", passed(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(median: f64, low: f64, high: f64) -> Estimate {
        Estimate {
            median,
            low: Some(low),
            high: Some(high),
            n: 9,
        }
    }

    #[test]
    fn sentences() {
        for (ratio, proven, text) in [
            (
                ratio(0.769, 0.762, 0.775),
                true,
                "a is 23.1 % slower than b, 95 % interval 22.5..23.8 %",
            ),
            (
                ratio(1.5, 1.4, 1.6),
                true,
                "a is 50 % faster than b, 95 % interval 40..60 %",
            ),
            (
                ratio(0.94, 0.86, 0.9963),
                true,
                "a is 6.0 % slower than b, 95 % interval 0.4..14.0 %",
            ),
            (
                ratio(1.0, 0.997, 1.004),
                false,
                "a is between 0.3 % slower and 0.4 % faster than b: undecided",
            ),
            (
                ratio(0.021, 0.02, 0.022),
                true,
                "a is 97.90 % slower than b, 95 % interval 97.80..98.00 %",
            ),
            (
                ratio(3.5, 3.4, 3.6),
                true,
                "a is 3.5 times as fast as b, 95 % interval 3.4..3.6 times",
            ),
            (
                Estimate {
                    low: None,
                    high: None,
                    n: 2,
                    ..ratio(0.9, 0.0, 0.0)
                },
                false,
                "Too short to compare a with b (2 blocks)",
            ),
        ] {
            assert_eq!(sentence("a", "b", &ratio, proven), text);
        }
    }

    #[test]
    fn a_verdict_claims_nothing_without_an_interval() {
        let none = Estimate {
            low: None,
            high: None,
            ..ratio(0.5, 0.0, 0.0)
        };
        assert_eq!(verdict(Some(&none), false, None), "too few");
        assert_eq!(verdict(Some(&ratio(0.9, 0.8, 0.95)), true, None), "slower");
        assert_eq!(verdict(None, false, None), "not known");
        assert_eq!(
            change_with_interval(&ratio(0.9, 0.8, 0.95)),
            "-10 %, 95 % interval -20..-5 %"
        );
    }
}
