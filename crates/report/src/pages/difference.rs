//! Where the extra time of a slower variant goes.

use super::kernel::events;
use crate::prelude::*;
use linerate_explain::{Difference, Part};
use linerate_stats::analysis::places;

/// Functions of the table. The JSON has all.
const FUNCTIONS: usize = 15;
/// Functions that waited for locks, in the table.
const WAITING: usize = 6;
/// Nanoseconds of a frame that are not worth a table: timers and daemons wait for locks, too.
const LITTLE: f64 = 1.0;

/// The page of `linerate explain A B`. `noun`: the thing whose rate was measured, a frame or a connection.
pub fn difference(difference: &Difference, noun: &str) -> Document {
    let mut page = Document::default();
    let Difference {
        names: [before, after],
        measured_ns: measured,
        ..
    } = difference;
    page.answer(takes(measured, [after, before], noun) + ".");
    page.say(clear_stages(difference));
    let taken = difference
        .stages
        .iter()
        .filter(|part| part.ns != [0.0, 0.0]);
    let rest = part("unexplained", [0.0, difference.unexplained_ns.median]);
    let all = part("measured difference", [0.0, measured.median]);
    let row = |part: &Part| (part.clone(), true);
    let rows = taken.map(row).chain([(rest, false), (all, false)]);
    page.section(
        "By stage",
        table(
            "stage of a frame's way",
            columns(difference),
            rows.collect(),
        ),
    );
    let functions: Vec<(Part, bool)> = difference
        .functions
        .iter()
        .take(FUNCTIONS)
        .map(row)
        .collect();
    let others = difference.functions.iter().skip(FUNCTIONS);
    let others = others.fold([0.0; 2], |sum, part| {
        [sum[0] + part.ns[0], sum[1] + part.ns[1]]
    });
    let others = (part("all others", others), true);
    page.section(
        "By function, without the functions that it calls",
        table(
            "function",
            columns(difference),
            functions.into_iter().chain([others]).collect(),
        ),
    );
    locks(&mut page, difference);
    if !difference.counted.is_empty() {
        let side = |at: usize| {
            difference
                .counted
                .iter()
                .map(|(name, each)| (name.clone(), each[at]))
                .collect()
        };
        let [before, after] = columns(difference);
        let columns = [(before.to_string(), side(0)), (after.to_string(), side(1))];
        page.section(
            "Events of the CPUs that forward, for each frame",
            events(&columns),
        );
    }
    sum(&mut page, difference);
    page
}

/// The stages that differ most, in a sentence.
fn clear_stages(difference: &Difference) -> String {
    let mut clear: Vec<&Part> = difference
        .stages
        .iter()
        .filter(|part| part.is_clear())
        .collect();
    clear.sort_by(|a, b| b.longer().abs().total_cmp(&a.longer().abs()));
    let named = clear
        .iter()
        .take(4)
        .map(|part| format!("{} {:+.0} ns", part.name, part.longer()));
    let named = named.joined(", ");
    match difference.measured_ns.side_of(0.0) {
        _ if named.is_empty() => {
            "No stage of a frame's way differs by more than the error of the samples.".into()
        }
        Some(_) => format!("It goes into {named}."),
        None => format!("These stages differ by more than the error of the samples: {named}."),
    }
}

fn part(name: &str, ns: [f64; 2]) -> Part {
    Part {
        name: name.into(),
        ns,
        error: 0.0,
    }
}

/// `A frame takes 233 ns more with b than with a (95 % interval +198 to +268 ns)`. Without an interval that excludes 0, it says so instead.
pub(super) fn takes(longer: &Estimate, [of, than]: [&str; 2], noun: &str) -> String {
    let more = longer
        .side_of(0.0)
        .map(|side| if side.is_lt() { "less" } else { "more" });
    match (interval(longer), more) {
        (None, _) => {
            format!(
                "Too few trials to tell whether a {noun} takes longer with {of} than with {than}"
            )
        }
        (Some(interval), None) => {
            format!(
                "No difference in the time of a {noun} is shown between {of} and {than} ({interval})"
            )
        }
        (Some(interval), Some(more)) => {
            format!(
                "A {noun} takes {:.*} ns {more} with {of} than with {than} ({interval})",
                longer
                    .low
                    .zip(longer.high)
                    .map_or(0, |(low, high)| places(low, high)),
                longer.median.abs()
            )
        }
    }
}

