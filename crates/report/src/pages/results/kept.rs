//! Connections that are kept open at the same time: how many, why no more, and how long it took.

use super::changes::{change, change_interval};
use super::shown::{Shown, has_rate};
use crate::prelude::*;
use linerate_measure::record::{KeptRow, Row, Slot};
use linerate_wire::words::distinct;

/// Bytes of an entry in Linux's table of connections, without the data of NAT, and with them.
const ENTRY: u64 = 256;
/// See [`ENTRY`].
const ENTRY_WITH_NAT: u64 = 384;
/// Entries whose slab tells their memory.
const MANY: u64 = 10_000;

/// Whether connections are kept open at the same time.
pub fn any(shown: &Shown<'_>) -> bool {
    let of_slot = |slot: &Slot| slot.connections().and_then(|spec| spec.open);
    shown.campaign.slots.iter().any(|s| of_slot(s).is_some())
}

/// Whether the rates are those of closing them.
pub fn closes(shown: &Shown<'_>) -> bool {
    let of_slot = |slot: &Slot| slot.connections().and_then(|spec| spec.close);
    shown.campaign.slots.iter().any(|s| of_slot(s).is_some())
}

/// The event that a rate counts.
fn done(shown: &Shown<'_>) -> &'static str {
    if closes(shown) { "closed" } else { "opened" }
}

/// The rows with a DUT whose connections are kept open.
fn rows<'a>(shown: &Shown<'a>) -> Vec<(&'a Row, &'a KeptRow)> {
    let kept = shown
        .with_dut()
        .filter_map(|row| Some((row, row.kept.as_ref()?)));
    kept.collect()
}

/// Whether a DUT has a result.
pub fn has_rows(shown: &Shown<'_>) -> bool {
    !rows(shown).is_empty()
}

/// Why no more are open, where fewer are than were asked for.
fn why(row: &Row, kept: &KeptRow) -> String {
    let limit = row.connections.and_then(|states| states.limit);
    let counters = kept.refused.iter();
    let counters = counters.map(|(name, n)| format!("{name} {}", grouped(*n)));
    let counted = format!("counters of conntrack: {}", counters.joined(", "));
    if limit.is_some() && kept.entries >= limit {
        return format!("its table was full (nf_conntrack_max; {counted})");
    }
    if kept.refused.contains_key("insert_failed") {
        return format!("it found no free port for the others ({counted})");
    }
    let lost = row.losses.first();
    lost.map_or("the others failed".into(), |loss| {
        format!("{} on {} connections", loss.place, grouped(loss.frames))
    })
}

/// Whether those that were open worked.
fn works(kept: &KeptRow) -> String {
    match kept.unanswered {
        _ if kept.open[1] == 0 => String::new(),
        0 => ", each with a request and its answer".into(),
        _ if kept.event.is_some() => String::new(),
        n => format!(", of which {} carried no request and answer", grouped(n)),
    }
}

/// How many connections the event of each variant broke, and how long it took.
fn broken(shown: &Shown<'_>) -> Vec<String> {
    let slots = &shown.campaign.slots;
    let rows = rows(shown).into_iter();
    let said = rows.filter_map(|(row, kept)| {
        let (slot, event) = (slots.get(row.slot)?, kept.event.as_ref()?);
        let broke = match kept.unanswered {
            0 => "none".into(),
            n if n == kept.opened => "all".into(),
            n => grouped(n),
        };
        let what = format!(
            "{} breaks {broke} of {} open {} connections",
            event.what,
            grouped(kept.opened),
            slot.family
        );
        Some((
            what,
            format!("{} in {}", slot.plan_variant, time(event.took_ns)),
        ))
    });
    let said = together(said).into_iter();
    said.map(|(what, who)| format!("{what}: {}.", listed(&who)))
        .collect()
}

/// How many connections each variant holds: those that hold fewer than were asked for first.
pub fn sentences(shown: &Shown<'_>) -> Vec<String> {
    let broken = broken(shown);
    broken.into_iter().chain(held(shown)).collect()
}

