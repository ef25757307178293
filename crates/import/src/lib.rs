//! Archives, labs and tests of other tools as plans and records. Pure: texts and bytes go in.
#![forbid(unsafe_code)]

pub mod benchlab;
pub mod conductor;
pub mod history;
pub mod netbenches;
pub mod reproduce;

#[cfg(test)]
#[allow(dead_code, reason = "shared with the plan crate")]
#[path = "../../plan/src/mutated.rs"]
mod mutated;
