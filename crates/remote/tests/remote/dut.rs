//! A device under test over the real sshd.

use crate::sshd::SshLab;
use linerate_hosts::systems::Kernel;
use linerate_plan::lab::Boot;
use linerate_plan::settings::EventKind;
use linerate_remote::dut::{Known, RemoteDut};
use linerate_remote::{ExecutionTarget, Fault};
use std::sync::Arc;

fn dut(lab: &SshLab) -> RemoteDut {
    powered(lab, "")
}

/// With this program for its power.
fn powered(lab: &SshLab, power: &str) -> RemoteDut {
    let known = Known {
        target: lab.target("dut"),
        machine: None,
        sudo: false,
        kernel: Kernel::Linux,
        ends: ["mgmt".into(), "lo".into()],
        may_reboot: true,
        boot: Boot::default(),
        power_cycle: power.split_whitespace().map(String::from).collect(),
        console: vec![],
    };
    let place = Arc::new(ExecutionTarget::connect(&known.target, None).unwrap());
    RemoteDut::new(known, place, "dut", &lab.folder().join("journals"), None).unwrap()
}

#[test]
#[ignore = "needs root and openssh-server"]
fn one_whose_connection_was_lost_under_load_is_connected_again() {
    let mut lab = SshLab::new(&["dut"]).patient();
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
    let mut lab = SshLab::new(&["dut"]).patient();
    let booted = lab.folder().join("booted");
    let answer = format!("[ ! -e {} ] && echo one || echo two", booted.display());
    let script =
        format!("#!/bin/sh\ncase $1 in *boot_id) {answer} ;; *) exec /bin/cat \"$@\" ;; esac\n");
    lab.host("dut").stand_in("cat", &script);
    let client = lab.client().clone();
    let mut dut = client.enter(|| dut(&lab)).unwrap();
    std::fs::write(booted, "").unwrap();
    lab.host("dut").kill_sshd();
    lab.host("dut").start();
    lab.host("dut").wait_listening();
    let error = client.enter(|| dut.look().unwrap_err()).unwrap();
    assert_eq!(error.fault, Fault::Booted, "{error}");
    assert!(
        error
            .to_string()
            .contains("dut: it booted in the middle of a campaign"),
        "{error}"
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn power_that_is_off_for_less_than_a_quarter_of_a_minute_is_no_power_cut() {
    let lab = SshLab::new(&["dut"]).patient();
    for (program, says) in [
        (
            "true",
            " s, and the power must be off for 15 s (RFC 6201, section 4.3.1)",
        ),
        ("false", "dut: false could not turn its power off and on"),
    ] {
        let event = || {
            let mut dut = powered(&lab, program);
            let (done, ran) = dut.carry_out_event(EventKind::PowerOff, &[], 0, || false);
            // One whose power was never off is not waited for.
            (
                done.unwrap_err().to_string(),
                ran,
                (program == "false").then(|| dut.finish_reboot()),
                dut.reboots(),
            )
        };
        let (said, ran, waited, reboots) = lab.enter(event);
        assert!(said.contains(says), "{said}");
        assert_eq!(
            (ran, reboots),
            (vec![program.to_string()], u32::from(program == "true"))
        );
        assert!(waited.is_none_or(|waited| waited.is_ok()));
    }
}
