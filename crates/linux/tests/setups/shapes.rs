//! Loads that change, and what receivers find out about single frames.

use super::bench::{Frames, Shown, ask, built_in, lab, send};
use linerate_linux::lab::{EmbeddedLab, Setup};
use linerate_measure::counters::Outage;
use linerate_plan::settings::{Command, Dut, Settings};
use linerate_stats::histogram::Histogram;
use linerate_wire::{Family, Findings, RateStep};
use std::sync::{Mutex, PoisonError};

const EVERY_FRAME: Option<Findings> = Some(Findings { every_frame: true, tag_after_ns: 20_000_000 });

#[test]
#[ignore = "needs root: run by make test as root"]
fn every_frame_is_looked_at_and_the_rate_steps() {
    let lab = lab(&Setup::of(Dut::Forwarding));
    let step = Some(RateStep { after_ns: 30_000_000, rate: 20_000.0 });
    let frames =
        Frames { count: 3000, rate: Some(40_000.0), step, findings: EVERY_FRAME, ..Frames::of(Family::V4) };
    answers(&lab, frames, |shown| {
        shown.is_whole("forwarding");
        // 1200 frames in 30 ms, and the others in 90.
        near("length", shown.sent.active_ns as f64, 120e6, 1e6)?;
        let delays = shown.received.delays.as_ref().unwrap();
        assert_eq!((delays.frames, delays.broken), (3000, 0));
        assert_eq!(delays.earlier.count() + delays.later.count(), 2999);
        assert!(
            delays.min_ns > 0 && delays.min_ns < delays.max_ns && delays.least_ns < delays.most_ns,
            "{delays:?}"
        );
        // Some thousand are spread over the 2 s that the load may last; these are in 100 ms of it.
        near("tagged", delays.tagged.len() as f64, 52.0, 8.0)?;
        assert_eq!((shown.received.last_loss_ns, shown.received.outages.len()), (None, 16));
        assert!(
            shown.received.outages.iter().all(|outage| outage.missing == 0 && outage.to_ns > outage.from_ns)
        );
        Ok(())
    });
}

/// A few attempts: these answers are exact on a CPU that nothing else uses.
#[track_caller]
fn answers(lab: &EmbeddedLab, frames: Frames, mut is_right: impl FnMut(&Shown) -> Result<(), String>) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut wrong = Vec::new();
    for _ in 0..20 {
        let shown = send(lab, frames);
        assert!(shown.account.balances(&shown.sent, &shown.received), "{:?}", shown.account);
        match is_right(&shown) {
            Ok(()) => return,
            Err(why) => wrong.push(why),
        }
    }
    panic!("{wrong:#?}");
}

