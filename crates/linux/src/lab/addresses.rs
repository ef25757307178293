//! Who is who in the embedded lab. All addresses come from the benchmarking ranges: 198.18.0.0/15 (RFC 2544, C.2.2) and
//! 2001:2::/48 (RFC 5180); one half of each is the generator's side, the other the receiver's.

use crate::net::MacAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network behind one side of the DUT.
#[derive(Debug, Clone, Copy)]
pub struct Side {
    /// The DUT's address on the link, and its prefix length.
    pub dut: (IpAddr, u8),
    /// The tester's address on the link: gateway to the network behind it.
    pub tester: IpAddr,
    /// The network that is reached through the tester.
    pub network: (IpAddr, u8),
}

const fn v6(a: u16, b: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, a, 0, 0, 0, b))
}

const fn v4(a: u8, b: u8, c: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(198, a, b, c))
}

/// Where frames come from.
pub const GENERATOR_SIDE: [Side; 2] = [
    Side { dut: (v4(18, 0, 1), 30), tester: v4(18, 0, 2), network: (v4(18, 0, 0), 16) },
    Side { dut: (v6(0, 1), 126), tester: v6(0, 2), network: (v6(0, 0), 49) },
];

/// Where frames go to.
pub const RECEIVER_SIDE: [Side; 2] = [
    Side { dut: (v4(19, 0, 1), 30), tester: v4(19, 0, 2), network: (v4(19, 0, 0), 16) },
    Side { dut: (v6(0x8000, 1), 126), tester: v6(0x8000, 2), network: (v6(0x8000, 0), 49) },
];

/// A locally administered address; `role` distinguishes the ends of a lane.
pub fn mac(lane: usize, role: u8) -> MacAddr {
    [0x02, b'L', b'R', (lane >> 8) as u8, lane as u8, role]
}
