//! The DUT, the tester and the trials, of all tests.

use super::{must, should, step};
use crate::Part::{All, Beside, Searches, Test};
use crate::case::{
    Case, Outcome, SECOND, SIZES, fails, holds, met, not_applicable, not_run, seconds,
};
use crate::{ADDRESSES, CONFIGURATION, SOFTWARE, STATEMENT, Section};
use linerate_hosts::configuration::{Configuration, addresses};
use linerate_measure::audit::OFFERED_TOLERANCE;
use linerate_measure::experiment::Benchmark::{FrameLoss, Reset, Throughput};
use linerate_measure::record::{Benchmarked, Direction, Figures, LabKind, Slot, TrialRecord};
use std::collections::BTreeMap;

pub const SECTIONS: &[Section] = &[
    (
        All,
        &[
            step(
                "2544-6",
                "one tester on both sides of the DUT, or a sender and a receiver under one control",
                |case| {
                    let asked = &case.campaign.asked;
                    match asked.lab {
                        LabKind::Simulated => not_run("simulated, without a tester and a DUT"),
                        LabKind::Imported => not_run("linerate did not make these trials"),
                        _ => met(format!(
                            "{} sends, {} receives, linerate controls both",
                            asked.generator, asked.receiver
                        )),
                    }
                },
            ),
            must(
                "2544-7a",
                "the DUT is set up as its instructions say",
                |case| match case.campaign.standing.get(STATEMENT) {
                    Some(said) => met(format!("the operator states: {said}")),
                    None if case.campaign.asked.lab == LabKind::Hosts => not_run(
                        "only the operator knows: write `statement = \"...\"` at the DUT of the lab file",
                    ),
                    None => not_run(
                        "only the operator knows: state it with --statement \"...\", or with `statement` in [lab] of the plan",
                    ),
                },
            ),
            must(
                "2544-7b",
                "nothing changes between tests, except as the test requires",
                unchanged,
            ),
            must(
                "2544-7c",
                "the report has the DUT's software and exact configuration",
                configured,
            ),
            should(
                "2544-7d",
                "routing updates and keepalives at their usual intervals",
                |_| fails("routes and neighbours are static, without updates"),
            ),
            should(
                "2544-9a",
                "the smallest and the largest legal frame are among the sizes",
                |case| {
                    let sizes = case.sizes();
                    let (first, last) = (
                        sizes.first().copied().unwrap_or(0),
                        sizes.last().copied().unwrap_or(0),
                    );
                    holds(
                        first == 64 && last >= 1518,
                        format!("from {first} to {last} B"),
                    )
                },
            ),
            should("2544-9b", "at least five frame sizes", |case| {
                holds(
                    case.sizes().len() >= 5,
                    format!("{} sizes", case.sizes().len()),
                )
            }),
            should(
                "2544-9.4",
                "links of unequal MTU: the sizes of the larger one",
                |case| {
                    let mtus = case
                        .facts
                        .iter()
                        .filter_map(Configuration::recorded)
                        .map(|of| {
                            of.cards
                                .iter()
                                .filter_map(|card| card.mtu)
                                .collect::<Vec<_>>()
                        });
                    let mtus: Vec<Vec<u32>> = mtus.filter(|mtus| mtus.len() > 1).collect();
                    match mtus
                        .iter()
                        .find(|mtus| mtus.iter().any(|mtu| *mtu != mtus[0]))
                    {
                        _ if mtus.is_empty() => not_run("the records have no MTUs of both links"),
                        None => not_applicable("both links have the same MTU"),
                        Some(mtus) => {
                            let largest = mtus.iter().max().copied().unwrap_or(0) + 18;
                            let last = case.sizes().last().copied().unwrap_or(0);
                            holds(
                                u32::from(last) >= largest,
                                format!(
                                    "the larger MTU carries {largest} B with FCS, the largest size is {last} B"
                                ),
                            )
                        }
                    }
                },
            ),
            must(
                "2544-13a",
                "a routing update with all networks at the start of each trial",
                |case| {
                    if !case.slots.is_empty()
                        && case.slots.iter().all(|slot| slot.plan_variant == "bridge")
                    {
                        return not_applicable("a bridge takes no routing updates");
                    }
                    match connected(case) {
                        Outcome::Met(networks) => not_applicable(networks),
                        Outcome::Fails(why) => fails(format!("routes are static, and {why}")),
                        unknown => unknown,
                    }
                },
            ),
            should(
                "2544-13b",
                "one next hop for all networks",
                |case| match connected(case) {
                    Outcome::Met(networks) => not_applicable(networks),
                    _ if case.campaign.asked.lab == LabKind::Namespaces => {
                        met("the receiver's address is the next hop for all networks")
                    }
                    _ => not_run("the records do not have the DUT's next hops"),
                },
            ),
            should(
                "2544-14",
                "a series with equal rates in both directions",
                |case| {
                    if !case.both_ways() {
                        return fails("one direction only");
                    }
                    let both = case
                        .trials
                        .iter()
                        .filter(|trial| !trial.directions.is_empty());
                    case.each_numbered(
                        both.copied(),
                        "trials with equal loads in both directions at once",
                        |trial| {
                            let [there, back] = [0, 1]
                                .map(|way| trial.directions.get(way).map_or(0, |way| way.sent));
                            (there.abs_diff(back) as f64
                                > 2.0 * OFFERED_TOLERANCE * there.max(back) as f64)
                                .then(|| format!("{there} frames there, {back} back"))
                        },
                    )
                },
            ),
            should(
                "2544-15",
                "one input port and one output port",
                |case| match two_ports(case) {
                    true => met("one link in, one link out"),
                    false => not_run("the records do not count the ports"),
                },
            ),
            should(
                "2544-16",
                "several ports: half in, half out, at equal rates",
                |case| match two_ports(case) {
                    true => not_applicable("one link in, one link out"),
                    false => not_run("the records do not count the ports"),
                },
            ),
            should(
                "2544-20",
                "loads up to the theoretical maximum of the medium",
                |case| {
                    case.with_medium(|| {
                        case.each(case.benchmarks, "the maximum was offered", |of| {
                            let maximum = of.maximum?;
                            let offered = case
                                .trials
                                .iter()
                                .filter(|trial| trial.slot == of.slot)
                                .filter_map(|trial| trial.asked_fps);
                            let most = offered.fold(0.0, f64::max);
                            let name = case.name_of(of.slot);
                            (most < 0.99 * maximum.fps).then(|| {
                                format!("{name}: at most {most:.0} of {:.0} frames/s", maximum.fps)
                            })
                        })
                    })
                },
            ),
            step(
                "2544-23",
                "4 s between routing update, learning frames and trial; after it 2 s for the last frames and 5 s of rest",
                |case| {
                    case.each(case.trials.clone(), "trials with these waits", |trial| {
                        let (timing, pause) = (trial.timing, case.design.pause_ns);
                        let kept = pause >= 4 * SECOND
                            && timing.drain_ns >= 2 * SECOND
                            && timing.settle_ns >= 5 * SECOND;
                        (!kept).then(|| {
                            format!(
                                "{} s before a trial, at most {} s for the last frames, {} s of rest",
                                seconds(pause),
                                seconds(timing.drain_ns),
                                seconds(timing.settle_ns)
                            )
                        })
                    })
                },
            ),
            should(
                "2544-24a",
                "trials of at least 60 s, except those of a search before its last",
                |case| {
                    // A search may use shorter ones: 2544-24b looks at those that decide.
                    let trials = case.of(FrameLoss);
                    let short = trials
                        .iter()
                        .filter(|trial| trial.timing.run_ns < 60 * SECOND)
                        .count();
                    match trials.len() {
                        0 => not_applicable(
                            "only searches, whose trials may be shorter; see 2544-24b",
                        ),
                        all => holds(
                            short == 0,
                            format!("{short} of {all} trials of frame loss are shorter"),
                        ),
                    }
                },
            ),
            should(
                "2544-25",
                "the tester answers ARP and neighbour discovery",
                |case| match case.campaign.asked.lab {
                    LabKind::Namespaces => fails("neighbours are static"),
                    _ => not_run("the records do not show who answered"),
                },
            ),
            must("6815-5", "only on an isolated network", |case| {
                case.each(
                    case.traffics(),
                    "all addresses are of 198.18.0.0/15 or 2001:2::/48",
                    |traffic| {
                        let ends = [traffic.flows.source(), traffic.flows.destination()];
                        let addresses = ends
                            .iter()
                            .flat_map(|end| [end.first_address(), end.last_address()]);
                        addresses
                            .into_iter()
                            .find(|address| !is_benchmarks(*address))
                            .map(|address| {
                                format!("{address} lies outside the addresses for benchmarks")
                            })
                    },
                )
            }),
            should(
                "8219-4",
                "dynamic routing, with routing and management frames",
                |_| fails("routes are static, and no management frames are sent"),
            ),
            must(
                "8219-5.1",
                "the maximum rate allows for translation, and the details of the medium are given",
                |_| not_applicable("no translation between IPv4 and IPv6"),
            ),
            should("8219-5.3", "both directions; UDP", |case| {
                let udp = case.slots.iter().all(|slot| slot.transport == "UDP");
                let found = format!(
                    "{}, {}",
                    if case.both_ways() {
                        "both directions"
                    } else {
                        "one direction"
                    },
                    if udp { "UDP" } else { "not UDP" }
                );
                holds(udp && case.both_ways(), found)
            }),
        ],
    ),
    (
        Beside("bursts"),
        &[should(
            "2544-21",
            "bursts of 16, 64, 256 and 1024 frames with the shortest interval without loss",
            bursts,
        )],
    ),
    (
        Test(Throughput),
        &[should(
            "2544-24b",
            "the deciding trial has the full length",
            |case| {
                case.each(found(case), "throughputs by trials of 60 s", |slot| {
                    let throughput = case.throughput(*slot)?;
                    let longest = at(case, *slot, throughput)
                        .map(|trial| trial.timing.run_ns)
                        .max()
                        .unwrap_or(0);
                    (longest < 60 * SECOND)
                        .then(|| format!("{}: {} s", case.name_of(*slot), seconds(longest)))
                })
            },
        )],
    ),
    (
        Test(Reset),
        &[
            must(
                "6201-3a",
                "the same control and data plane for all DUTs",
                unchanged,
            ),
            must(
                "6201-1.4a",
                "everything that influences the time is listed",
                configured,
            ),
        ],
    ),
    (
        Searches,
        &[must(
            "9971-4.9.3",
            "the whole configuration, and all attributes of the goals",
            configured,
        )],
    ),
];

