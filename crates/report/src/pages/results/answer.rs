//! The answer in a few sentences: the rate of this DUT and its limit, the differences with their sizes, and whether they were
//! expected.

use super::super::explanation::{NO_CEILING, NOISY};
use super::super::numbers::words as rate_words;
use super::super::simulated;
use super::compared::{compared, named};
use super::tables::{JUDGEMENTS, judged};
use super::{Shown, end_hosts, flood, has_rate};
use crate::prelude::*;
use linerate_measure::audit::ceiling_is_clear;
use linerate_measure::record::{Compared, Http};
use linerate_measure::summary::maybe_faster;
use linerate_wire::{ConnectionSpec, Exchange, NUMBERED};

/// Most comparisons in the answer. The tables have the others.
const MOST: usize = 8;

/// Wider intervals are no basis for a claim, unless the plan sets another limit.
const NARROW: f64 = 0.02;

/// Variants that were asked for and are not there.
pub fn missing(shown: &Shown<'_>) -> Vec<String> {
    let missing = shown.campaign.missing();
    let told = together(
        missing
            .iter()
            .map(|(variant, reasons)| (reasons, variant.clone())),
    );
    let told = told.iter().map(|(why, names)| {
        format!(
            "Not measured, although it was asked for: {}: {}.",
            listed(names),
            why.join("; ")
        )
    });
    told.collect()
}

/// The cells without a figure, with the reasons.
pub fn unmeasured(shown: &Shown<'_>) -> Vec<String> {
    let unmeasured = shown
        .summary
        .unmeasured
        .iter()
        .map(|u| (u.why.as_str(), shown.name(u.slot)));
    together(unmeasured)
        .iter()
        .map(
            |(why, names)| match why.strip_prefix("has ").filter(|_| names.len() > 1) {
                Some(rest) => format!("{} have {rest}.", listed(names)),
                None => format!("{} {why}.", listed(names)),
            },
        )
        .collect()
}

/// The cells that are not there, besides those of missing variants.
pub fn skipped(page: &mut Document, shown: &Shown<'_>) {
    let missing = shown.campaign.missing();
    let named = |cell: usize| {
        missing
            .iter()
            .any(|(variant, _)| shown.campaign.slots[cell].plan_variant == *variant)
    };
    let skipped = shown
        .planned
        .skipped
        .iter()
        .filter(|s| s.cell < shown.campaign.slots.len() && !named(s.cell));
    let skipped: Vec<String> = skipped.map(|s| shown.name(s.cell)).collect();
    if !skipped.is_empty() {
        page.say(format!(
            "Not measured here, for the reasons below: {}.",
            listed(&skipped)
        ));
    }
}

/// The sentences.
pub fn answer(page: &mut Document, shown: &Shown<'_>) {
    unmeasured(shown)
        .into_iter()
        .for_each(|text| page.warn(text));
    if shown.is_of_end_hosts() {
        end_hosts::answer(page, shown)
    } else {
        page.answer(rate(shown) + &limited(shown))
    }
    let mut compared = compared(shown).into_iter();
    compared
        .by_ref()
        .take(MOST)
        .for_each(|sentence| page.answer(sentence));
    match compared.count() {
        0 => {}
        more => page.say(format!("{more} more comparisons are in the tables.")),
    }
    open(shown)
        .into_iter()
        .for_each(|sentence| page.answer(sentence));
    tally(page, shown);
    quick(page, shown);
}

