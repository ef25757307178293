//! The types of a lab file.

use super::ssh::Reach;
use crate::backend::Backend;
use crate::names::Named;
use crate::text_form;
use linerate_measure::experiment::System;
use linerate_wire::MacAddr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The role of a host. One host may have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sends the frames.
    Generator,
    /// The device under test.
    Dut,
    /// Counts received frames.
    Receiver,
    /// The far end of the DUT's tunnels, between it and the receiver.
    Reference,
}

impl Role {
    /// Name of the role in a lab file.
    pub fn key(self) -> &'static str {
        self.name()
    }
}

/// An operating system that a lab's host may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperatingSystem {
    /// FreeBSD.
    FreeBsd,
    /// OpenBSD.
    OpenBsd,
    /// NetBSD.
    NetBsd,
    /// Linux.
    Linux,
    /// VyOS.
    Vyos,
    /// pfSense.
    PfSense,
    /// OPNsense.
    OpnSense,
    /// The BSD Router Project: FreeBSD whose root is read-only, and whose settings are saved by `config save`.
    Bsdrp,
    /// Another FreeBSD made by nanobsd, with a read-only root.
    Nanobsd,
}

impl OperatingSystem {
    /// Name of the system in a lab file.
    pub fn key(self) -> &'static str {
        self.name()
    }

    /// The system whose settings of a plan are for it; `None` where plans have none.
    pub fn of_plans(self) -> Option<System> {
        match self {
            OperatingSystem::FreeBsd | OperatingSystem::Bsdrp | OperatingSystem::Nanobsd => {
                Some(System::FreeBsd)
            }
            OperatingSystem::OpenBsd => Some(System::OpenBsd),
            OperatingSystem::Linux => Some(System::Linux),
            OperatingSystem::Vyos => Some(System::Vyos),
            OperatingSystem::PfSense => Some(System::PfSense),
            OperatingSystem::OpnSense => Some(System::OpnSense),
            OperatingSystem::NetBsd => None,
        }
    }

    /// The command that makes changes outlive a reboot, if its root is read-only.
    pub fn config_save(self) -> Option<&'static str> {
        matches!(self, OperatingSystem::Bsdrp).then_some("config save")
    }
}

/// A host of a lab.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Host {
    /// Name in the file.
    #[serde(skip)]
    pub name: String,
    #[serde(skip)]
    pub roles: Vec<Role>,
    /// How commands get to it.
    #[serde(skip)]
    pub reach: Reach,
    /// Operating system. If the file does not name it, the host is asked.
    pub system: Option<OperatingSystem>,
    /// The backend that sends or counts frames on it. Default: linerate if the host has it, else pkt-gen.
    pub tool: Option<Backend>,
    /// Whether commands that need root run through sudo.
    pub sudo: bool,
    /// Interfaces that frames are sent from, towards the DUT.
    pub send: Vec<Interface>,
    /// The interface that frames arrive at.
    pub receive: Option<Interface>,
    /// A DUT's or reference's interface towards the generator.
    #[serde(rename = "in")]
    pub inside: Option<Interface>,
    /// A DUT's or reference's interface towards the receiver.
    #[serde(rename = "out")]
    pub outside: Option<Interface>,
    /// The interface that ssh comes in at: no test ever touches it.
    pub management: Option<Interface>,
    /// How it comes back after a reboot.
    pub boot: Boot,
    /// A program of this machine, with its arguments, that turns the host's power off and on; empty without one.
    pub power_cycle: Vec<String>,
    /// A program of this machine, with its arguments, that shows the host's console; empty without one.
    pub console: Vec<String>,
    /// How long it may be silent under load before it counts as lost, in nanoseconds, if the file says so.
    #[serde(rename = "silence")]
    pub silence_ns: Option<u64>,
    /// The operator's statement about its set-up.
    pub statement: Option<String>,
    /// The operator's statement about a black box: its software, and its configuration.
    pub software: Option<String>,
    pub configuration: Option<String>,
    /// The command that makes changes outlive a reboot, if its root is read-only.
    pub config_save: Option<String>,
}

