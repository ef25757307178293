//! The table of cells, comparisons in the form in which papers print them, sweeps, speed-ups, and expectations.

use crate::prelude::*;
use linerate_measure::record::{
    Against, Compared, Disagreement, Expected, JudgedPair, Ministat, Point, Series,
};

use super::super::numbers::words as rate_words;
use super::super::simulation::simulated;
use super::changes::{change, change_interval, change_with_interval, verdict};
use super::figures::limit;
use super::shown::{Shown, has_rate};
use linerate_measure::experiment::{Claim, Factor, Interest};

/// One row for each cell that was to be measured; the tester's rates stand beside them, unless the plan is about them.
pub fn cells(page: &mut Document, shown: &Shown<'_>) {
    let unit = shown.unit();
    let rows = &shown.summary.rows;
    let beside: Vec<usize> = rows.iter().filter_map(|r| Some(r.ceiling?.than)).collect();
    let measured = |r: &&Row| shown.planned.lacking(r.slot).is_empty() && !beside.contains(&r.slot);
    let table = Table::of(rows.iter().filter(measured))
        .column("cell", "", |r| shown.numbered(r.slot))
        .column("rate", unit.name, |r| unit.median(&r.received))
        .column("95 %", "interval", |r| {
            match (has_rate(r), r.trials, r.valid_trials) {
                (true, ..) => unit.interval(&r.received),
                (_, 0, _) => "not run".into(),
                (_, _, 0) => "no valid trial".into(),
                _ => "no window".into(),
            }
        })
        .when(shown.loses(), |table| {
            table.column("lost", "%", |r| shown.lost(r.slot))
        })
        .when(!beside.is_empty() && !simulated(shown.campaign), |table| {
            beside_ceiling(table, shown)
        })
        .when(rows.iter().any(|r| r.baseline.is_some()), |table| {
            against_baseline(table, shown)
        })
        .column("trials", "valid", |r| {
            format!("{}/{}", r.valid_trials, r.trials)
        })
        .optional("", "limit", |r| limit(r.limit));
    page.table(table);
    let slots = shown.slots().filter(|slot| slot.is_calibration());
    for slot in slots.filter(|slot| slot.name.contains('#')) {
        let flows = slot.flows.map_or(String::new(), |flows| {
            format!(" ({})", counted(flows as usize, "flow"))
        });
        let name = shown.name(slot.id);
        page.note(format!(
            "{name}: the tester alone once more, with frames of another kind{flows}."
        ));
    }
}

/// The rate of the tester alone, the share of it, and its interval.
fn beside_ceiling<'a>(table: Rows<&'a Row>, shown: &Shown<'_>) -> Rows<&'a Row> {
    let ratio = |r: &&Row| r.ceiling.and_then(|ceiling| ceiling.ratio);
    table
        .rate("tester", shown.unit(), |r| shown.rate(r.ceiling?.than))
        .column("% of", "tester", |r| ratio(r).map(|r| share(r.median)))
        .optional("95 %", "interval", |r| {
            let ratio = ratio(r)?;
            let (low, high) = (100.0 * ratio.low?, 100.0 * ratio.high?);
            Some(Cell::range(low, high, interval(&ratio, 0.01, 3)?))
        })
}

fn against_baseline<'a>(table: Rows<&'a Row>, shown: &Shown<'_>) -> Rows<&'a Row> {
    let ratio = |r: &&Row| r.baseline.and_then(|b| b.ratio);
    table
        .column("against", "cell", |r| Some(r.baseline?.than + 1))
        .column("change", "%", |r| Some(change(&ratio(r)?)))
        .column("95 %", "interval", |r| change_interval(&ratio(r)?))
        .column("differ-", "ence", |r| match &r.baseline {
            Some(b) => verdict(b.ratio.as_ref(), b.proven, drops_more(shown, r, b)),
            None => "",
        })
}

