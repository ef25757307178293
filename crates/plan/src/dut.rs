//! Kinds of DUT, and the CPUs that a DUT forwards on.

use crate::names::Named;
use linerate_wire::Exchange;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The device between the generator and the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dut {
    /// Nothing: the generator's link ends at the receiver.
    TesterBaseline,
    /// The kernel's routing.
    #[default]
    Forwarding,
    /// A bridge between the two ends instead of a router.
    Bridge,
    /// A router whose inside address is on a bridge with the inside interface as its only member.
    RoutedBridge,
    /// A router whose interfaces are macvlan on top of the two ends.
    Macvlan,
    /// A router that puts frames into a VXLAN tunnel towards the receiver.
    Vxlan,
    /// A router inside a network stack of its own on the host: a vnet jail, a nested network namespace.
    Nested,
    /// A router whose interfaces are 802.1Q VLANs on top of the two ends.
    Vlan,
    /// A router whose interfaces belong to a VRF, which has a routing table of its own.
    Vrf,
    /// Two routers in a row, without a tunnel: what the tunnels are compared with.
    TwoRouters,
    /// Two routers with a GRE tunnel between them.
    Gre,
    /// …with one of IPv4 in IPv4.
    Ipip,
    /// …with one of IPv6 in IPv4.
    Sit,
    /// …with a GENEVE tunnel.
    Geneve,
    /// …with WireGuard.
    Wireguard,
    /// …with ESP in tunnel mode, by AES-GCM.
    Ipsec,
    /// An XDP program that forwards by the kernel's routing table.
    Xdp,
    /// Passes exactly this many frames a second on each CPU: a known answer.
    KnownRate(u32),
    /// Loses exactly every N-th frame.
    KnownLoss(u32),
    /// Loses exactly every N-th frame of this kind.
    KnownLossOf { one_in: u32, of: Segment },
    /// Adds this to the sequence numbers of each direction, and takes it out of the acknowledgements of the other.
    KnownNumbers(u32),
    /// Sends exactly every N-th frame twice.
    KnownDuplication(u32),
    /// Delays every frame by this many nanoseconds.
    KnownDelay(u64),
    /// Delays frames by these many nanoseconds in turn.
    KnownDelays([u32; 2]),
    /// A queue of `frames`, drained at `rate` frames/s, that drops the frames for which it has no room.
    KnownQueue { frames: u32, rate: u32 },
    /// Drops every frame for `ns`, from `after_ns` after the first frame of each load.
    KnownOutage { ns: u64, after_ns: u64 },
}

/// A frame of a connection, by its stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Segment {
    /// The client's first frame.
    Syn,
    /// The server's answer to it.
    SynAck,
    /// The client's second frame.
    Request,
    /// The server's second frame, with FIN.
    Answer,
    /// The client's FIN, or RST.
    Fin,
    /// The server's last frame.
    LastAck,
}

impl Segment {
    /// Whether such connections have this frame.
    pub fn is_of(self, exchange: Exchange) -> bool {
        (self as usize) < exchange.stages().len()
    }
}

