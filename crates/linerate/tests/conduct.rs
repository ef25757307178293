//! `linerate conduct`: Conductor's tests shown, refused with all their faults, and carried out.

mod hosts;

use crate::common::{LINERATE, Namespace, Program, Scratch, linerate, wait_for};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const CORPUS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/corpus/netperf"
);
const ADDRESSES: &str =
    "[Master]\nplayer: 127.0.0.1\nconductor: 127.0.0.1\ncmdport: 6970\nresultsport: 6971\n";

/// A test with a file for each of its players `a`, `b`, ...
fn test(trials: u32, players: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    let mut main = format!("[Test]\ntrials: {trials}\n[Clients]\n");
    for (name, phases) in ('a'..).zip(players) {
        main += &format!("{name}: {name}.cfg \n");
        fs::write(
            scratch.file(&format!("{name}.cfg")),
            format!("{ADDRESSES}{phases}"),
        )
        .unwrap();
    }
    fs::write(scratch.file("conductor.cfg"), main).unwrap();
    scratch
}

fn conduct(scratch: &Scratch, more: &[&str]) -> Program {
    let args = ["conduct", "conductor.cfg"];
    linerate(args.iter().chain(more)).dir(scratch.path())
}

/// The trials in a file of records.
fn records(file: &str) -> Vec<Value> {
    fs::read_to_string(file)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn steps(trial: &Value, worker: usize) -> Vec<(&str, &str, &Value)> {
    let steps = trial["workers"][worker]["steps"].as_array().unwrap();
    steps
        .iter()
        .map(|s| {
            (
                s["phase"].as_str().unwrap(),
                s["outcome"].as_str().unwrap(),
                &s["exit_status"],
            )
        })
        .collect()
}

#[test]
fn a_dry_run_says_what_would_be_done() {
    let scratch = test(
        3,
        &[
            "[Startup]\nstep1: kldload x \n[Run]\nspawn1: vmstat 1 > v\nstep2: timeout9:ping h\n[Collect]\n[Reset]\nsetp1: true\n",
        ],
    );
    let shown = conduct(&scratch, &["--dry-run", "--format", "json"])
        .run()
        .ok()
        .json();
    let step = |command: &str, mode: &str, limit: Option<u32>| json!({"command": command, "mode": mode, "limit_s": limit});
    let expected = json!({
        "name": "conductor",
        "trials": 3,
        "workers": [{
            "name": "a", "file": "a.cfg", "host": "127.0.0.1", "conductor": "127.0.0.1", "cmdport": 6970, "resultsport": 6971,
            "phases": {
                "startup": [step("kldload x", "normal", Some(30))],
                "run": [step("vmstat 1 > v", "spawn", None), step("ping h", "timeout", Some(9))],
                "collect": [],
                "reset": [step("true", "normal", Some(30))],
            },
        }],
    });
    assert_eq!(shown, expected);

    let one = conduct(
        &scratch,
        &[
            "--dry-run",
            "-f",
            "json",
            "-t",
            "1",
            "-p",
            "run",
            "reset",
            "--limit",
            "60",
        ],
    )
    .run()
    .ok()
    .json();
    let phases: Vec<&str> = one["workers"][0]["phases"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!((&one["trials"], phases), (&json!(1), vec!["reset", "run"]));
    assert_eq!(one["workers"][0]["phases"]["reset"][0]["limit_s"], 60);
    let text = conduct(&scratch, &["--dry-run"]).run().ok().stdout;
    for line in [
        "a on 127.0.0.1 (a.cfg)",
        "  startup          30 s  kldload x",
        "timeout 9 s  ping h",
        "spawn  vmstat 1 > v",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn all_faults_are_told_at_once_and_nothing_is_run() {
    let scratch = test(
        1,
        &["[Startup]\nstep1: touch ran\nstep1: b\n[Run]\n[Collect]\n"],
    );
    let main = "[Test]\ntrials: 0\n[Clients]\na: a.cfg\nb: nowhere.cfg\n";
    fs::write(scratch.file("conductor.cfg"), main).unwrap();
    let says = [
        "conductor.cfg:2:9: '0' is not a number of trials",
        "conductor.cfg:5:4: the player's file nowhere.cfg cannot be read: No such file or directory",
        "a.cfg:8:1: 'step1' is there twice in [Startup], first on line 7",
        "a.cfg:11:1: there is no section [Reset]",
    ];
    for more in [&["--dry-run"][..], &["--local"], &[]] {
        let told = conduct(&scratch, more).run().fails(2, &says);
        assert_eq!(told.stdout, "");
    }
    assert!(
        !scratch.path().join("ran").exists() && !scratch.path().join("linerate-results").exists()
    );
    linerate(["conduct", "no-such.cfg", "--dry-run"])
        .run()
        .fails(1, &["cannot read the test no-such.cfg"]);
}

#[test]
fn arguments_that_fit_no_worker_are_told_at_once() {
    let scratch = test(1, &["[Startup]\n[Run]\n[Collect]\n[Reset]\n"; 2]);
    for name in ["a", "b"] {
        let player = fs::read_to_string(scratch.file(&format!("{name}.cfg"))).unwrap();
        fs::write(
            scratch.file(&format!("{name}.cfg")),
            player.replace("127.0.0.1", "192.0.2.1"),
        )
        .unwrap();
    }
    conduct(&scratch, &["--local"]).run().fails(
        2,
        &[
            "a (192.0.2.1) cannot run here",
            "b (192.0.2.1) cannot run here",
        ],
    );
    conduct(&scratch, &["--map", "c=x", "--map", "192.0.2.7=y"])
        .run()
        .fails(2, &["--map c=x", "--map 192.0.2.7=y"]);
    for wrong in ["a", "=x", "a="] {
        conduct(&scratch, &["--map", wrong])
            .run()
            .fails(2, &["write NAME=SSH-DESTINATION"]);
    }
    conduct(&scratch, &["--workers", "zz", "--dry-run"])
        .run()
        .fails(2, &["has no worker 'zz'", "it has a and b"]);
}

#[test]
fn trials_are_carried_out_and_recorded() {
    let a = "[Startup]\nstep1: echo ready > state; echo out; echo err >&2\n[Run]\nspawn1: sleep 60\nstep1: no-such-command\n\
             timeout3: echo early; sleep 60\n[Collect]\nstep1: cat state\n[Reset]\nstep1: rm state\nstep2: kill -9 $$\n";
    let b = "[Startup]\n[Run]\nstep1: while ! test -e state; do :; done; echo $((2 + 2))\n[Collect]\n[Reset]\n";
    let scratch = test(2, &[a, b]);
    let ended = conduct(&scratch, &["--local", "--output", "out.jsonl"])
        .run()
        .status(1);
    for line in [
        "trial 1 of 2",
        "2 steps failed",
        "no such command",
        "at its limit",
        "stopped",
        "137, signal 9?",
        "out.jsonl",
    ] {
        assert!(ended.stdout.contains(line), "{line}\n{}", ended.stdout);
    }
    let trials = records(&scratch.file("out.jsonl"));
    assert_eq!(trials.len(), 2);
    for (trial, number) in trials.iter().zip(1..) {
        assert_eq!(
            (&trial["trial"], &trial["trials"], &trial["interrupted"]),
            (&json!(number), &json!(2), &json!(false))
        );
        let expected = [
            ("startup", "ended", &json!(0)),
            ("run", "stopped", &Value::Null),
            ("run", "ended", &json!(127)),
            ("run", "timed-out", &Value::Null),
            ("collect", "ended", &json!(0)),
            ("reset", "ended", &json!(0)),
            ("reset", "ended", &json!(137)),
        ];
        assert_eq!(steps(trial, 0), expected);
        let worker = &trial["workers"][0];
        let outputs: Vec<&str> = worker["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["output"].as_str().unwrap())
            .collect();
        assert_eq!((outputs[0], outputs[4]), ("out\nerr\n", "ready\n"));
        assert!(outputs[3].starts_with("early\n"), "{}", outputs[3]);
        assert!(outputs[2].contains("not found"), "{}", outputs[2]);
        assert_eq!(
            (&worker["failed_steps"], &worker["steps"][6]["signal"]),
            (&json!(2), &json!(9))
        );
        let took = worker["steps"][3]["took_s"].as_f64().unwrap();
        assert!(took >= 3.0, "{took}");
        assert_eq!(
            (&worker["reset"], &trial["workers"][1]["reset"]),
            (&json!("with-failures"), &json!("all"))
        );
        assert_eq!(trial["workers"][1]["steps"][0]["output"], "4\n");
    }
    // Records are not written over.
    conduct(&scratch, &["--local", "--output", "out.jsonl"])
        .run()
        .fails(1, &["out.jsonl", "exists"]);
}

#[test]
fn exit_statuses_that_look_like_signals_are_kept() {
    let scratch = test(
        1,
        &["[Startup]\n[Run]\nstep1: exit 130\nstep2: exit 160\n[Collect]\n[Reset]\n"],
    );
    let says = [
        "`exit 130` ended with status 130, which may mean signal 2",
        "`exit 160` ended with status 160;",
    ];
    conduct(&scratch, &["--local", "-o", "out.jsonl"])
        .run()
        .fails(1, &says);
    let trial = records(&scratch.file("out.jsonl")).remove(0);
    let found: Vec<_> = trial["workers"][0]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (&s["exit_status"], &s["signal"]))
        .collect();
    assert_eq!(
        found,
        [(&json!(130), &json!(2)), (&json!(160), &Value::Null)]
    );
}

#[test]
fn what_ends_well_is_status_0_in_the_format_that_the_test_asks_for() {
    let scratch = test(
        2,
        &["[Startup]\n[Run]\nstep1: echo '\"'\n[Collect]\n[Reset]\n"],
    );
    let main = fs::read_to_string(scratch.file("conductor.cfg")).unwrap();
    fs::write(
        scratch.file("conductor.cfg"),
        main.replace("[Clients]", "format: json\n[Clients]"),
    )
    .unwrap();
    let ended = conduct(&scratch, &["--local"]).run().ok();
    let files: Vec<PathBuf> = fs::read_dir(scratch.path().join("linerate-results"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1);
    assert_eq!(ended.stdout, fs::read_to_string(&files[0]).unwrap());
    assert_eq!(
        records(files[0].to_str().unwrap())[1]["workers"][0]["steps"][0]["output"],
        "\"\n"
    );
    // A phase that is left out is not run, and neither is a worker.
    let text = conduct(
        &scratch,
        &[
            "--local", "--phases", "reset", "--format", "text", "-t", "1",
        ],
    )
    .run()
    .ok()
    .stdout;
    assert!(
        !text.contains("echo") && text.contains("no step failed"),
        "{text}"
    );
}

#[test]
fn an_interrupt_ends_what_runs_resets_and_records() {
    let scratch = test(
        5,
        &[
            "[Startup]\nstep1: echo $$ > begun; exec sleep 60\n[Run]\nstep1: touch ran\n[Collect]\n[Reset]\nstep1: touch reset\n",
        ],
    );
    let running = conduct(&scratch, &["--local", "-o", "out.jsonl"]).start();
    let begun = scratch.path().join("begun");
    let sleeper: i32 = wait_for("the first step", || {
        fs::read_to_string(&begun).ok()?.trim().parse().ok()
    });
    running.signal(libc::SIGINT);
    running.wait().status(130);
    assert!(scratch.path().join("reset").exists() && !scratch.path().join("ran").exists());
    assert!(!Path::new(&format!("/proc/{sleeper}")).exists());
    let trials = records(&scratch.file("out.jsonl"));
    assert_eq!((trials.len(), &trials[0]["interrupted"]), (1, &json!(true)));
    assert_eq!(
        steps(&trials[0], 0),
        [
            ("startup", "interrupted", &Value::Null),
            ("reset", "ended", &json!(0))
        ]
    );
}

#[test]
fn a_second_interrupt_says_which_hosts_are_left_as_they_are() {
    let slow = "[Startup]\nstep1: touch dirty; exec sleep 60\n[Run]\n[Collect]\n[Reset]\nstep1: touch resetting; exec sleep 60\n";
    // The failure of this host is told, so that it can be waited for.
    let quick = "[Startup]\nstep1: true\n[Run]\n[Collect]\n[Reset]\nstep1: true\nstep2: false\n";
    let scratch = test(
        1,
        &[
            slow,
            quick,
            "[Startup]\nstep1: true\n[Run]\n[Collect]\n[Reset]\n",
        ],
    );
    let line = format!("exec {LINERATE} conduct conductor.cfg --local -o out.jsonl 2>told");
    let conduct = Program::new("sh").args(["-c", &line]).dir(scratch.path());
    let running = conduct.start();
    let made = |name: &str| wait_for(name, || scratch.path().join(name).exists().then_some(()));
    let told = || fs::read_to_string(scratch.file("told")).unwrap();
    made("dirty");
    running.signal(libc::SIGINT);
    made("resetting");
    let failed = "linerate: b, reset of trial 1, step 2: `false` ";
    wait_for("the quick host's last step", || {
        told().contains(failed).then_some(())
    });
    running.signal(libc::SIGINT);
    running.wait().status(130);
    let told = told();
    let lines: Vec<&str> = told.lines().filter(|l| !l.starts_with(failed)).collect();
    let expected = [
        "linerate: interrupted: ending the load and resetting the hosts; a second Ctrl-C leaves them as they are",
        "linerate: ended at once; not reset, and left as they are: a",
    ];
    assert_eq!(lines, expected, "{told}");
}

/// Texts of a file must not command the terminal.
#[test]
fn names_of_workers_are_shown_without_control_characters() {
    let scratch = test(1, &["[Startup]\nstep1: false\n[Run]\n[Collect]\n[Reset]\n"]);
    let main = "[Test]\n[Clients]\na\u{1b}[2J: a.cfg\n";
    fs::write(scratch.file("conductor.cfg"), main).unwrap();
    let ended = conduct(&scratch, &["--local"])
        .run()
        .fails(1, &["linerate: a?[2j, set-up of trial 1, step 1"]);
    assert!(
        !ended.stdout.contains('\u{1b}') && !ended.stderr.contains('\u{1b}'),
        "{}",
        ended.stderr
    );
    let player = fs::read_to_string(scratch.file("a.cfg"))
        .unwrap()
        .replace("127.0.0.1", "192.0.2.1");
    fs::write(scratch.file("a.cfg"), player).unwrap();
    let refused = conduct(&scratch, &["--local"])
        .run()
        .fails(2, &["a?[2j (192.0.2.1) cannot run here"]);
    assert!(!refused.stderr.contains('\u{1b}'), "{}", refused.stderr);
}

#[test]
fn a_full_disk_ends_the_test_after_reset_and_keeps_whole_trials() {
    let steps = "[Startup]\n[Run]\nstep1: head -c 3000 /dev/zero | tr '\\0' x\n[Collect]\n[Reset]\nstep1: echo >> resets\n";
    let scratch = test(5, &[steps]);
    let ended = conduct(&scratch, &["--local", "-o", "out.jsonl"])
        .file_limit(6000)
        .run();
    ended.fails(1, &["cannot write trial 2 to out.jsonl"]);
    assert_eq!(records(&scratch.file("out.jsonl")).len(), 1);
    assert_eq!(
        fs::read_to_string(scratch.file("resets"))
            .unwrap()
            .lines()
            .count(),
        2
    );
}

#[test]
fn nothing_is_left_when_linerate_is_killed() {
    let scratch = test(
        1,
        &[
            "[Startup]\nspawn1: echo $$ > spawned; exec tail -f /dev/null\nstep1: echo $$ > begun; sleep 60\n[Run]\n[Collect]\n[Reset]\n",
        ],
    );
    let running = conduct(&scratch, &["--local"]).start();
    let pid = |name: &str| {
        let file = scratch.path().join(name);
        wait_for(name, || {
            fs::read_to_string(&file).ok()?.trim().parse::<u32>().ok()
        })
    };
    let pids = [pid("spawned"), pid("begun")];
    running.signal(libc::SIGKILL);
    for pid in pids {
        wait_for("the end of a step", || {
            (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
        });
    }
}

#[test]
#[ignore = "needs root"]
fn workers_run_in_the_namespaces_of_their_names() {
    let namespace = Namespace::new();
    let scratch = test(
        1,
        &["[Startup]\n[Run]\nstep1: ip -o link\n[Collect]\n[Reset]\n"],
    );
    fs::write(
        scratch.file("conductor.cfg"),
        format!("[Test]\n[Clients]\n{}: a.cfg\n", namespace.name),
    )
    .unwrap();
    conduct(&scratch, &["--local", "-o", "out.jsonl"])
        .run()
        .ok();
    let worker = records(&scratch.file("out.jsonl"))[0]["workers"][0].clone();
    assert_eq!(
        worker["at"],
        format!("network namespace {}", namespace.name)
    );
    assert!(
        worker["steps"][0]["output"]
            .as_str()
            .unwrap()
            .contains("t0@t1"),
        "{worker}"
    );
}

/// Within 200 MB of address space, most of it for the program itself and its threads' stacks.
#[test]
fn small_hostile_files_take_no_memory() {
    let scratch = test(1, &[]);
    let phases = "[Startup]\n[Collect]\n[Reset]\n[Run]\n";
    let steps: String = (0..30_000)
        .map(|n| format!("s{n}: {}\n", "x".repeat(25)))
        .collect();
    let doubled: String = (1..10)
        .map(|n| format!("v{n}: {}\n", format!("%(v{})s", n - 1).repeat(10)))
        .collect();
    let doubled = format!("v0: {}\n{doubled}", "x".repeat(100));
    for (players, body) in [
        (200, steps),
        (200, doubled),
        (8, "x\n".repeat(500_000)),
        (200, "s: %(s)s\n".to_string()),
        (8, "step1: a\n  b\n".repeat(70_000)),
    ] {
        let players: String = (0..players).map(|n| format!("w{n}: a.cfg\n")).collect();
        fs::write(
            scratch.file("conductor.cfg"),
            format!("[Test]\n[Clients]\n{players}"),
        )
        .unwrap();
        fs::write(scratch.file("a.cfg"), format!("{ADDRESSES}{phases}{body}")).unwrap();
        let script = format!("ulimit -v 200000; exec {LINERATE} conduct conductor.cfg --dry-run");
        let ended = Program::new("sh")
            .args(["-c", &script])
            .dir(scratch.path())
            .within(30)
            .run();
        assert!(ended.stderr.len() < 1 << 20);
        ended.status(2);
    }
}

/// Main files of all published tests.
fn published() -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::from(CORPUS)]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false if path.ends_with("conductor.cfg") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn all_published_tests_are_shown() {
    let tests = published();
    assert_eq!(tests.len(), 25);
    for test in tests {
        let test = test.to_str().unwrap();
        let shown = linerate(["conduct", test, "--dry-run", "--format", "json"])
            .run()
            .ok()
            .json();
        for worker in shown["workers"].as_array().unwrap() {
            let phases: Vec<&String> = worker["phases"].as_object().unwrap().keys().collect();
            assert_eq!(phases, ["collect", "reset", "run", "startup"], "{test}");
        }
        let text = linerate(["conduct", test, "--dry-run"]).run().ok().stdout;
        assert!(text.lines().count() > 10, "{text}");
    }
}
