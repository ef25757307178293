//! `linerate plan show`: cells, duration, changes of the system, and expectations.

use super::super::numbers::{grouped, lengths};
use super::span;
use crate::document::{Document, Table, Tone};
use linerate_measure::experiment::{Expectation, Experiment, Interest, Reboot};
use linerate_measure::record::Mode;
use linerate_measure::strategy::by_name;
use linerate_plan::Plan;
use linerate_plan::campaign::{Campaign, Cell, Lab, Requirement};
use linerate_plan::changes::{Change, Reach, changes};
use linerate_plan::keys::COLLECTORS;
use linerate_plan::names::Named;
use linerate_plan::placeholders::PLACEHOLDERS;
use linerate_plan::timetable::{Bound, Timetable};
use std::collections::BTreeMap;

/// The whole page. `blocks`: the cells of the first blocks, in the order of their trials.
pub fn plan(plan: &Plan, campaign: &Campaign, blocks: &[Vec<usize>]) -> Document {
    let mut page = Document::default();
    question(&mut page, &campaign.experiment);
    place(&mut page, plan, campaign);
    cells(&mut page, campaign);
    schedule(&mut page, campaign, blocks);
    comparisons(&mut page, campaign);
    changed(&mut page, campaign);
    needs(&mut page, campaign);
    expected(&mut page, campaign);
    for remark in plan.remarks() {
        page.gap();
        let line = remark.place.map(|place| format!("line {}: ", place.line)).unwrap_or_default();
        page.item("Warning: ", &format!("{line}{}", remark.message), Tone::Warning);
    }
    page
}

/// The question of a plan.
pub fn question(page: &mut Document, experiment: &Experiment) {
    let form = if experiment.quick { " (quick form)" } else { "" };
    page.paragraph(&format!("{}{form}", experiment.title), Tone::Strong);
    page.paragraph(&experiment.question, Tone::Plain);
    if let Some(source) = &experiment.source {
        page.paragraph(&format!("From: {source}"), Tone::Note);
    }
    page.gap();
}

fn place(page: &mut Document, plan: &Plan, campaign: &Campaign) {
    let lab = match &campaign.lab {
        Lab::Embedded { mode: Mode::Inline, .. } => {
            "embedded: network namespaces of this machine, inline (closed loop)".to_string()
        }
        Lab::Embedded { mode: Mode::Threaded | Mode::Hosts, .. } => {
            "embedded: network namespaces of this machine, threaded (open loop)".to_string()
        }
        Lab::File { path } => format!("the hosts of {path}"),
    };
    page.item("lab       ", &lab, Tone::Plain);
    let others: Vec<&str> =
        plan.systems().iter().filter(|s| **s != campaign.experiment.system).map(|s| s.name()).collect();
    let also =
        if others.is_empty() { String::new() } else { format!(" (--system for {})", others.join(", ")) };
    page.item("DUT       ", &format!("{}{also}", campaign.experiment.system), Tone::Plain);
    for kind in &campaign.kinds {
        let checksum = if kind.checksum { "" } else { ", without UDP checksum" };
        let (size, flows) = (lengths(kind), grouped(kind.flows.into()));
        let plural = if kind.flows == 1 { "" } else { "s" };
        let text = format!(
            "{size} {} {}, {flows} flow{plural}, {}{checksum}",
            kind.family, kind.transport, kind.order
        );
        page.item("traffic   ", &text, Tone::Plain);
    }
    for factor in &campaign.experiment.factors {
        let alone = if factor.alone { ", swept alone" } else { "" };
        let about = factor.about.as_ref().map(|a| format!("{a}; ")).unwrap_or_default();
        let sets = factor.sets.join(" and ");
        let text = format!("{}: {} ({about}sets {sets}{alone})", factor.name, factor.levels.join(", "));
        page.item("factor    ", &text, Tone::Plain);
    }
    let named = COLLECTORS.iter().filter(|(name, _)| campaign.collect.what.iter().any(|what| what == name));
    let collected: Vec<&str> = named.map(|(_, meaning)| *meaning).collect();
    page.item("collected ", &format!("counters of every frame, {}", collected.join(", ")), Tone::Plain);
    for command in &campaign.collect.commands {
        page.item("          ", &format!("the output of `{command}`"), Tone::Plain);
    }
    for command in &campaign.collect.during {
        page.item("          ", &format!("the output of `{command}`, under load"), Tone::Plain);
    }
}

