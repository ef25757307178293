//! What nearly every page uses: blocks, numbers and lists in words.

pub use crate::document::{Block, Cell, Document, Link, Rows, Table, Tone};
pub use crate::pages::numbers::*;
