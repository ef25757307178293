//! One boot and a short campaign, a guest as tester, and a guest for a person.

use super::guest::{CARDS, KERNELS, Stand, VIRTIO};
use super::lab::GuestLab;
use super::state::State;
use crate::common::campaign::sent_and_received;
use crate::hosts_beside::lab::gentle;

#[test]
#[cfg_attr(stand, ignore = "needs root")]
#[cfg_attr(
    not(stand),
    ignore = "needs qemu-system-x86 and Debian's kernel: scripts/stand 6.1"
)]
fn takes_minutes_a_router_with_a_real_driver_is_measured_and_is_as_it_was() {
    let lab = GuestLab::router(Stand {
        kernel: "6.1",
        card: VIRTIO,
    });
    let before = State::of(&lab.guest);
    assert!(
        before.has("ethtool -l in0: now Combined:\t4"),
        "{before:#?}"
    );
    let plan = gentle().replace("blocks = 8", "blocks = 1");
    let ended = lab.run(&plan, &[]);
    // Where the machine is busy, a trial may not be offered its rate.
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
    let trials = lab.trials();
    assert!(trials.len() >= 2, "{ended:?}");
    for trial in trials {
        let (sent, received) = sent_and_received(&trial);
        let taken = trial["dut"]["in0: rx_packets"].as_u64().unwrap();
        assert!(
            received > 0 && sent >= received && taken >= received,
            "{trial:#}"
        );
    }
    assert_eq!(before.differences(&State::of(&lab.guest)), [""; 0]);
}

#[test]
#[cfg_attr(stand, ignore = "needs root")]
#[cfg_attr(
    not(stand),
    ignore = "needs qemu-system-x86 and Debian's kernel: scripts/stand 6.1"
)]
fn takes_minutes_a_guest_is_the_tester() {
    let lab = GuestLab::tester(Stand {
        kernel: "6.1",
        card: VIRTIO,
    });
    let ended = lab.run(&gentle().replace("blocks = 8", "blocks = 1"), &[]);
    let trials = lab.trials();
    assert_eq!(trials.len(), 2, "{ended:?}");
    for trial in trials {
        let (sent, received) = sent_and_received(&trial);
        assert!(received > 0 && sent >= received, "{trial:#}");
    }
}

/// Other kernels load the programs of connections, and both ends work there. (Before Linux 6.5, trials through a DUT may be invalid.)
#[test]
#[cfg_attr(stand, ignore = "needs root")]
#[cfg_attr(
    not(stand),
    ignore = "needs qemu-system-x86 and Debian's kernels: scripts/stand 6.1 6.12"
)]
fn takes_minutes_guests_open_connections() {
    for kernel in KERNELS {
        let lab = GuestLab::router(Stand {
            kernel,
            card: VIRTIO,
        });
        let bench = "cd /run; linerate bench --connections request,udp --family both --trials 1 --duration 50ms --cpus 3 --out r";
        lab.guest.on(&format!("{bench} >said 2>&1 || true"));
        let read = |file: &str| lab.guest.on(&format!("cat /run/{file}"));
        let campaign: serde_json::Value = serde_json::from_str(&read("r/campaign.json")).unwrap();
        let trials: Vec<serde_json::Value> = read("r/trials.jsonl")
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let alone = |trial: &&serde_json::Value| {
            campaign["slots"][trial["slot"].as_u64().unwrap() as usize]["plan_variant"]
                == "tester-baseline"
        };
        let alone: Vec<_> = trials.iter().filter(alone).collect();
        assert_eq!(alone.len(), 4, "{kernel}: {}", read("said"));
        for trial in alone {
            let opened = &trial["opened"];
            let checks = trial["audit"]["checks"].as_array().unwrap();
            let holds = |name: &str| {
                checks
                    .iter()
                    .filter(|check| check["name"] == name)
                    .all(|check| check["ok"] == true)
            };
            assert!(
                holds("conservation") && opened["attempted"].as_u64() > Some(0),
                "{kernel}: {trial:#}"
            );
            // Linux 6.1 may leave softirqs to a thread, and on a busy machine linerate may have no time for a sample: such a trial
            // is invalid, and says so.
            let may_be_open = kernel == "6.1" && !holds("closed loop") || !holds("measured window");
            assert!(
                trial["audit"]["valid"] == true || may_be_open,
                "{kernel}: {trial:#}"
            );
        }
    }
}

/// `LINERATE_STAND="6.12 e1000e"` names a guest that waits until Enter is pressed.
#[test]
#[cfg_attr(stand, ignore = "needs root")]
#[cfg_attr(
    not(stand),
    ignore = "needs qemu-system-x86 and Debian's kernel: scripts/stand 6.1"
)]
fn takes_minutes_a_guest_is_used_by_hand() {
    let asked = std::env::var("LINERATE_STAND").ok();
    let (kernel, card) = asked
        .as_deref()
        .unwrap_or("6.1 vmxnet3")
        .split_once(' ')
        .expect("a kernel and a card");
    let kernel = KERNELS
        .into_iter()
        .find(|name| *name == kernel)
        .expect("a kernel of scripts/stand");
    let card = CARDS
        .into_iter()
        .find(|known| known.name == card)
        .expect("a card that QEMU has");
    let lab = GuestLab::router(Stand { kernel, card });
    let words = lab.guest.shell();
    println!(
        "\n{}\n(files of the lab: {}; Enter ends the guest)",
        words.join(" "),
        lab.scratch.path().display()
    );
    let shell = std::process::Command::new(&words[0])
        .args(&words[1..])
        .arg("uname -r")
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&shell.stdout).starts_with(kernel),
        "{shell:?}"
    );
    if asked.is_some() {
        std::io::stdin().read_line(&mut String::new()).unwrap();
    }
}
