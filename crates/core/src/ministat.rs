//! FreeBSD's ministat(1): the statistics that this field publishes, in the arithmetic of each of its generations.
//!
//! A published block can be checked only with the arithmetic of its time: [`Era`] says which. Everything else that it printed,
//! its plot included, is the same in all of them.

mod dataset;
mod difference;
mod era;
mod number;
mod student;

pub use dataset::{Dataset, Summary};
pub use difference::{Difference, difference};
pub use era::{Era, ParseEraError};
pub use number::format_g;
pub use student::{Confidence, ParseConfidenceError};
