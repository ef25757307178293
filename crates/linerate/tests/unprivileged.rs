//! The command line without privileges: simulated campaigns, their records, and interruptions.

use crate::common::campaign::{duplicates, failures, located, rates, sent_and_received, valid};
use crate::common::{Bench, Campaign, Scratch, linerate, linerate_line, median, wait_for};
use serde_json::Value;

const QUICK: &str = "--simulate ok --family 4 --trials 1 --duration 20ms";

fn simulated(what: &str, more: &str) -> Campaign {
    Bench::new(&format!("--simulate {what} --family 4 --json {more}")).run()
}

#[track_caller]
fn all_valid(trials: &[Value]) {
    for trial in trials {
        assert!(valid(trial), "{:?}", failures(trial));
    }
}

#[test]
fn a_simulated_dut_that_is_fine_loses_nothing() {
    let campaign = simulated("ok", "--duration 50ms --trials 2");
    all_valid(&campaign.trials);
    assert_eq!(campaign.trials.len(), 4);
    for trial in &campaign.trials {
        let (sent, received) = sent_and_received(trial);
        assert!(
            sent > 0 && sent == received && duplicates(trial) == 0,
            "{sent} {received}"
        );
    }
}

#[test]
fn simulated_loss_is_found_to_the_frame() {
    let campaign = simulated("loss=1000", "--trials 4 --duration 50ms");
    all_valid(&campaign.trials);
    for trial in campaign.of("forwarding") {
        let (sent, received) = sent_and_received(trial);
        assert!(sent > 1000, "{sent}");
        assert_eq!(sent - received, sent / 1000);
        assert_eq!(located(trial, "simulated DUT: planned loss"), sent / 1000);
    }
    for trial in campaign.of("tester-baseline") {
        let (sent, received) = sent_and_received(trial);
        assert_eq!(sent, received, "only the DUT loses");
    }
    let loss = campaign.row("forwarding")["loss_ratio"].as_f64().unwrap();
    assert!((0.000_9..=0.001).contains(&loss), "{loss}");
}

#[test]
fn simulated_duplicates_are_counted_and_hide_no_loss() {
    let campaign = simulated("loss=50,duplication=100", "--trials 3 --duration 30ms");
    all_valid(&campaign.trials);
    for trial in campaign.of("forwarding") {
        let (sent, received) = sent_and_received(trial);
        assert_eq!(sent - received, sent / 50);
        assert_eq!(duplicates(trial), received / 100);
    }
}

/// Two variants, five blocks of trials of 10 s with a pause of the same length: 200 s, without any wait.
#[test]
fn a_simulated_campaign_has_a_clock_of_its_own() {
    let scratch = Scratch::new();
    let plan = "title = \"t\"\nquestion = \"q\"\n[variants.a]\nabout = \"a\"\n\
        [trials]\nduration = \"10 s\"\npause = \"10 s\"\nblocks = 5\n";
    std::fs::write(scratch.file("plan.toml"), plan).unwrap();
    let run = linerate_line("run plan.toml --simulate loss=1000 --out records");
    let ended = run.dir(scratch.path()).within(180).run().ok();
    assert!(ended.took.as_secs() < 60, "{:?}", ended.took);
    let trials = crate::common::campaign::trials(&scratch.path().join("records"));
    assert_eq!(trials.len(), 10);
    all_valid(&trials);
    let began = trials[9]["began_ns"].as_u64().unwrap();
    assert!(began >= 9 * 20_000_000_000, "{began}");
}

#[test]
fn a_simulated_rate_is_measured() {
    let campaign = simulated("rate=50kpps", "--rate 100kpps --trials 7 --duration 100ms");
    let received = median(&rates(&campaign.of("forwarding"), "received"));
    assert!((received / 5e4 - 1.0).abs() < 0.02, "{received}");
    assert!(
        campaign
            .of("forwarding")
            .iter()
            .all(|t| located(t, "simulated DUT: over its rate") > 0)
    );
}

#[test]
fn a_simulated_delay_is_measured() {
    let campaign = simulated("delay=20ms", "--rate 10kpps --trials 3 --duration 100ms");
    let p50 = |variant: &str| campaign.row(variant)["latency_ns"]["p50"].as_u64().unwrap();
    // A busy machine adds, and the buckets of the histogram are some per cent wide; nothing takes away.
    assert!(p50("forwarding") >= 19_000_000, "{}", p50("forwarding"));
    assert!(
        p50("tester-baseline") < 19_000_000,
        "{}",
        p50("tester-baseline")
    );
}