/// `95 % interval +198 to +268 ns`
fn interval(of: &Estimate) -> Option<String> {
    let (low, high) = of.low.zip(of.high)?;
    let places = places(low, high);
    Some(format!(
        "95 % interval {low:+.places$} to {high:+.places$} ns"
    ))
}

/// A time of sampled trials that differs from that of the others by so much of it is told.
const OTHER: f64 = 0.1;

/// Whether the parts are the whole.
fn sum(page: &mut Document, difference: &Difference) {
    let Difference {
        sampled_ns: sampled,
        unexplained_ns: rest,
        ..
    } = difference;
    let spread = interval(sampled).map(|i| format!(" ({i}, by the rates of {} trials)", sampled.n));
    let parts = format!(
        "The stages add up to {:+.0} ns in the sampled trials{}.",
        sampled.median,
        spread.unwrap_or_default()
    );
    let (took, usual) = (difference.sampled_frame_ns, difference.frame_ns);
    if took
        .iter()
        .zip(usual)
        .any(|(took, usual)| (took - usual).abs() > OTHER * usual)
    {
        page.note(format!(
            "These are times of the sampled trials, in which a frame took {:.0} and {:.0} ns; in the other trials, {:.0} and {:.0} ns.",
            took[0], took[1], usual[0], usual[1]
        ));
    }
    let unexplained = format!(
        "The unexplained rest, {:+.0} ns{},",
        rest.median,
        interval(rest).map_or(String::new(), |i| format!(" ({i})"))
    );
    match difference.adds_up {
        Some(true) => page.note(format!("{parts} {unexplained} may be chance.")),
        Some(false) => page.warn(format!(
            "{parts} {unexplained} is more than chance. Something else slowed some of the trials. Run it again."
        )),
        None => page.note(format!("{parts} The measured difference has no interval: run more trials.")),
    }
}

/// The heads of the two columns: the names of the two sides, or their places in `linerate explain A B` where both have one name.
fn columns(difference: &Difference) -> [&str; 2] {
    match &difference.names {
        [a, b] if a == b => ["A", "B"],
        names => names.each_ref().map(String::as_str),
    }
}

fn locks(page: &mut Document, difference: &Difference) {
    let Some(locks) = &difference.locks else {
        return page.note("Waits for locks were not measured in both.");
    };
    if locks.all.ns.iter().all(|ns| *ns < LITTLE) {
        return page.note("Waits for locks take less than 1 ns of a frame in both.");
    }
    let rows = locks.functions.iter().take(WAITING).chain([&locks.all]);
    let cell = |ns: f64| number(ns, 2);
    let [before, after] = columns(difference);
    let table = Table::of(rows)
        .column("waits for locks, by function", "", |part| part.name.clone())
        .column(before, "ns", |part| cell(part.ns[0]))
        .column(after, "ns", |part| cell(part.ns[1]))
        .column("differ-", "ence", |part| signed(part.longer(), 1));
    page.section("Waits for locks", table);
    page.note("By trials of their own. They are a part of the times above: a wait is time of the function that waits.");
}

fn table(head: &str, [before, after]: [&str; 2], rows: Vec<(Part, bool)>) -> Table {
    let side = |at: usize| {
        move |(part, both): &(Part, bool)| {
            if *both {
                fixed(part.ns[at], 0)
            } else {
                Cell::Nothing
            }
        }
    };
    let error = |(part, _): &(Part, bool)| (part.error > 0.0).then(|| fixed(part.error, 0));
    let longer = |(part, _): &(Part, bool)| signed(part.longer(), 0);
    let table = Table::of(rows).column(head, "", |(part, _)| part.name.clone());
    table
        .column(before, "ns", side(0))
        .column(after, "ns", side(1))
        .column("differ-", "ence", longer)
        .column("standard", "error", error)
        .into()
}
