//! Pages of `linerate plan`: faults with their lines, plans by name, and the steps of a plan: cells, duration, changes of the system, and
//! expectations.

mod rehearsal;
mod schedule;

pub use rehearsal::rehearsal;
pub(super) use schedule::{seconds, terms};

use crate::format::ascii;
use crate::prelude::*;
use linerate_measure::experiment::{Benchmark, Experiment, Interest, Measure};
use linerate_measure::strategy::Estimated;
use linerate_plan::campaign::{Campaign, Kind, Lab, Requirement};
use linerate_plan::changes::{Change, Reach, changes};
use linerate_plan::keys::COLLECTORS;
use linerate_plan::lab::Lab as LabFile;
use linerate_plan::names::Named;
use linerate_plan::placeholders::PLACEHOLDERS;
use linerate_plan::timetable::{Bound, Timetable};
use linerate_plan::{Diagnostic, Plan};

/// Faults and warnings of one file. Each has its place and message (`file:line:column: message`), the line, a mark below it, and
/// a remedy.
pub fn diagnostics(file: &str, all: &[Diagnostic]) -> Document {
    let mut page = Document::default();
    for one in all {
        let (kind, tone) = if one.is_fault() {
            ("", Tone::Strong)
        } else {
            ("warning: ", Tone::Plain)
        };
        let place = one
            .place
            .map(|place| format!("{}:{}:", place.line, place.column))
            .unwrap_or_default();
        page.paragraph(format!("{file}:{place} {kind}{}", one.message), tone);
        // One character for each of the line's, so that the mark stands below the fault.
        let line: String = one
            .evidence
            .iter()
            .flat_map(|line| line.chars())
            .map(stand_in)
            .collect();
        if let Some(place) = one.place.filter(|_| !line.trim().is_empty()) {
            let mark = format!("{}{}", " ".repeat(place.indent), "^".repeat(place.width));
            page.code(
                &format!("{:>6} | {}\n       | {mark}", place.line, line.trim_end()),
                Tone::Plain,
            );
        }
        one.remedy
            .iter()
            .for_each(|remedy| page.entry("       = ", remedy));
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
    Some(span(
        Timetable::new(plan.campaign(plan.systems[0], quick)?).total_ns,
    ))
}

/// One line that says that a plan has no faults, with its number of cells and its duration.
pub fn plan_line(file: &str, plan: &Plan) -> String {
    let form = |quick: bool| {
        let campaign = plan.campaign(plan.systems[0], quick)?;
        Some(format!(
            "{}, {}",
            counted(campaign.cells.len(), "cell"),
            takes(plan, quick)?
        ))
    };
    let quick = form(true)
        .map(|quick| format!("; quick form {quick}"))
        .unwrap_or_default();
    format!(
        "{}: no faults; {}{quick}",
        ascii(file),
        form(false).unwrap_or_default()
    )
}

/// Plans by name, each with how long it takes in its full and its quick form, and its title.
pub fn plan_list(plans: &[(&str, Plan)]) -> Document {
    let width = plans.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut page = Document::default();
    page.item(
        &format!("{:width$}  {:>11}  {:>5}  ", "plan", "takes", "quick"),
        "question",
        Tone::Note,
    );
    for (name, plan) in plans {
        let [full, quick] = [false, true].map(|quick| takes(plan, quick).unwrap_or("-".into()));
        let systems = plan.systems.iter().map(|s| s.name()).joined(", ");
        let lead = format!("{name:width$}  {full:>11}  {quick:>5}  ");
        let of = when(name.starts_with("lab/"), format!(" ({systems})"));
        page.entry(&lead, format!("{}{of}", plan.title));
    }
    page
}

/// A time of a campaign: `17 s`, `10 min`, `2 h 5 min`.
fn span(ns: u64) -> String {
    let s = ns.div_ceil(1_000_000_000);
    match s {
        0..120 => format!("{s} s"),
        120..7200 => format!("{} min", (s + 30) / 60),
        7200..172_800 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        _ => format!("{} days", s / 86_400),
    }
}

/// How long each of RFC 2544's tests takes. `supposed`: the speed of links that nothing names.
pub fn estimate(campaign: &Campaign, tests: &[Estimated], supposed: Option<&str>) -> Document {
    let mut page = Document::default();
    let times = Timetable::new(campaign);
    page.answer(format!(
        "About {} ({} trials).",
        span(times.total_ns),
        grouped(times.trials)
    ));
    let sizes = campaign.kinds.len();
    page.say(departures(&campaign.experiment, sizes));
    let table = Table::of(tests)
        .column("test", "", |test| {
            test.test.map_or("the tester alone", Benchmark::title)
        })
        .column("trials", "", |test| count(test.trials))
        .column("time", "", |test| span(test.ns));
    page.section("Estimate", table);
    campaign
        .kinds
        .iter()
        .filter_map(Kind::lengthened)
        .for_each(|longer| page.note(longer));
    if let Some(speed) = supposed {
        page.note(format!("The speed of the links is not known before linerate has asked the hosts: this is for {speed}. --link-speed, or link-speed in the first lines of the lab file, names another."));
    }
    page.note("For a DUT that forwards 60 % of the highest load and queues 1000 frames. --test and --sizes select tests and frame sizes; --quick is the shortest form.");
    page
}

/// The estimate in a line, before the campaign.
pub fn estimate_line(times: &Timetable, tests: &[Estimated]) -> String {
    let name = |test: &Estimated| test.test.map_or("the tester alone", Benchmark::name);
    let each = tests
        .iter()
        .map(|test| format!("{} {}", name(test), span(test.ns)))
        .joined(", ");
    format!(
        "about {} in all: {}",
        span(times.set_up_ns + times.needed_ns),
        each
    )
}

/// A warning before a search, or tests, whose budget is too short.
pub fn too_short(campaign: &Campaign) -> Option<String> {
    let times = Timetable::new(campaign);
    let budget = campaign
        .experiment
        .trials
        .time_ns()
        .filter(|_| times.bound == Bound::Budget)?;
    (campaign.experiment.trials.measure != Measure::Rate).then(|| {
        format!(
            "all trials take some {} on an undisturbed machine, and the budget is {}: the result will have the bounds that are known by then; --budget {} is enough",
            precise(times.needed_ns),
            precise(budget),
            ample(&times)
        )
    })
}

/// How to continue a search, or tests, whose time ran out.
pub fn going_on(campaign: &Campaign, directory: &str) -> String {
    format!(
        "the time ran out; to continue: linerate run --resume {directory} --budget {} (the time for all trials, including the recorded ones)",
        ample(&Timetable::new(campaign))
    )
}

/// A budget with room for the noise of the machine: twice the estimate, or twice the first budget.
fn ample(times: &Timetable) -> String {
    match (2 * times.needed_ns.max(times.trials_ns)).div_ceil(1_000_000_000) {
        s @ 0..120 => format!("{s}s"),
        s => format!("{}min", s.div_ceil(60)),
    }
}

/// Pairs of an expectation that are listed at most.
const PAIRS: usize = 4;

/// The whole page. `blocks`: the cells of the first blocks, in the order of their trials. `site`: the lab file and its name, where it
/// can be read.
pub fn plan(
    plan: &Plan,
    campaign: &Campaign,
    blocks: &[Vec<usize>],
    site: Option<(&str, &LabFile)>,
) -> Document {
    let mut page = Document::default();
    question(&mut page, &campaign.experiment);
    place(&mut page, plan, campaign, site);
    let cells = Table::of(campaign.cells.iter().enumerate())
        .column("cell", "", |(at, cell)| format!("{} {}", at + 1, cell.name))
        .column("frames", "", |(_, cell)| {
            let kind = &campaign.kinds[cell.kind];
            format!("{} {}", lengths(kind), kind.family)
        })
        .column("load", "", |(_, cell)| cell.rate.to_string())
        .column("lane", "", |(_, cell)| cell.lane + 1)
        .optional("tester", "alone", |(_, cell)| cell.ceiling.map(|c| c + 1));
    page.section("What is measured", cells);
    page.note("A lane is one configuration of the DUT, or the tester alone.");
    if campaign.cells.iter().any(|cell| cell.ceiling.is_some()) {
        page.note(
            "tester alone: the cell that measures the tester with these frames, without a DUT.",
        );
    }
    schedule::schedule(&mut page, campaign, blocks);
    comparisons(&mut page, campaign);
    let black_box = site.and_then(|(_, lab)| lab.black_box.as_ref());
    changed(&mut page, campaign, black_box.is_some());
    needs(&mut page, campaign);
    expected(&mut page, campaign);
    for remark in &plan.remarks {
        page.gap();
        let line = remark
            .place
            .map(|place| format!("line {}: ", place.line))
            .unwrap_or_default();
        page.item(
            "Warning: ",
            format!("{line}{}", remark.message),
            Tone::Warning,
        );
    }
    page
}

/// The question of a plan.
pub fn question(page: &mut Document, experiment: &Experiment) {
    page.answer(titled(experiment));
    asked(page, experiment);
}

/// The title, with the form.
pub(super) fn titled(experiment: &Experiment) -> String {
    format!(
        "{}{}",
        experiment.title,
        when(experiment.quick, " (quick form)")
    )
}

/// The question below its title.
pub(super) fn asked(page: &mut Document, experiment: &Experiment) {
    page.say(&experiment.question);
    experiment
        .source
        .iter()
        .for_each(|source| page.note(format!("From: {source}")));
    page.gap();
}

fn fact(page: &mut Document, name: &str, text: impl Into<String>) {
    page.entry(&format!("{name:<10}"), text);
}

/// The sections of RFC 2544 that a run departs from, in a sentence. `sizes`: number of frame lengths.
pub(super) fn departures(experiment: &Experiment, sizes: usize) -> String {
    let departs = experiment.trials.departures(sizes);
    let form = when(experiment.quick, "quick: ");
    if departs.is_empty() {
        "By the sizes, times, waits and repeats of RFC 2544.".into()
    } else {
        format!(
            "{form}departs from RFC 2544 (sections {})",
            departs.join(", ")
        )
    }
}

fn place(page: &mut Document, plan: &Plan, campaign: &Campaign, site: Option<(&str, &LabFile)>) {
    let lab = match &campaign.lab {
        Lab::Embedded {
            mode: Mode::Inline, ..
        } => "embedded: network namespaces of this machine, inline (closed loop)",
        Lab::Embedded {
            mode: Mode::EndHosts,
            ..
        } => "end hosts: network namespaces of this machine, joined by a path",
        Lab::Embedded { .. } => {
            "embedded: network namespaces of this machine, threaded (open loop)"
        }
        Lab::File { path, .. } => &format!("the hosts of {}", site.map_or(path.as_str(), |s| s.0)),
    };
    fact(page, "lab", lab);
    if let Some(black_box) = site.and_then(|(_, lab)| lab.black_box.as_ref()) {
        let name = &black_box.name;
        fact(
            page,
            "DUT",
            format!("{name}, a black box: linerate asks it nothing and sets nothing on it"),
        );
    } else {
        fact(page, "DUT", system(plan, campaign));
    }
    traffic(page, campaign);
    collected(page, campaign);
}

/// The system of the DUT, and those that the plan is for as well.
fn system(plan: &Plan, campaign: &Campaign) -> String {
    let others = plan
        .systems
        .iter()
        .filter(|s| **s != campaign.experiment.system);
    let others: Vec<&str> = others.map(|s| s.name()).collect();
    let also = when(
        !others.is_empty(),
        format!("; --system NAME shows the plan for {}", others.join(", ")),
    );
    format!("{}{also}", campaign.experiment.system)
}

fn traffic(page: &mut Document, campaign: &Campaign) {
    let mut told = BTreeSet::new();
    for kind in &campaign.kinds {
        let checksum = when(!kind.checksum, ", without UDP checksum");
        let (size, flows) = (lengths(kind), grouped(kind.flows));
        let plural = when(kind.flows != 1, "s");
        let (family, transport, order) = (kind.family, kind.transport, kind.order);
        let words = match (kind.exchanged(), kind.http) {
            (Some(requests), Some(_)) => format!("{requests} connections"),
            (Some(connections), None) => format!("connections: {connections}"),
            (None, _) => {
                format!("{size} {family} {transport}, {flows} flow{plural}, {order}{checksum}")
            }
        };
        if told.insert(words.clone()) {
            fact(page, "traffic", words);
        }
    }
    for factor in &campaign.experiment.factors {
        let alone = when(factor.alone, ", swept alone");
        let about = factor
            .about
            .as_ref()
            .map(|a| format!("{a}; "))
            .unwrap_or_default();
        let (name, levels, sets) = (
            &factor.name,
            factor.levels.join(", "),
            factor.sets.join(" and "),
        );
        fact(
            page,
            "factor",
            format!("{name}: {levels} ({about}sets {sets}{alone})"),
        );
    }
}

fn collected(page: &mut Document, campaign: &Campaign) {
    let named = COLLECTORS
        .iter()
        .filter(|(name, _)| campaign.collect.what.iter().any(|what| what == name));
    let collected: Vec<&str> = named.map(|(_, meaning)| *meaning).collect();
    fact(
        page,
        "collected",
        format!("frame counters, {}", collected.join(", ")),
    );
    for (commands, when) in [
        (&campaign.collect.commands, ""),
        (&campaign.collect.during, ", under load"),
    ] {
        commands
            .iter()
            .for_each(|command| fact(page, "", format!("the output of `{command}`{when}")));
    }
    if let Some(load) = campaign.collect.profile_ns {
        fact(
            page,
            "",
            format!(
                "stacks of the kernel, under {} of load of each cell",
                precise(load)
            ),
        );
    }
}

/// A time of a trial: `250 ms`, `1.5 s`, `2 min`.
fn precise(ns: u64) -> String {
    match ns {
        0..1_000_000_000 => format!("{} ms", ns.div_ceil(1_000_000)),
        1_000_000_000..120_000_000_000 => format!("{} s", (ns as f64 / 1e8).round() / 10.0),
        _ => span(ns),
    }
}

fn comparisons(page: &mut Document, campaign: &Campaign) {
    let name = |why: Interest| match why {
        Interest::Variants => "variants with the baseline, at the same levels".to_string(),
        Interest::Levels(factor) => {
            format!(
                "levels of {}, each with the first",
                campaign.experiment.factors[factor].name
            )
        }
        Interest::Expectation(_) => "what else is expected".to_string(),
        Interest::Ceiling => "variants with the tester alone".to_string(),
    };
    let mut groups = together(
        campaign
            .experiment
            .comparisons
            .iter()
            .map(|c| (name(c.why), c.decides)),
    );
    groups.sort();
    let ends_early = campaign.experiment.trials.until.is_some();
    let told = groups.into_iter().map(|(name, decides)| {
        let decide = match decides.iter().filter(|decides| **decides).count() {
            _ if !ends_early => String::new(),
            0 => " (reported only)".into(),
            n if n == decides.len() => " (the campaign goes on until these are precise)".into(),
            n => format!(" (the campaign goes on until {n} of them are precise)"),
        };
        format!("{name}: {}{decide}", counted(decides.len(), "comparison"))
    });
    page.list("What is compared", "  ", told, Tone::Plain);
}

fn changed(page: &mut Document, campaign: &Campaign, is_black_box: bool) {
    page.heading("What will be changed");
    let (unset, all): (Vec<_>, Vec<_>) = changes(campaign)
        .into_iter()
        .partition(|host| is_black_box && host.lane.is_some());
    let is_embedded = matches!(campaign.lab, Lab::Embedded { .. });
    if is_embedded {
        page.say("A lab of network namespaces is made and gone with the run: routing, addresses, static neighbours.");
    }
    let text = all
        .iter()
        .chain(&unset)
        .flat_map(|h| &h.changes)
        .map(|c| format!("{}{}", c.what, c.to))
        .collect::<String>();
    for (name, meaning) in PLACEHOLDERS
        .iter()
        .filter(|(name, _)| text.contains(&format!("{{{name}}}")))
    {
        page.note(format!("{{{name}}} stands for {meaning}."));
    }
    for (host, lane) in unset.iter().filter_map(|host| Some((host, host.lane?))) {
        let (number, names) = (lane + 1, campaign.lanes[lane].variants.join(", "));
        page.warn(format!("Lane {number} is not measured: {names}. linerate sets nothing on a black box, and this needs:"));
        host.changes
            .iter()
            .for_each(|change| page.entry("  ", setting(change)));
    }
    for host in &all {
        let lane = host.lane.map(|lane| {
            format!(
                " for lane {}: {}",
                lane + 1,
                campaign.lanes[lane].variants.join(", ")
            )
        });
        page.answer(format!("{}{}", host.host, lane.unwrap_or_default()));
        host.changes
            .iter()
            .for_each(|change| page.entry("  ", one_change(change)));
    }
    if all.is_empty() {
        page.say(if is_embedded {
            "Nothing on this machine itself."
        } else {
            "Nothing, on no host."
        });
    }
}

fn one_change(change: &Change) -> String {
    let reach = match change.reach {
        Reach::Namespace => "",
        Reach::Host => " [on the host, put back afterwards]",
        Reach::Boot => " [from the next boot on, put back afterwards]",
        Reach::Stays => " [on the host, stays]",
    };
    setting(change) + reach
}

fn setting(change: &Change) -> String {
    let to = when(!change.to.is_empty(), format!(": {}", change.to));
    format!("{}{to}", change.what)
}

fn needs(page: &mut Document, campaign: &Campaign) {
    let mut by_need: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for need in &campaign.requirements {
        by_need
            .entry(requirement(need))
            .or_default()
            .push("everything");
    }
    for lane in &campaign.lanes {
        for need in &lane.requirements {
            let names = by_need.entry(requirement(need)).or_default();
            names.extend(lane.variants.iter().map(String::as_str));
        }
    }
    let told = by_need.into_iter().map(|(need, who)| {
        let who = together(who.into_iter().map(|who| (who, ())))
            .into_iter()
            .map(|w| w.0)
            .joined(", ");
        format!("{need}: for {who}")
    });
    page.list(
        "What is needed (what lacks it is skipped, with the reason)",
        "  ",
        told,
        Tone::Plain,
    );
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
    page.each(
        "What is expected",
        &campaign.experiment.expectations,
        |page, expectation| {
            page.entry(
                "  ",
                format!("{}, because {}", expectation.words, expectation.because),
            );
            let pairs = expectation.pairs.iter().map(|(of, than)| match than {
                Some(than) => format!("{} against {}", of + 1, than + 1),
                None => (of + 1).to_string(),
            });
            let cells = if expectation.pairs.is_empty() {
                "not judged in this form, or on this system".into()
            } else {
                format!("cells {}", some(pairs, PAIRS, ", "))
            };
            page.item("    ", cells, Tone::Note);
        },
    );
}