/// Whether a time is as it should be.
fn near(what: &str, found: f64, expected: f64, tolerance: f64) -> Result<(), String> {
    let right = (found - expected).abs() <= tolerance;
    if right { Ok(()) } else { Err(format!("{what}: {found} instead of {expected} +- {tolerance}")) }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn an_outage_is_found_by_both_methods() {
    let (ns, after_ns) = (30_000_000, 20_000_000);
    let lab = lab(&Setup::of(Dut::KnownOutage { ns, after_ns }));
    let rate = 20_000.0;
    let two_gaps = 2e9 / rate;
    let frames = Frames { count: 2000, rate: Some(rate), findings: EVERY_FRAME, ..Frames::of(Family::V4) };
    answers(&lab, frames, |Shown { sent, received, .. }| {
        let lost = (sent.frames - received.unique()) as f64;
        let Outage { from_ns, to_ns, missing, .. } = received.outages[0];
        assert_eq!((missing as f64, received.delays.as_ref().unwrap().broken), (lost, 1));
        near("by lost frames", lost / rate * 1e9, ns as f64, two_gaps)?;
        near("by time stamps", (to_ns - from_ns) as f64, ns as f64, two_gaps)?;
        // From the first frame at the DUT on: it was sent a little before.
        near("last loss", received.last_loss_ns.unwrap() as f64, (after_ns + ns) as f64, two_gaps)
    });
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_queue_passes_the_burst_that_it_holds() {
    let (queue, drained, filled) = (1000, 20_000.0, 100_000.0);
    let lab = lab(&Setup::of(Dut::KnownQueue { frames: queue, rate: drained as u32 }));
    let holds = f64::from(queue) * filled / (filled - drained);
    for (count, whole) in [(holds - 64.0, true), (holds + 64.0, false), (1.5 * holds, false)] {
        let frames = Frames { count: count as u64, rate: Some(filled), ..Frames::of(Family::V4) };
        answers(&lab, frames, |Shown { sent, received, .. }| {
            let lost = (sent.frames - received.unique()) as f64;
            // Until it is empty again.
            std::thread::sleep(std::time::Duration::from_millis(50));
            near("lost", lost, (0.8 * (count - holds)).max(0.0), 51.0)?;
            if (lost == 0.0) == whole { Ok(()) } else { Err(format!("{lost} lost of {count}")) }
        });
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn delays_in_turn_give_their_difference() {
    let [short, long] = [5_000, 65_000];
    let lab = lab(&Setup::of(Dut::KnownDelays([short, long])));
    let frames = Frames { count: 500, rate: Some(5_000.0), findings: EVERY_FRAME, ..Frames::of(Family::V4) };
    let difference = f64::from(long - short);
    answers(&lab, frames, |Shown { received, .. }| {
        let delays = received.delays.as_ref().unwrap();
        let quantile = |of: &Histogram, q| of.quantile(q).unwrap() as f64;
        // A bucket has 3 %, and the rest of the way varies by some hundred nanoseconds.
        let tolerance = 0.05 * difference;
        near("IPDV up", quantile(&delays.later, 0.5), difference, tolerance)?;
        near("IPDV down", quantile(&delays.earlier, 0.5), difference, tolerance)?;
        let [low, high] = [0.25, 0.75].map(|q| quantile(&received.latency, q));
        near("PDV", high - low, difference, tolerance)?;
        near("least delay", delays.min_ns as f64, quantile(&received.latency, 0.0), 0.03 * low)?;
        assert!(delays.min_ns >= short.into() && delays.most_ns >= quantile(&delays.later, 0.4) as i64);
        near("ups and downs", delays.later.count() as f64, delays.earlier.count() as f64, 10.0)
    });
}

/// A setup that an event befalls, as a plan has it.
fn befallen(setup: Setup, event: serde_json::Value) -> Setup {
    let settings = Settings { event: serde_json::from_value(event).unwrap(), ..setup.settings };
    Setup { settings, ..setup }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn events_befall_the_dut_under_load_and_are_undone() {
    let (for_ns, rate) = (30_000_000, 20_000.0);
    let off = |what: &str| serde_json::json!({ "what": what, "for": for_ns });
    let outward = serde_json::json!({ "what": "link-down", "for": for_ns, "end": "out" });
    let command = serde_json::json!({
        "what": "command", "for": for_ns,
        "run": "ip route add blackhole 198.19.0.0/17 && ip route add blackhole 198.19.128.0/17",
        "undo": "ip route del blackhole 198.19.0.0/17 && ip route del blackhole 198.19.128.0/17",
    });
    for event in [off("forwarding-off"), off("link-down"), outward, command] {
        let lab = lab(&befallen(Setup::of(Dut::Forwarding), event.clone()));
        let frames = Frames {
            count: 2000,
            rate: Some(rate),
            findings: EVERY_FRAME,
            event_ns: Some(20_000_000),
            ..Frames::of(Family::V4)
        };
        answers(&lab, frames, |Shown { sent, received, befell, .. }| {
            let [began_ns, ended_ns] = befell.unwrap();
            let Outage { from_ns, to_ns, missing, .. } = received.outages[0];
            let lost = sent.frames - received.unique();
            let lasted = (ended_ns - began_ns) as f64;
            println!("{event}: {lasted} ns, {lost} lost, {} ns without frames", to_ns - from_ns);
            near("lost", lost as f64 / rate * 1e9, (to_ns - from_ns) as f64, 1e6)?;
            // Changes of the kernel, and programs, take some milliseconds to begin and to end.
            near("outage", (to_ns - from_ns) as f64, (lasted + f64::from(for_ns)) / 2.0, lasted / 2.0)?;
            near("event", lasted, f64::from(for_ns), 40e6)?;
            assert_eq!(missing, lost);
            if from_ns + 1_000_000 < began_ns {
                Err(format!("{from_ns} is before {began_ns}"))
            } else {
                Ok(())
            }
        });
        send(&lab, Frames::of(Family::V4)).is_whole("after the event");
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn rules_are_reloaded_and_processes_killed_under_load() {
    let reloaded = befallen(built_in("nft-stateful"), serde_json::json!({ "what": "rules-reloaded" }));
    let frames = Frames { count: 1000, event_ns: Some(10_000_000), ..Frames::of(Family::V4) };
    let lab = lab(&reloaded);
    let rules = ask(&lab, "nft", &["list", "ruleset"]).lines().count();
    send(&lab, frames).is_whole("nft loads a rule set at once");
    assert_eq!(ask(&lab, "nft", &["list", "ruleset"]).lines().count(), rules, "not twice");
    // Named as no other process of this machine is.
    let mut setup = befallen(
        Setup::of(Dut::Forwarding),
        serde_json::json!({ "what": "process-killed", "process": "lr-daemon", "run": "setsid ./lr-daemon 60 >/dev/null 2>&1 & sleep 0.1" }),
    );
    let run = "cp /bin/sleep lr-daemon && { setsid ./lr-daemon 60 >/dev/null 2>&1 & sleep 0.1; }".to_string();
    setup.settings.commands = vec![Command { run, undo: Some("true".into()), within_ns: None }];
    let lab = self::lab(&setup);
    let there =
        || ask(&lab, "sh", &["-c", "cat /proc/[0-9]*/stat 2>/dev/null | grep -c '(lr-daemon) [RS]' || true"]);
    assert_eq!(there().trim(), "1", "it left its command's group of processes");
    send(&lab, frames).is_whole("no daemon forwards");
    assert_eq!(there().trim(), "1", "another one");
}
