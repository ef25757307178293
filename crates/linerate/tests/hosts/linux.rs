//! Three Linux hosts, two of them with linerate.

use super::lab::{PLAN, RealLab, has_linerate};
use crate::common::{Ended, linerate, wait_for};
use serde_json::{Value, json};

/// The ratio of the rates with and without rules, as median and interval.
#[track_caller]
fn ratio(ended: &Ended) -> [f64; 3] {
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    let slots = result["campaign"]["slots"].as_array().unwrap();
    let slot = |variant: &str| {
        &slots
            .iter()
            .find(|slot| slot["variant"] == variant)
            .unwrap()["id"]
    };
    let of_these = |c: &&Value| c["of"] == *slot("rules") && c["than"] == *slot("forwarding");
    let ratio = &result["summary"]["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .find(of_these)
        .unwrap()["ratio"];
    ["median", "low", "high"].map(|key| ratio[key].as_f64().unwrap())
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_campaign_over_three_hosts_counts_everywhere_and_leaves_nothing() {
    let lab = RealLab::new();
    let ended = lab.run(
        &PLAN
            .replace("blocks = 8", "blocks = 2")
            .replace("200 ms", "100 ms"),
        &["--json"],
    );
    // 3: so few blocks may prove no difference. 1: on a busy machine, both trials of a variant may be invalid.
    assert!(
        matches!(ended.status.code(), Some(0 | 1 | 3 | 5)),
        "{}",
        ended.stderr
    );
    let recorded = lab.trials();
    assert_eq!(recorded.len(), 4);
    counted_and_put_back(&lab, &recorded);
}

#[track_caller]
fn counted_and_put_back(lab: &RealLab, recorded: &[Value]) {
    let counted = |trial: &Value| trial["dut"]["in0: rx_packets"].as_u64().unwrap_or(0);
    let sent = |trial: &Value| trial["generator"]["frames"].as_u64().unwrap();
    assert!(
        recorded.iter().all(|trial| counted(trial) >= sent(trial)),
        "the DUT has counted what was sent"
    );
    // Three hosts on one machine have one clock, and nothing is to be compared.
    assert!(
        recorded
            .iter()
            .all(|trial| trial["clocks"] == json!({"shift_ns": 0, "error_ns": 0}))
    );
    lab.is_as_it_was();
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn figures_a_campaign_over_three_hosts_comes_to_the_verdicts_of_the_local_lab() {
    let lab = RealLab::new();
    let ended = lab.run(PLAN, &["--json"]);
    assert!(ended.status.success(), "{}", ended.stderr);
    let over_hosts = ratio(&ended);
    let recorded = lab.trials();
    let valid = recorded
        .iter()
        .filter(|trial| trial["audit"]["valid"] == true)
        .count();
    assert!(
        recorded.len() == 16 && valid >= 13,
        "{valid} of {} trials are valid",
        recorded.len()
    );
    counted_and_put_back(&lab, &recorded);

    let local = PLAN.replace("[lab]\nfile = \"LAB.toml\"\nsystems = [\"linux\"]\n", "");
    std::fs::write(lab.scratch.file("local.toml"), local).unwrap();
    let ended = linerate(["run", "local.toml", "--out", "local", "--json"])
        .dir(lab.scratch.path())
        .within(120)
        .run();
    let in_namespaces = ratio(&ended.ok());
    println!("over hosts {over_hosts:?}, in namespaces of this machine {in_namespaces:?}");
    for [_, low, high] in [over_hosts, in_namespaces] {
        assert!(
            0.0 < low && high < 0.5,
            "a thousand rules cost more than half: {over_hosts:?} {in_namespaces:?}"
        );
    }
}

#[test]
#[ignore = "needs root, openssh-server, nft and perf"]
fn takes_minutes_the_duts_kernel_is_sampled_by_its_own_profiler() {
    let lab = RealLab::new();
    has_linerate(&lab.ssh.hosts[1]);
    let profiled = PLAN.replace("[trials]", "[collect]\nprofile = \"300 ms\"\n\n[trials]");
    let ended = lab.run(&profiled.replace("blocks = 8", "blocks = 2"), &["--full"]);
    let summary: Value = serde_json::from_str(
        &std::fs::read_to_string(lab.scratch.file("records/summary.json")).unwrap(),
    )
    .unwrap();
    let profiles = summary["profiles"].as_array().unwrap();
    // Beside other programs, a function that only calls others may not be among the 200 of the summary.
    let takes_time = |profile: &Value, name: &str| {
        let stacks = lab
            .scratch
            .file(&format!("records/{}", profile["stacks"].as_str().unwrap()));
        let stacks = std::fs::read_to_string(stacks).unwrap();
        let of_it = stacks
            .lines()
            .filter(|stack| stack.split([';', ' ']).any(|function| function == name));
        of_it
            .filter_map(|stack| stack.rsplit(' ').next()?.parse::<u64>().ok())
            .sum::<u64>()
            > 5
    };
    let found: Vec<[bool; 2]> = profiles
        .iter()
        .map(|p| ["net_rx_action", "nft_do_chain"].map(|name| takes_time(p, name)))
        .collect();
    assert_eq!(
        found,
        [[true, false], [true, true]],
        "{}{}",
        ended.stdout,
        ended.stderr
    );
    assert!(
        ended.stdout.contains("The rule set takes"),
        "{}",
        ended.stdout
    );
    // The DUT's own linerate has seen the rest.
    for profile in profiles {
        let step = |from: &str, to: &str| {
            let steps = profile["stages"]["steps"].as_array().unwrap();
            steps
                .iter()
                .any(|step| step["from"] == from && step["to"] == to)
        };
        assert!(step("fib_table_lookup", "net_dev_queue"), "{profile:#}");
        assert!(profile["events"]["waits"]["ns"].is_u64(), "{profile:#}");
        let missing = profile["missing"].as_array().unwrap();
        assert!(
            missing
                .iter()
                .all(|why| why.as_str().unwrap().starts_with("events of the CPUs")),
            "{missing:?}"
        );
    }
    assert_eq!(lab.ssh.hosts[1].running("linerate profile"), 0);
    lab.is_as_it_was();
}

/// A plan whose trials are so long, with collectors under load; the first counts twenties of a second, and which interface.
fn with_collectors(duration: &str) -> String {
    let during = r#"[collect]
during = [
  "n=0; while sleep 0.05; do n=$((n+1)); echo $n {in}; done",
  "yes flood",
  "echo why >&2; exit 3",
  "echo done",
]
commands = ["echo after {out}"]

[trials]"#;
    PLAN.replace("[trials]", during)
        .replace(
            "duration = \"200 ms\"",
            &format!("duration = \"{duration}\""),
        )
        .replace("blocks = 8", "blocks = 1")
}

/// Output of the collectors, in their order.
#[track_caller]
fn collected(trial: &Value) -> Vec<&str> {
    let said = |c: &'_ Value| {
        c["output"]
            .as_object()
            .unwrap()
            .values()
            .next()
            .unwrap()
            .as_str()
            .unwrap()
            .len()
    };
    // How busy the CPUs were is not known of a host that did not answer.
    let all = trial["collected"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["command"] != "cpus");
    let all: Vec<&Value> = all.collect();
    assert!(
        all.len() == 5 && all.iter().all(|c| said(c) > 0),
        "{all:#?}"
    );
    all.iter()
        .map(|c| {
            c["output"]["Ok"]
                .as_str()
                .or(c["output"]["Err"].as_str())
                .unwrap()
        })
        .collect()
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn collectors_run_under_load_and_end_with_it() {
    let lab = RealLab::new();
    lab.run(&with_collectors("2 s"), &[]);
    let recorded = lab.trials();
    assert_eq!(recorded.len(), 2);
    for trial in &recorded {
        let [counted, flood, failed, done, after] = collected(trial)[..] else {
            unreachable!()
        };
        let lines: Vec<&str> = counted.lines().collect();
        // The load takes two seconds at least.
        assert!((4..400).contains(&lines.len()), "{} lines", lines.len());
        assert!(lines[0] == "1 in0" && lines[3] == "4 in0", "{lines:?}");
        assert!(
            flood.len() < 70_000
                && flood.starts_with("flood\n")
                && flood.contains("bytes are missing")
        );
        assert_eq!(
            [failed, done, after],
            ["it ended with status 3: why", "done\n", "after out0\n"]
        );
        // `yes` alone fills a CPU for the load's time, but for that which the machine stands still.
        let busiest = |cpus: &Value| {
            cpus.as_array()
                .unwrap()
                .iter()
                .filter_map(|c| c["busy"].as_f64())
                .fold(0.0, f64::max)
        };
        assert!(busiest(&trial["cpus"]) > 0.2, "{:?}", trial["cpus"]);
        for host in ["generator", "receiver"] {
            assert!(
                busiest(&trial["tester_cpus"][host]) > 0.0,
                "{host}: {:?}",
                trial["tester_cpus"]
            );
        }
    }
    let dut = &lab.ssh.hosts[1];
    assert_eq!(
        dut.running("yes flood") + dut.running("sleep 0.05"),
        0,
        "{:?}",
        dut.processes()
    );
    lab.is_as_it_was();
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn takes_minutes_collectors_of_a_host_that_does_not_answer_under_load_are_fetched_after_it() {
    let lab = RealLab::new();
    let running = lab.program(&with_collectors("3 s"), &[]).start();
    let dut = &lab.ssh.hosts[1];
    wait_for("collectors", || {
        (dut.running("yes flood") > 0).then_some(())
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(dut.signal_sshd(libc::SIGSTOP) > 0);
    std::thread::sleep(std::time::Duration::from_secs(2));
    dut.signal_sshd(libc::SIGCONT);
    let ended = running.wait().no_panic();
    assert_ne!(ended.status.code(), Some(1), "{}", ended.stderr);
    let recorded = lab.trials();
    let counted = collected(&recorded[0])[0].lines().count();
    assert!(counted >= 30, "{counted} lines: none is missing");
    lab.is_as_it_was();
}
