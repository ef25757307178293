//! A DUT that nobody can log in to: its sshd listens no more, and linerate measures what it forwards.

use super::lab::{LAB, RealLab, gentle};
use super::site::trials;
use serde_json::Value;

/// The lab file, whose DUT has no way in.
fn file() -> String {
    let without_boot = LAB.replace("[hosts.dut.boot]\ntimeout = \"5 s\"\n", "");
    without_boot.replace("ssh = \"dut\"", "black-box = true")
}

fn lab() -> RealLab {
    let lab = RealLab::new();
    lab.ssh.hosts[1].stop_listening();
    lab.write("LAB.toml", &file());
    lab
}

/// One variant that sets nothing.
fn as_it_is() -> String {
    let plan = gentle();
    let [begin, end] = ["[variants.rules]", "[compare]"].map(|part| plan.find(part).unwrap());
    let next = end + plan[end..].find("[traffic]").unwrap();
    [&plan[..begin], &plan[next..]]
        .concat()
        .replace("blocks = 8", "blocks = 2")
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_lab_with_a_black_box_is_checked_as_far_as_its_ends_know() {
    let lab = lab();
    let checked = lab
        .linerate(&["lab", "check", "LAB.toml"])
        .run()
        .ok()
        .stdout;
    for part in [
        "fit for a campaign; 2 hosts, nothing wrong",
        "dut is a black box: linerate asks it nothing.",
        "generator g0 198.18.128.2 to 198.18.128.1 of dut: 10 of 10 answered",
        "receiver r0 198.19.128.2 to 198.19.128.1 of dut: 10 of 10 answered",
        "100 test frames; r0 of receiver counted 1",
    ] {
        assert!(checked.contains(part), "{part}:\n{checked}");
    }
    // Frames that go nowhere are found, wherever they end.
    lab.on("dut", "echo 0 > /proc/sys/net/ipv4/ip_forward");
    let wrong = lab
        .linerate(&["lab", "check", "LAB.toml", "--json"])
        .run()
        .fails(1, &[])
        .json();
    assert_eq!(
        (
            &wrong["black_box"],
            wrong["hosts"].as_array().unwrap().len()
        ),
        (&Value::from("dut"), 2)
    );
    let what = wrong["problems"].to_string();
    assert!(
        what.contains("test frames that g0 sends by xdp do not arrive"),
        "{what}"
    );
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn what_a_black_box_forwards_is_measured_and_what_it_drops_is_its_own() {
    let mut lab = lab();
    lab.on(
        "dut",
        "nft 'add table ip box; add chain ip box f { type filter hook forward priority 0; }; add rule ip box f numgen inc mod 10 == 0 drop'",
    );
    lab.look();
    // On a busy machine a rate may not be kept, which is status 1.
    let ended = lab.run(&as_it_is(), &[]);
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
    let all = trials(&lab.records());
    assert_eq!(all.len(), 2, "{ended:?}");
    for trial in &all {
        let [sent, received] =
            ["generator", "receiver"].map(|end| trial[end]["frames"].as_u64().unwrap());
        let loss = &trial["losses"][0];
        assert!(
            sent > 0 && (sent - received).abs_diff(sent / 10) <= 20,
            "{trial:#}"
        );
        assert_eq!(
            (&loss["side"], loss["frames"].as_u64()),
            (&Value::from("dut"), Some(sent - received))
        );
        assert!(
            loss["place"].as_str().unwrap().contains("a black box"),
            "{loss}"
        );
    }
    let page = lab
        .linerate(&["show", "--full", "records"])
        .run()
        .no_panic()
        .stdout;
    assert!(page.contains("dut: a black box"), "{page}");
    // Nothing was asked of the DUT, and nothing was changed.
    lab.is_as_it_was();
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_variant_that_sets_something_cannot_be_measured_on_a_black_box() {
    let lab = lab();
    let ended = lab.run(&gentle().replace("blocks = 8", "blocks = 1"), &[]);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let text = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        text.contains("the DUT is a black box, on which nobody makes these settings"),
        "{ended:?}"
    );
    assert!(
        trials(&lab.records())
            .iter()
            .all(|trial| trial["slot"] == 0)
    );
    lab.linerate(&["lab", "restore", "LAB.toml"])
        .run()
        .fails(2, &["no DUT that linerate can change"]);
    lab.is_as_it_was();
}
