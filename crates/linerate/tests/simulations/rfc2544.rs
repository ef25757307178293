//! Tests of RFC 2544 of DUTs whose answers are known, and what is said before they begin.

use crate::common::{Scratch, linerate_line};
use serde_json::Value;

/// The tests of RFC 2544 against a simulated DUT that forwards 20,000 frames/s of at most 30,000 and queues 512.
#[test]
fn tests_of_rfc_2544_find_what_is_known_of_a_dut() {
    let records = Scratch::new();
    let out = records.file("tests");
    let line = "rfc2544 --quick --size 64 --test throughput --test frame-loss --test back-to-back --test recovery \
                --test forwarding-rate --simulate rate=20kpps,queue=512 --link-speed 20160kbit/s";
    let found = linerate_line(&format!("{line} --json --out {out}"))
        .run()
        .ok()
        .json();
    let [slot] = &found["summary"]["benchmarks"].as_array().unwrap()[..] else {
        panic!("{found:#}")
    };
    assert_eq!(slot["maximum"]["medium"], true);
    assert_eq!(slot["maximum"]["fps"].as_f64().unwrap().round(), 30_000.0);
    let of = |test: &str| {
        let all = slot["tests"].as_array().unwrap();
        let one = all
            .iter()
            .find(|one| one["test"] == test)
            .unwrap_or_else(|| panic!("{test}: {slot:#}"));
        assert_eq!(one["why"], Value::Null, "{one:#}");
        one["figures"][test].clone()
    };
    // In a trial of 1 s, the queue takes 512 frames more.
    let throughput = of("throughput")["fps"].as_f64().unwrap();
    assert!((20_300.0..=20_515.0).contains(&throughput), "{throughput}");
    // Q R / (R - r).
    let burst = of("back-to-back")["mean"].as_f64().unwrap();
    assert!((1520.0..=1540.0).contains(&burst), "{burst}");
    let loads = of("frame-loss");
    let loads = loads.as_array().unwrap();
    assert_eq!(loads.len(), 6, "100 % to 50 %: {loads:#?}");
    assert_eq!(
        (&loads[4]["lost"], &loads[5]["lost"]),
        (&0.into(), &0.into())
    );
    let recovery = of("recovery");
    assert_eq!(recovery["overload"].as_f64().unwrap(), 1.1 * throughput);
    assert!(recovery["mean_ns"].as_f64().unwrap() < 1e6, "{recovery:#}");
    assert!(of("forwarding-rate")["frmol"].as_f64().unwrap() < 21_100.0);
    let shown = linerate_line(&format!("show --full {out}"))
        .run()
        .ok()
        .stdout;
    let says = [
        "quick: departs from RFC 2544 (sections 9, 23, 24, 26.4, 26.5)",
        "theoretical rate of the slower link",
        "corrected",
        "all tests are complete",
    ];
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(says.iter().all(|says| words.contains(says)), "{shown}");
    let first = linerate_line(&format!("show {out}")).run().ok().stdout;
    let next = format!("linerate conformance {out}");
    assert!(first.contains(&next) && first.contains("--full"), "{first}");
    let page = records.file("page.html");
    linerate_line(&format!("conformance {out} -o {page}"))
        .run()
        .fails(3, &["written: "]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<html") && page.contains("no claim, because the DUT is simulated"));
    linerate_line(&format!("conformance {out} -o page"))
        .run()
        .fails(2, &["end the file's name in .html"]);
}

/// The rate falls after 200 ms, and the last frame of the outage is lost after 300 ms.
#[test]
fn a_dut_that_recovers_at_a_known_time() {
    let records = Scratch::new();
    let line = "rfc2544 --quick --duration 200ms --size 64 --test recovery --repeats 1 --link-speed 20160kbit/s \
                --simulate rate=20kpps,queue=64,outage=40ms@260ms --json";
    let found = linerate_line(&format!("{line} --out {}", records.file("tests")))
        .run()
        .ok()
        .json();
    let recovery = &found["summary"]["benchmarks"][0]["tests"][0]["figures"]["recovery"];
    let (ns, gap) = (
        recovery["mean_ns"].as_f64().unwrap(),
        1e9 / recovery["reduced"].as_f64().unwrap(),
    );
    assert!((ns - 100e6).abs() <= 2.0 * gap, "{recovery:#}");
}

#[test]
fn tests_of_rfc_2544_that_stop_go_on_where_they_were() {
    let records = Scratch::new();
    let out = records.file("tests");
    let args = "--simulate rate=20kpps,queue=64";
    let line = format!(
        "rfc2544 --quick --size 64 --test latency --test back-to-back --link-speed 20M {args}"
    );
    linerate_line(&format!("{line} --out {out}")).run().ok();
    let file = format!("{out}/trials.jsonl");
    let trials = std::fs::read_to_string(&file).unwrap();
    let all: Vec<&str> = trials.lines().collect();
    // Killed in a search for the longest burst.
    let kept = all.len() - 8;
    std::fs::write(&file, all[..kept].join("\n") + "\n").unwrap();
    std::fs::remove_file(format!("{out}/summary.json")).unwrap();
    let resumed = linerate_line(&format!("run --resume {out} {args}"))
        .run()
        .ok();
    assert!(
        resumed
            .stderr
            .contains(&format!("continuing after {kept} trial")),
        "{resumed:?}"
    );
    assert_eq!(
        std::fs::read_to_string(&file).unwrap().lines().count(),
        all.len()
    );
}

#[test]
fn a_dut_that_forwards_nothing_is_named_in_every_test_that_needs_a_throughput() {
    let records = Scratch::new();
    let line = "rfc2544 --quick --size 64 --link-speed 20M --simulate loss=1 --full";
    let shown = linerate_line(&format!("{line} --out {}", records.file("tests")))
        .run()
        .fails(1, &[])
        .stdout;
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        words.matches("even the lowest load loses frames").count(),
        4,
        "{shown}"
    );
    let line = "search --goal ndr --max 20kpps --duration 20ms --simulate loss=1";
    let shown = linerate_line(&format!("{line} --out {}", records.file("search")))
        .run()
        .fails(1, &[])
        .stdout;
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("no frame comes through at any load"),
        "{shown}"
    );
    let quiet = linerate_line(&format!("{line} --quiet --out {}", records.file("quiet"))).run();
    quiet.fails(1, &["has no rate for the goal ndr"]);
}

