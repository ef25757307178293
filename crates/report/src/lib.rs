//! Records go in, documents come out: blocks that say what there is to say. A format draws them. Pure, no I/O.
#![forbid(unsafe_code)]

pub mod document;
pub mod format;
pub mod pages;
