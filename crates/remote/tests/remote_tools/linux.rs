//! Tools of this machine: iperf3 through a router, trafgen, and netperf's words from a stand-in.

use crate::sshd::SshLab;
use linerate_hosts::tools::{Task, one_flow};
use linerate_linux::net::netlink::{Route, VethEnd};
use linerate_measure::trial::{Timing, rates};
use linerate_plan::Backend;
use linerate_remote::TrialResult;
use linerate_remote::external::{ToolHost, ToolTrial};
use linerate_remote::{ExecutionTarget, RemoteError};
use linerate_wire::{Family, FrameMix, FrameSpec, Load, MacAddr, Traffic, Transport};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const TIMING: Timing = Timing {
    warm_up_ns: 500_000_000,
    run_ns: 2_000_000_000,
    interval_ns: 1_000_000_000,
    quiet_ns: 20_000_000,
    drain_ns: 500_000_000,
    settle_ns: 0,
    least_drain_ns: 0,
};

/// `gen` and `rec`, and `dut`, which forwards between them.
fn routed() -> SshLab {
    let lab = SshLab::new(&["gen", "dut", "rec"]).patient();
    let end = |at: usize| Route::open(&lab.hosts[at].netns).unwrap();
    for (at, names, addresses) in [
        (0, ["g0", "d0"], ["198.18.200.1", "198.18.200.2"]),
        (2, ["r0", "d1"], ["198.18.201.1", "198.18.201.2"]),
    ] {
        let (host, dut) = (end(at), end(1));
        let end = |side: usize, index| {
            let mac = [2, 3, 0, 0, at as u8, side as u8 + 1];
            VethEnd {
                name: names[side].into(),
                mac,
                mtu: 1500,
                index: index + at as u32,
            }
        };
        host.create_veth(&end(0, 2000), &end(1, 2100), &lab.hosts[1].netns, 1)
            .unwrap();
        for ((route, name), address) in [(&host, names[0]), (&dut, names[1])]
            .into_iter()
            .zip(addresses)
        {
            let index = route.link(name).unwrap().index;
            route
                .add_address(index, address.parse::<IpAddr>().unwrap(), 24)
                .unwrap();
            route.set_up(index, true).unwrap();
        }
        let there = if at == 0 {
            "198.18.201.0/24"
        } else {
            "198.18.200.0/24"
        };
        run(
            &lab,
            at,
            "ip",
            &["route", "add", there, "via", addresses[1]],
        );
    }
    run(&lab, 1, "sysctl", &["-qw", "net.ipv4.ip_forward=1"]);
    lab
}

fn run(lab: &SshLab, host: usize, program: &str, args: &[&str]) {
    assert!(
        lab.hosts[host]
            .netns
            .command(program)
            .args(args)
            .status()
            .unwrap()
            .success()
    );
}

fn host(lab: &SshLab, name: &str, tool: Backend) -> ToolHost {
    let place = lab
        .enter(|| ExecutionTarget::connect(&lab.target(name), None))
        .unwrap();
    ToolHost {
        place: Arc::new(place),
        tool,
        sudo: false,
    }
}

fn task(interface: &str) -> Task {
    let nowhere = MacAddr::default();
    let frame = FrameSpec::new(nowhere, nowhere, Family::V4, Transport::Udp);
    let flows = one_flow(
        "198.18.200.1".parse().unwrap(),
        "198.18.201.1".parse().unwrap(),
        5201,
    )
    .unwrap();
    Task {
        interface: interface.into(),
        traffic: Traffic::new(frame, FrameMix::single(200), flows),
        load: Load {
            rate: Some(5000.0),
            ..Load::lasting(Duration::from_secs(1))
        },
        threads: 1,
        link_wait_s: 0,
    }
}

fn changed(mut task: Task, change: impl FnOnce(&mut Task)) -> Task {
    change(&mut task);
    task
}

fn run_trial(
    lab: &SshLab,
    tool: Backend,
    sent: Task,
    stop: &AtomicBool,
) -> Result<TrialResult, RemoteError> {
    let receiver = host(lab, "rec", tool);
    let counted = Task {
        interface: "r0".into(),
        ..sent.clone()
    };
    let trial = ToolTrial {
        generators: &[(host(lab, "gen", tool), sent)],
        receiver: Some((&receiver, counted)),
        timing: TIMING,
        patience: Duration::from_secs(3),
    };
    let began = Instant::now();
    let result = trial.run(stop);
    assert!(began.elapsed() < Duration::from_secs(60), "{result:?}");
    for host in &lab.hosts {
        assert_eq!(
            host.running(&format!("{} ", tool.name())),
            0,
            "{:?}",
            host.processes()
        );
    }
    result
}