/// Shares of dropped frames that differ by less are the same on a page.
const SAME_SHARE: f64 = 0.0005;

/// Whether a cell drops more frames than the other; `None` where that makes no difference, or both drop the same share.
fn drops_more(shown: &Shown<'_>, row: &Row, against: &Against) -> Option<bool> {
    let other = shown.row(against.than)?.dropped;
    let differ = (row.dropped - other).abs() >= SAME_SHARE;
    against.cost.filter(|_| differ).map(|_| row.dropped > other)
}

/// Setup, A, B, ministat: a table of the variants, and one for each factor that is not shown as a series.
pub fn papers(page: &mut Document, shown: &Shown<'_>) {
    let factors = 0..shown.planned.experiment.factors.len();
    let swept = |factor: &usize| shown.series().any(|s| s.factor == *factor);
    let mut notes: Vec<Disagreement> = Vec::new();
    for why in std::iter::once(Interest::Variants)
        .chain(factors.filter(|f| !swept(f)).map(Interest::Levels))
    {
        let known = |c: &&Compared| {
            c.why == why && shown.rate(c.of).is_some() && shown.rate(c.against.than).is_some()
        };
        let rows: Vec<&Compared> = shown.summary.comparisons.iter().filter(known).collect();
        if !rows.is_empty() {
            paper(page, shown, why, &rows);
            notes.extend(rows.iter().filter_map(|c| c.disagreement));
        }
    }
    notes.sort();
    notes.dedup();
    for note in notes {
        let (mark, text) = footnote(note);
        page.item(&format!("{mark} "), text, Tone::Note);
    }
}

fn paper(page: &mut Document, shown: &Shown<'_>, why: Interest, rows: &[&Compared]) {
    let unit = shown.unit();
    let (slots, experiment) = (&shown.campaign.slots, &shown.planned.experiment);
    let factor = match why {
        Interest::Levels(factor) => Some(factor),
        _ => None,
    };
    let title = factor
        .and_then(|f| experiment.factors.get(f))
        .map_or("variants".to_string(), |f| format!("factor {}", f.name));
    // The name of one side.
    let side = |cell: usize| -> String {
        let Some(slot) = slots.get(cell) else {
            return String::new();
        };
        match slot.levels.iter().find(|(f, _)| factor == Some(*f)) {
            Some(level) => experiment.level(*level),
            None => slot.plan_variant.clone(),
        }
    };
    let b = side(rows[0].of);
    let same_b = rows.iter().all(|c| side(c.of) == b);
    // Levels that both sides share; with B's own part, unless the column's heading has it.
    let setup = |c: &&&Compared| -> String {
        let Some(slot) = slots.get(c.of).filter(|_| same_b) else {
            return shown.name(c.of);
        };
        if factor.is_some() {
            return shown.shortened(&experiment.name_without(
                &slot.plan_variant,
                &slot.levels,
                factor,
            ));
        }
        let levels: Vec<String> = slot
            .levels
            .iter()
            .map(|level| experiment.level(*level))
            .collect();
        if levels.is_empty() {
            experiment.system.to_string()
        } else {
            levels.join(", ")
        }
    };
    let table = Table::of(rows)
        .column("compared", "in", setup)
        .rate(&side(rows[0].against.than), unit, |c| {
            shown.rate(c.against.than)
        })
        .rate(if same_b { &b } else { "the other" }, unit, |c| {
            shown.rate(c.of)
        })
        .column("ministat", "", |c| ministat(shown, c));
    page.section(format!("Compared by ministat: {title}"), table);
}