fn cells(page: &mut Document, campaign: &Campaign) {
    page.heading("What is measured");
    let table = Table::of(campaign.cells.iter().enumerate())
        .column("cell", "", |(at, cell)| format!("{} {}", at + 1, cell.name))
        .column("frames", "", |(_, cell)| {
            let kind = &campaign.kinds[cell.kind];
            format!("{} {}", lengths(kind), kind.family)
        })
        .column("load", "", |(_, cell)| cell.rate.to_string())
        .column("lane", "", |(_, cell)| cell.lane + 1)
        .optional("ceiling", "", |(_, cell)| cell.ceiling.map(|c| c + 1));
    page.table(table);
}

fn schedule(page: &mut Document, campaign: &Campaign, blocks: &[Vec<usize>]) {
    page.heading("Schedule");
    let (times, trials) = (Timetable::new(campaign), &campaign.experiment.trials);
    let strategy = by_name(&trials.order);
    let seed = match (strategy.randomised, trials.seed) {
        (false, _) => String::new(),
        (true, Some(seed)) => format!(", seed {seed}"),
        (true, None) => ", the seed drawn by the run and recorded (below, 1 as an example)".into(),
    };
    page.item("order     ", &format!("{}{seed}", strategy.about), Tone::Plain);
    let pause = match trials.pause_ns {
        0 => String::new(),
        pause => format!(" after a pause of {}", precise(pause)),
    };
    let reboot = match trials.reboot {
        Reboot::Never => "",
        Reboot::WhenNeeded => ", rebooted where settings for the boot change",
        Reboot::EachTrial => ", rebooted before each trial",
    };
    let trial = format!(
        "{}{pause}{reboot}; {} with all around it",
        precise(trials.duration_ns),
        precise(times.trial_ns)
    );
    page.item("trial     ", &trial, Tone::Plain);
    let block = format!("{} trials, about {}", grouped(campaign.cells.len() as u64), precise(times.block_ns));
    page.item("block     ", &block, Tone::Plain);
    let bound = match times.bound {
        Bound::Blocks => "as many as were asked for".to_string(),
        Bound::Budget => format!("as many as fit into {}", precise(trials.budget_ns.unwrap_or(0))),
    };
    let blocks_text = format!("{} at most, {bound}: {} trials", grouped(times.blocks), grouped(times.trials));
    page.item("blocks    ", &blocks_text, Tone::Plain);
    if let Some(until) = trials.until {
        let deciding = campaign.experiment.comparisons.iter().filter(|c| c.decides).count();
        let text = format!(
            "earlier, once the 95 % interval of each of {deciding} comparisons is narrower than {} %",
            (until * 1e6).round() / 1e4
        );
        page.item("ends      ", &text, Tone::Plain);
    }
    let total = format!(
        "about {} ({} of set-up, {} of trials)",
        span(times.total_ns),
        span(times.set_up_ns),
        span(times.trials_ns)
    );
    page.item("time      ", &total, Tone::Strong);
    for (at, block) in blocks.iter().enumerate().take(12) {
        let shown = block.iter().take(40).map(|cell| (cell + 1).to_string()).collect::<Vec<_>>().join(" ");
        let more = if block.len() > 40 { " ..." } else { "" };
        let name = format!("{} {}", if strategy.randomised { "block" } else { "cell" }, at + 1);
        page.item(&format!("{name:10}"), &format!("cells {shown}{more}"), Tone::Note);
    }
}

/// A time of a trial: `250 ms`, `1.5 s`, `2 min`.
fn precise(ns: u64) -> String {
    match ns {
        0..1_000_000_000 => format!("{} ms", ns.div_ceil(1_000_000)),
        1_000_000_000..120_000_000_000 => {
            let text = format!("{:.1}", ns as f64 / 1e9);
            format!("{} s", text.strip_suffix(".0").unwrap_or(&text))
        }
        _ => span(ns),
    }
}

fn comparisons(page: &mut Document, campaign: &Campaign) {
    if campaign.experiment.comparisons.is_empty() {
        return;
    }
    page.heading("What is compared");
    let mut groups: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for comparison in &campaign.experiment.comparisons {
        let name = match comparison.why {
            Interest::Variants => "variants with the baseline, at the same levels".to_string(),
            Interest::Levels(factor) => {
                format!("levels of {} with its first", campaign.experiment.factors[factor].name)
            }
            Interest::Expectation(_) => "what else is expected".to_string(),
            Interest::Ceiling => "variants with the tester alone".to_string(),
        };
        let counts = groups.entry(name).or_default();
        counts.0 += 1;
        counts.1 += usize::from(comparison.decides);
    }
    for (name, (all, deciding)) in groups {
        let decide = match deciding {
            0 => "reported only".to_string(),
            n if n == all => "the stopping rule waits for them".to_string(),
            n => format!("the stopping rule waits for {n} of them"),
        };
        page.item("  ", &format!("{name}: {all} ({decide})"), Tone::Plain);
    }
}

