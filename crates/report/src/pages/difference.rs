//! Where the extra time of a slower variant goes.

use super::numbers::fixed;
use crate::document::{Cell, Document, Table};
use linerate_explain::{Difference, Part};

/// Functions of the table. The JSON has all.
const FUNCTIONS: usize = 15;

/// The page of `linerate explain A B`.
pub fn difference(difference: &Difference) -> Document {
    let mut page = Document::default();
    let Difference { names: [before, after], frame_ns, measured_ns: measured, .. } = difference;
    let interval = measured.low.zip(measured.high);
    let interval = interval
        .map_or("no interval yet".into(), |(low, high)| format!("95 % interval {low:+.0} to {high:+.0} ns"));
    let more = if measured.median < 0.0 { "less" } else { "more" };
    page.answer(format!(
        "A frame takes {:.0} ns {more} with {after} than with {before}: {:.0} instead of {:.0} ns ({interval}).",
        measured.median.abs(),
        frame_ns[1],
        frame_ns[0]
    ));
    let mut clear: Vec<&Part> = difference.stages.iter().filter(|part| part.is_clear()).collect();
    clear.sort_by(|a, b| b.longer().abs().total_cmp(&a.longer().abs()));
    let named: Vec<String> =
        clear.iter().take(4).map(|part| format!("{} {:+.0} ns", part.name, part.longer())).collect();
    match named.is_empty() {
        true => page.say("No stage of a frame's way differs by more than the error of the samples."),
        false => page.say(format!("It goes into {}.", named.join(", "))),
    }
    let taken = difference.stages.iter().filter(|part| part.ns != [0.0, 0.0]);
    let rest = Part { name: "unexplained".into(), ns: [0.0, difference.unexplained_ns], error: 0.0 };
    let all = Part { name: "measured difference".into(), ns: [0.0, measured.median], error: 0.0 };
    let row = |part: &Part| (part.clone(), true);
    let rows = taken.map(row).chain([(rest, false), (all, false)]);
    page.section("By stage", table("stage of a frame's way", rows.collect()));
    let functions: Vec<(Part, bool)> = difference.functions.iter().take(FUNCTIONS).map(row).collect();
    let others = difference.functions.iter().skip(FUNCTIONS);
    let others = others.fold([0.0; 2], |sum, part| [sum[0] + part.ns[0], sum[1] + part.ns[1]]);
    let others = (Part { name: "all others".into(), ns: others, error: 0.0 }, true);
    page.section(
        "By function, without the functions that it calls",
        table("function", functions.into_iter().chain([others]).collect()),
    );
    match difference.adds_up {
        Some(true) => page.note("The parts are those of two sampled trials. Their sum lies in the interval of the measured difference."),
        Some(false) => page.warn(format!(
            "The parts are those of two sampled trials, whose difference lies outside the interval of the measured one: {:+.0} ns are unexplained. \
             Something else slowed one of these trials. Run it again.",
            difference.unexplained_ns
        )),
        None => page.note("The measured difference has no interval: run more trials."),
    }
    page
}

fn table(head: &str, rows: Vec<(Part, bool)>) -> Table {
    let side = |at: usize| {
        move |(part, both): &(Part, bool)| if *both { fixed(part.ns[at], 0) } else { Cell::Nothing }
    };
    let error = |(part, _): &(Part, bool)| (part.error > 0.0).then(|| fixed(part.error, 0));
    let longer = |(part, _): &(Part, bool)| Cell::number(part.longer(), format!("{:+.0}", part.longer()));
    let table = Table::of(rows).column(head, "", |(part, _)| part.name.clone());
    table
        .column("before", "ns", side(0))
        .column("after", "ns", side(1))
        .column("differ-", "ence", longer)
        .column("standard", "error", error)
        .into()
}
