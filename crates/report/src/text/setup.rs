//! How it was measured, on what, what to beware of, and why it ended.

use super::names::{Names, together};
use super::numbers::{bytes, counted, grouped, seconds};
use crate::document::{Document, Tone};
use linerate_measure::record::{Campaign, HostFacts, Summary};
use linerate_measure::strategy::Stopped;
use linerate_plan::settings::Mode;
use linerate_plan::settings::States;

/// Mode, CPUs, traffic, machine.
pub fn measured(
    page: &mut Document,
    campaign: &Campaign,
    host: &HostFacts,
    summary: &Summary,
    names: &Names,
) {
    page.heading("How it was measured");
    page.fact("mode", mode(campaign.asked.mode));
    if campaign.asked.mode != Mode::Hosts {
        page.fact("CPUs", &cpus(campaign, summary, names));
    }
    page.fact("traffic", &traffic(campaign));
    states(page, summary, names);
    if campaign.asked.mode != Mode::Hosts {
        page.fact("host", &machine(host));
    }
    for note in &campaign.notes {
        page.fact("note", note);
    }
}

pub(super) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Inline => {
            "inline, a closed loop: generator, DUT and receiver take turns on the same CPU, so the load is what the DUT takes. It shows the cost per frame, not loss or overload."
        }
        Mode::Threaded => {
            "threaded, an open loop: the DUT has CPUs of its own and the load does not wait for it. It shows loss, overload and latency."
        }
        Mode::Hosts => {
            "hosts, an open loop: generator, DUT and receiver are machines of their own, and the load does not wait for the DUT. It shows loss and overload."
        }
    }
}

/// Which CPUs do what.
pub(super) fn roles(campaign: &Campaign) -> String {
    let roles = &campaign.roles;
    [
        ("generator", &roles.generator),
        ("DUT", &roles.dut),
        ("receiver", &roles.receiver),
        ("control", &roles.control),
    ]
    .map(|(role, cpus)| format!("{role} {}", list(cpus)))
    .join(", ")
}

fn cpus(campaign: &Campaign, summary: &Summary, names: &Names) -> String {
    let mut text = roles(campaign);
    let full = summary.rows.iter().filter(|r| !r.full_cpus.is_empty());
    let full = together(full.map(|r| (r.full_cpus.as_slice(), names.get(r.slot))));
    for (cpus, slots) in full {
        let always = slots.len() == summary.rows.len();
        let slots = if always { "all slots".into() } else { slots.join("; ") };
        text += &format!(". CPU {} at least 95 % busy in {slots}", list(cpus));
    }
    text
}

/// CPU numbers as the kernel lists them: `0-3,8`.
pub(super) fn list(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let runs = sorted.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    let text = runs.collect::<Vec<_>>().join(",");
    if text.is_empty() { "none".into() } else { text }
}

fn traffic(campaign: &Campaign) -> String {
    let asked = &campaign.asked;
    let mut transports: Vec<&str> = campaign.slots.iter().map(|s| s.transport.as_str()).collect();
    transports.sort_unstable();
    transports.dedup();
    let flows = if asked.flows == 1 { "1 flow".into() } else { format!("{} flows", grouped(asked.flows)) };
    format!(
        "{flows} of {}, {}, rate {}, batches of {}, from {} to {} in {}; trials of {} ms, seed {}",
        transports.join(" and "),
        asked.order,
        asked.rate,
        asked.batch,
        asked.generator,
        asked.receiver,
        asked.lab,
        asked.timing.run_ns / 1_000_000,
        asked.seed,
    )
}

/// How far connections were when the trials began, where DUTs keep states.
pub(super) fn states(page: &mut Document, summary: &Summary, names: &Names) {
    let slots = together(summary.rows.iter().filter_map(|row| {
        let meaning = match row.connections?.states {
            States::Established => {
                "established: the DUT has seen every connection in both directions before each trial"
            }
            States::New => "new: the DUT knows no connection when a trial begins",
            States::OneWay => "one-way states: the DUT has seen every connection before, and never an answer",
        };
        Some((meaning, names.get(row.slot)))
    }));
    for (meaning, slots) in slots {
        page.fact("states", &format!("{meaning} ({})", slots.join("; ")));
    }
}

pub(super) fn machine(host: &HostFacts) -> String {
    let hypervisor = host.hypervisor.as_deref().map_or(String::new(), |h| format!(" under {h}"));
    let text = format!(
        "{}, {} CPUs{hypervisor}; Linux {}; {}; clock {}",
        host.cpu_model, host.cpus, host.kernel, host.os, host.clock_source
    );
    if host.cpu_model.is_empty() { "not recorded".into() } else { text }
}

/// What to run next, and why.
pub fn next_steps(page: &mut Document, campaign: &Campaign, host: &HostFacts, summary: &Summary) {
    let steps = linerate_measure::advice::next_steps(campaign, host.cpus, summary);
    page.list("Where to look next", "- ", steps, Tone::Plain);
}

/// Why it ended and what it cost.
pub fn stopped(page: &mut Document, summary: &Summary) {
    let why = match summary.stopped {
        Stopped::Precise => "all intervals are narrow enough",
        Stopped::Budget => "the time is used up",
        Stopped::Trials => "the trials asked for have been run",
        Stopped::Interrupted => "it was interrupted",
        Stopped::Failed => "something failed",
    };
    let reboots = match summary.reboots as usize {
        0 => String::new(),
        n => format!(" with {} of the DUT", counted(n, "reboot")),
    };
    let mut text = format!("Ended after {}{reboots}: {why}.", seconds(summary.seconds));
    if summary.seconds > 0.0 {
        let load = summary.load_share.clamp(0.0, 1.0);
        text += &format!(" Under load {:.1} % of it, overhead {:.1} %.", 100.0 * load, 100.0 * (1.0 - load));
    }
    if summary.peak_memory > 0 {
        text += &format!(" linerate held {} of memory at most.", bytes(summary.peak_memory));
    }
    page.gap();
    page.paragraph(&text, Tone::Plain);
}
