//! The registry of rules. Each file looks for one cause.

use crate::case::Spent;
use crate::{Case, Examined};
use linerate_measure::experiment::System;
use linerate_measure::record::{Change, Finding, Strength};
use serde_json::{Value, json};

macro_rules! rules {
    ($($module:ident = $cause:literal),+ $(,)?) => {
        $(mod $module;)+
        /// All rules, with the causes that they look for.
        pub(crate) const RULES: &[(&str, fn(&Case<'_>) -> Examined)] = &[$(($cause, $module::examine)),+];
    };
}

rules! {
    tester_limit = "tester-limit",
    drops = "frames-dropped",
    one_queue = "one-queue",
    few_queues = "queues-fewer-than-cpus",
    queue_number = "queues-no-power-of-two",
    hash_fields = "hash-without-ports",
    interrupts = "interrupts-on-one-cpu",
    numa = "other-numa-node",
    siblings = "hyper-threads",
    idle_cpus = "idle-cpus",
    linear_rules = "linear-rules",
    bridge_netfilter = "bridge-netfilter",
    bridge = "bridge",
    connection_table = "connection-table",
    reverse_path = "reverse-path-filter",
    logging = "logging",
    policy_routing = "policy-routing",
    ipsec_policies = "ipsec-policies",
    queueing = "queueing-discipline",
    traffic_filters = "traffic-filters",
    merging = "frame-merging",
    checksums = "checksum-in-software",
    generic_xdp = "generic-xdp",
    packet_tap = "packet-tap",
    fragments = "fragmentation",
    locks = "lock-contention",
    harvest = "entropy-harvest",
    mitigations = "mitigations",
    governor = "frequency-governor",
    steal = "steal",
    other_programs = "other-programs",
    hand_over = "hand-over",
    ring = "ring-overrun",
    squeezes = "budget-squeezes",
    pause = "flow-control",
    neighbours = "neighbour-table",
    pcie = "pcie-lanes",
}

/// How to change something on a system, and how to undo that.
fn change(system: &str, commands: impl Into<String>, undo: impl Into<String>) -> Change {
    Change { system: system.into(), commands: commands.into(), undo: undo.into() }
}

/// The keys of a plan's variant that make a change, or why none do.
type Tried = (Option<Value>, Option<String>);

/// A change that a command makes in a DUT of the embedded lab, which disappears with all that it was set to.
fn in_lab(case: &Case<'_>, command: &str) -> Tried {
    match case.is_embedded() {
        true => (Some(json!({ "commands": [{ "run": command, "undo": "true" }] })), None),
        false => (
            None,
            Some(
                "a plan could not put back what the host has there: change it by hand, and measure again"
                    .into(),
            ),
        ),
    }
}

/// The interrupts of the inside interface on these CPUs, in turn.
fn by_interrupts(case: &Case<'_>, cpus: &[u32]) -> Tried {
    let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
    match case.system() {
        System::Linux | System::Vyos => {
            (Some(json!({ "interface": { "in": { "irq": cpus.join(",") } } })), None)
        }
        _ => (None, Some("a plan sets the CPUs of interrupts on Linux only".into())),
    }
}

/// The context that forwards, in the words of the DUT's system.
fn softirqs(case: &Case<'_>) -> &'static str {
    match case.system() {
        System::Linux | System::Vyos => "softirqs",
        _ => "the kernel",
    }
}

/// `12.3 %`
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// An offload of a card that is on, or off.
fn offload(case: &Case<'_>, names: [&str; 2], on: bool) -> Result<Option<String>, String> {
    let cards = &case.configuration()?.cards;
    if cards.iter().all(|card| card.features.is_empty()) {
        return Err("the DUT does not tell the offloads of its cards".into());
    }
    let state = if on { "on" } else { "off" };
    Ok(cards.iter().find_map(|card| {
        let name = names.into_iter().find(|name| card.features.get(*name) == Some(&on))?;
        Some(format!("{}: {name} is {state}", card.name))
    }))
}

/// Evidence of a cause: the time of its functions; without a profile, the setting that brings them in. `setting` is its text, if it is
/// set. A setting whose cost a profile does not show is no cause.
fn cost_or_setting(
    spent: Result<Spent, String>,
    least: f64,
    setting: Result<Option<String>, String>,
) -> Result<Option<Finding>, String> {
    let (strength, weight, evidence) = match (spent, setting) {
        (Ok(spent), setting) if spent.is_clear(least) => {
            let setting = setting.ok().flatten();
            (Strength::Observed, spent.share, std::iter::once(spent.evidence()).chain(setting).collect())
        }
        (Ok(_), _) | (Err(_), Ok(None)) => return Ok(None),
        (Err(why), Ok(Some(setting))) => {
            (Strength::Possible, 0.1, vec![setting, format!("its cost is not known: {why}")])
        }
        (Err(why), Err(why_not)) => return Err(format!("{why}, and {why_not}")),
    };
    let gain = match strength {
        Strength::Observed => format!("up to {} of a frame's time", percent(weight)),
        _ => "not known: profile it (--profile)".into(),
    };
    Ok(Some(Finding { strength, weight, evidence, gain, ..Finding::default() }))
}

/// The gain with a figure from elsewhere.
fn and_elsewhere(gain: &str, elsewhere: &str) -> String {
    format!("{gain}; elsewhere: {elsewhere}")
}
