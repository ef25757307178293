//! Searches, tests of RFC 2544 and reports of simulated DUTs.

use crate::common::{Scratch, linerate, linerate_line};
use serde_json::Value;

fn search(more: &str, records: &Scratch) -> Value {
    let line = format!(
        "search --duration 20ms --width 2% --json --out {} {more}",
        records.file("search")
    );
    serde_json::from_str(&linerate_line(&line).run().ok().stdout).unwrap()
}

#[test]
fn a_simulated_rate_is_found() {
    let records = Scratch::new();
    let found = search(
        "--simulate rate=20kpps --max 50kpps --goal 0.5%:20ms:420ms:0.5",
        &records,
    );
    let [search] = &found["summary"]["searches"].as_array().unwrap()[..] else {
        panic!("{found:#}")
    };
    let [goal] = &search["goals"].as_array().unwrap()[..] else {
        panic!("{search:#}")
    };
    assert_eq!(
        (&goal["irregular"], &search["ended"]),
        (&Value::Null, &Value::from("known")),
        "{search:#}"
    );
    // The simulated DUT's queue takes some frames more.
    let rate = goal["conditional"].as_f64().unwrap();
    assert!((19_500.0..22_500.0).contains(&rate), "{rate}");
    let shown = linerate_line(&format!("show --full {}", records.file("search")))
        .run()
        .ok();
    let says = [
        "frames a second. The goal is met at",
        "Loss at each load",
        "regular",
    ];
    let shown = shown
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(says.iter().all(|words| shown.contains(words)), "{shown}");
}

/// linerate warns of a budget that is too short, before the search and after it; with a larger budget the search continues.
#[test]
fn a_search_goes_on_with_more_time() {
    let (scratch, dut) = (Scratch::new(), "--simulate rate=20kpps");
    let go_on = |more: &str| {
        let line = format!("run --resume records {dut} {more}");
        linerate_line(&line).dir(scratch.path()).run().no_panic()
    };
    let line = format!("search --max 30kpps --duration 100ms --budget 7s --out records {dut}");
    let ended = linerate_line(&line).dir(scratch.path()).run().ok();
    let resume = "the time ran out; to continue: linerate run --resume records --simulate rate=20kpps --budget 23s";
    assert!(
        ended.stderr.contains("the budget is 7 s") && ended.stderr.contains(resume),
        "{ended:?}"
    );
    let irregular = "pdr: at least 20.28 thousand frames a second; the time ran out, so the result is irregular.";
    assert!(ended.stdout.contains(irregular), "{ended:?}");
    go_on("").fails(2, &["the time ran out", "--budget 23s"]);
    go_on("--budget 5s").fails(
        2,
        &["--budget is the time for all trials, and the recorded ones took 7.0 s"],
    );
    let ended = go_on("--budget 23s --full").ok();
    assert!(
        ended.stdout.contains("all searches are complete"),
        "{ended:?}"
    );
    // Whoever reads the records repeats its choices.
    let shown = linerate_line("show records").dir(scratch.path()).run().ok();
    assert!(
        shown
            .stdout
            .contains("met at 20.30 thousand and missed at 20.40"),
        "{shown:?}"
    );
}

#[test]
fn a_loss_curve_falls_to_two_trials_without_loss() {
    let records = Scratch::new();
    let out = records.file("curve");
    let line = format!(
        "search --loss-curve --simulate rate=25kpps --max 50kpps --duration 50ms --json --out {out}"
    );
    let found = linerate_line(&line).run().ok().json();
    let loads = found["summary"]["searches"][0]["loads"].as_array().unwrap();
    let lossless: Vec<bool> = loads.iter().map(|load| load["most"] == 0.0).collect();
    assert!(
        lossless.len() >= 5 && lossless.iter().take(3).copied().eq([true, true, false]),
        "{loads:#?}"
    );
    let shown = linerate_line(&format!("show {out}")).run().ok().stdout;
    assert!(
        shown.contains("two successive trials lost nothing"),
        "{shown}"
    );
}

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
        "quick: not RFC 2544 (sections 9, 23, 24, 26.4, 26.5)",
        "theoretical rate of the slower link",
        "corrected",
        "all tests are complete",
    ];
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(says.iter().all(|says| words.contains(says)), "{shown}");
}