/// Slots with a throughput.
pub fn found(case: &Case<'_>) -> Vec<usize> {
    case.slots
        .iter()
        .map(|slot| slot.id)
        .filter(|slot| case.throughput(*slot).is_some())
        .collect()
}

/// Trials of throughput of a slot at a load.
pub fn at<'c>(case: &'c Case<'_>, slot: usize, load: f64) -> impl Iterator<Item = &'c TrialRecord> {
    let here = move |fps: f64| (fps - load).abs() <= 1e-6 * load;
    case.of(Throughput)
        .into_iter()
        .filter(move |trial| trial.slot == slot && trial.asked_fps.is_some_and(here))
}

fn is_benchmarks(address: std::net::IpAddr) -> bool {
    match address {
        std::net::IpAddr::V4(v4) => matches!(v4.octets(), [198, 18 | 19, ..]),
        std::net::IpAddr::V6(v6) => v6.segments()[..3] == [0x2001, 2, 0],
    }
}

/// Whether the records show one port in and one port out, as a lab file has.
fn two_ports(case: &Case<'_>) -> bool {
    let mut facts = case.facts.iter();
    case.campaign.asked.lab == LabKind::Namespaces
        || !case.facts.is_empty() && facts.all(|facts| facts.interfaces.len() == 2)
}

