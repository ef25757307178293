//! The comparisons in sentences, and the names of both sides.

use super::Shown;
use super::changes::{dropping, sentence};
use super::flood;
use crate::prelude::*;
use linerate_measure::experiment::{Factor, Interest};
use linerate_measure::record::{Compared, Series, States};

/// The levels of a slot that are wanted, of factors with several: `rules 1000 and cores 1`.
pub fn named(
    shown: &Shown<'_>,
    slot: &Slot,
    wanted: impl Fn(&(usize, usize), &Factor) -> bool,
) -> String {
    let factors = &shown.planned.experiment.factors;
    let named = slot.levels.iter().filter_map(|level| {
        let factor = factors
            .get(level.0)
            .filter(|f| f.levels.len() > 1 && wanted(level, f))?;
        let value = factor.levels.get(level.1)?;
        if let Some(told) = flood::level(factor, value) {
            return Some(told);
        }
        let alone = factor.sets.iter().all(|set| set == "traffic.family");
        Some(when(!alone, format!("{} ", factor.name)) + value)
    });
    named.joined(" and ")
}

/// The comparisons: variants first, then the result of each sweep, then other factors.
pub fn compared(shown: &Shown<'_>) -> Vec<String> {
    let series: Vec<&Series> = shown.series().collect();
    let known = |c: &&Compared| {
        c.against.cost.is_some() || c.against.ratio.is_some_and(|r| r.low.is_some())
    };
    let other_factor = |why: Interest| matches!(why, Interest::Levels(factor) if !series.iter().any(|s| s.factor == factor));
    let told = |wanted: &dyn Fn(Interest) -> bool| -> Vec<String> {
        let wanted = shown
            .summary
            .comparisons
            .iter()
            .filter(known)
            .filter(|c| wanted(c.why));
        let (open, decided): (Vec<_>, Vec<_>) = wanted.partition(|c| is_open(c));
        let rest = undecided(shown, &open, !decided.is_empty());
        let decided = decided.into_iter().filter_map(|c| told(shown, c));
        decided.chain(rest).collect()
    };
    let of_flood = flood::interest(shown);
    let mut out = told(&|why| Some(why) == of_flood);
    out.extend(told(&|why| why == Interest::Variants));
    out.extend(opening(shown));
    let series = series
        .iter()
        .filter(|s| Some(Interest::Levels(s.factor)) != of_flood);
    out.extend(series.filter_map(|s| swept(shown, s)));
    out.extend(told(&|why| other_factor(why) && Some(why) != of_flood));
    out
}

/// The variants whose flows are new connections, where those of others are known.
fn opening(shown: &Shown<'_>) -> Option<String> {
    let rows = || {
        shown
            .rows()
            .filter_map(|row| Some((row, row.connections?.states)))
    };
    let new = rows().filter(|(_, states)| *states == States::New);
    let name = |row: &Row| Some(shown.slot(row.slot)?.plan_variant.clone());
    let mut names: Vec<String> = new.filter_map(|(row, _)| name(row)).collect();
    names.dedup();
    let others = rows().any(|(_, states)| states != States::New);
    (others && !names.is_empty())
        .then(|| format!("In {}, each frame opens a connection.", listed(&names)))
}

/// The reference of a row's change, by what it does not share with the row: its variant, or its levels.
pub fn reference(shown: &Shown<'_>, row: &Row) -> Option<String> {
    let slots = &shown.campaign.slots;
    let than = row
        .baseline
        .filter(|baseline| baseline.ratio.is_some())?
        .than;
    let (of, than) = (slots.get(row.slot)?, slots.get(than)?);
    Some(if of.plan_variant == than.plan_variant {
        named(shown, than, |level, _| !of.levels.contains(level))
    } else {
        than.plan_variant.clone()
    })
}

/// Whether its interval shows no difference.
fn is_open(c: &Compared) -> bool {
    c.against.cost.is_none() && !c.against.proven
}

