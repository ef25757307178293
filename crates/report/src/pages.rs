//! Pages of `linerate bench` and `linerate show`: first the answer, then its figures, then the warnings.

mod advice;
mod analysis;
mod applied;
mod archive;
mod benchlab;
mod calculation;
mod comparisons;
mod conduct;
mod conformance;
mod counted;
mod difference;
mod explanation;
mod facts;
mod functions;
mod history;
mod imported;
mod kernel;
mod lab_check;
pub(crate) mod numbers;
mod plan;
mod reproduction;
mod results;
mod search_check;
mod sets;
pub mod site;
mod trials;
mod tuning;

use crate::document::Document;
use linerate_measure::record::{Campaign, HostFacts, LabKind, Summary, TrialRecord};

pub use crate::format::{Style, ascii};
pub use advice::advice;
pub use analysis::analysis;
pub use applied::{Applied, FileChange, Recommended, ValueChange, applied, reverted};
pub use archive::archive;
pub use benchlab::benchlab;
pub use calculation::calculation;
pub use comparisons::comparisons;
pub use conduct::{conduct, conducted, conducted_all};
pub use conformance::conformance;
pub use counted::{InterfaceCounts, Received, Sent, Totals, received, sent};
pub use difference::difference;
pub use explanation::explanation;
pub use facts::facts;
pub use functions::{function_changes, functions};
pub use history::history;
pub use kernel::{dropped, lock_waits, observed, stack_times};
pub use lab_check::{LabCheck, lab_check};
pub use numbers::together;
pub use plan::{diagnostics, estimate, estimate_line, plan, plan_line, plan_list, rehearsal};
pub use reproduction::reproduction;
pub use search_check::search_check;
pub use trials::trials;
pub use tuning::tuning;

/// The verdict of a campaign for a person to read.
pub fn summary(campaign: &Campaign, host: &HostFacts, summary: &Summary) -> Document {
    report(campaign, host, summary, &[])
}

/// The same with pictures of these trials.
pub fn report(campaign: &Campaign, host: &HostFacts, summary: &Summary, trials: &[TrialRecord]) -> Document {
    let planned = campaign.planned.as_ref();
    let title = planned.map_or(&campaign.name, |planned| &planned.experiment.title);
    let mut page = Document { title: Some(title.clone()), ..Document::default() };
    warn_of_simulation(&mut page, simulated(campaign));
    match (&campaign.imported, &campaign.planned) {
        (Some(origin), _) => imported::page(&mut page, campaign, origin, host, summary, trials),
        (None, Some(planned)) => {
            results::page(&mut page, &results::Shown { campaign, planned, host, summary, trials });
        }
        (None, None) => page.warn("This record has no plan, so it answers no question."),
    }
    page
}

/// Simulated figures say so, first and loudly.
fn warn_of_simulation(page: &mut Document, simulated: bool) {
    if simulated {
        page.warn(
            "SIMULATED: all figures below are of a simulated DUT inside linerate, NOT of this machine.",
        );
        page.gap();
    }
}

fn simulated(campaign: &Campaign) -> bool {
    campaign.asked.lab == LabKind::Simulated
}

#[cfg(test)]
mod tests;
