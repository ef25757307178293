//! Results of a trial over hosts with pkt-gen.

use crate::bsd::{Bsd, TIMING};
use linerate_measure::trial::{Rates, rates};
use linerate_remote::TrialResult;
use linerate_remote::external::NOTHING_ARRIVED;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, UNIX_EPOCH};

/// A whole window, without a fault.
#[track_caller]
fn whole(result: &TrialResult) -> Rates {
    assert_eq!(result.outcome.faults, [""; 0], "{result:#?}");
    let rates = rates(&result.outcome.samples).unwrap();
    assert!(
        (rates.seconds - TIMING.run_ns as f64 / 1e9).abs() < 1e-6,
        "{rates:?}"
    );
    assert_eq!(result.outcome.samples[0].t_ns, TIMING.warm_up_ns);
    rates
}

fn is_near(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 0.02
}

#[test]
#[ignore = "needs root and openssh-server"]
fn every_frame_is_counted_at_both_ends() {
    let bsd = Bsd::new();
    // The device takes 800,000 frames/s and gets 500,000.
    let result = bsd.trial(&["gen"], Some(500_000.0)).unwrap();
    let seen = whole(&result);
    assert!(
        is_near(seen.offered, 500_000.0) && is_near(seen.received, 500_000.0),
        "{seen:?}"
    );
    // Frames after the last whole second are in the totals of both.
    assert_eq!(result.sent[0].frames, result.received[0].frames);
    assert_eq!(result.sent[0].bytes, 60 * result.sent[0].frames);
    assert!(
        result.late.len() == 1 && result.within_ns < 1_000_000_000,
        "{:?}",
        result.late
    );
    bsd.no_load();
}

#[test]
#[ignore = "needs root and openssh-server"]
fn two_generators_feed_one_device_beyond_what_it_forwards() {
    let bsd = Bsd::new();
    let result = bsd.trial(&["gen", "gen2"], Some(600_000.0)).unwrap();
    let seen = whole(&result);
    assert!(
        is_near(seen.offered, 1_200_000.0) && is_near(seen.received, 800_000.0),
        "{seen:?}"
    );
    assert!(result.received[0].frames < result.sent[0].frames);
    assert_eq!(result.late.len(), 2);
    println!(
        "generators began within {} ns of each other, to {} ns",
        result.skew_ns(),
        result.within_ns
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn the_window_waits_for_the_link_and_for_the_device() {
    let bsd = Bsd::new();
    bsd.set("gen", "link-late-s", "1");
    let file = bsd.lab.folder().join("wire/forwards-from");
    std::fs::write(&file, "9999999999\n").unwrap();
    let bsd = Bsd {
        patience: Duration::from_secs(20),
        ..bsd
    };
    let boot = || {
        bsd.wait_sending("gen");
        let booted = UNIX_EPOCH.elapsed().unwrap().as_secs() + 3;
        // A reader must not find half of it.
        let whole = file.with_extension("new");
        std::fs::write(&whole, format!("{booted}\n")).unwrap();
        std::fs::rename(&whole, &file).unwrap();
    };
    let result = std::thread::scope(|scope| {
        scope.spawn(boot);
        bsd.trial(&["gen"], None).unwrap()
    });
    let seen = whole(&result);
    assert!(
        is_near(seen.offered, 800_000.0) && is_near(seen.received, 800_000.0),
        "{seen:?}"
    );
    // Frames were lost before the window, and are not forgotten.
    assert!(
        result.sent[0].frames - result.received[0].frames > 400_000,
        "{result:?}"
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_receiver_at_zero_is_a_zero_with_a_fault() {
    let bsd = Bsd::new();
    std::fs::write(bsd.lab.folder().join("wire/forwards-from"), "9999999999\n").unwrap();
    let result = bsd.trial(&["gen"], Some(500_000.0)).unwrap();
    let [fault] = result.outcome.faults.as_slice() else {
        panic!("{result:#?}")
    };
    assert!(
        fault.starts_with("rec: pkt-gen (receiving on igb1): ") && fault.contains(NOTHING_ARRIVED)
    );
    assert!(
        fault.contains("look at the cables, the destination MAC, the DUT's forwarding"),
        "{fault}"
    );
    let seen = rates(&result.outcome.samples).unwrap();
    assert!(
        is_near(seen.offered, 500_000.0) && seen.received == 0.0,
        "{seen:?}"
    );
    assert_eq!((result.received[0].frames, bsd.loads()), (0, 0));
}

/// A run of the public archive: sender and receiver as they printed it, with the time between their lines.
const ARCHIVE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/netbenches/AMD_GX-412TC_4Cores/Intel_i210AT/txabdicate/results/fbsd16-n311215.D58513/RAW/",
    "bench.txabdicate_on.inet4.1"
);

#[test]
#[ignore = "needs root and openssh-server"]
fn seconds_of_the_archive() {
    let bsd = Bsd::new();
    for (host, side) in [("gen", "sender"), ("rec", "receiver")] {
        let recording = std::fs::read_to_string(format!("{ARCHIVE}.{side}")).unwrap();
        bsd.set(host, "recording", &recording);
        bsd.set(host, "pace", "1");
    }
    let timing = linerate_measure::trial::Timing {
        run_ns: 3_000_000_000,
        ..TIMING
    };
    // The receiver's first five seconds are at zero.
    let bsd = Bsd {
        timing,
        patience: Duration::from_secs(20),
        ..bsd
    };
    let result = bsd.trial(&["gen"], None).unwrap();
    assert_eq!(result.outcome.faults, [""; 0], "{result:#?}");
    let seen = rates(&result.outcome.samples).unwrap();
    // A gigabit's worth of the shortest frames, and the part that this router forwards.
    assert!(
        is_near(seen.offered, 1_488_000.0) && is_near(seen.received, 972_000.0),
        "{seen:?}"
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn sudo_is_asked_for_the_whole_session() {
    let bsd = Bsd::new();
    let asked = bsd.lab.folder().join("asked");
    let note = format!(
        "#!/bin/sh\necho \"$*\" >>{}\nshift 2\nexec \"$@\"\n",
        asked.display()
    );
    bsd.lab
        .hosts
        .iter()
        .for_each(|host| host.stand_in("sudo", &note));
    let (mut generator, mut receiver) = (bsd.host("gen"), bsd.host("rec"));
    (generator.sudo, receiver.sudo) = (true, true);
    let fly = |generator| {
        let generators = [(generator, crate::bsd::task(Some(500_000.0), None))];
        linerate_remote::external::ToolTrial {
            generators: &generators,
            receiver: Some((&receiver, crate::bsd::task(None, None))),
            timing: TIMING,
            patience: bsd.patience,
        }
        .run(&AtomicBool::new(false))
    };
    whole(&fly(generator.clone()).unwrap());
    let asked = std::fs::read_to_string(&asked).unwrap();
    assert_eq!(
        asked
            .lines()
            .filter(|line| line.starts_with("-n -- /bin/sh -c"))
            .count(),
        2,
        "{asked}"
    );
    bsd.lab.hosts[0].stand_in(
        "sudo",
        "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n",
    );
    let error = fly(generator).unwrap_err().to_string();
    assert!(
        error.starts_with("gen: pkt-gen failed while sending on igb1: sudo: a password"),
        "{error}"
    );
    assert!(
        error.ends_with("log in as root or allow sudo -n: /dev/netmap is root's"),
        "{error}"
    );
}
