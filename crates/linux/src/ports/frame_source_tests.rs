//! Tests of a generator's frames.

use super::*;
use linerate_wire::{Family, FrameMix, FrameSpec, MacAddr, Recognised, Transport, recognise};

fn traffic(flows: u32, order: FlowOrder) -> Traffic {
    let from = MacAddr([2, 0, 0, 0, 0, 1]);
    let frame = FrameSpec::new(MacAddr([0xff; 6]), from, Family::V4, Transport::Udp);
    let traffic = Traffic::new(
        frame,
        FrameMix::single(64),
        FlowSpace::benchmark(Family::V4, flows).unwrap(),
    );
    Traffic {
        order,
        campaign: 7,
        first_stream: 3,
        stamp_every: 4,
        ..traffic
    }
}

fn frames(source: &mut FrameSource, n: usize) -> Vec<(Signature, Flow, usize)> {
    let mut buf = [0; 2000];
    let mut one = |now| {
        let len = source.fill(&mut buf, now);
        let Recognised::Test {
            signature, flow, ..
        } = recognise(&buf[..len])
        else {
            panic!("not a test frame")
        };
        (signature, flow, len)
    };
    (0..n).map(|i| one(1000 + i as u64)).collect()
}

#[test]
fn frames_carry_stream_sequence_stamp_and_length() {
    let mut traffic = traffic(10, FlowOrder::Sequential);
    traffic.mix = "genome:aab".parse().unwrap();
    let mut source = FrameSource::new(&traffic, 1, 2).unwrap();
    let all = frames(&mut source, 9);
    assert!(all.iter().all(|(s, ..)| s.stream == 0x0704));
    assert_eq!(
        all.iter().map(|(s, ..)| s.sequence).collect::<Vec<_>>(),
        (0..9).collect::<Vec<_>>()
    );
    assert_eq!(
        all.iter().map(|(s, ..)| s.time_ns).collect::<Vec<_>>(),
        [1000, 0, 0, 0, 1004, 0, 0, 0, 1008]
    );
    assert_eq!(
        all.iter().map(|a| a.2).collect::<Vec<_>>(),
        [60, 60, 124, 60, 60, 124, 60, 60, 124]
    );
    let flows: Vec<Flow> = [5, 6, 7, 8, 9, 0, 1, 2, 3]
        .map(|i| traffic.flows.flow(i))
        .to_vec();
    assert_eq!(
        all.iter().map(|a| a.1).collect::<Vec<_>>(),
        flows,
        "the second of two threads starts in the middle"
    );
    source.unsent(2);
    source.begin(traffic.stamp_every);
    let next = frames(&mut source, 1)[0];
    assert_eq!(
        (
            next.0.sequence,
            next.0.time_ns,
            source.sequence,
            source.longest()
        ),
        (7, 1000, 8, 124)
    );
}

#[test]
fn threads_draw_different_flows_and_the_same_again() {
    let order = FlowOrder::Random { seed: 5 };
    let drawn = |thread| {
        let mut source = FrameSource::new(&traffic(1000, order), thread, 2).unwrap();
        frames(&mut source, 20)
            .into_iter()
            .map(|(_, flow, _)| flow)
            .collect::<Vec<_>>()
    };
    assert_ne!(drawn(0), drawn(1));
    assert_eq!(drawn(1), drawn(1));
}

#[test]
fn many_flows_are_computed_as_the_table_has_them() {
    let big = traffic(20_000, FlowOrder::Sequential);
    let mut source = FrameSource::new(&big, 1, 2).unwrap();
    let (_, flow, _) = frames(&mut source, 1)[0];
    assert_eq!(flow, big.flows.flow(10_000));
}

#[test]
fn refusals() {
    let mut bad = traffic(1, FlowOrder::Sequential);
    bad.mix = FrameMix::single(63);
    assert!(matches!(
        FrameSource::new(&bad, 0, 1),
        Err(Error::Traffic(_))
    ));
    bad.mix.pattern.clear();
    assert!(matches!(
        FrameSource::new(&bad, 0, 1),
        Err(Error::Traffic(_))
    ));
    let mut bad = traffic(1, FlowOrder::Sequential);
    bad.flows = FlowSpace::benchmark(Family::V6, 1).unwrap();
    assert!(matches!(
        FrameSource::new(&bad, 0, 1),
        Err(Error::Traffic(_))
    ));
}

#[test]
fn frames_that_were_not_sent_are_given_back_to_their_stream() {
    let ipv4 = traffic(10, FlowOrder::Sequential);
    let ipv6 = Some(Second {
        millionths: 300_000,
        flows: FlowSpace::benchmark(Family::V6, 10).unwrap(),
    });
    let mut source = FrameSource::new(
        &Traffic {
            ipv6,
            mix: FrameMix::single(84),
            ..ipv4
        },
        0,
        1,
    )
    .unwrap();
    frames(&mut source, 100);
    let (_, thirty) = source.second().unwrap();
    assert_eq!((source.sequence, thirty), (70, 30));
    for again in [1, 7, 40] {
        let before = frames(&mut source.clone(), again);
        let mut given_back = source.clone();
        frames(&mut given_back, again);
        given_back.unsent(again as u64);
        let after = frames(&mut given_back, again);
        let numbers = |all: &[(Signature, Flow, usize)]| {
            all.iter()
                .map(|(signature, ..)| (signature.stream, signature.sequence))
                .collect::<Vec<_>>()
        };
        assert_eq!(numbers(&before), numbers(&after));
    }
}
