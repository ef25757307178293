//! The parts of `linerate watch`: where samples come from, and the view.

mod source;
mod view;

pub use source::Source;
pub use view::{Shown, draw};
