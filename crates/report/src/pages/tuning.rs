//! Which changes make a DUT faster.

use super::{Unreal, warn_of_simulation};
use crate::chart::{Axis, Chart, Look, Scale, Series, Spot};
use crate::prelude::*;
use linerate_measure::tuning::{Change, Interaction, Measured, Stage, Tuned, Verdict};
use std::cmp::Ordering;

/// The changes that are kept, in a few words.
pub fn tuned(tuned: &Tuned) -> String {
    let kept = tuned
        .changes
        .iter()
        .filter(|change| change.verdict == Verdict::Kept);
    let names: Vec<&str> = kept.map(|change| change.name.as_str()).collect();
    if names.is_empty() {
        "no change is kept".into()
    } else {
        format!("{} kept", names.join(", "))
    }
}

/// The page of `linerate tune`.
pub fn tuning(tuned: &Tuned) -> Document {
    let mut page = Document::default();
    page.heading(tuned.title.clone());
    page.append(said(tuned));
    page
}

/// The effects of a table, in words.
const EFFECTS: &str = "Each effect is the mean over runs with and without the other changes. Its interval comes from the \
    spread between runs: each run has a DUT of its own.";
/// The effects of a confirmation, in words.
const CONFIRMED: &str = "p is that of the confirmation, corrected for the number of changes (Holm). The confirmation leaves \
    out changes whose effect in the screening was small against its interval.";

/// The page below its title.
fn said(tuned: &Tuned) -> Document {
    let mut page = Document::default();
    warn_of_simulation(&mut page, [tuned.simulated.then_some(Unreal::Simulated)]);
    let named = |verdict: Verdict| -> Vec<String> {
        tuned
            .changes
            .iter()
            .filter(|change| change.verdict == verdict)
            .map(|change| change.name.clone())
            .collect()
    };
    let (kept, harmful, open) = (
        named(Verdict::Kept),
        named(Verdict::Harmful),
        named(Verdict::Unknown),
    );
    page.answer(answer(tuned, &kept, open.is_empty()));
    if !tuned.base.is_empty() {
        page.say(format!("Compared with {}.", tuned.base));
    }
    if !harmful.is_empty() {
        page.say(format!("Proven to make it slower: {}.", harmful.join(", ")));
    }
    if let Some(disagree) = disagree(tuned) {
        page.warn(disagree);
    } else if let Some(alone) = alone(tuned) {
        page.say(alone);
    }
    let broken = named(Verdict::Breaks);
    if !broken.is_empty() {
        page.warn(format!(
            "With {} no frame passes: no run with it has a valid trial.",
            broken.join(", ")
        ));
    }
    if let Some(stopped) = &tuned.stopped {
        page.warn(format!("This tuning did not come to its end: {stopped}."));
    }
    page.section("Changes", changes(tuned));
    page.entries("Levels of one factor", levels(tuned));
    page.entries(
        "Not tried",
        tuned
            .left_out
            .iter()
            .map(|left| format!("{}: {}", left.name, left.reason)),
    );
    page.entries(
        "Settings of the kept changes",
        tuned
            .changes
            .iter()
            .filter(|c| c.verdict == Verdict::Kept)
            .map(|c| format!("{}: {}", c.name, c.keys.join(", "))),
    );
    page.each(
        "Changes that depend on each other",
        &tuned.interactions,
        |page, interaction| {
            page.entry("- ", together(tuned, interaction));
        },
    );
    page.gap();
    page.note(EFFECTS);
    if tuned.changes.iter().any(|c| c.confirmed.is_some()) {
        page.note(CONFIRMED);
    }
    for stage in &tuned.stages {
        page.note(words(stage));
    }
    let warnings = tuned.stages.iter().flat_map(|s| {
        s.warnings
            .iter()
            .map(|warning| format!("{}: {warning}", s.name))
    });
    page.warnings(warnings);
    page
}

/// The page of a tuning with its pictures, and the pages of its campaigns by their names.
pub fn tuning_report(tuned: &Tuned, campaigns: Vec<(String, Document)>) -> Document {
    let mut page = Document::titled(tuned.title.clone());
    page.append(said(tuned));
    if let Some(chart) = effects(tuned) {
        page.chart(chart);
    }
    for (name, campaign) in campaigns {
        page.folded(name, |part| part.append(campaign));
    }
    page
}

