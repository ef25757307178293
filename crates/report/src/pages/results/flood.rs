//! Connections that come with a flood of SYNs: what the flood costs, and how much of it passes the DUT.

use super::changes::{change, change_interval};
use super::{Shown, has_rate};
use crate::prelude::*;
use linerate_measure::experiment::{Factor, Interest};
use linerate_measure::record::Row;

/// Whether this factor is the flood's rate.
pub fn is_flood(factor: &Factor) -> bool {
    factor.sets == ["traffic.flood"]
}

/// A level of that factor in words: `a flood of 100kpps`.
pub fn level(value: &str) -> String {
    match value {
        "none" => "no flood".into(),
        rate => format!("a flood of {rate}"),
    }
}

/// The comparisons of the flood's rates.
pub fn interest(shown: &Shown<'_>) -> Option<Interest> {
    let factors = &shown.planned.experiment.factors;
    factors.iter().position(is_flood).map(Interest::Levels)
}

/// Whether a flood came with a DUT's connections.
pub fn has_rows(shown: &Shown<'_>) -> bool {
    shown.with_dut().any(|row| row.flood.is_some())
}

/// The cells with a flood, those of the last variants first: the first one is the baseline.
pub fn flooded<'a>(shown: &Shown<'a>) -> Vec<&'a Row> {
    let mut rows: Vec<&Row> = shown.with_dut().filter(|row| row.flood.is_some()).collect();
    rows.reverse();
    rows
}

/// A row for each of these cells. Changes are against the same cell without a flood.
pub fn table<'a>(shown: &Shown<'a>, rows: impl IntoIterator<Item = &'a Row>) -> Table {
    let unit = shown.unit();
    let to_none = |row: &Row| {
        let mut compared = shown.summary.comparisons.iter();
        let why = interest(shown)?;
        compared
            .find(|c| c.of == row.slot && c.why == why)?
            .against
            .ratio
    };
    Table::of(rows)
        .column("", "", |row| shown.name(row.slot))
        .column("rate", unit.name, |row| {
            has_rate(row).then(|| unit.median(&row.received)).flatten()
        })
        .when(shown.loses(), |table| {
            let [failed, of] = shown.loss_head();
            table.column(failed, of, |row| shown.lost(row.slot))
        })
        .if_any("by flood", "%", |row| {
            let ratio = to_none(row)?;
            Some(match (change_interval(&ratio), ratio.side_of(1.0)) {
                (Some(_), Some(_)) => change(&ratio),
                (Some(interval), None) => interval,
                (None, _) => "too few".into(),
            })
        })
        .column("flood", "passed %", |row| Some(percent(row.flood?.passed)))
        .if_any("answered", "by DUT %", |row| {
            row.flood
                .filter(|flood| flood.answered > 0.0)
                .map(|flood| percent(flood.answered))
        })
        .if_any("table", "entries", |row| row.flood?.entries.map(count))
        .into()
}

/// How long a DUT's table of connections lasts at the rate that was measured: each entry stays until its timeout. With a flood, where one came.
pub fn lasting(shown: &Shown<'_>) -> String {
    let floods = has_rows(shown);
    let rows = shown.with_dut();
    let rows = rows.filter(|row| row.kept.is_none() && row.flood.is_some() == floods);
    let all = rows.filter_map(|row| {
        let flood = row
            .flood
            .map_or(0.0, |flood| f64::from(flood.asked) * flood.passed);
        let (limit, rate) = (row.connections?.limit? as f64, row.received.median + flood);
        let lasts = limit / rate;
        (lasts.is_finite() && lasts < LASTING).then_some((lasts, limit, rate))
    });
    let first = all.min_by(|a, b| a.0.total_cmp(&b.0));
    let flood = if floods {
        " with the flood's SYNs,"
    } else {
        ","
    };
    first.map_or(String::new(), |(lasts, limit, rate)| {
        format!(
            "at {} connections/s{flood} the connection table ({} entries) is full after {} (linerate calc conntrack --rate {rate:.0})",
            grouped(rate.round() as u64),
            grouped(limit as u64),
            time(1e9 * lasts),
        )
    })
}

/// Seconds after which connections of a usual firewall have ended: Linux keeps closed ones for two minutes.
const LASTING: f64 = 120.0;

