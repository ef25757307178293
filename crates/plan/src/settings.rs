//! Settings of a variant on the device under test, fully resolved: without inheritance, and for a single operating system.

use crate::card::{self, CardSettings};
pub use crate::card::{CardSetting, CardValue};
pub(crate) use crate::dut::DUTS;
pub use crate::dut::{Cpus, Dut, Segment};
pub use crate::lab::types::End;
use crate::lab::types::HostAddress;
use crate::rules::own::RuleFile;
use crate::rules::{Firewall, Kind, RuleSet};
use crate::text_form;
use linerate_measure::record::{EventClass, States};
use linerate_wire::MacAddr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// CPU numbers as `0,2-3`.
pub fn cpu_list(cpus: &[u32]) -> String {
    let mut out = String::new();
    let mut rest = cpus;
    while let Some(&first) = rest.first() {
        let run = rest
            .iter()
            .enumerate()
            .take_while(|(i, c)| **c == first + *i as u32)
            .count();
        let separator = if out.is_empty() { "" } else { "," };
        out += &match run {
            1 => format!("{separator}{first}"),
            _ => format!("{separator}{first}-{}", first + run as u32 - 1),
        };
        rest = &rest[run..];
    }
    out
}

/// CPUs as a mask as the kernel's files have it: hexadecimal words of 32 bits, the highest first.
pub fn cpu_mask(cpus: &[u32]) -> String {
    let mut words = vec![0u32; 1];
    for cpu in cpus {
        let word = *cpu as usize / 32;
        words.resize(words.len().max(word + 1), 0);
        words[word] |= 1 << (cpu % 32);
    }
    words
        .iter()
        .rev()
        .map(|word| format!("{word:08x}"))
        .collect::<Vec<_>>()
        .join(",")
}

/// Settings of one end of the device under test. Absent settings stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Interface {
    /// Largest packet in bytes, without Ethernet header and FCS.
    pub mtu: Option<u32>,
    /// Those of the catalogue.
    #[serde(flatten, deserialize_with = "card::known")]
    pub set: CardSettings,
    /// Features that only this driver has (`ethtool --set-priv-flags`).
    pub private_flags: BTreeMap<String, bool>,
    /// CPUs that received frames are spread over in software (receive packet steering).
    pub rps: Option<Vec<u32>>,
    /// Flows that each queue remembers the CPU of (receive flow steering).
    pub rfs: Option<u32>,
    /// CPUs that may use the transmit queues (transmit packet steering): queue n serves the n-th of them.
    pub xps: Option<Vec<u32>>,
    /// CPUs that serve the interrupts (in threaded NAPI: run the threads) of the queues, in turn.
    pub irq: Option<Vec<u32>>,
}

impl Interface {
    /// Whether a setting is on; `None` where it stays as it is.
    pub fn is_on(&self, setting: CardSetting) -> Option<bool> {
        match self.set.get(&setting)? {
            CardValue::Switch(on) => Some(*on),
            CardValue::Number(_) => None,
        }
    }

    /// Receive and transmit queues.
    pub fn queues(&self) -> Option<u32> {
        match self.set.get(&CardSetting::Queues)? {
            CardValue::Number(queues) => u32::try_from(*queues).ok(),
            CardValue::Switch(_) => None,
        }
    }
}

/// A route beyond those that the traffic needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The network: `203.0.113.0/24`.
    #[serde(with = "text_form")]
    pub to: HostAddress,
    /// The next hop; the tester's address at that end where none is named.
    pub via: Option<IpAddr>,
    /// Which interface it leaves through.
    #[serde(default)]
    pub end: End,
}

/// An entry of the ARP or neighbour table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// IP address.
    pub address: IpAddr,
    /// Ethernet address.
    pub mac: MacAddr,
    /// Which interface it is at.
    #[serde(default)]
    pub end: End,
}

/// Entries of a table beyond those that the traffic needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct More<T> {
    /// So many are generated, which no frame takes.
    pub count: Option<u32>,
    /// Entries that are given by hand.
    #[serde(default = "Vec::new")]
    pub explicit: Vec<T>,
}

impl<T> Default for More<T> {
    fn default() -> Self {
        More {
            count: None,
            explicit: Vec::new(),
        }
    }
}

/// A file that is written on the device under test. Its former content comes back afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Path of the file.
    pub path: String,
    /// Content of the file.
    pub text: String,
}

/// A system image or a kernel that is installed on the device under test, and booted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The file, on the machine that linerate runs on; relative to the plan's folder.
    pub file: String,
    /// A line for the system's shell that installs the image from its standard input.
    pub install: String,
    /// The line that puts the old one back, for the next boot.
    pub undo: String,
}

/// A command that is run on the device under test before the trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// A line for the system's shell.
    pub run: String,
    /// The line that undoes it; `None` where a reboot does.
    pub undo: Option<String>,
    /// Time limit of each of the two, in nanoseconds; `None` for the lab's usual limit.
    #[serde(alias = "within")]
    pub within_ns: Option<u64>,
}

/// An event that interrupts the device under test while a load runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    pub what: EventKind,
    /// Nanoseconds until it is undone; `None`: [`Event::lasts_ns`].
    #[serde(alias = "for")]
    pub for_ns: Option<u64>,
    /// The interface that goes down; `None`: the one towards the generator.
    pub end: Option<End>,
    /// The process that is killed.
    pub process: Option<String>,
    /// A line for the system's shell: the command itself, or the start of the process again.
    pub run: Option<String>,
    /// The line that undoes it.
    pub undo: Option<String>,
}

