//! Kernels in guests of QEMU, which emulates the CPUs: nothing is said of rates.

use crate::common::{Scratch, campaign, linerate, wait_for};
use linerate_measure::record::{Campaign, Guests, TrialRecord};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Where `scripts/setup test` puts a kernel.
const KERNELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/kernels");

fn kernel() -> String {
    let mut packages = fs::read_dir(KERNELS).unwrap();
    packages
        .next()
        .unwrap()
        .unwrap()
        .path()
        .display()
        .to_string()
}

/// The arguments of a tiny campaign.
fn tiny<'a>(kernel: &'a str, out: &'a str) -> Vec<&'a str> {
    let mut words = vec!["bench", "--emulated", "--family", "4", "--trials", "2"];
    words.extend(["--duration", "50ms", "--kernel", kernel, "--out", out]);
    words
}

/// Programs that a process has started.
fn children(pid: i32) -> Vec<String> {
    let of = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    of.split_whitespace().map(String::from).collect()
}

/// Whether a process is a guest. One that has ended has no arguments.
fn is_qemu(pid: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0)
        .any(|word| word == b"virtio-serial-pci")
}

#[test]
#[cfg_attr(
    not(kernel),
    ignore = "needs QEMU and a kernel's package: scripts/setup test"
)]
fn a_kernel_is_booted_and_measured_and_every_page_says_that_it_was_emulated() {
    let (kernel, files) = (kernel(), Scratch::new());
    let out = files.file("out");
    let ended = linerate(tiny(&kernel, &out)).run();
    assert!(
        ended.stdout.contains("EMULATED: all figures below are"),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
    let campaign: Campaign =
        serde_json::from_slice(&fs::read(Path::new(&out).join("campaign.json")).unwrap()).unwrap();
    assert_eq!(campaign.asked.guests, Some(Guests::Emulated));
    assert!(
        campaign
            .notes
            .iter()
            .any(|note| note.contains("in a guest of QEMU")),
        "{:?}",
        campaign.notes
    );
    let trials = fs::read_to_string(Path::new(&out).join("trials.jsonl")).unwrap();
    let trials: Vec<TrialRecord> = trials
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // Two of the tester alone, and two of the DUT; every frame is accounted for.
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        assert!(
            trial.generator.frames > 0 && trial.audit.unlocated == 0,
            "{:?}",
            trial.audit
        );
    }
    for page in [
        vec!["show", "--trials"],
        vec!["show", "--full"],
        vec!["explain"],
        vec!["show", "--format", "html"],
    ] {
        let (verb, rest) = page.split_first().unwrap();
        let shown = linerate([&[*verb, out.as_str()], rest].concat()).run();
        assert!(
            shown.stdout.contains("EMULATED"),
            "{page:?}: {}",
            shown.stdout
        );
    }
}

#[test]
#[cfg_attr(
    not(kernel),
    ignore = "needs QEMU and a kernel's package: scripts/setup test"
)]
fn whoever_is_killed_leaves_nothing() {
    let (kernel, files) = (kernel(), Scratch::new());
    let guest = |pid: i32| {
        wait_for("QEMU", || {
            children(pid).into_iter().find(|pid| is_qemu(pid))
        })
    };
    let out = files.file("first");
    let running = linerate(tiny(&kernel, &out)).start();
    let qemu: i32 = guest(running.pid()).parse().unwrap();
    // SAFETY: a system call on a child of this test's child.
    assert_eq!(unsafe { libc::kill(qemu, libc::SIGKILL) }, 0);
    let ended = running.wait().status(1);
    assert!(
        ended.stderr.contains("QEMU was killed by signal 9"),
        "{}",
        ended.stderr
    );
    assert!(!Path::new(&out).exists());

    let out = files.file("second");
    let running = linerate(tiny(&kernel, &out)).start();
    let qemu = guest(running.pid());
    running.signal(libc::SIGKILL);
    running.wait();
    wait_for("the end of QEMU", || (!is_qemu(&qemu)).then_some(()));
    assert!(!Path::new(&out).exists());
}

#[test]
#[cfg_attr(
    not(kernel),
    ignore = "needs QEMU and a kernel's package: scripts/setup test"
)]
fn takes_minutes_plans_measure_in_a_guest_what_this_kernel_may_lack() {
    let (kernel, files) = (kernel(), Scratch::new());
    // IPv6 in ipip, slot 9, and IPv4 in sit, slot 10, cannot be.
    let tunnels = [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17];
    for (plan, slots) in [
        ("flow-table", &tunnels[..6]),
        ("shaping", &tunnels[..5]),
        ("tunnels", &tunnels),
        ("vrf", &tunnels[..6]),
    ] {
        let out = files.file(plan);
        let words = ["run", plan, "--quick", "--emulated"];
        let ended = linerate(
            words
                .into_iter()
                .chain(["--kernel", &kernel, "--out", &out]),
        )
        .run();
        let trials = campaign::trials(Path::new(&out));
        for slot in slots {
            let carried = |trial: &&Value| {
                trial["slot"] == *slot
                    && trial["audit"]["unlocated"] == 0
                    && trial["receiver"]["frames"] != 0
            };
            assert!(
                trials.iter().any(|trial| carried(&trial)),
                "{plan}, slot {slot}: {ended:?}"
            );
        }
    }
}

