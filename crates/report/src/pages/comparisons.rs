//! The page of `linerate compare`: a verdict in words for each comparison, then the figures, ministat's rows, and warnings.

mod bounded;

use super::results::changes::{change, change_interval};
use super::simulation::{Unreal, unreal, warn_of_simulation};
use crate::prelude::*;
use linerate_measure::compare::{Change, Comparison, Method, Outcome, middle};
use linerate_stats::analysis::{Settings, Words, ratio_claim, ratio_interval};

/// Verdicts, figures and warnings. `blocks` are ministat's output for each comparison, already laid out. `notes` name the sets
/// that could not be compared. `campaign`: one whose rates are compared, if they are a campaign's.
pub fn comparisons(
    comparisons: &[Comparison],
    blocks: &[String],
    notes: &[String],
    campaign: Option<&Campaign>,
) -> Document {
    let mut page = Document::default();
    let emulated = campaign.and_then(unreal);
    warn_of_simulation(&mut page, [emulated.filter(|of| *of == Unreal::Emulated)]);
    for comparison in comparisons {
        page.answer(match &comparison.sought {
            Some(sought) => bounded::verdict(comparison, sought, campaign),
            None => verdict(comparison),
        });
    }
    if comparisons.iter().all(|c| c.sought.is_some()) {
        bounded::figures(&mut page, comparisons, campaign)
    } else {
        figures(&mut page, comparisons, campaign)
    }
    for (i, block) in blocks.iter().enumerate() {
        if i == 0 {
            page.heading("As ministat has it (unpaired, Student's t)");
        } else {
            page.gap();
        }
        page.code(block, Tone::Plain);
    }
    let warnings = comparisons
        .iter()
        .flat_map(|c| &c.warnings)
        .chain(notes)
        .map(|w| (w, ()));
    page.warnings(together(warnings).into_iter().map(|(warning, _)| warning));
    page
}

/// A name with a comma would run into the sentence.
fn quoted(name: &str) -> String {
    if name.contains(", ") {
        format!("'{name}'")
    } else {
        name.into()
    }
}

/// `nft-stateful IPv4 64 B is 31 % slower than forwarding IPv4 64 B, 95 % interval 28..34 %, 5 blocks.`
pub fn verdict(comparison: &Comparison) -> String {
    let dropped = comparison.dropped;
    let [reference, other] = [&comparison.reference, &comparison.other].map(|name| quoted(name));
    let data = data(comparison);
    let settings = Settings {
        confidence: comparison.confidence,
        words: Words::RATES,
        ..Settings::default()
    };
    let interval = |change: &Change| {
        let interval = ratio_interval(change.ratio, &settings)?;
        let change = super::results::changes::change(&change.ratio);
        Some(format!("change {} %, {interval}", change.text()))
    };
    let claim = |change: &Change| {
        let (claim, interval) = ratio_claim(change.ratio, &settings);
        format!("is {claim} {reference}{interval}")
    };
    if let Some(why) = &comparison.undecided {
        let (claim, interval) = ratio_claim(comparison.change.ratio, &settings);
        return format!(
            "Undecided whether {other} differs from {reference}: {why}. The rates alone: {claim} the reference{interval}, {data}."
        );
    }
    if let Some(handled) = &comparison.handled {
        // How many frames pass, and whether those that do not cost the DUT as much as before.
        let [of_reference, of_other] = dropped.map(|share| percent(1.0 - share));
        let difference = match handled.outcome() {
            Outcome::NotShown => {
                format!(
                    "no difference is proven: {}",
                    interval(handled).unwrap_or("too few values".into())
                )
            }
            _ => format!("it {}", claim(handled)),
        };
        return format!(
            "{other} passes {of_other} % of the frames, {reference} {of_reference} %; counting the dropped frames as handled, {difference}, {data}."
        );
    }
    let relative = comparison.change_of_share.as_ref();
    let of_share = relative.and_then(|share| {
        let text = interval(share)?;
        let disagree = comparison.outcome == Outcome::NotShown
            && comparison
                .changes()
                .any(|c| c.outcome() != Outcome::NotShown);
        let why = when(
            disagree,
            ". A difference counts only if both changes show it",
        );
        Some(format!(" Relative to the tester's own rate: {text}{why}."))
    });
    let of_share = of_share.unwrap_or_default();
    match (comparison.outcome, interval(&comparison.change)) {
        (Outcome::NotShown, Some(interval)) => {
            format!(
                "Not proven different: {other}, against the reference {reference}: {interval}, {data}.{of_share}"
            )
        }
        (Outcome::NotShown, None) => {
            format!("Too few values to compare {other} with the reference {reference}: {data}.")
        }
        _ => format!("{other} {}, {data}.{of_share}", claim(&comparison.change)),
    }
}