#[track_caller]
fn seen(result: &TrialResult) -> (f64, f64) {
    // A stall of this machine shortens a load, which is told.
    let faults = &result.outcome.faults;
    let is_stall = |fault: &String| fault.starts_with("the load ended ");
    assert!(faults.iter().all(is_stall), "{result:#?}");
    let rates = rates(&result.outcome.samples).unwrap();
    let is_whole = (rates.seconds - TIMING.run_ns as f64 / 1e9).abs() < 1e-6;
    assert!(is_whole || !faults.is_empty(), "{rates:?}");
    (rates.offered, rates.received)
}

#[test]
#[ignore = "needs root, openssh-server and iperf3"]
fn iperf3_through_a_router() {
    let lab = routed();
    let result = run_trial(&lab, Backend::Iperf3, task("g0"), &AtomicBool::new(false)).unwrap();
    let (offered, received) = seen(&result);
    let (sent, counted) = (result.sent[0].frames, result.received[0].frames);
    // Where other programs have the CPUs, it sends fewer, and sockets and queues drop frames.
    assert!(
        offered > 0.0 && received > 0.0 && 0 < counted && counted <= sent && sent <= 50_000,
        "{result:?}"
    );
    assert_eq!(result.sent[0].bytes, 196 * sent);
    let result = run_trial(&lab, Backend::Iperf3, stream(), &AtomicBool::new(false)).unwrap();
    let (offered, received) = seen(&result);
    assert!(offered > 0.0 && received > 0.0, "{result:?}");
    assert!(
        result.received[0].frames <= result.sent[0].frames,
        "{result:?}"
    );
}

/// A stream of full segments, as many as there are.
fn stream() -> Task {
    changed(task("g0"), |t| {
        (t.traffic.frame.transport, t.traffic.mix) = (Transport::Tcp, FrameMix::single(1518));
        t.load.rate = None;
    })
}

#[test]
#[ignore = "needs root, openssh-server and iperf3"]
fn figures_iperf3_keeps_its_pace_through_a_router() {
    let lab = routed();
    let near = |rate: f64| (rate / 5000.0 - 1.0).abs() < 0.02;
    let result = run_trial(&lab, Backend::Iperf3, task("g0"), &AtomicBool::new(false)).unwrap();
    let (offered, received) = seen(&result);
    let (sent, counted) = (result.sent[0].frames, result.received[0].frames);
    assert!(
        near(offered) && near(received) && sent - counted <= sent / 50,
        "{result:?}"
    );
    let result = run_trial(&lab, Backend::Iperf3, stream(), &AtomicBool::new(false)).unwrap();
    let (offered, received) = seen(&result);
    println!("one stream: {offered:.0} segments/s sent, {received:.0} received");
    assert!(
        offered > 1000.0 && (received / offered - 1.0).abs() < 0.1,
        "{result:?}"
    );
}

#[test]
#[ignore = "needs root, openssh-server and iperf3"]
fn a_router_that_does_not_forward_is_told_by_iperf3() {
    let lab = routed();
    run(&lab, 1, "sysctl", &["-qw", "net.ipv4.ip_forward=0"]);
    run(
        &lab,
        1,
        "ip",
        &["route", "add", "unreachable", "198.18.201.1"],
    );
    run(&lab, 1, "sysctl", &["-qw", "net.ipv4.ip_forward=1"]);
    let error = run_trial(&lab, Backend::Iperf3, task("g0"), &AtomicBool::new(false)).unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("gen: iperf3 failed while sending on g0: "),
        "{error}"
    );
    assert!(
        error.contains("TCP and UDP 5201 through the DUT's firewall"),
        "{error}"
    );
}

#[test]
#[ignore = "needs root, openssh-server and iperf3"]
fn ctrl_c_ends_iperf3_at_both_ends() {
    let (lab, stop) = (routed(), AtomicBool::new(false));
    let before = frames_in(&lab, 2, "r0");
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            // The interrupt comes under load: after 100 frames of iperf3.
            let sends = || frames_in(&lab, 2, "r0") >= before + 100;
            crate::sshd::wait_until("the load", Duration::from_secs(60), sends);
            stop.store(true, Ordering::Relaxed);
        });
        run_trial(&lab, Backend::Iperf3, task("g0"), &stop).unwrap()
    });
    assert!(
        result.sent[0].frames > 0 && result.outcome.faults.is_empty(),
        "{result:?}"
    );
}

