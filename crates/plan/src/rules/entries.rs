//! Addresses that no test traffic comes from: by number or drawn, each once, one after the other in constant memory.

use crate::lab::types::HostAddress;
use linerate_wire::SplitMix64;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of entries in rules and tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    /// Networks: /24 of IPv4, as the archive has them, and /64 of IPv6.
    #[default]
    Networks,
    /// Hosts.
    Hosts,
}

/// Entries of one kind in one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entries {
    /// How many, up to [`MAX_ENTRIES`](super::MAX_ENTRIES).
    pub count: u32,
    /// Kind of the entries.
    pub kind: EntryKind,
    /// Drawn at random with this seed; `None` counts up.
    pub seed: Option<u64>,
}

/// An entry of a table, or a rule's source: a network or a host.
fn entry(address: impl Into<IpAddr>, length: Option<u8>) -> HostAddress {
    HostAddress {
        address: address.into(),
        length,
    }
}

/// IPv4 networks without entries: sources that no packet has, the test networks, and the private networks, because a DUT is often
/// reached through one of them and would lock its administrator out.
const LEFT_OUT_V4: [(Ipv4Addr, u32); 9] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

fn left_out_v4(address: u32) -> bool {
    LEFT_OUT_V4
        .iter()
        .any(|(network, bits)| (address ^ network.to_bits()) >> (32 - bits) == 0)
}

/// 2001:2::/48, by its upper 64 bits.
fn left_out_v6(network: u64) -> bool {
    network >> 16 == 0x2001_0002_0000
}

impl Entries {
    /// Entries of IPv4. Counted, they are the archive's: 1.1.1.0/24, 1.1.2.0/24, ... 1.1.255.0/24, 1.2.1.0/24, ...
    pub fn v4(self) -> impl Iterator<Item = HostAddress> {
        let (counted, drawn) = match self.seed {
            None => (Some(counted_v4()), None),
            Some(seed) => (None, Some(self.drawn_v4(seed))),
        };
        let kind = self.kind;
        let addresses = counted
            .into_iter()
            .flatten()
            .chain(drawn.into_iter().flatten());
        addresses
            .filter(|address| !left_out_v4(*address))
            .take(self.count as usize)
            .map(move |address| match kind {
                EntryKind::Networks => entry(Ipv4Addr::from_bits(address), Some(24)),
                EntryKind::Hosts => entry(
                    Ipv4Addr::from_bits(address | u32::from(address & 255 == 0)),
                    None,
                ),
            })
    }

    fn drawn_v4(self, seed: u64) -> impl Iterator<Item = u32> {
        let bits = match self.kind {
            EntryKind::Networks => 24,
            EntryKind::Hosts => 32,
        };
        let permutation = Permutation::new(seed, bits);
        (0..1u64 << bits)
            .map(move |index| (permutation.apply(index) << (32 - bits)) as u32)
            .filter(
                // A host that would be taken for its network's number moves to 1, which must not be drawn as well.
                move |address| bits == 24 || address & 255 != 0,
            )
    }

    /// Entries of IPv6. Counted, they are of the prefix for documents (RFC 3849): 2001:db8:0:1::/64, 2001:db8:0:2::/64, ...
    pub fn v6(self) -> impl Iterator<Item = HostAddress> {
        let permutation = self.seed.map(|seed| Permutation::new(seed, DRAWN_V6_BITS));
        let networks = (1u64..).map(move |index| match permutation {
            None => 0x2001_0db8_0000_0000 + index,
            Some(permutation) => 0x2000_0000_0000_0000 + permutation.apply(index),
        });
        let Entries { kind, seed, count } = self;
        networks
            .filter(|network| !left_out_v6(*network))
            .take(count as usize)
            .map(move |network| {
                let host = seed.map_or(1, |seed| SplitMix64::new(seed ^ network).next_u64() | 1);
                let address =
                    |host: u64| Ipv6Addr::from_bits(u128::from(network) << 64 | u128::from(host));
                match kind {
                    EntryKind::Networks => entry(address(0), Some(64)),
                    EntryKind::Hosts => entry(address(host), None),
                }
            })
    }
}

/// Networks are drawn from 2000::/4, the lower half of global unicast, in which the addresses in use are.
const DRAWN_V6_BITS: u32 = 60;

/// Three bytes from 1 to 255, the last changing fastest: 1.1.1.0 and so on.
fn counted_v4() -> impl Iterator<Item = u32> {
    (1..=223u32).flat_map(|a| {
        (1..=255u32).flat_map(move |b| (1..=255u32).map(move |c| a << 24 | b << 16 | c << 8))
    })
}

/// A permutation of the numbers of some bits: a Feistel network, so that drawing without repetition needs no memory.
#[derive(Debug, Clone, Copy)]
struct Permutation {
    keys: [u64; 4],
    half: u32,
}

impl Permutation {
    /// `bits` is even.
    fn new(seed: u64, bits: u32) -> Self {
        let mut random = SplitMix64::new(seed);
        Permutation {
            keys: std::array::from_fn(|_| random.next_u64()),
            half: bits / 2,
        }
    }

