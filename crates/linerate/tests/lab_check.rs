//! `linerate lab check`: labs of hosts with the real sshd, sound and broken in many ways at once.

mod bsd;
mod linux;

use crate::common::{Ended, LINERATE, Program, Scratch, linerate};
use crate::sshd::SshLab;
use serde_json::Value;
use std::fs;

/// The program on a lab file, in the network from which the hosts of a lab are reached.
fn check(lab: &SshLab, text: &str, more: &[&str]) -> Ended {
    let scratch = Scratch::new();
    // Other tests leave hosts no CPU for seconds.
    let patient = text.replace("\nssh = ", "\nsilence = \"20 s\"\nssh = ");
    fs::write(scratch.file("LAB.toml"), patient).unwrap();
    let prefix = lab.prefix();
    let config = lab.config().display().to_string();
    let fixed = [
        LINERATE,
        "lab",
        "check",
        "LAB.toml",
        "--ssh-config",
        &config,
    ];
    let args = prefix[1..]
        .iter()
        .map(String::as_str)
        .chain(fixed)
        .chain(more.iter().copied());
    Program::new(&prefix[0])
        .args(args)
        .dir(scratch.path())
        .run()
        .no_panic()
}

/// The problems of a host: severity, message, evidence, remedy. The lab's own are those of "".
fn problems<'j>(json: &'j Value, host: &str) -> Vec<[&'j str; 4]> {
    let of = |p: &&Value| p["subject"].as_str().unwrap_or("") == host;
    let text = |p: &'j Value, key: &str| p[key].as_str().unwrap();
    let all = json["problems"].as_array().unwrap();
    all.iter()
        .filter(of)
        .map(|p| ["severity", "message", "evidence", "remedy"].map(|key| text(p, key)))
        .collect()
}

/// Asserts that a host has a problem with these words.
#[track_caller]
fn has(json: &Value, host: &str, severity: &str, words: [&str; 3]) {
    let all = problems(json, host);
    let fits = |p: &&[&str; 4]| {
        p[0] == severity
            && p[1..]
                .iter()
                .zip(words)
                .all(|(text, word)| text.contains(word))
    };
    assert!(
        all.iter().any(|p| fits(&p)),
        "{host}: {severity} {words:?} is not among {all:#?}"
    );
}

#[test]
fn a_lab_file_with_faults_is_told_with_all_of_them_and_nobody_is_asked() {
    let scratch = Scratch::new();
    let text = "isolated = 1\n[hosts.a]\nrole = \"dut\"\nssh = \"-oProxyCommand=touch x\"\n";
    fs::write(scratch.file("LAB.toml"), text).unwrap();
    let says = ["LAB.toml:1:", "LAB.toml:4:", "this lab has no generator"];
    linerate(["lab", "check", "LAB.toml"])
        .dir(scratch.path())
        .run()
        .fails(2, &says);
    linerate(["lab", "check", "nowhere"])
        .dir(scratch.path())
        .run()
        .fails(1, &["cannot read the lab file nowhere"]);
}
