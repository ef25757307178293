//! What `linerate bench` and `linerate show` print: the answer first, then the figures it rests on, then what to beware of.

mod analysis;
mod answer;
mod archive;
mod benchlab;
mod comparisons;
mod conduct;
mod history;
mod imported;
mod lab_check;
mod names;
pub(crate) mod numbers;
mod plan;
mod reproduction;
mod results;
mod rules;
mod setup;
mod tables;
mod trials;

use crate::document::{Document, Tone};
use linerate_measure::record::{Campaign, HostFacts, LabKind, Summary};
use linerate_measure::summary::Row;
use names::Names;

pub use crate::format::{Style, ascii};
pub use analysis::analysis;
pub use archive::archive;
pub use benchlab::{benchlab, lab_line};
pub use comparisons::comparisons;
pub use conduct::{conduct, conducted, conducted_all};
pub use history::history;
pub use lab_check::{LabCheck, lab_check};
pub use plan::{diagnostics, plan, plan_line, plan_list, rehearsal};
pub use reproduction::reproduction;
pub use trials::trials;

/// The verdict of a campaign for a person to read.
pub fn summary(campaign: &Campaign, host: &HostFacts, summary: &Summary) -> Document {
    let names = Names::of(campaign);
    let mut page = Document::default();
    if let Some(origin) = &campaign.imported {
        imported::page(&mut page, campaign, origin, host, summary, &names);
        return page;
    }
    if simulated(campaign) {
        let loud =
            "SIMULATED: all figures below are of a simulated DUT inside linerate, NOT of this machine.";
        page.paragraph(loud, Tone::Warning);
        page.gap();
    }
    let planned = campaign.planned.as_ref().filter(|planned| planned.file.is_some());
    if let (Some(planned), Some(found)) = (planned, &summary.results) {
        results::page(&mut page, &results::Shown { campaign, planned, host, summary, results: found });
        return page;
    }
    answer::unmeasured(&mut page, summary, |slot| names.get(slot).into());
    page.paragraph(&answer::answer(campaign, summary), Tone::Strong);
    tables::rates(&mut page, campaign, summary, &names);
    tables::line_rates(&mut page, campaign, summary, &names);
    tables::comparisons(&mut page, campaign, summary, &names);
    tables::latency(&mut page, campaign, summary, &names);
    tables::losses(&mut page, summary, &names);
    rules::hottest(&mut page, campaign, summary, |slot| names.get(slot).to_string());
    setup::measured(&mut page, campaign, host, summary, &names);
    page.warnings(&summary.warnings);
    setup::next_steps(&mut page, campaign, host, summary);
    setup::stopped(&mut page, summary);
    page
}

fn simulated(campaign: &Campaign) -> bool {
    campaign.asked.lab == LabKind::Simulated
}

/// Whether a row has a rate at all: a trial can be valid, and still too short to have a window.
fn has_rate(row: &Row) -> bool {
    row.valid_trials > 0 && row.received.n > 0
}

#[cfg(test)]
mod tests;
