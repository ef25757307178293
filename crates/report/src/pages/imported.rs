//! The page of an imported campaign: figures of others, as far as they can be checked.

use super::Records;
use super::results::has_rate;
use super::sets::{Set, Unit, drawn, pictures};
use crate::prelude::*;
use linerate_measure::record::{Imported, ImportedSlot, PrintedThroughput};
use linerate_stats::ministat::Dataset;

/// The fewest runs that ministat takes.
const ENOUGH_FOR_MINISTAT: usize = 3;
/// So many settings are listed.
const LISTED_SETTINGS: usize = 20;

/// The whole page.
pub fn page(page: &mut Document, origin: &Imported, records: &Records<'_>) {
    let Records {
        campaign,
        host,
        summary,
        trials,
        ..
    } = *records;
    page.warn("Imported, not audited by linerate.");
    page.gap();
    let known =
        !trials.is_empty() || !origin.equilibria.is_empty() || !origin.throughputs.is_empty();
    let sets = if known {
        Set::all(campaign, summary, trials)
    } else {
        Vec::new()
    };
    answer(origin, campaign, summary)
        .into_iter()
        .for_each(|sentence| page.answer(sentence));
    let topic = origin.topic.as_deref().unwrap_or_default();
    let title = [topic, origin.label.as_deref().unwrap_or_default()].join(" ");
    let charts = pictures(title.trim(), topic, &sets);
    let (shown, all) = (
        drawn(&charts),
        sets.iter().filter(|set| set.counts()).count(),
    );
    charts.into_iter().for_each(|chart| page.chart(chart));
    if shown > 0 && shown < all {
        page.note(format!(
            "The picture has room for {shown} of {all} sets: the table has all."
        ));
    }
    if !summary.rows.is_empty() {
        page.table(rates(campaign, summary, &sets));
        if sets.iter().any(|set| set.samples) {
            page.note("Each of these runs is one sample of a run: samples are not independent, and have no interval.");
        }
    }
    ministat(page, &sets);
    let disagree = campaign
        .slots
        .iter()
        .filter_map(|s| Some((s.id, s.imported.as_ref()?.disagreement.as_ref()?)));
    let told = disagree.map(|(slot, why)| format!("{}: {why}", campaign.name_of(slot)));
    page.entries("Sets that disagree with what was published", told);
    for table in origin
        .series
        .iter()
        .filter(|table| !table.problems.is_empty())
    {
        let name = table.file.rsplit('/').next().unwrap_or_default();
        page.note(format!(
            "Published table {name}: {}.",
            table.problems.join("; ")
        ));
    }
    settings(page, campaign);
    page.section("Equilibrium throughput, Ethernet", equilibria(origin));
    printed(page, origin);
    where_from(page, campaign, origin, host);
    let name =
        |slot: Option<usize>| slot.map_or(String::new(), |s| format!("{}: ", campaign.name_of(s)));
    page.warnings(
        summary
            .warnings
            .iter()
            .map(|w| format!("{}{}", name(w.slot), w.text)),
    );
}

/// The runs of the sets of each IP version as ministat(1) prints them, to copy.
fn ministat(page: &mut Document, sets: &[Set]) {
    let mut families: Vec<&str> = sets.iter().map(|set| set.family.as_str()).collect();
    families.sort_unstable();
    families.dedup();
    for family in families {
        let sets = sets.iter().filter(|set| {
            set.family == family && set.counts() && set.unit == Unit::Frames && !set.samples
        });
        let sets = sets.filter(|set| set.runs.len() >= ENOUGH_FOR_MINISTAT);
        let sets: Vec<Dataset> = sets
            .map(|set| Dataset::new(&set.name, set.runs.clone()))
            .collect();
        if sets.len() > 1 {
            super::results::ministat_blocks(page, family, &sets);
        }
    }
}

