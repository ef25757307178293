//! When generators send: no frame before it is due, and at the rate that was asked for.

use super::{Wire, load, packet_generator, packet_receiver, traffic, trial, wire, xdp_generator};
use linerate_linux::ports::Port;
use std::time::Duration;

/// Loads at `rate`; their rates by the generator's own first and last frame, as shares of it. No frame leaves before it is due.
fn paced(generator: &mut dyn Port, wire: &Wire, rate: f64, ms: u64, loads: usize) -> Vec<f64> {
    let mut receiver = packet_receiver(wire);
    let load = load(Some(rate), ms, None);
    let found = (0..loads).map(|_| {
        let (sent, received, took) = trial(generator, &mut *receiver, &load);
        let seconds = generator.active_ns().unwrap() as f64 / 1e9;
        assert!(
            sent.frames > 1 && sent.frames as f64 <= rate * ms as f64 / 1e3 + 1.0,
            "{sent:?}"
        );
        // The last of them was due then.
        let due = Duration::from_secs_f64((sent.frames - 1) as f64 / rate);
        assert!(took >= due, "{took:?} for {sent:?}");
        assert_eq!(sent.frames, received.unique() + received.refused);
        (sent.frames - 1) as f64 / seconds / rate
    });
    found.collect()
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn both_generators_send_no_frame_before_it_is_due() {
    let wire = wire(1);
    paced(
        &mut *packet_generator(&wire, traffic("64"), &[0]),
        &wire,
        20_000.0,
        3000,
        1,
    );
    paced(
        &mut *xdp_generator(&wire, traffic("64"), &[0]),
        &wire,
        20_000.0,
        3000,
        1,
    );
}

#[test]
#[ignore = "needs root and a quiet machine"]
fn figures_both_generators_keep_their_pace() {
    let kept = |mut shares: Vec<f64>, rate: f64| {
        shares.sort_by(f64::total_cmp);
        assert!(
            (shares[shares.len() / 2] - 1.0).abs() < 0.01,
            "{shares:?} of {rate} frames/s"
        );
    };
    for rate in [1_000.0, 50_000.0] {
        let wire = wire(1);
        kept(
            paced(
                &mut *packet_generator(&wire, traffic("64"), &[0]),
                &wire,
                rate,
                1000,
                3,
            ),
            rate,
        );
        kept(
            paced(
                &mut *xdp_generator(&wire, traffic("64"), &[0]),
                &wire,
                rate,
                1000,
                3,
            ),
            rate,
        );
    }
}
