//! HTTP by nginx and wrk through the embedded lab: both count the same requests, and programs that do not do their work are found out.

use super::connections::trials;
use super::experiment::Experiment;
use crate::common::campaign::faults;
use crate::common::{Scratch, linerate, wait_for};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const ROOT: &str = "needs root, nginx and wrk";

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{ROOT}: {value}"))
}

/// A plan with one trial of each cell.
fn plan(rest: &str) -> String {
    format!(
        "title = \"HTTP\"\nquestion = \"Is each request counted?\"\ntraffic = {{ http = \"close\", flows = 16, object = 3000 }}\n\
         trials = {{ duration = \"1 s\", blocks = 1 }}\nvariants.forwarding = {{ about = \"no firewall\" }}\n{rest}"
    )
}

/// Processes with this text in their environment.
fn processes_with(text: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let own = |folder: &Path| {
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(text)
    };
    all.filter(|entry| own(&entry.path()))
        .map(|entry| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default())
        .collect()
}

#[test]
#[ignore = "needs root, nft, nginx and wrk: run by make test as root"]
fn client_and_server_count_the_same_requests() {
    let experiment = Experiment::new(
        &plan(
            "variants.nat.rules = { tool = \"nftables\", filter = \"nat\" }\nvariants.xdp.dut = \"xdp\"\n\
             factors.http = { sets = \"traffic.http\", levels = [\"close\", \"keep-alive\"] }",
        ),
        "",
    );
    let ended = experiment.run("--full").run().counted();
    assert!(ended.stdout.contains("Gbit/s"), "{}", ended.stdout);
    let all = trials(&experiment);
    // Three variants and the tester alone.
    assert_eq!(all.len(), 4 * 2, "{}", ended.stdout);
    for (name, trial) in &all {
        assert_eq!(faults(trial), "", "{name}");
        let http = &trial["http"];
        let [answered, served, accepted, read] =
            ["answered", "served", "accepted", "read"].map(|key| number(&http[key]));
        assert!(answered > 100, "{name}: {http}");
        assert!(
            (answered..=answered + 16).contains(&served),
            "{name}: {http}"
        );
        // With the headers, which are some 250 bytes.
        assert!(
            (answered * 3100..answered * 3500).contains(&read),
            "{name}: {http}"
        );
        match name.contains("keep-alive") {
            true => assert_eq!(accepted, 16, "{name}"),
            false => assert!((served..=served + 16).contains(&accepted), "{name}: {http}"),
        }
        assert_eq!(trial["generator"]["frames"], answered, "{name}");
    }
    let temporary = experiment.temporary();
    assert_eq!(
        processes_with(temporary.to_str().unwrap()),
        Vec::<String>::new()
    );
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    assert_eq!(fs::read_dir("/run/linerate/scratch").unwrap().count(), 0);
}

#[test]
#[ignore = "needs root, nginx and wrk: run by make test as root"]
fn nothing_is_left_of_a_campaign_that_is_killed() {
    let experiment = Experiment::new(&plan(""), "");
    let temporary = experiment.temporary().display().to_string();
    let running = experiment.run("").start();
    let runs = |program: &str| {
        let all = processes_with(&temporary);
        all.into_iter().any(|line| line.contains(program))
    };
    wait_for("both programs", || {
        (runs("wrk\0-t") && runs("nginx-0.conf")).then_some(())
    });
    running.signal(libc::SIGKILL);
    running.wait();
    wait_for("the end of both programs", || {
        processes_with(&temporary).is_empty().then_some(())
    });
}

/// A folder with a program of this name, a line of a shell.
fn instead_of(program: &str, line: &str) -> Scratch {
    let folder = Scratch::new();
    let file = folder.path().join(program);
    fs::write(&file, format!("#!/bin/sh\n{line}\n")).unwrap();
    for path in [folder.path(), &file] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

/// The faults of a trial of this plan with another program instead of nginx or wrk.
pub(super) fn found_out(plan: &str, program: &str, line: &str) -> String {
    let folder = instead_of(program, line);
    let experiment = Experiment::new(plan, "");
    let path = format!("{}:/usr/bin:/usr/sbin:/bin", folder.path().display());
    // 1: no trial is valid.
    experiment.run("").env("PATH", &path).run().status(1);
    let all = trials(&experiment);
    assert!(!all.is_empty());
    assert!(
        all.iter()
            .all(|(_, trial)| trial["audit"]["valid"] == false),
        "{program}: {line}"
    );
    faults(&all[0].1)
}

/// A line of a shell: nginx with a configuration that sed has changed.
pub(super) fn nginx_with(change: &str) -> String {
    format!(
        "for last; do :; done; sed \"{change}\" $last > o; exec /usr/sbin/nginx -e stderr -p . -c $PWD/o"
    )
}

#[test]
#[ignore = "needs root, nginx and wrk: run by make test as root"]
fn a_trial_without_answers_says_why() {
    let found_out = |program: &str, line: &str| found_out(&plan(""), program, line);
    let missing = found_out("nginx", &nginx_with("s/root .;/root nowhere;/"));
    assert!(
        missing.contains("answers were no object, but an error of the server"),
        "{missing}"
    );
    let down = found_out("nginx", "echo 'no room' >&2; exit 3");
    assert!(
        down.contains("nginx: ") && down.contains("no room"),
        "{down}"
    );
    // A tenth of the requests.
    let figures = "sed 's/^linerate \\([0-9]*\\)[0-9] /linerate \\1 /'";
    let wrong = found_out("wrk", &format!("/usr/bin/wrk \"$@\" | {figures}"));
    assert!(wrong.contains("nginx: requests"), "{wrong}");
    let silent = found_out("wrk", "exit 0");
    assert!(silent.contains("wrk printed no figures"), "{silent}");
}

#[test]
#[ignore = "needs root, nginx and wrk: run by make test as root"]
fn a_rule_that_rejects_the_requests_is_no_result() {
    let variant = r#"
        [variants.closed]
        files = [{ path = "fw.nft", text = "table inet fw { chain forward { type filter hook forward priority filter; tcp dport 80 reject with tcp reset; }; }" }]
        commands = [{ run = "nft -f fw.nft", undo = "nft delete table inet fw" }]
    "#;
    let experiment = Experiment::new(&plan(variant), "");
    experiment.run("").run().status(1);
    let all = trials(&experiment);
    let (_, closed) = all.iter().find(|(name, _)| name == "closed").unwrap();
    assert!(
        faults(closed).contains("unable to connect"),
        "{}",
        faults(closed)
    );
    let open = all.iter().filter(|(name, _)| name != "closed");
    assert!(open.clone().count() > 0);
    for (name, trial) in open {
        assert_eq!(faults(trial), "", "{name}");
    }
}

#[test]
#[ignore = "needs root, nginx and wrk: run by make test as root"]
fn programs_that_are_missing_are_named_with_their_packages() {
    let folder = instead_of("nothing", "");
    let ended = linerate(["run", "http", "--quick"])
        .dir(folder.path())
        .env("PATH", folder.path().to_str().unwrap())
        .run()
        .status(4);
    assert!(
        ended
            .stderr
            .contains("wrk is not installed: apt-get install wrk"),
        "{}",
        ended.stderr
    );
}
