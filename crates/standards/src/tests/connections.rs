//! Connections and HTTP by RFC 3511: what records show, and one change that makes a row fail.

use super::*;
use linerate_measure::record::{ConnectionTrial, Flood, Http, HttpOf, HttpTrial, Kept};
use linerate_wire::{Close, ConnectionSpec, Exchange, ServedBy};

/// A campaign with these slots beside the tester alone, each with one trial.
fn made(slots: &[Option<ConnectionSpec>], measure: Measure) -> Made {
    let mut made = sound();
    made.design().measure = measure;
    made.campaign.slots.truncate(1 + slots.len());
    (made.trials, made.facts) = (Vec::new(), Vec::new());
    (made.summary.benchmarks, made.summary.searches) = (Vec::new(), Vec::new());
    let tester = made.campaign.slots[0].traffic.as_mut().unwrap();
    tester.connections = slots[0];
    for (at, spec) in slots.iter().enumerate() {
        let slot = &mut made.campaign.slots[at + 1];
        slot.traffic.as_mut().unwrap().connections = *spec;
        let http = HttpOf {
            http: Http::Close,
            object: 1024,
            connections: 64,
        };
        slot.http = spec.is_none().then_some(http);
        let mut trial = TrialRecord {
            trial: at as u64,
            ..trial(at + 1, None, 1000.0, 1, 0)
        };
        trial.asked_fps = None;
        match spec {
            Some(spec) => trial.opened = Some(Box::new(opened(spec))),
            None => {
                trial.http = Some(Box::new(HttpTrial {
                    answered: 500,
                    served: 510,
                    ..HttpTrial::default()
                }));
            }
        }
        made.trials.push(trial);
    }
    made
}

fn opened(spec: &ConnectionSpec) -> ConnectionTrial {
    let flood = Flood {
        asked: spec.flood,
        sent: 300,
        arrived: 200,
        ..Flood::default()
    };
    ConnectionTrial {
        attempted: 1000,
        reached: vec![1000; spec.stages().len()],
        kept: spec.open.map(|_| Kept::default()),
        flood: (spec.flood > 0).then_some(flood),
        ..ConnectionTrial::default()
    }
}

const REQUEST: ConnectionSpec = ConnectionSpec {
    exchange: Exchange::Request,
    request: 6,
    object: 6,
    open: None,
    close: None,
    servers: 16,
    served_by: ServedBy::Tester,
    flood: 0,
    illegal: 0,
};

const OPEN: ConnectionSpec = ConnectionSpec {
    open: Some(1000),
    ..REQUEST
};

const FLOODED: ConnectionSpec = ConnectionSpec {
    flood: 1000,
    ..REQUEST
};

/// The statuses of these rows.
fn rows(made: &Made, ids: &[&str]) -> Vec<Status> {
    let found = made.statuses();
    ids.iter().map(|id| found[id].0).collect()
}

#[test]
fn requests_to_nginx_are_of_an_older_http() {
    let made = made(&[Some(REQUEST.by_nginx())], Measure::Rate);
    let (status, because) = &made.statuses()["3511-5.3.2.2a"];
    assert_eq!(*status, Status::Violated);
    assert_eq!(because, "linerate's client sends requests of HTTP/1.0");
}

#[test]
fn without_http_no_test_is_compliant() {
    let close = |close| ConnectionSpec {
        close: Some(close),
        ..OPEN
    };
    let tests: [(&[ConnectionSpec], &str); 4] = [
        (&[OPEN], "5.2 concurrent TCP connection capacity"),
        (&[REQUEST], "5.3 maximum TCP connection establishment rate"),
        (
            &[close(Close::Client)],
            "5.4 maximum TCP connection tear down rate",
        ),
        (&[REQUEST, FLOODED], "5.5 denial of service handling"),
    ];
    for (specs, name) in tests {
        let specs: Vec<_> = specs.iter().copied().map(Some).collect();
        let judged = made(&specs, Measure::Rate).judged();
        let line = judged.line();
        // No row about closing asks for HTTP.
        let why = match name.contains("tear down") {
            true => "",
            false => ", because the connections carry no HTTP",
        };
        let begin = format!("RFC 3511 {name}: not compliant{why} (");
        assert!(line.starts_with(&begin), "{line}");
        assert_eq!(judged.claims.len(), 1, "{line}");
        assert!(!judged.holds() && judged.rows.iter().all(|row| row.id.starts_with("3511-5.")));
    }
}

