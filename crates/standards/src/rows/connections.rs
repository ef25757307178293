//! RFC 3511, sections 5.2 to 5.5: connections through firewalls. Section 4 and the other tests are not judged.

use super::{must, should, step};
use crate::Part::Beside;
use crate::case::{Case, Outcome, fails, holds, met, not_applicable, not_run, seconds};
use crate::{Row, Section};
use linerate_measure::experiment::Measure;
use linerate_measure::record::{ConnectionTrial, Http, Mode, Slot, TrialRecord};
use linerate_wire::units::grouped;
use linerate_wire::words::distinct;
use linerate_wire::{Close, ConnectionSpec};
use std::collections::BTreeSet;

const CAPACITY: &str = "5.2 concurrent TCP connection capacity";
const RATE: &str = "5.3 maximum TCP connection establishment rate";
const TEARDOWN: &str = "5.4 maximum TCP connection tear down rate";
const FLOOD: &str = "5.5 denial of service handling";

/// The reason of every claim without HTTP.
pub const NO_HTTP: &str = "the connections carry no HTTP";
const AGEING: &str = "the records do not have the DUT's timeouts";

/// The tests that a slot belongs to; none for HTTP over connections that stay open, and for datagrams.
fn tests_of(slot: &Slot) -> Option<&'static str> {
    let Some(spec) = slot.connections() else {
        return slot.http.filter(|of| of.http == Http::Close).map(|_| RATE);
    };
    match *spec {
        ConnectionSpec {
            open: Some(_),
            close: None,
            ..
        } => Some(CAPACITY),
        ConnectionSpec { open: Some(_), .. } => Some(TEARDOWN),
        ConnectionSpec { flood: 1.., .. } => Some(FLOOD),
        ConnectionSpec { exchange, .. } => exchange.is_tcp().then_some(RATE),
    }
}

/// The tests that a campaign made, in the order of the document.
pub fn tests(case: &Case<'_>) -> Vec<&'static str> {
    let made: BTreeSet<&str> = case
        .slots
        .iter()
        .filter_map(|slot| tests_of(slot))
        .collect();
    let tests = [CAPACITY, RATE, TEARDOWN, FLOOD].into_iter();
    // Rates without a flood beside those under one are the baseline of that test.
    let flooded = made.contains(FLOOD);
    tests
        .filter(|test| made.contains(test) && !(flooded && *test == RATE))
        .collect()
}

/// Whether a row belongs to a test: the test under a flood is that of the establishment rate, and more.
pub fn concerns(part: &str, test: &str) -> bool {
    part == test || (test, part) == (FLOOD, RATE)
}

/// The rows of these tests.
pub fn all(tests: &[&str]) -> Vec<Row> {
    let concerned = |part: &str| tests.iter().any(|test| concerns(part, test));
    let sections = SECTIONS
        .iter()
        .filter(|(part, _)| matches!(part, Beside(name) if concerned(name)));
    let of_section = |(part, rows): &Section| {
        let part = *part;
        rows.iter().map(move |row| Row { part, ..*row })
    };
    sections.flat_map(of_section).collect()
}

/// Valid trials of the slots of these tests.
fn trials<'c>(case: &'c Case<'_>, tests: &'c [&str]) -> impl Iterator<Item = &'c TrialRecord> {
    let of = move |trial: &&&TrialRecord| {
        let slot = case.slot(trial.slot).and_then(tests_of);
        slot.is_some_and(|test| tests.contains(&test))
    };
    case.trials.iter().filter(of).copied()
}

/// The connections of these trials.
fn opened<'c>(
    case: &'c Case<'_>,
    tests: &'c [&str],
) -> impl Iterator<Item = (&'c TrialRecord, &'c ConnectionTrial)> {
    trials(case, tests).filter_map(|trial| Some((trial, trial.opened.as_deref()?)))
}

