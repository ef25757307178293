//! Hosts that are network namespaces of this machine: without ssh, with every tool that is installed.

use super::lab::{RealLab, gentle, reset};
use super::site::trials;
use crate::common::campaign::faults;
use crate::common::{Ended, linerate, unique};
use linerate_linux::net::Netns;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The lab, whose namespaces have names while it stands.
struct Named {
    lab: RealLab,
    names: Vec<String>,
}

impl Named {
    /// With this tool on generator and receiver.
    fn new(tool: &str) -> Named {
        let lab = RealLab::new();
        let file = lab.scratch.file("LAB.toml");
        let mut text = fs::read_to_string(&file)
            .unwrap()
            .replace("\"linerate\"", &format!("\"{tool}\""));
        let name = |host: &crate::sshd::SshHost| {
            let name = unique(&host.name);
            host.netns.persist(&name).unwrap();
            text = text.replace(
                &format!("ssh = \"{}\"", host.name),
                &format!("namespace = \"{name}\""),
            );
            name
        };
        let names = lab.ssh.hosts.iter().map(name).collect();
        fs::write(&file, text).unwrap();
        Named { lab, names }
    }

    fn run(&self, args: &[&str]) -> Ended {
        let state = self.lab.scratch.file("state");
        let program = linerate(args)
            .dir(self.lab.scratch.path())
            .env("XDG_STATE_HOME", &state);
        program.within(120).run().no_panic()
    }

    /// The trials of a plan. A busy machine may keep no program at its rate: then a cell has no valid trial, which is status 1.
    fn trials(&self, plan: &str) -> Vec<serde_json::Value> {
        self.lab.write("plan.toml", plan);
        let ended = self.run(&["run", "plan.toml", "--out", "records"]);
        assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
        trials(&self.lab.records())
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.names
            .iter()
            .for_each(|name| Netns::remove_persistent(name).unwrap());
    }
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn namespaces_are_set_up_measured_and_restored_as_hosts_are() {
    let named = Named::new("linerate");
    let checked = named
        .run(&["lab", "check", "LAB.toml", "--json"])
        .ok()
        .json();
    assert_eq!(
        checked["problems"].as_array().unwrap().len(),
        0,
        "{:#}",
        checked["problems"]
    );
    assert_eq!(
        checked["hosts"][1]["reach"],
        format!("namespace {}", named.names[1])
    );
    let trials = named.trials(&gentle().replace("blocks = 8", "blocks = 1"));
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        assert_eq!(faults(trial), "");
        assert!(trial["receiver"]["frames"].as_u64() > Some(0), "{trial:#}");
    }
    named.lab.is_as_it_was();
}

#[test]
#[ignore = "needs root and openssh-server"]
fn searches_and_tests_without_a_plan_measure_the_hosts_of_the_lab() {
    let named = Named::new("linerate");
    for line in [
        "search --loss-curve --step 50% --max 2kpps",
        "rfc2544 --test frame-loss --size 64 --link-speed 1Mbit/s",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let records = named.lab.scratch.file(args[0]);
        let more = [
            "--lab",
            "LAB.toml",
            "--duration",
            "200ms",
            "--flows",
            "10",
            // Losses of a busy machine ask for more trials.
            "--budget",
            "20s",
            "--out",
            &records,
        ];
        let ended = named.run(&[&args[..], &more].concat());
        // A busy machine may lose frames at every load.
        assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
        let campaign = fs::read_to_string(format!("{records}/campaign.json")).unwrap();
        let campaign: serde_json::Value = serde_json::from_str(&campaign).unwrap();
        assert_eq!(campaign["asked"]["lab"], "hosts", "{line}");
        let trials = trials(&records);
        assert!(
            trials
                .iter()
                .any(|trial| trial["dut"]["in0: rx_packets"].as_u64() > Some(0)),
            "{line}"
        );
    }
    named.lab.is_as_it_was();
}

/// Frames that the generator's interface cannot send are a reason not to measure their cells; the others are measured.
#[test]
#[ignore = "needs root and openssh-server"]
fn frames_that_are_too_long_for_the_generator_leave_out_their_cells_alone() {
    let named = Named::new("linerate");
    let rules = "[variants.rules]\nrules = { tool = \"nftables\", filter = \"stateless\", before = 1000 }\n";
    let sizes = "[factors.size]\nsets = \"traffic.size\"\nlevels = [\"9018 B\", \"64 B\"]\n";
    let plan = gentle().replace(rules, &format!("interface.mtu = \"9000 B\"\n{sizes}"));
    named
        .lab
        .write("plan.toml", &plan.replace("blocks = 8", "blocks = 1"));
    let ended = named.run(&["run", "plan.toml", "--out", "records"]);
    let told = "frames of 9018 bytes need an MTU of 9000, and g0 has 1500: ip link set g0 mtu 9000";
    let page = format!("{}{}", ended.stdout, ended.stderr);
    assert!(
        page.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains(told),
        "{page}"
    );
    let trials = trials(&named.lab.records());
    assert!(
        trials.len() == 1 && trials[0]["receiver"]["frames"].as_u64() > Some(0),
        "{page}"
    );
    named.lab.is_as_it_was();
}