impl Host {
    /// A DUT's or reference's interface.
    pub fn end(&self, end: End) -> Option<&Interface> {
        match end {
            End::In => self.inside.as_ref(),
            End::Out => self.outside.as_ref(),
        }
    }
}

/// An interface of a host.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Interface {
    /// Name; found by the Ethernet or IP addresses, or by the route to the other end, where the file does not say.
    pub name: Option<String>,
    /// Ethernet address.
    pub mac: Option<MacAddr>,
    /// IP addresses.
    pub addresses: Vec<HostAddress>,
    /// The networks of the frames' addresses behind it.
    pub networks: Vec<String>,
    /// Next hops towards these networks.
    pub next_hops: Vec<IpAddr>,
    /// Speed in bit/s that is 100 % of its line rate.
    pub speed: Option<f64>,
    /// Whether netmap can open it; found out where the file does not say.
    pub netmap: Option<bool>,
    /// Threads, and transmit queues, that it is sent from.
    pub threads: Option<u32>,
}

/// Whether a name is one of an interface: FreeBSD and Linux have 15 characters at most.
pub fn is_interface(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
    let first = name.chars().next();
    first.is_some_and(|c| c.is_ascii_alphanumeric())
        && name.len() <= 15
        && name.chars().all(allowed)
}

/// One of the two ends of the device under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Towards the generator.
    In,
    /// Towards the receiver.
    #[default]
    Out,
}

/// An IP address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostAddress {
    /// The address.
    pub address: IpAddr,
    /// The length of its network, if known.
    pub length: Option<u8>,
}

impl HostAddress {
    /// Address and length; all of the address's bits where none is known.
    pub fn prefix(&self) -> (IpAddr, u8) {
        (
            self.address,
            self.length
                .unwrap_or(if self.address.is_ipv4() { 32 } else { 128 }),
        )
    }

    /// Whether another address is in its network; `None` where that is not known.
    pub fn reaches(&self, other: IpAddr) -> Option<bool> {
        let length = u32::from(self.length?);
        let shifted = |bits: u128, of: u32| {
            if length == 0 {
                0
            } else {
                bits >> (of - length)
            }
        };
        Some(match (self.address, other) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                shifted(u128::from(u32::from(a)), 32) == shifted(u128::from(u32::from(b)), 32)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => shifted(a.into(), 128) == shifted(b.into(), 128),
            _ => false,
        })
    }
}

impl FromStr for HostAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "an address has the form 198.18.0.1/24";
        let (address, length) = text
            .trim()
            .split_once('/')
            .map_or((text, None), |(a, l)| (a, Some(l)));
        let address: IpAddr = address.trim().parse().map_err(|_| WRONG)?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = length
            .map(|l| l.parse().ok().filter(|n| *n <= longest).ok_or(WRONG))
            .transpose()?;
        Ok(HostAddress { address, length })
    }
}

impl<'de> Deserialize<'de> for HostAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text_form::deserialize(deserializer)
    }
}

impl Serialize for HostAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.length {
            Some(length) => write!(f, "{}/{length}", self.address),
            None => write!(f, "{}", self.address),
        }
    }
}

/// How a host comes back after a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Boot {
    /// How long that may take, in nanoseconds.
    #[serde(rename = "timeout")]
    pub timeout_ns: u64,
    /// Addresses that it must reach before it counts as back: routers forward nothing for a while after a boot.
    pub reaches: Vec<IpAddr>,
    /// The host that asks; the one that was rebooted where none is named.
    pub from: Option<String>,
}

impl Default for Boot {
    fn default() -> Self {
        Boot {
            timeout_ns: 300_000_000_000,
            reaches: Vec::new(),
            from: None,
        }
    }
}