fn changed(page: &mut Document, campaign: &Campaign) {
    page.heading("What will be changed");
    let all = changes(campaign);
    if matches!(campaign.lab, Lab::Embedded { .. }) {
        let text = "A lab of network namespaces is made and gone with the run: routing, addresses, static neighbours.";
        page.paragraph(text, Tone::Plain);
    }
    for host in &all {
        let lane = host
            .lane
            .map(|lane| format!(" for lane {}: {}", lane + 1, campaign.lanes[lane].variants.join(", ")));
        page.paragraph(&format!("{}{}", host.host, lane.unwrap_or_default()), Tone::Strong);
        for change in &host.changes {
            page.item("  ", &one_change(change), Tone::Plain);
        }
    }
    if all.is_empty() {
        page.paragraph("Nothing else, on no host.", Tone::Plain);
    }
    let text = all.iter().flat_map(|h| &h.changes).map(|c| format!("{}{}", c.what, c.to)).collect::<String>();
    for (name, meaning) in PLACEHOLDERS.iter().filter(|(name, _)| text.contains(&format!("{{{name}}}"))) {
        page.item("  ", &format!("{{{name}}} is {meaning}, say"), Tone::Note);
    }
}

fn one_change(change: &Change) -> String {
    let reach = match change.reach {
        Reach::Namespace => "",
        Reach::Host => " [on the host, put back afterwards]",
        Reach::Boot => " [from the next boot on, put back afterwards]",
        Reach::Stays => " [on the host, stays]",
    };
    let to = if change.to.is_empty() { String::new() } else { format!(": {}", change.to) };
    format!("{}{to}{reach}", change.what)
}

fn needs(page: &mut Document, campaign: &Campaign) {
    let mut by_need: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for need in &campaign.requirements {
        by_need.entry(requirement(need)).or_default().push("everything".into());
    }
    for lane in &campaign.lanes {
        for need in &lane.requirements {
            let names = by_need.entry(requirement(need)).or_default();
            let new = lane.variants.iter().filter(|v| !names.contains(v)).cloned().collect::<Vec<_>>();
            names.extend(new);
        }
    }
    if by_need.is_empty() {
        return;
    }
    page.heading("What is needed (what lacks it is skipped, with the reason)");
    for (need, who) in by_need {
        page.item("  ", &format!("{need}: for {}", who.join(", ")), Tone::Plain);
    }
}

fn requirement(need: &Requirement) -> String {
    match need {
        Requirement::Tool(name) => format!("the program {name}"),
        Requirement::Link(kind) => format!("links of the kind {kind}"),
        Requirement::Module(name) => format!("the kernel module {name}"),
        Requirement::Sysctl(name) => format!("the kernel setting {name}"),
        Requirement::Kernel(major, minor) => format!("kernel {major}.{minor} or newer"),
        Requirement::Cpus(1) => "a CPU".into(),
        Requirement::Cpus(n) => format!("{n} CPUs"),
        Requirement::Memory(bytes) => format!("{} MiB of memory", grouped(bytes >> 20)),
        Requirement::File(path) => format!("the file {path}"),
    }
}

fn expected(page: &mut Document, campaign: &Campaign) {
    if campaign.experiment.expectations.is_empty() {
        return;
    }
    page.heading("What is expected");
    for expectation in &campaign.experiment.expectations {
        page.item("  ", &format!("{}, because {}", expectation.words, expectation.because), Tone::Plain);
        let cells = judged(expectation, &campaign.cells);
        page.item("    ", &cells, Tone::Note);
    }
}

fn judged(expectation: &Expectation, cells: &[Cell]) -> String {
    const SHOWN: usize = 4;
    let pair = |(of, than): &(usize, Option<usize>)| match than {
        Some(than) => format!("{} against {}", of + 1, than + 1),
        None => format!("{}", of + 1),
    };
    debug_assert!(expectation.pairs.iter().all(|(of, _)| *of < cells.len()));
    match expectation.pairs.as_slice() {
        [] => "not judged in this form, or on this system".into(),
        pairs if pairs.len() <= SHOWN => {
            format!("cells {}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        pairs => {
            let first = pairs.iter().take(SHOWN).map(pair).collect::<Vec<_>>().join(", ");
            format!("cells {first} and {} more", pairs.len() - SHOWN)
        }
    }
}
