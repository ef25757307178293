//! The commands of a plan on the hosts of a lab, as far as plan and lab file determine them: no host is asked.

use super::preparation::cells;
use super::site::{lane_steps, port_of};
use super::tester::{Side, task};
use crate::messages::told;
use anyhow::Result;
use linerate_hosts::dut_changes::{Program, Target};
use linerate_hosts::rehearsal::{Action, Part};
use linerate_hosts::tools::{self, Task};
use linerate_measure::experiment::Reboot;
use linerate_measure::trial::Timing;
use linerate_plan::Backend;
use linerate_plan::campaign::Campaign;
use linerate_plan::lab::{Host, Interface, Lab};
use linerate_plan::placeholders::fill;
use linerate_plan::settings::End;
use linerate_report::pages::together;
use linerate_wire::{Load, MacAddr};
use std::path::Path;

/// Everything, host by host. `folder`: the plan's.
///
/// # Errors
/// Impossible rates or flows.
pub fn rehearse(plan: &Campaign, lab: &Lab, folder: &Path) -> Result<Vec<Part>> {
    let mut parts = match lab.dut() {
        Some(dut) => of_dut(plan, lab, dut, folder),
        None => Vec::new(),
    };
    parts.extend(of_tester(plan, lab)?);
    Ok(parts)
}

/// The name of an interface, or its placeholder if only the host knows it.
fn name(interface: Option<&Interface>, key: &str) -> String {
    interface
        .and_then(|i| i.name.clone())
        .unwrap_or_else(|| format!("{{{key}}}"))
}

/// An action for which no program runs on a host.
fn words(what: &str, command: String) -> Action {
    Action {
        what: what.into(),
        argv: Vec::new(),
        command,
        undo: None,
        undo_argv: Vec::new(),
    }
}

fn of_dut(plan: &Campaign, lab: &Lab, dut: &Host, folder: &Path) -> Vec<Part> {
    let port = |end: End, key: &str| {
        let interface = dut.end(end);
        let addresses = interface
            .map(|i| i.addresses.as_slice())
            .unwrap_or_default();
        port_of(lab, end, name(interface, key), addresses)
    };
    let saved = dut
        .system
        .and_then(|system| system.config_save())
        .map(String::from);
    let target = Target {
        system: plan.experiment.system,
        inside: port(End::In, "in"),
        outside: port(End::Out, "out"),
        config_save: dut.config_save.clone().or(saved),
    };
    let host = format!("{} (DUT)", dut.name);
    let mut parts = Vec::new();
    for (number, lane) in plan.lanes.iter().enumerate() {
        let actions = match lane_steps(plan, number, &target, folder) {
            Ok(steps) => {
                let booted = (steps.reboot || plan.experiment.trials.reboot == Reboot::EachTrial)
                    .then(|| words("reboot", "shutdown -r now".into()));
                let (lasting, others) = steps.steps.split_at(steps.lasting.min(steps.steps.len()));
                lasting
                    .iter()
                    .map(Action::from)
                    .chain(booted)
                    .chain(others.iter().map(Action::from))
                    .collect()
            }
            Err(why) => why
                .into_iter()
                .map(|why| words("cannot be measured", why))
                .collect(),
        };
        let when = format!("for lane {}: {}", number + 1, lane.variants.join(", "));
        parts.push(Part {
            host: host.clone(),
            when,
            actions,
        });
    }
    let filled = |command: &String| fill(command, &target.inside.name, &target.outside.name);
    let shell =
        |what: &str, command| Action::of(what, &Program::new(["sh", "-c", &filled(command)]));
    let during = plan
        .collect
        .during
        .iter()
        .map(|command| shell("collected under load", command));
    let after = plan
        .collect
        .commands
        .iter()
        .map(|command| shell("collected after the load", command));
    let actions: Vec<Action> = during.chain(after).collect();
    if !actions.is_empty() {
        parts.push(Part {
            host,
            when: "in each trial".into(),
            actions,
        });
    }
    parts
}

