//! Plans of the folder `plans/` carried out with known rates.

use super::linux;
use crate::Plan;
use crate::campaign::Cell;
use linerate_measure::audit::{Evidence, audit};
use linerate_measure::counters::PortCounters;
use linerate_measure::experiment::{Interest, Judgement, System};
use linerate_measure::record::{
    self, Asked, Compared, Disagreement, Expected, LabKind, Planned, Row, Series, Skipped, Slot,
    Stopped, Summary, TrialRecord, VERSION,
};
use linerate_measure::strategy::{Design, History, Observed, TrialRequest, strategy};
use linerate_measure::summary::summarise;
use linerate_measure::trial::{Rates, Timing};
use linerate_wire::SplitMix64;
use proptest::prelude::*;

macro_rules! plan {
    ($name:literal) => {
        include_bytes!(concat!("../../../../plans/", $name, ".toml"))
    };
}

/// The record of a plan's campaign, before its first trial.
fn record(text: &[u8], quick: bool) -> record::Campaign {
    let plan = Plan::read(text)
        .unwrap()
        .campaign(System::Linux, quick)
        .unwrap()
        .clone();
    let slot = |(id, cell): (usize, &Cell)| Slot {
        id,
        name: cell.name.clone(),
        variant: cell.name.clone(),
        lengths_fcs: vec![64],
        ceiling: cell.ceiling,
        baseline: cell.baseline,
        plan_variant: cell.variant.clone(),
        levels: cell.levels.clone(),
        group: plan.lanes[cell.lane].group,
        ..Slot::default()
    };
    let slots = plan.cells.iter().enumerate().map(slot).collect();
    record::Campaign {
        version: VERSION,
        asked: Asked {
            lab: LabKind::Simulated,
            seed: 1,
            ..Asked::default()
        },
        slots,
        planned: Some(Box::new(Planned {
            file: Some("plan.toml".into()),
            source: Some(plan.source.clone()),
            plan: plan.rest(),
            experiment: plan.experiment,
            skipped: Vec::new(),
        })),
        ..record::Campaign::default()
    }
}

fn trial(
    number: u64,
    (block, slot): (u32, usize),
    began_ns: u64,
    fps: f64,
    valid: bool,
) -> TrialRecord {
    let port = |frames| PortCounters {
        frames,
        ..PortCounters::default()
    };
    let rates = Some(Rates {
        offered: fps,
        received: fps,
        seconds: 0.1,
    });
    let received = if valid { 1000 } else { 900 };
    let evidence = Evidence {
        rates,
        generator: port(1000),
        receiver: port(received),
        ..Evidence::default()
    };
    TrialRecord {
        version: VERSION,
        trial: number,
        block,
        slot,
        began_ns,
        timing: Timing::slice(100_000_000),
        rates,
        loss_ratio: 0.0,
        generator: evidence.generator.clone(),
        receiver: evidence.receiver.clone(),
        audit: audit(&evidence),
        ..TrialRecord::default()
    }
}

/// The trials that the strategy asks for, on a machine whose speed wanders by 30 % and whose single trials vary by 1 %.
fn trials(campaign: &record::Campaign, rate: impl Fn(&str) -> f64) -> (Vec<TrialRecord>, Stopped) {
    let mut strategy = strategy(Design::of(campaign).unwrap());
    let mut random = SplitMix64::new(7);
    let mut noise = move || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
    let (mut all, mut seen, mut elapsed) = (Vec::new(), Vec::new(), 0);
    loop {
        let TrialRequest { block, slot, .. } = match strategy.next(&History {
            elapsed_ns: elapsed,
            trials: &seen,
        }) {
            Ok(next) => next,
            Err(stopped) => return (all, stopped),
        };
        let speed = (1.0 + 0.3 * (f64::from(block) / 5.0).sin()) * (1.0 + 0.01 * noise());
        let fps = rate(&campaign.slots[slot].variant) * speed;
        all.push(trial(all.len() as u64, (block, slot), elapsed, fps, true));
        seen.push(Observed::from(&all[all.len() - 1]));
        strategy.observe(&seen[seen.len() - 1]);
        elapsed += 150_000_000;
    }
}

