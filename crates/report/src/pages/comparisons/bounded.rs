//! Comparisons of results of searches and of RFC 2544's tests: bounds beside each other, and whether they exclude equality.

use crate::pages::results::changes::change;
use crate::prelude::*;
use linerate_measure::compare::{Beside, Bounds, Comparison, Outcome, Sought, Unit};

/// `The throughput of forwarding IPv4 64 B (b) is lower than that of forwarding IPv4 64 B (a): ...`
pub fn verdict(comparison: &Comparison, sought: &Sought, campaign: Option<&Campaign>) -> String {
    let Comparison {
        reference, other, ..
    } = comparison;
    let Sought {
        what,
        reference: than,
        other: of,
        ..
    } = sought;
    let figures = format!("{} against {}", range(of, campaign), range(than, campaign));
    let ends = match (of.interval, than.interval) {
        (true, true) => "95 % intervals",
        (false, false) => "bounds",
        _ => "bounds and intervals",
    };
    let differs = |how: &str| {
        format!(
            "The {what} of {other} is {how} than that of {reference}, by {} % between the lower bounds: {figures}. The {ends} exclude that both are equal.",
            percent((comparison.change.ratio.median - 1.0).abs())
        )
    };
    match comparison.outcome {
        Outcome::Faster => differs("higher"),
        Outcome::Slower => differs("lower"),
        Outcome::NotShown => format!(
            "No difference between the {what} of {other} and that of {reference} is shown: {figures}. The {ends} do not exclude that both are equal."
        ),
    }
}

/// Where a result lies.
fn range(bounds: &Bounds, campaign: Option<&Campaign>) -> String {
    let words = |fps: f64| match campaign {
        Some(campaign) => rate_of(campaign, fps),
        None => rate_with_unit(fps),
    };
    match bounds.range {
        [Some(low), Some(high)] => format!("{} to {}", words(low), words(high)),
        [Some(low), None] => format!("at least {}", words(low)),
        [None, Some(high)] => format!("less than {}", words(high)),
        [None, None] => words(bounds.value()),
    }
}

/// The bounds of both, and the figures of other tests.
pub fn figures(page: &mut Document, comparisons: &[Comparison], campaign: Option<&Campaign>) {
    let rows: Vec<(&Comparison, &Sought)> = comparisons
        .iter()
        .filter_map(|c| Some((c, c.sought.as_ref()?)))
        .collect();
    let bounds = |(_, sought): &(&Comparison, &Sought)| {
        let Sought {
            reference, other, ..
        } = sought;
        [reference.lower, reference.upper, other.lower, other.upper]
    };
    let rates: Vec<f64> = rows.iter().flat_map(bounds).flatten().collect();
    let unit = match campaign {
        Some(campaign) => RateUnit::of_campaign(campaign, rates),
        None => RateUnit::of(rates),
    };
    let table = Table::of(rows.iter().copied())
        .column("", "", |(c, _)| format!("{} / {}", c.other, c.reference))
        .column("result", "", |(_, sought)| sought.what.clone())
        .rate("ref. lower", unit, |(_, sought)| sought.reference.lower)
        .rate("ref. upper", unit, |(_, sought)| sought.reference.upper)
        .rate("this lower", unit, |(_, sought)| sought.other.lower)
        .rate("this upper", unit, |(_, sought)| sought.other.upper)
        .column("change", "%", |(c, _)| change(&c.change.ratio))
        .column("least", "%", |(c, _)| end(c.change.ratio.low))
        .column("most", "%", |(c, _)| end(c.change.ratio.high));
    page.table(table);
    page.note("change: between the lower bounds, the highest loads that meet the goal. least and most: what the change can be by the bounds of both or, where both have one, by their 95 % intervals; - is open.");
    beside(page, &rows, unit);
}

fn end(ratio: Option<f64>) -> Cell {
    ratio.map_or("-".into(), |ratio| signed(100.0 * (ratio - 1.0), 1))
}