/// Generators and receiver, for every kind of traffic and rate.
fn of_tester(plan: &Campaign, lab: &Lab) -> Result<Vec<Part>> {
    let prepared = cells(plan, Some(lab))?;
    let sending: Vec<(&Host, &Interface)> = lab
        .generators()
        .flat_map(|host| host.send.iter().map(move |i| (host, i)))
        .collect();
    let receiver = lab.receiver();
    let tools: Vec<Option<Backend>> = sending
        .iter()
        .map(|(host, _)| host.tool)
        .chain([receiver.tool])
        .collect();
    let agents = tools.iter().all(|tool| tool.is_none_or(Backend::is_own));
    let to = match lab.device() {
        Some(dut) => dut.inside.as_ref(),
        None => receiver.receive.as_ref(),
    };
    let to = to.and_then(|interface| interface.mac);
    let load_of = |cell: usize| (prepared.kind_of[cell], prepared.slots[cell].asked_fps);
    let loads = together((0..plan.cells.len()).map(|cell| (load_of(cell), (cell + 1).to_string())));
    let asked = match lab.dut() {
        Some(dut) => format!("MAC-OF-{}.in", dut.name),
        None => format!("MAC-OF-{}.receive", receiver.name),
    };
    let counting = name(receiver.receive.as_ref(), "receive");
    let none = Interface::default();
    let far = side(&counting, receiver.receive.as_ref().unwrap_or(&none));
    let lasting = Load::lasting(Timing::of_hosts(plan.experiment.trials.duration_ns).load());
    let share = |rate: Option<f64>| rate.map(|rate| rate / sending.len().max(1) as f64);
    let mut parts = Vec::new();
    for ((kind, rate), cells) in &loads {
        let frames = &prepared.kinds[*kind];
        let task = |tool, near: &Side<'_>, at: &str| {
            let task = task(frames, tool, [near, &far], at, to.unwrap_or(UNKNOWN))?;
            Ok(Task {
                load: Load {
                    rate: share(*rate),
                    ..lasting
                },
                ..task
            })
        };
        let when = format!("in each trial of cells {}", cells.join(", "));
        for (host, interface) in &sending {
            let at = name(Some(interface), "send");
            let near = side(&at, interface);
            let action = match agents {
                true => by_agent(host, "sends from", &at),
                false => by_tool(host, &at, Some(&asked), |tool| task(tool, &near, &at)),
            };
            let host = format!("{} (generator)", host.name);
            parts.push(Part {
                host,
                when: when.clone(),
                actions: vec![action],
            });
        }
        let action = match (agents, sending.first()) {
            (false, Some((_, interface))) => {
                let near = name(Some(interface), "send");
                by_tool(receiver, &counting, None, |tool| {
                    task(tool, &side(&near, interface), &counting)
                })
            }
            _ => by_agent(receiver, "counts at", &counting),
        };
        parts.push(Part {
            host: format!("{} (receiver)", receiver.name),
            when,
            actions: vec![action],
        });
    }
    Ok(parts)
}

/// Stands for an Ethernet address that the hosts are asked for at the start. It is one of RFC 7042's for documentation, which no lab file has.
const UNKNOWN: MacAddr = MacAddr([0x00, 0x00, 0x5e, 0x00, 0x53, 0x00]);

fn side<'a>(name: &'a str, wanted: &'a Interface) -> Side<'a> {
    Side {
        name,
        wanted,
        addresses: wanted.addresses.iter().map(|a| a.address).collect(),
    }
}

fn by_agent(host: &Host, does: &str, at: &str) -> Action {
    let words: &[&str] = if host.sudo {
        &["sudo", "-n", "linerate", "agent"]
    } else {
        &["linerate", "agent"]
    };
    let found = if host.tool.is_none() {
        ", if it has linerate; else pkt-gen"
    } else {
        ""
    };
    Action::of(
        format!("linerate {does} {at}{found}"),
        &Program::new(words.iter().copied()),
    )
}

fn by_tool(
    host: &Host,
    at: &str,
    sends_to: Option<&str>,
    task: impl FnOnce(Backend) -> Result<Task>,
) -> Action {
    let tool = host.tool.unwrap_or(Backend::PktGen);
    let (side, does) = match sends_to {
        Some(_) => (tools::Side::Generator, "sends from"),
        None => (tools::Side::Receiver, "counts at"),
    };
    match task(tool).and_then(|task| Ok(tools::command(tool, side, &task)?.argv)) {
        Ok(argv) => {
            let mac = UNKNOWN.to_string();
            let asked = sends_to.filter(|_| argv.iter().any(|word| word.contains(&mac)));
            let shown = argv
                .iter()
                .map(|word| word.replace(&mac, asked.unwrap_or(&mac)));
            let when = asked.map_or(String::new(), |asked| {
                format!(" ({asked} is asked at the start)")
            });
            Action::of(format!("{tool} {does} {at}{when}"), &Program::new(shown))
        }
        Err(error) => words("cannot be measured", told(&error)),
    }
}
