//! `--fail-if-slower`: variants that are proven slower, and variants that may be.

use crate::args::Share;
use crate::output::tell;
use std::process::ExitCode;

/// Exit status where something is slower than it may be, or an expectation of a plan was missed.
pub const MISSED: u8 = 3;

/// Exit status where nothing is known to be wrong, and the trials do not decide about all that was asked.
pub const UNDECIDED: u8 = 5;

/// Whether something is slower than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    No,
    Undecided,
    Slower,
}

impl Verdict {
    /// Of a slow-down that is proven, or not excluded.
    pub fn of(is_slower: bool, may_be_slower: bool) -> Verdict {
        match (is_slower, may_be_slower) {
            (true, _) => Verdict::Slower,
            (false, true) => Verdict::Undecided,
            (false, false) => Verdict::No,
        }
    }

    /// The exit status for scripts.
    pub fn status(self) -> ExitCode {
        match self {
            Verdict::No => ExitCode::SUCCESS,
            Verdict::Undecided => ExitCode::from(UNDECIDED),
            Verdict::Slower => ExitCode::from(MISSED),
        }
    }
}

/// A comparison, with its result against the limit.
pub struct Claim<'a> {
    pub of: &'a str,
    pub than: &'a str,
    /// Whether it is frames that are handled that count, because one of the two drops them.
    pub drops: bool,
    pub verdict: Verdict,
}

/// Reports each claim, and returns the worst verdict.
pub fn any_slower<'a>(Share(limit): Share, claims: impl Iterator<Item = Claim<'a>>) -> Verdict {
    let (percent, mut worst) = (100.0 * limit, Verdict::No);
    for Claim {
        of,
        than,
        drops,
        verdict,
    } in claims
    {
        let (verb, why) = if drops {
            ("passes less than", ": it drops frames")
        } else {
            ("is slower than", "")
        };
        worst = worst.max(verdict);
        match verdict {
            Verdict::No => {}
            Verdict::Undecided => tell(format!(
                "{of}: that it is {percent} % slower than {than} is not proven, and not excluded either: more trials would tell"
            )),
            Verdict::Slower => tell(format!("{of} {verb} {than} by {percent} % or more{why}")),
        }
    }
    worst
}
