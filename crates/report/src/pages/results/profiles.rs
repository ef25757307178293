//! Where the time of a frame goes: functions of the DUT's kernel, in nanoseconds.

use super::super::difference::takes;
use super::super::explanation::events;
use super::pictures;
use super::shown::Shown;
use crate::prelude::*;
use linerate_measure::record::SlotProfile;
use linerate_profile::{differential_part, flame_graph_part};

/// Functions of the table.
const FUNCTIONS: usize = 12;
/// Cells side by side at most. The folded stacks have all.
const CELLS: usize = 6;
/// Flame graphs on a page at most: each has some hundred kilobytes.
const FLAMES: usize = 4;
/// Functions that explain a difference in words.
const NAMED: usize = 4;
/// Standard errors that a difference must have to be named.
const CLEAR: f64 = 3.0;

/// A sampled trial below this share of the usual rate was slowed down by something else than the samples.
const SLOW: f64 = 0.85;

/// The profile of a cell, in nanoseconds of a frame.
struct Times<'a> {
    profile: &'a SlotProfile,
    /// All of a frame's time.
    frame: f64,
    own: BTreeMap<&'a str, u64>,
}

impl Times<'_> {
    /// Samples of the kernel and of user space.
    fn samples(&self) -> f64 {
        (self.profile.samples + self.profile.user + self.profile.lost).max(1) as f64
    }

    /// The time in a function itself, and its standard error (that of a share of so many samples).
    fn of(&self, function: &str) -> (f64, f64) {
        let share = self.own.get(function).copied().unwrap_or(0) as f64 / self.samples();
        (
            share * self.frame,
            (share * (1.0 - share) / self.samples()).sqrt() * self.frame,
        )
    }
}

/// A section for the cells that were profiled.
pub fn profiles(page: &mut Document, shown: &Shown<'_>) {
    let of_slot = |profile| times(shown, profile);
    let all: Vec<Times<'_>> = shown.summary.profiles.iter().filter_map(of_slot).collect();
    if all.is_empty() {
        return;
    }
    page.heading("Where the time of a frame goes");
    for after in &all {
        let baseline = shown.campaign.slots[after.profile.slot].baseline;
        let before = all
            .iter()
            .find(|other| Some(other.profile.slot) == baseline);
        if let Some(text) = before.and_then(|before| explanation(shown, before, after)) {
            page.say(text);
        }
    }
    page.table(table(&all[..all.len().min(CELLS)]));
    let samples = all
        .iter()
        .map(|cell| cell.profile.samples + cell.profile.user);
    page.note(format!(
        "Time in functions of the kernel themselves, without those that they called: shares of {} samples or more ({}) of further trials, \
         times the nanoseconds of a frame in the others.",
        samples.min().unwrap_or(0),
        all[0].profile.event
    ));
    slowed(page, shown, &all);
    events(page, &shown.summary.profiles);
    let cells = all[all.len().saturating_sub(2)..]
        .iter()
        .map(|cell| format!("DIRECTORY:{}", cell.profile.slot + 1))
        .joined(" ");
    page.note(format!(
        "The stacks are in the records: `linerate flame {cells} > picture.svg` draws them."
    ));
}

/// Flame graphs of the cells, and for each cell with a baseline where its samples went instead.
pub fn flames(page: &mut Document, shown: &Shown<'_>) {
    if shown.stacks.is_empty() {
        return;
    }
    page.heading("Flame graphs");
    let mut draw = |title: String, svg: std::io::Result<String>, says: String| {
        // A profile without samples has no picture.
        if let Ok(svg) = svg {
            page.blocks.push(Block::Drawing(Drawing {
                title,
                svg,
                says,
                flames: true,
            }));
        }
    };
    let of_dut = |slot: &usize| shown.slot(*slot).is_some_and(|slot| !slot.is_calibration());
    let all = || shown.stacks.iter().filter(|(slot, _)| of_dut(slot));
    let drawn = || all().take(FLAMES);
    for (slot, profile) in drawn() {
        let mut functions = profile.functions();
        functions.sort_by_key(|function| std::cmp::Reverse(function.own));
        let all = profile.samples().max(1) as f64;
        let named = functions.iter().take(NAMED);
        let named = named.map(|f| format!("{} {:.1} %", f.name, 100.0 * f.own as f64 / all));
        let says = format!("Flame graph. Most samples: {}", named.joined(", "));
        draw(
            format!("Flame graph: {}", shown.name(*slot)),
            flame_graph_part(profile),
            says,
        );
    }
    for (slot, after) in drawn() {
        let Some(than) = shown.slot(*slot).and_then(|slot| slot.baseline) else {
            continue;
        };
        let Some(before) = shown.stacks.get(&than) else {
            continue;
        };
        let says = "Flame graph: functions whose share of the samples grew are red, those whose share fell are blue";
        let title = format!(
            "Difference: {} against {}. Red functions have a larger share of the samples, blue ones a smaller one",
            shown.name(*slot),
            shown.name(than)
        );
        draw(title, differential_part(before, after), says.into());
    }
    pictures::left_out(page, all().count(), FLAMES);
}

