//! Measuring: trials, their order, their audit, their records, and their results.
//!
//! Nothing here reads a file, a clock, a socket, the environment or an unseeded random number.
#![forbid(unsafe_code)]

pub mod advice;
pub mod audit;
pub mod calendar;
pub mod collector;
pub mod compare;
pub mod counters;
pub mod experiment;
mod goodput;
pub mod history;
pub mod record;
pub mod results;
pub mod slower;
pub mod strategy;
pub mod summary;
pub mod trial;
pub mod tuning;
pub mod watch;
