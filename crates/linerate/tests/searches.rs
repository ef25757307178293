//! Searches on real packets, against DUTs whose answer is known, and against each other. They want a quiet machine: a stall of the
//! machine is a loss of the DUT.

use crate::common::{Ended, Scratch, linerate_line};
use serde_json::Value;

/// Load of a trial of 100 ms: its warm-up lasts as long as its window.
const LOAD_SECONDS: f64 = 0.2;

/// The result of a search for one goal. A search that ended because of the tester is repeated.
fn searched(line: &str) -> Value {
    for _ in 0..5 {
        let records = Scratch::new();
        let line = format!(
            "search {line} --budget 5min --json --out {}",
            records.file("search")
        );
        let found = linerate_line(&line).within(400).first().run().json();
        let search = &found["summary"]["searches"][0];
        match search["ended"].as_str() {
            Some("known") => return search["goals"][0].clone(),
            Some("tester") => eprintln!("{line}: the tester was the cause"),
            _ => panic!("{line}: {search:#}"),
        }
    }
    panic!("{line}: the tester was the cause five times");
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is a number"))
}

/// The figures of a test of RFC 2544 with frames of 64 bytes, by `rfc2544` in short trials.
fn tested(line: &str, test: &str) -> Value {
    let records = Scratch::new();
    let line = format!(
        "rfc2544 --quick --size 64 --test {test} {line} --json --out {}",
        records.file("tests")
    );
    let found = linerate_line(&line).within(200).first().run().ok().json();
    found["summary"]["benchmarks"][0]["tests"][0]["figures"][test].clone()
}

/// Forwarding is off for 100 ms: both methods find the same time, and no less. A link of this speed carries 20,000 frames/s.
#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_both_methods_find_the_time_of_an_interruption() {
    let line = "--event forwarding-off=100ms --duration 400ms --repeats 5 --link-speed 13440kbit/s";
    let reset = tested(line, "reset");
    let gap = 1e9 / number(&reset["load"]);
    let runs = reset["runs"].as_array().unwrap();
    let apart = |run: &Value| (number(&run["by_loss_ns"]) - number(&run["by_stamps_ns"])).abs();
    // A stall of this machine shifts stamps, and loses no frame.
    let closest = runs.iter().map(apart).fold(f64::INFINITY, f64::min);
    assert!(closest <= 2.0 * gap, "{runs:#?} with gaps of {gap} ns");
    assert!(
        runs.iter()
            .all(|run| number(&run["by_stamps_ns"]) >= 100e6 - 2.0 * gap),
        "{runs:#?}"
    );
    let event = &reset["event"];
    let lasted = number(&event["ended_ns"]) - number(&event["began_ns"]);
    let first = number(&reset["runs"][0]["by_stamps_ns"]);
    assert!(first <= lasted + 2.0 * gap, "{first} ns within {lasted} ns");
}

/// A queue that is full when the rate falls loses no more: it has recovered at once.
#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_a_queue_recovers_at_once_and_takes_the_burst_that_it_holds() {
    let line = "--variant known-queue=1000@20000 --link-speed 40320kbit/s --repeats 3";
    let recovery = tested(line, "recovery");
    let gap = 1e9 / number(&recovery["reduced"]);
    assert!(number(&recovery["mean_ns"]) <= 2.0 * gap, "{recovery:#}");
    assert!(
        recovery["runs"]
            .as_array()
            .unwrap()
            .iter()
            .all(|run| number(&run["lost"]) > 500.0),
        "{recovery:#}"
    );
    // Q R / (R - r), within a batch.
    let burst = tested(line, "back-to-back");
    assert!((number(&burst["mean"]) - 1500.0).abs() <= 64.0, "{burst:#}");
}

/// Delays of 5 and of 185 us in turn. Stalls of this machine only add: the quietest of many short runs is held against the answer.
#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_delay_variation_is_that_of_known_delays() {
    let line =
        "--variant known-delays=5us/185us --duration 50ms --repeats 20 --link-speed 1344kbit/s";
    let found = tested(line, "delay-variation");
    let runs = found["runs"].as_array().unwrap();
    let quietest = runs
        .iter()
        .min_by(|a, b| number(&a["pdv_ns"]).total_cmp(&number(&b["pdv_ns"])))
        .unwrap();
    let [least, _, largest] = [0, 1, 2].map(|at| number(&quietest["ipdv_ns"][at]));
    for found in [number(&quietest["pdv_ns"]), -least, largest] {
        assert!((175e3..300e3).contains(&found), "{found}: {quietest}");
    }
}

