//! Pseudo-random flows after RFC 4814, by number.

use crate::flow::{address_bits, address_from};
use crate::order::mix64;
use crate::{Family, Flow};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Sources and destinations are numbered by 11 and 12 bits: 2^23 pairs, more than `MAX_FLOWS`.
const SRC_BITS: u32 = 11;
const DST_BITS: u32 = 12;
const PAIR_BITS: u32 = SRC_BITS + DST_BITS;
const PAIR_MASK: u32 = (1 << PAIR_BITS) - 1;

/// The flows of one seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RandomSpace {
    pub family: Family,
    pub seed: u64,
}

impl RandomSpace {
    /// Flow `i`, below 2^23: the address pair is a permutation of `i`, so that flows are distinct; the ports
    /// are drawn.
    pub fn flow(&self, i: u32) -> Flow {
        let pair = self.permuted(i & PAIR_MASK);
        let random = mix64(self.seed ^ mix64(u64::from(i).wrapping_add(1)));
        Flow {
            src: self.nth(self.first_src(), pair & ((1 << SRC_BITS) - 1)),
            dst: self.nth(self.first_dst(), pair >> SRC_BITS),
            src_port: 1024 + below((random >> 32) as u32, 64_512),
            dst_port: 1 + below(random as u32, 49_151),
        }
    }

    /// A permutation of the 23-bit numbers that depends on the seed: each step (add a key, multiply by an odd
    /// number, fold the high half into the low one) can be undone.
    fn permuted(&self, i: u32) -> u32 {
        let mut x = i;
        for round in 0..4u64 {
            let key = mix64(self.seed.wrapping_add(round));
            x = x.wrapping_add(key as u32) & PAIR_MASK;
            x = x.wrapping_mul((key >> 32) as u32 | 1) & PAIR_MASK;
            x ^= x >> (PAIR_BITS / 2 + 1);
        }
        x
    }

    fn nth(&self, first: u128, n: u32) -> IpAddr {
        address_from(self.family, first + u128::from(n))
    }

    fn first_src(&self) -> u128 {
        address_bits(match self.family {
            Family::V4 => Ipv4Addr::new(198, 18, 10, 1).into(),
            Family::V6 => Ipv6Addr::new(0x2001, 2, 0, 0x10, 0, 0, 0, 1).into(),
        })
    }

    fn first_dst(&self) -> u128 {
        address_bits(match self.family {
            Family::V4 => Ipv4Addr::new(198, 19, 10, 1).into(),
            Family::V6 => Ipv6Addr::new(0x2001, 2, 0, 0x8010, 0, 0, 0, 1).into(),
        })
    }
}

/// A number below `n`, out of 32 random bits.
fn below(random: u32, n: u16) -> u16 {
    ((u64::from(random) * u64::from(n)) >> 32) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutes() {
        for seed in [0, 1, u64::MAX] {
            let space = RandomSpace { family: Family::V4, seed };
            let mut seen = vec![false; 1 << PAIR_BITS];
            for i in 0..1 << PAIR_BITS {
                let at = space.permuted(i) as usize;
                assert!(!std::mem::replace(&mut seen[at], true));
            }
        }
    }

    #[test]
    fn ports_are_in_range_and_spread() {
        let space = RandomSpace { family: Family::V6, seed: 4814 };
        let flows: Vec<Flow> = (0..10_000).map(|i| space.flow(i)).collect();
        assert!(flows.iter().all(|f| f.src_port >= 1024 && (1..=49_151).contains(&f.dst_port)));
        let mean = flows.iter().map(|f| f64::from(f.src_port)).sum::<f64>() / 10_000.0;
        assert!((mean - 33_280.0).abs() < 600.0, "{mean}");
        let mean = flows.iter().map(|f| f64::from(f.dst_port)).sum::<f64>() / 10_000.0;
        assert!((mean - 24_576.0).abs() < 500.0, "{mean}");
        let sources: std::collections::HashSet<_> = flows.iter().map(|f| f.src).collect();
        assert!(sources.len() > 1900, "{}", sources.len());
    }
}
