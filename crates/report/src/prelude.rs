//! Blocks, numbers and lists in words, which nearly every page uses.

pub use crate::document::{Block, Cell, Document, Link, Rows, Table, Tone};
pub use crate::pages::numbers::*;
