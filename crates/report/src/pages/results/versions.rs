//! Loads of IPv4 and IPv6 together: the frames of each.

use super::shown::Shown;
use crate::prelude::*;

/// Frames of a cell over its valid trials: sent and received, of IPv4 and of IPv6.
struct Mixed {
    slot: usize,
    sent: [u64; 2],
    received: [u64; 2],
}

/// The loss of each IP version; nothing where no load mixes them.
pub fn versions(page: &mut Document, shown: &Shown<'_>) {
    let mixed = |slot: usize| {
        let mut all = Mixed {
            slot,
            sent: [0; 2],
            received: [0; 2],
        };
        for trial in shown.valid(slot) {
            let (sent, received) = trial.generator.ipv6(&trial.receiver);
            let [frames, unique] = [trial.generator.frames, trial.receiver.unique()];
            let own = [frames.saturating_sub(sent), unique.saturating_sub(received)];
            all.sent = [all.sent[0] + own[0], all.sent[1] + sent];
            all.received = [all.received[0] + own[1], all.received[1] + received];
        }
        (all.sent[1] > 0).then_some(all)
    };
    let slots = shown.slots();
    let mixes = slots.filter(|slot| {
        slot.traffic
            .as_ref()
            .is_some_and(|traffic| traffic.ipv6.is_some())
    });
    let rows: Vec<Mixed> = mixes.filter_map(|slot| mixed(slot.id)).collect();
    if rows.is_empty() {
        return;
    }
    let loss = |mixed: &Mixed, of: usize| {
        let [sent, received] = [mixed.sent[of], mixed.received[of]].map(|frames| frames as f64);
        (sent > 0.0).then(|| share((1.0 - received / sent).max(0.0)))
    };
    let table = Table::of(rows.iter())
        .column("cell", "", |mixed| shown.numbered(mixed.slot))
        .column("IPv6", "share", |mixed| {
            share(mixed.sent[1] as f64 / (mixed.sent[0] + mixed.sent[1]) as f64)
        })
        .column("IPv4", "sent", |mixed| count(mixed.sent[0]))
        .column("IPv4", "lost", move |mixed| loss(mixed, 0))
        .column("IPv6", "sent", |mixed| count(mixed.sent[1]))
        .column("IPv6", "lost", move |mixed| loss(mixed, 1));
    page.section("IPv4 and IPv6 in one load", table);
}