/// How many comparisons are open.
pub fn open(shown: &Shown<'_>) -> Option<String> {
    let open = |c: &&Compared| c.against.ratio.is_some_and(|r| r.low.is_none());
    let all = shown.summary.comparisons.iter();
    let open: Vec<&Compared> = all.filter(open).collect();
    // A row has one change, a cell may be compared with several; floods have a table of their own.
    let flooded = flood::has_rows(shown);
    let in_table = |c: &&&Compared| {
        let baseline = shown.row(c.of).and_then(|row| row.baseline);
        flooded || baseline.is_some_and(|baseline| baseline.than == c.against.than)
    };
    let beside: Vec<&&Compared> = open.iter().filter(|c| !in_table(c)).collect();
    let mut comparisons = counted(open.len(), "comparison");
    if let ([first, ..], true) = (&beside[..], beside.len() < open.len()) {
        let [of, than] = [first.of, first.against.than].map(|cell| shown.name(cell));
        comparisons += &match beside.len() {
            1 => format!(" (one is not in the column change: {of} against {than})"),
            n => format!(" ({n} are not in the column change, such as {of} against {than})"),
        };
    }
    (!open.is_empty()).then(|| match shown.summary.stopped {
        Stopped::Interrupted => {
            format!("Interrupted too early for {comparisons}: `linerate run --resume DIR` goes on.")
        }
        Stopped::Trials if shown.planned.file.is_some() => {
            format!("Too few trials for {comparisons}: raise `blocks` in the plan.")
        }
        Stopped::Trials => format!("Too few trials for {comparisons}: raise --trials."),
        _ => format!("Too short for {comparisons}: use a longer --budget."),
    })
}

/// The first slot with a DUT that has a rate, or the tester without a DUT.
fn first<'a>(shown: &Shown<'a>) -> Option<(&'a Row, &'a Slot)> {
    let rows = || shown.rows().filter_map(|r| Some((r, shown.slot(r.slot)?)));
    let with_dut = rows().any(|(_, s)| !s.is_calibration());
    rows().find(|(r, s)| has_rate(r) && s.is_calibration() != with_dut)
}

/// The rate of the first slot.
pub fn rate(shown: &Shown<'_>) -> String {
    match first(shown) {
        Some((row, slot)) => levels(shown, slot) + &what(shown, row, slot),
        None if shown.rows().all(|row| row.trials == 0) => {
            "No trial was run, so there is no figure.".into()
        }
        None => "No valid trial of a DUT, so no figure.".into(),
    }
}

/// The sentence behind it: the limit of that rate.
fn limited(shown: &Shown<'_>) -> String {
    let why = first(shown).map_or(String::new(), |(row, slot)| why(shown, row, slot));
    when(!why.is_empty(), format!(" {why}"))
}

/// The levels that neither variant nor frames show: `cores 1: `.
fn levels(shown: &Shown<'_>, slot: &Slot) -> String {
    let levels = named(shown, slot, |_, factor| !factor.of_frames());
    when(!levels.is_empty(), levels + ": ")
}

fn what(shown: &Shown<'_>, row: &Row, slot: &Slot) -> String {
    let lost = match row.loss_ratio {
        lost if lost > 0.0 => {
            let offered = rate_words(row.offered, 3);
            match slot.connections() {
                None if slot.http.is_some() => {
                    format!("; {} % of {offered} made a second fail", percent(lost))
                }
                None => format!(". Of {offered} offered, {} % are lost", percent(lost)),
                Some(_) => format!(
                    "; {} % of the whole load's connections fail, of {offered} attempted a second",
                    percent(lost)
                ),
            }
        }
        _ if slot.asked_fps.is_some() => ", all that were offered".into(),
        _ => String::new(),
    };
    let cpus = match dut_cpus(shown, slot) {
        0 => String::new(),
        1 => " on one CPU".into(),
        n => format!(" on {n} CPUs"),
    };
    if row.received.median == 0.0 {
        let (who, spoiled) = (who(shown, slot), shown.spoiled(row.slot, ["; ", ""]));
        let (offered, certain) = (rate_words(row.offered, 3), certainty(&row.received));
        return format!(
            "{who} no frame: it drops all of {offered} {} a second that are offered{cpus} ({certain}{spoiled}).",
            frames(slot)
        );
    }
    format!(
        "{} {} {} a second{}{cpus} ({}{}){}{lost}.",
        who(shown, slot),
        rate_words(row.received.median, digits(&row.received)),
        frames(slot),
        when(
            slot.direction == Direction::Both,
            ", both directions together,"
        ),
        certainty(&row.received),
        shown.spoiled(row.slot, ["; ", ""]),
        cost(shown, row, slot),
    )
}

