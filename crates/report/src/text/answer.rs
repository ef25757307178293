//! The answer in a sentence or two: how much this DUT forwards, and what kept it from more.

use super::names::{listed, together};
use super::numbers::{counted, digits, in_words, interval, percent, time, words};
use super::{has_rate, simulated};
use crate::document::{Document, Tone};
use linerate_measure::record::{Campaign, LabKind, Slot, Summary};
use linerate_measure::summary::{Limit, Row};
use linerate_plan::settings::Mode;

/// The answer. It is about the first slot with a DUT that has a rate, or the tester alone where there is no DUT.
pub fn answer(campaign: &Campaign, summary: &Summary) -> String {
    let rows = || summary.rows.iter().filter_map(|r| Some((r, campaign.slots.get(r.slot)?)));
    let with_dut = rows().any(|(_, s)| !s.is_calibration());
    let main = rows().find(|(r, s)| has_rate(r) && s.is_calibration() != with_dut);
    match main {
        Some((row, slot)) => {
            format!("{} {}", what(campaign, row, slot), why(summary, row, slot)).trim_end().into()
        }
        None => nothing(summary),
    }
}

fn nothing(summary: &Summary) -> String {
    match summary.rows.iter().map(|r| r.trials).sum() {
        0usize => "No valid trial, so no figure: nothing was run.".into(),
        _ => "No valid trial of a DUT, so no figure.".into(),
    }
}

/// What could not be measured, and why, each reason once.
pub fn unmeasured(page: &mut Document, summary: &Summary, name: impl Fn(usize) -> String) {
    let reasons = together(summary.unmeasured.iter().map(|u| (u.why.as_str(), name(u.slot))));
    for (why, names) in reasons {
        page.paragraph(&format!("{} {why}.", listed(&names)), Tone::Warning);
    }
}

fn what(campaign: &Campaign, row: &Row, slot: &Slot) -> String {
    let digits = digits(&row.received);
    let (scale, unit) = in_words(row.received.median);
    let certainty = match interval(&row.received, scale, digits) {
        Some(interval) => format!("95 % interval {interval}{unit}"),
        None => format!("{}, too few for an interval", counted(row.valid_trials, "valid trial")),
    };
    format!(
        "{} {} {} a second {} ({certainty}){}{}.",
        who(campaign, slot),
        words(row.received.median, digits),
        frames(slot),
        cpus(campaign),
        cost(campaign, row, slot),
        lost(row),
    )
}

fn who(campaign: &Campaign, slot: &Slot) -> String {
    let variant = slot.variant.as_str();
    match variant {
        _ if slot.is_calibration() => "The tester alone, without a DUT, passes".into(),
        _ if simulated(campaign) => format!("The simulated DUT ({variant}) passes"),
        _ if variant.starts_with("known-") => format!("The DUT with a known answer ({variant}) passes"),
        _ if campaign.asked.lab != LabKind::Namespaces => format!("The DUT ({variant}) forwards"),
        "forwarding" => "This machine's kernel forwards".into(),
        "bridge" => "This machine's kernel bridges".into(),
        "xdp" => "An XDP program on this machine forwards".into(),
        _ => format!("This machine's kernel, with {variant}, forwards"),
    }
}

fn frames(slot: &Slot) -> String {
    match slot.lengths_fcs[..] {
        [length] => format!("{length}-byte {} frames", slot.family),
        _ => format!(
            "{} frames of {} ({:.1} bytes on average)",
            slot.family,
            slot.frame,
            slot.average_len_fcs()
        ),
    }
}

fn cpus(campaign: &Campaign) -> String {
    let roles = &campaign.roles;
    let cpus = if campaign.asked.mode == Mode::Inline { roles.generator.len() } else { roles.dut.len() };
    match cpus {
        1 => "on one CPU".into(),
        n => format!("on {n} CPUs"),
    }
}

/// Only where the load is what the DUT takes is the time between frames the cost of a frame.
fn cost(campaign: &Campaign, row: &Row, slot: &Slot) -> String {
    if campaign.asked.mode != Mode::Inline || slot.asked_fps.is_some() || row.ns_per_frame <= 0.0 {
        return String::new();
    }
    let whole = time(row.ns_per_frame);
    let each = if campaign.roles.generator.len() > 1 { " and CPU" } else { "" };
    match row.dut_ns_per_frame {
        Some(dut) => {
            let own = time((row.ns_per_frame - dut).max(0.0));
            format!(", {whole} per frame{each}; the tester itself takes {own}")
        }
        None => format!(", {whole} per frame{each}"),
    }
}

fn lost(row: &Row) -> String {
    if row.loss_ratio <= 0.0 {
        return String::new();
    }
    format!(
        ", of {} offered; {} % of the sent frames are lost",
        words(row.offered, 3),
        percent(row.loss_ratio)
    )
}

fn why(summary: &Summary, row: &Row, slot: &Slot) -> String {
    let ceiling =
        slot.ceiling.and_then(|c| summary.rows.iter().find(|r| r.slot == c)).filter(|r| has_rate(r));
    let alone = ceiling.map(|c| words(c.received.median, 3));
    match (row.limit, alone) {
        (Limit::Dut, Some(alone)) => format!("The DUT was the limit: the tester alone does {alone}."),
        (Limit::Dut, None) => "The DUT was the limit.".into(),
        (Limit::DutDrops, _) => format!(
            "The DUT drops {} % of what it takes in: the rate says how many frames pass, not what one costs.",
            percent(row.dropped)
        ),
        (Limit::Tester, Some(alone)) => {
            format!(
                "The tester, which does {alone} alone, was too close to its own limit: the DUT may be faster."
            )
        }
        (Limit::Tester, None) => "What the tester does alone is not known: the DUT may be faster.".into(),
        (Limit::OfferedLoad, _) => {
            let asked = slot.asked_fps.map_or_else(|| "asked for".into(), |fps| words(fps, 3));
            format!("More was not offered: {asked} frames a second were asked for.")
        }
        (Limit::Calibration | Limit::Unknown, _) => String::new(),
    }
}