#[test]
fn a_dut_that_is_faster_than_the_tester_has_no_burst_and_no_load_that_is_too_high() {
    let records = Scratch::new();
    let line = "rfc2544 --quick --duration 50ms --size 64 --test back-to-back --test recovery --simulate ok --full";
    let shown = linerate_line(&format!("{line} --out {}", records.file("tests")))
        .run()
        .fails(1, &[])
        .stdout;
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for (said, times) in [
        ("no burst is too long", 1),
        ("no load is too high", 1),
        ("quick: departs from RFC 2544", 1),
    ] {
        assert_eq!(words.matches(said).count(), times, "{said}: {shown}");
    }
}

#[test]
fn modifiers_of_rfc_2544_are_in_the_frames_and_in_the_dut() {
    let records = Scratch::new();
    let out = records.file("tests");
    let line = "rfc2544 --quick --duration 10ms --size 64 --test frame-loss --simulate rate=5kpps";
    let more = "--filters 25 --networks 256 --ports random --broadcast --link-speed 6720kbit/s";
    linerate_line(&format!("{line} {more} --out {out}"))
        .run()
        .ok();
    let campaign: Value =
        serde_json::from_str(&std::fs::read_to_string(format!("{out}/campaign.json")).unwrap())
            .unwrap();
    let slot = campaign["slots"]
        .as_array()
        .unwrap()
        .iter()
        .find(|slot| !slot["ceiling"].is_null())
        .unwrap();
    let traffic = &slot["traffic"];
    assert_eq!(
        (&traffic["flows"]["flows"], &traffic["order"]),
        (&1000.into(), &"random".into()),
        "{slot:#}"
    );
    assert_eq!(traffic["broadcast_every"], 100, "{traffic:#}");
    let found = linerate_line(&format!("conformance {out}"))
        .run()
        .fails(3, &[])
        .stdout;
    let words = found.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "rules before the one that permits: [24]",
        "only 256 networks",
        "uniform by chi-square",
    ] {
        assert!(words.contains(said), "no '{said}' in {found}");
    }
    linerate_line("rfc2544 --filters 25 --variant nat")
        .run()
        .fails(2, &["--filters"]);
}

