//! Everything that is known of a host, as plain values: so that checks can be tested without a host.

use super::detect::{Kernel, System};
use linerate_measure::collector::Counters;
use linerate_plan::lab::{HostAddress, OperatingSystem};
use linerate_wire::MacAddr;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Counters of an interface: see [`Facts::counters`].
pub(super) const COUNTERS: [&str; 4] = ["rx_packets", "rx_missed", "tx_packets", "tx_dropped"];

/// A host's clock, asked between two looks at ours. Seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clock {
    /// The host's answer, in whole seconds.
    pub theirs: f64,
    /// Ours when it was asked.
    pub asked: f64,
    /// Ours when it had answered.
    pub answered: f64,
}

impl Clock {
    /// By how much it is ahead of ours at least, in seconds; negative where it is behind; 0 where it may be right: it answers
    /// in whole seconds, some time between question and answer.
    pub fn ahead(&self) -> f64 {
        if self.theirs > self.answered {
            self.theirs - self.answered
        } else if self.theirs + 1.0 < self.asked {
            self.theirs + 1.0 - self.asked
        } else {
            0.0
        }
    }
}

/// Pause frames (IEEE 802.3 annex 31B): whether they are obeyed and sent; `None` where the system does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pause {
    /// Whether pause frames that arrive stop the transmitter.
    pub rx: Option<bool>,
    /// Whether the interface sends pause frames when its receiver is full.
    pub tx: Option<bool>,
    /// Whether it agrees with its neighbour on them.
    pub autoneg: Option<bool>,
}

impl Pause {
    /// Whether either is known to be on.
    pub fn is_on(&self) -> bool {
        self.rx == Some(true) || self.tx == Some(true)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Interface {
    pub name: String,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it has a link; `None` where the system does not say: virtual interfaces often do not.
    pub link: Option<bool>,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    pub mac: Option<MacAddr>,
    pub addresses: Vec<HostAddress>,
    /// Medium in the system's words.
    pub media: Option<String>,
    /// Bit/s of its link.
    pub speed: Option<f64>,
    /// Whether it sends and receives at once.
    pub full_duplex: Option<bool>,
    pub pause: Pause,
}

/// Who has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    pub address: IpAddr,
    /// Ethernet address; `None` before an answer.
    pub mac: Option<MacAddr>,
    /// The interface that it is behind.
    pub interface: String,
    /// Whether it stays until it is deleted.
    pub permanent: bool,
}

/// The way to an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Over whom; `None` where it is a neighbour.
    pub gateway: Option<IpAddr>,
    pub interface: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Where it is mounted.
    pub mounted_on: String,
    /// Bytes that an ordinary user can still write; 0 where less than that is left.
    pub free: u64,
}

/// Why a host could not be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreachable {
    pub why: String,
    pub remedy: String,
}

/// A question without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// The program that was to answer it, with its arguments.
    pub command: String,
    /// The reason for no answer.
    pub why: Silence,
}

/// Why a program did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// There is no such program.
    Missing,
    /// The program took too long, and was ended.
    TooSlow,
}

/// Known facts about a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Why it could not be reached at all, if it could not: then nothing else is known.
    pub unreachable: Option<Unreachable>,
    /// Questions without an answer.
    pub unanswered: Vec<Unanswered>,
    pub system: Option<System>,
    pub clock: Option<Clock>,
    /// The user's number; 0 is root.
    pub user: Option<u32>,
    /// Whether `sudo -n` works.
    pub sudo: Option<bool>,
    pub cpus: Option<u32>,
    pub interfaces: Vec<Interface>,
    /// By interface: frames that came in (`rx_packets`), came in with errors or found no room (`rx_missed`), came in and found the system's
    /// own queue full (`rx_dropped`, also among `rx_packets`), went out (`tx_packets`), were to go out and did not (`tx_dropped`); without
    /// those that the system does not count.
    pub counters: BTreeMap<String, Counters>,
    /// ARP and neighbour discovery.
    pub neighbours: Vec<Neighbour>,
    /// The way to addresses that were asked for; `None` if there is no way.
    pub ways: BTreeMap<IpAddr, Option<Way>>,
    pub disks: Vec<Disk>,
    /// Settings that were asked for.
    pub sysctls: BTreeMap<String, String>,
    /// Programs that were asked for and are there, with their paths.
    pub programs: BTreeMap<String, String>,
    /// Whether its root is mounted read-only.
    pub read_only_root: Option<bool>,
    /// The output of uname, files and mounts: all three together identify the system.
    pub(crate) told: [Vec<u8>; 3],
}

impl Facts {
    /// A host that could not be reached, with the reason and a remedy.
    pub fn unreachable(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        let unreachable = Unreachable {
            why: why.into(),
            remedy: remedy.into(),
        };
        Facts {
            unreachable: Some(unreachable),
            ..Facts::default()
        }
    }

    /// Takes the system from the lab file, where uname(1) names none that is known here.
    pub fn assume(&mut self, system: OperatingSystem) {
        self.system.get_or_insert_with(|| System::unnamed(system));
    }

    /// Facts of a host with nothing known but its kernel, for questions that are asked again and again.
    pub fn of_kernel(kernel: Kernel) -> Self {
        Facts {
            system: Some(System::unnamed(kernel.plain())),
            ..Facts::default()
        }
    }

    /// Kernel of the host, where known.
    pub fn kernel(&self) -> Option<Kernel> {
        self.system.as_ref().map(|s| Kernel::of(s.system))
    }

    /// The interface of that name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|i| i.name == name)
    }

    /// A setting that is a number.
    pub fn number(&self, sysctl: &str) -> Option<i64> {
        self.sysctls.get(sysctl)?.trim().parse().ok()
    }
}