/// One outer packet in ten is dropped on its way out of the first router.
#[test]
#[cfg_attr(
    not(kernel),
    ignore = "needs QEMU and a kernel's package: scripts/setup test"
)]
fn takes_minutes_a_known_loss_in_a_tunnel_is_found_to_the_frame() {
    let (kernel, files) = (kernel(), Scratch::new());
    let mut plan = String::from(LOSS);
    for dut in ["gre", "ipip", "sit", "geneve", "ipsec"] {
        let drop = "table ip t { chain c { type filter hook output priority 0; ip daddr 198.18.0.6 numgen inc mod 10 == 0 drop; }; }";
        let commands = format!("[{{ run = \"nft '{drop}'\", undo = \"nft delete table ip t\" }}]");
        plan += &format!(
            "[variants.{dut}]\noptional = true\ndut = \"{dut}\"\nrequires = {{ tools = [\"nft\"] }}\ncommands = {commands}\n"
        );
    }
    let (path, out) = (files.file("loss.toml"), files.file("out"));
    fs::write(&path, plan).unwrap();
    let ended = linerate([
        "run",
        &path,
        "--emulated",
        "--kernel",
        &kernel,
        "--out",
        &out,
    ])
    .run();
    let trials = campaign::trials(Path::new(&out));
    // Bytes that each tunnel adds to a frame of 80 bytes.
    let slots = [4, 5, 6, 9, 10, 11, 12, 13];
    let added = [24, 24, 20, 20, 50, 50, 54, 54];
    for (slot, added) in slots.into_iter().zip(added) {
        let of_slot = |trial: &&Value| trial["slot"] == slot;
        let trial = trials.iter().find(of_slot);
        let trial = trial.unwrap_or_else(|| panic!("slot {slot}: {ended:?}"));
        let losses = trial["losses"].as_array().unwrap();
        let lost = |full: bool| -> u64 {
            let at = |loss: &&Value| loss["place"].as_str().unwrap().ends_with("ring full") == full;
            let frames = losses
                .iter()
                .filter(at)
                .map(|loss| loss["frames"].as_u64().unwrap());
            frames.sum()
        };
        let entered = trial["generator"]["frames"].as_u64().unwrap() - lost(true);
        assert_eq!(trial["audit"]["unlocated"], 0, "{trial}");
        assert!(
            (10 * lost(false)).abs_diff(entered) < 10,
            "slot {slot}: {losses:?}"
        );
        assert!(entered >= 10, "slot {slot}: {entered}");
        let between = |what: &str| {
            let of_link = |prefix: &str| {
                let named = |(name, _): &(&String, &Value)| {
                    name.starts_with(prefix) && name.ends_with(what)
                };
                trial["dut"].as_object().unwrap().iter().find(named)
            };
            let (_, n) = of_link("under0.").or_else(|| of_link("out")).unwrap();
            n.as_u64().unwrap()
        };
        let [packets, bytes] = ["tx_packets", "tx_bytes"].map(between);
        assert_eq!(packets, entered - lost(false), "slot {slot}");
        assert_eq!(bytes, packets * (80 + added), "slot {slot}");
    }
}

/// A plan of tunnels that lose.
const LOSS: &str = r#"title = "Losses in tunnels"
question = "Is a known loss found?"

[traffic]
size = "84 B"

[variants.forwarding]

[factors.family]
sets = "traffic.family"
levels = ["IPv4", "IPv6"]

[trials]
duration = "50 ms"
blocks = 1

"#;

#[test]
fn what_is_no_kernel_is_refused_before_anything_is_booted() {
    for (kernel, why) in [
        ("/bin/sh", "is no kernel: an ELF file"),
        ("/dev/null", "is no kernel"),
        ("0.1-none", "there is no kernel 0.1-none"),
    ] {
        let ended = linerate(["bench", "--emulated", "--kernel", kernel]).run();
        assert!(ended.stderr.contains(why), "{kernel}: {}", ended.stderr);
    }
    let ended = linerate(["bench", "--emulated"]).run();
    assert!(
        ended.stderr.contains("--emulated is for kernels"),
        "{}",
        ended.stderr
    );
}
