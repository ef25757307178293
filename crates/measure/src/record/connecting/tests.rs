//! Connections by their stages, and trials whose counts contradict each other.

use super::*;
use crate::experiment::{Claim, Judgement};
use crate::record::{Connections, States};
use linerate_wire::Exchange;

#[test]
fn connections_that_are_kept_open_may_wait_for_those_that_fail() {
    let kept = ConnectionTrial {
        attempted: 1000,
        reached: vec![600, 600, 600, 600, 599, 599, 599, 599],
        arrived: vec![600, 600, 600, 600, 599, 599, 599, 599],
        again: vec![0; 8],
        given_up: 402,
        idle_ns: 900_000,
        kept: Some(Kept {
            asked: 1000,
            ..Kept::default()
        }),
        ..ConnectionTrial::default()
    };
    let spec = ConnectionSpec {
        open: Some(1000),
        ..ConnectionSpec::new(Exchange::Request, 6)
    };
    assert_eq!(
        kept.faults(&spec, 1_000_000, Mode::Inline),
        Vec::<String>::new()
    );
    assert_eq!((kept.open(), kept.answered()), (Some(600), Some(599)));
    let failed: Vec<_> = kept.failures(&spec).collect();
    assert_eq!(failed, [("SYN", 400), ("answer", 1)]);
    assert_eq!(trial([1000; 6]).open(), None);
    let few = ConnectionTrial {
        kept: Some(Kept {
            asked: 1001,
            ..Kept::default()
        }),
        ..kept
    };
    assert!(few.faults(&spec, 1_000_000, Mode::Inline)[0].contains("1000 of 1001 connections"));
}

fn trial(reached: [u64; 6]) -> ConnectionTrial {
    let (arrived, again) = (reached.to_vec(), vec![0; 6]);
    ConnectionTrial {
        attempted: 1000,
        reached: arrived.clone(),
        arrived,
        again,
        ..ConnectionTrial::default()
    }
}

#[test]
fn those_that_failed_and_those_that_closed_are_all() {
    let found = trial([990, 990, 980, 975, 975, 970]);
    assert_eq!(found.failed().unwrap(), [10, 0, 10, 5, 0, 5]);
    assert_eq!(
        found.failed().unwrap().iter().sum::<u64>() + found.closed(),
        found.attempted
    );
    let spec = ConnectionSpec::new(Exchange::Request, 6);
    let named: Vec<_> = found.failures(&spec).collect();
    assert_eq!(
        named,
        [
            ("SYN", 10),
            ("request", 10),
            ("answer with FIN", 5),
            ("last ACK", 5)
        ]
    );
}