fn held(shown: &Shown<'_>) -> Vec<String> {
    let slots = &shown.campaign.slots;
    let rows = rows(shown).into_iter();
    // Of those that an event met, all is said but what was refused before.
    let rows = rows.filter(|(_, kept)| kept.event.is_none() || kept.open[0] < kept.asked);
    let rows = rows.filter_map(|(row, kept)| Some((slots.get(row.slot)?, row, kept)));
    let (all, fewer): (Vec<_>, Vec<_>) = rows.partition(|(_, _, kept)| kept.open[0] == kept.asked);
    let of = |slot: &Slot, kept: &KeptRow| {
        format!(
            "{} {} connections at once{}",
            grouped(kept.asked),
            slot.family,
            works(kept)
        )
    };
    let fewer = fewer.iter().map(|(slot, row, kept)| {
        let [fewest, most] = kept.open.map(grouped);
        let held = if fewest == most {
            fewest
        } else {
            format!("{fewest} to {most}")
        };
        let (who, why) = (&slot.plan_variant, why(row, kept));
        format!("{who} holds {held} of {}: {why}.", of(slot, kept))
    });
    // Where the question is how they are closed, nothing is said of those that were open and worked.
    let said = all
        .iter()
        .filter(|(_, _, kept)| kept.unanswered > 0 || !closes(shown))
        .map(|(slot, _, kept)| (of(slot, kept), slot.plan_variant.clone()));
    let all = together(said).into_iter().map(|(what, who)| {
        let who = distinct(who);
        let holds = if who.len() == 1 { "holds" } else { "hold" };
        format!("{} {holds} all {what}.", listed(&who))
    });
    fewer.chain(all).collect()
}

/// A row for each variant and number. `whole`: with all times, also where an event or the closing is the question.
pub fn table(shown: &Shown<'_>, whole: bool) -> Table {
    let events = rows(shown).iter().any(|(_, kept)| kept.event.is_some());
    let unit = shown.unit();
    let time = |ns: f64| (ns > 0.0).then(|| span(ns));
    Table::of(rows(shown))
        .column("", "", |(row, _)| shown.name(row.slot))
        .column("open", "at once", |(_, kept)| count(kept.open[0]))
        .if_any("event", "broke", |(_, kept)| {
            kept.event.as_ref().map(|_| count(kept.unanswered))
        })
        .if_any("event", "took", |(_, kept)| {
            time(kept.event.as_ref()?.took_ns)
        })
        .when(whole || !events && !closes(shown), |table| {
            table
                .if_any("opened", "in", |(_, kept)| time(kept.open_ns))
                .if_any("answers", "in", |(_, kept)| time(kept.ask_ns))
        })
        .when(whole || !events, |table| {
            table.if_any("closed", "in", |(_, kept)| time(kept.close_ns))
        })
        .if_any(done(shown), unit.name, |(row, _)| {
            has_rate(row).then(|| unit.median(&row.received)).flatten()
        })
        .if_any("change", "%", |(row, _)| {
            let ratio = row.baseline?.ratio?;
            Some(match (change_interval(&ratio), ratio.side_of(1.0)) {
                (Some(_), Some(_)) => change(&ratio),
                (Some(interval), None) => interval,
                (None, _) => "too few".into(),
            })
        })
        .when(closes(shown), |table| {
            table.if_any("entries", "left", |(_, kept)| kept.left.map(count))
        })
        .into()
}

/// The memory of the fullest table. Of few entries, the slab says little: it keeps pages for entries that have gone.
pub fn memory(shown: &Shown<'_>) -> String {
    let entries = |kept: &KeptRow| kept.entries.filter(|entries| *entries > 0);
    let all = rows(shown).into_iter();
    let fullest = all.filter_map(|(_, kept)| Some((entries(kept)?, kept.slab_bytes)));
    let Some((entries, slab)) = fullest.max() else {
        return String::new();
    };
    let (memory, how) = match slab.filter(|_| entries >= MANY) {
        Some(bytes) => (bytes, "slab nf_conntrack".into()),
        None => (
            entries.saturating_mul(ENTRY),
            format!("estimate: {ENTRY} B each"),
        ),
    };
    format!(
        "{} for {} entries ({how}; with NAT about {ENTRY_WITH_NAT} B each)",
        bytes(memory),
        grouped(entries)
    )
}

