//! Events that take a host down under load: a reboot, and a power cut. The host is a namespace behind a real sshd, whose `reboot` and
//! whose power are stand-ins: it forwards nothing for a while, has another boot then, and none of its settings.

use super::lab::{RealLab, reset};
use super::site::trials;
use serde_json::Value;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;

/// How long the stand-in for a boot takes.
const BOOT_NS: u64 = 600_000_000;

/// A stand-in of the DUT's `cat` tells the boot's identity, as Linux does: it is in the file that this returns.
fn tells_boots(lab: &RealLab) -> String {
    let boot_id = lab.scratch.file("boot-id");
    fs::write(&boot_id, "first\n").unwrap();
    lab.ssh.hosts[1].stand_in(
        "cat",
        &format!("#!/bin/sh\ncase $1 in */boot_id) exec /bin/cat {boot_id} ;; esac\nexec /bin/cat \"$@\"\n"),
    );
    boot_id
}

/// Stand-ins of the DUT; returns the file that counts its boots.
fn goes_down(lab: &RealLab) -> String {
    let (boots, boot_id) = (lab.scratch.file("boots"), tells_boots(lab));
    fs::write(&boots, "").unwrap();
    let dut = &lab.ssh.hosts[1];
    let down = lab.scratch.file("down");
    let script = format!(
        "echo boot >>{boots}\necho 0 >/proc/sys/net/ipv4/ip_forward\n: >{down}.going\nnft flush ruleset\nsleep 0.6\n\
         grep -c boot {boots} >{boot_id}\necho 1 >/proc/sys/net/ipv4/ip_forward\n"
    );
    fs::write(&down, script).unwrap();
    // The command ends with the other processes of its session, but for those in a session of their own.
    let detached = format!(
        "#!/bin/sh\nrm -f {down}.going\nsetsid sh {down} >/dev/null 2>&1 </dev/null &\n\
         until [ -e {down}.going ]; do sleep 0.02; done\n"
    );
    // No program of this machine's own may be reached.
    for program in ["reboot", "shutdown", "halt", "poweroff"] {
        dut.stand_in(program, &detached);
    }
    boots
}