/// The effects of all changes with their intervals.
fn effects(tuned: &Tuned) -> Option<Chart> {
    let shown = by_factor(tuned);
    let names = shown.iter().map(|change| change.name.clone()).collect();
    let series = |name: &str, of: fn(&Change) -> Option<Measured>| {
        let spot = |(at, change): (usize, &&Change)| {
            let percents = |ratio: f64| 100.0 * (ratio - 1.0);
            let ratio = of(change)?.ratio;
            let interval = ratio.low.zip(ratio.high);
            Some(Spot {
                interval: interval.map(|(low, high)| [percents(low), percents(high)]),
                ..Spot::at(at as f64, percents(ratio.median))
            })
        };
        let points = shown.iter().enumerate().filter_map(spot);
        Series::new(name, Look::Marks, points.collect::<Vec<_>>())
    };
    let mut all = vec![
        series("screening", |change| change.screened),
        series("confirmed", |change| change.confirmed),
    ];
    all.retain(|series| !series.points.is_empty());
    let chart = Chart::new(
        "Effect of each change on the rate",
        Axis::new("change", Scale::Names(names)),
        Axis::free("effect, %"),
        all,
    );
    let has_points = !chart.series.is_empty();
    has_points.then_some(Chart {
        interval: Some("95 % interval of the effect".into()),
        ..chart
    })
}

/// The verdict of the last campaign; the trials that chose the changes prove nothing of them together.
fn answer(tuned: &Tuned, kept: &[String], whole: bool) -> String {
    let (n, all, names) = (
        kept.len(),
        counted(tuned.changes.len(), "change"),
        kept.join(", "),
    );
    let (make, them, by) = if n == 1 {
        ("makes", "it", "by")
    } else {
        ("make", "them", "together by")
    };
    let seemed =
        format!("{n} of {all} made the DUT faster in the trials that confirmed {them}: {names}.");
    let ratio = match (kept, &tuned.together) {
        ([], _) if !whole => return format!("No verdict yet on {all}."),
        ([], _) => return format!("None of {all} is shown to make the DUT faster."),
        (_, None) => return seemed,
        (_, Some(proof)) => proof.ratio.unwrap_or_default(),
    };
    match (ratio.side_of(1.0), interval(&ratio)) {
        (Some(Ordering::Greater), _) => {
            format!(
                "{n} of {all} {make} the DUT faster, {by} {}: {names}.",
                change(&ratio)
            )
        }
        (Some(_), _) => {
            format!(
                "{seemed} Beside the DUT as it is, the DUT with {them} is slower: {}.",
                change(&ratio)
            )
        }
        (None, Some(interval)) => {
            format!("{seemed} Beside the DUT as it is, no difference is shown: {interval}.")
        }
        (None, None) => {
            format!("{seemed} Beside the DUT as it is, too few trials were valid to tell.")
        }
    }
}

/// Why the effect of the only kept change in the answer is not that in the table: the confirmation makes it with others.
fn alone(tuned: &Tuned) -> Option<String> {
    let mut kept = tuned.changes.iter().filter(|c| c.verdict == Verdict::Kept);
    let (only, None) = (kept.next()?, kept.next()) else {
        return None;
    };
    let factors = tuned.factor_of(&tuned.stages.get(1)?.changes);
    let with_others = factors.iter().any(|factor| *factor != factors[0]);
    let average = only.confirmed.filter(|_| with_others)?.ratio.median;
    let alone = tuned.together.as_ref()?.ratio?.median;
    Some(format!(
        "{}: alone {} %, on average over the others {} %.",
        only.name,
        percent(alone),
        percent(average)
    ))
}

