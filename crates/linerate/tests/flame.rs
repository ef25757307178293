//! `linerate flame` on real profiles.

use crate::common::{Scratch, linerate, linerate_line};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const PROFILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/profiles");

fn flame(args: &[&str]) -> crate::common::Program {
    linerate(["flame"].iter().chain(args).copied()).dir(PROFILES.as_ref())
}

#[test]
fn functions_and_their_changes_are_those_of_the_document() {
    let document = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/profiles.md"
    ))
    .unwrap();
    let shown: Vec<&str> = document
        .split("```")
        .filter(|part| part.starts_with("console\n$ linerate flame"))
        .collect();
    assert_eq!(shown.len(), 2);
    for block in shown {
        let (command, expected) = block
            .trim_start_matches("console\n$ linerate flame ")
            .split_once('\n')
            .unwrap();
        let ended = flame(&command.split(' ').collect::<Vec<_>>()).run().ok();
        assert_eq!(
            format!("{}{}", ended.stderr, ended.stdout),
            expected,
            "{command}"
        );
    }
}

#[test]
fn folded_stacks_are_those_that_were_published() {
    let published =
        fs::read_to_string(format!("{PROFILES}/bench.ipf-stateless.inet4.stack")).unwrap();
    let folded = flame(&["--folded", "bench.ipf-stateless.inet4.graph"])
        .run()
        .ok();
    assert_eq!((folded.stdout, folded.stderr.as_str()), (published, ""));
    let again = flame(&["--folded", "bench.ipf-stateless.inet4.stack"])
        .run()
        .ok()
        .stdout;
    assert_eq!(
        again,
        fs::read_to_string(format!("{PROFILES}/bench.ipf-stateless.inet4.stack")).unwrap()
    );
}

#[test]
fn pictures_go_to_files_and_pipes() {
    let scratch = Scratch::new();
    let svg = flame(&["bench.ipf-stateless.inet4.graph"])
        .run()
        .ok()
        .stdout;
    assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("lock_delay (449 samples, 31.91%)") && !svg.contains("http-equiv"));
    let file = scratch.file("change.svg");
    let graphs = ["bench.off_default.1.pmc.graph", "bench.on.1.pmc.graph"];
    let ended = flame(&[&graphs[..], &["--out", &file, "--title", "simple tx"]].concat())
        .run()
        .ok();
    assert_eq!(ended.stdout, "");
    let svg = fs::read_to_string(&file).unwrap();
    assert!(svg.contains("simple tx") && svg.contains("rxd_frag_to_sd ("));
}

#[test]
fn json_has_counts() {
    let functions = flame(&["--json", "bench.ipf-stateless.inet4.graph"])
        .run()
        .ok()
        .json();
    assert_eq!(functions[0]["name"], "lock_delay");
    assert_eq!(
        (
            functions[0]["own"].as_u64(),
            functions[0]["callers"][0][1].as_u64()
        ),
        (Some(1193), Some(1193))
    );
}

/// A simulated campaign with profiles of its two DUTs, which simulated DUTs have not.
fn profiled(scratch: &Scratch) -> PathBuf {
    let line =
        "bench --simulate ok --family 4 --variant nft-stateless --budget 2s --quiet --out both";
    linerate_line(line).dir(scratch.path()).run().ok();
    let records = scratch.path().join("both");
    let path = records.join("summary.json");
    let mut summary: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let of_cell = |cell: usize| {
        json!({"slot": cell - 1, "event": "cpu-clock", "samples": 40, "user": 0, "lost": 0, "received": null, "rates": [],
            "frames": 0, "counted": {}, "stacks": format!("profiles/{cell}.stack"), "functions": [], "stages": null,
            "events": null, "missing": []})
    };
    summary["profiles"] = json!([of_cell(2), of_cell(3)]);
    // A simulation has no time per frame.
    for row in summary["rows"].as_array_mut().unwrap() {
        row["ns_per_frame"] = json!(100.0);
    }
    fs::write(path, summary.to_string()).unwrap();
    fs::create_dir(records.join("profiles")).unwrap();
    for (cell, stacks) in [
        (2, "main;route 40\n"),
        (3, "main;route 30\nmain;filter 10\n"),
    ] {
        fs::write(records.join(format!("profiles/{cell}.stack")), stacks).unwrap();
    }
    records
}

#[test]
fn variants_of_a_campaign_are_named_as_compare_names_them() {
    let scratch = Scratch::new();
    profiled(&scratch);
    let flame = |line: &str| {
        linerate_line(&format!("flame {line}"))
            .dir(scratch.path())
            .run()
    };
    let changes = flame("--top --json both:forwarding both:nft-stateless").ok();
    assert_eq!(changes.json()[0]["name"], "filter");
    assert_eq!(flame("both:3 --folded").ok().stdout.lines().count(), 2);
    let cells = [
        "profiles/2.stack is of forwarding IPv4",
        "profiles/3.stack is of nft-stateless IPv4",
    ];
    flame("both --top").fails(2, &[&cells[..], &["both:3"]].concat());
    flame("both:1 --top").fails(2, &["both:1 has no profile", "--profile"]);
    flame("both:nft-stateles --top").fails(2, &["no such variant", "nft-stateless"]);
    flame("bth:forwarding --top").fails(2, &["no folder bth"]);
}

