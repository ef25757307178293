//! Ways to send and receive frames: the table of all backends and their capabilities.
//!
//! [`CAPABILITIES`] is the only such list. Lab files, `--backend`, the agents' protocol and records use its names, and every testbed
//! checks it before it uses a backend. Constructors are in `linerate_linux::ports` (linerate's own) and `linerate_hosts::tools`
//! (programs).

use crate::names::Named;
use linerate_wire::{Extensions, FlowOrder, SourceMacs, Traffic, Transport};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A way to send or count frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// XDP live frames, and the XDP receiver.
    Xdp,
    /// AF_XDP sockets.
    AfXdp,
    /// AF_PACKET sockets.
    AfPacket,
    /// linerate on another host: XDP, or AF_PACKET for frames that XDP does not carry.
    Linerate,
    /// netmap's pkt-gen.
    PktGen,
    /// iperf3.
    Iperf3,
    /// netperf and netserver.
    Netperf,
    /// trafgen, of netsniff-ng.
    Trafgen,
    /// The in-memory link of a simulation.
    Memory,
}

/// Where a backend's code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// In linerate, on Linux.
    Linerate,
    /// In a simulation.
    Memory,
    /// As a program of the host: the generator's name and the receiver's.
    Program([&'static str; 2]),
}

/// The frames that a backend can send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frames {
    /// Any: mixes of lengths, flows in any order.
    Any,
    /// One length; flows one after the other.
    OneLength,
    /// One flow of one length, through the host's own stack and addresses.
    HostStack,
}

/// Capabilities of a backend.
#[derive(Debug)]
pub struct Capabilities {
    /// How a host gets it.
    pub install: &'static str,
    /// Where its code runs.
    pub runs: Runs,
    /// Whether it can receive; all can send.
    pub receives: bool,
    /// Whether every frame has an identity, so that each is accounted for. Otherwise frames are only counted.
    pub per_frame: bool,
    /// Protocols above IP.
    pub transports: &'static [Transport],
    /// Which frames.
    pub frames: Frames,
    /// The longest frame, in bytes with FCS.
    pub longest_fcs: u16,
    /// Whether it reports its counters while it runs. The others report when they end by themselves.
    pub live: bool,
    /// Whether it runs on Linux alone.
    pub linux: bool,
}

use Transport::{IcmpEcho, Tcp, Udp};

/// Capabilities of most of linerate's own backends.
const OWN: Capabilities = Capabilities {
    install: "install linerate on that host, on the PATH that ssh gets",
    runs: Runs::Linerate,
    receives: true,
    per_frame: true,
    transports: &[Udp, Tcp, IcmpEcho],
    frames: Frames::Any,
    longest_fcs: linerate_wire::MAX_LEN_FCS,
    live: true,
    linux: true,
};

/// Names of all backends in lab files, arguments, messages and records, with descriptions, in the order of the enum.
const NAMES: [(&str, &str); 9] = [
    (
        "xdp",
        "XDP programs send and receive: the fastest; needs root",
    ),
    (
        "af-xdp",
        "AF_XDP sockets: zero copy where the driver has it; receiving needs root",
    ),
    (
        "af-packet",
        "AF_PACKET sockets: slower, and work everywhere",
    ),
    (
        "linerate",
        "linerate itself, over the connection: xdp, or af-packet for longer frames",
    ),
    ("pkt-gen", "netmap's, on FreeBSD"),
    (
        "iperf3",
        "a client and a server, through the hosts' own stacks",
    ),
    (
        "netperf",
        "netperf and netserver, through the hosts' own stacks",
    ),
    ("trafgen", "of netsniff-ng, on Linux; sends only"),
    ("memory", "a simulated link in memory"),
];

/// Backends of this machine.
pub const OF_THIS_MACHINE: &[(&str, &str)] = NAMES.split_at(3).0;

/// Backends that a lab file may name.
pub const OF_HOSTS: &[(&str, &str)] = NAMES.split_at(8).0;

/// Capabilities of each backend, in the order of the enum.
pub static CAPABILITIES: [Capabilities; 9] = [
    Capabilities {
        // A page less the kernel's head- and tailroom (`TEST_XDP_FRAME_SIZE` in net/bpf/test_run.c), with room for differences
        // between kernels.
        longest_fcs: 3400,
        ..OWN
    },
    Capabilities {
        // A chunk is at most a page; the FCS is not in it.
        longest_fcs: 4100,
        ..OWN
    },
    OWN,
    Capabilities { ..OWN },
    Capabilities {
        install: "install pkt-gen: pkg install netmap-utils, or make -C /usr/src/tools/tools/netmap install",
        runs: Runs::Program(["pkt-gen"; 2]),
        per_frame: false,
        transports: &[Udp],
        frames: Frames::OneLength,
        linux: false,
        ..OWN
    },
    Capabilities {
        install: "install iperf3 on that host: pkg install iperf3, apt install iperf3",
        runs: Runs::Program(["iperf3"; 2]),
        per_frame: false,
        transports: &[Udp, Tcp],
        frames: Frames::HostStack,
        live: false,
        linux: false,
        ..OWN
    },
    Capabilities {
        install: "install netperf on that host, built with --enable-demo for samples",
        runs: Runs::Program(["netperf", "netserver"]),
        per_frame: false,
        transports: &[Udp, Tcp],
        frames: Frames::HostStack,
        live: false,
        linux: false,
        ..OWN
    },
    Capabilities {
        install: "install netsniff-ng on that host: apt install netsniff-ng",
        runs: Runs::Program(["trafgen"; 2]),
        receives: false,
        per_frame: false,
        transports: &[Udp],
        frames: Frames::OneLength,
        // The ring's frames without `-J`, less the header of each.
        longest_fcs: 1984,
        live: false,
        ..OWN
    },
    Capabilities {
        runs: Runs::Memory,
        linux: false,
        ..OWN
    },
];

