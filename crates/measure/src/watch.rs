//! Activity of a host: its counters at a moment, their rates between two moments, and where the limit is.
//!
//! A [`Sample`] is raw, and is what `linerate watch` records. [`Differ`] makes [`Rates`] of two samples, and
//! [`limits`](limit::limits) judges them.

pub mod limit;
mod rates;
mod sample;

pub use limit::{Limit, QueueState, queue_states};
pub use rates::{
    CpuRates, Differ, InterfaceRates, InterruptRates, Moving, QueueRates, Rates, SideRates,
    SoftnetRates, Totals, growth,
};
pub use sample::{Interface, Interrupt, Queue, Sample, Side, Softnet, Table};

#[cfg(test)]
mod tests;