/// The confirmed effects and the gain of the last campaign, where their intervals do not overlap.
fn disagree(tuned: &Tuned) -> Option<String> {
    let kept = || tuned.changes.iter().filter(|c| c.verdict == Verdict::Kept);
    let confirmed = tuned.confirmed_gain()?;
    let together = tuned.together.as_ref()?.ratio?;
    let apart = |a: &Estimate, b: &Estimate| a.high.zip(b.low).is_some_and(|(a, b)| a < b);
    if !apart(&confirmed, &together) && !apart(&together, &confirmed) {
        return None;
    }
    let names: Vec<&str> = kept().map(|change| change.name.as_str()).collect();
    let of = match names[..] {
        [name] => format!("{name}: its confirmed effect is"),
        _ => format!("{}: their confirmed effects together are", names.join(", ")),
    };
    let others = tuned
        .stages
        .get(1)
        .is_some_and(|stage| stage.changes.len() > names.len());
    let because = if others {
        " A confirmed effect is an average over runs with and without the other changes of the confirmation."
    } else {
        " The two are of campaigns one after the other."
    };
    Some(format!(
        "{of} {}, and beside the DUT as it is the gain is {}: the intervals do not overlap.{because}",
        change(&confirmed),
        change(&together)
    ))
}

/// `+12.3 % (95 % interval +10.1..+14.6 %)`
fn change(ratio: &Estimate) -> String {
    let interval = interval(ratio).map(|interval| format!(" ({interval})"));
    format!(
        "{} %{}",
        percent(ratio.median),
        interval.unwrap_or_default()
    )
}

/// `95 % interval +10.1..+14.6 %`
fn interval(ratio: &Estimate) -> Option<String> {
    let (low, high) = ratio.low.zip(ratio.high)?;
    Some(format!(
        "95 % interval {}..{} %",
        percent(low),
        percent(high)
    ))
}

/// A change in per cent with one decimal; no sign for what rounds to nothing.
fn percent(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    if percent.abs() < 0.05 {
        "0.0".into()
    } else {
        format!("{percent:+.1}")
    }
}

fn changes(tuned: &Tuned) -> Table {
    let percents = |ratio: f64| 100.0 * (ratio - 1.0);
    let effect = |measured: Option<&Measured>| {
        measured.map(|m| Cell::number(percents(m.ratio.median), percent(m.ratio.median)))
    };
    let interval = |measured: Option<&Measured>| {
        let (low, high) = (measured?.ratio.low?, measured?.ratio.high?);
        let text = format!("{}..{}", percent(low), percent(high));
        Some(Cell::range(percents(low), percents(high), text))
    };
    let p = |measured: Option<&Measured>| {
        measured.map(|m| {
            Cell::number(
                m.p,
                if m.p < 0.001 {
                    "<0.001".into()
                } else {
                    format!("{:.3}", m.p)
                },
            )
        })
    };
    Table::of(&by_factor(tuned))
        .column("change", "", |change| change.name.clone())
        .if_any("level of", "", |change| change.factor.clone())
        .column("verdict", "", |change| verdict(change))
        .if_any("screening", "%", |change| effect(change.screened.as_ref()))
        .if_any("95 % interval", "%", |change| {
            interval(change.screened.as_ref())
        })
        .if_any("confirmed", "%", |change| effect(change.confirmed.as_ref()))
        .if_any("95 % interval", "%", |change| {
            interval(change.confirmed.as_ref())
        })
        .if_any("p", "", |change| p(change.confirmed.as_ref()))
        .into()
}

/// The verdict in words.
fn verdict(change: &Change) -> &'static str {
    match change.verdict {
        Verdict::Kept => "helps",
        Verdict::NotChosen => "helps, not kept",
        Verdict::Harmful => "costs",
        Verdict::NotConfirmed => "not confirmed",
        Verdict::NoEffect => "no effect seen",
        Verdict::Breaks => "no frame passes",
        Verdict::Unknown => "not decided",
    }
}

/// The changes in the order of the plan, the levels of a factor one below the other.
fn by_factor(tuned: &Tuned) -> Vec<&Change> {
    let factor_of = tuned.factor_of(&(0..tuned.changes.len()).collect::<Vec<_>>());
    let mut all: Vec<(usize, &Change)> = factor_of.into_iter().zip(&tuned.changes).collect();
    all.sort_by_key(|(factor, _)| *factor);
    all.into_iter().map(|(_, change)| change).collect()
}

