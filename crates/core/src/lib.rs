//! The pure heart of linerate: units, statistics, schedules, trials, audits and records.
//!
//! Nothing here reads a file, a clock, a socket, the environment or an unseeded random number: what goes in decides what
//! comes out, so that everything can be tested without a network.
#![forbid(unsafe_code)]

pub mod advice;
pub mod agent;
pub mod archive;
pub mod audit;
pub mod benchlab;
pub mod compare;
pub mod conductor;
pub mod counters;
pub mod fault;
pub mod histogram;
pub mod history;
pub mod hosts;
pub mod lab;
pub mod ministat;
#[cfg(test)]
mod mutated;
pub mod phases;
pub mod pktgen;
pub mod plan;
pub mod reconfigure;
pub mod record;
pub mod reproduce;
pub mod rules;
pub mod schedule;
pub mod stats;
pub mod summary;
pub mod tools;
pub mod trial;
pub mod units;