fn summary(campaign: &record::Campaign, rate: impl Fn(&str) -> f64) -> Summary {
    let (trials, stopped) = trials(campaign, rate);
    summarise(campaign, &trials, stopped, 0)
}

fn row<'a>(summary: &'a Summary, name: &str) -> &'a Row {
    summary
        .rows
        .iter()
        .find(|r| r.name == name)
        .unwrap_or_else(|| panic!("no cell {name}"))
}

fn firewalls(name: &str) -> f64 {
    match name.split_once(',').map_or(name, |(variant, _)| variant) {
        "tester-baseline" => 10e6,
        "forwarding" => 1e6,
        "nft-stateless" => 0.95e6,
        "iptables-stateless" => 1e6,
        "nft-nat" => 0.5e6,
        _ => 0.7e6,
    }
}

#[test]
fn planted_differences_come_out_although_the_machine_wanders() {
    let campaign = record(plan!("firewalls"), true);
    let results = summary(&campaign, firewalls);
    let baseline = |name: &str| {
        row(&results, &format!("{name}, family IPv4"))
            .baseline
            .unwrap()
    };
    let [nat, same] = [baseline("nft-nat"), baseline("iptables-stateless")];
    assert!(
        nat.proven && (nat.ratio.unwrap().median - 0.5).abs() < 0.01,
        "{nat:?}"
    );
    assert!(
        !same.proven && (same.ratio.unwrap().median - 1.0).abs() < 0.01,
        "{same:?}"
    );
    let forwarding = row(&results, "forwarding, family IPv4");
    let share = forwarding.ceiling.unwrap().ratio.unwrap();
    assert!((share.median - 0.1).abs() < 0.001 && forwarding.baseline.is_none());
    assert!(
        results
            .expectations
            .iter()
            .all(|e| e.judgement == Some(Judgement::Met)),
        "{:#?}",
        results.expectations
    );
    let compared = |of: &str| {
        let found = results
            .comparisons
            .iter()
            .find(|c| results.rows[c.of].name.starts_with(of));
        found.filter(|c| c.why == Interest::Variants).unwrap()
    };
    let (nat, stateless) = (compared("nft-nat"), compared("nft-stateless"));
    assert!(
        nat.ministat.unwrap().proven && (nat.ministat.unwrap().percent + 50.0).abs() < 8.0,
        "{nat:?}"
    );
    assert!(nat.disagreement.is_none());
    // 5 % drown in a drift of 30 %, unless they are paired.
    assert_eq!(
        stateless.disagreement,
        Some(Disagreement::OnlyPairs),
        "{stateless:?}"
    );
}

#[test]
fn sweeps_are_series_with_the_first_level_to_compare_with() {
    let campaign = record(plan!("rules"), true);
    let rate = |name: &str| match name.rsplit_once(' ').map_or("", |(_, level)| level) {
        "10000" => 0.1e6,
        "1000" => 0.5e6,
        _ => 1e6,
    };
    let results = summary(&campaign, rate);
    let names: Vec<&str> = results.series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["nftables", "iptables"]);
    let points = &results.series[0].points;
    let levels: Vec<(&str, Option<f64>)> = points
        .iter()
        .map(|p| (p.level.as_str(), p.number))
        .collect();
    assert_eq!(
        levels,
        [
            ("0", Some(0.0)),
            ("10", Some(10.0)),
            ("1000", Some(1000.0)),
            ("10000", Some(1e4))
        ]
    );
    assert!(
        points[0].to_first.is_none() && (points[3].to_first.unwrap().median - 0.1).abs() < 0.01
    );
}

#[test]
fn more_cpus_have_their_speed_up() {
    let campaign = record(plan!("nat"), false);
    let rate = |name: &str| if name.ends_with("all") { 1.8e6 } else { 1e6 };
    let results = summary(&campaign, rate);
    let ups: Vec<(&str, Vec<&str>)> = results
        .series
        .iter()
        .map(|s| {
            (
                s.name.as_str(),
                s.points.iter().map(|p| p.level.as_str()).collect(),
            )
        })
        .collect();
    assert_eq!(
        ups,
        ["forwarding", "nft-nat", "iptables-nat"].map(|name| (name, vec!["1", "all"]))
    );
    assert!((results.series[0].points[1].to_first.unwrap().median - 1.8).abs() < 0.02);
}