/// Numbers in words, each once: `1,024, 16,384`.
fn each(numbers: impl Iterator<Item = u64>) -> String {
    distinct(numbers.map(grouped)).join(", ")
}

fn over_http(case: &Case<'_>) -> bool {
    case.campaign.carries_http()
}

/// Whether nginx answers connections of linerate's own.
fn by_nginx(case: &Case<'_>) -> bool {
    let mut specs = case.slots.iter().filter_map(|slot| slot.connections());
    specs.any(|spec| spec.served_by.is_nginx())
}

/// HTTP at both ends.
fn http(case: &Case<'_>) -> Outcome {
    holds(
        over_http(case),
        match over_http(case) {
            true => "HTTP/1.1 by wrk and nginx",
            false if by_nginx(case) => "linerate's client sends requests of HTTP/1.0",
            false => NO_HTTP,
        },
    )
}

fn object(case: &Case<'_>) -> Outcome {
    let of = |slot: &&Slot| match (slot.http, slot.connections()) {
        (Some(of), _) => Some(u64::from(of.object)),
        (_, spec) => Some(spec?.object.into()),
    };
    met(format!("{} B", each(case.slots.iter().filter_map(of))))
}

fn ageing(_: &Case<'_>) -> Outcome {
    not_run(AGEING)
}

fn round_robin(case: &Case<'_>) -> Outcome {
    fails(match over_http(case) {
        true => "one client and one server",
        false => "each pair of addresses and ports once, in a scattered order",
    })
}

fn between_iterations(_: &Case<'_>) -> Outcome {
    fails(
        "no RST is sent and no ageing time is waited for: the DUT's table is emptied before each trial",
    )
}

