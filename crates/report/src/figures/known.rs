//! The facts of a campaign and of its cells, one by one, without addresses of hosts and cards.

use crate::pages::Records;
use linerate_hosts::configuration::{Card, Configuration};
use linerate_measure::history::campaigns;
use linerate_measure::record::SlotFacts;
use std::collections::BTreeMap;

/// A fact.
#[derive(Debug)]
pub struct Fact {
    /// The cell, a slot of its campaign; `None`: the whole campaign's.
    pub cell: Option<usize>,
    pub name: String,
    pub value: String,
}

/// The facts in the order of their cells and names: those of the campaign, of imported sets, and of DUTs that were asked.
pub fn all_facts(records: &Records<'_>) -> Vec<Fact> {
    let mut all = of(None, campaigns::facts(records.campaign, records.host));
    for slot in &records.campaign.slots {
        let imported = slot.imported.iter().flat_map(|set| set.facts.clone());
        let asked = records.facts.iter().filter(|facts| facts.slot == slot.id);
        all.extend(of(
            Some(slot.id),
            imported.chain(asked.flat_map(configured)).collect(),
        ));
    }
    all
}

fn of(cell: Option<usize>, facts: BTreeMap<String, String>) -> Vec<Fact> {
    let known = facts.into_iter().filter(|(_, value)| !value.is_empty());
    known
        .map(|(name, value)| Fact { cell, name, value })
        .collect()
}

/// How a DUT was configured: its system, its cards' drivers and offloads, its settings.
fn configured(facts: &SlotFacts) -> BTreeMap<String, String> {
    let Some(found) = Configuration::recorded(facts) else {
        return BTreeMap::new();
    };
    let system = [
        ("DUT's kernel", found.system.release),
        ("DUT's product", found.system.product),
    ];
    let system = system
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let cards = found.cards.iter().flat_map(of_card);
    let settings = found.sysctls.into_iter().map(|(name, value)| {
        let name = format!("DUT's setting {name}");
        (name, value)
    });
    system.chain(cards).chain(settings).collect()
}

fn of_card(card: &Card) -> Vec<(String, String)> {
    let queues = [
        ("receive queues", card.rx_queues.now),
        ("transmit queues", card.tx_queues.now),
        ("queues", card.combined_queues.now),
        ("receive ring", card.rx_ring.now),
        ("transmit ring", card.tx_ring.now),
    ];
    let numbers = queues
        .into_iter()
        .filter_map(|(name, now)| Some((name, now?.to_string())));
    let texts = [
        ("driver", &card.driver),
        ("driver's version", &card.driver_version),
        ("firmware", &card.firmware),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(name, text)| Some((name, text.clone()?)));
    let named = numbers
        .chain(texts)
        .map(|(name, value)| (name.to_owned(), value));
    let moderation = card
        .coalescing
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()));
    let offloads = card.features.iter().map(|(name, on)| {
        let state = if *on { "on" } else { "off" };
        (name.clone(), state.to_owned())
    });
    named
        .chain(moderation)
        .chain(offloads)
        .map(|(name, value)| (format!("{}: {name}", card.name), value))
        .collect()
}
