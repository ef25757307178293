//! The answer in a few sentences: what differs from what, by how much, and whether that is what was expected.

use super::super::names::listed;
use super::super::numbers::{digits, in_words, interval, words as rate_words};
use super::Shown;
use super::sweeps::is_shown;
use super::words::{dropping, sentence};
use crate::document::{Document, Tone};
use linerate_measure::results::{Compared, Series};
use linerate_plan::campaign::{Cell, Interest};
use linerate_plan::judge::Judgement;
use linerate_stats::Estimate;

/// Sentences at most: what is more stands in the tables.
const MOST: usize = 8;

/// Wider intervals are no basis for a claim, where the plan says nothing else.
const NARROW: f64 = 0.02;

/// The sentences.
pub fn answer(page: &mut Document, shown: &Shown<'_>) {
    let mut sentences = sentences(shown);
    let unknown = unknown(shown);
    let more = sentences.len().saturating_sub(MOST);
    sentences.truncate(MOST);
    if sentences.is_empty() && unknown.is_none() {
        sentences.push(rates_alone(shown));
    }
    super::super::answer::unmeasured(page, shown.summary, |cell| shown.name(cell));
    if !shown.results.skipped.is_empty() {
        let cells = shown.results.skipped.iter().flat_map(|group| &group.cells);
        let names: Vec<String> = cells.map(|cell| shown.name(*cell)).collect();
        page.paragraph(
            &format!("Not measured here, for the reasons below: {}.", listed(&names)),
            Tone::Plain,
        );
    }
    for sentence in &sentences {
        page.paragraph(sentence, Tone::Strong);
    }
    if more > 0 {
        page.paragraph(&format!("{more} more comparisons are in the tables."), Tone::Plain);
    }
    if let Some(text) = unknown {
        page.paragraph(&text, Tone::Strong);
    }
    if let Some((text, ink)) = tally(shown) {
        page.paragraph(&text, ink);
    }
    if let Some(text) = quick(shown) {
        page.paragraph(&text, Tone::Warning);
    }
}

/// What is known too little for an interval, together.
fn unknown(shown: &Shown<'_>) -> Option<String> {
    let open = |c: &&Compared| c.ratio.is_some_and(|r| r.low.is_none());
    match shown.results.comparisons.iter().filter(open).count() {
        0 => None,
        1 => Some("Too few blocks for an interval of 1 comparison: nothing is shown of it yet.".into()),
        n => Some(format!("Too few blocks for intervals of {n} comparisons: nothing is shown of them yet.")),
    }
}

/// Variants first, then what each sweep came to, then factors with two levels.
fn sentences(shown: &Shown<'_>) -> Vec<String> {
    let of =
        |wanted: fn(Interest) -> bool| {
            shown.results.comparisons.iter().filter(move |c| {
                wanted(c.why) && (c.cost.is_some() || c.ratio.is_some_and(|r| r.low.is_some()))
            })
        };
    let one = |c: &Compared| told(shown, c);
    let series: Vec<&Series> = shown.results.series.iter().filter(|s| is_shown(shown, s)).collect();
    let in_series = |c: &&Compared| series.iter().any(|s| c.why == Interest::Levels(s.factor));
    let mut out: Vec<String> = of(|why| why == Interest::Variants).filter_map(one).collect();
    out.extend(series.iter().filter_map(|s| swept(shown, s)));
    out.extend(of(|why| matches!(why, Interest::Levels(_))).filter(|c| !in_series(c)).filter_map(one));
    out
}

