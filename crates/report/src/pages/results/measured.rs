//! How it was measured (lab, CPUs, frames, trials and machine), where to look next, and why it ended.

use super::super::simulation::simulated;
use super::lab;
use super::shown::Shown;
use crate::prelude::*;
use linerate_measure::record::{Compared, Http, HttpOf, SHARED, States};
use linerate_wire::{
    CLIENT_PORTS, CLIENTS, ConnectionSpec, Extensions, Selection, ServedBy, SourceMacs,
};

/// Levels of the traffic that are listed one by one at most.
const MOST: usize = 8;

/// Files that a note names at most.
const NOTED: usize = 4;

/// The section, the next commands to run, and why it ended.
pub fn measured(page: &mut Document, shown: &Shown<'_>) {
    page.heading("How it was measured");
    let campaign = shown.campaign;
    if let Some(drawing) = lab::lab(campaign, shown.host).filter(|_| shown.is_whole()) {
        page.blocks.push(Block::Drawing(drawing));
    }
    let mode = campaign.asked.mode;
    let searched = !shown.summary.searches.is_empty();
    let arguments = match searched {
        true if !shown.summary.benchmarks.is_empty() => "the arguments of `linerate rfc2544`",
        true => "the arguments of `linerate search`",
        false if shown.summary.bisection.is_some() => "the arguments of `linerate bisect`",
        false => "the arguments of `linerate bench`; --print-plan prints them as a plan",
    };
    page.fact("plan", shown.planned.file.as_deref().unwrap_or(arguments));
    let shared = shown
        .campaign
        .notes
        .iter()
        .any(|note| note.contains(SHARED));
    let simulated = simulated(campaign);
    page.fact(
        "mode",
        match simulated {
            true => SIMULATED.into(),
            false => {
                let waits = shown.opens_connections()
                    && campaign.slots.iter().any(|slot| !slot.is_paced(mode));
                about(mode, shared, shown.noun()) + when(mode == Mode::Hosts && waits, CLOSED)
            }
        },
    );
    match mode {
        _ if simulated => {}
        Mode::Inline | Mode::Threaded => page.fact(
            "CPUs",
            [vec![roles(shown)], full_cpus(shown)].concat().join(". "),
        ),
        Mode::Hosts if !full_cpus(shown).is_empty() => {
            page.fact("CPUs of the DUT", full_cpus(shown).join(". "))
        }
        Mode::Hosts | Mode::EndHosts => {}
    }
    if let Some(filters) = super::filters::filters(shown) {
        page.fact("filter", filters);
    }
    page.fact("traffic", traffic(&campaign.slots, searched));
    page.fact("trials", trials(shown));
    states(page, shown);
    if mode != Mode::Hosts {
        page.fact("host", machine(shown.host));
    }
    for (what, state) in &campaign.standing {
        page.fact("note", format!("{what}: {state}"));
    }
    notes(page, campaign);
    let tester = match mode {
        Mode::Inline if !simulated => " All rates include the tester's time.",
        Mode::Inline | Mode::Threaded | Mode::Hosts | Mode::EndHosts => "",
    };
    let rates = rates(shown);
    let held = |c: &Compared| c.ministat.is_some();
    let ministat = when(
        shown.summary.comparisons.iter().any(held),
        " ministat compares averages, so its figures can differ: the changes are the result.",
    );
    if !searched {
        page.fact(
        "figures",
        format!("rates are medians of {rates}; changes, and % of tester, are medians of the ratios of trials of one block, which can differ from the ratio of two medians.{ministat} Stopping early does not weaken the intervals.{tester}"),
        );
    }
    let steps = linerate_measure::advice::next_steps(campaign, shown.host.cpus, shown.summary);
    page.entries("Where to look next", steps);
    page.gap();
    page.say(ended(shown));
}

/// Notes of a campaign.
fn notes(page: &mut Document, campaign: &Campaign) {
    // One that is about several files appears once.
    let notes = campaign
        .notes
        .iter()
        .map(|note| match note.split_once(": ") {
            Some((of, note)) => (Some(note), of),
            None => (None, note.as_str()),
        });
    for (note, of) in together(notes) {
        let of = of.into_iter().map(String::from);
        match note {
            Some(note) => page.fact("note", format!("{}: {note}", some(of, NOTED, ", "))),
            None => of.for_each(|note| page.fact("note", note)),
        }
    }
}