/// By factor: the level that is kept, or why none is.
fn levels(tuned: &Tuned) -> Vec<String> {
    let all = by_factor(tuned);
    let of_factor = all.chunk_by(|a, b| a.factor.is_some() && a.factor == b.factor);
    let said = |level: &&&Change| {
        let measured = level.confirmed.or(level.screened);
        let interval = measured.and_then(|measured| interval(&measured.ratio));
        let interval = interval.map(|interval| format!(" ({interval})"));
        format!(
            "{}: {}{}",
            level.name,
            verdict(level),
            interval.unwrap_or_default()
        )
    };
    let line = |levels: &[&Change]| {
        let factor = levels[0].factor.as_ref()?;
        let (kept, others): (Vec<_>, Vec<_>) = levels
            .iter()
            .partition(|level| level.verdict == Verdict::Kept);
        let others: Vec<String> = others.iter().map(said).collect();
        let Some(kept) = kept.first() else {
            return Some(format!("{factor}: none is kept. {}.", others.join("; ")));
        };
        let effect = kept.confirmed.map(|measured| change(&measured.ratio));
        let mut text = format!(
            "{factor}: {} is kept, {} against {factor} as it is.",
            kept.name,
            effect.unwrap_or_default()
        );
        if !others.is_empty() {
            text += &format!(" {}.", others.join("; "));
        }
        if levels
            .iter()
            .any(|level| level.verdict == Verdict::NotChosen)
        {
            text += " Of levels that help, the one with the largest effect is kept; levels are not compared with each other.";
        }
        Some(text)
    };
    of_factor.filter_map(line).collect()
}

fn together(tuned: &Tuned, interaction: &Interaction) -> String {
    let [a, b] = interaction
        .of
        .map(|change| tuned.changes[change].name.as_str());
    let effect = change(&interaction.measured.ratio);
    format!(
        "{a} and {b}: where one of them is made, the factor of the other (rate with it by rate without it) changes by {effect}."
    )
}