#[test]
fn what_is_missed_skipped_or_not_there_is_told_apart() {
    let mut campaign = record(plan!("firewalls"), true);
    let iptables = campaign
        .slots
        .iter()
        .filter(|slot| slot.plan_variant.starts_with("iptables"));
    let lacking: Vec<usize> = iptables.map(|slot| slot.id).collect();
    let planned = campaign.planned.as_mut().unwrap();
    let reasons = vec!["there is no program iptables".to_string()];
    planned.skipped = lacking
        .iter()
        .map(|&cell| Skipped {
            cell,
            reasons: reasons.clone(),
            optional: false,
        })
        .collect();
    let results = summary(&campaign, |name| {
        if name.contains("nft-nat") { 1.2e6 } else { 1e6 }
    });
    let judged: Vec<_> = results.expectations.iter().map(|e| e.judgement).collect();
    assert_eq!(
        judged,
        [
            Some(Judgement::Undecided),
            None,
            Some(Judgement::Missed),
            None
        ]
    );
    assert_eq!(results.expectations[1].reasons, reasons);
    let queues = summary(&record(plan!("flows"), true), |_| 1e6);
    assert_eq!(queues.expectations[0].judgement, Some(Judgement::Met));
}

#[test]
fn hardly_any_trials_are_no_figures_rather_than_a_panic() {
    for text in [
        &plan!("firewalls")[..],
        plan!("baseline"),
        plan!("states"),
        plan!("nat"),
        plan!("queues"),
    ] {
        let mut campaign = record(text, true);
        let (all, _) = trials(&campaign, |_| 1e6);
        let none = summarise(&campaign, &[], Stopped::Failed, 0);
        assert!(
            none.rows
                .iter()
                .all(|c| c.received.n == 0 && c.ceiling.is_none_or(|a| a.ratio.is_none()))
        );
        assert!(
            none.expectations
                .iter()
                .all(|e| e.judgement.is_none() && e.reasons.len() == 1)
        );
        let one = summarise(&campaign, &all[..1], Stopped::Interrupted, 0);
        assert!(
            one.comparisons
                .iter()
                .all(|c| c.against.ratio.is_none() && !c.against.proven)
        );
        let invalid: Vec<TrialRecord> = all
            .iter()
            .map(|t| trial(t.trial, (t.block, t.slot), t.began_ns, 1e6, false))
            .collect();
        let invalid = summarise(&campaign, &invalid, Stopped::Budget, 0);
        assert!(invalid.comparisons.iter().all(|c| c.ministat.is_none()));
        let cells = 0..campaign.slots.len();
        let planned = campaign.planned.as_mut().unwrap();
        planned.skipped = cells
            .map(|cell| Skipped {
                cell,
                reasons: vec!["why".into()],
                optional: false,
            })
            .collect();
        let skipped = summarise(&campaign, &[], Stopped::Trials, 0);
        assert!(
            skipped.expectations.iter().all(|e| e.judgement.is_none())
                && skipped.unmeasured.is_empty()
        );
    }
}

#[test]
fn a_plan_that_refers_to_what_is_not_there_is_no_panic() {
    let mut campaign = record(plan!("rules"), true);
    let (all, _) = trials(&campaign, |_| 1e6);
    let slots = &mut campaign.slots;
    slots[1].levels = vec![(99, 0), (0, 99)];
    (slots[2].group, slots[2].ceiling, slots[3].baseline) = (99, Some(99), Some(99));
    let experiment = &mut campaign.planned.as_mut().unwrap().experiment;
    experiment.comparisons[0].of = 99;
    experiment.comparisons[1].why = Interest::Levels(99);
    experiment.expectations[0].pairs.push((99, Some(98)));
    experiment.factors[0].numbers = Some(vec![1.0]);
    let results = summarise(&campaign, &all, Stopped::Budget, 0);
    assert_eq!(results.comparisons[0].against.ratio, None);
}