/// Whether the destinations of all frames are in networks of the DUT's interfaces, by the settings of each DUT or, of a black box, by
/// the addresses that the lab file gives it.
pub fn connected(case: &Case<'_>) -> Outcome {
    let stated = case.campaign.standing.get(ADDRESSES);
    let stated = stated.map_or(Vec::new(), |text| addresses(text));
    let known = |slot: &&&Slot| {
        let asked = case.facts.iter().any(|facts| facts.slot == slot.id);
        slot.traffic.is_some() && (asked || !stated.is_empty())
    };
    match case.slots.iter().all(|slot| known(&slot)) {
        true => case.each(
            &case.slots,
            "cells whose destinations are in networks of the DUT's interfaces",
            |slot| {
                let settings = case
                    .facts
                    .iter()
                    .find(|facts| facts.slot == slot.id)
                    .and_then(Configuration::recorded);
                let own = settings
                    .iter()
                    .flat_map(|settings| &settings.cards)
                    .flat_map(|card| &card.addresses);
                let own: Vec<_> = own.chain(&stated).collect();
                let flows = slot.traffic.iter().flat_map(|traffic| {
                    let ipv6 = traffic.ipv6.as_ref().map(|second| &second.flows);
                    [Some(&traffic.flows), ipv6].into_iter().flatten()
                });
                let back = slot.direction == Direction::Both;
                let mut ranges = flows.flat_map(|flows| {
                    let destinations = [Some(flows.destination()), back.then_some(flows.source())];
                    destinations.into_iter().flatten()
                });
                let far = ranges.find(|range| {
                    let ends = [range.first_address(), range.last_address()];
                    !own.iter()
                        .any(|own| ends.iter().all(|end| own.reaches(*end) == Some(true)))
                });
                far.map(|range| {
                    let name = case.name_of(slot.id);
                    format!(
                        "destinations are behind a next hop: {name}: {}",
                        range.first_address()
                    )
                })
            },
        ),
        false => not_run("the records have no settings of a DUT"),
    }
}

