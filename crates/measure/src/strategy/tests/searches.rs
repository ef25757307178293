//! Searches as a strategy: the tester first, invalid trials, and results that follow from the trials.

use super::*;
use crate::experiment::{Measure, WantedGoal};
use crate::record::{Ended, Searched};
use linerate_search::Irregular;

/// The tester alone passes this many frames/s.
pub(super) const CEILING: f64 = 1e6;

fn goal(name: &str, loss: f64) -> WantedGoal {
    WantedGoal {
        name: name.into(),
        loss,
        exceed: 500_000_000,
        times_ns: None,
    }
}

/// A tester and several DUTs.
fn searches(duts: usize) -> Searches {
    searches_of(duts, Direction::Forward)
}

fn searches_of(duts: usize, direction: Direction) -> Searches {
    Searches::new(design_of(duts, direction))
}

/// A search for NDR and PDR of several DUTs.
pub(super) fn design_of(duts: usize, direction: Direction) -> Design {
    let trials = Trials {
        measure: Measure::Search,
        goals: vec![goal("ndr", 0.0), goal("pdr", 0.005)],
        budget_ns: Some(3600 * SECOND),
        duration_ns: SECOND,
        ..Trials::default()
    };
    let mut design = design(duts + 1, vec![], trials, 1);
    design.slots[0].tester = true;
    design
        .slots
        .iter_mut()
        .for_each(|slot| slot.direction = direction);
    design.slots[1..]
        .iter_mut()
        .for_each(|slot| slot.ceiling = Some(0));
    design
}

/// Runs the searches against DUTs that forward this many frames/s; `valid`: whether a trial of a DUT at a load is.
fn search(
    it: &mut Searches,
    capacity: f64,
    valid: impl Fn(f64) -> bool,
) -> (Vec<Searched>, Vec<TrialRequest>) {
    let (mut elapsed, mut requests) = (0, Vec::new());
    while let Ok(request) = it.next(&at(elapsed)) {
        let load = request.load.unwrap_or(f64::INFINITY);
        let passed = if request.slot == 0 {
            load.min(CEILING)
        } else {
            load.min(capacity)
        };
        let ok = request.slot == 0 || valid(load);
        it.observe(&Observed {
            request,
            valid: ok,
            received: ok.then_some(passed),
            handled: ok.then_some(passed),
            offered: Some(if ok { load } else { load.min(0.6 * CEILING) }),
            loss_ratio: if load.is_finite() {
                1.0 - passed / load
            } else {
                0.0
            },
            full: None,
        });
        requests.push(request);
        elapsed += SECOND;
    }
    (it.searches(), requests)
}

#[test]
fn a_known_rate_is_found_and_cells_take_turns() {
    let mut it = searches(2);
    let (found, requests) = search(&mut it, 4e5, |_| true);
    let alone = requests
        .iter()
        .take_while(|request| request.slot == 0)
        .count();
    assert_eq!(alone, 23, "the tester alone comes first");
    let turns: Vec<usize> = requests[alone..]
        .iter()
        .take(4)
        .map(|request| request.slot)
        .collect();
    assert_eq!(turns, [1, 2, 1, 2]);
    assert!(
        requests
            .iter()
            .filter_map(|request| request.load)
            .all(|load| load <= 0.95 * CEILING)
    );
    for search in found {
        assert_eq!(
            (search.ended, search.stalls),
            (Some(Ended::Known), Some(0.0))
        );
        let [ndr, pdr] = [0, 1].map(|goal| search.goals[goal].outcome);
        assert_eq!((ndr.irregular, pdr.irregular), (None, None));
        let (low, high) = (ndr.lower.unwrap(), ndr.upper.unwrap());
        assert!(
            (0.995 * 4e5..=4e5).contains(&low) && high > 4e5 && (high - low) / high <= 0.005,
            "{ndr:?}"
        );
        assert!(
            (pdr.conditional.unwrap() / 4e5 - 1.0).abs() < 0.005,
            "{pdr:?}"
        );
    }
}

#[test]
fn a_dut_faster_than_the_tester_meets_the_goal_at_the_highest_load() {
    let (found, _) = search(&mut searches(1), 2e6, |_| true);
    let ndr = found[0].goals[0].outcome;
    assert_eq!(
        (ndr.irregular, ndr.lower),
        (Some(Irregular::MaxLoad), Some(0.95 * CEILING))
    );
}

#[test]
fn a_dut_that_forwards_nothing_has_no_lower_bound() {
    let (found, _) = search(&mut searches(1), 0.0, |_| true);
    let ndr = found[0].goals[0].outcome;
    assert_eq!(
        (ndr.irregular, ndr.lower, ndr.upper),
        (Some(Irregular::MinLoad), None, Some(LEAST_FPS))
    );
}

#[test]
fn loads_that_the_tester_cannot_keep_beside_the_dut_end_below_its_rate() {
    let mut it = searches(1);
    let (found, requests) = search(&mut it, 4e5, |load| load < 0.6 * CEILING);
    assert_eq!(found[0].limits.max, 0.95 * 0.6 * CEILING);
    // The page says that this is not 95 % of the tester's own rate.
    assert_eq!(it.kept(1), Some(0.6 * CEILING));
    assert_eq!(found[0].goals[0].outcome.irregular, None);
    let first = requests
        .iter()
        .filter(|request| request.load == Some(0.95 * CEILING));
    assert_eq!(first.count(), 3, "a load is tried three times");
}

