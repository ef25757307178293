//! What `linerate plan` prints: faults with their lines, and what a plan will do.

mod rehearsal;
mod show;

use super::numbers::counted;
use super::page::{Ink, Page, Style, ascii};
use linerate_plan::timetable::Timetable;
use linerate_plan::{Fault, Plan};
pub use rehearsal::rehearsal;
pub use show::plan;

/// Faults and remarks of one file, each with its line: `file:line:column: what is wrong`, the line, a mark below it, and what to write.
pub fn plan_faults(file: &str, faults: &[Fault], remarks: &[Fault], style: Style) -> String {
    let mut out = String::new();
    let marked = faults.iter().map(|f| (f, "")).chain(remarks.iter().map(|f| (f, "remark: ")));
    for (fault, kind) in marked {
        out += &one(file, fault, kind, style);
    }
    out
}

fn one(file: &str, fault: &Fault, kind: &str, style: Style) -> String {
    let mut page = Page::new(style);
    let ink = if kind.is_empty() { Ink::Bold } else { Ink::Plain };
    page.paragraph(&format!("{file}:{}:{}: {kind}{}", fault.line, fault.column, fault.message), ink);
    let mut out = page.finish();
    // One character for each of the line's, so that the mark stands below the fault.
    let excerpt: String =
        fault.excerpt.chars().map(|c| if matches!(c, ' '..='~') { c } else { stand_in(c) }).collect();
    if !excerpt.trim().is_empty() {
        let number = format!("{:>6}", fault.line);
        let mark = format!("{}{}", " ".repeat(fault.indent), "^".repeat(fault.width));
        out += &format!("{number} | {}\n       | {mark}\n", excerpt.trim_end());
    }
    if let Some(help) = &fault.help {
        let mut page = Page::new(style);
        page.item("       = ", help, Ink::Plain);
        out += &page.finish();
    }
    out
}

fn stand_in(c: char) -> char {
    if c.is_whitespace() { ' ' } else { '?' }
}

/// One line that says that a plan is without faults, and what it comes to.
pub fn plan_line(file: &str, plan: &Plan, style: Style) -> String {
    let mut page = Page::new(style);
    let system = plan.systems()[0];
    let form = |quick: bool| {
        let campaign = plan.campaign(system, quick)?;
        let times = Timetable::new(campaign);
        Some(format!("{}, {}", counted(campaign.cells.len(), "cell"), span(times.total_ns)))
    };
    let full = form(false).unwrap_or_default();
    let quick = form(true).map(|quick| format!("; quick form {quick}")).unwrap_or_default();
    page.paragraph(&format!("{}: no faults; {full}{quick}", ascii(file)), Ink::Plain);
    page.finish()
}

/// Plans by name, each with how long it takes in its full and its quick form, and its title.
pub fn plan_list(plans: &[(&str, Plan)], style: Style) -> String {
    let time = |plan: &Plan, quick| {
        let campaign = plan.campaign(plan.systems()[0], quick);
        campaign.map_or("-".into(), |c| span(Timetable::new(c).total_ns))
    };
    let width = plans.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut page = Page::new(style);
    for (name, plan) in plans {
        let [full, quick] = [false, true].map(|quick| time(plan, quick));
        let systems: Vec<&str> = plan.systems().iter().map(|s| s.key()).collect();
        let lead = format!("{name:width$}  {full:>11}  {quick:>5}  ");
        let of = if name.starts_with("lab/") { format!(" ({})", systems.join(", ")) } else { String::new() };
        page.item(&lead, &format!("{}{of}", ascii(plan.title())), Ink::Plain);
    }
    page.finish()
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
