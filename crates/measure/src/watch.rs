//! Activity of a host: its counters at a moment, their rates between two moments, and where the limit is.
//!
//! A [`Sample`] is raw, and is what `linerate watch` records. [`Differ`] makes [`Rates`] of two samples, and
//! [`limits`](limits::limits) judges them.

mod differ;
pub mod limit;
mod limits;
mod rates;
mod sample;

pub use differ::{Differ, growth};
pub use limit::{Limit, QueueState};
pub use limits::queue_states;
pub use rates::{
    CpuRates, InterfaceRates, InterruptRates, Moving, QueueRates, Rates, SideRates, SoftnetRates,
    Totals,
};
pub use sample::{Interface, Interrupt, Queue, Sample, Side, Softnet, Table};

#[cfg(test)]
mod tests;
