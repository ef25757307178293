//! The order of flows: one after the other, at random, or some much more often than others (Zipf).
//!
//! The sampling rule is the same wherever frames are made, in user space and in eBPF: with `r` the next number of [`SplitMix64`]
//! and `n` the number of flows, `i = ((r >> 32) * n) >> 32`; for Zipf, if the low 32 bits of `r` are not below `threshold[i]`,
//! then `i = alias[i]`.

use crate::{Result, WireError};
use std::fmt;
use std::str::FromStr;

/// The seed of an order that names none.
pub const DEFAULT_SEED: u64 = 1;

/// The order in which a generator takes flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FlowOrder {
    /// 0, 1, 2, ..., and again.
    Sequential,
    /// Uniform and independent.
    Random {
        /// Start of the random numbers.
        seed: u64,
    },
    /// Flow `i` with a probability proportional to `(i + 1)^-exponent`, independent.
    Zipf {
        /// 0 is uniform; about 1 resembles real traffic.
        exponent: f64,
        /// Start of the random numbers.
        seed: u64,
    },
}

impl FromStr for FlowOrder {
    type Err = WireError;

    fn from_str(text: &str) -> Result<Self> {
        let seed = |text: &str| text.parse().ok();
        let exponent = |text: &str| text.parse().ok().filter(|e: &f64| (0.0..=10.0).contains(e));
        let zipf = |e: &str, seed: Option<u64>| {
            Some(FlowOrder::Zipf {
                exponent: exponent(e)?,
                seed: seed?,
            })
        };
        let order = match text.split(':').collect::<Vec<_>>()[..] {
            ["sequential"] => Some(FlowOrder::Sequential),
            ["random"] => Some(FlowOrder::Random { seed: DEFAULT_SEED }),
            ["random", start] => seed(start).map(|seed| FlowOrder::Random { seed }),
            ["zipf", e] => zipf(e, Some(DEFAULT_SEED)),
            ["zipf", e, start] => zipf(e, seed(start)),
            _ => None,
        };
        order.ok_or_else(|| {
            let forms = "sequential, random, random:SEED, zipf:EXPONENT or zipf:EXPONENT:SEED, with an exponent from 0 to 10";
            WireError::new(format!("{text:?} is not an order of flows; write {forms}"))
        })
    }
}

impl fmt::Display for FlowOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (form, seed) = match self {
            FlowOrder::Sequential => return f.write_str("sequential"),
            FlowOrder::Random { seed } => ("random".to_string(), *seed),
            FlowOrder::Zipf { exponent, seed } => (format!("zipf:{exponent}"), *seed),
        };
        f.write_str(&form)?;
        if seed == DEFAULT_SEED {
            Ok(())
        } else {
            write!(f, ":{seed}")
        }
    }
}

/// The splitmix64 generator (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014;
/// constants of Stafford's variant 13, as in the public-domain C by Vigna): a counter in steps of the golden
/// ratio, mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Starts at a seed; any will do.
    pub fn new(seed: u64) -> Self {
        SplitMix64 { state: seed }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number below `n`, out of the high 32 bits of the next number: multiply and shift (Lemire 2019,
    /// without rejection; for n up to 5 million a number's probability is off by less than 0.12 %).
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        reduce(self.next_u64(), n)
    }
}

/// 2^64 divided by the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Number `i` of a random permutation of the numbers below `n`; from `i` = `n` on, the permutation repeats.
pub(crate) fn permuted(seed: u64, i: u64, n: u64) -> u64 {
    let bits = 64 - (n - 1).leading_zeros();
    let (mask, shift) = (
        u64::MAX.checked_shr(64 - bits).unwrap_or(0),
        (bits / 2).max(1),
    );
    let mut number = i % n;
    loop {
        // Each step is a bijection on numbers of `bits` bits. A result from `n` on goes through the steps again, until it is below `n`.
        for round in 0..4 {
            let key = mixed(seed, round);
            number = number.wrapping_mul(key | 1).wrapping_add(key >> 32) & mask;
            number ^= number >> shift;
        }
        if number < n {
            return number;
        }
    }
}

/// Number `i` of the random numbers of a seed.
pub(crate) fn mixed(seed: u64, i: u64) -> u64 {
    mix(seed.wrapping_add(i.wrapping_add(1).wrapping_mul(GOLDEN)))
}

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[inline]
fn reduce(random: u64, n: u32) -> u32 {
    (((random >> 32) * u64::from(n)) >> 32) as u32
}

/// One column of an alias table; `struct alias` in generator.bpf.c.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct AliasEntry {
    /// The column's own index is taken if 32 random bits are below this,
    pub threshold: u32,
    /// and this index otherwise.
    pub alias: u32,
}

/// Draws from a fixed distribution in constant time (Vose: A Linear Algorithm for Generating Random Numbers
/// with a Given Distribution, IEEE TSE 1991).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AliasTable {
    entries: Vec<AliasEntry>,
}

impl AliasTable {
    /// The Zipf distribution over `n` indexes (at least 1 is made): index `i` in proportion to `(i +
    /// 1)^-exponent`.
    pub fn zipf(n: u32, exponent: f64) -> Self {
        Self::new(
            (1..=n.max(1))
                .map(|rank| f64::from(rank).powf(-exponent))
                .collect(),
        )
    }

