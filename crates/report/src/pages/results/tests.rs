//! The texts of plans that were carried out, as a person sees them.

use super::super::summary;
use super::super::tests::{campaign as bench, host, lossy, planned, slot, trial};
use crate::pages::Style;
use expect_test::expect_file;
use linerate_measure::audit::{Cause, Evidence, audit};
use linerate_measure::experiment::{System, Trials};
use linerate_measure::record::{
    Campaign, Mode, Searched, SearchedGoal, SearchedLoad, Skipped, Slot, Stopped, TrialRecord,
};
use linerate_measure::summary::summarise;
use linerate_plan::Plan;
use linerate_search::{Goal, Irregular, Limits, Outcome};

pub(super) const WIDE: Style = Style {
    color: false,
    width: 120,
};

macro_rules! plan {
    ($name:literal) => {
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../plans/",
            $name,
            ".toml"
        ))
    };
}

mod first;
mod ministat;
mod pictures;

/// A campaign of a plan's text.
pub fn campaign(text: &[u8], quick: bool) -> Campaign {
    let plan = Plan::read(text)
        .unwrap()
        .campaign(System::Linux, quick)
        .unwrap()
        .clone();
    let mut campaign = bench(Mode::Inline);
    let cells = plan.cells.iter().enumerate();
    let of_cell = |(id, c): (usize, &linerate_plan::campaign::Cell)| {
        let kind = &plan.kinds[c.kind];
        Slot {
            name: c.name.clone(),
            plan_variant: c.variant.clone(),
            levels: c.levels.clone(),
            flows: Some(kind.flows.into()),
            order: kind.order.to_string(),
            rate: c.rate.to_string(),
            ..slot(id, &c.name, 64, c.ceiling, c.baseline)
        }
    };
    campaign.slots = cells.map(of_cell).collect();
    campaign.planned = Some(Box::new(planned(Some("plan.toml".into()), plan)));
    campaign
}

/// Ten blocks of the slots that are not skipped, with a machine that slows down by 20 % and a wobble of up to 1 %.
fn blocks(campaign: &Campaign, rate: impl Fn(&str) -> f64) -> Vec<TrialRecord> {
    let planned = campaign.planned.as_ref().unwrap();
    let mut all = Vec::new();
    for block in 0..10u32 {
        for slot in campaign
            .slots
            .iter()
            .filter(|s| planned.lacking(s.id).is_empty())
        {
            let wobble =
                1.0 + 0.002 * f64::from((block * block * (slot.id as u32 + 3) + 5 * block) % 7);
            let fps = rate(&slot.variant) * wobble * (1.0 - 0.02 * f64::from(block));
            all.push(trial(all.len() as u64, block, slot.id, fps, fps));
        }
    }
    all
}

pub(super) fn text(campaign: &Campaign, trials: &[TrialRecord], style: Style) -> String {
    summary(
        campaign,
        &host(),
        &summarise(campaign, trials, Stopped::Budget, 0),
    )
    .text(style)
}

fn firewalls(name: &str) -> f64 {
    match name.split_once(',').map_or(name, |(variant, _)| variant) {
        "tester-baseline" => 5e6,
        "forwarding" | "iptables-stateless" => 1e6,
        "nft-stateless" => 0.97e6,
        "nft-nat" => 1.2e6,
        _ => 0.7e6,
    }
}

#[test]
fn variants() {
    let mut c = campaign(plan!("firewalls"), true);
    let last = c.slots.len() - 1;
    let planned = c.planned.as_mut().unwrap();
    planned.skipped = vec![Skipped {
        cell: last,
        reasons: vec!["there is no program iptables".into()],
        optional: true,
    }];
    let mut trials = blocks(&c, firewalls);
    trials[0].audit = audit(&Evidence {
        faults: vec!["interface g0 went down".into()],
        ..Evidence::default()
    });
    expect_file!["firewalls.txt"].assert_eq(&text(&c, &trials, WIDE));
}

