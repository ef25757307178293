//! The frames of a configuration's sender, as far as plans can express them.

use super::notes::Notes;
use super::values::Values;
use linerate_hosts::pktgen::Command;
use linerate_plan::units::MOST_PER_THREAD;
use std::fmt;

/// Flows of a plan at most.
const MOST_FLOWS: u64 = 5_000_000;
/// Flows where the command does not say: the archive's equilibrium sends that many.
const EQUILIBRIUM_FLOWS: u64 = 5000;
/// Frame length with FCS that equilibrium sends: 500 bytes of UDP payload.
const EQUILIBRIUM_LENGTH: u64 = 546;
/// The shortest and longest frame of a plan, with FCS.
const LENGTHS: std::ops::RangeInclusive<u64> = 64..=16_000;

/// The variables that hold commands of senders.
pub(super) const SENDERS: [&str; 4] = [
    "SENDER_START_CMD",
    "SENDER_START_CMD_2",
    "SENDER_2_START_CMD",
    "SENDER_2_START_CMD_2",
];

/// One kind of frames.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Traffic {
    /// Frame length with FCS.
    pub(super) length_fcs: u64,
    /// `IPv4` or `IPv6`.
    pub(super) family: &'static str,
    pub(super) flows: u64,
    /// Frames a second; as many as possible where none are named.
    pub(super) rate: Option<u64>,
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traffic {
            length_fcs,
            family,
            flows,
            rate,
        } = self;
        write!(f, "{length_fcs} B {family}, {flows} flows, ")?;
        match rate {
            Some(rate) => write!(f, "{rate} a second"),
            None => write!(f, "as fast as possible"),
        }
    }
}

/// The command of a sender or receiver, if known.
pub(super) fn command(values: &Values, name: &str) -> Option<Command> {
    values
        .known(name)
        .map(|text| Command::parse(None, text.as_bytes()))
}

/// The frames of all senders together.
pub(super) fn traffic(values: &Values, notes: &mut Notes) -> Traffic {
    let commands: Vec<(&str, Command)> = SENDERS
        .iter()
        .filter_map(|name| Some((*name, command(values, name)?)))
        .collect();
    let mut told = |name: &str, what: String| {
        if let Some(value) = values.get(name) {
            notes.left_value(value, format!("{name}: {what}"));
        }
    };
    let family = family(values, commands.first().map(|(_, command)| command));
    let Some((name, first)) = commands.first() else {
        return Traffic {
            length_fcs: 64,
            family,
            flows: 2000,
            rate: None,
        };
    };
    let equilibrium = first.program().ends_with("equilibrium");
    if equilibrium {
        let what = "equilibrium looks for the load without loss; the plan offers as much as possible, and counts what arrives";
        told(name, what.into());
    }
    let length_fcs = length_fcs(first, equilibrium, |what| told(name, what));
    let flows = flows(first, equilibrium, |what| told(name, what));
    let frames = |command: &Command| (command.flows(), command.length(), command.rate());
    for (name, _) in commands
        .iter()
        .filter(|(_, other)| frames(other) != frames(first))
    {
        told(
            name,
            "it sends other frames than the first; a plan has one kind".into(),
        );
    }
    let rates: Option<Vec<u64>> = commands
        .iter()
        .map(|(_, c)| c.rate().filter(|rate| *rate > 0))
        .collect();
    let rate = rates.map(|rates| rates.into_iter().fold(0, u64::saturating_add));
    if let Some(more) = rate.filter(|rate| *rate as f64 > MOST_PER_THREAD) {
        let instead = "it offers as many as possible";
        told(
            name,
            format!("{more} frames a second are more than a plan can ask for: {instead}"),
        );
        return Traffic {
            length_fcs,
            family,
            flows,
            rate: None,
        };
    }
    Traffic {
        length_fcs,
        family,
        flows,
        rate,
    }
}

/// The frame length of a plan. `told` gets the reason where it is not the sender's.
fn length_fcs(first: &Command, equilibrium: bool, told: impl FnOnce(String)) -> u64 {
    match first.length() {
        _ if equilibrium => EQUILIBRIUM_LENGTH,
        Some(length) if length.saturating_add(4) > *LENGTHS.end() => {
            told(format!(
                "frames of {length} bytes are too long for a plan: 64 B are taken"
            ));
            64
        }
        // Shorter frames are padded on the wire.
        length => length.map_or(64, |length| (length + 4).max(*LENGTHS.start())),
    }
}

/// The flows of a plan. `told` gets the reason where they are not the sender's.
fn flows(first: &Command, equilibrium: bool, told: impl FnOnce(String)) -> u64 {
    match first.flows() {
        Some(flows) if flows > MOST_FLOWS => {
            told(format!("{flows} flows: a plan has {MOST_FLOWS} at most"));
            MOST_FLOWS
        }
        Some(flows) => flows.max(1),
        None if equilibrium => EQUILIBRIUM_FLOWS,
        None => {
            told("which flows it sends is not understood: the plan has 2000".into());
            2000
        }
    }
}

fn family(values: &Values, command: Option<&Command>) -> &'static str {
    let by_command = command.and_then(Command::family);
    match by_command.or(values
        .known("AF")
        .map(|af| if af == "6" { "inet6" } else { "inet4" }))
    {
        Some("inet6") => "IPv6",
        _ => "IPv4",
    }
}

/// Options of pkt-gen that the lab or the plan takes over, or that linerate sees to itself: waiting for the link, reports.
const KNOWN: &str = "fidDsSl46Rpn wWNTtrU";

/// Options of pkt-gen that are not carried over, as they were written.
pub(super) fn other_options(command: &Command) -> Vec<String> {
    if !command.program().ends_with("pkt-gen") {
        return Vec::new();
    }
    let all = ('a'..='z').chain('A'..='Z').filter(|o| !KNOWN.contains(*o));
    all.filter_map(|option| {
        let value = command.option(option)?;
        Some(format!("-{option} {value}").trim().to_string())
    })
    .collect()
}