/// A program reads one table with one header.
#[test]
fn the_trials_and_each_table_are_printed_alone() {
    let scratch = Scratch::new();
    profiled(&scratch);
    let show = |line: &str| {
        linerate_line(&format!("show both {line}"))
            .dir(scratch.path())
            .run()
    };
    let trials = show("--trials --format csv").ok().stdout;
    let columns = |line: &str| line.split(',').count();
    let heads = trials.lines().next().unwrap();
    assert!(heads.starts_with("section,trial and slot,"), "{trials}");
    assert!(
        trials.lines().all(|line| columns(line) == columns(heads)),
        "{trials}"
    );
    let cells = show("--table cells --format markdown").ok().stdout;
    assert!(
        cells.starts_with("## SIMULATED: cells\n\n| cell | rate "),
        "{cells}"
    );
    show("--table nothing").fails(2, &["there is no table 'nothing'", "'Trials'"]);
    show("--table cells --json").fails(2, &["--table"]);
    let page = show("--full --format csv").ok().stdout;
    assert!(!page.contains("DIRECTORY"), "{page}");
}

#[test]
fn the_command_of_a_page_works_where_the_page_was_printed() {
    let scratch = Scratch::new();
    profiled(&scratch);
    let page = linerate_line("show both --full")
        .dir(scratch.path())
        .run()
        .ok();
    let commands: Vec<&str> = page
        .stdout
        .split('`')
        .filter(|part| part.starts_with("linerate flame"))
        .collect();
    assert_eq!(
        commands,
        ["linerate flame both:2 both:3 > picture.svg"],
        "{}",
        page.stdout
    );
    let drawn = linerate_line("flame both:2 both:3")
        .dir(scratch.path())
        .run()
        .ok();
    assert!(drawn.stdout.contains("filter ("), "{}", drawn.stdout);
    // The title names cells, not files.
    let title = "forwarding IPv4 64 B (both) and nft-stateless IPv4 64 B (both)";
    assert!(drawn.stdout.contains(title), "{}", drawn.stdout);
}

#[test]
fn other_files_are_refused_and_a_reader_may_go_away() {
    flame(&["LICENSE"])
        .run()
        .fails(1, &["LICENSE", "no stacks", "pmcstat -G"]);
    flame(&["no-such.graph"])
        .run()
        .fails(1, &["cannot read no-such.graph"]);
    flame(&["--folded", "--top", "3", "LICENSE"])
        .run()
        .fails(2, &["--folded"]);
    let line = format!(
        "{} flame --folded bench.ipf-stateless.inet4.graph | head -n 1; echo ${{PIPESTATUS[0]}}",
        crate::common::LINERATE
    );
    let output = Command::new("bash")
        .args(["-c", &line])
        .current_dir(PROFILES)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.ends_with("\n0\n") && output.stderr.is_empty(),
        "{text}{output:?}"
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn the_functions_of_a_busy_kernel_are_sampled() {
    let copy = ["if=/dev/zero", "of=/dev/null", "bs=64k", "status=none"];
    let mut load = Command::new("dd").args(copy).spawn().unwrap();
    let scratch = Scratch::new();
    let svg = scratch.file("busy.svg");
    let ended = linerate([
        "profile",
        "--duration",
        "3s",
        "--top",
        "1000",
        "--json",
        "--out",
        &svg,
    ])
    .run();
    load.kill().unwrap();
    load.wait().unwrap();
    let functions = ended.ok().json();
    let of = |name: &str| {
        functions
            .as_array()
            .unwrap()
            .iter()
            .find(|f| f["name"] == name)
            .cloned()
    };
    let read = of("vfs_read").unwrap_or_else(|| panic!("{functions:#}"));
    assert!(read["with_called"].as_u64() > Some(0), "{read}");
    assert!(fs::read_to_string(&svg).unwrap().contains("vfs_read ("));
}

#[test]
fn cpus_that_are_not_there_are_refused() {
    linerate(["profile", "--cpus", "4095"])
        .run()
        .fails(2, &["CPU 4095 is not online"]);
}

/// Tables of lockstat have stacks; distributions of DTrace have none, and `profile --read` prints them both.
#[test]
fn tools_of_other_systems_are_read() {
    let scratch = Scratch::new();
    let lockstat = "Spin lock spin: 3 events in 2.000 seconds (1 events/sec)\n\nCount indv cuml rcnt     nsec Lock   Caller\n    \
                    3 100% 100% 0.00 2000 igb0 tx   igb_start+0x10\n";
    fs::write(scratch.file("locks.txt"), lockstat).unwrap();
    let quantize = "  ether_input to ether_output\n  value  ------------- Distribution ------------- count\n 1024 |@@@ 3\n 2048 | 0\n";
    fs::write(scratch.file("times.txt"), quantize).unwrap();
    let run = |args: &[&str]| linerate(args.iter().copied()).dir(scratch.path()).run();
    assert_eq!(
        run(&["flame", "--folded", "locks.txt"]).ok().stdout,
        "Spin lock spin;igb_start;igb0 tx 6000\n"
    );
    let locks = run(&["profile", "--read", "locks.txt"]).ok().stdout;
    assert!(
        locks.contains("3 events in 2.00 s took 6.00 us together.\n") && locks.contains("igb0 tx"),
        "{locks}"
    );
    let times = run(&["profile", "--read", "times.txt", "--json"])
        .ok()
        .json();
    assert_eq!(
        (&times[0]["name"], times[0]["ranges"][0]["count"].as_u64()),
        (&"ether_input to ether_output".into(), Some(3))
    );
    run(&["flame", "times.txt"]).fails(1, &["times.txt", "no stacks"]);
    fs::write(scratch.file("other.txt"), "nothing of the kind\n").unwrap();
    run(&["profile", "--read", "other.txt"]).fails(1, &["other.txt", "quantize", "lockstat"]);
    let script = run(&["profile", "--dtrace-script"]).ok().stdout;
    assert!(
        script.starts_with("#!/usr/sbin/dtrace -Zs\n") && script.matches("quantize(").count() == 4,
        "{script}"
    );
}