#[test]
fn a_variant_that_drops_is_told_from_a_slower_one_and_one_that_drops_all_from_both() {
    let c = campaign(plan!("firewalls"), true);
    let mut trials = blocks(&c, firewalls);
    for t in trials.iter_mut() {
        let passed = match c.slots[t.slot].variant.split(',').next().unwrap() {
            "nft-stateless" => 0.5,
            "nft-nat" => 0.0,
            _ => continue,
        };
        let offered = t.rates.unwrap().offered;
        let place = "DUT: dropped by the rule set (counter dropped)";
        *t = lossy(
            t.trial,
            t.block,
            t.slot,
            [offered, passed * offered],
            place,
            Cause::Dropped,
        );
    }
    let text = text(&c, &trials, WIDE);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "nft-nat dropped every test frame (DUT: dropped by the rule set (counter dropped)): its rules",
        "nft-stateless passes 50.0 % of the frames; an offered frame costs 3.1 % more than with forwarding, 95 % interval 2.7..3.7 %.",
        "nft-nat passes 0 % of the frames; an offered frame costs 16.6 % less than with forwarding, 95 % interval",
        "50.0 0.298 0.227 1127 909 DUT drops",
        "nft-stateless: 50.0 % of the sent frames",
        "no frame passed",
    ] {
        assert!(flat.contains(said), "no '{said}' in\n{text}");
    }
    assert!(
        !flat.contains("nft-stateless forwards") && !flat.contains("-100.00"),
        "{text}"
    );
    let drops = text
        .lines()
        .find(|line| line.contains("nft-stateless") && line.ends_with("drops"));
    assert!(drops.is_some(), "{text}");
}

#[test]
fn of_two_that_drop_all_none_drops_less() {
    let c = campaign(plan!("firewalls"), true);
    let mut trials = blocks(&c, firewalls);
    for t in trials.iter_mut() {
        let variant = c.slots[t.slot].plan_variant.as_str();
        if variant == "forwarding" || variant == "nft-nat" {
            let offered = [t.rates.unwrap().offered, 0.0];
            let place = "DUT: Ip.InAddrErrors";
            *t = lossy(t.trial, t.block, t.slot, offered, place, Cause::Dropped);
        }
    }
    let text = text(&c, &trials, WIDE);
    let row = text
        .lines()
        .find(|line| line.contains(" nft-nat  "))
        .unwrap();
    assert!(!row.contains("drops"), "{row}");
    assert!(text.contains("drops less"), "{text}");
}

/// The page for a browser has what the first page on a terminal has.
#[test]
fn the_whole_page_begins_with_the_table_of_the_first() {
    let mut c = campaign(plan!("firewalls"), true);
    let drawn = |c: &Campaign| {
        let trials = &blocks(c, firewalls);
        let summary = &summarise(c, trials, Stopped::Budget, 0);
        let (host, stacks) = (&host(), &Default::default());
        super::super::report(&super::super::Records {
            campaign: c,
            host,
            summary,
            trials,
            facts: &[],
            stacks,
        })
        .text(WIDE)
    };
    let page = drawn(&c);
    let (top, _) = page.split_once("nft-nat").unwrap();
    assert!(
        page.contains("trust    ") && page.contains("calculated"),
        "{page}"
    );
    assert!(top.len() < page.len() / 4, "{page}");
    // Beside a measured figure of the same length, a calculated one would differ.
    c.slots[2].lengths_fcs = vec![1518];
    assert!(!drawn(&c).contains("calculated"));
}

/// Time in which trials waited for another linerate is told apart from the overhead.
#[test]
fn waits_are_no_overhead() {
    let c = campaign(plan!("firewalls"), true);
    let mut trials = blocks(&c, firewalls);
    let words = |trials: &[TrialRecord]| {
        let mut found = summarise(&c, trials, Stopped::Budget, 0);
        found.lengthen(found.seconds);
        let text = summary(&c, &host(), &found).text(WIDE);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, text) = text.split_once("of this time, ").unwrap();
        text.split_once(" %.").unwrap().0.to_string()
    };
    assert!(words(&trials).starts_with("overhead "));
    // Of a campaign that is twice as long once the lab is put back.
    let seconds = summarise(&c, &trials, Stopped::Budget, 0).seconds;
    trials[0].waited_ns = (seconds * 0.02 * 1e9) as u64;
    assert!(words(&trials).starts_with("waiting for another linerate 1.0 %, overhead "));
}

