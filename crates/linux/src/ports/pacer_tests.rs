//! Tests of pacing, on a clock that the tests move.

use super::*;
use linerate_wire::{Family, FlowSpace, FrameMix, FrameSpec, MacAddr, RateStep, Transport};
use std::time::Duration;

fn traffic() -> Traffic {
    let nowhere = MacAddr::default();
    let frame = FrameSpec::new(nowhere, nowhere, Family::V4, Transport::Udp);
    Traffic::new(
        frame,
        FrameMix::single(64),
        FlowSpace::benchmark(Family::V4, 10).unwrap(),
    )
}

fn load(rate: Option<f64>, ms: u64, frames: Option<u64>) -> Load {
    Load {
        rate,
        frames,
        ..Load::lasting(Duration::from_millis(ms))
    }
}

/// Lets a pacer run on a clock that moves by `step` nanoseconds; returns how many frames left.
fn run(pacer: &mut Pacer, start: u64, step: u64, batch: u32) -> u64 {
    let (mut now, mut sent) = (start, 0);
    loop {
        match pacer.due(now, batch) {
            Due::Over => return sent,
            Due::Wait(_) => {}
            Due::Frames(n) => {
                pacer.spent(n);
                sent += u64::from(n);
            }
        }
        now += step;
    }
}

#[test]
fn the_rate_is_met_exactly() {
    for (rate, step, want) in [
        (1000.0, 700, 1000),
        (127_251.0, 3_000, 127_251),
        (1e6, 25_000, 999_976),
    ] {
        let mut pacer = Pacer::new(&load(Some(rate), 1000, None), 0, 1);
        let sent = run(&mut pacer, 77, step, 64);
        assert!(sent.abs_diff(want) <= 26, "{rate}: {sent}");
    }
    let mut pacer = Pacer::new(&load(Some(148_809_523.0), 10, None), 0, 1);
    assert!(run(&mut pacer, 0, 100, 64).abs_diff(1_488_095) <= 16);
}

#[test]
fn the_load_is_shared_out() {
    let sent = |thread| {
        run(
            &mut Pacer::new(&load(Some(3000.0), 1000, Some(100)), thread, 3),
            1,
            1000,
            8,
        )
    };
    assert_eq!([sent(0), sent(1), sent(2)], [34, 33, 33]);
    assert_eq!(
        run(
            &mut Pacer::new(&load(None, 1000, Some(100)), 0, 1),
            1,
            1000,
            64
        ),
        100
    );
    assert_eq!(
        run(&mut Pacer::new(&load(None, 1, None), 0, 1), 1, 1000, 64),
        64_000
    );
    assert_eq!(
        run(&mut Pacer::new(&load(None, 0, None), 0, 1), 1, 1000, 64),
        0
    );
}

#[test]
fn waits_are_until_the_next_frame_or_the_end() {
    let mut pacer = Pacer::new(&load(Some(1000.0), 10, None), 0, 1);
    assert_eq!(pacer.due(5, 8), Due::Frames(1));
    pacer.spent(1);
    assert_eq!(pacer.due(5, 8), Due::Wait(1_000_000));
    assert_eq!(pacer.due(400_005, 8), Due::Wait(600_000));
    assert_eq!(pacer.due(1_000_005, 8), Due::Frames(1));
    assert_eq!(
        pacer.stall_ns, 0,
        "waiting for a frame that is not due is no stall"
    );
    assert_eq!(pacer.due(10_000_005, 8), Due::Over);
    assert_eq!((pacer.first_ns, pacer.deadline_ns), (Some(5), 10_000_005));
}

#[test]
fn a_step_changes_the_rate_at_its_moment() {
    let step = Some(RateStep {
        after_ns: 400_000_000,
        rate: 2000.0,
    });
    let half = Load {
        step,
        ..load(Some(10_000.0), 1000, None)
    };
    for clock in [1000, 700_001, 30_000_000] {
        let sent = run(&mut Pacer::new(&half, 0, 1), 7, clock, u32::MAX);
        assert!(
            sent.abs_diff(4000 + 1200) <= 2000 * clock / 1_000_000_000 + 1,
            "{clock}: {sent}"
        );
    }
    let from_maximum = Load {
        step,
        ..load(None, 1000, None)
    };
    let sent = run(&mut Pacer::new(&from_maximum, 0, 1), 1, 1_000_000, 4);
    assert!(sent.abs_diff(400 * 4 + 1200) <= 5, "{sent}");
}

/// When frames leave, by a clock that jumps to the next one.
fn times(load: &Load, traffic: &Traffic, ways: u32) -> (Vec<u64>, Pacer) {
    let mut pacer = Pacer::new(load, 0, 1).in_bursts(load, traffic, ways, (0, 1));
    let (mut now, mut times) = (1_000, Vec::new());
    loop {
        match pacer.due(now, 64) {
            Due::Over => return (times, pacer),
            Due::Wait(ns) => now += ns,
            Due::Frames(frames) => {
                times.extend((0..frames).map(|_| now - 1_000));
                pacer.spent(frames);
            }
        }
    }
}