#[test]
fn records_are_whole_and_show_prints_the_same() {
    let bench = Bench::new("--simulate loss=1000 --trials 2 --duration 20ms --sizes 64,imix").run();
    let folder = std::fs::read_dir(&bench.directory).unwrap();
    let mut found: Vec<String> = folder
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(
        found,
        ["campaign.json", "host.json", "summary.json", "trials.jsonl"]
    );
    let printed = &bench.ended.stdout;
    assert!(
        printed.starts_with("SIMULATED: all figures below are of a simulated DUT"),
        "{printed}"
    );
    assert!(
        printed.ends_with(&format!("records  {}\n", bench.path())),
        "{printed}"
    );
    let shown = linerate(["show", bench.path()]).run().ok();
    assert_eq!(&shown.stdout, printed);
    assert_eq!(shown.stderr, "");
    let json = linerate(["show", bench.path(), "--json"]).run().ok().json();
    assert_eq!(json["summary"], bench.document("summary.json"));
    let with_trials = linerate(["show", bench.path(), "--trials"])
        .run()
        .ok()
        .stdout;
    let full = linerate(["show", bench.path(), "--full"]).run().ok().stdout;
    assert!(
        with_trials.starts_with(&full) && full.lines().count() > 30,
        "{full}"
    );
    // A block is every size in every family, with the DUT and without.
    assert_eq!(bench.trials.len(), 2 * 2 * 2 * 2);
    let lines = with_trials
        .lines()
        .filter(|l| l.contains(" ok ") || l.contains(" FAILED "))
        .count();
    assert_eq!(lines, bench.trials.len(), "{with_trials}");
}

#[test]
fn json_is_the_whole_campaign() {
    let bench = Bench::new(&format!("{QUICK} --json")).run();
    let document = bench.ended.json();
    for (key, file) in [
        ("campaign", "campaign.json"),
        ("host", "host.json"),
        ("summary", "summary.json"),
    ] {
        assert_eq!(document[key], bench.document(file), "{key}");
    }
    assert_eq!(document["directory"], bench.path());
    assert_eq!(document["campaign"]["asked"]["lab"], "simulated");
}

#[test]
fn records_without_out_are_under_linerate_results() {
    let scratch = Scratch::new();
    let bench = format!("bench {QUICK}");
    for name in ["mine", "../../a/b"] {
        linerate_line(&bench)
            .args(["--name", name])
            .dir(scratch.path())
            .run()
            .ok();
    }
    let results: Vec<_> = std::fs::read_dir(scratch.path().join("linerate-results"))
        .unwrap()
        .collect();
    assert_eq!(results.len(), 2);
    for folder in results {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        assert!(name.contains("Z-"), "TIME-NAME: {name}");
        assert!(folder.path().join("summary.json").exists());
    }
    assert_eq!(
        std::fs::read_dir(scratch.path()).unwrap().count(),
        1,
        "a name leads out of the folder"
    );
}

#[test]
fn a_cut_off_last_trial_is_left_out_and_said() {
    let bench = Bench::new(QUICK).run();
    let path = bench.directory.join("trials.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}{}", &text[..100])).unwrap();
    let shown = linerate(["show", bench.path(), "--trials"]).run().ok();
    assert!(
        shown
            .stderr
            .contains("the last line of trials.jsonl is cut off and left out"),
        "{}",
        shown.stderr
    );
    // Every verb says that trials are missing, and a program that reads the exit status of an export hears it.
    std::fs::write(&path, text.split_inclusive('\n').next().unwrap()).unwrap();
    let missing = format!(
        "summary.json counts {} trials, and trials.jsonl holds 1",
        bench.trials.len()
    );
    let folder = bench.path();
    for (line, status) in [("show", 0), ("report", 0), ("export junit", 1)] {
        let ended = linerate_line(&format!("{line} {folder}")).run().no_panic();
        assert_eq!(ended.status.code(), Some(status), "{line}: {ended:?}");
        assert!(ended.stderr.contains(&missing), "{line}: {}", ended.stderr);
    }
    let page = linerate_line(&format!("report {folder}")).run().ok().stdout;
    assert!(page.contains(&missing), "{page}");
    std::fs::write(&path, &text).unwrap();
    // Without a summary, as after kill -9, it is computed from the trials.
    std::fs::remove_file(bench.directory.join("summary.json")).unwrap();
    let shown = linerate(["show", bench.path()]).run().ok();
    assert!(
        shown.stderr.contains("did not come to its end"),
        "{}",
        shown.stderr
    );
    assert!(
        shown
            .stderr
            .contains(&format!("its {} trials", bench.trials.len())),
        "{}",
        shown.stderr
    );
    // A broken line in the middle is left out, too.
    std::fs::write(&path, format!("{}\n{text}", &text[..100])).unwrap();
    let shown = linerate(["show", bench.path()]).run().ok();
    let left_out = ["a line is left out", "trials.jsonl, line 1"];
    assert!(
        left_out.iter().all(|words| shown.stderr.contains(words)),
        "{}",
        shown.stderr
    );
}