fn words(stage: &Stage) -> String {
    let [trials, counted_trials] = stage.trials;
    format!(
        "{}: {} of {}, {counted_trials} of {trials} trials valid. Records: {}",
        stage.name,
        counted(stage.runs.len(), "run"),
        counted(stage.changes.len(), "change"),
        stage.records
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_measure::record::Proof;
    use linerate_measure::tuning::LeftOut;

    #[test]
    fn the_gain_of_one_change_alone_is_told_from_its_average_and_what_was_left_out_is_named() {
        let names = ["gro-off", "rps"].map(|name| (name.to_string(), Vec::new()));
        let mut tuned = Tuned::new("t".into(), "p".into(), names);
        let ratio = |median| Estimate {
            median,
            low: Some(median - 0.01),
            high: Some(median + 0.01),
            n: 9,
        };
        tuned.changes[0].verdict = Verdict::Kept;
        tuned.changes[0].confirmed = Some(Measured {
            ratio: ratio(1.045),
            p: 0.01,
        });
        tuned.together = Some(Proof::of(ratio(1.064), "r".into()));
        let stage = |changes: &[usize]| Stage {
            name: "s".into(),
            records: "r".into(),
            changes: changes.to_vec(),
            runs: Vec::new(),
            levels: Vec::new(),
            trials: [0; 2],
            warnings: Vec::new(),
        };
        let (name, reason) = ("budget".into(), "it needs the whole host".into());
        tuned.left_out = vec![LeftOut { name, reason }];
        let said = "gro-off: alone +6.4 %, on average over the others +4.5 %.";
        for (confirmed, says) in [(&[0, 1][..], true), (&[0], false)] {
            tuned.stages = vec![stage(&[0, 1]), stage(confirmed)];
            let page = tuning(&tuned).text(crate::format::Style {
                color: false,
                width: 120,
            });
            assert_eq!(page.contains(said), says, "{page}");
            assert!(
                page.contains("Not tried\n- budget: it needs the whole host"),
                "{page}"
            );
        }
    }

    #[test]
    fn gains_that_disagree_are_told_with_both_figures() {
        let names = ["a", "b", "c"].map(|name| (name.to_string(), Vec::new()));
        let mut tuned = Tuned::new("t".into(), "p".into(), names);
        let ratio = |median: f64, half: f64| Estimate {
            median,
            low: Some(median - half),
            high: Some(median + half),
            n: 9,
        };
        let measured = |ratio| Some(Measured { ratio, p: 0.01 });
        tuned.changes[0].verdict = Verdict::Kept;
        tuned.changes[0].confirmed = measured(ratio(1.1, 0.02));
        tuned.together = Some(Proof::of(ratio(1.2, 0.02), "r".into()));
        assert_eq!(
            disagree(&tuned).unwrap(),
            "a: its confirmed effect is +10.0 % (95 % interval +8.0..+12.0 %), and beside the DUT as it is the gain is +20.0 % (95 % \
             interval +18.0..+22.0 %): the intervals do not overlap. The two are of campaigns one after the other."
        );
        // Two make 1.1 * 1.1 = 1.21.
        tuned.changes[1] = tuned.changes[0].clone();
        assert_eq!(disagree(&tuned), None);
        tuned.together = Some(Proof::of(ratio(1.12, 0.02), "r".into()));
        let page = tuning(&tuned).text(crate::format::Style {
            color: false,
            width: 400,
        });
        assert!(
            page.contains("their confirmed effects together are +21.0 %")
                && page.contains("the gain is +12.0 %"),
            "{page}"
        );
        // Without an interval, nothing is shown to disagree.
        tuned.changes[1].confirmed = measured(Estimate {
            low: None,
            ..ratio(1.1, 0.02)
        });
        assert_eq!(disagree(&tuned), None);
    }

    #[test]
    fn the_levels_of_a_factor_stand_together_with_the_reason_why_one_is_kept_or_none() {
        let names = [
            "ring-256",
            "echo",
            "ring-4096",
            "budget-600",
            "ring-1024",
            "budget-1200",
        ];
        let names = names.map(|name| (name.to_string(), Vec::new()));
        let mut tuned = Tuned::new("t".into(), "p".into(), names);
        let measured = |median: f64| Measured {
            ratio: Estimate {
                median,
                low: Some(median - 0.01),
                high: Some(median + 0.01),
                n: 24,
            },
            p: 0.001,
        };
        use Verdict::{Harmful, Kept, NoEffect, NotChosen};
        let all = [
            (Some("interface.rx-ring"), NotChosen, 1.05),
            (None, NoEffect, 1.0),
            (Some("interface.rx-ring"), Kept, 1.1),
            (Some("budget"), NoEffect, 1.002),
            (Some("interface.rx-ring"), Harmful, 0.9),
            (Some("budget"), NoEffect, 0.998),
        ];
        for (change, (factor, verdict, effect)) in tuned.changes.iter_mut().zip(all) {
            change.factor = factor.map(String::from);
            change.verdict = verdict;
            let measured = Some(measured(effect));
            if verdict == NoEffect {
                change.screened = measured;
            } else {
                change.confirmed = measured;
            }
        }
        tuned.interactions.push(Interaction {
            of: [2, 3],
            measured: measured(1.05),
        });
        let page = tuning_report(&tuned, Vec::new());
        let text = page.text(crate::format::Style {
            color: false,
            width: 400,
        });
        for said in [
            "- ring-4096 and budget-600: where one of them is made, the factor of the other (rate with it by rate without it) changes by +5.0 % (95 % interval +4.0..+6.0 %).",
            "- interface.rx-ring: ring-4096 is kept, +10.0 % (95 % interval +9.0..+11.0 %) against interface.rx-ring as it is. ring-256: helps, not kept (95 % interval +4.0..+6.0 %); ring-1024: costs (95 % interval -11.0..-9.0 %). Of levels",
            "- budget: none is kept. budget-600: no effect seen (95 % interval -0.8..+1.2 %); budget-1200: no effect seen (95 % interval -1.2..+0.8 %).",
        ] {
            assert!(text.contains(said), "{text}");
        }
        let at = |name: &str| text.find(&format!("\n{name} ")).unwrap();
        assert!(
            at("ring-256") < at("ring-4096") && at("ring-1024") < at("echo"),
            "{text}"
        );
        let chart = page.blocks.iter().find_map(|block| match block {
            crate::document::Block::Chart(chart) => Some(chart),
            _ => None,
        });
        assert_eq!(chart.unwrap().series.len(), 2);
    }
}
