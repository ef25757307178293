//! Published tests carried out over the real sshd, with stand-ins for FreeBSD's commands.

use super::{CORPUS, records, test};
use crate::common::{LINERATE, Program, Scratch, wait_for};
use crate::sshd::SshLab;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Commands of the published tests that differ from FreeBSD's, or do not exist on Linux. `sleep` stays real: the shells that
/// supervise steps need it.
const COMMANDS: [&str; 12] = [
    "cpuset",
    "ifconfig",
    "iperf3",
    "kldload",
    "kldunload",
    "netstat",
    "ping",
    "pmcstat",
    "route",
    "setkey",
    "sysctl",
    "pfctl",
];

/// A published test on hosts with the names of its workers: the commands that each host got, and the first trial.
struct Conducted {
    trial: Value,
    stdout: String,
    status: Option<i32>,
    calls: Vec<Vec<String>>,
}

/// Stand-ins write down how they were called. `iperf3 -s` serves until it is ended.
fn stand_in(file: &Path, name: &str) -> String {
    let last = match name {
        "iperf3" => {
            "case \"$*\" in *-s*) echo listening; exec tail -f /dev/null ;; esac; echo sent"
        }
        "kldload" => "[ \"$1\" != if_cxgbe ] || { echo 'module already loaded' >&2; exit 1; }",
        "cpuset" => "shift 2; exec \"$@\"",
        _ => ":",
    };
    format!(
        "#!/bin/sh\necho \"{name} $*\" >> {}\n{last}\n",
        file.display()
    )
}

/// The program on a test in a folder, in the network of a lab, where hosts are called as workers.
fn conduct(lab: &SshLab, folder: &Path) -> Program {
    let prefix = lab.prefix();
    let config = lab.config().display().to_string();
    let mut args: Vec<String> = prefix[1..].to_vec();
    let fixed = [
        LINERATE,
        "conduct",
        "conductor.cfg",
        "--trials",
        "1",
        "--ssh-config",
        &config,
        "-o",
        "out",
    ];
    args.extend(fixed.map(String::from));
    args.extend(
        lab.hosts
            .iter()
            .flat_map(|host| ["--map".to_string(), format!("{0}={0}", host.name)]),
    );
    Program::new(&prefix[0]).args(args).dir(folder)
}

fn conducted(name: &str, workers: &[&str], change: impl Fn(String) -> String) -> Conducted {
    let lab = SshLab::new(workers);
    let scratch = Scratch::new();
    for entry in fs::read_dir(format!("{CORPUS}/{name}"))
        .unwrap()
        .map(Result::unwrap)
    {
        let text = fs::read_to_string(entry.path()).unwrap();
        fs::write(scratch.path().join(entry.file_name()), change(text)).unwrap();
    }
    let files: Vec<_> = workers
        .iter()
        .map(|worker| lab.folder().join(format!("{worker}.calls")))
        .collect();
    for (host, file) in lab.hosts.iter().zip(&files) {
        COMMANDS
            .iter()
            .for_each(|name| host.stand_in(name, &stand_in(file, name)));
    }
    let ended = conduct(&lab, scratch.path()).run().no_panic();
    let out = scratch.file("out");
    assert!(
        Path::new(&out).exists(),
        "{}\n{}",
        ended.stdout,
        ended.stderr
    );
    let lines = |file| {
        fs::read_to_string(file)
            .unwrap_or_default()
            .lines()
            .map(String::from)
            .collect()
    };
    let left: Vec<_> = lab
        .hosts
        .iter()
        .flat_map(|host| host.processes())
        .filter(|(_, p)| p.contains("tail -f"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    Conducted {
        trial: records(&out).remove(0),
        stdout: ended.stdout,
        status: ended.status.code(),
        calls: files.iter().map(lines).collect(),
    }
}

/// A step of a worker by its phase and key.
fn step<'t>(trial: &'t Value, worker: usize, phase: &str, key: &str) -> &'t Value {
    let steps = trial["workers"][worker]["steps"].as_array().unwrap();
    steps
        .iter()
        .find(|s| s["phase"] == phase && s["key"] == key)
        .unwrap_or_else(|| panic!("{phase} {key}: {steps:#?}"))
}

/// Unchanged, except for shorter waits for a server to end.
fn sooner(text: String) -> String {
    text.replace("timeout30:", "timeout2:")
        .replace("sleep 5", "sleep 0.5")
}

#[test]
#[cfg_attr(corpus, ignore = "needs root and openssh-server")]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn published_two_hosts() {
    let Conducted {
        trial,
        stdout,
        status,
        calls,
    } = conducted(
        "VANILLA/Tests/iperf-twohost",
        &["client1", "client2"],
        sooner,
    );
    // The module was there already: that is no reason to stop, and one for exit status 1.
    assert_eq!(status, Some(1), "{stdout}");
    let load = step(&trial, 0, "startup", "step1");
    assert_eq!(
        (&load["exit_status"], &load["output"], &load["failed"]),
        (&json!(1), &json!("module already loaded\n"), &json!(true))
    );
    let source = [
        "kldload if_cxgbe",
        "ifconfig cxl1 172.16.0.1/24",
        "ping -c 3 172.16.0.2",
        "iperf3 -c 172.16.0.2",
        "ifconfig cxl1 down",
        "route delete 172.16.1.0",
        "kldunload if_cxgbe",
    ];
    assert_eq!(calls[0], source);
    assert!(calls[1].contains(&"iperf3 -s".to_string()), "{calls:?}");
    let server = step(&trial, 1, "run", "timeout2");
    assert_eq!(
        (&server["outcome"], &server["failed"]),
        (&json!("timed-out"), &json!(false))
    );
    // The shell may say that it was terminated.
    assert!(
        server["output"]
            .as_str()
            .unwrap()
            .starts_with("listening\n"),
        "{server}"
    );
    assert!(server["took_s"].as_f64().unwrap() >= 2.0);
    assert_eq!(step(&trial, 0, "run", "step2")["output"], "sent\n");
    assert_eq!(
        step(&trial, 1, "reset", "step1")["output"],
        "system reset: goodbye\n"
    );
    assert!(trial["skew_ms"].as_f64().unwrap() < 1000.0);
    assert_eq!(
        (
            &trial["workers"][0]["failed_steps"],
            &trial["workers"][1]["at"]
        ),
        (&json!(1), &json!("client2"))
    );
}

