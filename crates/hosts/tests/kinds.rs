//! Kinds of DUT on scripted BSD hosts: what was there comes back, however far the steps came.

use linerate_hosts::dut_changes::{Input, Port, Program, Step, Target, steps};
use linerate_measure::experiment::System;
use linerate_plan::settings::{Dut, Settings};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const STAND_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../linerate/tests/bsd-host");

struct Host {
    state: PathBuf,
}

impl Host {
    /// A router with static neighbours and routes, and another interface that nothing may touch.
    fn new(system: &str, name: &str) -> Host {
        let state =
            std::env::temp_dir().join(format!("linerate-kinds-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&state);
        let made = Command::new(Path::new(STAND_IN).join("new-host"))
            .args([state.to_str().unwrap(), system, "router"])
            .args([
                "em0:52-54-00-00-00-10:198.18.0.1/24",
                "em1:52-54-00-00-00-11:198.19.0.1/24",
            ])
            .arg("vtnet0:52-54-00-12-34-56:10.0.2.15/24")
            .status();
        assert!(made.unwrap().success());
        let add = |file: &str, text: &str| fs::write(state.join(file), text).unwrap();
        let em0 = fs::read_to_string(state.join("if/em0")).unwrap();
        add("if/em0", &format!("{em0}inet 2001:2:0:1::1/64\n"));
        add(
            "arp",
            "198.18.0.2 52:54:00:00:00:20 em0 permanent\n10.0.2.2 52:55:0a:00:02:02 vtnet0 permanent\n2001:2:0:1::2 52:54:00:00:00:20 em0 permanent\n",
        );
        add(
            "routes",
            "198.18.0.0/16 198.18.0.2 em0\n198.19.0.0/16 198.19.0.2 em1\ndefault 10.0.2.2 vtnet0\n",
        );
        Host { state }
    }

    fn run(&self, program: &Program) -> Output {
        let mut command = Command::new("env");
        command
            .arg(format!("PATH={STAND_IN}/bin:/usr/bin:/bin"))
            .args(&program.argv)
            .env("BSD_HOST", &self.state)
            .env("SSH_CONNECTION", "10.0.2.2 50000 10.0.2.15 22")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        if let Input::Text(text) = &program.input {
            input.write_all(text.as_bytes()).unwrap();
        }
        drop(input);
        child.wait_with_output().unwrap()
    }

    #[track_caller]
    fn ok(&self, program: &Program, what: &str) -> String {
        let output = self.run(program);
        let text = String::from_utf8(output.stdout).unwrap();
        let log = fs::read_to_string(self.state.join("log")).unwrap_or_default();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{what}: {text}{said}\n{log}");
        text
    }

    fn sh(&self, line: &str) -> String {
        self.ok(&Program::new(["sh", "-c", line]), line)
    }

    /// All of its state but the log, its lines in order.
    fn files(&self) -> BTreeMap<String, Vec<String>> {
        fn walk(folder: &Path, root: &Path, all: &mut BTreeMap<String, Vec<String>>) {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let name = entry
                    .path()
                    .strip_prefix(root)
                    .unwrap()
                    .display()
                    .to_string();
                if entry.path().is_dir() {
                    walk(&entry.path(), root, all);
                } else if !["log", "modules"].contains(&name.as_str()) && !name.ends_with(".new") {
                    let text = fs::read_to_string(entry.path()).unwrap();
                    let mut lines: Vec<String> = text.lines().map(String::from).collect();
                    lines.sort();
                    all.insert(name, lines);
                }
            }
        }
        let mut all = BTreeMap::new();
        walk(&self.state, &self.state, &mut all);
        all
    }

    fn make(&self, step: &Step) -> Option<Program> {
        let was = step.read.as_ref().map_or(String::new(), |read| {
            let said = self.ok(&read.program, &step.what);
            read.form
                .value(&said)
                .unwrap_or_else(|| panic!("{}: {said}", step.what))
        });
        self.ok(&step.apply, &step.what);
        step.undoing(&was).map(|undoing| Program {
            argv: undoing.argv,
            input: Input::Text(undoing.input),
        })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.state);
    }
}

