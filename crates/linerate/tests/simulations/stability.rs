//! Whether a simulated DUT loses frames far below its rate.

use crate::common::{Scratch, linerate_line};
use serde_json::Value;

const SEARCH: &str = "search --max 50kpps --duration 200ms --out records";

fn in_words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn shares(stability: &Value) -> Vec<(f64, f64, bool)> {
    let loads = stability["loads"].as_array().unwrap().iter();
    let load = |low: &Value| {
        let trials = low["trials"].as_f64().unwrap();
        (
            low["share"].as_f64().unwrap(),
            trials,
            low["unstable"] == true,
        )
    };
    loads.map(load).collect()
}

/// A DUT that loses frames above its limit alone.
#[test]
fn a_stable_dut_is_named_so_in_a_line_of_a_screen() {
    let scratch = Scratch::new();
    let line = format!("{SEARCH} --simulate rate=20kpps");
    let page = linerate_line(&line).dir(scratch.path()).run().ok().stdout;
    let said = "was lost at 1 %, 10 % and 50 % of its rate";
    assert!(
        page.contains("low load no frame of ") && page.contains(said),
        "{page}"
    );
    let found = linerate_line("show records --json")
        .dir(scratch.path())
        .run()
        .ok()
        .json();
    let search = &found["summary"]["searches"][0];
    assert_eq!(
        shares(&search["stability"]),
        [(0.01, 1.0, false), (0.1, 1.0, false), (0.5, 1.0, false)]
    );
    let rate = search["stability"]["rate"].as_f64().unwrap();
    assert!((rate / 20_000.0 - 1.0).abs() < 0.01, "{rate}");
}

/// A DUT that loses every 1000th frame at any load.
#[test]
fn a_loss_far_below_the_rate_refuses_ndr_with_its_finding() {
    let scratch = Scratch::new();
    let dut = "--simulate rate=20kpps,loss=1000";
    let ended = linerate_line(&format!("{SEARCH} {dut}"))
        .dir(scratch.path())
        .run();
    let page = ended.fails(1, &[]).stdout;
    assert!(page.lines().count() <= 24, "{page}");
    for said in [
        "unstable: lost 12 frames of 13,200 at 50 % of its rate (in the median of the trials 0.091 %, 95 % interval 0.091..0.091; simulated DUT: planned loss)",
        "No rate without loss is given; see pdr.",
        "has no rate for the goal ndr: the DUT is unstable",
        "refused",
        "The DUT drops 0.1 % of the frames",
    ] {
        assert!(in_words(&page).contains(said), "no '{said}' in {page}");
    }
    let json = || {
        linerate_line("show records --json")
            .dir(scratch.path())
            .run()
            .ok()
            .json()
    };
    let found = json();
    let search = &found["summary"]["searches"][0];
    assert_eq!(
        shares(&search["stability"]),
        [(0.01, 1.0, false), (0.1, 1.0, false), (0.5, 6.0, true)]
    );
    let low = &search["stability"]["loads"][2];
    assert_eq!(
        (&low["lost"], &low["losses"][0]["frames"]),
        (&12.into(), &12.into()),
        "{low:#}"
    );
    let [ndr, pdr] = [0, 1].map(|goal| &search["goals"][goal]);
    assert_eq!(
        (&ndr["irregular"], &ndr["lower"]),
        (&"unstable".into(), &Value::Null)
    );
    assert_eq!(pdr["irregular"], Value::Null, "{pdr:#}");
    // Killed before the search.
    let file = scratch.file("records/trials.jsonl");
    let trials = std::fs::read_to_string(&file).unwrap();
    let begun: Vec<&str> = trials
        .lines()
        .take_while(|line| !line.contains("stability"))
        .collect();
    let kept = trials.lines().take(begun.len() + 5).collect::<Vec<_>>();
    std::fs::write(&file, kept.join("\n") + "\n").unwrap();
    std::fs::remove_file(scratch.file("records/summary.json")).unwrap();
    linerate_line(&format!("run --resume records {dut}"))
        .dir(scratch.path())
        .run()
        .fails(1, &[]);
    assert_eq!(json()["summary"]["searches"], found["summary"]["searches"]);
}

#[test]
fn tests_at_a_throughput_are_refused_and_the_loss_is_measured() {
    let scratch = Scratch::new();
    let tests = "--test throughput --test latency --test frame-loss";
    let line = format!(
        "rfc2544 --quick --size 64 {tests} --link-speed 20M --simulate rate=20kpps,loss=1000"
    );
    let ended = linerate_line(&format!("{line} --out records"))
        .dir(scratch.path())
        .run();
    let page = in_words(&ended.fails(1, &["stability"]).stdout);
    let said = "unstable: lost 12 frames of 12,018 at 10 % of its rate";
    assert!(
        page.contains(said) && page.contains("linerate search --goal pdr"),
        "{page}"
    );
    let found = linerate_line("show records --json")
        .dir(scratch.path())
        .run()
        .ok()
        .json();
    let tests = found["summary"]["benchmarks"][0]["tests"]
        .as_array()
        .unwrap()
        .iter();
    let whys: Vec<(&Value, &Value)> = tests.map(|test| (&test["test"], &test["why"])).collect();
    let (unstable, none) = (Value::from("unstable"), Value::Null);
    assert_eq!(
        whys,
        [
            (&"throughput".into(), &unstable),
            (&"latency".into(), &unstable),
            (&"frame-loss".into(), &none)
        ]
    );
    // Nothing that RFC 2544 asks of the throughput is judged by these trials.
    let rows = linerate_line("conformance records --json")
        .dir(scratch.path())
        .run()
        .json();
    let row = |id: &str| {
        rows["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["id"] == id)
            .unwrap()
            .clone()
    };
    assert_eq!(row("2544-24b")["status"], "not-run");
    assert_eq!(row("9971-4.5.3")["status"], "not-run");
}