#[test]
#[cfg_attr(corpus, ignore = "needs root and openssh-server")]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn a_published_command_that_is_nowhere_fails_alone() {
    // The test has `kldunlaod`.
    let name = "IPSEC/Tests/iperf-aes-gcm-aesni-nopmc";
    let Conducted {
        trial,
        stdout,
        status,
        calls,
    } = conducted(name, &["client1", "client2"], sooner);
    assert_eq!(status, Some(1), "{stdout}");
    let all: Vec<&Value> = trial["workers"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|w| w["steps"].as_array().unwrap())
        .collect();
    let typo: Vec<&&Value> = all
        .iter()
        .filter(|s| s["command"].as_str().unwrap().starts_with("kldunlaod"))
        .collect();
    assert!(!typo.is_empty());
    for step in typo {
        assert_eq!(
            (&step["exit_status"], &step["phase"], &step["failed"]),
            (&json!(127), &json!("reset"), &json!(true))
        );
        assert!(step["output"].as_str().unwrap().contains("not found"));
    }
    assert!(
        trial["workers"]
            .as_array()
            .unwrap()
            .iter()
            .all(|w| w["reset"] == "with-failures" || w["reset"] == "all")
    );
    assert!(
        calls
            .iter()
            .all(|calls| calls.iter().any(|call| call.starts_with("setkey"))),
        "{calls:?}"
    );
}

#[test]
#[cfg_attr(corpus, ignore = "needs root and openssh-server")]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn published_four_hosts() {
    let shown = |text: String| sooner(text).replace("kldload if_cxgbe", "kldload if_other");
    let workers = ["client1", "client2", "client3", "client4"];
    let Conducted {
        trial,
        stdout,
        status,
        calls,
    } = conducted(
        "IPSEC/Tests/iperf-4host-forw-noipsec-nopmc",
        &workers,
        shown,
    );
    assert_eq!(status, Some(0), "{stdout}\n{trial:#}");
    assert_eq!(trial["workers"].as_array().unwrap().len(), 4);
    for (worker, calls) in trial["workers"].as_array().unwrap().iter().zip(&calls) {
        assert_eq!(
            (&worker["reset"], &worker["lost"]),
            (&json!("all"), &json!(false))
        );
        assert!(!calls.is_empty());
    }
}

/// A test for `client1` and `client2`, whose first step of the run goes on until it is ended.
fn endless() -> Scratch {
    let phases = "[Startup]\n[Run]\nstep1: touch running; exec tail -f /dev/null\n[Collect]\n[Reset]\nstep1: touch reset\n";
    let scratch = test(1, &[phases; 2]);
    let main = fs::read_to_string(scratch.file("conductor.cfg")).unwrap();
    fs::write(
        scratch.file("conductor.cfg"),
        main.replace("a:", "client1:").replace("b:", "client2:"),
    )
    .unwrap();
    scratch
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_host_that_is_lost_ends_the_run_for_all_and_the_others_are_reset() {
    let mut lab = SshLab::new(&["client1", "client2"]);
    let scratch = endless();
    let running = conduct(&lab, scratch.path()).start();
    for host in &lab.hosts {
        wait_for("the run", || (host.running("tail -f") > 0).then_some(()));
    }
    lab.host("client2").kill_sshd();
    let ended = running.wait().fails(
        1,
        &[
            "client2: the connection was lost",
            "run of trial 1, step 1: touch running",
        ],
    );
    let trial = records(&scratch.file("out")).remove(0);
    let of = |worker: usize, what: &str| trial["workers"][worker][what].clone();
    assert_eq!(
        (of(1, "lost"), of(1, "reset")),
        (json!(true), json!("no")),
        "{}",
        ended.stderr
    );
    assert_eq!(
        (of(0, "lost"), of(0, "reset"), of(0, "cut_short")),
        (json!(false), json!("all"), json!(true))
    );
    assert_eq!(step(&trial, 0, "run", "step1")["outcome"], "stopped");
    for host in &lab.hosts {
        wait_for("the end of the load", || {
            (host.running("tail -f") == 0).then_some(())
        });
    }
}

#[test]
#[ignore = "needs root and openssh-server"]
fn hosts_that_cannot_be_reached_are_all_told_before_anything_is_run() {
    let mut lab = SshLab::new(&["client1", "client2"]);
    lab.host("client1").change_key();
    lab.host("client2").kill_sshd();
    let scratch = endless();
    let says = [
        "client1: THE KEY OF THE HOST HAS CHANGED",
        "client2: the host refuses connections",
    ];
    conduct(&lab, scratch.path()).run().fails(1, &says);
    assert!(!scratch.path().join("out").exists());
}