/// The fastest and the slowest set, in a sentence; runs under a profiler, which are slower, in another.
fn answer(origin: &Imported, campaign: &Campaign, summary: &Summary) -> Vec<String> {
    let profiled = |row: &Row| {
        let slot = campaign
            .slots
            .get(row.slot)
            .and_then(|slot| slot.imported.as_deref());
        slot.is_some_and(|slot| slot.profiling)
    };
    let who = origin.machine.as_deref().unwrap_or("The DUT");
    let with = origin
        .card
        .as_deref()
        .map_or(String::new(), |c| format!(" with {c}"));
    let rate = |row: &Row| format!("{} a second ({})", words(row.received.median, 3), row.name);
    let ends = |wanted: bool| {
        let rows = || {
            summary
                .rows
                .iter()
                .filter(|r| has_rate(r) && profiled(r) == wanted)
        };
        let by_rate = |a: &&Row, b: &&Row| a.received.median.total_cmp(&b.received.median);
        let (least, greatest) = (rows().min_by(by_rate)?, rows().max_by(by_rate)?);
        Some(match rows().count() {
            1 => rate(least),
            _ => format!("from {} to {}", rate(least), rate(greatest)),
        })
    };
    let mut said = Vec::new();
    said.extend(ends(false).map(|ends| format!("{who}{with} forwarded {ends}.")));
    let beside = ends(true).map(|ends| {
        if said.is_empty() {
            format!("{who}{with} forwarded {ends}; a profiler ran beside all runs.")
        } else {
            format!("Left out: runs beside a profiler, which is work for the DUT: {ends}.")
        }
    });
    said.extend(beside);
    if !origin.equilibria.is_empty() && said.is_empty() {
        said.push(format!(
            "{who}{with}: searches for an equilibrium throughput."
        ));
    }
    said.extend(origin.throughputs.iter().map(|found| {
        let median = significant(Set::of_throughput(found).rate.median, 4);
        let unit = if found.unit.is_empty() {
            "(the file names no unit)"
        } else {
            "Mbit/s of payload"
        };
        let profiler = when(found.profiling, ", beside a profiler");
        let of = counted(found.values.len(), "figure");
        format!("{}: {median} {unit}, median of {of}{profiler}.", found.name)
    }));
    if said.is_empty() {
        said.push("No run has a figure.".into());
    }
    said
}

fn rates<'a>(campaign: &Campaign, summary: &'a Summary, sets: &[Set]) -> Rows<&'a Row> {
    let has_interval = |row: &Row| !sets.iter().any(|set| set.samples && set.name == row.name);
    let rates = summary
        .rows
        .iter()
        .filter(|r| has_rate(r))
        .map(|r| r.received.median.max(r.offered));
    let RateUnit { scale, name: unit } = RateUnit::of(rates);
    let figures = |r: &&Row| digits(&r.received).clamp(4, 5);
    let rate = |r: &&Row, fps: f64| number(fps / scale, figures(r));
    Table::of(&summary.rows)
        .column("", "frame lengths with FCS", |r| r.name.as_str())
        .column("offered", unit, |r| {
            // Only logs have it.
            let imported = campaign
                .slots
                .get(r.slot)
                .and_then(|slot| slot.imported.as_deref());
            let logged = imported.is_none_or(|of| agreement(of) != Some(NO_LOGS));
            (logged && r.offered > 0.0).then(|| rate(r, r.offered))
        })
        .column("received", unit, |r| {
            has_rate(r).then(|| rate(r, r.received.median))
        })
        .if_any("95 %", "interval", |r| {
            has_interval(r).then(|| rate_interval(&r.received, scale, figures(r)))
        })
        .column("runs with", "a figure", |r| {
            format!("{}/{}", r.valid_trials, r.trials)
        })
        .column("as", "published", |r| {
            agreement(campaign.slots.get(r.slot)?.imported.as_deref()?)
        })
}

/// Of a set whose medians alone were published.
const NO_LOGS: &str = "no logs";

fn agreement(slot: &ImportedSlot) -> Option<&'static str> {
    match slot.agrees {
        Some(true) => Some("yes"),
        Some(false) => Some("NO"),
        None => slot.published.is_some().then_some(NO_LOGS),
    }
}

