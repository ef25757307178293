//! `--fail-if-slower`: the exit status, and what is told.

use crate::prelude::*;
use linerate_measure::slower::{Held, Slowdown};

/// Exit status where something is slower than it may be, or an expectation of a plan was missed.
pub const MISSED: u8 = 3;

/// Exit status where nothing is known to be wrong, and the trials do not decide about all that was asked.
pub const UNDECIDED: u8 = 5;

/// The exit status for scripts.
pub fn status(slowdown: Slowdown) -> u8 {
    match slowdown {
        Slowdown::Excluded => SUCCESS,
        Slowdown::Undecided => UNDECIDED,
        Slowdown::Proven => MISSED,
    }
}

/// Tells what is slower, and what may be, and returns the worst verdict.
pub fn told(held: &[Held]) -> Slowdown {
    for held in held
        .iter()
        .filter(|held| held.slowdown != Slowdown::Excluded)
    {
        tell(&held.known);
    }
    let worst = held.iter().map(|held| held.slowdown).max();
    worst.unwrap_or(Slowdown::Excluded)
}