/// Comparisons that show no difference: one line for all with the same words for their reference. `beside`: others show one.
fn undecided(shown: &Shown<'_>, open: &[&Compared], beside: bool) -> Vec<String> {
    let named = open.iter().filter_map(|c| {
        let [of, than, common] = sides(shown, c)?;
        let with = when(!common.is_empty(), format!(" with {common}"));
        Some((than, (of + &with, *c)))
    });
    let line = |(than, of): &(String, Vec<(String, &Compared)>)| match &of[..] {
        [(_, alone)] => told(shown, alone),
        several => {
            let names: Vec<String> = several.iter().map(|(of, _)| of.clone()).collect();
            Some(format!(
                "No difference from {} is shown for {}{}: {}.",
                than.trim_start_matches("with "),
                names.len(),
                when(beside, " others"),
                listed(&names)
            ))
        }
    };
    together(named).iter().filter_map(line).collect()
}

/// A comparison.
fn told(shown: &Shown<'_>, c: &Compared) -> Option<String> {
    let [of, than, common] = sides(shown, c)?;
    let text = pair(shown, c, &of, &than)?;
    Some(when(!common.is_empty(), common + ": ") + &text)
}

/// The sides of a comparison, and the levels that both share; factors with a single level are omitted.
fn sides(shown: &Shown<'_>, c: &Compared) -> Option<[String; 3]> {
    let slots = &shown.campaign.slots;
    let (of, than) = (slots.get(c.of)?, slots.get(c.against.than)?);
    let both = |level: &(usize, usize)| [of, than].iter().all(|slot| slot.levels.contains(level));
    let with = |variant: &str, slot: &Slot| {
        let levels = named(shown, slot, |level, _| !both(level));
        match (variant, levels.as_str()) {
            (_, "") => variant.to_string(),
            ("", _) => format!("with {levels}"),
            _ => format!("{variant} with {levels}"),
        }
    };
    let same_variant = of.plan_variant == than.plan_variant;
    let one = same_variant && shown.campaign.variants().len() == 1;
    let [of_words, than_words] = if one {
        [of, than].map(|slot| named(shown, slot, |level, _| !both(level)))
    } else {
        let than_variant = when(!same_variant, than.plan_variant.as_str());
        [with(&of.plan_variant, of), with(than_variant, than)]
    };
    Some([
        of_words,
        than_words,
        named(shown, of, |level, _| both(level)),
    ])
}

/// A comparison of two named cells. It distinguishes drops from a slower rate.
fn pair(shown: &Shown<'_>, c: &Compared, of: &str, than: &str) -> Option<String> {
    Some(match c.against.cost {
        Some(cost) => {
            let (left, right) = ((of, shown.row(c.of)?), (than, shown.row(c.against.than)?));
            dropping(
                left,
                right,
                &cost,
                (shown.campaign.asked.mode, shown.noun()),
            ) + "."
        }
        None => sentence(of, than, &c.against.ratio?, c.against.proven) + ".",
    })
}

/// The level of a sweep that is the farthest from the first.
fn swept(shown: &Shown<'_>, series: &Series) -> Option<String> {
    let distance = |e: &Estimate| e.median.max(f64::MIN_POSITIVE).ln().abs();
    let known = series
        .points
        .iter()
        .filter_map(|p| Some((p, p.to_first.filter(|r| r.low.is_some())?)));
    let (point, _) = known.max_by(|a, b| distance(&a.1).total_cmp(&distance(&b.1)))?;
    let first = series.points.first()?;
    let factor = shown
        .planned
        .experiment
        .factors
        .get(series.factor)
        .map_or("level", |f| &f.name);
    let name = shown.shortened(&series.name);
    let (of, than) = (
        format!("{name} with {factor} {}", point.level),
        format!("with {factor} {}", first.level),
    );
    let of_these = |c: &&Compared| (c.of, c.against.than) == (point.cell, first.cell);
    match shown.summary.comparisons.iter().find(of_these) {
        Some(c) if c.against.proven || c.against.cost.is_some() => pair(shown, c, &of, &than),
        _ => Some(format!(
            "{name}: no difference from {factor} {} is decided.",
            first.level
        )),
    }
}