impl Backend {
    /// Capabilities of this backend.
    pub fn capabilities(self) -> &'static Capabilities {
        &CAPABILITIES[self as usize]
    }

    /// Name of the backend.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].0
    }

    /// Whether linerate itself sends or counts, on Linux.
    pub fn is_own(self) -> bool {
        self.capabilities().runs == Runs::Linerate
    }

    /// Whether it sends through the host's own stack, from the host's own addresses.
    pub fn uses_host_stack(self) -> bool {
        self.capabilities().frames == Frames::HostStack
    }

    /// The backend that linerate takes for frames of up to this length, where the choice is left to it.
    #[must_use]
    pub fn resolved(self, longest_fcs: u16) -> Backend {
        match self {
            Backend::Linerate if longest_fcs > Backend::Xdp.capabilities().longest_fcs => {
                Backend::AfPacket
            }
            Backend::Linerate => Backend::Xdp,
            other => other,
        }
    }

    /// Refuses traffic that it cannot send.
    ///
    /// # Errors
    /// The property that it cannot send, and a backend that can.
    pub fn check(self, traffic: &Traffic) -> Result<(), Unsuitable> {
        let Capabilities {
            transports,
            frames,
            longest_fcs,
            ..
        } = self.capabilities();
        let cannot = |what: String| {
            Err(Unsuitable {
                backend: self,
                what,
            })
        };
        let (transport, longest) = (traffic.frame.transport, traffic.mix.max_len_fcs());
        if !transports.contains(&transport) {
            return cannot(format!("send frames of {transport}: use linerate"));
        }
        if longest > *longest_fcs {
            let other = if self.is_own() {
                "af-packet"
            } else {
                "linerate"
            };
            return cannot(format!(
                "send frames of {longest} bytes with FCS: at most {longest_fcs}; use {other}"
            ));
        }
        if *frames != Frames::Any && traffic.mix.pattern.len() != 1 {
            let mix = &traffic.mix.name;
            return cannot(format!(
                "send {mix}, only frames of one length: use linerate on all hosts that send or receive"
            ));
        }
        if *frames != Frames::Any && traffic.order != FlowOrder::Sequential {
            let order = traffic.order;
            return cannot(format!(
                "send flows in {order} order, only one after the other: use linerate on all hosts that send or receive"
            ));
        }
        if *frames != Frames::Any && !traffic.flows.is_plain() {
            let flows = &traffic.flows;
            return cannot(format!(
                "send the flows {flows}: use linerate on all hosts that send or receive"
            ));
        }
        if *frames != Frames::Any && traffic.burst > 0 {
            return cannot("send bursts: use linerate on all hosts that send or receive".into());
        }
        if *frames != Frames::Any
            && (traffic.frame.extensions != Extensions::None
                || traffic.source_macs != SourceMacs::Own)
        {
            return cannot(
                "send extension headers or Ethernet sources of each flow: use linerate on all hosts that send or receive"
                    .into(),
            );
        }
        if traffic.ipv6.is_some() && (*frames != Frames::Any || self == Backend::AfXdp) {
            return cannot(
                "send IPv6 frames between IPv4 frames: use linerate, xdp or af-packet".into(),
            );
        }
        if traffic.broadcast_every > 0 && self != Backend::Xdp {
            return cannot("send broadcast frames between the others: use xdp".into());
        }
        Ok(())
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(text: &str) -> Result<Backend, String> {
        Backend::of_name(text).ok_or_else(|| {
            let names = NAMES.map(|(name, _)| name).join(", ");
            format!("'{text}' is not a backend: choose {names}")
        })
    }
}

/// A capability that a backend lacks, and a backend that has it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{backend} cannot {what}")]
pub struct Unsuitable {
    /// The backend.
    pub backend: Backend,
    /// Completes the sentence "the backend cannot ...".
    pub what: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_has_one_row_and_is_found_by_its_name() {
        assert_eq!(Backend::names(), NAMES.map(|(name, _)| name));
        for backend in Backend::all() {
            assert_eq!(backend.name().parse(), Ok(backend));
            assert_eq!(serde_json::to_value(backend).unwrap(), backend.name());
        }
        assert!(
            "pktgen"
                .parse::<Backend>()
                .unwrap_err()
                .contains("pkt-gen, iperf3")
        );
    }
}