#[test]
fn records_are_not_mixed_with_others_and_not_taken_from_the_future() {
    let bench = Bench::new(QUICK).run();
    let before = std::fs::read(bench.directory.join("trials.jsonl")).unwrap();
    let again = linerate_line(&format!("bench {QUICK} --out {}", bench.path())).run();
    again.fails(1, &[bench.path(), "is not empty", "name a new folder"]);
    assert_eq!(
        std::fs::read(bench.directory.join("trials.jsonl")).unwrap(),
        before
    );
    let path = bench.directory.join("campaign.json");
    let mut campaign = bench.document("campaign.json");
    campaign["version"] = 99.into();
    std::fs::write(&path, campaign.to_string()).unwrap();
    linerate(["show", bench.path()])
        .run()
        .fails(1, &["campaign.json", "99", "use a newer linerate"]);
}

#[test]
fn show_of_something_else_says_what_is_there() {
    let scratch = Scratch::new();
    let here = scratch.path().to_str().unwrap();
    linerate(["show", here])
        .run()
        .fails(1, &[here, "not a record", "no campaign.json"]);
    linerate(["show", &scratch.file("nope")])
        .run()
        .fails(1, &["cannot read the record", "nope: No such file"]);
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let bench = Bench::new("--simulate loss=1000 --family 4 --duration 20ms --budget 50s");
        let running = bench.program().start();
        wait_for("two trials", || {
            (crate::common::campaign::trials(&bench.directory()).len() >= 2).then_some(())
        });
        running.signal(signal);
        let ended = running.wait().status(130);
        assert!(ended.stdout.starts_with("SIMULATED"), "{}", ended.stdout);
        assert!(ended.took.as_secs() < 40, "it went on for {:?}", ended.took);
        let campaign = bench.read(ended);
        all_valid(&campaign.trials);
        assert_eq!(campaign.document("summary.json")["stopped"], "interrupted");
        let text = std::fs::read_to_string(campaign.directory.join("trials.jsonl")).unwrap();
        assert!(text.ends_with('\n') && text.lines().count() == campaign.trials.len());
        let shown = linerate(["show", campaign.path()]).run().ok().stdout;
        assert!(campaign.ended.stdout.starts_with(&shown));
    }
}

#[test]
fn a_bench_that_was_stopped_is_resumed() {
    let bench = Bench::new("--simulate loss=1000 --family 4 --duration 20ms --trials 200");
    let running = bench.program().start();
    wait_for("two trials", || {
        (crate::common::campaign::trials(&bench.directory()).len() >= 2).then_some(())
    });
    running.signal(libc::SIGINT);
    let ended = running.wait().status(130);
    assert!(
        ended.stderr.contains("to resume: linerate run --resume"),
        "{}",
        ended.stderr
    );
    let path = bench.directory();
    let resume = [
        "run",
        "--simulate",
        "loss=1000",
        "--resume",
        path.to_str().unwrap(),
    ];
    let campaign = bench.read(linerate(resume).run().ok());
    all_valid(&campaign.trials);
    assert_eq!(campaign.trials.len(), 400);
    assert_eq!(campaign.document("summary.json")["stopped"], "trials");
}

