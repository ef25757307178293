//! The in-memory link, with a simulated DUT that loses, copies, delays and queues frames as it is told.

use super::traffic;
use linerate_linux::ports::memory::{MemoryDut, MemoryLink, MemoryTrial};
use linerate_measure::audit::{Evidence, SecondCount, audit};
use linerate_measure::counters::Outage;
use linerate_measure::trial::{Rates, Timing};
use linerate_wire::{Findings, Load, RateStep};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn at(rate: Option<f64>) -> Load {
    Load {
        rate,
        ..Load::lasting(Duration::MAX)
    }
}

fn memory(mix: &str, ms: u64, rate: f64, dut: MemoryDut) -> MemoryTrial {
    let mut link = MemoryLink::new(&traffic(mix)).unwrap();
    let timing = Timing {
        warm_up_ns: 0,
        ..Timing::slice(ms * 1_000_000)
    };
    let first = link.trial(timing, at(Some(rate)), dut, &AtomicBool::new(false));
    // Counted anew in the second trial, on a clock that goes on.
    let second = link.trial(timing, at(Some(rate)), dut, &AtomicBool::new(false));
    assert_eq!(
        (first.sent.frames, &first.losses),
        (second.sent.frames, &second.losses)
    );
    assert!(second.outcome.began_ns >= first.outcome.began_ns + timing.load_ns());
    let evidence = Evidence {
        rates: Some(Rates {
            offered: rate,
            received: rate,
            seconds: 0.1,
        }),
        generator: second.sent.clone(),
        receiver: second.received.clone(),
        losses: second.losses.clone(),
        second_counts: vec![SecondCount {
            place: "simulated DUT: copies".into(),
            frames: second.received.duplicates(),
            expected: second.copies,
        }],
        ..Evidence::default()
    };
    assert!(audit(&evidence).valid, "{:#?}", audit(&evidence));
    second
}

#[test]
fn memory_forwards_everything() {
    let MemoryTrial {
        sent,
        received,
        outcome,
        ..
    } = memory("imix", 120, 1e5, MemoryDut::default());
    assert_eq!((sent.frames, received.frames), (12_000, 12_000));
    assert_eq!(
        (sent.bytes, received.bytes),
        (12_000 / 12 * (7 * 60 + 4 * 590 + 1514), sent.bytes)
    );
    assert_eq!(received.latency.count(), 12_000 / 8);
    assert_eq!(
        (
            sent.streams[0].next_sequence,
            received.streams[0].next_sequence
        ),
        (24_000, 24_000)
    );
    let rate = linerate_measure::trial::rates(&outcome.samples).unwrap();
    assert!((rate.received / 1e5 - 1.0).abs() < 1e-3, "{rate:?}");
}

#[test]
fn memory_loses_exactly() {
    let dut = MemoryDut {
        loss_one_in: Some(1000),
        ..MemoryDut::default()
    };
    let MemoryTrial {
        sent,
        received,
        losses,
        ..
    } = memory("64", 50, 1.01e6, dut);
    assert_eq!(
        (sent.frames, received.frames, received.unique()),
        (50_500, 50_450, 50_450)
    );
    assert_eq!((losses.len(), losses[0].frames), (1, 50));
}

#[test]
fn memory_duplicates_exactly() {
    let dut = MemoryDut {
        duplicate_one_in: Some(100),
        loss_one_in: Some(2),
        ..MemoryDut::default()
    };
    let MemoryTrial {
        sent,
        received,
        copies,
        ..
    } = memory("64", 20, 1e6, dut);
    assert_eq!(
        (sent.frames, received.frames, received.unique()),
        (20_000, 10_100, 10_000)
    );
    assert_eq!((received.duplicates(), copies), (100, 100));
}

#[test]
fn memory_forwards_at_its_rate() {
    let dut = MemoryDut {
        rate: Some(30_000.0),
        ..MemoryDut::default()
    };
    let MemoryTrial { sent, received, .. } = memory("64", 500, 100_000.0, dut);
    assert_eq!(sent.frames, 50_000);
    let forwarded = received.frames as f64 / sent.frames as f64 * 100_000.0;
    assert!(
        (forwarded / 30_000.0 - 1.0).abs() < 0.005,
        "{forwarded} frames/s"
    );
    let MemoryTrial { sent, received, .. } = memory("64", 300, 29_999.0, dut);
    assert_eq!(
        sent.frames, received.frames,
        "what is below its rate passes"
    );
}

#[test]
fn memory_delays() {
    let dut = MemoryDut {
        delay: Duration::from_millis(3),
        ..MemoryDut::default()
    };
    let MemoryTrial { sent, received, .. } = memory("64", 300, 5_000.0, dut);
    assert_eq!(sent.frames, received.frames);
    let quantile = |q| received.latency.quantile(q).unwrap() as f64 / 1e6;
    // A bucket is 3 % wide.
    assert!(
        quantile(0.0) >= 2.9 && quantile(1.0) <= 3.2,
        "{} to {} ms",
        quantile(0.0),
        quantile(1.0)
    );
}