/// Slots that differ only in their frames have the same settings.
fn unchanged(case: &Case<'_>) -> Outcome {
    let mut known: BTreeMap<String, (usize, Configuration)> = BTreeMap::new();
    let factors = case
        .campaign
        .planned
        .as_ref()
        .map_or(&[][..], |planned| &planned.experiment.factors);
    let mut compared = 0;
    for facts in case.facts {
        let (Some(slot), Some(found)) = (case.slot(facts.slot), Configuration::recorded(facts))
        else {
            continue;
        };
        let own = slot.levels.iter().filter(|(factor, _)| {
            factors.get(*factor).is_none_or(|factor| {
                factor
                    .sets
                    .iter()
                    .any(|field| !field.starts_with("traffic."))
            })
        });
        let key = format!("{} {:?}", slot.plan_variant, own.collect::<Vec<_>>());
        let Some((first, before)) = known.get(&key) else {
            known.insert(key, (slot.id, found));
            continue;
        };
        compared += 1;
        let differs = |name: &&String| {
            !is_counter(name) && before.sysctls.get(*name) != found.sysctls.get(*name)
        };
        let names = before.sysctls.keys().chain(found.sysctls.keys());
        let changed = names
            .into_iter()
            .find(differs)
            .map(String::as_str)
            .or_else(|| {
                let kept = before.system == found.system
                    && before.boot == found.boot
                    && before.modules == found.modules;
                (!kept).then_some("its system")
            });
        if let Some(changed) = changed {
            let [one, other] = [*first, slot.id].map(|slot| case.name_of(slot));
            return fails(format!("{changed} differs between {one} and {other}"));
        }
    }
    match known.len() {
        0 if stated(case).is_some() => met("the operator states one configuration, of all tests"),
        0 => not_run(
            "the records have no settings of the DUT: write `software` and `configuration` of a black box into the lab file",
        ),
        configurations => met(format!(
            "{configurations} configurations, {compared} times compared"
        )),
    }
}

/// Readings rather than settings.
fn is_counter(sysctl: &str) -> bool {
    sysctl.ends_with("_count") || sysctl.ends_with("nr")
}

/// The throughput of loads in bursts is their shortest interval; the audit of each trial counted the bursts.
fn bursts(case: &Case<'_>) -> Outcome {
    let burst = |of: &&Benchmarked| {
        let frames = case.slot(of.slot)?.traffic.as_ref()?.burst;
        let found = of.tests.iter().any(|tested| match &tested.figures {
            Figures::Throughput(found) => found.burst_s.is_some(),
            _ => false,
        });
        (found && frames > 0).then_some(frames)
    };
    let mut found: Vec<u32> = case.benchmarks.iter().filter_map(|of| burst(&of)).collect();
    found.sort_unstable();
    found.dedup();
    if found.is_empty() {
        return not_run("no loads in bursts in this campaign");
    }
    case.with_medium(|| {
        let all = [16, 64, 256, 1024]
            .iter()
            .all(|frames| found.contains(frames));
        holds(
            all,
            format!("shortest intervals of bursts of {found:?} frames"),
        )
    })
}

/// The operator's statement about a DUT that nobody can ask.
fn stated<'c>(case: &Case<'c>) -> Option<(&'c str, &'c str)> {
    let of = |key: &str| case.campaign.standing.get(key).map(String::as_str);
    Some((of(SOFTWARE)?, of(CONFIGURATION)?)).filter(|_| case.facts.is_empty())
}

fn configured(case: &Case<'_>) -> Outcome {
    if let Some((software, configuration)) = stated(case) {
        return met(format!(
            "the operator states: software: {software}; configuration: {configuration}"
        ));
    }
    match case.host.kernel.is_empty() {
        true => fails(
            "the records do not name the host's software: write `software` and `configuration` of a black box into the lab file",
        ),
        false => case.each(
            case.slots.iter().copied(),
            "slots with the settings of their DUT",
            |slot| {
                let asked = case
                    .facts
                    .iter()
                    .any(|facts| facts.slot == slot.id && !facts.answers.is_empty());
                (!asked).then(|| format!("no settings of the DUT of {}", slot.name))
            },
        ),
    }
}

/// The sizes that RFC 2544 recommends and that were not measured.
pub fn missing_sizes(case: &Case<'_>) -> Vec<u16> {
    let sizes = case.sizes();
    SIZES
        .into_iter()
        .filter(|size| !sizes.contains(size))
        .collect()
}
