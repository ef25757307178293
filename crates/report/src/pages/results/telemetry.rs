//! Observations of the DUT's kernel in trials beside the others: dropped frames, times in the stack, waits for locks.

use super::super::kernel::{
    Stage, WAITS, distribution, drop_of, followed, powers, stages, waiting,
};
use super::profiles::beside;
use super::shown::Shown;
use crate::prelude::*;
use linerate_measure::record::{Events, SlotProfile, Staged};

/// Functions and drops of a cell that are shown.
const MOST: usize = 6;
/// Nanoseconds of a frame that are not worth a table: timers and daemons wait for locks, too.
const LITTLE: f64 = 1.0;
/// Cells whose distribution is drawn.
const DRAWN: usize = 3;

/// Sections for the cells that were looked at.
pub fn telemetry(page: &mut Document, shown: &Shown<'_>) {
    let all = &shown.summary.profiles;
    drops(page, all);
    stack(page, shown, all);
    locks(page, shown, all);
    let missing = together(
        all.iter()
            .flat_map(|of| of.missing.iter().map(|why| (why, of.slot))),
    );
    let missing = missing
        .into_iter()
        .map(|(why, slots)| format!("{}: {why}", cells(&slots)));
    page.entries("Not looked at", missing);
}

/// `cell 2`, `cells 1, 2, 3`.
fn cells(slots: &[usize]) -> String {
    let numbers: Vec<String> = slots.iter().map(|slot| (slot + 1).to_string()).collect();
    format!(
        "cell{} {}",
        when(numbers.len() != 1, "s"),
        numbers.join(", ")
    )
}

/// The events of cells that were looked at.
fn events(all: &[SlotProfile]) -> Vec<(usize, &Events)> {
    all.iter()
        .filter_map(|profile| Some((profile.slot, profile.events.as_ref()?)))
        .collect()
}

fn drops(page: &mut Document, all: &[SlotProfile]) {
    let rows = events(all).into_iter().flat_map(|(slot, events)| {
        let mut drops: Vec<(&String, u64)> = events
            .drops
            .iter()
            .map(|(name, frames)| (name, *frames))
            .collect();
        drops.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        drops
            .into_iter()
            .take(MOST)
            .map(move |(name, frames)| (slot, events.sent, drop_of(name), frames))
    });
    let rows = Table::of(rows)
        .column("cell", "", |(slot, ..)| slot + 1)
        .column("the kernel's reason", "", |(.., (reason, _), _)| *reason)
        .column("function", "", |(.., (_, function), _)| *function)
        .column("frames", "", |(.., frames)| count(*frames))
        .column("of those", "sent, %", |(_, sent, _, frames)| {
            share(*frames as f64 / (*sent).max(1) as f64)
        });
    page.section("Frames that the kernel dropped", rows);
}

fn stack(page: &mut Document, shown: &Shown<'_>, all: &[SlotProfile]) {
    let staged: Vec<(usize, &Staged)> = all
        .iter()
        .filter_map(|p| Some((p.slot, p.stages.as_ref()?)))
        .collect();
    let passed: Vec<(usize, &Staged)> = staged
        .iter()
        .copied()
        .filter(|(_, staged)| staged.times.whole.count() > 0)
        .collect();
    let none = staged
        .iter()
        .filter(|(_, staged)| staged.times.whole.count() == 0);
    let none: Vec<usize> = none.map(|(slot, _)| *slot).collect();
    if staged.is_empty() {
        return;
    }
    page.heading("How long frames are in the stack");
    if !none.is_empty() {
        page.say(format!(
            "No frame passed the stack of {}: they go another way, or are dropped.",
            cells(&none)
        ));
    }
    let mut rates = Vec::new();
    let mut lines = Vec::new();
    for (slot, staged) in &passed {
        if let Some(rate) = staged.received {
            let at_once = staged.times.whole.mean().unwrap_or(0.0) * rate / 1e9;
            page.say(format!(
                "{}: half of the frames are in the stack for at most {}. One leaves every {}, so {} are in it at once.",
                shown.name(*slot),
                time(staged.times.whole.quantile(0.5).unwrap_or(0) as f64),
                time(1e9 / rate),
                significant(at_once, 2)
            ));
        }
        for stage in Stage::all(&staged.times) {
            lines.push((format!("{:>2} ", slot + 1), stage));
            rates.push(staged.received);
        }
    }
    if lines.is_empty() {
        return;
    }
    page.table(stages(lines, |line| rates.get(line).copied().flatten()));
    for (slot, staged) in passed.iter().rev().take(DRAWN).rev() {
        page.gap();
        page.say(format!("Nanoseconds in the stack, cell {}:", slot + 1));
        distribution(page, &powers(&staged.times.whole));
    }
    page.note(format!(
        "{} Frames at once are the mean time times the rate (Little's law).",
        followed(&passed[0].1.times)
    ));
    beside(
        page,
        shown,
        "timed",
        passed.iter().map(|(slot, staged)| (*slot, staged.received)),
    );
}

fn locks(page: &mut Document, shown: &Shown<'_>, all: &[SlotProfile]) {
    let events = events(all);
    let each = |ns: u64, events: &Events| ns as f64 / events.sent.max(1) as f64;
    let waited = events
        .iter()
        .filter_map(|(slot, events)| Some((*slot, *events, events.waits.as_ref()?)));
    let (much, little): (Vec<_>, Vec<_>) =
        waited.partition(|(_, events, waits)| each(waits.ns, events) >= LITTLE);
    if much.is_empty() && little.is_empty() {
        return;
    }
    page.heading("Waits for locks");
    if !little.is_empty() {
        let slots: Vec<usize> = little.iter().map(|(slot, ..)| *slot).collect();
        let none = little.iter().all(|(.., waits)| waits.times == 0);
        let told = if none {
            "Nothing waited for a lock"
        } else {
            "Waits for locks take less than 1 ns of a frame"
        };
        page.say(format!("{told} in {}.", cells(&slots)));
    }
    for (slot, events, waits) in &much {
        page.say(format!(
            "{}: {} waits take {} ns of each frame.",
            shown.name(*slot),
            grouped(waits.times),
            significant(each(waits.ns, events), 2)
        ));
        let top = &waits.functions[..waits.functions.len().min(MOST)];
        let cell = |ns: u64| number(each(ns, events), 2);
        page.table(waiting(top, WAITS, ["of a frame", "ns"], |f| cell(f.own)));
    }
    for (slot, events, waits) in little
        .iter()
        .chain(&much)
        .filter(|(.., waits)| !waits.beside.is_empty())
    {
        let ns: u64 = waits.beside.iter().map(|f| f.own).sum();
        let names = waits
            .beside
            .iter()
            .take(MOST)
            .map(|f| f.name.as_str())
            .joined(", ");
        page.note(format!(
            "{}: waits that no frame had a part in are not counted: {}, {} ns for each frame.",
            shown.name(*slot),
            names,
            significant(each(ns, events), 2)
        ));
    }
    beside(
        page,
        shown,
        "observed",
        events.iter().map(|(slot, events)| (*slot, events.received)),
    );
    if let Some(file) = much
        .iter()
        .filter_map(|(.., waits)| waits.stacks.as_deref())
        .next_back()
    {
        page.note(format!(
            "`linerate flame DIRECTORY/{file} > picture.svg` draws the stacks that waited, in nanoseconds."
        ));
    }
}