fn beside(page: &mut Document, rows: &[(&Comparison, &Sought)], unit: RateUnit) {
    let all = rows
        .iter()
        .flat_map(|(c, sought)| sought.beside.iter().map(move |beside| (*c, beside)));
    let all: Vec<(&Comparison, &Beside)> = all.collect();
    if all.is_empty() {
        return;
    }
    let figure = |of: &Beside, at: usize| -> Cell {
        let value = of.values[at];
        match of.unit {
            Unit::Ns => span(value),
            Unit::Frames => number(value, 4),
            Unit::FramesPerSecond => rate_with_unit(value).into(),
            Unit::Share => format!("{} %", percent(value)).into(),
        }
    };
    let table = Table::of(all.iter().copied())
        .column("", "", |(c, _)| format!("{} / {}", c.other, c.reference))
        .column("figure", "", |(_, of)| of.figure)
        .column("reference", "", |(_, of)| figure(of, 0))
        .column("this", "", |(_, of)| figure(of, 1))
        .column("at loads", unit.name, |(_, of)| {
            let [reference, this] = of.loads.map(|load| rate(load, unit.scale, 4));
            format!("{}, {}", reference.text(), this.text())
        });
    page.section("Figures of the other tests", table);
    page.note("These figures have no interval, so they prove no difference. Most of them depend on the load: compare those at equal loads.");
}

#[cfg(test)]
mod tests {
    use super::super::comparisons;
    use super::*;
    use crate::format::Style;
    use linerate_measure::compare::{Change, Method};
    use linerate_stats::Estimate;

    fn compared(reference: [f64; 2], other: [f64; 2]) -> Comparison {
        let bounds = |[low, high]: [f64; 2]| Bounds {
            lower: Some(low),
            upper: Some(high),
            range: [Some(low), Some(high)],
            interval: false,
        };
        let ratio = Estimate {
            median: other[0] / reference[0],
            low: Some(other[0] / reference[1]),
            high: Some(other[1] / reference[0]),
            n: 1,
        };
        let change = Change {
            ratio,
            method: Method::Bounds,
        };
        Comparison {
            reference: "forwarding (a)".into(),
            other: "forwarding (b)".into(),
            blocks: None,
            campaigns: false,
            reference_rates: vec![reference[0]],
            other_rates: vec![other[0]],
            outcome: change.outcome(),
            change,
            sought: Some(Sought {
                what: "throughput".into(),
                reference: bounds(reference),
                other: bounds(other),
                beside: vec![Beside {
                    figure: "latency, median",
                    unit: Unit::Ns,
                    loads: [reference[0], other[0]],
                    values: [1200.0, 1500.0],
                }],
            }),
            change_of_share: None,
            lost: [0.0; 2],
            dropped: [0.0; 2],
            handled: None,
            pairs: None,
            undecided: None,
            disturbed: None,
            p: None,
            confidence: 0.95,
            warnings: Vec::new(),
        }
    }

    fn page(comparison: Comparison) -> String {
        let style = Style {
            color: false,
            width: 200,
        };
        comparisons(&[comparison], &[], &[], None).text(style)
    }

    #[test]
    fn the_bounds_of_both_decide() {
        let slower = page(compared([1.0e6, 1.01e6], [0.69e6, 0.70e6]));
        for said in [
            "The throughput of forwarding (b) is lower than that of forwarding (a), by 31",
            "690.0 kpps to 700.0 kpps against 1.000 Mpps to 1.010 Mpps. The bounds exclude",
            "latency, median",
            "1.50 us",
        ] {
            assert!(slower.contains(said), "no '{said}' in {slower}");
        }
        assert!(
            !slower.contains("Student") && !slower.contains("p of each"),
            "{slower}"
        );
        let open = page(compared([1.0e6, 1.01e6], [1.005e6, 1.02e6]));
        assert!(
            open.contains("do not exclude that both are equal"),
            "{open}"
        );
    }
}