#[test]
#[ignore = "needs root, openssh-server and trafgen"]
fn trafgen_is_a_generator() {
    let (offered, result) = by_trafgen();
    assert!(offered > 0.0 && result.sent[0].frames > 0, "{result:?}");
}

#[test]
#[ignore = "needs root, openssh-server and trafgen"]
fn figures_trafgen_keeps_its_pace() {
    let (offered, result) = by_trafgen();
    assert!((offered / 20_000.0 - 1.0).abs() < 0.05, "{result:?}");
}

/// Frames that came in at an interface of a host.
fn frames_in(lab: &SshLab, host: usize, interface: &str) -> u64 {
    let told = lab.hosts[host]
        .netns
        .command("ip")
        .args(["-s", "-j", "link", "show", interface])
        .output();
    let told: serde_json::Value = serde_json::from_slice(&told.unwrap().stdout).unwrap();
    told[0]["stats64"]["rx"]["packets"].as_u64().unwrap()
}

/// A load by trafgen, of which all frames arrive; the rate at which it sent.
fn by_trafgen() -> (f64, TrialResult) {
    let lab = routed();
    let before = frames_in(&lab, 2, "r0");
    let sent = changed(task("g0"), |t| {
        t.traffic.frame.dst_mac = "02:03:00:00:00:02".parse().unwrap();
        t.load.rate = Some(20_000.0);
    });
    let here = ExecutionTarget::Here {
        name: "here".into(),
        netns: Some(lab.hosts[0].netns.clone()),
    };
    let generators = [(
        ToolHost {
            place: Arc::new(here),
            tool: Backend::Trafgen,
            sudo: false,
        },
        sent,
    )];
    let patience = Duration::from_secs(3);
    let trial = ToolTrial {
        generators: &generators,
        receiver: None,
        timing: TIMING,
        patience,
    };
    let result = trial.run(&AtomicBool::new(false)).unwrap();
    assert_eq!(lab.hosts[0].running("trafgen"), 0);
    let (offered, received) = seen(&result);
    assert_eq!(received, 0.0, "{result:?}");
    let arrived = frames_in(&lab, 2, "r0") - before;
    assert!(
        arrived >= result.sent[0].frames && arrived < result.sent[0].frames + 50,
        "{arrived}"
    );
    (offered, result)
}

/// netperf as it prints with `-D 1 -k`: a second each second, and its totals. 90 of 100 datagrams arrive. Each second ends at
/// its instant, however late the shell wakes.
const NETPERF: &str = "#!/bin/sh
seconds=0
while [ $# -gt 0 ]; do [ \"$1\" = -l ] && seconds=$2; shift; done
end=$(date +%s%3N)
n=0
while [ $n -lt $seconds ]; do
    n=$((n + 1))
    end=$((end + 1000))
    left=$((end - $(date +%s%3N)))
    [ $left -le 0 ] || sleep $((left / 1000)).$(printf %03d $((left % 1000)))
    echo \"Interim result:    6.16 10^6bits/s over 1.000 seconds ending at $((end / 1000)).$(printf %03d $((end % 1000)))\"
done
echo ELAPSED_TIME=$seconds.00
echo THROUGHPUT=6.16
echo THROUGHPUT_UNITS=10^6bits/s
echo LOCAL_SEND_CALLS=$((n * 5000))
echo LOCAL_BYTES_SENT=$((n * 770000))
echo REMOTE_RECV_CALLS=$((n * 4500))
echo REMOTE_BYTES_RECVD=$((n * 693000))
";

#[test]
#[ignore = "needs root and openssh-server"]
fn netperf_knows_what_the_far_end_got() {
    let lab = routed();
    lab.hosts[0].stand_in("netperf", NETPERF);
    lab.hosts[2].stand_in(
        "netserver",
        "#!/bin/sh\necho Starting netserver with host\nexec sleep 600\n",
    );
    let sent = changed(task("g0"), |t| t.load.rate = None);
    let result = run_trial(&lab, Backend::Netperf, sent, &AtomicBool::new(false)).unwrap();
    let (offered, received) = seen(&result);
    assert!(
        (offered / 5000.0 - 1.0).abs() < 0.02 && (received / 4500.0 - 1.0).abs() < 0.02,
        "{result:?}"
    );
    assert_eq!(result.received[0].frames * 10, result.sent[0].frames * 9);
    assert_eq!(lab.hosts[2].running("sleep 600"), 0);
}