/// Rows of docs/conformance.md that are about the report: the words that meet them are printed.
#[test]
fn the_page_has_what_the_documents_ask_of_a_report() {
    let records = Scratch::new();
    let out = records.file("tests");
    let line = "rfc2544 --quick --duration 50ms --repeats 1 --size 64 --size 128 --test throughput --test latency \
                --test frame-loss --test back-to-back --simulate rate=20kpps,queue=64 --link-speed 20160kbit/s";
    linerate_line(&format!("{line} --out {out}"))
        .run()
        .no_panic();
    let shown = linerate_line(&format!("show --full {out}"))
        .run()
        .ok()
        .stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for (row, said) in [
        (
            "2544-26.1b",
            "x: frame size in bytes, with FCS; y: throughput, kpps - theoretical rate of the medium",
        ),
        (
            "2544-26.1c",
            "frames/s of 64 B; theoretical limit 30,000 frames/s; IPv4 UDP",
        ),
        ("2544-26.2f", "nearest to RFC 1242's store-and-forward"),
        (
            "9004-5b",
            "100 % of the load is the theoretical rate of the slower link",
        ),
        (
            "2544-26.3c",
            "x: offered load, % of the theoretical rate of the medium; y: frame loss, %",
        ),
        (
            "9971-4.3",
            "load offered forwarded sent lost loss % kpps kpps frames frames %",
        ),
        ("9971-4.4.3", "not RFC 2544 (sections 9, 23,"),
        ("9971-4.6.5", "bounds within 0.50 % of the upper one"),
    ] {
        assert!(shown.contains(said), "{row}: no '{said}' in {shown}");
    }
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
        .ok()
        .stdout;
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for (said, times) in [
        ("no burst is too long", 1),
        ("no load is too high", 1),
        ("quick: not RFC 2544", 1),
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
    for said in ["Bursts (RFC 2544, 21)", "even the lowest load loses frames"] {
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
        .fails(2, &["'bananas' is not ok"]);
    assert!(!refused.stderr.contains("in all"), "{}", refused.stderr);
    let longer = "IPv6 UDP frames are at least 84 bytes long";
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
}

#[test]
fn reference_results_that_differ_are_named() {
    let folder = Scratch::new();
    let vectors = |class: &str| {
        let goal = r#"{"final":1,"sum":1,"loss":0.0,"exceed":0.5}"#;
        let vector = format!(
            r#"{{"goal":{goal},"trials":[[1,1,0.0]],"class":"{class}","quantile_loss":0.0}}"#
        );
        let path = folder.file(class);
        std::fs::write(
            &path,
            format!(r#"{{"classification":{{"vectors":[{vector}]}}}}"#),
        )
        .unwrap();
        path
    };
    let check = |file: &str| linerate(["search", "--check", file]).run();
    assert!(
        check(&vectors("lower"))
            .ok()
            .stdout
            .contains("All 1 result")
    );
    let differs = check(&vectors("upper")).status(3).stdout;
    let says = [
        "1 of 1 result",
        "classification 0",
        "upper, loss 0",
        "lower, loss 0",
    ];
    assert!(
        says.iter().all(|words| differs.contains(words)),
        "{differs}"
    );
    std::fs::write(folder.file("x"), "{}").unwrap();
    assert!(
        check(&folder.file("x"))
            .status(3)
            .stdout
            .contains("contains no reference results")
    );
    std::fs::write(folder.file("x"), "5").unwrap();
    check(&folder.file("x")).fails(1, &["does not have the form"]);
}

#[test]
fn a_report_is_one_page_with_a_picture() {
    let records = Scratch::new();
    let [out, file] = ["campaign", "report.html"].map(|name| records.file(name));
    linerate_line(&format!("bench --simulate ok --trials 3 --out {out}"))
        .run()
        .ok();
    let told = linerate_line(&format!("report {out} -o {file}")).run().ok();
    assert!(
        told.stderr.contains("report.html") && told.stdout.is_empty(),
        "{told:?}"
    );
    let page = std::fs::read_to_string(&file).unwrap();
    for what in [
        "SIMULATED",
        "<svg",
        "Forwarding rate of each cell",
        "How it was measured",
        "default-src 'none'",
    ] {
        assert!(page.contains(what), "{what} in {page}");
    }
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    let again = linerate_line(&format!("report {out}")).run().ok();
    assert_eq!(again.stdout, page, "the same records give the same page");
    let both = linerate_line(&format!("report {out} {out}"))
        .run()
        .ok()
        .stdout;
    assert!(
        both.contains("<h1>2 campaigns</h1>") && both.len() > page.len(),
        "{both}"
    );
    let asked = linerate_line(&format!(
        "bench --simulate ok --trials 3 --report --out {out}-2"
    ))
    .run()
    .ok();
    assert!(asked.stderr.contains("campaign-2/report.html"), "{asked:?}");
    assert!(
        std::fs::read_to_string(format!("{out}-2/report.html"))
            .unwrap()
            .contains("<svg")
    );
    linerate_line("report /nonexistent")
        .run()
        .fails(1, &["/nonexistent"]);
}

#[test]
fn both_ip_versions_are_searched_and_what_is_given_twice_is_refused() {
    let records = Scratch::new();
    let found = search(
        "--simulate rate=20kpps --max 50kpps --goal pdr --family both --size 84",
        &records,
    );
    let searches = found["summary"]["searches"].as_array().unwrap();
    let family = |search: &Value| {
        found["campaign"]["slots"][search["slot"].as_u64().unwrap() as usize]["traffic"]["frame"]["family"]
            .clone()
    };
    assert_eq!(
        searches.iter().map(family).collect::<Vec<_>>(),
        ["IPv4", "IPv6"]
    );
    linerate_line("search --simulate ok --goal pdr --goal pdr")
        .run()
        .fails(2, &["pdr is given twice"]);
    linerate_line("search --simulate ok --verify 2")
        .run()
        .fails(2, &["--verify", "add --method bisection"]);
    for (line, code, says) in [
        (
            "search --simulate ok --max 500pps",
            2,
            "name a lower one with --min",
        ),
        (
            "search --simulate ok --min 1Mpps --duration 20ms",
            1,
            "the tester is too slow: it cannot keep the lowest load",
        ),
        (
            "search --simulate loss=1 --max 10kpps --duration 20ms --loss-curve",
            1,
            "no frame comes through at any load",
        ),
        (
            "search --simulate ok --max 5kpps --duration 20ms",
            0,
            "the highest load that was asked for, 5.000 thousand: the DUT may be faster",
        ),
        (
            "rfc2544 --simulate ok --quick --size 64 --test throughput --duration 20ms",
            0,
            "throughput at least 37,996 frames/s",
        ),
    ] {
        let scratch = Scratch::new();
        let line = format!("{line} --out {}", scratch.file("records"));
        let ended = linerate_line(&line).run();
        let told = format!("{} {}", ended.stdout, ended.stderr)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(
            ended.status.code() == Some(code) && told.contains(says),
            "{line}: {ended:?}"
        );
    }
    linerate_line("search --simulate ok --min 2Mpps --max 1Mpps")
        .run()
        .fails(2, &["must be above 0 and below"]);
}

/// Every 10,000th frame is lost: a load with loss is too high for a bisection, unless it may try again.
#[test]
fn a_bisection_verifies_losses() {
    let bound = |more: &str| {
        let line = "--simulate loss=10000 --max 40kpps --method bisection --goal 0:20ms:20ms:0";
        let found = search(&format!("{line} {more}"), &Scratch::new());
        found["summary"]["searches"][0]["goals"][0]["lower"]
            .as_f64()
            .unwrap_or(0.0)
    };
    assert!(
        bound("--verify 3") >= bound(""),
        "a further trial can only help"
    );
    assert!(
        bound("--verify 3") > 0.99 * 27_000.0,
        "the highest load passes at one of four times"
    );
}
