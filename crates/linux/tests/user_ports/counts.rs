//! Every frame between two ports is received, or counted where it was dropped.

use super::{
    CAMPAIGN, load, packet_generator, packet_receiver, traffic, trial, until, wire, xdp_generator,
    xdp_receiver,
};
use linerate_measure::counters::PortCounters;

/// Every frame that was sent is received, or counted as dropped by the receiver's own socket.
fn conserved(sent: &PortCounters, received: &PortCounters) {
    assert_eq!(
        sent.frames,
        received.unique() + received.refused,
        "{sent:?} {received:?}"
    );
    assert_eq!(
        (
            received.duplicates(),
            received.reordered(),
            received.foreign_total()
        ),
        (0, 0, 0),
        "{received:?}"
    );
    if received.refused == 0 {
        assert_eq!(sent.bytes, received.bytes);
        let next = |c: &PortCounters| {
            c.streams
                .iter()
                .map(|s| (s.stream, s.next_sequence))
                .collect::<Vec<_>>()
        };
        assert_eq!(next(sent), next(received));
    }
    let latency = received.latency.quantile(0.5).unwrap();
    assert!((500..5_000_000_000).contains(&latency), "{latency} ns");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn af_packet_to_af_packet_is_exact() {
    let wire = wire(1);
    let mut receiver = packet_receiver(&wire);
    let mut generator = packet_generator(&wire, traffic("imix"), &[0, 0]);
    for _ in 0..2 {
        let (sent, received, _) = trial(
            &mut *generator,
            &mut *receiver,
            &load(None, 20_000, Some(6_000)),
        );
        assert_eq!(sent.frames, 6_000);
        assert_eq!(
            sent.streams.iter().map(|s| s.frames).collect::<Vec<_>>(),
            [3_000, 3_000]
        );
        conserved(&sent, &received);
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn af_packet_receives_tagged_and_foreign_frames() {
    let wire = wire(1);
    let mut receiver = packet_receiver(&wire);
    let mut tagged = traffic("128");
    tagged.frame.vlan = Some(linerate_wire::VlanTag { id: 7, priority: 0 });
    let mut generator = packet_generator(&wire, tagged, &[0]);
    let (sent, received, _) = trial(
        &mut *generator,
        &mut *receiver,
        &load(Some(20_000.0), 20_000, Some(1000)),
    );
    assert_eq!((sent.frames, sent.bytes), (1000, 124_000));
    conserved(&sent, &received);
    let mut other = traffic("64");
    other.campaign = 1;
    let mut generator = packet_generator(&wire, other, &[0]);
    receiver.start(&load(Some(20_000.0), 0, None)).unwrap();
    generator
        .start(&load(Some(20_000.0), 20_000, Some(100)))
        .unwrap();
    until(|| generator.finished());
    generator.stop().unwrap();
    until(|| receiver.counters().foreign_total() == 100);
    receiver.stop().unwrap();
    assert_eq!(
        (
            receiver.frames(),
            receiver.counters().foreign["other campaign's"]
        ),
        (0, 100)
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn af_xdp_to_af_packet_is_exact() {
    let wire = wire(2);
    let mut receiver = packet_receiver(&wire);
    // Twice, so that the queues have to be taken over from sockets that have just been closed.
    for _ in 0..2 {
        let mut traffic = traffic("imix");
        traffic.campaign = CAMPAIGN;
        let mut generator = xdp_generator(&wire, traffic, &[0, 0]);
        let (sent, received, _) = trial(
            &mut *generator,
            &mut *receiver,
            &load(None, 20_000, Some(6_000)),
        );
        assert_eq!(sent.frames + sent.refused, 6_000);
        assert_eq!(sent.frames, received.frames + received.refused);
        receiver = packet_receiver(&wire);
        let (sent, received, _) = trial(&mut *generator, &mut *receiver, &load(None, 100, None));
        assert!(sent.frames > 0);
        assert_eq!(sent.frames, received.unique() + received.refused);
        receiver = packet_receiver(&wire);
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn af_packet_to_af_xdp_is_exact() {
    let wire = wire(1);
    let mut receiver = xdp_receiver(&wire, 1);
    let mut generator = packet_generator(&wire, traffic("imix"), &[0]);
    for _ in 0..2 {
        let (sent, received, _) = trial(
            &mut *generator,
            &mut *receiver,
            &load(Some(50_000.0), 20_000, Some(4_000)),
        );
        assert_eq!(sent.frames, 4_000);
        conserved(&sent, &received);
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn af_xdp_to_af_xdp_conserves_frames() {
    let wire = wire(2);
    let mut receiver = xdp_receiver(&wire, 2);
    let mut generator = xdp_generator(&wire, traffic("64"), &[0, 0]);
    let (sent, received, _) = trial(
        &mut *generator,
        &mut *receiver,
        &load(Some(40_000.0), 20_000, Some(6_000)),
    );
    assert_eq!(sent.frames + sent.refused, 6_000);
    conserved(&sent, &received);
}