/// On a link of 148,810 frames/s, a queue of 512 that is drained at 20,000 frames/s takes bursts of up to 591 frames.
#[test]
fn bursts_have_a_shortest_interval_or_are_too_long_at_any() {
    let records = Scratch::new();
    let out = records.file("tests");
    let line = "rfc2544 --quick --duration 400ms --size 64 --test throughput --simulate rate=20kpps,queue=512";
    let more = "--bursts 64 --bursts 512 --bursts 1024 --link-speed 100M --full";
    let ended = linerate_line(&format!("{line} {more} --out {out}"))
        .run()
        .fails(1, &[]);
    let words = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    // Its queue never holds a burst of 1024.
    for said in [
        "Bursts (RFC 2544, 21)",
        "the DUT is unstable: it loses frames far below its rate",
    ] {
        assert!(words.contains(said), "no '{said}' in {}", ended.stdout);
    }
    let summary: Value =
        serde_json::from_str(&std::fs::read_to_string(format!("{out}/summary.json")).unwrap())
            .unwrap();
    let figures =
        |slot: usize| summary["benchmarks"][slot]["tests"][0]["figures"]["throughput"].clone();
    for (slot, burst) in [(0, 64.0), (1, 512.0)] {
        let (fps, seconds) = (
            figures(slot)["fps"].as_f64().unwrap(),
            figures(slot)["burst_s"].as_f64().unwrap(),
        );
        assert!((19_000.0..=21_300.0).contains(&fps), "{fps}: {summary:#}");
        assert!(
            (seconds * 148_809.0 - (burst - 1.0)).abs() < 0.5,
            "{seconds} s: {summary:#}"
        );
    }
    assert_eq!(figures(2), Value::Null, "{summary:#}");
    let found = linerate_line(&format!("conformance {out} --json"))
        .run()
        .fails(3, &[])
        .json();
    let row = found["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["id"] == "2544-21")
        .unwrap();
    assert_eq!(
        row["status"], "not-applicable",
        "a simulation has no medium: {row}"
    );
}

#[test]
fn what_is_wrong_or_different_is_said_before_the_tests_begin() {
    let refused = linerate_line("rfc2544 --quick --simulate bananas")
        .run()
        .fails(2, &["cannot read 'bananas': write ok, or a list of loss=N"]);
    assert!(!refused.stderr.contains("in all"), "{}", refused.stderr);
    let longer = "IPv6 UDP frames need 84 bytes";
    let estimate = linerate_line("rfc2544 --quick --family 6 --size 64 --estimate")
        .run()
        .ok()
        .stdout;
    assert!(estimate.contains(longer), "{estimate}");
    let records = Scratch::new();
    let line = "search --family 6 --goal pdr --max 10kpps --duration 10ms --simulate rate=5kpps";
    let told = linerate_line(&format!("{line} --out {}", records.file("search")))
        .run()
        .ok()
        .stderr;
    assert!(told.contains(longer), "{told}");
}

#[test]
fn an_estimate_sends_nothing_and_names_each_test() {
    let told = linerate_line("rfc2544 --estimate").run().ok().stdout;
    let says = [
        "By the sizes, times, waits and repeats of RFC 2544",
        "26.1",
        "26.5",
        "5 h 5 min",
    ];
    assert!(says.iter().all(|says| told.contains(says)), "{told}");
    linerate_line("rfc2544 --test latency --estimate --size 63x")
        .run()
        .fails(2, &["unit of a length"]);
    let folder = Scratch::new();
    let plan = folder.file("plan.toml");
    let text = "title = \"t\"\nquestion = \"q\"\nlab.file = \"lab.toml\"\n[variants.forwarding]\n[trials]\nduration = \"1 s\"\nblocks = 6\n";
    std::fs::write(&plan, text).unwrap();
    linerate_line(&format!("rfc2544 {plan} --estimate"))
        .run()
        .ok();
    linerate_line(&format!("rfc2544 {plan} --simulate ok"))
        .run()
        .fails(2, &["the load that is 100 % is unknown", "--link-speed"]);
    let lab = linerate_line("lab example black-box").run().ok().stdout;
    let estimated = |lab: &str, more: &str| {
        std::fs::write(folder.file("lab.toml"), lab).unwrap();
        let file = folder.file("lab.toml");
        let line = format!("rfc2544 --quick --lab {file} --estimate {more}");
        linerate_line(&line).run().ok().stdout
    };
    let asked = estimated(&lab, "--link-speed 10G");
    assert!(
        asked.contains(" trials)") && !asked.contains("(0 trials)"),
        "{asked}"
    );
    let stated = lab.replacen("\n[", "\nlink-speed = \"10 Gbit/s\"\n\n[", 1);
    assert_eq!(estimated(&stated, ""), asked);
    let supposed = estimated(&lab, "");
    let first = |text: &str| text.lines().next().unwrap().to_owned();
    assert_eq!(first(&supposed), first(&asked));
    assert!(supposed.contains("this is for 10 Gbit/s"), "{supposed}");
    linerate_line("rfc2544 --test reset --simulate ok")
        .run()
        .fails(
            2,
            &[
                "the test reset",
                "no variant has one",
                "add --event forwarding-off=100ms",
            ],
        );
    linerate_line("rfc2544 --test reset --event link-down --simulate ok")
        .run()
        .fails(2, &["the test reset", "a simulated DUT cannot have events"]);
    // A fault comes before the advice to take a shorter form, which has the fault as well.
    let told = linerate_line("rfc2544 --event reboot").run();
    let told = told.fails(2, &["reboot"]).stderr;
    assert!(!told.contains("20 hours"), "{told}");
}
