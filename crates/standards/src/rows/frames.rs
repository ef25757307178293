//! Test frames, modifiers, and what the receiver counts.

use super::{must, should};
use crate::Part::{All, Beside};
use crate::Section;
use crate::case::{self, Case, holds, met, not_applicable, not_run};
use linerate_measure::record::{Slot, TrialRecord};
use linerate_wire::{Family, FlowOrder, RFC2544_PORTS, Selection, SourceMacs, Traffic};
use std::collections::BTreeSet;
use std::net::IpAddr;

pub const SECTIONS: &[Section] = &[
    (
        All,
        &[
            should(
                "2544-8a",
                "test frames exactly as appendix C has them",
                |case| {
                    case.each(case.traffics(), "kinds of frames as appendix C has them", |traffic| {
                    let (frame, flow) = (&traffic.frame, traffic.flows.flow(0));
                    let format = frame.ttl == 10
                        && (frame.family == Family::V6 || frame.may_fragment && !frame.l4_checksum)
                        && (flow.src_port, flow.dst_port) == RFC2544_PORTS;
                    match (format, frame.signed) {
                        (true, false) => None,
                        (true, true) => Some(
                            "as appendix C, but the signature takes the place of the first 18 octets of data"
                                .into(),
                        ),
                        (false, _) => Some(format!(
                            "{} from port {} to {}",
                            frame.transport, flow.src_port, flow.dst_port
                        )),
                    }
                })
                },
            ),
            must(
                "2544-8b",
                "the report has the formats of the frames",
                |case| {
                    case.each(
                        case.slots.iter().copied(),
                        "cells whose frames are listed below, to the octet",
                        |slot| {
                            slot.traffic
                                .is_none()
                                .then(|| format!("no frames of {}", slot.name))
                        },
                    )
                },
            ),
            should(
                "2544-10a",
                "only forwarded test frames are counted",
                |case| {
                    let others: u64 = case
                        .trials
                        .iter()
                        .map(|trial| trial.receiver.foreign_total())
                        .sum();
                    case.each(
                        case.slots.iter().copied(),
                        &format!("kinds of signed frames; {others} other frames were not counted"),
                        |slot| {
                            (!slot.signed)
                                .then(|| format!("frames of {} carry no signature", slot.name))
                        },
                    )
                },
            ),
            should(
                "2544-10b",
                "the length of received frames is checked",
                |case| {
                    case.each_numbered(
                        case.trials.iter().copied(),
                        "trials whose octets are those of the frames",
                        |trial| {
                            let [length] = case.slot(trial.slot)?.lengths_fcs[..] else {
                                return None;
                            };
                            let expected = u128::from(trial.receiver.frames)
                                * u128::from(length.saturating_sub(4));
                            let bytes = u128::from(trial.receiver.bytes);
                            (bytes != expected)
                                .then(|| format!("{bytes} octets instead of {expected}"))
                        },
                    )
                },
            ),
            should(
                "2544-10c",
                "sequence numbers: lost, reordered and duplicate frames are reported",
                |case| {
                    let sum = |of: fn(&TrialRecord) -> u64| {
                        case.trials.iter().map(|trial| of(trial)).sum::<u64>()
                    };
                    let (duplicates, reordered) = (
                        sum(|t| t.receiver.duplicates()),
                        sum(|t| t.receiver.reordered()),
                    );
                    case.each_numbered(
                        case.trials.iter().copied(),
                        &format!("trials; {duplicates} duplicate and {reordered} reordered frames"),
                        |trial| {
                            let blind =
                                trial.receiver.streams.is_empty() && trial.receiver.frames > 0;
                            blind.then(|| "the receiver tells no frames apart".into())
                        },
                    )
                },
            ),
            should(
                "2544-12",
                "one pair of addresses first, then random destinations over 256 networks",
                |case| {
                    let single = case.traffics().any(|traffic| traffic.flows.len() == 1);
                    let many = case.traffics().any(|traffic| {
                        traffic.flows.networks() >= 256
                            && matches!(traffic.order, FlowOrder::Random { .. })
                    });
                    let found = match (single, many) {
                        (true, true) => "both were measured",
                        (true, false) => "only one pair",
                        (false, true) => "only 256 networks",
                        (false, false) => "neither one pair nor 256 networks",
                    };
                    holds(single && many, found)
                },
            ),
            should(
                "4814-4.2",
                "random Ethernet addresses, the same in each trial",
                |case| {
                    let random = case
                        .traffics()
                        .filter(|traffic| traffic.source_macs != SourceMacs::Own)
                        .count();
                    match random {
                        0 => not_applicable("a router sees only its neighbour's address"),
                        _ => met(format!(
                            "{random} kinds of frames with a source of each flow; the destination is the DUT's"
                        )),
                    }
                },
            ),
            should(
                "4814-4.4",
                "random addresses where the DUT hashes them",
                |case| {
                    case.each(
                        drawn(case),
                        "sets of flows with random addresses, uniform by chi-square",
                        |traffic| {
                            let flows = &traffic.flows;
                            let host = |address: IpAddr| match address {
                                IpAddr::V4(v4) => u64::from(u32::from(v4)),
                                IpAddr::V6(v6) => u64::from(u128::from(v6) as u32),
                            };
                            // Successive flows go to successive networks: what remains is the host.
                            let size = match (flows.networks(), flows.family()) {
                                (0 | 1, _) => u64::MAX,
                                (_, Family::V4) => 1 << 8,
                                (_, Family::V6) => 1 << 16,
                            };
                            let all = || (0..flows.len().min(MOST_FLOWS)).map(|i| flows.flow(i));
                            match flows.addresses() {
                                Selection::Counted => {
                                    Some(format!("{}, {} order", flows, traffic.order))
                                }
                                _ => uneven([
                                    all().map(|flow| host(flow.src)).collect(),
                                    all().map(|flow| host(flow.dst) % size).collect(),
                                ]),
                            }
                        },
                    )
                },
            ),
            should(
                "4814-4.5",
                "random ports, uniform: source 1024 to 65535, destination 1 to 49151",
                |case| {
                    case.each(
                        drawn(case),
                        "sets of flows with random ports, uniform by chi-square",
                        |traffic| {
                            let flows = (0..traffic.flows.len().min(MOST_FLOWS))
                                .map(|i| traffic.flows.flow(i));
                            let ports: Vec<[u64; 2]> = flows
                                .map(|flow| [flow.src_port.into(), flow.dst_port.into()])
                                .collect();
                            let outside =
                                |[src, dst]: &&[u64; 2]| *src < 1024 || !(1..=49_151).contains(dst);
                            match ports.iter().find(outside) {
                                Some([src, dst]) => Some(format!("port {src} or {dst} is outside")),
                                None => uneven(
                                    [0, 1].map(|end| ports.iter().map(|of| of[end]).collect()),
                                ),
                            }
                        },
                    )
                },
            ),
            must(
                "2889-4",
                "the signature is in the UDP data; the DUT's own frames are not counted",
                |case| {
                    case.each(
                        case.slots.iter().copied(),
                        "kinds of signed UDP frames",
                        |slot| {
                            (!slot.signed || slot.transport != "UDP")
                                .then(|| format!("{}: {}", slot.name, slot.transport))
                        },
                    )
                },
            ),
        ],
    ),
    (
        Beside("modifiers"),
        &[
            should(
                "2544-11",
                "first without modifiers, then each alone",
                |case| {
                    let modifiers = |slot: &&Slot| {
                        let Some(traffic) = slot.traffic.as_deref() else {
                            return 0;
                        };
                        usize::from(traffic.broadcast_every > 0)
                            + usize::from(filters(case, slot.id).is_some())
                    };
                    let counts: Vec<usize> = case.slots.iter().map(modifiers).collect();
                    match counts.iter().max() {
                        None | Some(0) => not_run("no modifiers in this campaign"),
                        Some(most) => holds(
                            *most == 1 && counts.contains(&0),
                            format!(
                                "{} of {} slots have a modifier",
                                counts.iter().filter(|n| **n > 0).count(),
                                counts.len()
                            ),
                        ),
                    }
                },
            ),
            should(
                "2544-11.1",
                "1 % of broadcast frames, evenly spread; their real share is reported",
                |case| {
                    let with = case.trials.iter().filter(|trial| {
                        case.slot(trial.slot)
                            .and_then(|slot| slot.traffic.as_ref())
                            .is_some_and(|traffic| traffic.broadcast_every > 0)
                    });
                    let shares: Vec<f64> = with
                        .map(|trial| {
                            let sent = &trial.generator;
                            sent.broadcasts as f64 / (sent.frames + sent.broadcasts).max(1) as f64
                        })
                        .collect();
                    let (least, most) = shares
                        .iter()
                        .fold((f64::INFINITY, 0.0), |(least, most), share| {
                            (share.min(least), share.max(most))
                        });
                    match shares.len() {
                        0 => not_run("no broadcast frames in this campaign"),
                        _ => holds(
                            least >= 0.0095 && most <= 0.0105,
                            format!(
                                "{:.2} to {:.2} % of the frames",
                                100.0 * least,
                                100.0 * most
                            ),
                        ),
                    }
                },
            ),
            should(
                "2544-11.2",
                "an SNMP query as the first frame of each second",
                |_| not_run("linerate sends no SNMP queries"),
            ),
            should(
                "2544-11.3a",
                "routing updates at the protocol's interval",
                |_| not_run("linerate sends no routing updates"),
            ),
            must("2544-11.3b", "routing updates A and B alternate", |_| {
                not_run("linerate sends no routing updates")
            }),
        ],
    ),
    (
        Beside("filters"),
        &[should(
            "2544-11.4",
            "1 filter, then 25: 24 that match nothing, then the one that permits",
            |case| {
                let rules: Vec<u64> = case
                    .slots
                    .iter()
                    .filter_map(|slot| filters(case, slot.id))
                    .collect();
                match rules.is_empty() {
                    true => not_run("no filters in this campaign"),
                    false => holds(
                        rules.contains(&0) && rules.contains(&24),
                        format!("rules before the one that permits: {rules:?}"),
                    ),
                }
            },
        )],
    ),
    (
        Beside("IPv6"),
        &[
            should(
                "5180-5.3",
                "IPv6 without extension headers, with single ones, and with a chain that is longer than 32 bytes",
                |case| {
                    let all = case
                        .traffics()
                        .filter(|traffic| traffic.frame.family == Family::V6);
                    let found: BTreeSet<String> = all
                        .map(|traffic| traffic.frame.extensions.to_string())
                        .collect();
                    let has = |name: &str| found.contains(name);
                    let single = ["hop-by-hop", "destination-options", "routing", "fragment"]
                        .iter()
                        .any(|name| has(name));
                    match found.is_empty() {
                        true => not_run("no IPv6 frames alone in this campaign"),
                        false => holds(
                            has("none") && single && has("chain"),
                            format!(
                                "extension headers: {}",
                                found.into_iter().collect::<Vec<_>>().join(", ")
                            ),
                        ),
                    }
                },
            ),
            should(
                "5180-7",
                "IPv4 alone, IPv6 alone, and both as 90 to 10, 50 to 50 and 10 to 90",
                |case| {
                    let percent = |traffic: &Traffic| match &traffic.ipv6 {
                        Some(second) => second.millionths / 10_000,
                        None if traffic.frame.family == Family::V6 => 100,
                        None => 0,
                    };
                    let found: BTreeSet<u32> = case.traffics().map(percent).collect();
                    let all = [0, 10, 50, 90, 100]
                        .iter()
                        .all(|share| found.contains(share));
                    match found.iter().any(|share| *share > 0) {
                        false => not_run("no IPv6 frames in this campaign"),
                        true => holds(all, format!("IPv6 frames, in percent: {found:?}")),
                    }
                },
            ),
        ],
    ),
];