#[test]
#[ignore = "needs root, openssh-server and iperf3"]
fn programs_send_and_count_in_namespaces() {
    let named = Named::new("iperf3");
    let plan = gentle()
        .replace("flows = 200", "flows = 1")
        .replace("200 ms", "2 s")
        .replace("blocks = 8", "blocks = 1");
    let trials = named.trials(&plan);
    assert_eq!(trials.len(), 2);
    for trial in trials {
        let frames = |side: &str| trial[side]["frames"].as_u64().unwrap();
        assert!(
            frames("generator") > 100 && frames("receiver") > 100,
            "{trial:#}"
        );
        // Programs keep a rate, and read their sockets in time, where they have the CPUs. What they lose is counted.
        assert_eq!(faults(&trial), "");
        assert!(
            trial["dut"]["in0: rx_packets"].as_u64() >= Some(frames("generator")),
            "{trial:#}"
        );
    }
    named.lab.is_as_it_was();
}

#[test]
#[ignore = "needs root and openssh-server"]
fn what_namespaces_cannot_do_is_refused_before_anything_is_changed() {
    let named = Named::new("linerate");
    named.lab.write(
        "plan.toml",
        &gentle().replace("[trials]", "[trials]\nreboot = \"each-trial\""),
    );
    let refused = named.run(&["run", "plan.toml", "--out", "records"]);
    refused.fails(
        1,
        &["dut: a network namespace cannot be rebooted", "each-trial"],
    );
    let file = named.lab.scratch.file("LAB.toml");
    let lab = fs::read_to_string(&file).unwrap();
    let (before, out) = lab.split_once(".out]\n").unwrap();
    let small = format!("{before}.out]\nnetworks = [\"198.19.1.0/24\"]\n{out}");
    fs::write(&file, small).unwrap();
    let checked = named.run(&["lab", "check", "LAB.toml"]).status(1).stdout;
    let says = "the network 198.19.1.0/24 of the lab file is too small";
    assert!(checked.contains(says), "{checked}");
    fs::write(&file, lab.replace(&named.names[2], "no-such-namespace")).unwrap();
    let checked = named.run(&["lab", "check", "LAB.toml"]).status(1).stdout;
    for says in [
        "receiver",
        "cannot be entered",
        "no-such-namespace",
        "ip netns list",
    ] {
        assert!(checked.contains(says), "no '{says}' in:\n{checked}");
    }
}

/// A veth has no ring that ethtool could set, which shows when the change is tried.
#[test]
#[ignore = "needs root and openssh-server"]
fn a_tuning_goes_on_without_a_change_that_the_dut_cannot_make() {
    let named = Named::new("linerate");
    let (before, rest) = gentle()
        .split_once("[variants.rules]")
        .map(|(before, rest)| (before.to_string(), rest.to_string()))
        .unwrap();
    let traffic = &rest[rest.find("[traffic]").unwrap()..];
    let changes = "[variants.there]\nfrom = \"forwarding\"\nsysctls = { \"net.ipv4.tcp_sack\" = 1 }\n\
        [variants.ring]\nfrom = \"forwarding\"\ninterface.rx-ring = 512\n\
        [variants.echo]\nfrom = \"forwarding\"\nsysctls = { \"net.ipv4.icmp_echo_ignore_all\" = 1 }\n";
    let plan = format!("{before}{changes}{traffic}").replace("blocks = 8", "blocks = 1");
    named.lab.write("plan.toml", &plan);
    let ended = named.run(&["tune", "plan.toml", "--out", "tuned", "--json"]);
    let told = "ring is not tried: dut: receive ring of in0";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    let tuned = ended.json();
    let left_out = |name: &str| {
        let all = tuned["left_out"].as_array().unwrap().iter();
        let found = all.clone().find(|left| left["name"] == name);
        found.map(|left| left["reason"].as_str().unwrap().to_string())
    };
    assert!(left_out("ring").is_some(), "{tuned:#}");
    assert_eq!(
        left_out("there").as_deref(),
        Some("the DUT has that already"),
        "{tuned:#}"
    );
    assert_eq!(tuned["changes"][0]["name"], "echo");
    assert_eq!(tuned["changes"].as_array().unwrap().len(), 1);
    assert!(
        tuned["stages"][0]["trials"][0].as_u64() >= Some(8),
        "{tuned:#}"
    );
    named.lab.is_as_it_was();
}

/// The kernel is that of this machine. Stand-ins for `reboot` and `shutdown` tell whether anything was ordered, and do nothing else.
#[test]
#[ignore = "needs root and openssh-server"]
fn no_event_boots_the_machine_that_linerate_runs_on() {
    let named = Named::new("linerate");
    let ordered = named.lab.scratch.file("ordered");
    let bin = named.lab.scratch.file("bin");
    fs::create_dir(&bin).unwrap();
    for program in ["reboot", "shutdown"] {
        let file = format!("{bin}/{program}");
        fs::write(&file, format!("#!/bin/sh\necho {program} >>{ordered}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    for what in ["reboot", "power-off"] {
        named
            .lab
            .write("plan.toml", &reset(&format!("what = \"{what}\"")));
        for verb in ["run", "rfc2544"] {
            let state = named.lab.scratch.file("state");
            let run = linerate([verb, "plan.toml", "--out", "records"])
                .dir(named.lab.scratch.path())
                .env("XDG_STATE_HOME", &state)
                .env("PATH", &path)
                .within(60);
            let says = "is a network namespace, which cannot be rebooted";
            run.run()
                .no_panic()
                .fails(2, &["the test reset is not possible", says]);
        }
    }
    assert!(
        !Path::new(&ordered).exists(),
        "{}",
        fs::read_to_string(&ordered).unwrap()
    );
    assert!(
        !Path::new(&named.lab.records()).exists(),
        "nothing was measured"
    );
}