/// The kinds of DUT, with descriptions.
pub(crate) const DUTS: [(&str, &str); 26] = [
    ("tester-baseline", "nothing: the tester alone"),
    ("forwarding", "the kernel's routing"),
    (
        "bridge",
        "a bridge between the two ends instead of a router",
    ),
    (
        "routed-bridge",
        "a router; its inside interface is the only port of a bridge, and the bridge has the address",
    ),
    (
        "macvlan",
        "a router with macvlan interfaces on top of its two links",
    ),
    (
        "vxlan",
        "a router that puts frames into a VXLAN tunnel towards the receiver",
    ),
    (
        "nested",
        "a router in a network stack of its own: a vnet jail, a nested network namespace",
    ),
    (
        "vlan",
        "a router with 802.1Q VLAN interfaces on top of its two links",
    ),
    (
        "vrf",
        "a router with both interfaces in a VRF, which has a routing table of its own",
    ),
    (
        "two-routers",
        "two routers in a row, to compare tunnels with",
    ),
    (
        "gre",
        "two routers in a row with a GRE tunnel: one wraps each packet, one unwraps it",
    ),
    ("ipip", "the same with IPv4 packets in IPv4"),
    ("sit", "the same with IPv6 packets in IPv4"),
    ("geneve", "the same with GENEVE"),
    ("wireguard", "the same with WireGuard"),
    ("ipsec", "the same with ESP in tunnel mode, by AES-GCM"),
    (
        "xdp",
        "an XDP program that forwards by the kernel's routing table",
    ),
    (
        "known-rate=N",
        "passes exactly N frames a second on each CPU: a known answer, to check linerate itself",
    ),
    ("known-loss=N", "loses exactly every N-th frame"),
    (
        "known-loss=N@FRAME",
        "loses exactly every N-th frame of this name in connections: syn, syn-ack, request, answer, fin or last-ack",
    ),
    (
        "known-numbers=N",
        "adds N to all TCP sequence numbers, as firewalls do that make them harder to guess",
    ),
    (
        "known-duplication=N",
        "sends exactly every N-th frame twice",
    ),
    ("known-delay=T", "delays every frame by T, up to 200us"),
    (
        "known-delays=T/T",
        "delays frames by the first and the second time in turn, up to 200us",
    ),
    (
        "known-queue=N@R",
        "on each CPU a queue of N frames, emptied at R frames/s; it drops what does not fit",
    ),
    (
        "known-outage=T@S",
        "drops every frame for the time T, from the time S after the first frame of each load",
    ),
];

impl fmt::Display for Dut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dut::KnownRate(rate) => write!(f, "known-rate={rate}"),
            Dut::KnownLoss(n) => write!(f, "known-loss={n}"),
            Dut::KnownLossOf { one_in, of } => write!(f, "known-loss={one_in}@{}", of.name()),
            Dut::KnownNumbers(n) => write!(f, "known-numbers={n}"),
            Dut::KnownDuplication(n) => write!(f, "known-duplication={n}"),
            Dut::KnownDelay(ns) => write!(f, "known-delay={ns}ns"),
            Dut::KnownDelays([one, other]) => write!(f, "known-delays={one}ns/{other}ns"),
            Dut::KnownQueue { frames, rate } => write!(f, "known-queue={frames}@{rate}"),
            Dut::KnownOutage { ns, after_ns } => write!(f, "known-outage={ns}ns@{after_ns}ns"),
            plain => plain.serialize(f),
        }
    }
}

impl Dut {
    /// Whether frames are addressed to the DUT, or pass through it to the receiver.
    pub fn routes(self) -> bool {
        !matches!(self, Dut::TesterBaseline | Dut::Bridge)
    }

    /// The 802.1Q tags of the frames on the links to generator and receiver.
    pub fn tags(self) -> Option<[u16; 2]> {
        (self == Dut::Vlan).then_some([2, 4])
    }

    /// Whether it loses frames that come from its outside.
    pub fn loses_of_server(self) -> bool {
        matches!(
            self,
            Dut::KnownLossOf {
                of: Segment::SynAck | Segment::Answer | Segment::LastAck,
                ..
            }
        )
    }

    /// Whether it changes the sequence numbers of TCP.
    pub fn changes_numbers(self) -> bool {
        matches!(self, Dut::KnownNumbers(_))
    }

    /// Whether its answer is known, to check linerate itself.
    pub fn is_known(self) -> bool {
        use Dut::{
            KnownDelay, KnownDelays, KnownDuplication, KnownLoss, KnownNumbers, KnownOutage,
            KnownQueue, KnownRate,
        };
        let program = matches!(
            self,
            KnownRate(_) | KnownLoss(_) | KnownNumbers(_) | KnownDuplication(_) | KnownDelay(_)
        );
        program
            || matches!(
                self,
                KnownDelays(_) | Dut::KnownLossOf { .. } | KnownQueue { .. } | KnownOutage { .. }
            )
    }
}

/// Which CPUs of the device under test forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cpus {
    /// Every CPU that the lab has for it.
    All,
    /// So many.
    Count(u32),
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cpus::All => f.write_str("all"),
            Cpus::Count(n) => write!(f, "{n}"),
        }
    }
}