/// The reset trials, each with the time of its event, and of the outage.
fn resets(lab: &RealLab, shown: &str) -> Vec<(Value, u64, u64)> {
    let of = |trial: &Value| {
        let (event, outage) = (&trial["event"], &trial["receiver"]["outages"][0]);
        let ns = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{trial:#}"));
        (
            trial.clone(),
            ns(&event["began_ns"]),
            ns(&outage["to_ns"]) - ns(&outage["from_ns"]),
        )
    };
    let all = trials(&lab.records());
    let found: Vec<_> = all
        .iter()
        .filter(|trial| trial["benchmark"] == "reset")
        .map(of)
        .collect();
    assert!(!found.is_empty(), "{shown}");
    found
}

/// A program that cuts the power for a number of seconds: all links of the DUT are dead, also that of its management. It writes down when the
/// power went and came, and boots the DUT then: with its static routes, and without its rules.
fn cuts_power(lab: &RealLab, seconds: u32) -> String {
    let (boot_id, path) = (tells_boots(lab), lab.scratch.file("power"));
    let descriptor = lab.ssh.hosts[1].netns.as_fd().as_raw_fd();
    let text = format!(
        "#!/bin/sh -e
        dut() {{ nsenter --net=/proc/{}/fd/{descriptor} \"$@\"; }}
        ip link set c1 down
        dut ip link set in0 down
        dut ip link set out0 down
        date +%s%N >>$0.times
        sleep {seconds}
        date +%s%N >>$0.times
        dut nft flush ruleset
        dut ip -batch - <<-EOF
        link set in0 up
        link set out0 up
        neigh replace 198.18.128.2 lladdr 02:00:00:00:00:01 dev in0 nud permanent
        neigh replace 198.18.128.3 lladdr 02:00:00:00:00:05 dev in0 nud permanent
        neigh replace 198.19.128.2 lladdr 02:00:00:00:00:04 dev out0 nud permanent
        route replace 198.18.0.0/16 via 198.18.128.2
        route replace 198.19.0.0/16 via 198.19.128.2
        EOF
        echo second >{boot_id}
        ip link set c1 up\n",
        std::process::id()
    );
    fs::write(&path, text.replace("\n        ", "\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let file = fs::read_to_string(lab.scratch.file("LAB.toml")).unwrap();
    let power = format!("role = \"dut\"\npower-cycle = [\"{path}\"]");
    lab.write("LAB.toml", &file.replace("role = \"dut\"", &power));
    path
}

const RULES: &str =
    "[variants.forwarding]\nrules = { tool = \"nftables\", filter = \"stateless\" }\n";

/// The power is off for 15 s, which the time of the reset does not include.
#[test]
#[ignore = "needs root, openssh-server and nft"]
fn takes_minutes_the_power_of_a_host_is_cut_under_load_and_its_outage_is_measured() {
    let lab = RealLab::new();
    let power = cuts_power(&lab, 15);
    let plan = reset("what = \"power-off\"")
        .replace("[variants.forwarding]\n", RULES)
        .replace("duration = \"1 s\"", "duration = \"20 s\"");
    let ended = lab.run(&plan, &["--full"]);
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    let found = resets(&lab, &shown);
    let times = fs::read_to_string(format!("{power}.times")).unwrap();
    let times: Vec<u64> = times.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(times.len(), 2 * found.len(), "{times:?}: {shown}");
    assert!(
        times.chunks(2).all(|off| off[1] - off[0] >= 15_000_000_000),
        "{times:?}"
    );
    let (trial, began_ns, out_ns) = found.last().unwrap();
    assert_eq!(
        (&trial["audit"]["valid"], &trial["reboots"]),
        (&true.into(), &1.into()),
        "{trial:#}"
    );
    assert_eq!(trial["event"]["class"], "power-interruption", "{trial:#}");
    assert_eq!(
        trial["event"]["ran"],
        serde_json::json!([power]),
        "{trial:#}"
    );
    assert!(
        trial["event"]["ended_ns"].as_u64().unwrap() >= began_ns + 15_000_000_000,
        "{trial:#}"
    );
    assert!(
        (15_000_000_000..17_000_000_000).contains(out_ns),
        "{out_ns} ns: {trial:#}"
    );
    let summary: Value = serde_json::from_str(
        &fs::read_to_string(lab.scratch.file("records/summary.json")).unwrap(),
    )
    .unwrap();
    let of_reset = |tested: &&Value| tested["test"] == "reset";
    let tested = summary["benchmarks"][0]["tests"]
        .as_array()
        .unwrap()
        .iter()
        .find(of_reset)
        .unwrap();
    let run = &tested["figures"]["reset"]["runs"][0];
    assert_eq!(run["by_stamps_ns"], out_ns - 15_000_000_000, "{tested:#}");
    // A stall of this machine may cost frames besides.
    let missing = trial["receiver"]["outages"][0]["missing"].as_f64().unwrap();
    let by_loss_ns = 1e9 * missing / trial["asked_fps"].as_f64().unwrap();
    assert!(
        (by_loss_ns - *out_ns as f64).abs() < 50e6,
        "{by_loss_ns} ns: {trial:#}"
    );
    assert!(
        run["by_loss_ns"].as_f64().unwrap() + 15e9 >= by_loss_ns - 50e6,
        "{tested:#}"
    );
    assert!(
        ended.stdout.contains("power interruption (4.3.1)"),
        "{shown}"
    );
    lab.is_as_it_was();
}

/// Twice: the rules that the boot takes away are there again in the second trial.
#[test]
#[ignore = "needs root, openssh-server and nft"]
fn takes_minutes_a_host_boots_under_load_and_its_outage_is_measured() {
    let lab = RealLab::new();
    let boots = goes_down(&lab);
    let plan = reset("what = \"reboot\"")
        .replace("[variants.forwarding]\n", RULES)
        .replace("duration = \"1 s\"", "duration = \"3 s\"")
        .replace("repeats = 1", "repeats = 2");
    let ended = lab.run(&plan, &["--full"]);
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    let found = resets(&lab, &shown);
    // A trial that a stall of this machine made invalid is repeated.
    let booted = fs::read_to_string(boots).unwrap().lines().count();
    assert!(
        found.len() >= 2 && found.len() == booted,
        "{booted} boots: {shown}"
    );
    for (trial, began_ns, out_ns) in found
        .into_iter()
        .filter(|(trial, ..)| trial["audit"]["valid"] == true)
    {
        assert_eq!(trial["event"]["class"], "os-reset", "{trial:#}");
        assert_eq!(
            trial["event"]["ran"],
            serde_json::json!(["reboot"]),
            "{trial:#}"
        );
        assert!(
            (BOOT_NS..BOOT_NS + 900_000_000).contains(&out_ns),
            "{out_ns} ns: {trial:#}"
        );
        let from_ns = trial["receiver"]["outages"][0]["from_ns"].as_u64().unwrap();
        assert!(
            from_ns.abs_diff(began_ns) < 300_000_000,
            "{from_ns} beside {began_ns}: {trial:#}"
        );
        // Frames missing in this outage: a stall of this machine may cost more.
        let missing = trial["receiver"]["outages"][0]["missing"].as_f64().unwrap();
        let by_loss_ns = 1e9 * missing / trial["asked_fps"].as_f64().unwrap();
        assert!(
            (by_loss_ns - out_ns as f64).abs() < 50e6,
            "{by_loss_ns} and {out_ns} ns: {trial:#}"
        );
    }
    for says in [
        "OS reset (4.2.1)".to_string(),
        format!(" with {booted} reboots of the DUT"),
    ] {
        assert!(ended.stdout.contains(&says), "no '{says}' in {shown}");
    }
    lab.is_as_it_was();
}
