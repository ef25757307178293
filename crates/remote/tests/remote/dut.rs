//! A device under test over the real sshd.

use crate::sshd::SshLab;
use linerate_hosts::systems::Kernel;
use linerate_plan::lab::Boot;
use linerate_remote::dut::{Known, RemoteDut};
use linerate_remote::{ExecutionTarget, Fault};
use std::sync::Arc;

fn dut(lab: &SshLab) -> RemoteDut {
    let known = Known {
        target: lab.target("dut"),
        machine: None,
        sudo: false,
        kernel: Kernel::Linux,
        ends: ["mgmt".into(), "lo".into()],
        may_reboot: true,
        boot: Boot::default(),
        power_cycle: vec![],
        console: vec![],
    };
    let place = Arc::new(ExecutionTarget::connect(&known.target, None).unwrap());
    RemoteDut::new(known, place, "dut", &lab.folder().join("journals"), None).unwrap()
}

#[test]
#[ignore = "needs root and openssh-server"]
fn one_whose_connection_was_lost_under_load_is_connected_again() {
    let mut lab = SshLab::new(&["dut"]);
    let client = lab.client().clone();
    let mut dut = client.enter(|| dut(&lab)).unwrap();
    let before = client.enter(|| dut.look().unwrap()).unwrap();
    lab.host("dut").kill_sshd();
    lab.host("dut").start();
    lab.host("dut").wait_listening();
    let after = client.enter(|| dut.look().unwrap()).unwrap();
    let packets = |seen: &linerate_hosts::agent::merge::Seen| seen.links["mgmt"]["rx_packets"];
    assert!(packets(&after) > packets(&before), "{after:?}");
}

#[test]
#[ignore = "needs root and openssh-server"]
fn one_that_booted_by_itself_is_not_measured_any_more() {
    let mut lab = SshLab::new(&["dut"]);
    let booted = lab.folder().join("booted");
    let answer = format!("[ ! -e {} ] && echo one || echo two", booted.display());
    let script = format!("#!/bin/sh\ncase $1 in *boot_id) {answer} ;; *) exec /bin/cat \"$@\" ;; esac\n");
    lab.host("dut").stand_in("cat", &script);
    let client = lab.client().clone();
    let mut dut = client.enter(|| dut(&lab)).unwrap();
    std::fs::write(booted, "").unwrap();
    lab.host("dut").kill_sshd();
    lab.host("dut").start();
    lab.host("dut").wait_listening();
    let error = client.enter(|| dut.look().unwrap_err()).unwrap();
    assert_eq!(error.fault, Fault::Booted, "{error}");
    assert!(error.to_string().contains("dut: it booted in the middle of a campaign"), "{error}");
}
