//! Traffic that a port cannot send is refused, and a link that goes down is an error.

use super::{FILTER, load, packet_generator, target, traffic, until, wire, xdp_generator};
use linerate_linux::ports::{self, Arrival};
use linerate_plan::Backend;

fn refusal<T>(result: Result<T, linerate_linux::Error>) -> String {
    match result {
        Err(linerate_linux::Error::Refused(why)) => why,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("no error"),
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn unsuitable_traffic_is_refused_before_it_starts() {
    let wire = wire(1);
    let (namespace, targets) = (&wire.namespace, [target(wire.generator)]);
    let refused = |backend, mix, cpus: &[u32]| {
        refusal(ports::generator(
            backend,
            namespace,
            &targets,
            &traffic(mix),
            cpus,
        ))
    };
    let why = refused(Backend::AfPacket, "1519", &[0]);
    assert!(why.contains("need an MTU of 1501"), "{why}");
    let why = refused(Backend::AfXdp, "4101", &[0]);
    assert!(why.contains("at most 4100"), "{why}");
    let why = refused(Backend::AfXdp, "64", &[0, 0]);
    assert!(why.contains("has no queue 1"), "{why}");
    let why = refused(Backend::PktGen, "64", &[0]);
    assert!(why.contains("choose xdp, af-xdp, af-packet"), "{why}");
    assert!(
        ports::generator(
            Backend::AfPacket,
            namespace,
            &[target(9999)],
            &traffic("64"),
            &[0]
        )
        .is_err()
    );
    let nowhere = Arrival {
        ifindex: 9999,
        queues: 1,
    };
    assert!(ports::receiver(Backend::AfPacket, namespace, nowhere, FILTER, None).is_err());
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_link_that_goes_down_is_an_error() {
    let wire = wire(1);
    for mut generator in [
        packet_generator(&wire, traffic("64"), &[0]),
        xdp_generator(&wire, traffic("64"), &[0]),
    ] {
        let link = |state| {
            wire.namespace
                .command("ip")
                .args(["link", "set", "g0", state])
                .status()
                .unwrap()
        };
        link("up");
        generator.start(&load(Some(1000.0), 600_000, None)).unwrap();
        until(|| generator.frames() > 0);
        link("down");
        until(|| generator.finished());
        assert!(generator.stop().is_err());
    }
}