#[test]
fn http_meets_the_rows_of_http_and_no_others() {
    let without = made(&[Some(REQUEST)], Measure::Rate);
    let with = made(&[None], Measure::Rate);
    let of_http = ["3511-5.3.2.2a", "3511-5.3.5.1b"];
    assert_eq!(rows(&with, &of_http), [Status::Met; 2]);
    assert_eq!(rows(&without, &of_http), [Status::Violated; 2]);
    let (status, because) = with.statuses()["3511-5.3.5.1a"].clone();
    assert_eq!(
        (status, because.as_str()),
        (Status::Met, "500 requests, 500 answers")
    );
    // Each connection has its request at once, and wrk has no clock for handshakes.
    assert_eq!(
        rows(&with, &["3511-5.3.3c", "3511-5.3.5.2"]),
        [Status::Violated; 2]
    );
    let line = with.judged().line();
    assert!(
        line.contains("not compliant (3511-") && !line.contains("carry no HTTP"),
        "{line}"
    );
    // Connections that stay open are none of these tests.
    let mut kept = with;
    let slot = kept.slot().http.as_mut().unwrap();
    slot.http = Http::KeepAlive;
    let Made {
        campaign,
        host,
        trials,
        facts,
        summary,
    } = &kept;
    let records = Records {
        campaign,
        host,
        trials,
        facts,
        summary: Some(summary),
    };
    assert_eq!(conformance(&records), None);
}

#[test]
fn what_the_records_show_decides_a_row() {
    let mut capacity = made(&[Some(OPEN)], Measure::Rate);
    let ids = ["3511-5.2.3d", "3511-5.2.5.1a", "3511-5.2.5.2b"];
    assert_eq!(rows(&capacity, &ids), [Status::Met; 3]);
    assert_eq!(capacity.statuses()["3511-5.2.5.2b"].1, "1,000 open");
    capacity.trials[0].audit.valid = false;
    assert_eq!(rows(&capacity, &ids), [Status::NotRun; 3]);
    let closed = |close| {
        let spec = ConnectionSpec {
            close: Some(close),
            ..OPEN
        };
        rows(&made(&[Some(spec)], Measure::Rate), &["3511-5.4.2c"])[0]
    };
    assert_eq!(closed(Close::Server), Status::Met);
    assert_eq!(closed(Close::Reset), Status::Violated);
    let searched = ["3511-5.3.3a"];
    assert_eq!(
        rows(&made(&[Some(REQUEST)], Measure::Search), &searched),
        [Status::Met]
    );
    assert_eq!(
        rows(&made(&[Some(REQUEST)], Measure::Rate), &searched),
        [Status::Deviation]
    );
}

#[test]
fn a_flood_needs_its_baseline_first() {
    let mut made = made(&[Some(REQUEST), Some(FLOODED)], Measure::Rate);
    let found = made.statuses();
    assert_eq!(found["3511-5.5.1"].0, Status::Met);
    assert_eq!(found["3511-5.5.5a"].1, "200 of 300 SYNs forwarded");
    assert_eq!(found["3511-5.5.3c"].0, Status::NotRun);
    // The rate under a flood is found as that without one.
    assert!(found.contains_key("3511-5.3.2.2a"));
    made.trials.reverse();
    made.trials[0].trial = 0;
    made.trials[1].trial = 1;
    let (status, because) = made.statuses()["3511-5.5.1"].clone();
    assert_eq!(status, Status::Violated, "{because}");
    made.trials.pop();
    assert!(
        made.statuses()["3511-5.5.1"]
            .1
            .contains("no valid trial without a flood")
    );
}
