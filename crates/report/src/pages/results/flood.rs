//! Connections that come with a flood of SYNs, or with illegal attempts: what these cost, and how much of them passes the DUT.

use super::changes::{change, change_interval};
use super::{Shown, has_rate};
use crate::prelude::*;
use linerate_measure::experiment::{Factor, Interest};
use linerate_measure::record::{Http, Row};

/// A level in words, where this factor is the flood's rate or the share of illegal attempts: `a flood of 100kpps`.
pub fn level(factor: &Factor, value: &str) -> Option<String> {
    let [setting] = &factor.sets[..] else {
        return None;
    };
    Some(match (setting.as_str(), value) {
        ("traffic.flood", "none") => "no flood".into(),
        ("traffic.flood", rate) => format!("a flood of {rate}"),
        ("traffic.illegal", "none") => "no illegal attempts".into(),
        ("traffic.illegal", share) => format!("{share} illegal attempts"),
        _ => return None,
    })
}

/// The comparisons of the flood's rates, or of the shares of illegal attempts.
pub fn interest(shown: &Shown<'_>) -> Option<Interest> {
    let mut factors = shown.planned.experiment.factors.iter();
    let at = factors.position(|factor| level(factor, "none").is_some());
    at.map(Interest::Levels)
}

/// Whether the SYNs are illegal attempts, and no flood.
fn are_illegal(shown: &Shown<'_>) -> bool {
    let mut rows = shown.with_dut().filter_map(|row| row.flood);
    rows.any(|flood| flood.illegal > 0)
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

/// How many cells the table of those with a flood lacks; empty where it has all.
pub fn left_out(shown: &Shown<'_>) -> String {
    match shown.with_dut().filter(|row| row.flood.is_none()).count() {
        0 => String::new(),
        n => format!(
            "{} without {} on the whole page",
            counted(n, "row"),
            if are_illegal(shown) {
                "illegal attempts"
            } else {
                "a flood"
            }
        ),
    }
}

/// A row for each of these cells. Changes are against the same cell without a flood.
pub fn table<'a>(shown: &Shown<'a>, rows: impl IntoIterator<Item = &'a Row>) -> Table {
    let unit = shown.unit();
    let (what, by) = if are_illegal(shown) {
        ("illegal", "by these")
    } else {
        ("flood", "by flood")
    };
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
        .if_any(by, "%", |row| {
            let ratio = to_none(row)?;
            Some(match (change_interval(&ratio), ratio.side_of(1.0)) {
                (Some(_), Some(_)) => change(&ratio),
                (Some(interval), None) => interval,
                (None, _) => "too few".into(),
            })
        })
        .column(what, "passed %", |row| Some(percent(row.flood?.passed)))
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
    let has_strays = has_rows(shown);
    // A request is a connection only where none follows it.
    let keeps = |slot: &Slot| slot.http.is_some_and(|of| of.http == Http::KeepAlive);
    let rows = shown
        .with_dut()
        .filter(|row| !shown.slot(row.slot).is_some_and(keeps));
    let rows = rows.filter(|row| row.kept.is_none() && row.flood.is_some() == has_strays);
    let all = rows.filter_map(|row| {
        let strays = row.flood.map_or(0.0, |flood| {
            let illegal = f64::from(flood.illegal) / 1e6;
            let with_them = row.received.median * illegal / (1.0 - illegal);
            (f64::from(flood.asked) + with_them) * flood.passed
        });
        let with = match (strays > 0.0, are_illegal(shown)) {
            (false, _) => ",",
            (_, false) => " with the flood's SYNs,",
            (_, true) => " with the illegal attempts that passed,",
        };
        let (limit, rate) = (row.connections?.limit? as f64, row.received.median + strays);
        let lasts = limit / rate;
        (lasts.is_finite() && lasts < LASTING).then_some((lasts, limit, rate, with))
    });
    let first = all.min_by(|a, b| a.0.total_cmp(&b.0));
    first.map_or(String::new(), |(lasts, limit, rate, with)| {
        format!(
            "at {} connections/s{with} the connection table ({} entries) is full after {} (linerate calc conntrack --rate {rate:.0})",
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
        let (what, from, entries) = if are_illegal(shown) {
            (
                "illegal attempts",
                "Illegal attempts are SYNs from the clients to a port that no connection has, and no server answers them.",
                "those of the illegal attempts that passed",
            )
        } else {
            (
                "a flood of SYNs",
                "The flood comes from addresses that no client has, and no server answers it.",
                "the flood's half-open entries",
            )
        };
        page.section(
            format!("Connections and {what}"),
            table(shown, shown.with_dut()),
        );
        page.note(format!("{from} Rates are those of the window; the shares that failed and passed are those of the whole load, warm-up included, over which every connection and every SYN is accounted for. The table has the connections and {entries}, at the end of the fullest trial."));
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
        assert!(first.contains("times as fast without DUT"), "{first}");
        assert!(why.contains("a connection takes 12500 ns"), "{why}");
        campaign.asked.mode = Mode::Threaded;
        for slot in &mut campaign.slots {
            slot.asked_fps = slot.ceiling.map(|_| 1e5);
        }
        let [first, why] = pages(&campaign);
        assert!(!first.contains("times as fast without DUT"), "{first}");
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
                illegal: 0,
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