/// Settings that differ between the sets.
fn settings(page: &mut Document, campaign: &Campaign) {
    let slots = campaign
        .slots
        .iter()
        .filter_map(|s| Some((s.variant.as_str(), s.imported.as_deref()?)));
    let described: Vec<(&str, &ImportedSlot)> =
        slots.filter(|(_, s)| !s.description.is_empty()).collect();
    let mut by_setting: BTreeMap<(&str, &str), BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for (variant, slot) in &described {
        for (file, settings) in &slot.description {
            for setting in settings.iter().filter(|s| !s.name.is_empty()) {
                let values = by_setting.entry((file, &setting.name)).or_default();
                values.entry(&setting.value).or_default().push(variant);
            }
        }
    }
    // A setting that all sets share explains nothing.
    by_setting.retain(|_, values| {
        values.len() > 1 || values.values().any(|sets| sets.len() < described.len())
    });
    if by_setting.is_empty() {
        return;
    }
    page.heading("Settings that differ");
    let told = by_setting.iter().map(|((file, name), values)| {
        let values = values
            .iter()
            .map(|(value, variants)| format!("{value} ({})", variants.join(", ")));
        format!("{file}: {name}={}", values.joined("; "))
    });
    page.items(
        "- ",
        told,
        Tone::Plain,
        (LISTED_SETTINGS, "; campaign.json has them all"),
    );
}

fn equilibria(origin: &Imported) -> Table {
    let list = |values: &[f64]| match values.len() {
        0 => None,
        1..=10 => Some(values.iter().map(f64::to_string).joined(" ")),
        n => Some(format!("{n} values")),
    };
    Table::of(&origin.equilibria)
        .column("", "", |set| set.name.as_str())
        .column("Mb/s", "by search", |set| {
            list(
                &set.runs
                    .iter()
                    .filter_map(|r| r.estimate)
                    .collect::<Vec<_>>(),
            )
        })
        .column("Mb/s", "published", |set| {
            list(&set.published.as_ref()?.values)
        })
        .into()
}

/// Throughput as other tools printed it.
fn printed(page: &mut Document, origin: &Imported) {
    page.section("Throughput", throughputs(origin));
    let each = |found: &PrintedThroughput| {
        format!(
            "{}: each figure is {} ({})",
            found.name, found.method, found.file
        )
    };
    page.items(
        "- ",
        origin.throughputs.iter().map(each),
        Tone::Note,
        (LISTED_SETTINGS, "; campaign.json has them all"),
    );
    let problems = origin.throughputs.iter().flat_map(|found| &found.problems);
    page.warnings(problems.map(String::as_str));
}

fn throughputs(origin: &Imported) -> Table {
    let end = |found: &PrintedThroughput, end: fn(f64, f64) -> f64| {
        found
            .values
            .iter()
            .copied()
            .reduce(end)
            .map(|value| number(value, 4))
    };
    let rows = origin
        .throughputs
        .iter()
        .map(|found| (found, Set::of_throughput(found).rate));
    Table::of(rows)
        .column("", "", |(found, _)| found.name.as_str())
        .column("median", "", |(_, rate)| number(rate.median, 4))
        .if_any("95 %", "interval", |(_, rate)| {
            rate.low.is_some().then(|| rate_interval(rate, 1.0, 4))
        })
        .column("least", "", |(found, _)| end(found, f64::min))
        .column("greatest", "", |(found, _)| end(found, f64::max))
        .column("unit", "", |(found, _)| {
            if found.unit.is_empty() {
                "not named"
            } else {
                &found.unit
            }
        })
        .column("figures", "", |(found, _)| count(found.values.len() as u64))
        .into()
}

fn where_from(page: &mut Document, campaign: &Campaign, origin: &Imported, host: &HostFacts) {
    page.heading("Where it comes from");
    let command = |slot: &Slot| slot.imported.as_ref()?.facts.get("sender.command").cloned();
    let flows = match campaign.asked.flows as f64 {
        0.0 => String::new(),
        flows => words(flows, 3),
    };
    for (name, text) in [
        ("source", format!("{}, {}", origin.source, origin.path)),
        ("method", origin.method.clone()),
        ("began", campaign.started.clone()),
        ("machine", host.cpu_model.clone()),
        ("card", origin.card.clone().unwrap_or_default()),
        ("topic", origin.topic.clone().unwrap_or_default()),
        ("system", host.kernel.clone()),
        (
            "traffic",
            campaign.slots.iter().find_map(command).unwrap_or_default(),
        ),
        ("flows", flows),
    ] {
        page.fact(name, text);
    }
    for (name, text) in origin
        .throughputs
        .first()
        .iter()
        .flat_map(|found| &found.facts)
    {
        page.fact(name, text.as_str());
    }
}
