//! How large a penalty has to be: from random orders of the same points.

use super::partition::{Counting, Partitioner};
use crate::{shuffle, sorted};
use linerate_wire::SplitMix64;

/// Random orders, unless the series is long. One more, the order found, makes 1,000.
const ORDERS: usize = 999;

/// Cells of all random orders together, which bounds the time.
const CELLS: usize = 60_000_000;

/// The fewest random orders. With the order found they are 200, so that 2 % and 5 % are whole numbers of them.
const FEWEST_ORDERS: usize = 199;

/// The largest penalties at which random orders of a series are still cut.
#[derive(Debug)]
pub struct Calibrated {
    /// Sorted.
    critical: Vec<f64>,
}

impl Calibrated {
    /// Draws random orders of these points from `seed`.
    pub fn new(values: &[f64], errors: &[f64], noise: f64, counting: Counting, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut partitioner = Partitioner::new(values, errors, noise);
        let cells = values.len() * values.len().min(256);
        // A multiple of 100 with the order found.
        let orders = (CELLS / cells.max(1) / 100 * 100).saturating_sub(1).clamp(FEWEST_ORDERS, ORDERS);
        let critical = (0..orders).map(|_| {
            partitioner.reorder(|rows| shuffle(rows, &mut random));
            partitioner.critical_penalty(counting)
        });
        Calibrated { critical: sorted(critical) }
    }

    /// The penalty at which at most this share of the orders, the one found among them, are cut.
    pub fn penalty(&self, level: f64) -> f64 {
        let orders = self.critical.len() + 1;
        let allowed = (level * orders as f64 + 1e-9) as usize;
        // Larger than that of all but the allowed ones: the order found may be one of those.
        let at = (orders - allowed.max(1)).min(self.critical.len() - 1);
        self.critical[at] * (1.0 + 1e-9)
    }

    /// The share of the orders that are cut at this penalty, the one found among them.
    pub fn p(&self, penalty: f64) -> f64 {
        let smaller = self.critical.partition_point(|c| *c < penalty * (1.0 - 1e-9));
        (self.critical.len() - smaller + 1) as f64 / (self.critical.len() + 1) as f64
    }
}
