//! Loads that change, and what receivers find out about single frames.

use super::bench::{Frames, Shown, ask, built_in, lab, send};
use linerate_linux::lab::{EmbeddedLab, Setup};
use linerate_measure::audit::Cause;
use linerate_measure::counters::Outage;
use linerate_plan::settings::{Command, Dut, Settings};
use linerate_stats::histogram::Histogram;
use linerate_wire::{Family, Findings, RateStep};

const EVERY_FRAME: Option<Findings> = Some(Findings {
    every_frame: true,
    tag_after_ns: 20_000_000,
});

/// Sends frames and accounts for each of them.
#[track_caller]
fn counted(lab: &EmbeddedLab, frames: Frames) -> Shown {
    let shown = send(lab, frames);
    assert!(
        shown.account.balances(&shown.sent, &shown.received),
        "{:?}",
        shown.account
    );
    shown
}

/// No frame was lost in an outage of this length: none left the generator meanwhile. It may have read the clock some time after it began.
#[track_caller]
fn was_held_up_for(shown: &Shown, ns: u64) {
    let Shown { sent, account, .. } = shown;
    assert!(sent.stall_ns > ns / 2, "{} ns: {account:?}", sent.stall_ns);
}

/// The middle of each figure of five loads.
#[track_caller]
fn middle<const N: usize>(
    lab: &EmbeddedLab,
    frames: Frames,
    figures: impl Fn(&Shown) -> [f64; N],
) -> [f64; N] {
    let all: Vec<[f64; N]> = (0..5).map(|_| figures(&counted(lab, frames))).collect();
    println!("{all:?}");
    std::array::from_fn(|nth| {
        let mut sorted: Vec<f64> = all.iter().map(|of| of[nth]).collect();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    })
}

/// A figure is as it should be.
#[track_caller]
fn near(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance,
        "{what}: {found} instead of {expected} +- {tolerance}"
    );
}

/// Findings about frames that came at any time, before and after losses. Returns the lost ones.
#[track_caller]
fn consistent(
    Shown {
        sent,
        received,
        account,
        ..
    }: &Shown,
) -> u64 {
    let lost = sent.frames - received.unique();
    let delays = received.delays.as_ref().unwrap();
    assert_eq!(delays.frames, received.unique());
    // Each frame but the first has a neighbour, or frames were lost between them.
    let neighbours = delays.earlier.count() + delays.later.count();
    assert_eq!(neighbours + delays.broken, delays.frames - 1, "{delays:?}");
    assert!(
        delays.min_ns > 0 && delays.min_ns < delays.max_ns && delays.least_ns < delays.most_ns,
        "{delays:?}"
    );
    let outages = &received.outages;
    assert_eq!(outages.len(), 16);
    assert!(
        outages.iter().all(|outage| outage.to_ns > outage.from_ns),
        "{outages:?}"
    );
    assert!(outages.is_sorted_by_key(|outage| std::cmp::Reverse(outage.to_ns - outage.from_ns)));
    let missing: u64 = outages.iter().map(|outage| outage.missing).sum();
    // A ring that ran over for a moment may be a short one, or the last.
    let overrun = account
        .losses
        .iter()
        .any(|loss| loss.cause == Cause::QueueFull);
    assert!(
        if overrun {
            missing <= lost
        } else {
            missing == lost
        },
        "{lost} lost: {outages:?}"
    );
    assert_eq!(
        received.last_loss_ns.is_some(),
        lost > 0,
        "{:?}",
        received.last_loss_ns
    );
    lost
}