/// As ministat words it, behind it the mark of a footnote.
fn ministat(shown: &Shown<'_>, c: &Compared) -> Cell {
    let mark = c
        .disagreement
        .map_or(String::new(), |d| format!(" {}", footnote(d).0));
    match &c.ministat {
        // A rate of 0 has no noise to compare.
        _ if [c.of, c.against.than]
            .iter()
            .any(|cell| shown.rate(*cell) == Some(0.0)) =>
        {
            "no frame passed".into()
        }
        None => "too few trials".into(),
        Some(Ministat { proven: false, .. }) => Cell::Long {
            text: format!("No difference proven at 95.0% confidence{mark}"),
            short: format!("not proven{mark}"),
        },
        Some(m) => format!("{:.2}% +/- {:.2}%{mark}", m.percent, m.percent_error).into(),
    }
}

/// The mark of a footnote, and its text.
fn footnote(disagreement: Disagreement) -> (&'static str, &'static str) {
    match disagreement {
        Disagreement::OnlyPairs => (
            "(a)",
            "ministat holds the averages of the two sets against each other, and the machine's drift is in both. The ratios of trials of one block, moments apart, prove the difference (table of cells).",
        ),
        Disagreement::OnlyMinistat => (
            "(b)",
            "ministat takes the trials for independent and normally distributed. The interval of the ratios paired by block assumes neither, and stays valid although linerate looked at the results several times. It includes 0 %: believe this interval.",
        ),
        Disagreement::Opposite => (
            "(c)",
            "ministat and the ratios paired by block prove opposite differences: the machine's drift is in ministat's averages, so believe the ratios (table of cells).",
        ),
    }
}

/// Each series as a table.
pub fn series(page: &mut Document, shown: &Shown<'_>) {
    for series in shown.series() {
        let Some(factor) = shown.planned.experiment.factors.get(series.factor) else {
            continue;
        };
        if series.points.iter().any(|p| shown.rate(p.cell).is_some()) {
            let heading = format!("{} over {}", shown.shortened(&series.name), factor.name);
            page.section(heading, sweep(shown, series, &factor.name));
        }
    }
}

fn sweep<'a>(shown: &Shown<'_>, series: &'a Series, factor: &str) -> Rows<&'a Point> {
    let unit = shown.unit();
    let most = series
        .points
        .iter()
        .filter_map(|p| shown.rate(p.cell))
        .fold(0.0, f64::max);
    let first = series.points.first().map_or("", |p| p.level.as_str());
    let estimate = |p: &&Point| {
        shown
            .row(p.cell)
            .map_or(Estimate::default(), |r| r.received)
    };
    let ceiling = |p: &&Point| {
        shown
            .rate(shown.row(p.cell)?.ceiling?.than)
            .filter(|c| *c > 0.0 && !simulated(shown.campaign))
    };
    Table::of(&series.points)
        .column(factor, "", |p| p.level.as_str())
        .column("rate", unit.name, |p| unit.median(&estimate(p)))
        .column("95 %", "interval", |p| {
            let rate = estimate(p);
            (rate.n > 0).then(|| unit.interval(&rate))
        })
        .when(shown.loses(), |table| {
            table.column("lost", "%", |p| shown.lost(p.cell))
        })
        .column(&format!("against {first}"), "%", |p| {
            p.to_first.as_ref().map(change)
        })
        .column("95 %", "interval", |p| {
            p.to_first.as_ref().and_then(change_interval)
        })
        .if_any("tester", "alone", |p| {
            Some(rate(ceiling(p)?, unit.scale, 4))
        })
        .if_any("% of", "tester", |p| {
            // As in the table of cells: of ratios paired by block.
            let paired = shown.row(p.cell)?.ceiling?.ratio?;
            ceiling(p).map(|_| share(paired.median))
        })
        .optional("", "rate", |p| Cell::Bar {
            share: shown.rate(p.cell).filter(|_| most > 0.0).unwrap_or(0.0) / most,
        })
}