fn who(shown: &Shown<'_>, slot: &Slot) -> String {
    let variant = slot.plan_variant.as_str();
    let (who, does) = match variant {
        _ if slot.is_calibration() => ("The tester alone, without a DUT,".into(), "passes"),
        _ if simulated(shown.campaign) => (format!("The simulated DUT ({variant})"), "passes"),
        _ if variant.starts_with("known-") => {
            (format!("The DUT with a known answer ({variant})"), "passes")
        }
        _ if shown.campaign.asked.lab != LabKind::Namespaces => {
            (format!("The DUT ({variant})"), "forwards")
        }
        // The name of its cell, or of its factor's level, says which kernel.
        "forwarding" if shown.campaign.asked.guests.is_some() => {
            ("The guest's kernel".into(), "forwards")
        }
        _ if shown.campaign.asked.guests.is_some() => {
            (format!("The guest's kernel, with {variant},"), "forwards")
        }
        "forwarding" => ("This machine's kernel".into(), "forwards"),
        "bridge" => ("This machine's kernel".into(), "bridges"),
        "xdp" => ("An XDP program on this machine".into(), "forwards"),
        _ => (
            format!("This machine's kernel, with {variant},"),
            "forwards",
        ),
    };
    if slot.http.is_some() && !slot.is_calibration() {
        // Most of the time may be that of the programs.
        let dut = who[..1].to_lowercase() + who[1..].trim_end_matches(',');
        return format!("Through {dut}, wrk and nginx exchange");
    }
    let does = match slot.connections() {
        Some(spec) if spec.close.is_some() => "closes",
        Some(_) => "carries",
        None if slot.http.is_some() => "carries",
        None => does,
    };
    format!("{who} {does}")
}

fn frames(slot: &Slot) -> String {
    if let Some(of) = slot.http {
        let on = match of.http {
            Http::Close => "each on a connection of its own",
            Http::KeepAlive => "on connections that stay open",
        };
        return format!("HTTP requests ({} B, {on})", grouped(of.object));
    }
    if let Some(ConnectionSpec {
        exchange,
        object,
        close,
        ..
    }) = slot.connections()
    {
        let family = &slot.family;
        let kind = match exchange {
            Exchange::Udp => format!("{family} UDP requests with answers"),
            Exchange::Half => format!("half-open {family} connections"),
            _ if close.is_some() => format!("{family} connections"),
            Exchange::Request | Exchange::Greeting | Exchange::Rst => {
                format!("new {family} connections")
            }
        };
        return if *object > NUMBERED {
            format!("{kind} with {object}-byte objects")
        } else {
            kind
        };
    }
    let Slot {
        family,
        frame,
        lengths_fcs,
        ..
    } = slot;
    match lengths_fcs[..] {
        [length] => format!("{length}-byte {family} frames"),
        _ => format!(
            "{family} frames of {frame} ({:.1} bytes on average)",
            slot.average_len_fcs()
        ),
    }
}

/// The CPUs that the DUT works on; inline, these are the generator's. A simulated DUT has none.
fn dut_cpus(shown: &Shown<'_>, slot: &Slot) -> usize {
    if simulated(shown.campaign) {
        return 0;
    }
    let roles = &shown.campaign.roles;
    match shown.campaign.asked.mode {
        Mode::Inline => slot.cpus.as_ref().unwrap_or(&roles.generator).len(),
        Mode::Threaded | Mode::Hosts | Mode::EndHosts => roles.dut.len(),
    }
}

/// Cost of a frame. The time between frames is that cost only if the DUT alone sets the rate.
fn cost(shown: &Shown<'_>, row: &Row, slot: &Slot) -> String {
    if shown.campaign.asked.mode != Mode::Inline
        || slot.asked_fps.is_some()
        || row.ns_per_frame <= 0.0
    {
        return String::new();
    }
    let each = when(dut_cpus(shown, slot) > 1, " and CPU");
    let dut = row.dut_ns_per_frame.filter(|dut| *dut > 0.0);
    let own = dut.map_or(String::new(), |dut| {
        format!(
            ", of which the tester takes {}",
            time((row.ns_per_frame - dut).max(0.0))
        )
    });
    format!(
        ", {} per {}{each}{own}",
        time(row.ns_per_frame),
        shown.noun()
    )
}