#[test]
fn memory_stops_when_told() {
    let mut link = MemoryLink::new(&traffic("64")).unwrap();
    let stop = AtomicBool::new(true);
    let trial = link.trial(
        Timing::slice(60_000_000_000),
        at(Some(1e9)),
        MemoryDut::default(),
        &stop,
    );
    assert_eq!(trial.sent.frames, 0);
}

#[test]
fn memory_is_as_fast_as_its_trial_lets_it() {
    let mut link = MemoryLink::new(&traffic("64")).unwrap();
    for (seconds, rate) in [(0.005, 2e6), (1.0, 1e4)] {
        let timing = Timing {
            warm_up_ns: 0,
            ..Timing::slice((seconds * 1e9) as u64)
        };
        let trial = link.trial(
            timing,
            at(None),
            MemoryDut::default(),
            &AtomicBool::new(false),
        );
        let found = trial.sent.frames as f64 / seconds;
        assert!(
            (found / rate - 1.0).abs() < 0.01,
            "{found} frames/s in {seconds} s"
        );
        assert_eq!(trial.sent.frames, trial.received.frames);
    }
}

/// A trial of a load of 100 ms without a warm-up.
fn through(dut: MemoryDut, load: Load) -> MemoryTrial {
    let timing = Timing {
        warm_up_ns: 0,
        ..Timing::slice(100_000_000)
    };
    let trial =
        MemoryLink::new(&traffic("64"))
            .unwrap()
            .trial(timing, load, dut, &AtomicBool::new(false));
    let lost: u64 = trial.losses.iter().map(|loss| loss.frames).sum();
    assert_eq!(trial.sent.frames, trial.received.unique() + lost);
    trial
}

#[test]
fn memory_passes_a_burst_that_its_queue_holds() {
    let dut = MemoryDut {
        rate: Some(1e6),
        queue: 256,
        ..MemoryDut::default()
    };
    // A queue of Q frames, drained at r and filled at R, takes Q R / (R - r) frames, less one: the first drains nothing.
    for (frames, passes) in [(511, true), (513, false)] {
        let MemoryTrial { sent, received, .. } = through(
            dut,
            Load {
                frames: Some(frames),
                ..at(Some(2e6))
            },
        );
        assert_eq!(
            (sent.frames, sent.frames == received.frames),
            (frames, passes)
        );
        assert!(
            sent.active_ns.abs_diff(frames * 500) <= 32_000,
            "{} ns",
            sent.active_ns
        );
    }
}

const EVERY_FRAME: Option<Findings> = Some(Findings {
    every_frame: true,
    tag_after_ns: 50_000_000,
});

#[test]
fn memory_finds_an_outage_and_the_last_loss() {
    let [lasts, after] = [20, 30].map(Duration::from_millis);
    let dut = MemoryDut {
        outage: Some((lasts, after)),
        ..MemoryDut::default()
    };
    let load = Load {
        findings: EVERY_FRAME,
        ..at(Some(1e5))
    };
    let MemoryTrial {
        mut received,
        outcome,
        sent,
        ..
    } = through(dut, load);
    received.since(outcome.began_ns);
    received.end_loss(&sent);
    let gap = 10_000;
    let Outage {
        from_ns,
        to_ns,
        missing,
        ..
    } = received.outages[0];
    assert!(
        from_ns.abs_diff(30_000_000) <= gap && to_ns.abs_diff(50_000_000) <= gap,
        "{from_ns} to {to_ns}"
    );
    assert_eq!(missing, 2000);
    assert!(
        received.last_loss_ns.unwrap().abs_diff(50_000_000) <= gap,
        "{:?}",
        received.last_loss_ns
    );
    assert!(
        received.outages.len() > 1 && received.outages[1..].iter().all(|short| short.missing == 0)
    );
    let delays = received.delays.unwrap();
    assert_eq!(
        (delays.frames, delays.broken, delays.later.count()),
        (8000, 1, 7998)
    );
    assert!(
        (500..=1100).contains(&delays.tagged.len()),
        "{}",
        delays.tagged.len()
    );
    assert!(
        delays
            .tagged
            .iter()
            .all(|(sent_ns, _)| *sent_ns >= 50_000_000)
    );
}

#[test]
fn memory_follows_a_step_and_finds_the_loss_at_the_end() {
    let dut = MemoryDut {
        outage: Some([20, 80].map(Duration::from_millis).into()),
        ..MemoryDut::default()
    };
    let step = Some(RateStep {
        after_ns: 40_000_000,
        rate: 5e4,
    });
    let load = Load {
        step,
        findings: EVERY_FRAME,
        ..at(Some(1e5))
    };
    let MemoryTrial {
        mut received,
        outcome,
        sent,
        ..
    } = through(dut, load);
    assert!(
        sent.frames.abs_diff(4000 + 3000) <= 2,
        "{} frames",
        sent.frames
    );
    received.since(outcome.began_ns);
    received.end_loss(&sent);
    assert!(
        received.last_loss_ns.unwrap() > 99_900_000,
        "no frame came after the loss: {received:?}"
    );
}