/// A queue of Q frames, drained at R, is full after the load's time T at R + Q / T. A veth's ring of 256 frames holds those of 23 ms at
/// this rate, and at ten times the rate those of 2.3 ms: where a virtual machine stops for longer, some searches then found 2 to 4 % less.
/// The queue is drained between trials.
#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_a_rate_that_is_known_is_found() {
    const PASSES: f64 = 10_000.0 + 200.0 / LOAD_SECONDS;
    let mut off: Vec<f64> = Vec::new();
    for _ in 0..20 {
        let line =
            "--variant known-queue=200@10000 --goal 0:100ms:2100ms:0.5 --width 0.3% --max 20kpps";
        off.push(number(&searched(line)["conditional"]) / PASSES - 1.0);
    }
    assert!(off.iter().all(|off| off.abs() <= 0.005), "{off:?}");
    eprintln!("{off:?}");
}

/// Every N-th frame is lost: a trial of n frames loses one with the probability n / N. Half of the trials do so at n = N / 2.
#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_a_floor_of_loss_bounds_the_rate_without_loss() {
    // At half of the highest load, one of two successive trials loses a frame at most: no loss far below the rate is in the way.
    let goal = searched("--variant known-loss=20000 --goal 0:100ms:8100ms:0.5 --max 100kpps");
    let half = 20_000.0 / 2.0 / LOAD_SECONDS;
    let lower = number(&goal["lower"]);
    // Of 81 trials that lose a frame with the probability n / N, half lose one where this is 0.5 +- 0.055.
    let off = lower / half - 1.0;
    assert!(
        off.abs() <= 3.0 * 2.0 * 0.055,
        "{lower} for {half}: {goal:#}"
    );
    eprintln!("{off}");
    // With 0.5 % allowed, one frame in 20,000 is nothing.
    let goal = searched("--variant known-loss=20000 --goal 0.5%:100ms:2100ms:0.5 --max 200kpps");
    assert_eq!(goal["irregular"], "max-load", "{goal:#}");
}

/// The machine's noise is part of both: their intervals must allow for it.
#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_two_searches_for_the_same_rate_agree_within_their_intervals() {
    let interval = || {
        let goal = searched("--goal 0:20ms:420ms:0.5 --width 2%");
        let end = |at: usize, open: f64| goal["interval"][at].as_f64().unwrap_or(open);
        (
            end(0, 0.0),
            end(1, f64::INFINITY),
            goal["conditional"].as_f64(),
        )
    };
    let pairs: Vec<_> = (0..10).map(|_| (interval(), interval())).collect();
    let agree = |((low, high, _), (other_low, other_high, _)): &(_, _)| {
        low <= other_high && other_low <= high
    };
    let agreeing = pairs.iter().filter(|pair| agree(pair)).count();
    assert!(agreeing >= 9, "{pairs:#?}");
    eprintln!("{pairs:#?}");
}