#[test]
fn a_record_of_an_unknown_strategy_is_refused() {
    let campaign = record(plan!("nat"), true);
    let read = |order: &str| {
        let text = serde_json::to_string(&campaign)
            .unwrap()
            .replace("\"order\":\"blocks\"", order);
        record::read_document::<record::Campaign>("campaign.json", &text)
    };
    assert_eq!(read("\"order\":\"blocks\"").unwrap(), campaign);
    let refused = read("\"order\":\"zigzag\"").unwrap_err().to_string();
    assert!(refused.contains("unknown variant `zigzag`"), "{refused}");
}

#[test]
fn a_record_gives_the_plan_back() {
    for text in [&plan!("firewalls")[..], plan!("rules"), plan!("nat")] {
        let plan = Plan::read(text)
            .unwrap()
            .campaign(System::Linux, true)
            .unwrap()
            .clone();
        let text = serde_json::to_string(&record(text, true)).unwrap();
        let record = record::read_document::<record::Campaign>("campaign.json", &text).unwrap();
        let planned = *record.planned.unwrap();
        assert!(planned.plan["cells"][0].get("name").is_none());
        assert!(planned.plan.get("factors").is_none() && planned.plan.get("lanes").is_some());
        assert_eq!(
            crate::campaign::Campaign::joined(&planned, &record.slots).unwrap(),
            plan
        );
    }
}

#[test]
fn results_are_read_back_as_they_were_written() {
    let summary = summary(&record(plan!("nat"), true), firewalls);
    let text = serde_json::to_string(&summary).unwrap();
    let read = record::read_document::<Summary>("summary.json", &text).unwrap();
    assert_eq!(
        (read.rows.len(), read.expectations.len(), read.series.len()),
        (8, 2, 3)
    );
    assert_eq!(read.comparisons.len(), summary.comparisons.len());
}

proptest! {
    /// All trials, whatever their results, give a result that a record can hold.
    #[test]
    fn any_trials_have_results(
        kept in proptest::collection::vec((0u32..9, 0usize..20, prop_oneof![0.0f64..2e6, Just(1e308), Just(5e-324)], any::<bool>()), 0..80),
        which in 0usize..4,
    ) {
        let text = [&plan!("firewalls")[..], plan!("states"), plan!("nat"), plan!("baseline")][which];
        let campaign = record(text, true);
        let trials: Vec<TrialRecord> = kept
            .iter()
            .enumerate()
            .map(|(n, (block, slot, fps, valid))| trial(n as u64, (*block, *slot), n as u64, *fps, *valid))
            .collect();
        let results = summarise(&campaign, &trials, Stopped::Budget, 0);
        prop_assert_eq!(results.rows.len(), campaign.slots.len());
        let found = (&results.comparisons, &results.series, &results.expectations);
        let text = serde_json::to_string(&found).unwrap();
        let read: (Vec<Compared>, Vec<Series>, Vec<Expected>) = serde_json::from_str(&text).unwrap();
        // The last digit of a number can differ.
        prop_assert_eq!((read.0.len(), read.2.len()), (found.0.len(), found.2.len()));
    }
}

/// A limit of the intervals is a limit of something.
#[test]
fn without_variants_levels_decide_and_without_levels_ceilings() {
    let deciding = |lines: &str| -> Vec<Interest> {
        let comparisons = linux(lines).experiment.comparisons;
        let deciding = comparisons.iter().filter(|comparison| comparison.decides);
        deciding.map(|comparison| comparison.why).collect()
    };
    let until = "compare.until = \"2 %\"\n";
    let what = "compare.what = [\"ceilings\"]\n";
    let one = "[variants.a]\n";
    let two = "[variants.b]\nsysctls = { \"net.ipv4.ip_early_demux\" = 0 }\n";
    let factor = "[factors.flows]\nsets = \"traffic.flows\"\nlevels = [1, 100, 1000]\n";
    let of = |parts: &[&str]| deciding(&parts.concat());
    assert_eq!(of(&[until, one, factor]), [Interest::Levels(0); 2]);
    assert_eq!(of(&[until, one]), [Interest::Ceiling]);
    assert_eq!(of(&[one]), []);
    let all = |found: Vec<Interest>, why| found.iter().all(|one| *one == why);
    assert!(all(of(&[until, one, two, factor]), Interest::Variants));
    assert!(all(of(&[until, what, one, factor]), Interest::Ceiling));
}