#[test]
fn bursts_have_the_mean_rate_and_the_gap_of_their_own() {
    let bursts = Traffic {
        burst: 16,
        burst_fps: Some(100_000.0),
        ..traffic()
    };
    let (sent, pacer) = times(&load(Some(3000.0), 1000, None), &bursts, 1);
    assert_eq!(sent.len(), 188 * 16, "of 187.5 periods of 5.33 ms");
    for (number, burst) in sent.chunks(16).enumerate() {
        let begins = number as u64 * 16_000_000_000 / 3000;
        assert!(burst[0].abs_diff(begins) <= 1, "{} for {begins}", burst[0]);
        assert!(
            burst.windows(2).all(|pair| pair[1] - pair[0] == 10_000),
            "{burst:?}"
        );
    }
    assert_eq!(pacer.bursts(), (188, 188 * 150_000));
    assert_eq!(pacer.stall_ns, 0, "pauses are no stalls");
    let (sent, _) = times(
        &load(Some(3000.0), 1000, None),
        &Traffic {
            burst_fps: None,
            ..bursts.clone()
        },
        1,
    );
    assert!(
        sent.chunks(16).all(|burst| burst[0] == burst[15]),
        "at once"
    );
    let (both, _) = times(&load(Some(6000.0), 1000, None).times(1), &bursts, 2);
    assert_eq!(
        (both.len(), both[31] - both[0]),
        (188 * 32, 155_000),
        "both directions share a burst"
    );
    let (counted, pacer) = times(&load(Some(3000.0), 1000, Some(40)), &bursts, 1);
    assert_eq!(
        (counted.len(), pacer.bursts().0),
        (40, 0),
        "a number of frames is one burst"
    );
    let (most, _) = times(&load(Some(200_000.0), 10, None), &bursts, 1);
    assert_eq!(
        most.len(),
        1000,
        "without pauses where the bursts themselves take longer"
    );
}

#[test]
fn a_step_changes_the_pauses_between_bursts_and_stalls_are_caught_up_with() {
    let bursts = Traffic {
        burst: 10,
        ..traffic()
    };
    let step = Some(RateStep {
        after_ns: 500_000_000,
        rate: 100.0,
    });
    let (sent, _) = times(
        &Load {
            step,
            ..load(Some(1000.0), 1000, None)
        },
        &bursts,
        1,
    );
    assert_eq!(
        sent.len(),
        500 + 10 + 40,
        "the burst after the step was due before it"
    );
    let load = load(Some(1000.0), 10_000, None);
    let mut pacer = Pacer::new(&load, 0, 1).in_bursts(&load, &bursts, 1, (0, 1));
    let mut at = |now| {
        let mut frames = 0;
        while let Due::Frames(due) = pacer.due(now, 64) {
            pacer.spent(due);
            frames += due;
        }
        (frames, pacer.stall_ns)
    };
    assert_eq!([at(0), at(25_000_000)], [(10, 0), (20, 15_000_000)]);
    assert_eq!(
        at(5_000_000_000),
        (110, 4_970_000_000),
        "100 ms and the next one"
    );
}

#[test]
fn a_stalled_generator_catches_up_with_a_limit() {
    let mut pacer = Pacer::new(&load(Some(1_000_000.0), 10_000, None), 0, 1);
    assert_eq!(pacer.due(0, 64), Due::Frames(1));
    pacer.spent(1);
    assert_eq!(pacer.due(50_000_000, u32::MAX), Due::Frames(50_000));
    assert_eq!(pacer.stall_ns, 50_000_000 - 1000);
    pacer.spent(50_000);
    assert_eq!(
        pacer.due(3_000_000_000, u32::MAX),
        Due::Frames(100_001),
        "100 ms and the next one"
    );
    assert_eq!(pacer.scheduled_ns(0), 2_900_000_000);
    assert_eq!(pacer.scheduled_ns(100_000), 3_000_000_000);
}

#[test]
fn slow_rates_survive_long_waits() {
    let mut pacer = Pacer::new(&load(Some(0.5), 10_000, None), 0, 1);
    assert_eq!(run(&mut pacer, 1, 1_000_000_000, 8), 5);
}

#[test]
fn threads_share_each_burst() {
    let load = Load {
        not_before_ns: 1000,
        ..load(Some(50_000.0), 100, None)
    };
    let traffic = Traffic {
        burst: 50,
        burst_fps: Some(1e6),
        ..traffic()
    };
    let mut sent = Vec::new();
    for thread in 0..3 {
        let mut pacer = Pacer::new(&load, thread, 3).in_bursts(&load, &traffic, 1, (thread, 3));
        // The threads begin apart, and their bursts still begin together.
        let mut now = 1000 + thread as u64 * 7000;
        loop {
            match pacer.due(now, 64) {
                Due::Over => break,
                Due::Wait(_) => {}
                Due::Frames(n) => {
                    pacer.spent(n);
                    sent.extend(std::iter::repeat_n((now - 1000) / 1_000_000, n as usize));
                }
            }
            now += 500;
        }
    }
    let of_burst = |number: u64| sent.iter().filter(|burst| **burst == number).count();
    assert_eq!((1..99).map(of_burst).collect::<Vec<_>>(), vec![50; 98]);
    let alone = Pacer::new(&load, 60, 64).in_bursts(&load, &traffic, 1, (60, 64));
    assert_eq!(alone.frames_left, 0, "more threads than frames");
}