#[test]
fn a_row_has_the_fewest_and_the_most_and_who_refused_the_others() {
    let with = |open: u64, answered: u64, open_ns: u64| TrialRecord {
        opened: Some(Box::new(ConnectionTrial {
            attempted: 1000,
            reached: vec![open, open, open, answered, answered, 0, 0, 0],
            kept: Some(Kept {
                asked: 1000,
                open_ns,
                entries: Some(open),
                ..Kept::default()
            }),
            ..ConnectionTrial::default()
        })),
        dut: [
            ("Conntrack.drop".to_string(), 1000 - open),
            ("Ip.x".into(), 1),
        ]
        .into(),
        ..TrialRecord::default()
    };
    let all = [with(600, 600, 10), with(610, 607, 30), with(605, 605, 20)];
    let row = KeptRow::of(&all.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(
        (row.open, row.unanswered, row.open_ns),
        ([600, 610], 3, 20.0)
    );
    assert_eq!(
        (row.entries, &row.refused),
        (Some(605), &[("drop".to_string(), 395)].into())
    );
    assert_eq!(KeptRow::of(&[&TrialRecord::default()]), None);
    assert_eq!(KeptRow::of(&[]), None);
}

#[test]
fn a_flood_has_the_rate_that_was_asked_for_and_a_row_the_share_that_passed() {
    let with = |sent, arrived| ConnectionTrial {
        flood: Some(Flood {
            asked: 1000,
            sent,
            arrived,
            load_ns: 2_000_000_000,
            ..Flood::default()
        }),
        ..trial([1000; 6])
    };
    let spec = ConnectionSpec::new(Exchange::Request, 6);
    assert_eq!(
        with(1981, 0).faults(&spec, 1_000_000, Mode::Inline),
        Vec::<String>::new()
    );
    // A slow flood cannot have its rate to the SYN.
    let few = |asked, sent| {
        let flood = Flood {
            asked,
            sent,
            load_ns: 300_000_000,
            ..Flood::default()
        };
        flood.fault(0)
    };
    assert_eq!([few(40, 10), few(40, 14)], [None, None]);
    assert!(few(40, 0).is_some());
    assert!(
        with(1900, 0).faults(&spec, 1_000_000, Mode::Inline)[0]
            .contains("950 SYN/s instead of 1000")
    );
    let records: Vec<TrialRecord> = [(2000, 2000, 5), (2000, 1000, 9)]
        .map(|(sent, arrived, entries)| TrialRecord {
            opened: Some(Box::new(with(sent, arrived))),
            connections: Some(Connections {
                states: States::New,
                tracked: Some(entries),
                limit: None,
                unanswered: None,
            }),
            ..TrialRecord::default()
        })
        .into();
    let row = FloodRow::of(&records.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!((row.asked, row.passed, row.entries), (1000, 0.75, Some(9)));
    assert_eq!(FloodRow::of(&[&TrialRecord::default()]), None);
}

#[test]
fn illegal_attempts_come_with_a_share_of_the_connections_and_none_may_pass() {
    // A third of the attempts: one for each two connections.
    let with = |sent, arrived| ConnectionTrial {
        flood: Some(Flood {
            illegal: 333_333,
            sent,
            arrived,
            ..Flood::default()
        }),
        ..trial([10_000; 6])
    };
    let spec = ConnectionSpec {
        illegal: 333_333,
        ..ConnectionSpec::new(Exchange::Request, 6)
    };
    let faults = |sent| with(sent, 0).faults(&spec, 1_000_000, Mode::Inline);
    assert_eq!(faults(4990), Vec::<String>::new());
    assert_eq!(
        faults(4500),
        ["4500 illegal SYNs came with 10000 connections, instead of 5000"]
    );
    let passed = |arrived| {
        let record = TrialRecord {
            opened: Some(Box::new(with(5000, arrived))),
            ..TrialRecord::default()
        };
        let flood = FloodRow::of(&[&record]);
        let row = Row {
            flood,
            ..Row::default()
        };
        row.passed().unwrap()
    };
    assert_eq!(Claim::NonePasses.judge(&passed(0)), Judgement::Met);
    assert_eq!(Claim::NonePasses.judge(&passed(1)), Judgement::Missed);
}

#[test]
fn counts_that_contradict_each_other_are_found() {
    let spec = ConnectionSpec::new(Exchange::Request, 6);
    assert_eq!(
        trial([1000; 6]).faults(&spec, 1_000_000, Mode::Inline),
        Vec::<String>::new()
    );
    assert!(
        trial([990, 991, 990, 990, 990, 990]).faults(&spec, 1_000_000, Mode::Inline)[0]
            .contains("SYN 990, SYN/ACK 991")
    );
    let busy = ConnectionTrial {
        given_up: 11,
        ..trial([990; 6])
    };
    assert!(
        busy.faults(&spec, 1_000_000, Mode::Inline)[0].contains("11 connections were given up")
    );
    assert!(
        ConnectionTrial {
            given_up: 10,
            ..trial([990; 6])
        }
        .faults(&spec, 1_000_000, Mode::Inline)
        .is_empty()
    );
    let idle = ConnectionTrial {
        idle_ns: 30_000,
        given_up: 10,
        ..trial([990; 6])
    };
    // The remedy comes first: pages cut long sentences off.
    let fault = &idle.faults(&spec, 1_000_000, Mode::Inline)[0];
    assert!(
        fault.starts_with("use --mode threaded --rate 990kpps, as many as closed here: "),
        "{fault}"
    );
    assert!(fault.contains("for 3.0 % of the time"), "{fault}");
    assert!(idle.faults(&spec, 2_000_000, Mode::Inline).is_empty());
    let twice = ConnectionTrial {
        again: vec![1, 0, 0, 0, 0, 0],
        ..trial([1000; 6])
    };
    assert!(twice.faults(&spec, 1_000_000, Mode::Inline)[0].contains("connections differ"));
    let changed = ConnectionTrial {
        changed: 7,
        ..trial([1000, 0, 0, 0, 0, 0])
    };
    assert!(
        changed.faults(&spec, 1_000_000, Mode::Inline)[0].contains("numbers and addresses")
    );
    let proxied = ConnectionTrial {
        proxied: 7,
        ..trial([0, 1000, 0, 0, 0, 0])
    };
    let found = ConnectionTrial {
        changed: 7,
        ..proxied.clone()
    };
    assert!(found.faults(&spec, 1_000_000, Mode::Inline)[0].contains("tcp_loose"));
    // A SYN proxy answers before the server has its SYN.
    let some = ConnectionTrial {
        reached: vec![990, 995, 990, 980, 980, 980],
        ..proxied
    };
    let failed: Vec<_> = some.failures(&spec).collect();
    assert_eq!(
        failed,
        [("SYN/ACK", 5), ("SYN", 5), ("answer with FIN", 10)]
    );
}