fn data(comparison: &Comparison) -> String {
    match comparison.blocks {
        Some(n) => counted(n, "block"),
        None => {
            let (n, m) = (
                comparison.other_rates.len(),
                comparison.reference_rates.len(),
            );
            let what = match comparison.change_of_share {
                _ if comparison.campaigns => "campaigns",
                Some(_) => "trials",
                None => "values",
            };
            format!("{n} against {m} {what}")
        }
    }
}

fn figures(page: &mut Document, comparisons: &[Comparison], campaign: Option<&Campaign>) {
    let medians = |c: &Comparison| [middle(&c.reference_rates), middle(&c.other_rates)];
    let rates = comparisons.iter().flat_map(medians);
    let unit = match campaign {
        Some(campaign) => RateUnit::of_campaign(campaign, rates),
        None => RateUnit::of(rates),
    };
    let loses = comparisons
        .iter()
        .flat_map(|c| c.lost)
        .any(|lost| lost > 0.0);
    // Without blocks, the values of both sides are counted.
    let paired = |c: &Comparison| c.blocks.is_some();
    let head = match comparisons.iter().all(paired) {
        true => ["blocks", ""],
        false if comparisons.iter().any(paired) => ["blocks or", "values"],
        false if comparisons.iter().all(|c| c.campaigns) => ["campaigns:", "this, ref."],
        false if campaign.is_some() => ["trials: this,", "reference"],
        false => ["values: this,", "reference"],
    };
    let table = Table::of(comparisons)
        .column("", "", |c| format!("{} / {}", c.other, c.reference))
        .rate("reference", unit, |c| medians(c)[0])
        .rate("this", unit, |c| medians(c)[1])
        .column("change", "%", |c| change(&c.change.ratio))
        .column("interval", "%", |c| interval(&c.change))
        .if_any("relative", "change %", |c| {
            c.change_of_share.as_ref().map(|c| change(&c.ratio))
        })
        .if_any("relative", "interval %", |c| {
            c.change_of_share.as_ref().map(interval)
        })
        .when(loses, |table| {
            let table = table.column("reference", "lost %", |c| share(c.lost[0]));
            table.column("this", "lost %", |c| share(c.lost[1]))
        })
        .column(head[0], head[1], |c| match c.blocks {
            Some(blocks) => blocks.to_string(),
            None => format!("{}, {}", c.other_rates.len(), c.reference_rates.len()),
        });
    page.table(table);
    let mut methods: Vec<&str> = comparisons
        .iter()
        .map(|c| method(c.change.method))
        .collect();
    methods.dedup();
    let ps: Vec<String> = comparisons
        .iter()
        .map(|c| c.p.map_or("-".into(), |p| significant(p, 2)))
        .collect();
    let methods = methods.join("; elsewhere ");
    let ps = match &ps[..] {
        [p] => format!("p = {p}"),
        _ => format!("p by row (Holm's correction): {}", ps.join(", ")),
    };
    let of_share = when(
        comparisons.iter().any(|c| c.change_of_share.is_some()),
        " Relative: divided by the tester's own rate; p is the larger of both changes' p.",
    );
    // A search has an interval and no p.
    let tests = comparisons.iter().filter(|c| c.p.is_some()).map(test);
    let tests: BTreeSet<&str> = tests.collect();
    let verdicts = when(
        !tests.is_empty(),
        format!(
            " Verdicts follow from the intervals alone; p is that of {}; with few values it cannot be small.",
            tests.into_iter().joined(" and ")
        ),
    );
    page.note(format!(
        "Changes and intervals: {methods}. {ps}.{verdicts}{of_share}"
    ));
}

fn interval(change: &Change) -> Cell {
    change_interval(&change.ratio).unwrap_or("too few".into())
}

/// The test that gives p.
fn test(comparison: &Comparison) -> &'static str {
    match comparison.blocks {
        Some(_) => "Wilcoxon's signed-rank test",
        None => "Mann and Whitney's test",
    }
}

