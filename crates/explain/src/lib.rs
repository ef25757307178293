//! Why a DUT forwards no more frames: rules look for known causes in the records of a campaign.
//!
//! A rule looks for one cause. It is data: how to look in a [`Case`], the records of one slot, and what a
//! [`Finding`] says. [`explain`] asks all of them.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod balance;
mod case;
mod difference;
mod extra;
mod on_path;
mod rules;
mod spent;
mod stages;

pub use balance::frames_by_place;
pub use case::{Case, Records};
pub use difference::{Difference, Locks, Part, difference};

use crate::rules::{Found, Rule};
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
        routers: stages::routers(case),
        balance: balance::balance(case),
        path: on_path::on_path(case),
        ..Explanation::default()
    };
    let mut claimed = Vec::new();
    for rule in rules::all() {
        let looked = rule.examine(case).map(Vec::from_iter);
        let known = looked.iter().flatten();
        claimed.extend(known.filter_map(|found| found.spent.clone()));
        enter(&mut found, case, rule, looked);
    }
    let mut extras = extra::look(case, &claimed);
    for rule in extra::rules() {
        let own = match &mut extras {
            Ok(all) => Ok(all.remove(rule.cause).unwrap_or_default()),
            Err(why) => Err(why.clone()),
        };
        enter(&mut found, case, rule, own);
    }
    let rank = |finding: &Finding| (finding.strength, finding.weight);
    found.findings.sort_by(|a, b| {
        let ((a, weight_a), (b, weight_b)) = (rank(a), rank(b));
        b.cmp(&a).then(weight_b.total_cmp(&weight_a))
    });
    found
}

/// Enters the result of looking for a rule's cause.
fn enter(
    explanation: &mut Explanation,
    case: &Case<'_>,
    rule: &Rule,
    looked: Result<Vec<Found>, String>,
) {
    let cause = rule.cause.to_string();
    match looked {
        Ok(found) if found.is_empty() => explanation.absent.push(cause),
        Ok(found) => {
            let findings = found.into_iter().map(|found| rule.finding(case, found));
            explanation.findings.extend(findings);
        }
        Err(reason) => explanation.not_examined.push(NotExamined { cause, reason }),
    }
}

/// Causes outside the DUT: where one is found, the rate of the slot is not the rate of its DUT alone.
pub const DOUBTS: [&str; 3] = ["tester-limit", "steal", "other-programs"];

/// Whether only the profile of plain forwarding, in the same campaign, shows a cause.
pub fn is_beside_plain(cause: &str) -> bool {
    extra::rules().any(|rule| rule.cause == cause)
}

/// The names of all causes that are looked for.
pub fn causes() -> impl Iterator<Item = &'static str> {
    rules::all().chain(extra::rules()).map(|rule| rule.cause)
}