/// A reader who asked for a variant learns first that it is not there.
#[test]
fn a_variant_that_was_asked_for_and_not_measured_is_told_first() {
    let mut c = campaign(plan!("firewalls"), true);
    let planned = c.planned.as_mut().unwrap();
    let all = c
        .slots
        .iter()
        .filter(|slot| slot.plan_variant.starts_with("nft-"));
    let lacks = |optional| {
        move |slot: &Slot| Skipped {
            cell: slot.id,
            reasons: vec!["no nft".into()],
            optional,
        }
    };
    planned.skipped = all.clone().map(lacks(false)).collect();
    let first = |c: &Campaign| {
        let text = text(c, &blocks(c, firewalls), WIDE);
        text.lines()
            .skip_while(|line| !line.is_empty())
            .nth(1)
            .unwrap()
            .to_string()
    };
    assert_eq!(c.missing().len(), 3);
    assert!(
        first(&c).ends_with("it was asked for: nft-stateless; nft-stateful; nft-nat: no nft."),
        "{}",
        first(&c)
    );
    c.planned.as_mut().unwrap().skipped = all.map(lacks(true)).collect();
    assert_eq!(c.missing(), []);
    assert!(
        first(&c).starts_with("Not measured here, for the reasons below: nft-stateless"),
        "{}",
        first(&c)
    );
}