/// Flows that a check examines at most.
const MOST_FLOWS: u64 = 100_000;

fn drawn<'c>(case: &'c Case<'_>) -> impl Iterator<Item = &'c Traffic> {
    case.traffics().filter(|traffic| case::is_drawn(traffic))
}

/// The reason if sources or destinations of flows are not uniform: chi-square over sixteenths of their range, above its mean by more than
/// five standard deviations.
fn uneven(ends: [Vec<u64>; 2]) -> Option<String> {
    const PARTS: u64 = 16;
    let skewed = |numbers: &Vec<u64>| {
        let (first, last) = (
            numbers.iter().min().copied()?,
            numbers.iter().max().copied()?,
        );
        let (all, range) = (numbers.len() as f64, last - first + 1);
        if numbers.len() < 5 * PARTS as usize || range < PARTS {
            return Some(format!(
                "{all} flows from {first} to {last} are too few for chi-square"
            ));
        }
        let mut counts = [0u64; PARTS as usize];
        numbers
            .iter()
            .for_each(|number| counts[((number - first) * PARTS / range) as usize] += 1);
        // Parts of a small range have not all the same size.
        let below = |part: u64| (part * range).div_ceil(PARTS);
        let of_part = |(part, count): (u64, &u64)| {
            let expected = all * (below(part + 1) - below(part)) as f64 / range as f64;
            (*count as f64 - expected).powi(2) / expected
        };
        let (chi, freedom) = (
            (0..).zip(&counts).map(of_part).sum::<f64>(),
            PARTS as f64 - 1.0,
        );
        let skewed = chi > freedom + 5.0 * (2.0 * freedom).sqrt();
        skewed.then(|| format!("those from {first} to {last} are not uniform by chi-square"))
    };
    ends.iter().find_map(skewed)
}

/// Rules before the one that permits, of a slot whose DUT filters.
fn filters(case: &Case<'_>, slot: usize) -> Option<u64> {
    let plan = &case.campaign.planned.as_ref()?.plan;
    let lane = plan.get("cells")?.get(slot)?.get("lane")?.as_u64()?;
    plan.get("lanes")?
        .get(lane as usize)?
        .get("settings")?
        .get("rules")?
        .get("rules-before")?
        .as_u64()
}
