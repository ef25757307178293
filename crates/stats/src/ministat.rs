//! FreeBSD's ministat(1): the statistics that this field publishes, in the arithmetic of each of its generations.
//!
//! A published block can be checked only with the arithmetic of its time, its [`Era`]. Everything else that it prints, its plot
//! included, is the same in all of them.

mod block;
mod dataset;
mod difference;
mod era;
mod format;
mod number;
mod plot;
mod points;
mod student;

pub use block::{MAX_SETS, Options, block, write_block};
pub use dataset::{Dataset, Summary};
pub use difference::{Difference, difference};
pub use era::Era;
pub use format::format_g;
pub use plot::{DEFAULT_WIDTH, MIN_WIDTH};
pub use points::{Columns, MAX_LINE, PointReader, PointsError};
pub use student::Confidence;
