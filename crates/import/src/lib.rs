//! Archives, labs and tests of other tools as plans and records. Pure: texts and bytes go in.
#![forbid(unsafe_code)]

pub mod benchlab;
pub mod conductor;
pub mod history;
pub mod netbenches;
pub mod reproduce;

/// A text of this many characters at most, and dots in place of the rest.
fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_string(),
    }
}

#[cfg(test)]
#[allow(dead_code, reason = "shared with the plan crate")]
#[path = "../../plan/src/mutated.rs"]
mod mutated;