/// One core, all cores, speed-up: as "Measure Twice, Code Once" prints it.
pub fn speed_ups(page: &mut Document, shown: &Shown<'_>) {
    let of_cpus = |s: &&Series| {
        shown
            .planned
            .experiment
            .factors
            .get(s.factor)
            .is_some_and(Factor::sets_cpus)
    };
    let all = shown.summary.series.iter().filter(of_cpus);
    let ups: Vec<_> = all
        .filter_map(|series| Some((series, series.points.first()?)))
        .flat_map(|(series, first)| {
            series
                .points
                .iter()
                .filter_map(move |to| Some((series, first, to, to.to_first.as_ref()?)))
        })
        .collect();
    if ups.is_empty() {
        return;
    }
    let unit = shown.unit();
    let table = Table::of(ups)
        .column("setup", "", |(series, ..)| shown.shortened(&series.name))
        .column("CPUs", "", |(_, from, ..)| from.level.as_str())
        .rate("rate", unit, |(_, from, ..)| shown.rate(from.cell))
        .column("CPUs", "", |(_, _, to, _)| to.level.as_str())
        .rate("rate", unit, |(_, _, to, _)| shown.rate(to.cell))
        .column("speed-up", "", |(.., ratio)| number(ratio.median, 3))
        .column("95 %", "interval", |(.., ratio)| {
            rate_interval(ratio, 1.0, 3)
        });
    page.section("Speed-up by more CPUs", table);
    page.note("The median of the ratios paired by block.");
}

/// Most pairs that are listed one by one.
const MOST: usize = 6;

/// Judgements of expectations, and their names.
pub const JUDGEMENTS: [(Option<Judgement>, &str); 4] = [
    (Some(Judgement::Met), "met"),
    (Some(Judgement::Missed), "missed"),
    (Some(Judgement::Undecided), "undecided"),
    (None, "not judged"),
];

/// The name of a judgement, which shouts where something was missed.
pub fn judged(judgement: Option<Judgement>) -> String {
    let name = JUDGEMENTS
        .iter()
        .find(|(known, _)| *known == judgement)
        .map_or("", |(_, name)| name);
    if judgement == Some(Judgement::Missed) {
        name.to_uppercase()
    } else {
        name.into()
    }
}

/// One item for each expectation, with the pairs that decide it.
pub fn expectations(page: &mut Document, shown: &Shown<'_>) {
    page.each(
        "What was expected",
        &shown.summary.expectations,
        |page, expected| {
            let tone = match expected.judgement {
                Some(Judgement::Missed) => Tone::Warning,
                Some(_) => Tone::Plain,
                None => Tone::Note,
            };
            let mark = format!("{:<12}", judged(expected.judgement));
            page.item(
                &mark,
                format!("{}, because {}", expected.words, expected.because),
                tone,
            );
            page.items("            ", decisive(shown, expected), tone, (MOST, ""));
            for reason in &expected.reasons {
                let partly = when(expected.judgement.is_some(), "not judged for all: ");
                page.item("            ", format!("{partly}{reason}"), Tone::Note);
            }
        },
    );
}

/// The pairs that decide an expectation, with their figures.
pub fn decisive(shown: &Shown<'_>, expected: &Expected) -> Vec<String> {
    let decides = |p: &&JudgedPair| p.judgement.is_some() && p.judgement == expected.judgement;
    expected
        .pairs
        .iter()
        .filter(decides)
        .map(|pair| told(shown, pair, expected.claim))
        .collect()
}

fn told(shown: &Shown<'_>, pair: &JudgedPair, claim: Claim) -> String {
    let of = shown.name(pair.of);
    match (pair.than, &pair.estimate) {
        (_, None) => format!("{of}: not measured"),
        (Some(than), Some(ratio)) => {
            format!(
                "{of} against {}: {}",
                shown.name(than),
                change_with_interval(ratio)
            )
        }
        (None, Some(share)) if claim.is_of_share() => {
            format!("{of}: {} % pass", percent(share.median))
        }
        (None, Some(rate)) => {
            let figure = rate_words(rate.median, digits(rate));
            format!("{of}: {figure} frames a second ({})", certainty(rate))
        }
    }
}