fn made(dut: Dut, system: System) -> Vec<Step> {
    let port = |name: &str| Port {
        name: name.into(),
        addresses: vec![],
        next_hops: vec![],
        networks: vec![],
    };
    let target = Target {
        system,
        inside: port("em0"),
        outside: port("em1"),
        config_save: None,
    };
    let mut settings = Settings {
        dut,
        ..Settings::default()
    };
    if system == System::FreeBsd {
        settings
            .sysctls
            .insert("net.inet.ip.forwarding".into(), "1".into());
    }
    let mut steps = steps(&settings, None, &target).unwrap().steps;
    steps.retain(|step| step.what != "pf");
    steps
}

/// Each kind, what shows that it stands, and what this prints.
const STANDS: [(&str, Dut, &str, &[&str]); 7] = [
    (
        "freebsd",
        Dut::Nested,
        "! ifconfig em0 2>/dev/null && jexec linerate ifconfig -a; jexec linerate netstat -rn; jexec linerate arp -an; jexec linerate ndp -an; jexec linerate sysctl net.inet.ip",
        &[
            "em0: flags=8843<UP,",
            "em1: flags=8843<UP,",
            "inet 198.18.0.1 netmask 0xffffff00",
            "inet6 2001:2:0:1::1 prefixlen 64",
            "198.18.0.0/16 198.18.0.2",
            "198.19.0.0/16 198.19.0.2",
            "? (198.18.0.2) at 52:54:00:00:00:20 on em0 permanent",
            "2001:2:0:1::2 52:54:00:00:00:20",
            "net.inet.ip.forwarding: 1",
            "net.inet.ip.redirect: 0",
        ],
    ),
    (
        "freebsd",
        Dut::Vlan,
        "ifconfig -a; netstat -rn; arp -an; cat $BSD_HOST/if/vlan198 $BSD_HOST/if/vlan199",
        &[
            "vlan 2",
            "vlan 4",
            "inet 198.19.0.1/24",
            "198.18.0.0/16 198.18.0.2 UGS 8 1500 vlan198",
            "on vlan198 permanent",
        ],
    ),
    (
        "freebsd",
        Dut::RoutedBridge,
        "cat $BSD_HOST/if/bridge198; netstat -rn",
        &[
            "mac 52:54:00:00:00:10",
            "member em0",
            "inet 198.18.0.1/24",
            "198.18.0.2 UGS 8 1500 bridge198",
            "198.19.0.2 UGS 8 1500 em1",
        ],
    ),
    (
        "freebsd",
        Dut::Bridge,
        "cat $BSD_HOST/if/bridge198",
        &["member em0", "member em1", "flags UP"],
    ),
    (
        "openbsd",
        Dut::Vlan,
        "cat $BSD_HOST/if/vlan19*; netstat -rn",
        &["vlan 2", "vlan 4", "- 8 vlan198", "- 8 vlan199"],
    ),
    (
        "openbsd",
        Dut::RoutedBridge,
        "cat $BSD_HOST/if/veb198 $BSD_HOST/if/vport198; netstat -rn",
        &[
            "member em0",
            "member vport198",
            "mac 52:54:00:00:00:10",
            "- 8 vport198",
        ],
    ),
    (
        "openbsd",
        Dut::Bridge,
        "cat $BSD_HOST/if/bridge198",
        &["member em0", "member em1"],
    ),
];

#[test]
fn what_a_kind_moves_comes_back() {
    comes_back(3);
}

mod each {
    #[test]
    fn takes_minutes_what_a_kind_moves_comes_back_however_far_it_came() {
        super::comes_back(1);
    }
}

