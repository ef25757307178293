//! What is to be sent, for every tool alike, and what becomes of it: a command line or a refusal.

use super::Tool;
use linerate_wire::MacAddr;
use std::net::IpAddr;

/// Addresses and ports of one side of the flows: every address of the range with every port of the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoints {
    /// First address.
    pub first: IpAddr,
    /// Last address, of the same version.
    pub last: IpAddr,
    /// First port.
    pub first_port: u16,
    /// Last port.
    pub last_port: u16,
}

impl Endpoints {
    /// One address with one port.
    pub fn one(address: IpAddr, port: u16) -> Self {
        Endpoints { first: address, last: address, first_port: port, last_port: port }
    }

    /// Whether there is one address only.
    pub fn is_one_address(&self) -> bool {
        self.first == self.last
    }

    /// Whether there is one port only.
    pub fn is_one_port(&self) -> bool {
        self.first_port == self.last_port
    }

    /// Pairs of address and port; `None` where a range runs backwards, mixes versions, or is beyond 64 bits.
    pub fn count(&self) -> Option<u64> {
        let number = |address: IpAddr| match address {
            IpAddr::V4(a) => u128::from(u32::from(a)),
            IpAddr::V6(a) => u128::from(a),
        };
        if self.first.is_ipv4() != self.last.is_ipv4() {
            return None;
        }
        let addresses = number(self.last).checked_sub(number(self.first))?.checked_add(1)?;
        let ports = u64::from(self.last_port.checked_sub(self.first_port)?) + 1;
        u64::try_from(addresses).ok()?.checked_mul(ports)
    }
}

/// What the payload travels in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP datagrams, one a frame.
    Udp,
    /// A TCP stream, in segments that fill the frames.
    Tcp,
}

/// Traffic that a tool is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// The interface of the host that the tool runs on.
    pub interface: String,
    /// UDP or TCP.
    pub transport: Transport,
    /// Length of a frame in bytes with FCS; for TCP that of a full segment.
    pub frame_len_fcs: u32,
    /// Where it comes from. Flows are all pairs of a source and a destination.
    pub source: Endpoints,
    /// Where it goes.
    pub destination: Endpoints,
    /// The frames' source address; `None` for the card's own.
    pub source_mac: Option<MacAddr>,
    /// The frames' destination address: the DUT's port. Tools that send through the host's stack find it by ARP.
    pub destination_mac: Option<MacAddr>,
    /// Frames/s of all threads together; `None` for as many as the tool can.
    pub pps: Option<f64>,
    /// How long, in whole seconds.
    pub seconds: u32,
    /// Threads, or parallel streams.
    pub threads: u32,
    /// Seconds to wait for the link, which opening netmap takes down.
    pub link_wait_s: u32,
}

/// Interfaces, bytes without FCS of the header of Ethernet.
const ETHERNET: u32 = 14;
const FCS: u32 = 4;
const UDP: u32 = 8;
const TCP: u32 = 20;
/// Longer ones cannot be said in an IPv4 header.
const LONGEST_PACKET: u32 = 65_535;
/// A load of more than a day is a mistake.
const LONGEST_S: u32 = 86_400;

impl Traffic {
    /// What no tool can do, and what could be read as an option or a shell's text.
    pub(super) fn checked(&self, tool: Tool) -> Result<(), Refusal> {
        let name = &self.interface;
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-:@{}/+".contains(c);
        if name.is_empty() || name.len() > 64 || name.starts_with('-') || !name.chars().all(plain) {
            return Err(Refusal::of(
                tool,
                format!("use an interface named {name:?}: that is no interface's name"),
            ));
        }
        if self.flows().is_none() {
            return Err(Refusal::of(
                tool,
                format!(
                    "send from {} - {} to {} - {}: each range goes upwards, in one version of IP",
                    self.source.first, self.source.last, self.destination.first, self.destination.last
                ),
            ));
        }
        let shortest = self.overhead() + FCS;
        let longest = LONGEST_PACKET + ETHERNET + FCS;
        if !(shortest.max(64)..=longest).contains(&self.frame_len_fcs) {
            return Err(Refusal::of(
                tool,
                format!(
                    "send frames of {} bytes with FCS: its headers make it {} to {longest}",
                    self.frame_len_fcs,
                    shortest.max(64)
                ),
            ));
        }
        if self.seconds == 0 || self.seconds > LONGEST_S {
            return Err(Refusal::of(tool, format!("run for {} s: 1 to {LONGEST_S}", self.seconds)));
        }
        if self.threads == 0 || self.threads > 1024 {
            return Err(Refusal::of(tool, format!("run {} threads: 1 to 1024", self.threads)));
        }
        match self.pps {
            Some(pps) if !(pps.is_finite() && pps >= 1.0) => {
                Err(Refusal::of(tool, format!("send {pps} frames/s: at least 1")))
            }
            _ => Ok(()),
        }
    }