/// Several values of an option are levels of a factor; the rows of RFC 4814 and RFC 5180 follow from the frames.
#[test]
fn headers_and_endpoints_are_options() {
    let scratch = Scratch::new();
    let run = |line: &str| linerate_line(line).dir(scratch.path()).run();
    run("bench --simulate ok --trials 2 --duration 10ms --addresses random --ports random:7 --source-macs random --ipv6-share 0%,10%,90% --out mixed").no_panic();
    run("bench --simulate ok --trials 2 --duration 10ms --extension-headers none,chain --out headers")
        .no_panic();
    let slots = |folder: &str| {
        let text =
            std::fs::read_to_string(scratch.path().join(folder).join("campaign.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["slots"]
            .as_array()
            .unwrap()
            .clone()
    };
    let all = slots("mixed");
    for slot in &all {
        let flows = &slot["traffic"]["flows"];
        assert_eq!(
            [
                &flows["addresses"],
                &flows["ports"],
                &slot["traffic"]["source_macs"]
            ],
            ["random", "random:7", "random"]
        );
    }
    let names = |all: &[Value]| {
        all.iter()
            .map(|slot| slot["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(
        names(&all).contains(&"forwarding IPv4 with 90 % IPv6 84 B".into()),
        "{:?}",
        names(&all)
    );
    assert!(
        names(&slots("headers")).contains(&"forwarding IPv6 with chain 124 B".into()),
        "{:?}",
        names(&slots("headers"))
    );
    run("bench --simulate ok --family 4 --extension-headers chain")
        .fails(2, &["only in IPv6 UDP frames"]);
    let line = "rfc2544 --simulate rate=10kpps --quick --test throughput --size 64 --out tests";
    run(&format!(
        "{line} --addresses random --ports random --source-macs random"
    ))
    .ok();
    let rows = run("conformance tests --json").no_panic().stdout;
    let rows: Value = serde_json::from_str(&rows).unwrap();
    for id in ["4814-4.2", "4814-4.4", "4814-4.5"] {
        let row = rows["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["id"] == id)
            .unwrap();
        assert_eq!(row["status"], "met", "{row}");
    }
}

/// The plan of `--print-plan` is the one that is measured.
#[test]
fn the_plan_of_a_bench_is_a_plan() {
    let scratch = Scratch::new();
    let line = "bench --sizes 64,imix --variant nft-stateful --variant nft-stateful --states new --rate 10kpps --seed 7 --trials 6 --duration 20ms";
    let plan = linerate_line(&format!("{line} --print-plan"))
        .run()
        .ok()
        .stdout;
    std::fs::write(scratch.file("plan.toml"), plan).unwrap();
    linerate_line("plan check plan.toml")
        .dir(scratch.path())
        .run()
        .ok();
    linerate_line("run plan.toml --simulate ok --out run")
        .dir(scratch.path())
        .run()
        .no_panic();
    linerate_line(&format!("{line} --simulate ok --out bench"))
        .dir(scratch.path())
        .run()
        .no_panic();
    let plan = |folder: &str| {
        let text =
            std::fs::read_to_string(scratch.path().join(folder).join("campaign.json")).unwrap();
        let mut planned = serde_json::from_str::<Value>(&text).unwrap()["planned"].take();
        // `bench` has no file.
        planned["file"].take();
        planned
    };
    assert_eq!(plan("run"), plan("bench"));
}

#[test]
fn a_file_that_may_not_grow_is_named_and_earlier_trials_are_safe() {
    let bench = Bench::new("--simulate ok --family 4 --duration 10ms --trials 1000");
    let ended = bench.program().file_limit(48 << 10).run();
    let ended = ended.fails(
        1,
        &[
            "trials.jsonl",
            "File too large",
            "trials are safe",
            "ulimit -f",
        ],
    );
    let campaign = bench.read(ended);
    all_valid(&campaign.trials);
    assert!(campaign.trials.len() > 3, "{}", campaign.trials.len());
    let safe = format!("the first {} trials are safe", campaign.trials.len());
    assert!(
        campaign.ended.stderr.contains(&safe),
        "{safe}: {}",
        campaign.ended.stderr
    );
    assert_eq!(campaign.document("summary.json")["stopped"], "failed");
    let shown = linerate(["show", campaign.path()]).run().ok();
    assert!(!shown.stderr.contains("cut off"), "{}", shown.stderr);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bench = Bench::new(QUICK);
    let mut running = bench.program().start();
    running.close_stdout();
    let ended = running.wait().ok();
    let bench = bench.read(ended);
    assert_eq!(bench.trials.len(), 2);
    let show = format!("show {} --trials", bench.path());
    for line in [
        &show,
        &format!("{show} --json"),
        "bench --help",
        "help send",
        "lab status --json",
    ] {
        let mut running = linerate_line(line).start();
        running.close_stdout();
        running.wait().ok();
    }
}

#[test]
fn the_records_say_what_was_asked_of_which_machine() {
    let line = "--simulate ok --order zipf:1.2 --flows 5000 --seed 7 --trials 1 --duration 20ms";
    let bench = Bench::new(line).run();
    let asked = &bench.document("campaign.json")["asked"];
    assert_eq!((&asked["flows"], &asked["seed"]), (&5000.into(), &7.into()));
    assert_eq!(asked["order"], "zipf:1.2");
    assert_eq!(asked["command"][1], "bench");
    let host = bench.document("host.json");
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(host["kernel"].as_str().unwrap().contains(release.trim()));
    assert!(host["memory"].as_u64() > Some(1 << 20) && host["cpus"].as_u64() > Some(0));
}
