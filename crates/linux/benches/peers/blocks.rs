//! Blocks: every contestant once per block, in an order drawn anew, so that all share the machine's good and bad moments.

use crate::Failure;
use linerate_stats::{Estimate, median, paired_ratio, shuffle};
use linerate_wire::SplitMix64;
use serde::Serialize;
use std::fmt::Display;

/// Confidence of all intervals.
pub const CONFIDENCE: f64 = 0.95;
/// A contestant that fails this often in a row is not asked again: each failure may have cost seconds of waiting.
const PATIENCE: usize = 2;

/// Rates of one contestant, block by block.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// Which contest.
    pub contest: String,
    /// Who.
    pub name: String,
    /// Frames/s in each block; null where the slice failed.
    pub rates: Vec<Option<f64>>,
    /// Why the last failed slice failed.
    pub failure: Option<String>,
}

impl Series {
    fn new(contest: &str, name: String) -> Self {
        Series {
            contest: contest.into(),
            name,
            rates: Vec::new(),
            failure: None,
        }
    }

    /// The median of the blocks that succeeded.
    pub fn median(&self) -> Option<f64> {
        median(&self.rates.iter().flatten().copied().collect::<Vec<_>>())
    }

    fn given_up(&self) -> bool {
        let failed = self.rates.iter().rev().take_while(|r| r.is_none()).count();
        failed >= PATIENCE
    }
}

/// Runs `blocks` blocks. The groups of contestants come in random order, and so do those within a group, who are thereby
/// neighbours in time.
pub fn alternate<C: Display>(
    contest: &str,
    groups: &[Vec<C>],
    blocks: usize,
    random: &mut SplitMix64,
    mut slice: impl FnMut(&C) -> Result<f64, Failure>,
) -> Vec<Series> {
    let flat: Vec<&C> = groups.iter().flatten().collect();
    let mut all: Vec<Series> = flat
        .iter()
        .map(|c| Series::new(contest, c.to_string()))
        .collect();
    for block in 1..=blocks {
        eprint!("\r{contest}: block {block} of {blocks}   ");
        for i in draw(groups, random) {
            let series = &mut all[i];
            if series.given_up() {
                series.rates.push(None);
                continue;
            }
            let rate = slice(flat[i]);
            if let Err(error) = &rate {
                eprintln!("\n  {}: {error}", series.name);
                series.failure = Some(error.to_string());
            }
            series.rates.push(rate.ok());
        }
    }
    eprintln!();
    all
}

/// Numbers of all contestants, in the order of one block.
fn draw<C>(groups: &[Vec<C>], random: &mut SplitMix64) -> Vec<usize> {
    let mut first = 0;
    let mut numbers: Vec<Vec<usize>> = Vec::new();
    for group in groups {
        let mut members: Vec<usize> = (first..first + group.len()).collect();
        first += group.len();
        shuffle(&mut members, random);
        numbers.push(members);
    }
    shuffle(&mut numbers, random);
    numbers.concat()
}

/// The median of the ratios within blocks.
pub fn ratio(numerator: &Series, denominator: &Series) -> Option<Estimate> {
    let pairs = numerator.rates.iter().zip(&denominator.rates);
    let pairs: Vec<(f64, f64)> = pairs.filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect();
    paired_ratio(&pairs, CONFIDENCE)
}