    fn apply(&self, index: u64) -> u64 {
        let mask = (1u64 << self.half) - 1;
        let (left, right) = self
            .keys
            .iter()
            .fold((index >> self.half & mask, index & mask), |(l, r), key| {
                (r, l ^ (SplitMix64::new(key ^ r).next_u64() & mask))
            });
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn of(count: u32, kind: EntryKind, seed: Option<u64>) -> Entries {
        Entries { count, kind, seed }
    }

    fn texts(entries: impl Iterator<Item = HostAddress>) -> Vec<String> {
        entries.map(|e| e.to_string()).collect()
    }

    #[test]
    fn counted_entries_begin_and_go_on_as_the_archive_s() {
        let all = texts(of(99_999, EntryKind::Networks, None).v4());
        assert_eq!(all[..2], ["1.1.1.0/24", "1.1.2.0/24"]);
        assert_eq!(all[254..257], ["1.1.255.0/24", "1.2.1.0/24", "1.2.2.0/24"]);
        // The last ones of the archive's tables of "1000", "10000" and "100000".
        assert_eq!(
            [&all[998], &all[9_998], &all[99_998]],
            ["1.4.234.0/24", "1.40.54.0/24", "2.138.39.0/24"]
        );
        assert_eq!(
            texts(of(2, EntryKind::Hosts, None).v4()),
            ["1.1.1.1", "1.1.2.1"]
        );
    }

    #[test]
    fn counted_entries_of_ipv6() {
        let all = texts(of(70_000, EntryKind::Networks, None).v6());
        assert_eq!(all[..2], ["2001:db8:0:1::/64", "2001:db8:0:2::/64"]);
        assert_eq!(
            all[65_534..65_536],
            ["2001:db8:0:ffff::/64", "2001:db8:1::/64"]
        );
        assert_eq!(
            texts(of(1, EntryKind::Hosts, None).v6()),
            ["2001:db8:0:1::1"]
        );
    }

    /// The largest table that can be asked for, of each kind and order: complete, without repetition, and none in the way.
    #[test]
    fn takes_minutes_ten_million_entries_are_there() {
        let networks = EntryKind::Networks;
        for (kind, seed) in [
            (networks, None),
            (networks, Some(1)),
            (EntryKind::Hosts, Some(1)),
        ] {
            let entries = of(super::super::MAX_ENTRIES, kind, seed);
            let mut all: Vec<u32> = entries
                .v4()
                .map(|entry| address_v4(entry).to_bits())
                .collect();
            assert_eq!(all.len(), 10_000_000);
            assert_eq!(all.iter().find(|address| left_out_v4(**address)), None);
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 10_000_000);
        }
    }

    fn address_v4(entry: HostAddress) -> Ipv4Addr {
        match entry.address {
            IpAddr::V4(address) => address,
            IpAddr::V6(_) => panic!("{entry} is no IPv4"),
        }
    }

    #[test]
    fn networks_that_are_left_out() {
        for (address, out) in [
            ("198.17.255.0", false),
            ("198.18.0.0", true),
            ("198.19.255.0", true),
            ("198.20.0.0", false),
            ("9.255.255.0", false),
            ("10.1.1.0", true),
            ("172.31.255.0", true),
            ("172.32.0.0", false),
            ("223.255.255.0", false),
            ("224.0.0.0", true),
            ("0.1.1.0", true),
        ] {
            assert_eq!(
                left_out_v4(address.parse::<Ipv4Addr>().unwrap().to_bits()),
                out,
                "{address}"
            );
        }
        let upper = |a: &str| (a.parse::<Ipv6Addr>().unwrap().to_bits() >> 64) as u64;
        assert!(left_out_v6(upper("2001:2::")) && left_out_v6(upper("2001:2:0:ffff::1")));
        assert!(!left_out_v6(upper("2001:2:1::")) && !left_out_v6(upper("2001:1:ffff:ffff::")));
    }

    #[test]
    fn a_permutation_reaches_every_number_once() {
        for seed in 0..20 {
            let permutation = Permutation::new(seed, 12);
            let reached: HashSet<u64> =
                (0..1 << 12).map(|index| permutation.apply(index)).collect();
            assert_eq!(reached.len(), 1 << 12);
            assert!(reached.iter().all(|n| *n < 1 << 12));
        }
    }

    proptest! {
        #[test]
        fn entries_are_many_different_and_repeatable(
            count in 0u32..3_000, hosts: bool, seed: Option<u64>,
        ) {
            let kind = if hosts { EntryKind::Hosts } else { EntryKind::Networks };
            let entries = of(count, kind, seed);
            for all in [entries.v4().collect::<Vec<_>>(), entries.v6().collect()] {
                prop_assert_eq!(all.len(), count as usize);
                prop_assert_eq!(all.iter().map(|e| e.address).collect::<HashSet<_>>().len(), count as usize);
                for entry in &all {
                    let clear = match entry.address {
                        IpAddr::V4(a) => !left_out_v4(a.to_bits()),
                        IpAddr::V6(a) => !left_out_v6((a.to_bits() >> 64) as u64),
                    };
                    prop_assert!(clear, "{}", entry);
                }
            }
            prop_assert_eq!(texts(entries.v4()), texts(entries.v4()));
            // A longer list begins with the shorter one.
            let longer = texts(of(count + 10, kind, seed).v6());
            prop_assert_eq!(&longer[..count as usize], &texts(entries.v6())[..]);
        }

        #[test]
        fn seeds_draw_differently(seed: u64) {
            let drawn = |seed| texts(of(100, EntryKind::Networks, Some(seed)).v4());
            prop_assert_ne!(drawn(seed), drawn(seed ^ 1));
        }
    }
}
