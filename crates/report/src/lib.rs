//! Text out of records: what a person reads in a terminal. Pure, no I/O: records and a width go in, a string comes out.
#![forbid(unsafe_code)]

pub mod text;