#[test]
fn three_invalid_trials_in_succession_name_the_tester() {
    let (found, _) = search(&mut searches(1), 4e5, |load| load > 4.5e5);
    assert_eq!(found[0].ended, Some(Ended::Tester));
    assert_eq!(
        found[0].goals[0].outcome.irregular,
        Some(Irregular::Unfinished)
    );
}

/// Runs a search against a DUT whose table holds this many connections, each for longer than a trial.
fn search_with_table(it: &mut Searches, capacity: f64, limit: u64) -> (Searched, Vec<f64>) {
    let (mut elapsed, mut loads) = (0, Vec::new());
    while let Ok(request) = it.next(&at(elapsed)) {
        let load = request.load.unwrap_or(CEILING);
        let ways = if request.slot == 0 { CEILING } else { capacity };
        let seconds = (request.duration_ns + SECOND / 10) as f64 / 1e9;
        let is_full = request.slot == 1 && load * seconds > limit as f64;
        let full = is_full.then_some(FullTable {
            limit,
            warm_up_ns: SECOND / 10,
        });
        it.observe(&Observed {
            loss_ratio: (1.0 - ways / load).max(0.0),
            offered: Some(load),
            full,
            ..observed(request, (!is_full).then_some(load.min(ways)))
        });
        loads.extend((request.slot == 1).then_some(load));
        elapsed += SECOND;
    }
    (it.searches().remove(0), loads)
}

#[test]
fn a_full_table_lowers_the_loads_and_is_not_the_testers_fault() {
    let (found, loads) = search_with_table(&mut searches(1), 1e5, 262_144);
    let most = 0.9 * 262_144.0 / 1.1;
    assert_eq!((found.table, found.limits.max), (Some(262_144), most));
    assert_eq!(found.ended, Some(Ended::Known));
    assert!(loads[1..].iter().all(|load| *load <= most), "{loads:?}");
    let ndr = found.goals[0].outcome;
    assert_eq!(ndr.irregular, None);
    assert!((0.995 * 1e5..=1e5).contains(&ndr.lower.unwrap()), "{ndr:?}");
    // The DUT is faster than its table allows to see.
    let (found, _) = search_with_table(&mut searches(1), 4e5, 262_144);
    let ndr = found.goals[0].outcome;
    assert_eq!(
        (ndr.irregular, ndr.lower),
        (Some(Irregular::MaxLoad), Some(most))
    );
    // Not even the lowest load fits.
    let (found, loads) = search_with_table(&mut searches(1), 4e5, 1000);
    assert_eq!((found.ended, loads.len()), (Some(Ended::Table), 3));
    assert!(found.stopped(Stopped::Precise).contains("nf_conntrack_max"));
}

#[test]
fn stalls_make_trials_shorter() {
    let mut it = searches(1);
    for number in 0..23 {
        let request = it.next(&at(0)).unwrap();
        // Ten of the twenty trials at half rate lose something.
        let loss_ratio = if number >= 13 { 1e-4 } else { 0.0 };
        it.observe(&Observed {
            loss_ratio,
            ..observed(request, Some(CEILING))
        });
    }
    let request = it.next(&at(0)).unwrap();
    // ln 2 stalls in 250 ms are 2.77 a second; 1 s / 2.77 / 1.5.
    assert_eq!((request.slot, request.duration_ns), (1, 240_000_000));
    assert_eq!(it.searches()[0].disturbed(250_000_000), 0.5);
}

#[test]
fn the_same_trials_give_the_same_requests() {
    let (_, requests) = search(&mut searches(2), 4e5, |_| true);
    let (_, again) = search(&mut searches(2), 4e5, |_| true);
    assert_eq!(requests, again);
}

#[test]
fn the_end_of_the_budget_leaves_the_results_unfinished() {
    let mut it = searches(1);
    assert_eq!(it.next(&at(3600 * SECOND)), Err(Stopped::Budget));
    assert!(it.searches()[0].goals.is_empty() && it.searches()[0].ended.is_none());
}

/// The tester's rate and the DUT's count both directions; loads are those of each.
#[test]
fn loads_are_those_of_each_direction() {
    let mut it = searches_of(1, Direction::Both);
    let (mut elapsed, mut most) = (0, 0.0f64);
    while let Ok(request) = it.next(&at(elapsed)) {
        let offered = request.load.map_or(CEILING, |load| 2.0 * load);
        let passed = if request.slot == 0 {
            offered.min(CEILING)
        } else {
            offered.min(4e5)
        };
        let (received, loss_ratio) = (Some(passed), 1.0 - passed / offered);
        let handled = received;
        it.observe(&Observed {
            request,
            valid: true,
            received,
            handled,
            offered: Some(offered),
            loss_ratio,
            full: None,
        });
        most = most.max(request.load.unwrap_or(0.0));
        elapsed += SECOND;
    }
    let ndr = it.searches()[0].goals[0].outcome;
    assert!((0.995 * 2e5..=2e5).contains(&ndr.lower.unwrap()), "{ndr:?}");
    assert!(most <= 0.95 * CEILING / 2.0, "{most}");
}