/// The section of the whole page.
pub fn section(page: &mut Document, shown: &Shown<'_>) {
    if has_rows(shown) {
        page.section(
            "Connections and a flood of SYNs",
            table(shown, shown.with_dut()),
        );
        page.note("The flood comes from addresses that no client has, and no server answers it. Rates are those of the window; the shares that failed and passed are those of the whole load, warm-up included, over which every connection and every SYN is accounted for. The table has the connections and the flood's half-open entries, at the end of the fullest trial.");
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{WIDE, campaign, text};
    use crate::pages::explanation::{Extent, explanation};
    use crate::pages::tests::{host, lossy, trial};
    use linerate_measure::audit::Cause;
    use linerate_measure::record::{
        Campaign, ConnectionTrial, Connections, Explanation, Flood, Mode, RulesPassed, States,
        Stopped, TrialRecord,
    };
    use linerate_measure::summary::summarise;
    use linerate_wire::{ConnectionSpec, Exchange};

    const PLAN: &[u8] = br#"
        title = "Flooded"
        question = "What is left?"
        traffic.connections = "request"
        variants.stateful.rules = { tool = "nftables", filter = "stateful" }
        factors.flood = { sets = "traffic.flood", levels = ["none", "1 kpps"] }
        trials = { blocks = 8, duration = "10 ms" }
    "#;

    /// Gives each slot its connections, with the flood of its name.
    fn connect(campaign: &mut Campaign) {
        let kind = linerate_plan::campaign::Kind::default();
        for slot in &mut campaign.slots {
            let mut traffic = kind.traffic(&Default::default()).unwrap();
            traffic.connections = Some(ConnectionSpec {
                flood: if slot.name.contains("1 kpps") {
                    1000
                } else {
                    0
                },
                ..ConnectionSpec::new(Exchange::Request, 6)
            });
            slot.traffic = Some(Box::new(traffic));
        }
    }

    /// At a rate that was asked for, no time of a connection is known, and nothing is fast or slow.
    #[test]
    fn a_rate_that_was_asked_for_is_no_cost() {
        let mut campaign = campaign(PLAN, false);
        connect(&mut campaign);
        let trials: Vec<TrialRecord> = (0..8)
            .flat_map(|block| campaign.slots.iter().map(move |slot| (slot, block)))
            .map(|(slot, block)| match slot.is_calibration() {
                true => trial(0, block, slot.id, 2e6, 2e6),
                false => lossy(0, block, slot.id, [1e5, 8e4], "SYN", Cause::QueueFull),
            })
            .collect();
        let pages = |campaign: &Campaign| {
            let mut verdict = summarise(campaign, &trials, Stopped::Budget, 0);
            verdict.explanations = (0..campaign.slots.len())
                .map(|slot| Explanation {
                    slot,
                    ..Explanation::default()
                })
                .collect();
            let first = super::super::super::first(campaign, &host(), &verdict, &[], "records");
            let why = explanation(campaign, &host(), &verdict, Extent::Full);
            [first.unwrap(), why].map(|page| page.text(WIDE))
        };
        let [first, why] = pages(&campaign);
        assert!(first.contains("times as fast as the DUT"), "{first}");
        assert!(why.contains("a connection takes 12500 ns"), "{why}");
        campaign.asked.mode = Mode::Threaded;
        for slot in &mut campaign.slots {
            slot.asked_fps = slot.ceiling.map(|_| 1e5);
        }
        let [first, why] = pages(&campaign);
        assert!(!first.contains("times as fast as the DUT"), "{first}");
        assert!(why.contains("The DUT was the limit."), "{why}");
        assert!(!why.contains("takes"), "{why}");
    }

    #[test]
    fn a_flood_s_cost_and_its_part_that_passed_are_told() {
        let mut campaign = campaign(PLAN, false);
        connect(&mut campaign);
        let of = |slot: usize, block: u32| {
            let floods = campaign.slots[slot].name.contains("1 kpps");
            let rate = if floods { 60_000.0 } else { 100_000.0 } + f64::from(block);
            let flood = floods.then_some(Flood {
                asked: 1000,
                sent: 2000,
                arrived: 500,
                answered: 0,
                load_ns: 2_000_000_000,
            });
            TrialRecord {
                opened: Some(Box::new(ConnectionTrial {
                    attempted: 1000,
                    reached: vec![1000; 6],
                    flood,
                    ..ConnectionTrial::default()
                })),
                connections: Some(Connections {
                    states: States::New,
                    tracked: Some(1500),
                    limit: Some(262_144),
                    unanswered: None,
                }),
                ..trial(0, block, slot, rate, rate)
            }
        };
        let slots = 0..campaign.slots.len();
        let trials: Vec<TrialRecord> = (0..8)
            .flat_map(|block| slots.clone().map(move |slot| (slot, block)))
            .map(|(slot, block)| of(slot, block))
            .collect();
        let page = text(&campaign, &trials, WIDE);
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        for said in [
            "no flood: This machine's kernel, with stateful,",
            "a flood of 1 kpps is 39.9986 % slower than no flood",
            "Connections and a flood of SYNs",
            "25.0 1,500",
            "those of the whole load, warm-up included",
            "last ACK, objects of 6 B; IPv4; 64 clients",
            "flood: none, 1,000 SYN/s; rate",
        ] {
            assert!(page.contains(said), "{said}\n{page}");
        }
        let mut verdict = summarise(&campaign, &trials, Stopped::Budget, 0);
        let flooded = campaign
            .slots
            .iter()
            .filter(|slot| slot.name.contains("1 kpps") && !slot.is_calibration());
        verdict.rules = flooded
            .map(|slot| RulesPassed {
                slot: slot.id,
                frames: 100,
                looks: 300,
                rules: 7,
                reached: 3,
                logging: 0,
            })
            .collect();
        let first = super::super::super::first(&campaign, &host(), &verdict, &[], "records");
        let first = first.unwrap().text(WIDE);
        // 60,004 connections and 250 SYNs that pass, each second.
        for said in [
            "at 60,254 connections/s with the flood's SYNs, the connection table (262,144 entries) is full after 4.35 s",
            "flood 1 kpps: 3 of 7 rules reached",
        ] {
            assert!(first.contains(said), "{said}\n{first}");
        }
    }
}
