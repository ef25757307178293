//! The page of an imported campaign: figures of others, as far as they can be checked.

use super::numbers::{digits, in_words, number, rate_interval, rate_unit, significant, words};
use super::results::has_rate;
use crate::document::{Document, Table, Tone};
use linerate_measure::record::{Campaign, HostFacts, Imported, ImportedSlot, Summary};
use linerate_measure::summary::Row;
use std::collections::BTreeMap;

/// So many settings are listed.
const LISTED_SETTINGS: usize = 20;

/// The whole page.
pub fn page(
    page: &mut Document,
    campaign: &Campaign,
    origin: &Imported,
    host: &HostFacts,
    summary: &Summary,
) {
    page.paragraph("Imported, not audited by linerate.", Tone::Warning);
    page.gap();
    page.paragraph(&answer(origin, summary), Tone::Strong);
    rates(page, campaign, summary);
    disagreements(page, campaign);
    settings(page, campaign);
    equilibria(page, origin);
    where_from(page, campaign, origin, host);
    let name = |slot: Option<usize>| slot.map_or(String::new(), |s| format!("{}: ", campaign.name_of(s)));
    page.warnings(summary.warnings.iter().map(|w| format!("{}{}", name(w.slot), w.text)));
}

/// The fastest and the slowest set, in a sentence.
fn answer(origin: &Imported, summary: &Summary) -> String {
    let mut rows: Vec<&Row> = summary.rows.iter().filter(|r| has_rate(r)).collect();
    rows.sort_by(|a, b| b.received.median.total_cmp(&a.received.median));
    let who = origin.machine.as_deref().unwrap_or("The DUT");
    let with = origin.card.as_deref().map_or(String::new(), |c| format!(" with {c}"));
    let rate = |row: &Row| format!("{} a second ({})", words(row.received.median, 3), row.name);
    match rows[..] {
        [] if !origin.equilibria.is_empty() => {
            format!("{who}{with}: searches for an equilibrium throughput.")
        }
        [] => "No run has a figure.".into(),
        [only] => format!("{who}{with} forwarded {}.", rate(only)),
        [first, .., last] => format!("{who}{with} forwarded from {} to {}.", rate(last), rate(first)),
    }
}

fn rates(page: &mut Document, campaign: &Campaign, summary: &Summary) {
    if summary.rows.is_empty() {
        return;
    }
    let rates = summary.rows.iter().filter(|r| has_rate(r)).map(|r| r.received.median.max(r.offered));
    let (scale, unit) = rate_unit(rates.fold(0.0, f64::max));
    let figures = |r: &&Row| digits(&r.received).clamp(4, 5);
    let received = |r: &&Row| number(r.received.median / scale, figures(r));
    let table = Table::of(&summary.rows)
        .column("", "frame lengths with FCS", |r| r.name.as_str())
        .column("offered", unit, |r| (r.offered > 0.0).then(|| number(r.offered / scale, figures(r))))
        .column("received", unit, |r| has_rate(r).then(|| received(r)))
        .column("95 %", "interval", |r| rate_interval(&r.received, scale, figures(r)))
        .column("runs with", "a figure", |r| format!("{}/{}", r.valid_trials, r.trials))
        .column("as", "published", |r| agreement(campaign.slots.get(r.slot)?.imported.as_deref()));
    page.table(table);
}

fn agreement(slot: Option<&ImportedSlot>) -> Option<&'static str> {
    Some(match slot.map(|s| (s.agrees, s.published.is_some())) {
        Some((Some(true), _)) => "yes",
        Some((Some(false), _)) => "NO",
        Some((None, true)) => "no logs",
        _ => return None,
    })
}

fn disagreements(page: &mut Document, campaign: &Campaign) {
    let slots =
        campaign.slots.iter().filter_map(|s| Some((s.id, s.imported.as_ref()?.disagreement.as_ref()?)));
    let told = slots.map(|(slot, what)| format!("{}: {what}", campaign.name_of(slot)));
    page.list("Sets that disagree with what was published", "- ", told, Tone::Plain);
}

/// Settings that differ between the sets.
fn settings(page: &mut Document, campaign: &Campaign) {
    let described: Vec<(&str, &ImportedSlot)> = campaign
        .slots
        .iter()
        .filter_map(|s| Some((s.variant.as_str(), s.imported.as_deref()?)))
        .filter(|(_, s)| !s.description.is_empty())
        .collect();
    let mut by_setting: BTreeMap<(&str, &str), BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for (variant, slot) in &described {
        for (file, settings) in &slot.description {
            for setting in settings.iter().filter(|s| !s.name.is_empty()) {
                let values = by_setting.entry((file, &setting.name)).or_default();
                values.entry(&setting.value).or_default().push(variant);
            }
        }
    }
    let everywhere = |values: &BTreeMap<&str, Vec<&str>>| {
        values.len() == 1 && values.values().all(|variants| variants.len() >= described.len())
    };
    let differ: Vec<_> = by_setting.iter().filter(|(_, values)| !everywhere(values)).collect();
    if differ.is_empty() {
        return;
    }
    page.heading("Settings that differ");
    for ((file, name), values) in differ.iter().take(LISTED_SETTINGS) {
        let values = values.iter().map(|(value, variants)| format!("{value} ({})", variants.join(", ")));
        page.item("- ", &format!("{file}: {name}={}", values.collect::<Vec<_>>().join("; ")), Tone::Plain);
    }
    if differ.len() > LISTED_SETTINGS {
        let text = format!("and {} more; campaign.json has them all", differ.len() - LISTED_SETTINGS);
        page.item("- ", &text, Tone::Note);
    }
}

fn equilibria(page: &mut Document, origin: &Imported) {
    if origin.equilibria.is_empty() {
        return;
    }
    page.heading("Equilibrium throughput, Ethernet");
    let list = |values: &[f64]| match values.len() {
        0 => None,
        1..=10 => Some(values.iter().map(f64::to_string).collect::<Vec<_>>().join(" ")),
        n => Some(format!("{n} values")),
    };
    let table = Table::of(&origin.equilibria)
        .column("", "", |set| set.name.as_str())
        .column("Mb/s", "by search", |set| {
            list(&set.runs.iter().filter_map(|r| r.estimate).collect::<Vec<_>>())
        })
        .column("Mb/s", "published", |set| list(&set.published.as_ref()?.values));
    page.table(table);
}

fn where_from(page: &mut Document, campaign: &Campaign, origin: &Imported, host: &HostFacts) {
    page.heading("Where it comes from");
    let mut item = |name: &str, text: &str| {
        if !text.is_empty() {
            page.fact(name, text);
        }
    };
    item("source", &format!("{}, {}", origin.source, origin.path));
    item("method", &origin.method);
    item("began", &campaign.started);
    item("machine", &host.cpu_model);
    item("card", origin.card.as_deref().unwrap_or_default());
    item("topic", origin.topic.as_deref().unwrap_or_default());
    item("system", &host.kernel);
    let facts = campaign.slots.iter().find_map(|s| s.imported.as_ref()?.facts.get("sender.command"));
    item("traffic", facts.map_or("", String::as_str));
    if campaign.asked.flows > 0 {
        let (scale, name) = in_words(campaign.asked.flows as f64);
        item("flows", &format!("{}{name}", significant(campaign.asked.flows as f64 / scale, 3)));
    }
}
