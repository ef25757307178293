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
mod simulation;
pub mod site;
mod trials;
mod tuning;

use crate::prelude::*;
use linerate_measure::record::{Figures, Searched, SearchedGoal, SlotFacts};
use linerate_search::Irregular;
pub use simulation::{Unreal, unreal};
use simulation::{simulated, simulation, warn_of_simulation};

pub use crate::format::{Style, ascii};
pub use advice::advice;
pub use analysis::analysis;
pub use applied::{Applied, FileChange, Recommended, ValueChange, applied, reverted};
pub use archive::archive;
pub use benchlab::{benchlab, lab_line};
pub use calculation::calculation;
pub use comparisons::comparisons;
pub use conduct::{conduct, conducted, conducted_all};
pub use conformance::conformance;
pub use counted::{InterfaceCounts, Received, Sent, Totals, received, sent};
pub use difference::difference;
pub use explanation::{Extent, explanation};
pub use facts::facts;
pub use functions::{function_changes, functions};
pub use history::history;
pub use kernel::{dropped, lock_waits, observed, stack_times};
pub use lab_check::{LabCheck, lab_check};
pub use linerate_explain::Records;
pub use numbers::{counted, together};
pub use plan::{
    diagnostics, estimate, estimate_line, going_on, plan, plan_line, plan_list, rehearsal,
    too_short,
};
pub use reproduction::reproduction;
pub use results::stalls;
pub(crate) use results::{JUDGEMENTS, Shown, decisive};
pub use search_check::search_check;
pub use trials::trials;
pub use tuning::{tuned, tuning, tuning_report};

/// The verdict of a campaign for a person to read.
pub fn summary(campaign: &Campaign, host: &HostFacts, summary: &Summary) -> Document {
    configured(campaign, host, summary, &[])
}

/// The same, with the configuration of the DUTs.
pub fn configured(
    campaign: &Campaign,
    host: &HostFacts,
    summary: &Summary,
    facts: &[SlotFacts],
) -> Document {
    let stacks = &BTreeMap::new();
    report(&Records {
        campaign,
        host,
        summary,
        trials: &[],
        facts,
        stacks,
    })
}

/// The verdict on one screen: [`results::LINES`] lines of 80 columns. `records`: the folder of the campaign. `None`: the campaign has no
/// plan, as imported ones.
pub fn first(
    campaign: &Campaign,
    host: &HostFacts,
    summary: &Summary,
    facts: &[SlotFacts],
    records: &str,
) -> Option<Document> {
    let planned = campaign
        .planned
        .as_deref()
        .filter(|_| campaign.imported.is_none())?;
    let stacks = &BTreeMap::new();
    let own = Records {
        campaign,
        host,
        summary,
        trials: &[],
        facts,
        stacks,
    };
    let mut page = Document::default();
    simulation([unreal(campaign)])
        .into_iter()
        .for_each(|words| page.warn(words));
    Some(results::first(
        &page,
        &Shown {
            planned,
            records: own,
        },
        records,
    ))
}

/// The first result of a campaign, in a few words.
pub fn in_short(campaign: &Campaign, summary: &Summary) -> String {
    let name = |slot: usize| campaign.shortened(campaign.name_of(slot));
    if campaign.is_searched() {
        return searched_in_short(campaign, summary);
    }
    if let Some(found) = &summary.bisection {
        return results::bisection::in_short(campaign, found);
    }
    let is_dut = |slot: usize| {
        campaign
            .slots
            .get(slot)
            .is_some_and(|slot| !slot.is_calibration())
    };
    let rows = || summary.rows.iter().filter(|row| row.received.n > 0);
    let row = || rows().find(|row| is_dut(row.slot)).or(rows().next());
    let rate = || {
        row().map(|row| {
            format!(
                "{}: {}",
                name(row.slot),
                numbers::rate_of(campaign, row.received.median)
            )
        })
    };
    rate().unwrap_or("no figure".into())
}