    /// A table for weights: at least one positive, and no negative ones; otherwise it is uniform.
    pub fn new(mut weights: Vec<f64>) -> Self {
        let scale = weights.len() as f64 / weights.iter().sum::<f64>();
        weights.iter_mut().for_each(|weight| *weight *= scale);
        let full = |i: usize| AliasEntry {
            threshold: u32::MAX,
            alias: i as u32,
        };
        let mut entries: Vec<AliasEntry> = (0..weights.len()).map(full).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&i| weights[i] < 1.0);
        // A small column is filled up to 1 from a large one. Columns left over are full, up to rounding.
        while let (Some(&from), Some(to)) = (large.last(), small.pop()) {
            let threshold = (weights[to] * 4_294_967_296.0) as u32;
            entries[to] = AliasEntry {
                threshold,
                alias: from as u32,
            };
            weights[from] -= 1.0 - weights[to];
            if weights[from] < 1.0 {
                large.pop();
                small.push(from);
            }
        }
        AliasTable { entries }
    }

    /// The columns, as many as there are indexes.
    pub fn entries(&self) -> &[AliasEntry] {
        &self.entries
    }

    /// The index for 64 random bits.
    #[inline]
    pub fn sample(&self, random: u64) -> u32 {
        let i = reduce(random, self.entries.len() as u32);
        match self.entries.get(i as usize) {
            Some(entry) if random as u32 >= entry.threshold => entry.alias,
            _ => i,
        }
    }
}

/// Picks flow numbers below `n` in an order.
#[derive(Debug, Clone)]
pub struct FlowPicker {
    n: u32,
    random: SplitMix64,
    rule: Rule,
}

#[derive(Debug, Clone)]
enum Rule {
    Sequential(u32),
    Random,
    Alias(AliasTable),
}

impl FlowPicker {
    /// Picks below `n`, which counts as 1 if it is 0.
    pub fn new(order: FlowOrder, n: u32) -> Self {
        let n = n.max(1);
        let (seed, rule) = match order {
            FlowOrder::Sequential => (0, Rule::Sequential(0)),
            FlowOrder::Random { seed } => (seed, Rule::Random),
            FlowOrder::Zipf { exponent, seed } => {
                (seed, Rule::Alias(AliasTable::zipf(n, exponent)))
            }
        };
        FlowPicker {
            n,
            random: SplitMix64::new(seed),
            rule,
        }
    }

    /// The next flow number. There is always one, so this is no iterator.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> u32 {
        match &mut self.rule {
            Rule::Sequential(next) => {
                let i = *next;
                *next = if i + 1 == self.n { 0 } else { i + 1 };
                i
            }
            Rule::Random => self.random.below(self.n),
            Rule::Alias(table) => table.sample(self.random.next_u64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn splitmix64_reference_numbers() {
        // From the public-domain C by Vigna, seed 1234567.
        let mut random = SplitMix64::new(1_234_567);
        let numbers = [random.next_u64(), random.next_u64(), random.next_u64()];
        assert_eq!(
            numbers,
            [
                6457827717110365317,
                3203168211198807973,
                9817491932198370423
            ]
        );
    }

    #[test]
    fn words() {
        for text in [
            "sequential",
            "random",
            "random:7",
            "zipf:1.1",
            "zipf:0.9:42",
        ] {
            assert_eq!(text.parse::<FlowOrder>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "Random",
            "random:",
            "random:-1",
            "zipf",
            "zipf:x",
            "zipf:NaN",
            "zipf:-1",
            "sequential:1",
            "zipf:1:2:3",
        ] {
            assert!(bad.parse::<FlowOrder>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_random_order_has_every_number_once() {
        for n in [1, 2, 3, 7, 64, 1000, 65_537] {
            let all: std::collections::HashSet<u64> = (0..n).map(|i| permuted(9, i, n)).collect();
            assert!(
                all.len() as u64 == n && all.iter().all(|number| *number < n),
                "{n}"
            );
        }
        assert_eq!(permuted(9, 7, 5), permuted(9, 2, 5));
        assert!(permuted(1, 3, u64::MAX) < u64::MAX);
    }

    #[test]
    fn sequential_goes_around() {
        let mut picker = FlowPicker::new(FlowOrder::Sequential, 3);
        assert_eq!([0; 7].map(|_| picker.next()), [0, 1, 2, 0, 1, 2, 0]);
    }

    /// The probabilities that a table stands for, exactly.
    fn shares(table: &AliasTable) -> Vec<f64> {
        let n = table.entries().len();
        let mut shares = vec![0.0; n];
        for (i, entry) in table.entries().iter().enumerate() {
            let own = f64::from(entry.threshold) / 4_294_967_296.0;
            shares[i] += own / n as f64;
            shares[entry.alias as usize] += (1.0 - own) / n as f64;
        }
        shares
    }

    proptest! {
        #[test]
        fn tables_stand_for_their_weights(n in 1u32..3000, exponent in 0.0f64..3.0) {
            let total: f64 = (1..=n).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for (i, share) in shares(&AliasTable::zipf(n, exponent)).iter().enumerate() {
                let want = f64::from(i as u32 + 1).powf(-exponent) / total;
                prop_assert!((share - want).abs() < 1e-8, "{i}: {share} {want}");
            }
        }

        #[test]
        fn picks_are_in_range(n in 1u32.., seed: u64) {
            let mut picker = FlowPicker::new(FlowOrder::Random { seed }, n);
            prop_assert!((0..100).all(|_| picker.next() < n));
            let mut picker = FlowPicker::new(FlowOrder::Zipf { exponent: 1.1, seed }, n % 1000);
            prop_assert!((0..100).all(|_| picker.next() < (n % 1000).max(1)));
        }

        #[test]
        fn never_panics(text in "(zipf|random|sequential)?[:0-9.e-]*") {
            let _ = text.parse::<FlowOrder>();
        }
    }

    #[test]
    fn odd_weights_do_not_panic() {
        for weights in [vec![], vec![0.0, 0.0], vec![f64::NAN, 1.0], vec![-1.0, 1.0]] {
            let _ = AliasTable::new(weights).sample(12345);
        }
    }
}