/// After all steps, and after each so many of them.
fn comes_back(every: usize) {
    for (system, dut, shown, parts) in STANDS {
        let steps = made(
            dut,
            if system == "freebsd" {
                System::FreeBsd
            } else {
                System::OpenBsd
            },
        );
        for up_to in (0..=steps.len()).rev().step_by(every) {
            let case = format!("{system} {dut} {up_to} of {}", steps.len());
            let host = Host::new(system, &format!("{system}-{dut}-{up_to}"));
            let before = host.files();
            let undo: Vec<Option<Program>> =
                steps[..up_to].iter().map(|step| host.make(step)).collect();
            if up_to == steps.len() {
                let said = host.sh(shown);
                parts
                    .iter()
                    .for_each(|part| assert!(said.contains(part), "{case}: no {part} in {said}"));
                // The host's own connection stays.
                assert!(
                    host.sh("ifconfig vtnet0; netstat -rn")
                        .contains("default 10.0.2.2"),
                    "{case}"
                );
            }
            for program in undo.iter().rev().flatten() {
                host.ok(program, &case);
            }
            let mut after = host.files();
            // The last two are made by what is asked for here alone.
            ["boots", "sysctl"]
                .iter()
                .for_each(|file| drop(after.remove(*file)));
            let mut before = before;
            ["boots", "sysctl"]
                .iter()
                .for_each(|file| drop(before.remove(*file)));
            assert_eq!(after, before, "{case}");
        }
    }
}

/// The shell of a host is ended at any moment: what it has done by then is undone as well.
#[test]
fn a_kind_that_was_interrupted_is_undone() {
    for (system, dut, ..) in STANDS {
        let steps = made(
            dut,
            if system == "freebsd" {
                System::FreeBsd
            } else {
                System::OpenBsd
            },
        );
        for fails in ["arp", "ifconfig"] {
            let host = Host::new(system, &format!("cut-{system}-{dut}-{fails}"));
            let before = host.files();
            let mut undo = Vec::new();
            for step in &steps {
                // One program is gone in the midst of the last.
                let was = step
                    .read
                    .as_ref()
                    .map_or(String::new(), |read| host.ok(&read.program, &step.what));
                let value = step
                    .read
                    .as_ref()
                    .map_or(Some(was.clone()), |read| read.form.value(&was))
                    .unwrap();
                undo.extend(step.undoing(&value));
                fs::write(host.state.join("fails"), fails).unwrap();
                let _ = host.run(&step.apply);
                fs::remove_file(host.state.join("fails")).unwrap();
            }
            for undoing in undo.into_iter().rev() {
                let (what, input) = (undoing.what, Input::Text(undoing.input));
                // One that was never made need not succeed.
                let output = host.run(&Program {
                    argv: undoing.argv,
                    input,
                });
                let _ = (what, output);
            }
            let (mut after, mut before) = (host.files(), before);
            for files in [&mut after, &mut before] {
                files.remove("sysctl");
            }
            assert_eq!(after, before, "{system} {dut}, without {fails}");
        }
    }
}

#[test]
fn an_interface_that_ssh_comes_by_is_not_moved() {
    for dut in [Dut::Nested, Dut::Vlan, Dut::RoutedBridge, Dut::Bridge] {
        let host = Host::new("freebsd", &format!("ssh-{dut}"));
        fs::write(host.state.join("routes"), "10.0.2.0/24 198.18.0.2 em0\n").unwrap();
        let vtnet = host.state.join("if/vtnet0");
        fs::write(
            &vtnet,
            fs::read_to_string(&vtnet)
                .unwrap()
                .replace("inet 10.0.2.15/24\n", ""),
        )
        .unwrap();
        let refused = made(dut, System::FreeBsd).iter().any(|step| {
            let output = host.run(&step.apply);
            String::from_utf8_lossy(&output.stderr).contains("own ssh goes by em0")
        });
        assert!(refused, "{dut}");
    }
}