/// Two DUTs at a low load: one drops every 1000th frame. In the other, a stall of this machine may lose some, but not in six trials.
#[test]
#[ignore = "needs root: run by make test as root"]
fn a_dut_that_loses_frames_far_below_its_rate_is_told_from_one_that_does_not() {
    let scratch = Scratch::new();
    let plan = "title = \"t\"\nquestion = \"q\"\nlab = { mode = \"threaded\", batch = 32, link-speed = \"13440 kbit/s\" }\n\
                [variants.forwarding]\n[variants.lossy]\ndut = \"known-loss=1000\"\n[traffic]\nflows = 1\nfamily = \"IPv4\"\n\
                [trials]\nmeasure = \"search\"\ngoals = [\"0:100ms:200ms:0.5\", \"0.5%:100ms:200ms:0.5\"]\nwidth = \"10 %\"\n\
                duration = \"100 ms\"\nbudget = \"20 s\"\n";
    std::fs::write(scratch.file("plan.toml"), plan).unwrap();
    let line = linerate_line("run plan.toml --json --out records");
    let found = line.dir(scratch.path()).within(200).first().run().json();
    let searches = found["summary"]["searches"].as_array().unwrap();
    let loads = |search: &Value| {
        search["stability"]["loads"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let [forwarding, lossy] = [0, 1].map(|at| loads(&searches[at]));
    assert!(
        forwarding.iter().all(|low| low["unstable"] == false),
        "{forwarding:#?}"
    );
    let Some(low) = lossy.iter().find(|low| low["share"] == 0.5) else {
        return eprintln!("the tester could not keep the load: {lossy:#?}");
    };
    assert_eq!(
        (&low["unstable"], &low["lossy"]),
        (&true.into(), &6.into()),
        "{low:#}"
    );
    let mut places = low["losses"].as_array().unwrap().iter();
    let dropped = places
        .find(|loss| loss["place"] == "DUT: dropped by lossy")
        .unwrap();
    // The count of drops goes on from trial to trial, also where one of them is invalid.
    let off = number(&dropped["frames"]) - number(&low["sent"]) / 1000.0;
    assert!(off.abs() <= 2.0, "{low:#}");
    let [strict, loose] = [0, 1].map(|goal| &searches[1]["goals"][goal]);
    assert_eq!(
        (&strict["irregular"], &strict["lower"]),
        (&"unstable".into(), &Value::Null)
    );
    assert_ne!(loose["irregular"], "unstable");
    let page = linerate_line("show records")
        .dir(scratch.path())
        .run()
        .ok()
        .stdout;
    assert!(
        page.contains("lossy: unstable: lost ") && page.lines().count() <= 24,
        "{page}"
    );
}

/// A plan whose DUT carries out a command once it has received 30,000 frames.
fn changing(trials: &str, what: &str) -> Ended {
    let scratch = Scratch::new();
    let run = format!(
        "setsid sh -c 'until set -- $(grep {{in}}: /proc/net/dev); [ $3 -gt 30000 ]; do sleep 0.1; done; {what}' >/dev/null 2>&1 & sleep 0.2"
    );
    let plan = format!(
        "title = \"t\"\nquestion = \"q\"\n[lab]\nmode = \"threaded\"\nbatch = 32\n[variants.forwarding]\n\
         commands = [{{ run = \"{run}\", undo = \"true\" }}]\n[traffic]\nflows = 1\n[trials]\n{trials}\n"
    );
    std::fs::write(scratch.file("plan.toml"), plan).unwrap();
    let line = format!("run plan.toml --out {}", scratch.file("records"));
    let ended = linerate_line(&line)
        .dir(scratch.path())
        .within(150)
        .first()
        .run()
        .no_panic();
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    Ended {
        stdout: words(ended.stdout),
        ..ended
    }
}

const SEARCH: &str = "measure = \"search\"\ngoals = [\"0.5%:1s:5s:0.5\"]\nduration = \"1 s\"\nmax-load = \"20 kpps\"\nbudget = \"40 s\"";

/// The link behind the DUT goes down in mid-search, and in mid-test: the page says since when no frame came, and no result is regular.
#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_a_link_that_goes_down_is_named() {
    let tested = "measure = \"rfc2544\"\ntests = [\"throughput\", \"frame-loss\"]\nduration = \"1 s\"\ndrain = \"20 ms\"\nsettle = \"1 ms\"\nmax-load = \"20 kpps\"";
    for trials in [SEARCH, tested] {
        let ended = changing(trials, "ip link set dev {out} down");
        assert!(
            ended
                .stdout
                .contains("and then none in three successive trials: the DUT or a link went down"),
            "{ended:?}"
        );
        assert!(!ended.stdout.contains(" regular"), "{ended:?}");
    }
}

/// Each second the DUT drops another 5 % of the frames.
#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_a_loss_that_grows_with_time_is_named() {
    let grows = "nft add table ip t; nft add chain ip t f { type filter hook forward priority 0 \\\\; }; \
                 for i in 1 2 3 4 5 6 7 8 9; do nft add rule ip t f numgen random mod 100 \\\\< 5 drop; sleep 1; done";
    let ended: Vec<String> = (0..3).map(|_| changing(SEARCH, grows).stdout).collect();
    assert!(
        ended.iter().all(|page| !page.contains(" regular")),
        "{ended:#?}"
    );
    // Other work of this machine ends a search early, for the tester keeps no load then.
    assert!(
        ended
            .iter()
            .any(|page| page.contains("the loss has grown with time")),
        "{ended:#?}"
    );
}
