//! An event that takes a host down under load: a reboot. The host is a namespace behind a real sshd, whose `reboot` is a
//! stand-in: it forwards nothing for a while, has another boot then, and none of its settings.

use super::lab::{RealLab, reset};
use super::site::trials;
use serde_json::Value;
use std::fs;

/// How long the stand-in for a boot takes.
const BOOT_NS: u64 = 600_000_000;

/// Stand-ins of the DUT; returns the file that counts its boots. `cat` tells the boot's identity, as Linux does.
fn goes_down(lab: &RealLab) -> String {
    let (boots, boot_id) = (lab.scratch.file("boots"), lab.scratch.file("boot-id"));
    fs::write(&boot_id, "first\n").unwrap();
    fs::write(&boots, "").unwrap();
    let dut = &lab.ssh.hosts[1];
    dut.stand_in(
        "cat",
        &format!("#!/bin/sh\ncase $1 in */boot_id) exec /bin/cat {boot_id} ;; esac\nexec /bin/cat \"$@\"\n"),
    );
    let down = lab.scratch.file("down");
    let script = format!(
        "echo boot >>{boots}\necho 0 >/proc/sys/net/ipv4/ip_forward\n: >{down}.going\nnft flush ruleset\nsleep 0.6\n\
         grep -c boot {boots} >{boot_id}\necho 1 >/proc/sys/net/ipv4/ip_forward\n"
    );
    fs::write(&down, script).unwrap();
    // It ends with the other processes of its session, but for those in a session of their own.
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
        (trial.clone(), ns(&event["began_ns"]), ns(&outage["to_ns"]) - ns(&outage["from_ns"]))
    };
    let all = trials(&lab.records());
    let found: Vec<_> = all.iter().filter(|trial| trial["benchmark"] == "reset").map(of).collect();
    assert!(!found.is_empty(), "{shown}");
    found
}

/// Twice: the rules that the boot takes away are there again in the second trial.
#[test]
#[ignore = "needs root, openssh-server and nft"]
fn takes_minutes_a_host_boots_under_load_and_its_outage_is_measured() {
    let lab = RealLab::new();
    let boots = goes_down(&lab);
    let rules = "[variants.forwarding]\nrules = { tool = \"nftables\", filter = \"stateless\" }\n";
    let plan = reset("what = \"reboot\"")
        .replace("[variants.forwarding]\n", rules)
        .replace("duration = \"1 s\"", "duration = \"3 s\"")
        .replace("repeats = 1", "repeats = 2");
    let ended = lab.run(&plan, &[]);
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    let found = resets(&lab, &shown);
    // A trial that a stall of this machine made invalid is repeated.
    let booted = fs::read_to_string(boots).unwrap().lines().count();
    assert!(found.len() >= 2 && found.len() == booted, "{booted} boots: {shown}");
    for (trial, began_ns, out_ns) in found.into_iter().filter(|(trial, ..)| trial["audit"]["valid"] == true) {
        assert_eq!(trial["event"]["class"], "os-reset", "{trial:#}");
        assert_eq!(trial["event"]["ran"], serde_json::json!(["reboot"]), "{trial:#}");
        assert!((BOOT_NS..BOOT_NS + 900_000_000).contains(&out_ns), "{out_ns} ns: {trial:#}");
        let from_ns = trial["receiver"]["outages"][0]["from_ns"].as_u64().unwrap();
        assert!(from_ns.abs_diff(began_ns) < 300_000_000, "{from_ns} beside {began_ns}: {trial:#}");
        // Those of this outage: a stall of this machine may cost more.
        let missing = trial["receiver"]["outages"][0]["missing"].as_f64().unwrap();
        let by_loss_ns = 1e9 * missing / trial["asked_fps"].as_f64().unwrap();
        assert!((by_loss_ns - out_ns as f64).abs() < 50e6, "{by_loss_ns} and {out_ns} ns: {trial:#}");
    }
    for says in ["OS reset (4.2.1)".to_string(), format!(" with {booted} reboots of the DUT")] {
        assert!(ended.stdout.contains(&says), "no '{says}' in {shown}");
    }
    lab.is_as_it_was();
}