/// The times of a profile; `None` for a cell whose frames have no cost, because they were paced.
fn times<'a>(shown: &Shown<'_>, profile: &'a SlotProfile) -> Option<Times<'a>> {
    let row = shown
        .row(profile.slot)
        .filter(|row| row.ns_per_frame > 0.0)?;
    shown
        .slot(profile.slot)
        .filter(|slot| slot.asked_fps.is_none())?;
    let own = profile
        .functions
        .iter()
        .map(|f| (f.name.as_str(), f.own))
        .collect();
    Some(Times {
        profile,
        frame: row.ns_per_frame,
        own,
    })
}

/// `A frame takes 540 ns more with nft-stateful than with forwarding (95 % interval +510 to +565 ns): nft_do_chain +180 ns, ...`
fn explanation(shown: &Shown<'_>, before: &Times<'_>, after: &Times<'_>) -> Option<String> {
    let longer = shown
        .row(after.profile.slot)?
        .baseline?
        .longer_ns(before.frame)?;
    let names: BTreeSet<&str> = before.own.keys().chain(after.own.keys()).copied().collect();
    let mut changes: Vec<(&str, f64)> = Vec::new();
    for name in names {
        let ((then, error_then), (now, error_now)) = (before.of(name), after.of(name));
        if (now - then).abs() > CLEAR * error_then.hypot(error_now) {
            changes.push((name, now - then));
        }
    }
    changes.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let named = changes
        .iter()
        .take(NAMED)
        .map(|(name, ns)| format!("{name} {ns:+.0} ns"));
    let named: Vec<String> = named.collect();
    let [of, than] = [after, before].map(|times| shown.name(times.profile.slot));
    let (said, named) = (takes(&longer, [&of, &than], shown.noun()), named.join(", "));
    (!named.is_empty()).then(|| match longer.side_of(0.0) {
        Some(_) => {
            let rest = longer.median - changes.iter().take(NAMED).map(|(_, ns)| ns).sum::<f64>();
            format!("{said}: {named}, all other functions {rest:+.0} ns.")
        }
        None => format!("{said}. In the samples, the time differs in these functions: {named}."),
    })
}

/// The functions whose times differ most between the cells.
fn table(cells: &[Times<'_>]) -> Table {
    let names: BTreeSet<&str> = cells
        .iter()
        .flat_map(|cell| cell.own.keys().copied())
        .collect();
    let spread = |name: &str| {
        let all = cells.iter().map(|cell| cell.of(name).0);
        let most = all.clone().fold(0.0, f64::max);
        if cells.len() < 2 {
            most
        } else {
            most - all.fold(f64::INFINITY, f64::min)
        }
    };
    let mut names: Vec<(&str, f64)> = names.into_iter().map(|name| (name, spread(name))).collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    names.truncate(FUNCTIONS);
    let functions: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    let rows = functions
        .iter()
        .copied()
        .map(Some)
        .chain([None])
        .chain([Some("")]);
    let ns = |cell: &Times<'_>, row: &Option<&str>| match row {
        Some("") => cell.frame,
        Some(function) => cell.of(function).0,
        None => {
            cell.frame
                - functions
                    .iter()
                    .map(|function| cell.of(function).0)
                    .sum::<f64>()
        }
    };
    let name = |row: &Option<&str>| match row {
        Some("") => "together".to_string(),
        Some(function) => (*function).to_string(),
        None => "all others".to_string(),
    };
    let table = Table::of(rows).column("function", "", name);
    let table = cells.iter().fold(table, |table, cell| {
        let head = format!("cell {}", cell.profile.slot + 1);
        table.column(&head, "ns", |row| fixed(ns(cell, row), 0))
    });
    table.into()
}

/// How much the sampling slowed the frames down. A trial that something else slowed down may have other shares.
fn slowed(page: &mut Document, shown: &Shown<'_>, all: &[Times<'_>]) {
    for cell in all {
        let number = cell.profile.slot + 1;
        let rates = cell.profile.received.zip(shown.rate(cell.profile.slot));
        if let Some((profiled, usual)) = rates.filter(|(profiled, usual)| *profiled < SLOW * usual)
        {
            page.warn(format!(
                "The sampled trials of cell {number} were {:.0} % slower than the others, more than sampling costs: where their time went may \
                 not be where that of the others went. Run it again.",
                100.0 * (1.0 - profiled / usual)
            ));
        }
    }
    beside(
        page,
        shown,
        "sampled",
        all.iter()
            .map(|cell| (cell.profile.slot, cell.profile.received)),
    );
}

/// The rates of trials beside the others, which were looked at.
pub fn beside(
    page: &mut Document,
    shown: &Shown<'_>,
    which: &str,
    rates: impl Iterator<Item = (usize, Option<f64>)>,
) {
    let unit = shown.unit();
    let told = rates.filter_map(|(slot, received)| {
        let [looked, others] = [received?, shown.rate(slot)?].map(|fps| unit.words(fps));
        Some(format!(
            "cell {} {looked} {} instead of {others}",
            slot + 1,
            unit.name
        ))
    });
    let told = told.joined(", ");
    if !told.is_empty() {
        page.note(format!("Rates of the {which} trials: {told}."));
    }
}
