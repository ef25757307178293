//! A router of FreeBSD and a tester with pkt-gen, both scripted, over the real sshd.

use crate::bsd::{Bsd, PLAN};
use crate::trials;

/// A plan whose second variant takes a reboot.
fn with_reboots() -> String {
    PLAN.replace(
        "[variants.mask]",
        "[variants.queues]\nboot = { \"hw.igb.num_queues\" = 1 }\n\n[variants.mask]",
    )
    .replace("[trials]", "[trials]\nreboot = \"when-needed\"")
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_router_is_measured_by_pkt_gen() {
    let bsd = Bsd::new();
    let ended = bsd.run(PLAN, &[]);
    assert!(ended.status.success(), "{}", ended.stderr);
    let trials = trials(&bsd.records());
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        assert_eq!(trial["audit"]["valid"], true, "{:#}", trial["audit"]);
        let received = trial["rates"]["received"].as_f64().unwrap();
        assert!((800e3..1.1e6).contains(&received), "{received} frames/s");
    }
    let mask = "sysctl kern.random.harvest.mask";
    let log = bsd.log("router");
    assert!(!log.is_empty(), "{log:?}");
    assert!(log.chunks(2).all(|two| two == [format!("{mask}=351"), format!("{mask}=511")]), "{log:?}");
    assert_eq!(bsd.loads(), 0);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn settings_of_the_boot_take_reboots_and_a_router_is_waited_for_until_it_forwards() {
    let bsd = Bsd::new();
    bsd.reboots(true);
    bsd.set("router", "forward-s", "1");
    let ended = bsd.run(&with_reboots(), &[]);
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(trials(&bsd.records()).iter().all(|t| t["audit"]["valid"] == true));
    let boots: u32 = bsd.read("router", "boots").trim().parse().unwrap();
    // To each trial of that variant, and back from it.
    assert!((2..=4).contains(&boots), "{boots} boots: {:?}", bsd.log("router"));
    assert_eq!(bsd.read("router", "root/boot/loader.conf.local").trim(), "");
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_router_that_does_not_come_back_is_turned_off_and_on_or_ends_the_campaign() {
    let bsd = Bsd::new();
    bsd.reboots(false);
    let ended = bsd.run(&with_reboots().replace("blocks = 2", "blocks = 1"), &[]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    for part in
        ["router: it has not come back 5 s after its reboot", "names no power-cycle program", "console"]
    {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    let bsd = Bsd::new();
    bsd.reboots(false);
    bsd.lab(&format!("power-cycle = [\"{}\"]", bsd.power()));
    let ended = bsd.run(&with_reboots().replace("blocks = 2", "blocks = 1"), &[]);
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(trials(&bsd.records()).iter().all(|t| t["audit"]["valid"] == true));
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_generator_that_crashes_and_a_wire_that_carries_nothing_are_told() {
    for (host, file, text, parts) in [
        ("tester", "fault", "crash", ["poll err", "run it again"]),
        ("tester", "link-late-s", "3600", ["has counted none", "cable"]),
    ] {
        let bsd = Bsd::new();
        bsd.set(host, file, text);
        let ended = bsd.run(&PLAN.replace("blocks = 2", "blocks = 1"), &[]);
        assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
        let said = format!("{}{:#?}", ended.stderr, trials(&bsd.records()));
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(bsd.loads(), 0);
        // Put back whatever happened.
        assert_eq!(bsd.read("router", "sysctl").lines().filter(|l| l.ends_with("mask=511")).count(), 1);
    }
}
