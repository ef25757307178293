use super::*;
use crate::counters::StreamCounters;

fn sent_and_received(sent: u64, received: u64) -> Evidence {
    let port = |frames| PortCounters {
        frames,
        ..PortCounters::default()
    };
    let rates = Some(Rates {
        offered: 1.0,
        received: 1.0,
        seconds: 1.0,
    });
    Evidence {
        rates,
        generator: port(sent),
        receiver: port(received),
        ..Evidence::default()
    }
}

fn failed(e: &Evidence) -> Vec<String> {
    audit(e)
        .checks
        .into_iter()
        .filter(|c| !c.ok)
        .map(|c| c.name)
        .collect()
}

#[test]
fn a_frame_that_nobody_accounts_for_fails_the_trial() {
    assert!(audit(&sent_and_received(1000, 1000)).valid);
    assert_eq!(failed(&sent_and_received(1000, 999)), ["conservation"]);
    assert_eq!(failed(&sent_and_received(1000, 1001)), ["conservation"]);
    assert_eq!(failed(&sent_and_received(0, 0)), ["frames were sent"]);
}

#[test]
fn a_loss_in_one_direction_is_not_made_up_for_by_a_surplus_in_the_other() {
    let both = |lost: i64, surplus: i64| {
        let way = |by: i64| sent_and_received(1000, (1000 + by) as u64);
        let ways = [
            (Direction::Forward, way(-lost)),
            (Direction::Reverse, way(surplus)),
        ];
        Evidence {
            ways: ways.into(),
            ..sent_and_received(2000, (2000 - lost + surplus) as u64)
        }
    };
    assert!(audit(&both(0, 0)).valid);
    let hidden = both(3, 3);
    assert_eq!(
        failed(&hidden),
        ["conservation, forward", "conservation, reverse"]
    );
    assert_eq!(audit(&hidden).unlocated.abs(), 3);
    assert!(
        audit(&Evidence {
            ways: Vec::new(),
            ..hidden
        })
        .valid,
        "by the sums, nothing is missing"
    );
    assert_eq!(failed(&both(0, 5)), ["conservation, reverse"]);
    assert_eq!(audit(&both(0, 5)).unlocated, -5);
}

#[test]
fn a_direction_has_its_own_losses_load_and_second_counts() {
    let mut e = Evidence {
        calibration: false,
        ..sent_and_received(2000, 1900)
    };
    e.ways = [(1000, Direction::Forward), (900, Direction::Reverse)]
        .map(|(received, direction)| (direction, sent_and_received(1000, received)))
        .into();
    let place = "DUT out: receive ring full".to_string();
    let loss = Loss {
        place,
        frames: 100,
        side: Side::Dut,
        cause: Cause::QueueFull,
    };
    e.ways[0].1.losses.push(loss.clone());
    assert_eq!(
        failed(&e),
        ["conservation, forward", "conservation, reverse"],
        "it is the reverse's"
    );
    e.ways[0].1.losses.clear();
    e.ways[1].1.losses.push(loss);
    assert!(audit(&e).valid);
    let rates = Some(Rates {
        offered: 90.0,
        received: 90.0,
        seconds: 10.0,
    });
    e.ways[1].1.parts = vec![Part {
        asked: 100.0,
        rates,
    }];
    let second = SecondCount {
        place: "DUT out".into(),
        frames: 9,
        expected: 10,
    };
    e.ways[1].1.second_counts.push(second);
    assert_eq!(
        failed(&e),
        [
            "offered as asked, reverse",
            "counted twice (DUT out), reverse"
        ]
    );
}

#[test]
fn frames_that_come_back_to_their_sender_are_found() {
    let stream = |stream| StreamCounters {
        stream,
        frames: 10,
        ..StreamCounters::default()
    };
    let mut way = sent_and_received(10, 10);
    (way.generator.streams, way.receiver.streams) = (vec![stream(1)], vec![stream(2)]);
    let e = Evidence {
        ways: vec![(Direction::Reverse, way)],
        ..sent_and_received(10, 10)
    };
    assert_eq!(failed(&e), ["no frames of the other direction, reverse"]);
}

#[test]
fn located_losses_balance_the_account_and_are_charged_to_their_side() {
    let mut e = sent_and_received(1000, 900);
    e.losses.push(Loss {
        place: "DUT in: receive ring full".into(),
        frames: 100,
        side: Side::Dut,
        cause: Cause::QueueFull,
    });
    assert!(audit(&e).valid);
    e.losses[0].side = Side::Tester;
    assert_eq!(failed(&e), ["the tester lost nothing"]);
    e.calibration = true;
    assert!(audit(&e).valid);
}