/// In the sentence with the figure, of rates and of searches.
#[test]
fn what_spoils_a_figure_stands_beside_it() {
    let c = campaign(plan!("firewalls"), true);
    let mut trials = blocks(&c, firewalls);
    trials
        .iter_mut()
        .flat_map(|t| &mut t.cpus)
        .for_each(|cpu| (cpu.user, cpu.steal) = (0.38, 0.125));
    let mut found = summarise(&c, &trials, Stopped::Budget, 0);
    let flat = |found: &_| {
        let text = summary(&c, &host(), found).text(WIDE);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let spoiled = "disturbed: other programs took 38 % of a CPU of the lab, the hypervisor took 12.5 % of the CPUs' time";
    let rates = flat(&found);
    let sentence = rates
        .split(". ")
        .find(|sentence| sentence.contains("frames a second"))
        .unwrap();
    assert!(sentence.contains(&format!("; {spoiled})")), "{rates}");
    assert!(
        rates.contains("stop them, or give the lab other CPUs"),
        "{rates}"
    );
    // Each verb names what it has.
    for (verb, has) in [
        ("rfc2544", "with --cpus"),
        ("run", "with generator-cpus and dut-cpus"),
    ] {
        let mut c = c.clone();
        c.asked.command = vec!["linerate".into(), verb.into()];
        let found = summarise(&c, &trials, Stopped::Budget, 0);
        let told = found
            .warnings
            .iter()
            .any(|warning| warning.text.contains(has));
        assert!(told, "{verb}: {:?}", found.warnings);
    }
    let found_rate = Outcome {
        lower: Some(1e5),
        upper: None,
        conditional: Some(1e5),
        irregular: None,
    };
    let irregular = Outcome {
        irregular: Some(Irregular::Unfinished),
        ..found_rate
    };
    let goal = Goal::new(0.0, 0, 1_000_000_000, 1_000_000_000);
    found.searches = vec![Searched {
        slot: 1,
        goals: vec![SearchedGoal {
            name: "ndr".into(),
            goal,
            outcome: irregular,
            interval: [None; 2],
        }],
        limits: Limits::new(1e3, 1e6).unwrap(),
        stalls: None,
        loads: Vec::new(),
        stability: None,
        table: None,
        ended: None,
    }];
    let searched = flat(&found);
    let sentence = format!(
        "ndr: at least 100.0 thousand frames a second ({spoiled}); the time ran out before the bounds were close (RFC 9971: irregular)."
    );
    assert!(searched.contains(&sentence), "{searched}");
}

/// Two goals, of which the strict one is unknown; a full table; and a load whose only trial lost nothing.
#[test]
fn a_search_says_that_the_table_decided_and_that_a_load_lost_nothing() {
    let c = campaign(plan!("firewalls"), true);
    let mut found = summarise(&c, &blocks(&c, firewalls), Stopped::Budget, 0);
    let goal = |name: &str, loss, lower, irregular| SearchedGoal {
        name: name.into(),
        goal: Goal {
            loss,
            ..Goal::new(0.0, 0, 1_000_000_000, 1_000_000_000)
        },
        outcome: Outcome {
            lower,
            upper: None,
            conditional: lower,
            irregular,
        },
        interval: [None; 2],
    };
    let load = |loss| SearchedLoad {
        load: 5e4,
        trials: 1,
        clean: usize::from(loss == 0.0),
        loss,
        most: loss,
    };
    let mut said = |loss| {
        found.searches = vec![Searched {
            slot: 1,
            goals: vec![
                goal("ndr", 0.0, None, Some(Irregular::Unfinished)),
                goal("pdr", 0.005, Some(2e5), Some(Irregular::MaxLoad)),
            ],
            limits: Limits::new(1e3, 2e5).unwrap(),
            stalls: None,
            loads: vec![load(loss)],
            stability: None,
            table: Some(262_144),
            ended: None,
        }];
        let text = summary(&c, &host(), &found).text(WIDE);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let lossy = said(0.001);
    assert!(lossy.contains("no load meets ndr"), "{lossy}");
    let clean = said(0.0);
    assert!(!clean.contains("no load meets ndr"), "{clean}");
    let table = "trials with a higher load would fill the DUT's table of 262144 connections (nf_conntrack_max)";
    assert!(clean.contains(table), "{clean}");
}

/// Before a search's first trial of the DUT, and on its page.
#[test]
fn stalls_that_make_a_goal_without_loss_meaningless_are_named() {
    let outcome = Outcome {
        lower: None,
        upper: None,
        conditional: None,
        irregular: Some(Irregular::MinLoad),
    };
    let goal = |name: &str, loss, ms: u64| SearchedGoal {
        name: name.into(),
        goal: Goal {
            loss,
            exceed: 500_000_000,
            ..Goal::new(0.0, 0, ms * 1_000_000, ms * 1_000_000)
        },
        outcome,
        interval: [None; 2],
    };
    let said = |stalls, goals| {
        let limits = Limits::new(1e3, 1e6).unwrap();
        let search = Searched {
            slot: 1,
            goals,
            limits,
            stalls,
            loads: Vec::new(),
            stability: None,
            table: None,
            ended: None,
        };
        let trials = Trials {
            duration_ns: 1_000_000_000,
            ..Trials::default()
        };
        super::stalls(&trials, &[search]).unwrap_or_default()
    };
    assert_eq!(said(None, vec![goal("ndr", 0.0, 1000)]), "");
    assert_eq!(said(Some(0.0), vec![goal("ndr", 0.0, 1000)]), "");
    let shorter = "the tester alone lost frames 2.8 times a second at half of its rate. Trials of ndr and pdr therefore last 240 ms instead of 1 s.";
    assert_eq!(
        said(
            Some(2.77),
            vec![goal("ndr", 0.0, 240), goal("pdr", 0.005, 240)]
        ),
        shorter
    );
    let only = said(
        Some(40.0),
        vec![goal("ndr", 0.0, 50), goal("pdr", 0.005, 50)],
    );
    let why = "disturb 86 % of all trials of 50 ms, so ndr measures the machine, and not the DUT: use pdr";
    assert!(only.contains(why), "{only}");
    let fixed = said(Some(0.2), vec![goal("rfc2544", 0.0, 60_000)]);
    assert!(
        fixed.contains("100 % of all trials of 60 s") && fixed.contains("use a search for pdr"),
        "{fixed}"
    );
}

#[test]
fn sweeps_and_speed_ups() {
    let c = campaign(plan!("rules"), true);
    let rate = |name: &str| match name.rsplit_once(' ').map_or("", |(_, level)| level) {
        "10000" => 0.01e6,
        "1000" => 0.2e6,
        "0" | "10" => 1e6,
        _ => 5e6,
    };
    let rules = text(
        &c,
        &blocks(&c, rate),
        Style {
            color: false,
            width: 100,
        },
    );
    let c = campaign(plan!("nat"), false);
    let rate = |name: &str| if name.ends_with("all") { 1.9e6 } else { 1e6 };
    let nat = text(
        &c,
        &blocks(&c, rate),
        Style {
            color: false,
            width: 100,
        },
    );
    let until = |text: &str, end: &str| text.split_once(end).map(|(t, _)| t.to_string()).unwrap();
    let both = until(&rules, "What was expected") + "\n---\n" + &until(&nat, "What was expected");
    expect_file!["sweeps.txt"].assert_eq(&both);
}

#[test]
fn many_cells_fit_any_width_and_all_is_ascii() {
    let mut c = campaign(plan!("flows"), false);
    let all = blocks(&c, |name| 1e6 + name.len() as f64);
    c.planned.as_mut().unwrap().experiment.title = "a \u{1b}[31m title".into();
    for width in [40, 60, 80, 100, 200] {
        for trials in [&all[..], &all[..1], &[]] {
            let text = text(
                &c,
                trials,
                Style {
                    color: false,
                    width,
                },
            );
            assert!(text.chars().all(|c| c == '\n' || (' '..='~').contains(&c)));
            let longest = text.lines().max_by_key(|l| l.len()).unwrap();
            assert!(longest.len() <= width, "{width}: {longest}");
        }
    }
    let lines = text(&c, &all, WIDE).lines().count();
    assert!(
        lines < 150,
        "{lines} lines for {} cells:\n{}",
        c.slots.len(),
        text(&c, &all, WIDE)
    );
}

#[test]
fn nothing_measured_is_said_and_nothing_is_claimed() {
    let mut c = campaign(plan!("firewalls"), true);
    let none = text(&c, &[], WIDE);
    assert!(
        none.contains("\nNo trial was run, so there is no figure.\n"),
        "{none}"
    );
    assert!(
        none.contains("4 not judged") && !none.contains("proven"),
        "{none}"
    );
    let mut failed = blocks(&c, firewalls);
    failed
        .iter_mut()
        .for_each(|t| t.audit = audit(&Evidence::default()));
    let failed = text(
        &c,
        &failed,
        Style {
            color: false,
            width: 400,
        },
    );
    assert!(
        failed.contains("\nNo valid trial of a DUT, so no figure.\n"),
        "{failed}"
    );
    assert_eq!(
        failed
            .matches("could not be measured: all 10 trials failed")
            .count(),
        1,
        "{failed}"
    );
    let few = text(&c, &blocks(&c, firewalls)[..16], WIDE);
    assert!(
        few.contains("\nToo short for 8 comparisons (2 are not in the column change, such as nft-stateful against nft-stateless): use a longer"),
        "{few}"
    );
    let stopped = summarise(&c, &blocks(&c, firewalls)[..16], Stopped::Interrupted, 0);
    let stopped = summary(&c, &host(), &stopped).text(WIDE);
    assert!(
        stopped.contains(
            "Interrupted too early for 8 comparisons (2 are not in the column change, such as nft-stateful against nft-stateless):"
        ) && !stopped.contains("--budget"),
        "{stopped}"
    );
    let cells = 0..c.slots.len();
    let planned = c.planned.as_mut().unwrap();
    planned.skipped = cells
        .map(|cell| Skipped {
            cell,
            reasons: vec!["no nft".into()],
            optional: false,
        })
        .collect();
    let skipped = text(&c, &[], WIDE);
    assert!(
        skipped.contains("            no nft\n") && skipped.contains("Not measured"),
        "{skipped}"
    );
}