/// A comparison, with what is the same on both sides named once, or not at all where it has one level only.
fn told(shown: &Shown<'_>, c: &Compared) -> Option<String> {
    let plan = &shown.planned.plan;
    let (of, than) = (plan.cells.get(c.of)?, plan.cells.get(c.than)?);
    let levels = |of_cell: &Cell, in_both: bool| -> String {
        let told = of_cell.levels.iter().filter(|level| {
            (of.levels.contains(level) && than.levels.contains(level)) == in_both
                && plan.factors.get(level.0).is_some_and(|f| f.levels.len() > 1)
        });
        let words = told.filter_map(|(f, l)| {
            let factor = plan.factors.get(*f)?;
            Some(format!("{} {}", factor.name, factor.levels.get(*l)?))
        });
        words.collect::<Vec<_>>().join(" and ")
    };
    let with = |variant: &str, levels: String| {
        let parts = [variant.to_string(), if levels.is_empty() { levels } else { format!("with {levels}") }];
        parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let same = of.variant == than.variant;
    let than_variant = if same { "" } else { &than.variant };
    let (left, right) = (with(&of.variant, levels(of, false)), with(than_variant, levels(than, false)));
    let text = pair(shown, c, &left, &right)?;
    let common = levels(of, true);
    Some(if common.is_empty() { text } else { format!("{common}: {text}") })
}

/// A comparison of two that are called so. One that drops frames is told from one that is slower.
fn pair(shown: &Shown<'_>, c: &Compared, of: &str, than: &str) -> Option<String> {
    match c.cost {
        Some(cost) => {
            let (left, right) = ((of, shown.row(c.of)?), (than, shown.row(c.than)?));
            Some(dropping(left, right, &cost, shown.campaign.asked.mode) + ".")
        }
        None => Some(sentence(of, than, &c.ratio?, c.proven) + "."),
    }
}

/// The level of a sweep that is the farthest from the first.
fn swept(shown: &Shown<'_>, series: &Series) -> Option<String> {
    let distance = |e: &Estimate| e.median.max(f64::MIN_POSITIVE).ln().abs();
    let known = series.points.iter().filter_map(|p| Some((p, p.to_first.filter(|r| r.low.is_some())?)));
    let (point, _) = known.max_by(|a, b| distance(&a.1).total_cmp(&distance(&b.1)))?;
    let first = series.points.first()?;
    let factor = shown.planned.plan.factors.get(series.factor).map_or("level", |f| &f.name);
    let name = shown.shortened(&series.name);
    let of = format!("{name} with {factor} {}", point.level);
    let than = format!("with {factor} {}", first.level);
    let compared = shown.results.comparisons.iter().find(|c| (c.of, c.than) == (point.cell, first.cell));
    if let Some(c) = compared.filter(|c| c.proven || c.cost.is_some()) {
        return pair(shown, c, &of, &than);
    }
    Some(format!("No difference is shown between {name} {than} and with any other."))
}

/// Where nothing is compared: the rates, or why there are none.
fn rates_alone(shown: &Shown<'_>) -> String {
    let cells = || shown.results.cells.iter();
    let trials: usize = cells().map(|c| c.trials).sum();
    let Some(cell) = cells().find(|c| c.rate.n > 0 && c.ceiling.is_some()).or(cells().find(|c| c.rate.n > 0))
    else {
        return match trials {
            0 => "No trial was run, so there is no figure.".into(),
            _ => "No valid trial, so no figure.".into(),
        };
    };
    let (scale, unit) = in_words(cell.rate.median);
    let known = interval(&cell.rate, scale, digits(&cell.rate))
        .map_or("too few trials for an interval".into(), |i| format!("95 % interval {i}{unit}"));
    format!(
        "{} passes {} frames a second ({known}).",
        cell.name,
        rate_words(cell.rate.median, digits(&cell.rate))
    )
}

/// How many expectations came true.
fn tally(shown: &Shown<'_>) -> Option<(String, Tone)> {
    let all = &shown.results.expectations;
    let count = |wanted: Option<Judgement>| all.iter().filter(|e| e.judgement == wanted).count();
    let missed = count(Some(Judgement::Missed));
    let parts = [
        (count(Some(Judgement::Met)), "met"),
        (missed, "MISSED"),
        (count(Some(Judgement::Undecided)), "undecided"),
        (count(None), "not judged"),
    ];
    let told: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let ink = if missed > 0 { Tone::Warning } else { Tone::Plain };
    (!told.is_empty()).then(|| (format!("What the plan's author expects: {}.", told.join(", ")), ink))
}

/// What the quick form is worth.
fn quick(shown: &Shown<'_>) -> Option<String> {
    let plan = &shown.planned.plan;
    if !plan.quick {
        return None;
    }
    let wide = plan.trials.until.unwrap_or(NARROW);
    let known: Vec<&Estimate> = shown.results.comparisons.iter().filter_map(|c| c.ratio.as_ref()).collect();
    let open = known.iter().filter(|r| r.relative_width() >= wide).count();
    let claim = match open {
        0 => String::new(),
        n => format!(
            " {n} of its {} ratios are not known to within {} %: for a look, no basis for a claim.",
            known.len(),
            100.0 * wide
        ),
    };
    Some(format!("This is the quick form: short trials and few of them.{claim}"))
}