fn method(method: Method) -> &'static str {
    match method {
        Method::OrderStatistics => {
            "the median of the ratios of paired trials, which can differ from the ratio of the medians; its interval from their order"
        }
        Method::PairedT => "Student's t on the logarithms of the paired ratios",
        Method::HodgesLehmann => {
            "the median of all ratios of a value of one side to a value of the other (Hodges and Lehmann)"
        }
        Method::Bounds => "bounds of searches",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Style;
    use linerate_stats::Estimate;

    fn comparison(change: [Option<f64>; 3], outcome: Outcome) -> Comparison {
        let [median, low, high] = change.map(|end| end.map(|change| 1.0 + change));
        let ratio = Estimate {
            median: median.unwrap(),
            low,
            high,
            n: 5,
        };
        Comparison {
            reference: "forwarding".into(),
            other: "nft-stateful".into(),
            blocks: Some(5),
            campaigns: false,
            reference_rates: vec![1e6; 5],
            other_rates: vec![0.69e6; 5],
            change: Change {
                ratio,
                method: Method::PairedT,
            },
            sought: None,
            change_of_share: None,
            lost: [0.0; 2],
            dropped: [0.0; 2],
            handled: None,
            pairs: None,
            outcome,
            undecided: None,
            disturbed: None,
            p: Some(0.0625),
            confidence: 0.95,
            warnings: vec!["few blocks".into()],
        }
    }

    #[test]
    fn verdicts_are_sentences() {
        let slower = comparison([Some(-0.31), Some(-0.44), Some(-0.18)], Outcome::Slower);
        assert_eq!(
            verdict(&slower),
            "nft-stateful is 31 % slower than forwarding, 95 % interval 18..44 %, 5 blocks."
        );
        let equal = comparison([Some(0.001), Some(-0.02), Some(0.03)], Outcome::NotShown);
        assert!(
            verdict(&equal).starts_with(
                "Not proven different: nft-stateful, against the reference forwarding: change +0"
            ),
            "{}",
            verdict(&equal)
        );
        let nothing = comparison([Some(-0.5), None, None], Outcome::NotShown);
        assert!(
            verdict(&nothing).starts_with("Too few values to compare"),
            "{}",
            verdict(&nothing)
        );
        let drops = Comparison {
            dropped: [0.0, 0.5],
            handled: Some(equal.change),
            ..slower
        };
        assert_eq!(
            verdict(&drops),
            "nft-stateful passes 50.0 % of the frames, forwarding 100 %; counting the dropped frames as handled, no difference is proven: change +0.1 %, 95 % interval -2.0..+3.0 %, 5 blocks."
        );
        let double = comparison([Some(1.5), Some(1.2), Some(1.9)], Outcome::Faster);
        assert!(
            verdict(&double).contains("2.5 times as fast as forwarding"),
            "{}",
            verdict(&double)
        );
    }

    /// Of several campaigns a side, each is one value, however many trials it has.
    #[test]
    fn campaigns_are_counted_as_campaigns() {
        let several = Comparison {
            blocks: None,
            campaigns: true,
            ..comparison([Some(-0.31), Some(-0.44), Some(0.18)], Outcome::NotShown)
        };
        let campaign = Campaign::default();
        let page =
            comparisons(std::slice::from_ref(&several), &[], &[], Some(&campaign)).text(Style {
                color: false,
                width: 120,
            });
        assert!(
            page.contains("campaigns:") && !page.contains("trials:"),
            "{page}"
        );
        let known = several.held(0.03).known;
        assert!(
            known.contains(": more campaigns a side decide whether it is 3 % slower"),
            "{known}"
        );
    }

    #[test]
    fn a_page_has_the_verdict_first_and_each_warning_once() {
        let slower = comparison([Some(-0.31), Some(-0.44), Some(-0.18)], Outcome::Slower);
        let page = comparisons(
            &[slower.clone(), slower],
            &["x\ty\n".into()],
            &["a note".into()],
            None,
        )
        .text(Style {
            color: false,
            width: 80,
        });
        assert!(page.starts_with("nft-stateful is 31 %"), "{page}");
        assert_eq!(page.matches("few blocks").count(), 1);
        assert!(
            page.contains("\nx\ty\n") && page.contains("! a note"),
            "{page}"
        );
        assert!(page.lines().all(|l| l.len() <= 80), "{page}");
    }
}