/// 1200 frames in 30 ms, and the others in 90.
fn stepping() -> Frames {
    let step = Some(RateStep {
        after_ns: 30_000_000,
        rate: 20_000.0,
    });
    Frames {
        count: 3000,
        rate: Some(40_000.0),
        step,
        findings: EVERY_FRAME,
        ..Frames::of(Family::V4)
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn every_frame_is_looked_at_and_the_rate_steps() {
    let lab = lab(&Setup::of(Dut::Forwarding));
    let shown = send(&lab, stepping());
    shown.is_whole("forwarding");
    consistent(&shown);
    // No frame leaves before it is due: without the step, the last ones were due after 75 ms.
    let tagged = &shown.received.delays.as_ref().unwrap().tagged;
    let last_ns = tagged.iter().map(|(sent_ns, _)| *sent_ns).max().unwrap();
    assert!(last_ns > 100_000_000, "{tagged:?}");
    assert!(
        tagged
            .iter()
            .all(|(sent_ns, delay_ns)| *sent_ns >= 20_000_000 && *delay_ns > 0),
        "{tagged:?}"
    );
}

#[test]
#[ignore = "needs root and a quiet machine"]
fn figures_a_rate_steps_at_its_time() {
    let lab = lab(&Setup::of(Dut::Forwarding));
    let [ns, tagged] = middle(&lab, stepping(), |Shown { sent, received, .. }| {
        [
            sent.active_ns as f64,
            received.delays.as_ref().unwrap().tagged.len() as f64,
        ]
    });
    near("length", ns, 120e6, 1e6);
    // Some thousand are spread over the 5 s that the load may last; these are in 100 ms of it.
    near("tagged", tagged, 21.0, 4.0);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn an_outage_is_found_by_both_methods() {
    let ns = 80_000_000;
    let lab = lab(&Setup::of(Dut::KnownOutage {
        ns,
        after_ns: 20_000_000,
    }));
    let frames = Frames {
        count: 3000,
        rate: Some(20_000.0),
        findings: EVERY_FRAME,
        ..Frames::of(Family::V4)
    };
    let shown = counted(&lab, frames);
    let lost = consistent(&shown);
    assert!(lost < 3000, "{:?}", shown.account);
    if shown.lost("DUT: dropped by") == 0 {
        return was_held_up_for(&shown, ns);
    }
    let outage = shown
        .received
        .outages
        .iter()
        .max_by_key(|outage| outage.missing)
        .unwrap();
    // The DUT's clock runs from its first frame on, which was sent after the load began.
    assert!(
        outage.missing > 0 && outage.to_ns > 100_000_000,
        "{outage:?}"
    );
    assert!(
        shown.received.last_loss_ns > Some(20_000_000),
        "{:?}",
        shown.received
    );
}

#[test]
#[ignore = "needs root and a quiet machine"]
fn figures_an_outage_is_as_long_as_it_was() {
    let (ns, after_ns, rate) = (30_000_000, 20_000_000, 20_000.0);
    let lab = lab(&Setup::of(Dut::KnownOutage { ns, after_ns }));
    let two_gaps = 2e9 / rate;
    let frames = Frames {
        count: 2000,
        rate: Some(rate),
        findings: EVERY_FRAME,
        ..Frames::of(Family::V4)
    };
    let [lost, stamps, last] = middle(&lab, frames, |Shown { sent, received, .. }| {
        let Outage { from_ns, to_ns, .. } = received.outages[0];
        let lost = (sent.frames - received.unique()) as f64;
        [
            lost,
            (to_ns - from_ns) as f64,
            received.last_loss_ns.unwrap() as f64,
        ]
    });
    near("by lost frames", lost / rate * 1e9, ns as f64, two_gaps);
    near("by time stamps", stamps, ns as f64, two_gaps);
    // From the first frame at the DUT on: it was sent a little before.
    near("last loss", last, (after_ns + ns) as f64, two_gaps);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_queue_passes_the_burst_that_it_holds() {
    let (queue, drained) = (1000, 10_000);
    // A lab for each burst: a fast machine would send the second before the queue has drained the first.
    let of_queue = || {
        lab(&Setup::of(Dut::KnownQueue {
            frames: queue,
            rate: drained,
        }))
    };
    // Whenever its frames come, there is room for as many as it has places.
    let burst = Frames {
        count: queue.into(),
        rate: None,
        ..Frames::of(Family::V4)
    };
    send(&of_queue(), burst).is_whole("a burst that fills the queue");
    // However long these take, within the 1.5 s in which they would be drained.
    let shown = counted(
        &of_queue(),
        Frames {
            count: 15_000,
            ..burst
        },
    );
    let lost = shown.sent.frames - shown.received.unique();
    let dropped = shown.lost("DUT: dropped by");
    assert!(
        dropped > 0 && lost <= 14_000,
        "{dropped} of {lost}: {:?}",
        shown.account.losses
    );
}

#[test]
#[ignore = "needs root and a quiet machine"]
fn figures_a_queue_is_drained_at_its_rate() {
    let (queue, drained, filled) = (1000, 20_000.0, 100_000.0);
    let lab = lab(&Setup::of(Dut::KnownQueue {
        frames: queue,
        rate: drained as u32,
    }));
    let holds = f64::from(queue) * filled / (filled - drained);
    for (count, whole) in [
        (holds - 64.0, true),
        (holds + 64.0, false),
        (1.5 * holds, false),
    ] {
        let frames = Frames {
            count: count as u64,
            rate: Some(filled),
            ..Frames::of(Family::V4)
        };
        let [lost] = middle(&lab, frames, |Shown { sent, received, .. }| {
            // Until it is empty again.
            std::thread::sleep(std::time::Duration::from_millis(50));
            [(sent.frames - received.unique()) as f64]
        });
        near("lost", lost, (0.8 * (count - holds)).max(0.0), 51.0);
        assert_eq!(lost == 0.0, whole, "{lost} lost of {count}");
    }
}

const DELAYS: [u32; 2] = [5_000, 65_000];

fn quantile(of: &Histogram, q: f64) -> f64 {
    of.quantile(q).unwrap() as f64
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn delays_in_turn_are_those_of_the_dut_at_least() {
    let lab = lab(&Setup::of(Dut::KnownDelays(DELAYS)));
    let frames = Frames {
        count: 500,
        rate: Some(5_000.0),
        findings: EVERY_FRAME,
        ..Frames::of(Family::V4)
    };
    let shown = counted(&lab, frames);
    consistent(&shown);
    let [short, long] = DELAYS.map(u64::from);
    let delays = shown.received.delays.as_ref().unwrap();
    assert!(
        delays.min_ns >= short && delays.max_ns >= long,
        "{delays:?}"
    );
    let latency = &shown.received.latency;
    assert_eq!(latency.count(), shown.received.unique());
    // Half of the frames take the long way; a bucket has 3 %.
    assert!(
        quantile(latency, 0.55) >= 0.97 * long as f64
            && quantile(latency, 0.0) >= 0.97 * short as f64
    );
}

#[test]
#[ignore = "needs root and a quiet machine"]
fn figures_delays_in_turn_give_their_difference() {
    let [short, long] = DELAYS;
    let lab = lab(&Setup::of(Dut::KnownDelays(DELAYS)));
    let frames = Frames {
        count: 500,
        rate: Some(5_000.0),
        findings: EVERY_FRAME,
        ..Frames::of(Family::V4)
    };
    let difference = f64::from(long - short);
    let [up, down, low, high, least, later, earlier] =
        middle(&lab, frames, |Shown { received, .. }| {
            let delays = received.delays.as_ref().unwrap();
            let [later, earlier] = [&delays.later, &delays.earlier];
            let [low, high] = [0.25, 0.75].map(|q| quantile(&received.latency, q));
            let least = delays.min_ns as f64 - quantile(&received.latency, 0.0);
            let counts = [later, earlier].map(|of| of.count() as f64);
            [
                quantile(later, 0.5),
                quantile(earlier, 0.5),
                low,
                high,
                least,
                counts[0],
                counts[1],
            ]
        });
    // A bucket has 3 %, and the rest of the way varies by some hundred nanoseconds.
    let tolerance = 0.05 * difference;
    near("IPDV up", up, difference, tolerance);
    near("IPDV down", down, difference, tolerance);
    near("PDV", high - low, difference, tolerance);
    near("least delay", least, 0.0, 0.03 * low);
    near("ups and downs", later, earlier, 10.0);
}

/// A setup with an event, as a plan has it.
fn with_event(setup: Setup, event: serde_json::Value) -> Setup {
    let settings = Settings {
        event: serde_json::from_value(event).unwrap(),
        ..setup.settings
    };
    Setup { settings, ..setup }
}

/// Each kind of event that stops frames for so long.
fn events(for_ns: u64) -> [serde_json::Value; 4] {
    let off = |what: &str| serde_json::json!({ "what": what, "for": for_ns });
    let outward = serde_json::json!({ "what": "link-down", "for": for_ns, "end": "out" });
    let command = serde_json::json!({
        "what": "command", "for": for_ns,
        "run": "ip route add blackhole 198.19.0.0/17 && ip route add blackhole 198.19.128.0/17",
        "undo": "ip route del blackhole 198.19.0.0/17 && ip route del blackhole 198.19.128.0/17",
    });
    [off("forwarding-off"), off("link-down"), outward, command]
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn events_happen_to_the_dut_under_load_and_are_undone() {
    // The load of another test may have the CPU for most of it.
    let for_ns = 200_000_000;
    for event in events(for_ns) {
        let lab = lab(&with_event(Setup::of(Dut::Forwarding), event.clone()));
        // So long that a busy machine carries the event out before it ends.
        let frames = Frames {
            count: 9000,
            rate: Some(3_000.0),
            findings: EVERY_FRAME,
            event_ns: Some(20_000_000),
            ..Frames::of(Family::V4)
        };
        let shown = counted(&lab, frames);
        let [began_ns, ended_ns] = shown.event_run.unwrap();
        let lost = consistent(&shown);
        assert!(lost < 9000, "{event}: {:?}", shown.account);
        assert!(
            began_ns >= 20_000_000 && ended_ns > began_ns,
            "{event}: {began_ns} to {ended_ns}"
        );
        if lost == 0 {
            was_held_up_for(&shown, for_ns);
        } else {
            let outages = shown.received.outages.iter();
            let outage = outages.max_by_key(|outage| outage.missing).unwrap();
            // Frames come again when the event has been undone, or did not come before its end.
            assert!(
                outage.to_ns > began_ns && outage.missing > 0,
                "{event}: {outage:?} from {began_ns}"
            );
        }
        send(&lab, Frames::of(Family::V4)).is_whole("after the event");
    }
}

#[test]
#[ignore = "needs root and a quiet machine"]
fn figures_an_outage_is_as_long_as_its_event() {
    let (for_ns, rate) = (30_000_000, 20_000.0);
    for event in events(for_ns) {
        let lab = lab(&with_event(Setup::of(Dut::Forwarding), event.clone()));
        let frames = Frames {
            count: 2000,
            rate: Some(rate),
            findings: EVERY_FRAME,
            event_ns: Some(20_000_000),
            ..Frames::of(Family::V4)
        };
        let [lost, outage, lasted, early] = middle(
            &lab,
            frames,
            |Shown {
                 sent,
                 received,
                 event_run,
                 ..
             }| {
                let [began_ns, ended_ns] = event_run.unwrap().map(|ns| ns as f64);
                let Outage {
                    from_ns,
                    to_ns,
                    missing,
                    ..
                } = received.outages[0];
                assert_eq!(missing, sent.frames - received.unique());
                [
                    missing as f64,
                    (to_ns - from_ns) as f64,
                    ended_ns - began_ns,
                    began_ns - from_ns as f64,
                ]
            },
        );
        println!("{event}: {lasted} ns, {lost} lost, {outage} ns without frames");
        near("lost", lost / rate * 1e9, outage, 1e6);
        // Changes of the kernel, and programs, take some milliseconds to begin and to end.
        near(
            "outage",
            outage,
            (lasted + for_ns as f64) / 2.0,
            lasted / 2.0,
        );
        near("event", lasted, for_ns as f64, 40e6);
        assert!(early <= 1e6, "{early} ns before it began");
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn rules_are_reloaded_and_processes_killed_under_load() {
    let reloaded = with_event(
        built_in("nft-stateful"),
        serde_json::json!({ "what": "rules-reloaded" }),
    );
    // So long that a busy machine begins the event before the load ends.
    let frames = Frames {
        count: 3000,
        rate: Some(1000.0),
        event_ns: Some(10_000_000),
        ..Frames::of(Family::V4)
    };
    let whole = |lab: &EmbeddedLab, what: &str| {
        let shown = send(lab, frames);
        assert!(shown.event_run.is_some(), "{what}");
        shown.is_whole(what);
    };
    let lab = lab(&reloaded);
    let rules = ask(&lab, "nft", &["list", "ruleset"]).lines().count();
    whole(&lab, "nft loads a rule set at once");
    assert_eq!(
        ask(&lab, "nft", &["list", "ruleset"]).lines().count(),
        rules,
        "not twice"
    );
    // Named as no other process of this machine is. It has left its command's group of processes before the command ends.
    let daemon = "rm -f begun; setsid -f sh -c 'echo > begun; exec ./lr-daemon 60'
        until [ -e begun ]; do sleep 0.01; done";
    let mut setup = with_event(
        Setup::of(Dut::Forwarding),
        serde_json::json!({ "what": "process-killed", "process": "lr-daemon", "run": daemon }),
    );
    let run = format!("cp /bin/sleep lr-daemon; {daemon}");
    setup.settings.commands = vec![Command {
        run,
        undo: Some("true".into()),
        within_ns: None,
    }];
    let lab = self::lab(&setup);
    // A killed process is there until it has had a CPU, so each daemon is waited for.
    let first = daemon_that(|_| true);
    whole(&lab, "no daemon forwards");
    assert_ne!(daemon_that(|daemon| daemon != first), first);
}

/// The only process that is called `lr-daemon` and is no zombie, once there is one of which this is true.
fn daemon_that(is_wanted: impl Fn(i32) -> bool) -> i32 {
    let stat = |entry: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (pid, rest) = stat.split_once(" (lr-daemon) ")?;
        rest.starts_with(['R', 'S']).then(|| pid.parse().unwrap())
    };
    let began = std::time::Instant::now();
    loop {
        let all: Vec<i32> = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(stat)
            .collect();
        match all[..] {
            [one] if is_wanted(one) => return one,
            _ if began.elapsed().as_secs() > 30 => panic!("the daemons are {all:?}"),
            _ => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    }
}