/// How long an event lasts, in nanoseconds, unless the plan says otherwise.
const EVENT_NS: u64 = 100_000_000;

impl Event {
    /// Whether it boots the host.
    pub fn boots(&self) -> bool {
        matches!(self.what, EventKind::Reboot | EventKind::PowerOff)
    }

    /// Nanoseconds until it is undone. A process that was killed is started again at once.
    pub fn lasts_ns(&self) -> u64 {
        if self.what == EventKind::ProcessKilled {
            0
        } else {
            self.for_ns.unwrap_or(EVENT_NS)
        }
    }
}

/// Kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The DUT forwards nothing.
    #[default]
    ForwardingOff,
    /// An interface goes down and comes up again.
    LinkDown,
    /// The rules of the DUT are loaded again.
    RulesReloaded,
    /// The rules are loaded again, and the DUT forgets its connections.
    FirewallRestarted,
    /// A process is killed.
    ProcessKilled,
    /// The DUT boots.
    Reboot,
    /// The DUT's power is turned off and on.
    PowerOff,
    /// The author's own command.
    Command,
}

impl EventKind {
    /// Class of the event: a reset of RFC 6201, or linerate's own name.
    pub fn class(self) -> EventClass {
        match self {
            EventKind::Reboot => EventClass::OsReset,
            EventKind::ProcessKilled => EventClass::ProcessReset,
            EventKind::PowerOff => EventClass::PowerInterruption,
            EventKind::RulesReloaded | EventKind::FirewallRestarted | EventKind::Command => {
                EventClass::Reconfiguration
            }
            EventKind::ForwardingOff | EventKind::LinkDown => EventClass::Interruption,
        }
    }
}

/// The path between two end hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Path {
    /// Round-trip time without load, in nanoseconds.
    #[serde(rename = "rtt-ns", alias = "rtt", default)]
    pub rtt_ns: u64,
    /// Bit/s at layer 1 in each direction.
    #[serde(default, deserialize_with = "whole")]
    pub rate: u64,
    /// Who delays and limits the frames.
    #[serde(default)]
    pub by: PathBy,
}

/// Who holds the frames of a path up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathBy {
    /// netem where the kernel has it, else linerate.
    #[default]
    Auto,
    /// The kernel's network emulator.
    Netem,
    /// linerate itself.
    Linerate,
}

/// A number of bit/s, which plans keep with a decimal point.
fn whole<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    f64::deserialize(deserializer).map(|bits| bits as u64)
}

/// All that a variant sets on the device under test. Equal settings are one lane.
///
/// Texts may contain the placeholders of [`super::placeholders`]: the names of the interfaces, say, are the lab's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Kind of DUT.
    pub dut: Dut,
    /// The kernel that a guest boots, in which it is measured: `running`, a version, or a path; `None` for this machine's own, without a
    /// guest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The path between the end hosts, where these are the DUT.
    pub path: Option<Path>,
    /// The CPUs that forward; the lab's own choice where none are named.
    pub cpus: Option<Cpus>,
    /// Kernel settings: name -> value.
    pub sysctls: BTreeMap<String, String>,
    /// Settings that take effect at boot: loader tunables on FreeBSD, the kernel's command line on Linux.
    pub boot: BTreeMap<String, String>,
    /// The image to boot; `None` for the host's own.
    pub image: Option<Image>,
    /// The interface towards the generator.
    pub inside: Interface,
    /// The interface towards the receiver.
    pub outside: Interface,
    /// Routes that no frame takes, and those by hand.
    pub routes: More<Route>,
    /// Neighbours that no frame is sent to, and those by hand.
    pub neighbours: More<Neighbour>,
    /// Whether every firewall of the host is turned off. If not, and without rules, the host keeps the firewalls that it runs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_firewall: bool,
    /// The firewall, if the variant has one.
    pub rules: Option<RuleSet>,
    /// A rule file of the author's own, in place of `rules`.
    pub rule_file: Option<RuleFile>,
    /// How far connections are when a trial begins.
    pub states: States,
    /// Kernel modules to load.
    pub modules: Vec<String>,
    /// Files to write.
    pub files: Vec<File>,
    /// The event of the trials that need one.
    pub event: Option<Event>,
    /// Commands to run, in this order, after everything else.
    pub commands: Vec<Command>,
}

impl Settings {
    /// Whether it is a router with nothing set.
    pub fn is_plain(&self) -> bool {
        let plain = Settings {
            states: self.states,
            kernel: self.kernel.clone(),
            ..Settings::default()
        };
        *self == plain
    }

    /// The firewall that it sets up.
    pub fn firewall(&self) -> Option<Firewall> {
        let of_file = self.rule_file.as_ref().map(|file| file.firewall);
        self.rules.as_ref().map(|rules| rules.firewall).or(of_file)
    }

    /// Whether a host keeps the firewalls that it runs. The network stack of a nested DUT is new, and has none.
    pub fn keeps_firewalls(&self) -> bool {
        let own = !matches!(self.dut, Dut::Nested | Dut::TesterBaseline);
        own && !self.no_firewall && self.firewall().is_none()
    }

    /// Whether its rules make the firewall keep a state for each flow.
    pub fn tracks(&self) -> bool {
        self.rules
            .as_ref()
            .is_some_and(|rules| rules.kind != Kind::Stateless)
            || self.rule_file.as_ref().is_some_and(RuleFile::tracks)
    }
}