#[test]
fn a_connection_that_was_to_be_established_and_is_not_fails_the_trial() {
    let mut e = sent_and_received(1000, 1000);
    let of = |states, unanswered| {
        Some(Connections {
            states,
            tracked: Some(5),
            limit: None,
            unanswered,
        })
    };
    for (connections, fails) in [
        (of(States::Established, Some(0)), false),
        (of(States::Established, Some(1)), true),
        (of(States::OneWay, Some(5)), false),
        (of(States::New, None), false),
        (None, false),
    ] {
        e.connections = connections;
        let names = failed(&e);
        assert_eq!(
            names,
            if fails {
                vec!["connections are established"]
            } else {
                vec![]
            }
        );
    }
}

#[test]
fn duplicates_do_not_hide_losses() {
    let mut e = sent_and_received(1000, 1000);
    e.receiver.streams.push(StreamCounters {
        duplicates: 10,
        ..StreamCounters::default()
    });
    let a = audit(&e);
    assert_eq!((a.valid, a.unlocated), (false, 10));
}

#[test]
fn the_offered_load_must_be_what_was_asked() {
    let mut e = sent_and_received(1000, 1000);
    let part = |offered| Part {
        asked: 100_000.0,
        rates: Some(Rates {
            offered,
            received: offered,
            seconds: 10.0,
        }),
    };
    e.parts = vec![part(99_600.0), part(100_000.0)];
    assert!(audit(&e).valid);
    e.parts[1] = part(99_000.0);
    assert_eq!(failed(&e), ["offered as asked"], "after a step as well");
}

#[test]
fn a_burst_must_be_whole_and_has_no_window() {
    let shape = Shape::Burst { frames: 1000 };
    let mut e = Evidence {
        rates: None,
        shape,
        ..sent_and_received(1000, 1000)
    };
    assert!(audit(&e).valid);
    e.generator.frames = 999;
    assert_eq!(failed(&e), ["conservation", "whole burst"]);
}

#[test]
fn a_mix_has_the_share_of_ipv6_that_was_asked_for() {
    let mut e = Evidence {
        ipv6: 100_000,
        ..sent_and_received(1000, 1000)
    };
    assert_eq!(failed(&e), ["IPv6 share as asked"]);
    let stream = |stream, frames, ipv6| StreamCounters {
        stream,
        frames,
        ipv6,
        ..StreamCounters::default()
    };
    e.generator.streams = vec![stream(1, 900, false), stream(2, 100, true)];
    e.receiver.streams = vec![stream(1, 900, false), stream(2, 90, false)];
    assert!(!failed(&e).contains(&"IPv6 share as asked".to_string()));
    assert_eq!(e.generator.ipv6(&e.receiver), (100, 90));
    e.generator.streams[1].frames = 98;
    assert!(failed(&e).contains(&"IPv6 share as asked".to_string()));
}

#[test]
fn repeated_bursts_are_whole_and_faster_than_the_load() {
    let rates = Some(Rates {
        offered: 1100.0,
        received: 1100.0,
        seconds: 1.0,
    });
    let mut e = Evidence {
        burst: 64,
        ..sent_and_received(1000, 1000)
    };
    e.parts = vec![Part {
        asked: 1000.0,
        rates,
    }];
    (e.generator.bursts, e.generator.bursts_ns) = (15, 15 * 63 * 10_000);
    assert!(
        audit(&e).valid,
        "15 bursts at 100,000 frames/s, and 40 frames: {:?}",
        audit(&e)
    );
    e.generator.bursts_ns *= 200;
    assert_eq!(
        failed(&e),
        ["repeated bursts"],
        "500 frames/s are evenly spaced"
    );
    (e.generator.bursts, e.generator.bursts_ns) = (14, 1);
    assert_eq!(
        failed(&e),
        ["repeated bursts"],
        "104 frames are in no burst"
    );
    e.burst = 0;
    assert_eq!(
        failed(&e),
        ["offered as asked"],
        "without bursts, a window cuts off a frame or two"
    );
    let told = audit(&e).failures().next().unwrap();
    assert!(
        told.starts_with("the tester offered ") && !told.contains("frames"),
        "{told}"
    );
}

#[test]
fn foreign_frames_second_counts_and_faults() {
    let mut e = sent_and_received(10, 10);
    e.receiver.foreign.insert("ARP".into(), 2);
    e.second_counts.push(SecondCount {
        place: "DUT in".into(),
        frames: 9,
        expected: 10,
    });
    e.faults.push("interface g0 went down".into());
    assert_eq!(
        failed(&e),
        ["no fault", "no foreign frames", "counted twice (DUT in)"]
    );
    assert_eq!(
        audit(&e).failures().next().unwrap(),
        "interface g0 went down",
        "the cause first"
    );
    e.others = true;
    assert_eq!(failed(&e), ["no fault", "counted twice (DUT in)"]);
    e.receiver.foreign.insert("ARP".into(), 101);
    assert_eq!(failed(&e)[1], "no foreign frames");
}

