//! Pages of `linerate plan`: faults with their lines, and the steps of a plan.

mod show;

use super::numbers::counted;
use crate::document::{Document, Tone};
use crate::format::ascii;
use linerate_hosts::rehearsal::Part;
use linerate_plan::names::Named;
use linerate_plan::timetable::Timetable;
use linerate_plan::{Diagnostic, Plan};
pub use show::{plan, question};

/// Faults and warnings of one file. Each has its place and message (`file:line:column: message`), the line, a mark below it, and
/// a remedy.
pub fn diagnostics(file: &str, all: &[Diagnostic]) -> Document {
    let mut page = Document::default();
    for one in all {
        let (kind, tone) = if one.is_fault() { ("", Tone::Strong) } else { ("warning: ", Tone::Plain) };
        let place = one.place.map(|place| format!("{}:{}:", place.line, place.column)).unwrap_or_default();
        page.paragraph(format!("{file}:{place} {kind}{}", one.message), tone);
        // One character for each of the line's, so that the mark stands below the fault.
        let line: String = one.evidence.iter().flat_map(|line| line.chars()).map(stand_in).collect();
        if let Some(place) = one.place.filter(|_| !line.trim().is_empty()) {
            let mark = format!("{}{}", " ".repeat(place.indent), "^".repeat(place.width));
            page.code(&format!("{:>6} | {}\n       | {mark}", place.line, line.trim_end()), Tone::Plain);
        }
        one.remedy.iter().for_each(|remedy| page.item("       = ", remedy, Tone::Plain));
    }
    page
}

fn stand_in(c: char) -> char {
    match c {
        ' '..='~' => c,
        c if c.is_whitespace() => ' ',
        _ => '?',
    }
}

/// How long a form of a plan takes; `None` without that form.
fn takes(plan: &Plan, quick: bool) -> Option<String> {
    Some(span(Timetable::new(plan.campaign(plan.systems()[0], quick)?).total_ns))
}

/// One line that says that a plan has no faults, with its number of cells and its duration.
pub fn plan_line(file: &str, plan: &Plan) -> String {
    let form = |quick: bool| {
        let campaign = plan.campaign(plan.systems()[0], quick)?;
        Some(format!("{}, {}", counted(campaign.cells.len(), "cell"), takes(plan, quick)?))
    };
    let quick = form(true).map(|quick| format!("; quick form {quick}")).unwrap_or_default();
    format!("{}: no faults; {}{quick}", ascii(file), form(false).unwrap_or_default())
}

/// Plans by name, each with how long it takes in its full and its quick form, and its title.
pub fn plan_list(plans: &[(&str, Plan)]) -> Document {
    let width = plans.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut page = Document::default();
    for (name, plan) in plans {
        let [full, quick] = [false, true].map(|quick| takes(plan, quick).unwrap_or("-".into()));
        let systems: Vec<&str> = plan.systems().iter().map(|s| s.name()).collect();
        let lead = format!("{name:width$}  {full:>11}  {quick:>5}  ");
        let of = if name.starts_with("lab/") { format!(" ({})", systems.join(", ")) } else { String::new() };
        page.item(&lead, format!("{}{of}", plan.title()), Tone::Plain);
    }
    page
}

/// The actions of a plan on the hosts of a lab, as a section of the plan's page.
pub fn rehearsal(parts: &[Part]) -> Document {
    let mut page = Document::default();
    page.gap();
    page.heading("What would be done on which host");
    for part in parts {
        page.answer(format!("{} {}", part.host, part.when));
        if part.actions.is_empty() {
            page.item("  ", "nothing", Tone::Plain);
        }
        for action in &part.actions {
            let undo = action.undo.as_ref().map_or(String::new(), |undo| format!("; undone by {undo}"));
            let quote = if action.argv.is_empty() { "" } else { "`" };
            let text = format!("{}: {quote}{}{quote}{undo}", action.what, action.command);
            page.item("  ", text, Tone::Plain);
        }
    }
    page
}

/// A time of a campaign: `17 s`, `10 min`, `2 h 5 min`.
fn span(ns: u64) -> String {
    let s = ns.div_ceil(1_000_000_000);
    match s {
        0..120 => format!("{s} s"),
        120..7200 => format!("{} min", s.div_ceil(60)),
        7200..172_800 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        _ => format!("{} days", s / 86_400),
    }
}
