//! Which element of an ordered list made it slower.

use super::changes::{change, change_interval, sentence};
use super::shown::Shown;
use crate::prelude::*;
use linerate_measure::record::{Bisected, BisectionVerdict, Element};

/// The answer, then the further steps.
pub fn sentences(shown: &Shown<'_>, found: &Bisected) -> Vec<String> {
    let name = |slot: usize| label(shown, found, slot);
    let ends = || {
        let asked = || found.elements.iter().filter(|element| element.trials > 0);
        let measured = |element: &&Element| {
            shown
                .row(element.slot)
                .is_some_and(|row| row.received.n > 0)
        };
        let ends = asked().find(measured).zip(asked().rfind(measured));
        let (ratio, (good, bad)) = found.ends.zip(ends)?;
        let proven = ratio.side_of(1.0).is_some();
        Some(sentence(&name(bad.slot), &name(good.slot), &ratio, proven))
    };
    let ends = ends().unwrap_or("No block has a valid trial of both ends".into());
    let culprit = found.culprit.as_ref();
    let answer = match (found.verdict, culprit) {
        (BisectionVerdict::Found, Some(culprit)) => {
            let [of, than] = [culprit.slot, culprit.after].map(name);
            let between: Vec<String> = culprit.between.iter().map(|slot| name(*slot)).collect();
            let between = match between.len() {
                0 => String::new(),
                _ => format!(
                    ", or with {} before it, which could not be measured",
                    listed(&between)
                ),
            };
            let step = culprit
                .ratio
                .map(|ratio| sentence(&of, &than, &ratio, true));
            format!(
                "{}. The list became slower with {of}{between}: probability {}.",
                step.unwrap_or_default(),
                chance(culprit.probability)
            )
        }
        (BisectionVerdict::Faster, _) => format!(
            "{ends}. So nothing became slower. To find what made it faster, name the list in the opposite order."
        ),
        (BisectionVerdict::NothingToCompare, _) => {
            "Fewer than two elements of the list could be measured.".into()
        }
        (_, Some(culprit)) => format!(
            "{ends}. With which element it became slower is undecided; the most probable one is {}, with {}.",
            name(culprit.slot),
            chance(culprit.probability)
        ),
        _ => format!("{ends}."),
    };
    let further = found.second.iter().map(|step| {
        let [of, than] = [step.until, step.after].map(name);
        let what = sentence(&of, &than, &step.ratio, true);
        format!("A further step: {what}. It is behind {than}, and not behind {of}.")
    });
    [answer].into_iter().chain(further).collect()
}

/// The answer in a few words.
pub fn in_short(campaign: &Campaign, found: &Bisected) -> String {
    let Some(planned) = campaign.planned.as_deref() else {
        return "no figure".into();
    };
    let level = |slot: usize| {
        let levels = &campaign.slots.get(slot)?.levels;
        let (_, level) = levels.iter().find(|(factor, _)| *factor == found.factor)?;
        planned
            .experiment
            .factors
            .get(found.factor)?
            .levels
            .get(*level)
    };
    let culprit = found
        .culprit
        .as_ref()
        .and_then(|culprit| level(culprit.slot));
    match (found.verdict, culprit) {
        (BisectionVerdict::Found, Some(level)) => format!("slower from {level} on"),
        (BisectionVerdict::Faster, _) => "nothing became slower".into(),
        _ => "undecided".into(),
    }
}

/// The answer, and the table of the elements that took trials.
pub fn section(page: &mut Document, shown: &Shown<'_>, found: &Bisected) {
    for sentence in sentences(shown, found) {
        page.answer(sentence);
    }
    page.section("What was measured of the list", table(shown, found));
    page.note("In each block, elements are compared with the first one. The probability is that of having made the list slower. The intervals hold at every moment at which somebody may look (docs/bisect.md).");
}

/// The elements that took trials.
pub fn table<'a>(shown: &Shown<'a>, found: &'a Bisected) -> Rows<&'a Element> {
    let measured = found.elements.iter().filter(|element| element.trials > 0);
    let first = found.elements.iter().find(|element| element.trials > 0);
    let last = found.elements.iter().rfind(|element| element.trials > 0);
    let is_end = |element: &Element| {
        [first, last]
            .into_iter()
            .flatten()
            .any(|end| end.slot == element.slot)
    };
    let culprit = found
        .culprit
        .as_ref()
        .filter(|_| found.verdict == BisectionVerdict::Found);
    Table::of(measured)
        .column("", "", |element| label(shown, found, element.slot))
        .column("trials", "", |element| element.trials)
        .column("change", "%", |element| element.ratio.as_ref().map(change))
        .column("95 %", "interval", |element| {
            match (&element.ratio, first) {
                (Some(ratio), _) => change_interval(ratio).unwrap_or("too few".into()),
                (None, Some(first)) if first.slot == element.slot => Cell::Nothing,
                (None, _) => "no valid trial".into(),
            }
        })
        .column("side", "", |element| match element.slow {
            _ if culprit.is_some_and(|culprit| culprit.slot == element.slot) => "culprit",
            _ if is_end(element) => "end",
            Some(true) => "slow",
            Some(false) => "good",
            None => "not known",
        })
        .if_any("probability", "%", |element| {
            (element.probability >= 0.0005).then(|| fixed(100.0 * element.probability, 1))
        })
}

/// An element's level. Files of one folder are named without it.
fn label(shown: &Shown<'_>, found: &Bisected, slot: usize) -> String {
    let factor = shown.planned.experiment.factors.get(found.factor);
    let all = factor
        .map(|factor| factor.levels.as_slice())
        .unwrap_or_default();
    let own = shown
        .slot(slot)
        .map(|slot| slot.levels.as_slice())
        .unwrap_or_default();
    let own = own.iter().find(|(factor, _)| *factor == found.factor);
    let Some(label) = own.and_then(|(_, level)| all.get(*level)) else {
        return shown.name(slot);
    };
    let folder = |label: &str| label.rfind('/').map(|end| label[..=end].to_owned());
    let shared =
        folder(label).filter(|own| all.iter().all(|other| folder(other).as_ref() == Some(own)));
    label[shared.map_or(0, |folder| folder.len())..].into()
}

/// A probability: `98.3 %`.
fn chance(probability: f64) -> String {
    match probability {
        p if p > 0.9995 => "above 99.9 %".into(),
        p => format!("{:.1} %", 100.0 * p),
    }
}
