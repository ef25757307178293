//! Why a DUT forwards no more frames: rules look for known causes in the records of a campaign.
//!
//! A rule looks for one cause. It is data: how to look in a [`Case`], the records of one slot, and what a
//! [`Finding`] says. [`explain`] asks all of them.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod balance;
mod case;
mod difference;
mod rules;
mod stages;

pub use balance::frames_by_place;
pub use case::{Case, Records};
pub use difference::{Difference, Locks, Part, difference};

use linerate_measure::record::{Explanation, Finding, Mode, NotExamined};

/// Explains every slot with a DUT that has a valid trial. End hosts forward nothing.
pub fn explain(records: &Records<'_>) -> Vec<Explanation> {
    if records.campaign.asked.mode == Mode::EndHosts {
        return Vec::new();
    }
    records.cases().iter().map(of_case).collect()
}

fn of_case(case: &Case<'_>) -> Explanation {
    let mut found = Explanation {
        slot: case.slot.id,
        stages: stages::stages(case),
        balance: balance::balance(case),
        ..Explanation::default()
    };
    for rule in rules::all() {
        match rule.examine(case) {
            Ok(Some(finding)) => found.findings.push(finding),
            Ok(None) => found.absent.push(rule.cause.into()),
            Err(reason) => found.not_examined.push(NotExamined {
                cause: rule.cause.into(),
                reason,
            }),
        }
    }
    let rank = |finding: &Finding| (finding.strength, finding.weight);
    found.findings.sort_by(|a, b| {
        let ((a, weight_a), (b, weight_b)) = (rank(a), rank(b));
        b.cmp(&a).then(weight_b.total_cmp(&weight_a))
    });
    found
}

/// Causes outside the DUT: where one is found, the rate of the slot is not the rate of its DUT alone.
pub const DOUBTS: [&str; 3] = ["tester-limit", "steal", "other-programs"];

/// The names of all causes that are looked for.
pub fn causes() -> impl Iterator<Item = &'static str> {
    rules::all().map(|rule| rule.cause)
}