/// The section of the whole page.
pub fn section(page: &mut Document, shown: &Shown<'_>) {
    if any(shown) {
        page.section(
            "Connections that were open at the same time",
            table(shown, true),
        );
        page.note(format!("Times are medians, without the time spent waiting for connections that failed. Changes are those of the connections {} a second. An event broke the connections that had no answer after it, in all trials.", done(shown)));
        page.fact("memory", memory(shown));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{WIDE, campaign, text};
    use crate::pages::tests::trial;
    use linerate_measure::record::{
        ConnectionTrial, Connections, DutEvent, EventClass, Kept, States, TrialRecord,
    };
    use linerate_wire::{ConnectionSpec, Exchange};

    const PLAN: &[u8] = br#"
        title = "Held"
        question = "How many?"
        traffic.open = 300_000
        variants.forwarding = { about = "no firewall" }
        variants.stateful.rules = { tool = "nftables", filter = "stateful" }
        trials = { blocks = 1, duration = "10 ms" }
    "#;

    /// A trial in which so many connections were open, and so many of them had an answer.
    fn held(open: u64, answered: u64, entries: u64) -> TrialRecord {
        let reached = [
            open, open, open, answered, answered, answered, answered, answered,
        ];
        let kept = Kept {
            asked: 300_000,
            open_ns: 2_000_000_000,
            ask_ns: 1_500_000_000,
            close_ns: 1_000_000_000,
            entries: Some(entries),
            slab_bytes: Some(entries * 256),
        };
        TrialRecord {
            opened: Some(Box::new(ConnectionTrial {
                attempted: 300_000,
                reached: reached.to_vec(),
                kept: Some(kept),
                ..ConnectionTrial::default()
            })),
            connections: Some(Connections {
                states: States::New,
                tracked: Some(entries),
                limit: Some(262_144),
                unanswered: None,
            }),
            dut: [("Conntrack.drop".to_string(), 300_000 - open)].into(),
            ..trial(0, 0, 0, 150_000.0, 150_000.0)
        }
    }

    /// The page of a campaign whose stateful variant has this trial.
    fn page(stateful: TrialRecord) -> String {
        let mut campaign = campaign(PLAN, false);
        let kind = linerate_plan::campaign::Kind::default();
        let mut traffic = kind.traffic(&Default::default()).unwrap();
        traffic.connections = Some(ConnectionSpec {
            open: Some(300_000),
            ..ConnectionSpec::new(Exchange::Request, 6)
        });
        for slot in &mut campaign.slots {
            slot.traffic = Some(Box::new(traffic.clone()));
        }
        let of_slot = |slot: &linerate_measure::record::Slot| TrialRecord {
            slot: slot.id,
            ..match slot.plan_variant.as_str() {
                "stateful" => stateful.clone(),
                _ => held(300_000, 300_000, 0),
            }
        };
        let trials: Vec<TrialRecord> = campaign.slots.iter().map(of_slot).collect();
        let text = text(&campaign, &trials, WIDE);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_full_table_is_named_with_its_limit_and_its_counter() {
        let text = page(held(262_144, 262_144, 262_144));
        for said in [
            "stateful holds 262,144 of 300,000 IPv4 connections at once, each with a request and its answer: its table was full \
             (nf_conntrack_max; counters of conntrack: drop 37,856).",
            "forwarding holds all 300,000 IPv4 connections at once, each with a request and its answer.",
            "64.0 MiB for 262,144 entries (slab nf_conntrack; with NAT about 384 B each)",
        ] {
            assert!(text.contains(said), "{said}\n{text}");
        }
    }

    #[test]
    fn connections_that_broke_while_they_were_open_are_told() {
        let text = page(held(300_000, 299_990, 300_000));
        let broken = "stateful holds all 300,000 IPv4 connections at once, of which 10 carried no request and answer.";
        assert!(text.contains(broken), "{text}");
    }

    #[test]
    fn an_event_is_told_with_what_it_broke_and_its_time() {
        let with = |answered| TrialRecord {
            event: Some(DutEvent {
                what: "firewall-restarted".into(),
                class: EventClass::Reconfiguration,
                began_ns: 1_000_000,
                ended_ns: 21_500_000,
                ran: Vec::new(),
            }),
            ..held(300_000, answered, 300_000)
        };
        let said = |answered, broke: &str| {
            let text = page(with(answered));
            let said = format!(
                "firewall-restarted breaks {broke} of 300,000 open IPv4 connections: stateful in 20.5 ms."
            );
            assert!(text.contains(&said), "{said}\n{text}");
            assert!(!text.contains("stateful holds"), "{text}");
            text
        };
        said(300_000, "none");
        said(299_990, "10");
        // No figure of the opening is missing because of it.
        let text = said(0, "all");
        assert!(!text.contains("let no connection pass"), "{text}");
    }
}