/// The first result of a search or of RFC 2544's tests. The rates of its trials are at loads that it chose, and no result.
fn searched_in_short(campaign: &Campaign, summary: &Summary) -> String {
    let name = |slot: usize| campaign.shortened(campaign.name_of(slot));
    let goals = || {
        let first = |search: &Searched| {
            let given = |goal: &&SearchedGoal| goal.outcome.irregular != Some(Irregular::Unstable);
            let goal = search.goals.iter().find(given).or(search.goals.first())?;
            Some((search.slot, goal.clone()))
        };
        let tried = |s: &&Searched| !s.loads.is_empty() || s.stability.is_some();
        let tried = summary.searches.iter().filter(tried);
        tried.filter_map(first)
    };
    let found = goals().find_map(|(slot, goal)| Some((slot, goal.outcome.lower?, goal)));
    if let Some((slot, rate, goal)) = found {
        let open = when(goal.outcome.upper.is_none(), "at least ");
        let rate = numbers::rate_of(campaign, rate);
        return format!("{}: {} {open}{rate}", name(slot), campaign.sought(&goal));
    }
    if let Some((slot, goal)) = goals().next() {
        return format!("{}: no {}", name(slot), campaign.sought(&goal));
    }
    // Highest loads come last.
    let curves = summary.searches.iter();
    let mut curves = curves.filter_map(|search| {
        let at = search.loads.last()?;
        Some((search.slot, at.loss, at.load))
    });
    let mut tests = summary.benchmarks.iter().filter_map(|of| {
        let loads = of.tests.iter().find_map(|tested| match &tested.figures {
            Figures::FrameLoss(loads) => loads.first(),
            _ => None,
        })?;
        Some((
            of.slot,
            loads.lost as f64 / loads.sent.max(1) as f64,
            loads.load,
        ))
    });
    match curves.next().or_else(|| tests.next()) {
        Some((slot, loss, load)) => format!(
            "{}: {} % loss at {}",
            name(slot),
            percent(loss),
            numbers::rate_of(campaign, load)
        ),
        None => "no figure".into(),
    }
}

/// The verdict with pictures of the trials, and with all that somebody who was not there needs.
pub fn report(records: &Records<'_>) -> Document {
    let campaign = records.campaign;
    let planned = campaign.planned.as_ref();
    let title = planned.map_or(&campaign.name, |planned| &planned.experiment.title);
    let mut page = Document::titled(title.as_str());
    warn_of_simulation(&mut page, [unreal(campaign)]);
    match (&campaign.imported, &campaign.planned) {
        (Some(origin), _) => imported::page(&mut page, origin, records),
        (None, Some(planned)) => {
            results::page(
                &mut page,
                &Shown {
                    planned,
                    records: *records,
                },
            );
        }
        (None, None) => page.warn("This record has no plan, so it answers no question."),
    }
    page
}

/// Several campaigns on one page: their answers side by side, then each below its title.
pub fn reports(pages: Vec<(String, Document)>) -> Document {
    let mut all = Document::titled(format!("{} campaigns", pages.len()));
    let answer = |page: &Document| {
        let strong = page.flat().into_iter().find_map(|block| match block {
            Block::Text {
                text,
                tone: Tone::Strong,
            } => Some(text.clone()),
            _ => None,
        });
        strong.unwrap_or("no answer".into())
    };
    let simulated = |page: &Document| {
        matches!(
            page.blocks.first(),
            Some(Block::Text {
                tone: Tone::Warning,
                ..
            })
        )
    };
    all.table(
        Table::of(&pages)
            .column("campaign", "", |(_, page)| {
                page.title.clone().unwrap_or_default()
            })
            .column("answer", "", |(_, page)| answer(page))
            .column("begun", "", |(begun, _)| begun.as_str())
            .if_any("note", "", |(_, page)| {
                simulated(page).then_some("see its warning")
            }),
    );
    for (begun, mut page) in pages {
        let title = format!("{} ({begun})", page.title.as_deref().unwrap_or_default());
        simulation::name_campaign(&mut page);
        all.part(title, page);
    }
    all
}

#[cfg(test)]
mod tests;
