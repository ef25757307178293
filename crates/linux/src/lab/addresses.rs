//! Who is who in the embedded lab. All addresses come from the benchmarking ranges: 198.18.0.0/15 (RFC 2544, C.2.2) and
//! 2001:2::/48 (RFC 5180); one half of each is the generator's side, the other the receiver's. On the links, the DUT has node 1
//! and the tester node 2 of the first network (RFC 2544, C.2.2.2), so that frames of that appendix stay within the links' own
//! networks. These are small: other nodes of 198.19.1.0/24 are behind the tester.
//!
//! Routes and neighbours that fill a DUT's tables and that no frame takes: which they are, by number, the same on every run.
//!
//! Neither networks in a row nor real tables' addresses: numbers are spread by an odd factor over the whole space, so that the
//! kernel's tries get as deep as those of a router on the Internet, and no two are equal.

use crate::net::MacAddr;
use crate::net::netlink::Prefix;
use linerate_wire::Family;
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
    Side {
        dut: (v4(18, 1, 1), 30),
        tester: v4(18, 1, 2),
        network: (v4(18, 0, 0), 16),
    },
    Side {
        dut: (v6(0, 1), 126),
        tester: v6(0, 2),
        network: (v6(0, 0), 49),
    },
];

/// Where frames go to.
pub const RECEIVER_SIDE: [Side; 2] = [
    Side {
        dut: (v4(19, 1, 1), 30),
        tester: v4(19, 1, 2),
        network: (v4(19, 0, 0), 16),
    },
    Side {
        dut: (v6(0x8000, 1), 126),
        tester: v6(0x8000, 2),
        network: (v6(0x8000, 0), 49),
    },
];

/// A locally administered address; `role` distinguishes the ends of a lane.
pub fn mac(lane: usize, role: u8) -> MacAddr {
    [0x02, b'L', b'R', (lane >> 8) as u8, lane as u8, role]
}

/// So many routes of a family: all /24, or /48 in IPv6, as most routes of the Internet are.
pub fn routes(family: Family, count: u32) -> impl Iterator<Item = Prefix> {
    let route = match family {
        Family::V4 => route_v4,
        Family::V6 => route_v6,
    };
    (0u64..).filter_map(route).take(count as usize)
}

/// So many neighbours of a family, with their Ethernet addresses.
pub fn neighbours(family: Family, count: u32) -> impl Iterator<Item = (IpAddr, MacAddr)> {
    (0..count).map(move |n| neighbour(family, n))
}

/// Odd, so that multiplying by it modulo a power of two gives every number once; near the golden ratio, so that neighbours end
/// up far apart (Knuth, The Art of Computer Programming 3, 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The `n`-th network: none where its number falls on addresses that must not be routed, the test networks above all.
fn route_v4(n: u64) -> Option<Prefix> {
    let block = n.wrapping_mul(SPREAD) & 0xff_ffff;
    let address = Ipv4Addr::from((block as u32) << 8);
    let [first, second, ..] = address.octets();
    let test = first == 198 && matches!(second, 18 | 19);
    (!matches!(first, 0 | 127 | 224..) && !test).then_some((address.into(), 24))
}

fn route_v6(n: u64) -> Option<Prefix> {
    // 2000::/3: 45 bits of a /48 are free.
    let block = 1 << 45 | n.wrapping_mul(SPREAD) & ((1 << 45) - 1);
    let address = Ipv6Addr::from(u128::from(block) << 80);
    (address.segments()[..3] != [0x2001, 2, 0]).then_some((address.into(), 48))
}

/// The `n`-th neighbour: in 10.0.0.0/8 or fd4c:52::/32, which no test frame has to do with.
fn neighbour(family: Family, n: u32) -> (IpAddr, MacAddr) {
    let [_, a, b, c] = n.to_be_bytes();
    let mac = [0x02, b'L', b'N', a, b, c];
    let place = u64::from(n).wrapping_mul(SPREAD) & 0xff_ffff;
    let address = match family {
        Family::V4 => Ipv4Addr::from(10 << 24 | place as u32).into(),
        Family::V6 => Ipv6Addr::from(0xfd4c_0052u128 << 96 | u128::from(place)).into(),
    };
    (address, mac)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::guard::is_foreign;
    use std::collections::HashSet;

    /// Most entries that a plan can have of one kind.
    const MOST: u32 = 1_000_000;

    #[test]
    fn a_million_routes_are_distinct_and_none_leads_to_the_test_networks() {
        for (family, expected) in [(Family::V4, 24), (Family::V6, 48)] {
            let mut seen = HashSet::new();
            for (address, length) in routes(family, MOST) {
                assert!(is_foreign(address), "{address}/{length} takes test frames");
                assert!(
                    length == expected && seen.insert(address),
                    "{address}/{length}"
                );
            }
            assert_eq!(seen.len(), MOST as usize);
        }
    }

    #[test]
    fn prefixes_have_no_bits_beyond_their_length() {
        for (address, length) in routes(Family::V4, 20_000).chain(routes(Family::V6, 20_000)) {
            let beyond = match address {
                IpAddr::V4(v4) => u128::from(u32::from(v4) << length),
                IpAddr::V6(v6) => u128::from(v6) << length,
            };
            assert_eq!(beyond, 0, "{address}/{length}");
        }
    }

    #[test]
    fn the_same_every_time_and_spread_over_the_whole_space() {
        let first: Vec<Prefix> = routes(Family::V4, 1000).collect();
        assert_eq!(
            first,
            routes(Family::V4, 2000).take(1000).collect::<Vec<_>>()
        );
        let firsts: HashSet<u8> = first
            .iter()
            .map(|(address, _)| match address {
                IpAddr::V4(v4) => v4.octets()[0],
                IpAddr::V6(_) => panic!("{address}"),
            })
            .collect();
        assert!(firsts.len() > 200, "{}", firsts.len());
    }

    #[test]
    fn neighbours_are_distinct() {
        for family in [Family::V4, Family::V6] {
            let all: Vec<_> = neighbours(family, 200_000).collect();
            let addresses: HashSet<_> = all.iter().map(|(address, _)| address).collect();
            let macs: HashSet<_> = all.iter().map(|(_, mac)| mac).collect();
            assert_eq!((addresses.len(), macs.len()), (200_000, 200_000));
            assert!(all.iter().all(|(address, _)| is_foreign(*address)));
        }
    }
}