/// The rates of a campaign, in words.
fn rates(shown: &Shown<'_>) -> &'static str {
    match shown.campaign.asked.mode {
        Mode::EndHosts => "bit/s of payload that iperf3's receiver read (layer 4)",
        _ if super::kept::any(shown) && !super::kept::closes(shown) => {
            "connections opened per second"
        }
        _ if shown.campaign.carries_http() => "requests that wrk had answers to, per second",
        _ if shown.opens_connections() => "connections closed per second",
        _ => "received frames/s",
    }
}

/// Connections between hosts where no rate is asked for.
const CLOSED: &str = " Connections without a rate are a closed loop: each thread that opens them has at most 128 under way.";

/// The mode of every simulation.
const SIMULATED: &str = "simulated: linerate makes the frames in memory, and computes what the DUT does with them. No frame leaves linerate; the clock is simulated.";

/// `shared`: whether hosts are namespaces of this machine.
fn about(mode: Mode, shared: bool, noun: &str) -> String {
    let about = match mode {
        Mode::Inline if noun == "request" => {
            "inline: wrk, DUT and nginx share the same CPUs, and wrk waits for answers. It shows the time per request, which is mostly that of the programs and of their kernels' TCP."
        }
        Mode::Inline => {
            return format!(
                "inline, a closed loop: generator, DUT and receiver take turns on the same CPU, so the load is what the DUT takes. It shows the cost per {noun}, not loss or overload."
            );
        }
        Mode::Threaded => {
            "threaded, an open loop: the DUT has CPUs of its own and the load does not wait for it. It shows loss, overload and latency."
        }
        Mode::EndHosts => {
            "end hosts: iperf3 sends TCP from one host to the other over a path with a given round-trip time and rate. The hosts, in namespaces with settings of their own, are the device under test; they share this machine's CPUs."
        }
        Mode::Hosts if shared => {
            "hosts, in network namespaces of this machine: the CPU that sends a frame may also carry it through the DUT, so a slow DUT can slow the generator. A trial that does not get the load that was asked for fails its audit."
        }
        Mode::Hosts => {
            "hosts: generator, DUT and receiver are hosts of the lab file. A load with a rate does not wait for the DUT, and shows loss and overload."
        }
    };
    about.into()
}

/// The roles of the CPUs: `generator, DUT on CPU 1; receiver on CPU 2`.
fn roles(shown: &Shown<'_>) -> String {
    let roles = &shown.campaign.roles;
    let all = [
        ("generator", &roles.generator),
        ("DUT", &roles.dut),
        ("receiver", &roles.receiver),
        ("control", &roles.control),
    ];
    let shared = together(all.map(|(role, cpus)| (cpus, role)));
    let words =
        |(cpus, roles): (&Vec<u32>, Vec<&str>)| format!("{} on {}", roles.join(", "), named(cpus));
    shared.into_iter().map(words).joined("; ")
}

/// The CPUs without idle time.
fn full_cpus(shown: &Shown<'_>) -> Vec<String> {
    let valid = || shown.rows().filter(|r| r.valid_trials > 0);
    let full = valid().filter(|r| !r.full_cpus.is_empty());
    let all = together(full.map(|r| (r.full_cpus.as_slice(), shown.name(r.slot)))).into_iter();
    let sentence = |(cpus, names): (&[u32], Vec<String>)| {
        let names = if names.len() == valid().count() {
            "all cells".into()
        } else {
            listed(&names)
        };
        format!("{} at least 95 % busy in {names}", named(cpus))
    };
    all.map(sentence).collect()
}

/// `CPUs 1-3`
fn named(cpus: &[u32]) -> String {
    let list = lab::list(cpus);
    match cpus {
        [] => "no CPU".into(),
        [_] => format!("CPU {list}"),
        _ => format!("CPUs {list}"),
    }
}

/// Properties of the frames, each once.
fn traffic(slots: &[Slot], searched: bool) -> String {
    let rate = if searched {
        "the rate is searched for".into()
    } else {
        format!("rate {}", each(slots.iter().map(|slot| slot.rate.clone())))
    };
    let requests = slots.iter().filter_map(|slot| slot.http).map(requested);
    let requests = each(requests);
    if !requests.is_empty() {
        return format!("{requests}; IPv4; TCP port 80; {rate}");
    }
    if slots.iter().any(|slot| slot.connections().is_some()) {
        let servers = |spec: &ConnectionSpec| match spec.served_by {
            ServedBy::Tester => spec.servers.to_string(),
            ServedBy::Nginx => "nginx".into(),
        };
        let ends = format!(
            "{CLIENTS} clients with {} ports each, servers: {}",
            grouped(CLIENT_PORTS),
            each(
                slots
                    .iter()
                    .filter_map(|slot| slot.connections())
                    .map(servers)
            )
        );
        let families = each(slots.iter().map(|slot| slot.family.clone()));
        let kinds = each(
            slots
                .iter()
                .filter_map(|slot| slot.connections())
                .map(opened),
        );
        let specs = || slots.iter().filter_map(|slot| slot.connections());
        let strays = each(specs().map(|spec| match (spec.flood, spec.illegal) {
            (0, 0) => "none".into(),
            (0, millionths) => format!("{} % of the attempts", f64::from(millionths) / 1e4),
            (rate, _) => format!("{} SYN/s", grouped(rate)),
        }));
        let illegal = specs().any(|spec| spec.illegal > 0);
        let what = if illegal { "illegal" } else { "flood" };
        let strays = specs()
            .any(|spec| spec.has_strays())
            .then(|| format!("{what}: {strays}"));
        let all = [kinds, families, ends].into_iter().chain(strays);
        return all.chain([rate]).joined("; ");
    }
    let unit = |slot: &Slot| when(slot.lengths_fcs.len() == 1, " B");
    let flows = slots.iter().filter_map(|slot| slot.flows);
    let both = slots.iter().any(|slot| slot.direction == Direction::Both);
    let modified = slots.iter().map(modifiers).filter(|text| !text.is_empty());
    let modified = Some(each(modified)).filter(|text| !text.is_empty());
    let directions = slots.iter().map(|slot| slot.direction.to_string());
    let directions = both.then(|| each(directions) + " (rates of each direction)");
    [
        each(
            slots
                .iter()
                .map(|slot| format!("{}{}", slot.frame, unit(slot))),
        ),
        each(slots.iter().map(|slot| slot.family.clone())),
        each(slots.iter().map(|slot| slot.transport.clone())),
        some(distinct(flows.clone().map(grouped)), MOST, " and ")
            + if flows.clone().all(|flows| flows == 1) {
                " flow"
            } else {
                " flows"
            },
        format!(
            "flow order {}",
            each(slots.iter().map(|slot| slot.order.clone()))
        ),
        rate,
    ]
    .into_iter()
    .chain(modified)
    .chain(directions)
    .joined("; ")
}

/// Requests: `a connection for each request, objects of 1,024 B, 64 connections at the same time`.
fn requested(of: HttpOf) -> String {
    let how = match of.http {
        Http::Close => "a connection for each request",
        Http::KeepAlive => "connections stay open",
    };
    format!(
        "HTTP/1.1 from wrk to nginx, {how}, objects of {} B, {} connections at the same time",
        grouped(of.object),
        grouped(of.connections)
    )
}

/// The frames of connections: `request (SYN, SYN/ACK, ...) with objects of 6 B`.
fn opened(spec: &ConnectionSpec) -> String {
    let mut words = spec.stages().join(", ");
    if spec.object > 0 {
        words += &format!(", objects of {} B", spec.object);
    }
    if let Some(open) = spec.open {
        words += &format!(", {} open at the same time", grouped(open));
    }
    words
}

/// The modifiers of a slot's frames: networks, random ports, a share of IPv6 frames. Older records do not have them.
pub fn modifiers(slot: &Slot) -> String {
    let Some(traffic) = &slot.traffic else {
        return String::new();
    };
    let (flows, headers) = (&traffic.flows, traffic.frame.extensions);
    let random = |selection: Selection| selection != Selection::Counted;
    let all = [
        traffic
            .ipv6
            .as_ref()
            .map(|second| format!("{} % IPv6", f64::from(second.millionths) / 1e4)),
        (headers != Extensions::None).then(|| format!("IPv6 extension headers: {headers}")),
        (flows.networks() > 1).then(|| format!("{} networks", flows.networks())),
        random(flows.addresses()).then(|| "random addresses".into()),
        random(flows.ports()).then(|| "random ports".into()),
        (traffic.source_macs != SourceMacs::Own).then(|| "random Ethernet sources".into()),
        (traffic.broadcast_every > 0).then(|| {
            format!(
                "1 broadcast frame in {}, counted apart",
                traffic.broadcast_every
            )
        }),
        (traffic.burst > 0).then(|| format!("bursts of {}", traffic.burst)),
    ];
    all.into_iter().flatten().joined(", ")
}

/// Each of several once.
fn each(all: impl Iterator<Item = String>) -> String {
    some(
        together(all.map(|text| (text, ())))
            .into_iter()
            .map(|(text, _)| text),
        MOST,
        ", ",
    )
}

fn trials(shown: &Shown<'_>) -> String {
    let asked = &shown.campaign.asked;
    let count: usize = shown.rows().map(|r| r.trials).sum();
    let is_search = !shown.summary.searches.is_empty();
    let order = if is_search {
        "the cells in turns, trial by trial"
    } else {
        shown.planned.experiment.trials.order.about()
    };
    let ms = asked.timing.run_ns / 1_000_000;
    let long = match is_search {
        true => String::new(),
        false if super::kept::any(shown) => format!(", connections open for {ms} ms"),
        false => format!(" of {ms} ms"),
    };
    let trials = format!(
        "{}{long}, {order}, seed {}",
        counted(count, "trial"),
        asked.seed
    );
    if simulated(shown.campaign) {
        return trials;
    }
    format!(
        "{trials}, batches of {}, generator {}, receiver {}, in {}",
        asked.batch, asked.generator, asked.receiver, asked.lab,
    )
}

/// How far connections were when the trials began, where DUTs keep states.
fn states(page: &mut Document, shown: &Shown<'_>) {
    let rows = shown.rows();
    let of_rows = rows.filter_map(|row| Some((row.connections?.states, shown.name(row.slot))));
    for (states, names) in together(of_rows) {
        let meaning = match states {
            States::Established => {
                "established: the DUT has seen every connection in both directions before each trial"
            }
            States::New => "new: the DUT knows no connection when a trial begins",
            States::OneWay => {
                "one-way states: the DUT has seen every connection before, and never an answer"
            }
        };
        page.fact("states", format!("{meaning} ({})", names.join("; ")));
    }
}

fn machine(host: &HostFacts) -> String {
    if host.cpu_model.is_empty() {
        return "not recorded".into();
    }
    let behind = match &host.priority {
        Some(Err(why)) => format!("; linerate's threads do not come before other programs: {why}"),
        _ => String::new(),
    };
    let hypervisor = host
        .hypervisor
        .as_deref()
        .map_or(String::new(), |h| format!(" under {h}"));
    format!(
        "{}, {} CPUs{hypervisor}; Linux {}; {}; clock {}{behind}",
        host.cpu_model, host.cpus, host.kernel, host.os, host.clock_source
    )
}

/// Why the campaign ended, and its duration.
fn ended(shown: &Shown<'_>) -> String {
    let summary = shown.summary;
    let reboots = match summary.reboots as usize {
        0 => String::new(),
        n => format!(" with {} of the DUT", counted(n, "reboot")),
    };
    let mut text = format!(
        "Took {}{reboots}: {}.",
        seconds(summary.seconds),
        summary.ended()
    );
    if summary.seconds > 0.0 {
        let load = 100.0 * summary.load_share.clamp(0.0, 1.0);
        let waited = (100.0 * summary.waited_share).clamp(0.0, 100.0 - load);
        let others = when(
            waited >= 0.05,
            format!(", waiting for another linerate {waited:.1} %"),
        );
        text += &format!(
            " The load took {load:.1} % of this time{others}, overhead {:.1} %.",
            100.0 - load - waited
        );
    }
    if summary.peak_memory > 0 {
        text += &format!(
            " linerate held {} of memory at most.",
            bytes(summary.peak_memory)
        );
    }
    text
}
