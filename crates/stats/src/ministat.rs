//! FreeBSD's ministat(1): the statistics that this field publishes, in the arithmetic of each of its generations.
//!
//! A published block can be checked only with the arithmetic of its time, its [`Era`]. Everything else that it prints, its plot
//! included, is the same in all of them.

mod arithmetic;
mod number;
mod output;
mod points;

pub use arithmetic::{Confidence, Dataset, Difference, Era, Summary, difference};
pub use output::{DEFAULT_WIDTH, MAX_SETS, MIN_WIDTH, Options, block, format_g, write_block};
pub use points::{Columns, MAX_LINE, PointReader, PointsError};