/// The limit of a rate, in a sentence.
pub fn why(shown: &Shown<'_>, row: &Row, slot: &Slot) -> String {
    let ceiling = slot
        .ceiling
        .and_then(|c| shown.row(c))
        .filter(|r| has_rate(r));
    let noun = shown.noun();
    let alone = ceiling.map(|c| format!("{} {noun}s/s", rate_words(c.received.median, 3)));
    let searched = !shown.summary.searches.is_empty();
    if let (Limit::Tester, false, Some(why)) =
        (row.limit, searched, maybe_faster(row, slot, shown.campaign))
    {
        return format!("The DUT may be faster: {why}.");
    }
    let clear = ceiling.is_some_and(|c| {
        !simulated(shown.campaign) && ceiling_is_clear(c.received.median, row.handled.median)
    });
    match (row.limit, alone) {
        (Limit::Dut, Some(_)) if !clear && row.overload() > 0.0 => {
            let lost = percent(row.overload());
            format!("The DUT was the limit: {lost} % of the load found its queues full.")
        }
        (Limit::Dut, Some(alone)) => {
            format!("The DUT was the limit: the tester alone does {alone}.")
        }
        (Limit::Dut, None) => "The DUT was the limit.".into(),
        (Limit::DutDrops, _) => {
            let dropped = percent(row.dropped);
            if let Some(spec) = slot.connections() {
                let counted = match (spec.open, spec.close) {
                    (Some(_), None) => "open",
                    _ => "close",
                };
                return format!(
                    "{dropped} % of the connections fail at the DUT: the rate counts those that {counted}."
                );
            }
            if slot.http.is_some() {
                return format!(
                    "{dropped} % of the requests fail: the rate counts those that are answered."
                );
            }
            format!(
                "The DUT does not forward {dropped} % of the frames that it takes in: the rate counts the frames that pass, and does not show the cost of a frame."
            )
        }
        (Limit::Tester, Some(alone)) => {
            format!("The tester, which does {alone} alone, was the limit: the DUT may be faster.")
        }
        (Limit::Tester, None) => NO_CEILING.into(),
        (Limit::Noisy, _) => NOISY.into(),
        (Limit::OfferedLoad, _) => {
            let asked = slot
                .asked_fps
                .map_or_else(|| "asked for".into(), |fps| rate_words(fps, 3));
            format!(
                "The offered load was the limit: {asked} {}s a second were asked for.",
                shown.noun()
            )
        }
        (Limit::Path, _) => "The path was the limit: TCP fills it.".into(),
        (Limit::Calibration | Limit::Unknown, _) => String::new(),
    }
}

/// How many expectations came true.
pub fn tallied(shown: &Shown<'_>) -> Option<String> {
    let counts = JUDGEMENTS.map(|(judgement, _)| {
        let all = shown.summary.expectations.iter();
        (
            all.filter(|e| e.judgement == judgement).count(),
            judged(judgement),
        )
    });
    let known = counts.into_iter().filter(|(n, _)| *n > 0);
    let told = known.map(|(n, name)| format!("{n} {name}")).joined(", ");
    Some(told).filter(|told| !told.is_empty())
}

fn tally(page: &mut Document, shown: &Shown<'_>) {
    if let Some(told) = tallied(shown) {
        let mut all = shown.summary.expectations.iter();
        let missed = all.any(|e| e.judgement == Some(Judgement::Missed));
        let tone = if missed { Tone::Warning } else { Tone::Plain };
        page.paragraph(format!("What the plan's author expects: {told}."), tone);
    }
}

/// How far the results of the quick form can be trusted.
fn quick(page: &mut Document, shown: &Shown<'_>) {
    let experiment = &shown.planned.experiment;
    if !experiment.quick {
        return;
    }
    let wide = experiment.trials.until.unwrap_or(NARROW);
    let known: Vec<Estimate> = shown
        .summary
        .comparisons
        .iter()
        .filter_map(|c| c.against.ratio)
        .collect();
    let open = known.iter().filter(|r| r.relative_width() >= wide).count();
    let claim = when(
        open > 0,
        format!(
            " The 95 % intervals of {open} of its {} comparisons span {} % or more: take the results for a first look, and quote none.",
            known.len(),
            100.0 * wide
        ),
    );
    page.warn(format!(
        "This is the quick form: short trials and few of them.{claim}"
    ));
}
