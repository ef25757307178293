//! Changes of a host, made and undone over the real sshd.

use crate::sshd::SshLab;
use linerate_hosts::dut_changes::{Port, Steps, Target, steps};
use linerate_measure::experiment::System;
use linerate_plan::rules::{Firewall, Kind, RuleSet};
use linerate_plan::settings::{File, Settings};
use linerate_remote::{Changes, ExecutionTarget, Order};
use linerate_wire::Family;
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn target() -> Target {
    let port = |name: &str| Port {
        name: name.into(),
        addresses: vec![],
        next_hops: vec![],
        networks: vec![],
    };
    Target {
        system: System::Linux,
        inside: port("lo"),
        outside: port("lo"),
        config_save: None,
    }
}

/// A variant with a setting, two files (one there, one new) and a rule set.
fn variant(folder: &Path) -> Steps {
    let file = |name: &str| File {
        path: folder.join(name).display().to_string(),
        text: "it's new\n".into(),
    };
    let mut settings = Settings {
        files: vec![file("there"), file("not there")],
        ..Settings::default()
    };
    settings
        .sysctls
        .insert("net.ipv4.ip_forward".into(), "1".into());
    let rules = RuleSet {
        rules_before: 3,
        hash_sized: false,
        ..RuleSet::new(Firewall::Nftables, Kind::Stateless)
    };
    let set = rules.for_frames(System::Linux, &[Family::V4], None);
    settings.rules = Some(rules);
    steps(&settings, Some(&set), &target()).unwrap()
}

/// State of the host that the variant changes.
fn state(place: &ExecutionTarget, folder: &Path) -> String {
    let order = "sysctl -n net.ipv4.ip_forward; nft list ruleset | grep -c .";
    let said = place.run(&Order::new(order), None).unwrap().text();
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or("none".into());
    format!("{said}{}|{}", read("there"), read("not there"))
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_variant_is_put_on_a_host_and_taken_back_also_by_the_next_linerate() {
    let lab = SshLab::new(&["dut"]).patient();
    let folder = lab.folder().join("files");
    let journals = lab.folder().join("journals");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("there"), "old\n").unwrap();
    let target = lab.target("dut");
    lab.enter(|| {
        let place = Arc::new(ExecutionTarget::connect(&target, None).unwrap());
        let before = state(&place, &folder);
        assert!(before.ends_with("old\n|none"), "{before}");
        let wanted = variant(&folder);

        let mut changes = Changes::open(Arc::clone(&place), "dut", None, &journals, false).unwrap();
        changes.make(&wanted.steps, false, None).unwrap();
        let made = state(&place, &folder);
        assert!(
            made.starts_with("1\n") && made.ends_with("it's new\n|it's new\n"),
            "{made}"
        );
        assert_eq!(changes.pending().len(), 4);
        // A second linerate must not change the same host meanwhile.
        let busy = Changes::open(Arc::clone(&place), "dut", None, &journals, false)
            .unwrap_err()
            .to_string();
        assert!(busy.contains("dut: another linerate"), "{busy}");
        // As after kill -9: nothing is undone, but the next run finds the journal.
        drop(changes);
        assert_eq!(state(&place, &folder), made);
        let mut changes = Changes::open(Arc::clone(&place), "dut", None, &journals, false).unwrap();
        assert_eq!(changes.undo().unwrap().what.len(), 4);
        assert_eq!(state(&place, &folder), before);
        assert!(changes.pending().is_empty());
        drop(changes);
        assert!(
            Changes::open(Arc::clone(&place), "dut", None, &journals, false)
                .unwrap()
                .pending()
                .is_empty()
        );
    });
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_change_that_fails_says_what_and_those_before_it_are_undone() {
    let lab = SshLab::new(&["dut"]).patient();
    let journals = lab.folder().join("journals");
    let target = lab.target("dut");
    lab.enter(|| {
        let place = Arc::new(ExecutionTarget::connect(&target, None).unwrap());
        let before = state(&place, Path::new("/nonexistent"));
        let mut settings = Settings::default();
        settings
            .sysctls
            .insert("net.ipv4.ip_forward".into(), "1".into());
        settings
            .sysctls
            .insert("net.ipv4.no_such_setting".into(), "1".into());
        let wanted = steps(&settings, None, &self::target()).unwrap();
        let mut changes = Changes::open(Arc::clone(&place), "dut", None, &journals, false).unwrap();
        let error = changes
            .make(&wanted.steps, false, None)
            .unwrap_err()
            .to_string();
        for part in [
            "dut: sysctl net.ipv4.no_such_setting could not be read",
            "sysctl -n",
            "status",
        ] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(changes.pending().len(), 1);
        changes.undo().unwrap();
        assert_eq!(state(&place, Path::new("/nonexistent")), before);
    });
}
