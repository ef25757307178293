//! A Linux host without a firewall, in a network namespace: its rules go, and come back.

use linerate_hosts::dut_changes::{Input, Port, Program, Target, steps};
use linerate_measure::experiment::System;
use linerate_plan::settings::Settings;
use std::fmt::Write;
use std::process::Command;

/// A line for sh(1) that runs this program with the text of the file `was` as its input.
fn line(program: &Program) -> String {
    let quoted = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    let words: Vec<String> = program.argv.iter().map(quoted).collect();
    let input = match program.input {
        Input::Was => "\"$dir/was\"",
        _ => "/dev/null",
    };
    format!("{} <{input}", words.join(" "))
}

/// Runs a script in a network namespace that goes with it.
fn in_namespace(script: &str) -> String {
    let ended = Command::new("unshare")
        .args(["-n", "sh", "-euc", script])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{stderr}\n{script}");
    String::from_utf8(ended.stdout).unwrap()
}

#[test]
#[ignore = "needs root and nft"]
fn rules_of_nftables_are_off_and_come_back() {
    let port = |name: &str| Port {
        name: name.into(),
        addresses: Vec::new(),
        next_hops: Vec::new(),
        networks: Vec::new(),
    };
    let target = Target {
        system: System::Linux,
        inside: port("in0"),
        outside: port("out0"),
        config_save: None,
    };
    let settings = Settings {
        no_firewall: true,
        ..Settings::default()
    };
    let made = steps(&settings, None, &target).unwrap();
    let step = &made.steps[0];
    let (read, check) = (step.read.as_ref().unwrap(), step.check.as_ref().unwrap());
    let linerate_hosts::dut_changes::Undo::Run(back) = &step.undo else {
        panic!("{step:?}")
    };
    let mut script = String::from(
        "dir=$(mktemp -d)\ntrap 'rm -r \"$dir\"' EXIT\n\
         nft add table inet t\n\
         nft 'add chain inet t c { type filter hook forward priority 0; policy drop; }'\n\
         nft add rule inet t c ip saddr 10.0.0.1 counter accept\n\
         nft list ruleset >\"$dir/before\"\n",
    );
    let (read, is) = (line(&read.program), line(&check.read.program));
    let (apply, back) = (line(&step.apply), line(back));
    let _ = write!(
        script,
        "{is}\n{read} >\"$dir/was\"\n{apply}\n{is}\n{back}\n\
         nft list ruleset | cmp - \"$dir/before\"\n{is}\n"
    );
    let said = in_namespace(&script);
    assert_eq!(said, "nftables has rules\noff\nnftables has rules\n");
}
