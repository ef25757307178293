//! How it was measured: lab, CPUs, frames, trials and machine.

use super::super::names::Names;
use super::super::numbers::grouped;
use super::super::setup::{machine, mode, roles, states};
use super::Shown;
use crate::document::Document;
use linerate_measure::strategy::by_name;
use linerate_plan::campaign::Campaign as Plan;
use linerate_plan::settings::Mode;

/// Levels of the traffic that are listed one by one at most.
const MOST: usize = 8;

/// The section.
pub fn measured(page: &mut Document, shown: &Shown<'_>) {
    page.heading("How it was measured");
    let (campaign, plan) = (shown.campaign, &shown.planned.plan);
    let arguments = "the arguments of `linerate bench`, whose --print-plan prints it";
    page.fact("plan", shown.planned.file.as_deref().unwrap_or(arguments));
    page.fact("mode", mode(campaign.asked.mode));
    if campaign.asked.mode != Mode::Hosts {
        page.fact("CPUs", &roles(campaign));
    }
    page.fact("traffic", &traffic(plan));
    page.fact("trials", &trials(shown));
    states(page, shown.summary, &Names::of(campaign));
    if campaign.asked.mode != Mode::Hosts {
        page.fact("host", &machine(shown.host));
    }
    for note in &campaign.notes {
        page.fact("note", note);
    }
    page.fact("figures", figures(campaign.asked.mode));
}

/// What the frames are, each of their properties once.
fn traffic(plan: &Plan) -> String {
    let each = |of: fn(&linerate_plan::campaign::Kind) -> String| {
        let mut all: Vec<String> = Vec::new();
        for text in plan.kinds.iter().map(of) {
            if !all.contains(&text) {
                all.push(text);
            }
        }
        let more = all.len().saturating_sub(MOST);
        all.truncate(MOST);
        if more > 0 {
            all.push(format!("{more} more"));
        }
        all.join(", ")
    };
    let size = each(|k| format!("{}{}", k.size, if k.size.pattern.len() == 1 { " B" } else { "" }));
    let flows = each(|k| grouped(k.flows.into()));
    let orders = each(|k| k.order.to_string());
    let (family, transport) = (each(|k| k.family.to_string()), each(|k| k.transport.to_string()));
    format!("{size}; {family}; {transport}; {flows} flows; {orders}")
}

fn trials(shown: &Shown<'_>) -> String {
    let asked = &shown.campaign.asked;
    let count: usize = shown.results.cells.iter().map(|c| c.trials).sum();
    let order = by_name(&shown.planned.plan.trials.order).about;
    format!(
        "{} of {} ms, {order}, seed {}, batches of {}, from {} to {} in {}",
        grouped(count as u64),
        asked.timing.run_ns / 1_000_000,
        asked.seed,
        asked.batch,
        asked.generator,
        asked.receiver,
        asked.lab,
    )
}

/// What the figures do not say.
fn figures(mode: Mode) -> &'static str {
    match mode {
        Mode::Inline => {
            "rates are medians of received frames/s; changes are medians of ratios paired by block, their intervals hold although they are looked at several times. The tester's own part is in all rates: between the DUTs alone the differences are larger."
        }
        Mode::Threaded | Mode::Hosts => {
            "rates are medians of received frames/s; changes are medians of ratios paired by block, their intervals hold although they are looked at several times."
        }
    }
}