#[test]
fn broadcast_frames_count_apart_and_take_the_places_of_test_frames() {
    let mut e = sent_and_received(990, 990);
    e.generator.broadcasts = 10;
    let rates = Some(Rates {
        offered: 990.0,
        received: 990.0,
        seconds: 1.0,
    });
    e.parts = vec![Part {
        asked: 1000.0,
        rates,
    }];
    assert_eq!(failed(&e), ["conservation"], "10 are nowhere");
    e.receiver.foreign.insert("IPv4".into(), 10);
    assert!(audit(&e).valid, "{:?}", audit(&e));
    e.receiver.foreign.insert("IPv4".into(), 11);
    assert_eq!(failed(&e), ["no foreign frames"]);
    e.receiver.foreign.clear();
    let place = "DUT: broadcast frames, which are not forwarded".into();
    e.losses.push(Loss {
        place,
        frames: 10,
        side: Side::Dut,
        cause: Cause::NotForwarded,
    });
    assert!(audit(&e).valid);
}

#[test]
fn a_clock_that_stands_still_fails_the_trial_and_is_named() {
    let parts = vec![Part {
        asked: 10.0,
        rates: None,
    }];
    let e = Evidence {
        rates: None,
        parts,
        ..sent_and_received(10, 10)
    };
    assert_eq!(failed(&e), ["measured window"]);
    assert!(
        audit(&e)
            .failures()
            .next()
            .unwrap()
            .contains("clock stands still")
    );
}

#[test]
fn a_loop_that_the_kernel_left_open_is_told_by_full_rings() {
    // Linux 6.1: 85,919 frames sent, and 85,551 of them found the DUT's ring full.
    let place = "DUT in: receive ring full".to_string();
    let full = |frames| Loss {
        place: place.clone(),
        frames,
        side: Side::Dut,
        cause: Cause::QueueFull,
    };
    let mut e = Evidence {
        losses: vec![full(85_551)],
        ..sent_and_received(85_919, 368)
    };
    assert!(audit(&e).valid, "a DUT with a CPU of its own");
    e.closed_loop = true;
    assert_eq!(failed(&e), ["closed loop"]);
    assert!(audit(&e).failures().next().unwrap().contains("ksoftirqd"));
    e.losses = vec![full(800)];
    e.receiver.frames = 85_119;
    assert!(audit(&e).valid, "a moment of it");
}

#[test]
fn a_rate_of_0_is_valid_where_the_dut_drops_all() {
    let rates = |offered, received| {
        Some(Rates {
            offered,
            received,
            seconds: 1.0,
        })
    };
    let loss = |frames, cause| Loss {
        place: "DUT".into(),
        frames,
        side: Side::Dut,
        cause,
    };
    let mut e = Evidence {
        losses: vec![loss(1000, Cause::Dropped)],
        ..sent_and_received(1000, 0)
    };
    e.rates = rates(1000.0, 0.0);
    assert!(audit(&e).valid);
    e.losses = vec![loss(1000, Cause::QueueFull)];
    assert_eq!(failed(&e), ["the DUT was at work"]);
    e.losses = vec![loss(400, Cause::QueueFull), loss(500, Cause::Dropped)];
    e.receiver.frames = 100;
    assert_eq!(
        failed(&e),
        ["the DUT was at work"],
        "100 came, and none in the window"
    );
    e.shape = Shape::Event { after_ns: 1 };
    assert!(audit(&e).valid, "its event keeps the DUT from working");
    e.shape = Shape::Constant;
    e.rates = rates(0.0, 0.0);
    assert_eq!(failed(&e), ["measured window"], "nothing was sent in it");
}

#[test]
fn a_receiver_that_tells_no_frames_apart_counts_a_few_of_others() {
    let (mut tool, mut agent) = (sent_and_received(1000, 1003), sent_and_received(1000, 1003));
    tool.receiver.streams.clear();
    agent.receiver.streams = vec![crate::counters::StreamCounters::default()];
    assert_eq!(
        [failed(&tool), failed(&agent)],
        [["conservation"], ["conservation"]],
        "in a lab of one's own"
    );
    (tool.others, agent.others) = (true, true);
    assert_eq!(
        (failed(&tool).len(), failed(&agent)),
        (0, vec!["conservation".to_string()])
    );
    for received in [999, 1102] {
        tool.receiver.frames = received;
        assert_eq!(failed(&tool), ["conservation"], "{received}");
    }
}
