//! Searches for rates and loss curves, and reference results.

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
        "frames a second",
        "The goal is met at",
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
    let resume = "the time ran out; to continue: linerate run --resume records --simulate rate=20kpps --budget 24s";
    assert!(
        ended.stderr.contains("the budget is 7 s") && ended.stderr.contains(resume),
        "{ended:?}"
    );
    let irregular = "pdr: at least 20.28 thousand frames a second; the time ran out before the bounds were close (RFC 9971: irregular).";
    let words: Vec<&str> = ended.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains(irregular), "{ended:?}");
    go_on("").fails(2, &["the time ran out", "--budget 24s"]);
    go_on("--budget 5s").fails(
        2,
        &["--budget is the time for all trials, and the recorded ones took 7.0 s"],
    );
    let ended = go_on("--budget 24s --full").ok();
    assert!(
        ended.stdout.contains("all searches are complete"),
        "{ended:?}"
    );
    // Whoever reads the records repeats its choices.
    let shown = linerate_line("show records").dir(scratch.path()).run().ok();
    assert!(
        shown.stdout.contains("20.30 thousand and missed at 20.40"),
        "{shown:?}"
    );
}

/// The tester's rate is no answer.
#[test]
fn the_list_says_that_a_search_has_no_result() {
    let scratch = Scratch::new();
    for (out, more) in [
        ("none", "loss=2 --goal 0:20ms:20ms:0"),
        ("curve", "rate=25kpps --loss-curve"),
    ] {
        let line =
            format!("search --max 50kpps --duration 20ms --out results/{out} --simulate {more}");
        linerate_line(&line).dir(scratch.path()).run().no_panic();
    }
    let list = linerate_line("list results")
        .dir(scratch.path())
        .run()
        .ok()
        .stdout;
    assert!(
        list.contains("SIMULATED: forwarding IPv4 64 B: no rate for the goal 0:20ms:20ms:0")
            && list.contains("SIMULATED: forwarding IPv4 64 B: 30.0 % loss at")
            && !list.contains("tester-baseline"),
        "{list}"
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
        .fails(2, &["--verify", "add --method binary"]);
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

/// Every 10,000th frame is lost: a load with loss is too high for a binary search, unless it may try again. The method has an older name.
#[test]
fn a_binary_search_verifies_losses() {
    let bound = |method: &str, more: &str| {
        let line = "--simulate loss=10000 --max 40kpps --goal 0:20ms:20ms:0";
        let found = search(&format!("{line} --method {method} {more}"), &Scratch::new());
        found["summary"]["searches"][0]["goals"][0]["lower"]
            .as_f64()
            .unwrap_or(0.0)
    };
    assert!(
        bound("bisection", "--verify 3") >= bound("binary", ""),
        "a further trial can only help"
    );
    assert!(
        bound("binary", "--verify 3") > 0.99 * 27_000.0,
        "the highest load passes at one of four times"
    );
}