    /// Whether it is IPv6.
    pub fn is_v6(&self) -> bool {
        self.destination.first.is_ipv6()
    }

    /// Flows: sources times destinations. `None` where ranges make no sense.
    pub fn flows(&self) -> Option<u64> {
        if self.source.first.is_ipv4() != self.destination.first.is_ipv4() {
            return None;
        }
        self.source.count()?.checked_mul(self.destination.count()?)
    }

    /// Bytes of all headers.
    fn overhead(&self) -> u32 {
        let transport = match self.transport {
            Transport::Udp => UDP,
            Transport::Tcp => TCP,
        };
        ETHERNET + if self.is_v6() { 40 } else { 20 } + transport
    }

    /// Bytes of payload in a frame of that length; without TCP's options.
    pub fn payload(&self) -> u32 {
        self.frame_len_fcs.saturating_sub(self.overhead() + FCS)
    }

    /// Frames that the rate and the time come to; `None` without a rate.
    pub(super) fn frames(&self) -> Option<u64> {
        self.pps.map(|pps| (pps * f64::from(self.seconds)).round() as u64)
    }

    /// For tools that send from one socket: refuses what needs frames of one's own.
    pub(super) fn through_the_stack(&self, tool: Tool) -> Result<(), Refusal> {
        if !self.source.is_one_address() || !self.destination.is_one_address() {
            return Err(Refusal::of(
                tool,
                "vary addresses: it sends from the host's own address to one server; use pkt-gen, trafgen or linerate",
            ));
        }
        if self.source_mac.is_some() {
            return Err(Refusal::of(
                tool,
                "set the frames' source address: it sends through the host's own stack",
            ));
        }
        Ok(())
    }
}

/// A command: what to run on the host. Arguments are words, not to be joined without quoting.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// The program and its arguments. The deadline is in it, so the load ends although nobody ends it.
    pub argv: Vec<String>,
    /// Seconds after which it has ended by itself, whatever happens.
    pub limit_s: u32,
    /// Seconds that it spends before its first frame, at most.
    pub lead_s: u32,
    /// Frames/s that its arithmetic makes of the rate asked for; `None` where it sends as fast as it can.
    pub offered_pps: Option<f64>,
    /// The signal that ends it early so that it still prints its totals, without `SIG`.
    pub stop_signal: &'static str,
}

impl Invocation {
    /// A command that is ended by this signal, at the latest after so many seconds.
    ///
    /// Puts timeout(1) in front: FreeBSD 10.3, OpenBSD 7.0, NetBSD 8 and every Linux have it. In the foreground, for otherwise GNU's
    /// makes a process group of its own, and whoever ends the group that it was started in leaves the load running.
    pub(super) fn bounded(signal: &'static str, seconds: u32, command: Vec<String>) -> Self {
        let words = ["timeout", "--foreground", "-s", signal, "-k", "5", &seconds.to_string()];
        let argv = words.into_iter().map(String::from).chain(command).collect();
        Invocation { argv, limit_s: seconds + 5, lead_s: 1, offered_pps: None, stop_signal: signal }
    }
}

/// What a tool cannot do, and what can.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot {what}", tool.key())]
pub struct Refusal {
    /// The tool.
    pub tool: Tool,
    /// What it cannot, and where it helps what to do instead.
    pub what: String,
}

impl Refusal {
    /// A tool, and an action that completes the sentence "the tool cannot ...".
    pub(super) fn of(tool: Tool, what: impl Into<String>) -> Refusal {
        Refusal { tool, what: what.into() }
    }
}