/// Requests and answers that the records have.
fn completed(case: &Case<'_>, tests: &[&str]) -> Outcome {
    let http = trials(case, tests).filter_map(|trial| trial.http.as_deref());
    let (made, answered) = http.fold((0, 0), |(made, answered), http| {
        (
            made + http.answered + http.failed(),
            answered + http.answered,
        )
    });
    let answers = |trial: &ConnectionTrial| trial.answered().unwrap_or_else(|| trial.closed());
    let all = opened(case, tests).map(|(_, of)| (of.open().unwrap_or(of.attempted), answers(of)));
    let (made, answered) = all.fold((made, answered), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    match made {
        0 => not_run("no valid trial"),
        _ => met(format!(
            "{} requests, {} answers",
            grouped(made),
            grouped(answered)
        )),
    }
}

/// Times of single connections.
fn times(case: &Case<'_>, tests: &[&str]) -> Outcome {
    let timed = trials(case, tests).any(|trial| trial.receiver.latency.count() > 0);
    fails(match (over_http(case), timed) {
        (true, _) => "wrk does not tell the time to open a connection",
        (_, true) => "the time of one connection in 64 is known, so the total of all is not",
        _ => "the time of a single connection is not measured",
    })
}

/// How fast the load was, where the plan did not look for the rate.
fn searched(case: &Case<'_>, what: &str) -> Outcome {
    if case.design.measure == Measure::Search {
        return met("the rate is searched for");
    }
    fails(match case.slots.iter().find_map(|slot| slot.asked_fps) {
        Some(rate) => {
            format!("{what} are offered at {rate:.0} a second, and no rate is searched for")
        }
        None => format!("{what} wait for the DUT, in a closed loop: no rate is searched for"),
    })
}

/// The highest rate at which no connection failed.
fn highest(case: &Case<'_>, what: &str) -> Outcome {
    let found = case
        .slots
        .iter()
        .filter_map(|slot| case.throughput(slot.id));
    let found: Vec<String> = found.map(|rate| grouped(rate.round() as u64)).collect();
    match (case.design.measure, found.is_empty()) {
        (Measure::Search, false) => met(format!("{} {what}/s", found.join(", "))),
        (Measure::Search, true) => not_run("the search has no result"),
        _ => fails("no rate was searched for, so none is known to be the highest"),
    }
}

const CAPACITY_ROWS: &[Row] = &[
    must(
        "3511-5.2.2.1a",
        "the connection attempt rate is defined",
        |case| {
            let rates = case.slots.iter().filter_map(|slot| slot.asked_fps);
            let rates = each(rates.map(|rate| rate.round() as u64));
            match rates.is_empty() {
                true => fails("no rate is asked for: connections wait for the DUT"),
                false => met(format!("{rates} connections/s")),
            }
        },
    ),
    should(
        "3511-5.2.2.1b",
        "the attempt rate is at most what the DUT accepts",
        |case| match case.campaign.asked.mode {
            Mode::Inline if case.slots.iter().all(|slot| slot.asked_fps.is_none()) => {
                met("connections wait for the DUT")
            }
            _ => not_run("the records do not have the highest rate that the DUT accepts"),
        },
    ),
    must("3511-5.2.2.1c", "the ageing time is defined", ageing),
    must(
        "3511-5.2.2.2a",
        "client and server use the same version of HTTP, 1.1 or higher",
        http,
    ),
    must("3511-5.2.2.2b", "the object size is defined", object),
    step(
        "3511-5.2.3a",
        "the number of connections is searched for",
        |case| {
            let open = case
                .slots
                .iter()
                .filter_map(|slot| slot.connections()?.open);
            fails(format!(
                "{} open at the same time, and no number is searched for",
                each(open.map(u64::from))
            ))
        },
    ),
    step("3511-5.2.3b", "clients and servers take turns", round_robin),
    must(
        "3511-5.2.3c",
        "each connection requests an object by HTTP GET",
        http,
    ),
    must(
        "3511-5.2.3d",
        "requests begin when all connections are established",
        |case| {
            case.each_numbered(
                trials(case, &[CAPACITY]),
                "trials with all connections open before the first request",
                |trial| {
                    trial
                        .opened
                        .as_ref()?
                        .kept
                        .is_none()
                        .then(|| "connections were not kept open".into())
                },
            )
        },
    ),
    must(
        "3511-5.2.3e",
        "through a proxy, each connection requests two objects",
        |case| {
            let proxied = opened(case, &[CAPACITY]).any(|(_, of)| of.proxied > 0);
            match proxied {
                true => fails("one request on each connection"),
                false => not_applicable("no DUT answered for the servers"),
            }
        },
    ),
    should(
        "3511-5.2.3f",
        "between iterations, RST for each connection, and the ageing time",
        between_iterations,
    ),
    must(
        "3511-5.2.5.1a",
        "object size, completed requests and completed answers are reported",
        |case| completed(case, &[CAPACITY]),
    ),
    must("3511-5.2.5.1b", "the version of HTTP is reported", http),
    must(
        "3511-5.2.5.2a",
        "least, largest, mean and total time to establish a connection are reported",
        |case| times(case, &[CAPACITY]),
    ),
    must(
        "3511-5.2.5.2b",
        "the most connections that were open at the same time are reported",
        |case| {
            let open: Vec<u64> = opened(case, &[CAPACITY])
                .filter_map(|(_, of)| of.open())
                .collect();
            match open.iter().max() {
                Some(most) => met(format!("{} open", grouped(*most))),
                None => not_run("no valid trial"),
            }
        },
    ),
];

const RATE_ROWS: &[Row] = &[
    must(
        "3511-5.3.2.1a",
        "the number of connections is defined",
        |case| {
            let timing = case.campaign.asked.timing;
            fails(format!(
                "connections are opened for {} s, and not up to a number",
                seconds(timing.run_ns)
            ))
        },
    ),
    must("3511-5.3.2.1b", "the ageing time is defined", ageing),
    must(
        "3511-5.3.2.2a",
        "client and server use the same version of HTTP, 1.1 or higher",
        http,
    ),
    must("3511-5.3.2.2b", "the object size is defined", object),
    step(
        "3511-5.3.3a",
        "the rate of connection attempts is searched for",
        |case| searched(case, "connections"),
    ),
    step("3511-5.3.3b", "clients and servers take turns", round_robin),
    must(
        "3511-5.3.3c",
        "an object by HTTP GET on each connection, when all are established",
        |case| {
            fails(match over_http(case) || by_nginx(case) {
                true => {
                    "each connection carries its request at once, and not when all are established"
                }
                false => NO_HTTP,
            })
        },
    ),
    should(
        "3511-5.3.3d",
        "between iterations, RST for each connection, and the ageing time",
        between_iterations,
    ),
    step(
        "3511-5.3.4.2",
        "the highest rate at which all connections open",
        |case| highest(case, "connections"),
    ),
    must(
        "3511-5.3.5.1a",
        "object size, completed requests and completed answers are reported",
        |case| completed(case, &[RATE, FLOOD]),
    ),
    must("3511-5.3.5.1b", "the version of HTTP is reported", http),
    must(
        "3511-5.3.5.2",
        "least, largest, mean and total time to establish a connection are reported",
        |case| times(case, &[RATE, FLOOD]),
    ),
];

const TEARDOWN_ROWS: &[Row] = &[
    step(
        "3511-5.4.2a",
        "the number of connections is defined",
        |case| {
            let open = case
                .slots
                .iter()
                .filter_map(|slot| slot.connections()?.open);
            met(format!("{} connections", each(open.map(u64::from))))
        },
    ),
    step("3511-5.4.2b", "the ageing time is defined", ageing),
    must(
        "3511-5.4.2c",
        "connections close by a three-way or a four-way handshake",
        |case| {
            let reset = |slot: &&&Slot| {
                slot.connections()
                    .is_some_and(|spec| spec.close == Some(Close::Reset))
            };
            match case.slots.iter().find(reset) {
                Some(slot) => fails(format!("{}: closed by RST", case.name_of(slot.id))),
                None => met("FIN, FIN of the other end, ACK"),
            }
        },
    ),
    step(
        "3511-5.4.2d",
        "the direction of closing is defined",
        |case| {
            let of = |slot: &&Slot| {
                Some(match slot.connections()?.close? {
                    Close::Client => "by the client",
                    Close::Server => "by the server",
                    Close::Reset => "by the client's RST",
                })
            };
            met(distinct(case.slots.iter().filter_map(of)).join(", "))
        },
    ),
    step(
        "3511-5.4.3a",
        "the rate of closing is searched for",
        |case| searched(case, "closing connections"),
    ),
    should(
        "3511-5.4.3b",
        "between iterations, RST for each connection, and the ageing time",
        between_iterations,
    ),
    must(
        "3511-5.4.4",
        "times to close are of connections that both ends closed",
        |_| not_applicable("no time to close a single connection is measured"),
    ),
    must(
        "3511-5.4.5a",
        "number, close method and close direction are reported",
        |_| met("the records have them for each cell"),
    ),
    must("3511-5.4.5b", "the ageing time is reported", ageing),
    must(
        "3511-5.4.5c",
        "least, largest, mean and total time to close a connection are reported",
        |_| fails("no time to close a single connection is measured"),
    ),
    must(
        "3511-5.4.5d",
        "the highest rate at which all connections close is reported",
        |case| highest(case, "connections"),
    ),
];

const FLOOD_ROWS: &[Row] = &[
    must(
        "3511-5.5.1",
        "the baseline without an attack is measured first",
        |case| {
            let of = |slot: &Slot| {
                (
                    slot.plan_variant.clone(),
                    slot.connections().is_some_and(|spec| spec.flood > 0),
                )
            };
            let first = |variant: &str, flooded: bool| {
                let own = |trial: &&&TrialRecord| {
                    case.slot(trial.slot)
                        .is_some_and(|slot| of(slot) == (variant.into(), flooded))
                };
                case.trials.iter().find(own).map(|trial| trial.trial)
            };
            let variants = distinct(case.slots.iter().map(|slot| slot.plan_variant.as_str()));
            case.each(
                variants,
                "variants with a trial without a flood before the first one under it",
                |variant| match (first(variant, false), first(variant, true)) {
                    (Some(before), Some(under)) if before < under => None,
                    (None, _) => Some(format!("{variant}: no valid trial without a flood")),
                    (_, None) => Some(format!("{variant}: no valid trial under a flood")),
                    _ => Some(format!(
                        "{variant}: a trial under the flood comes before the first one without"
                    )),
                },
            )
        },
    ),
    must("3511-5.5.2", "the rate of the attack is defined", |case| {
        let rates = case.slots.iter().filter_map(|slot| slot.connections());
        let rates = rates
            .map(|spec| u64::from(spec.flood))
            .filter(|rate| *rate > 0);
        met(format!("{} SYN/s", each(rates)))
    }),
    must(
        "3511-5.5.3a",
        "the attack comes from the unprotected network",
        |_| met("it enters the DUT at the clients' side, and the servers are behind the DUT"),
    ),
    must(
        "3511-5.5.3b",
        "the attacker does not answer SYN/ACKs",
        |case| {
            let answers = opened(case, &[FLOOD]).filter_map(|(_, of)| of.flood);
            let answers: u64 = answers.map(|flood| flood.answered).sum();
            met(format!(
                "{} frames of the DUT to the attacker's addresses, none answered",
                grouped(answers)
            ))
        },
    ),
    should(
        "3511-5.5.3c",
        "with and without the DUT's protection against SYN floods",
        |case| {
            let answers = |slot: &&&Slot| {
                opened(case, &[FLOOD]).any(|(trial, of)| {
                    trial.slot == slot.id && of.flood.is_some_and(|flood| flood.answered > 0)
                })
            };
            let flooded = || {
                case.slots
                    .iter()
                    .filter(|slot| tests_of(slot) == Some(FLOOD))
            };
            let variants = |protects: bool| {
                let own = flooded().filter(|slot| answers(slot) == protects);
                distinct(own.map(|slot| slot.plan_variant.as_str())).join(", ")
            };
            match (variants(true), variants(false)) {
                (with, without) if !with.is_empty() && !without.is_empty() => met(format!(
                    "{with} answers the attack itself, {without} does not"
                )),
                _ => not_run(
                    "the records show no variant that answers the attack beside one that does not",
                ),
            }
        },
    ),
    should(
        "3511-5.5.4",
        "SYNs of the attack that the DUT forwards are counted",
        syns,
    ),
    must(
        "3511-5.5.5a",
        "rate of the attack, SYNs sent and SYNs forwarded are reported",
        syns,
    ),
    must(
        "3511-5.5.5b",
        "whether a protection against SYN floods is on is reported",
        |_| {
            not_run("the records have the variants' settings, and do not say which of them protect")
        },
    ),
];

/// SYNs of the attack, sent and forwarded.
fn syns(case: &Case<'_>) -> Outcome {
    let floods = opened(case, &[FLOOD]).filter_map(|(_, of)| of.flood);
    let (sent, passed) = floods.fold((0, 0), |sum, flood| {
        (sum.0 + flood.sent, sum.1 + flood.arrived)
    });
    match sent {
        0 => not_run("no valid trial under a flood"),
        _ => met(format!(
            "{} of {} SYNs forwarded",
            grouped(passed),
            grouped(sent)
        )),
    }
}

const SECTIONS: &[Section] = &[
    (Beside(CAPACITY), CAPACITY_ROWS),
    (Beside(RATE), RATE_ROWS),
    (Beside(TEARDOWN), TEARDOWN_ROWS),
    (Beside(FLOOD), FLOOD_ROWS),
];
