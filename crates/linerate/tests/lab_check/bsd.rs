//! A scripted FreeBSD router and tester behind real sshds.

use super::{check, has};
use crate::sshd::{SshHost, SshLab};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Makes a FreeBSD host of one of Linux; its state folder.
fn freebsd(lab: &SshLab, host: &SshHost, ports: [&str; 2]) -> PathBuf {
    let state = lab.folder().join(&host.name);
    host.freebsd(&state, &ports, |_| true);
    state
}

fn edit(state: &Path, file: &str, change: impl Fn(String) -> String) {
    let path = state.join(file);
    fs::write(&path, change(fs::read_to_string(&path).unwrap_or_default())).unwrap();
}

#[test]
#[ignore = "needs root and openssh-server"]
fn the_example_of_lab_files_on_freebsd() {
    let lab = SshLab::new(&["router", "tester"]);
    let router = freebsd(
        &lab,
        &lab.hosts[0],
        [
            "igb1:00-0d-b9-41-ca-3d:198.18.0.205/24",
            "igb2:00-0d-b9-41-ca-3e:198.19.0.205/24",
        ],
    );
    let tester = freebsd(
        &lab,
        &lab.hosts[1],
        [
            "igb1:0c-c4-7a-ab-29-35:198.18.0.203/24",
            "igb2:0c-c4-7a-ab-29-36:198.19.0.203/24",
        ],
    );
    // Cards that do not obey pause frames, static ARP, routes over the tester, forwarding.
    for state in [&router, &tester] {
        edit(state, "sysctl", |text| {
            text.replace(".fc=3", ".fc=0")
                .replace("ip.forwarding=0", "ip.forwarding=1")
        });
    }
    let entries = |last: &str, macs: [&str; 2]| {
        format!(
            "198.18.0.{last} {} igb1 permanent\n198.19.0.{last} {} igb2 permanent\n",
            macs[0], macs[1]
        )
    };
    edit(&router, "arp", |_| {
        entries("203", ["0c:c4:7a:ab:29:35", "0c:c4:7a:ab:29:36"])
    });
    edit(&tester, "arp", |_| {
        entries("205", ["00:0d:b9:41:ca:3d", "00:0d:b9:41:ca:3e"])
    });
    edit(&router, "routes", |_| {
        "198.18.0.0/16 198.18.0.203 igb1\n198.19.0.0/16 198.19.0.203 igb2\n".into()
    });
    let at = |address: &str, port: &str| format!("{address} {} {port}\n", router.display());
    edit(&tester, "peers", |_| {
        at("198.18.0.205", "igb1") + &at("198.19.0.205", "igb2")
    });

    let strip =
        |line: &&str| !line.contains("[hosts.router.management]") && !line.contains("\"igb0\"");
    let example: Vec<&str> = linerate_plan::lab::EXAMPLE.lines().filter(strip).collect();
    let text = example.join("\n").replace("root@192.0.2.5", "router");
    let text = [
        "2001:2::205/64",
        "2001:2:0:8000::205/64",
        "2001:2::203/64",
        "2001:2:0:8000::203/64",
    ]
    .iter()
    .fold(text, |text, six| text.replace(&format!(", \"{six}\""), ""));
    let json = check(&lab, &text, &["--json"]).ok().json();
    assert_eq!(json["problems"], json!([]));
    let frames = json["frames"].as_array().unwrap();
    assert_eq!(
        frames
            .iter()
            .filter(|f| f["answered"] == 10 && f["arrived"][0]["counted"] == 10)
            .count(),
        2,
        "{frames:#?}"
    );
    let host = &json["hosts"][0];
    assert_eq!(
        (&host["system"], &host["product"], &host["cpus"]),
        (&json!("bsdrp"), &json!("BSDRP 1.994"), &json!(4))
    );
    assert_eq!(
        (
            &host["interfaces"][0]["found"]["speed"],
            &json["hosts"][1]["tool"]
        ),
        (&json!(1e9), &json!("pkt-gen"))
    );
    assert!(json["not_tried"].to_string().contains("they are one host"));
    for state in [&router, &tester] {
        assert_eq!(
            fs::read_to_string(state.join("log")).unwrap(),
            "",
            "something was changed"
        );
    }

    // Now broken, in many ways.
    edit(&router, "sysctl", |text| {
        text.replace("dev.igb.2.fc=0", "dev.igb.2.fc=3")
            .replace("ip.forwarding=1", "ip.forwarding=0")
    });
    edit(&router, "routes", |_| {
        "198.18.0.0/16 198.18.0.203 igb1\n".into()
    });
    edit(&router, "if/igb1", |text| {
        text.replace("1000baseT", "100baseTX")
    });
    edit(&router, "arp", |text| {
        text.replace(" permanent", "").replace("29:36", "29:99")
    });
    edit(&tester, "peers", |_| at("198.18.0.205", "igb2"));
    edit(&tester, "if/igb2", |text| {
        text.replace("status active", "status no carrier")
    });
    let json = check(&lab, &text, &["--json"]).fails(1, &[]).json();
    has(
        &json,
        "router",
        "fault",
        [
            "does not forward",
            "net.inet.ip.forwarding is 0",
            "sysctl net.inet.ip.forwarding=1",
        ],
    );
    has(
        &json,
        "router",
        "warning",
        [
            "igb2 uses pause frames",
            "obeyed on, sent on",
            "sysctl dev.igb.2.fc=0",
        ],
    );
    has(
        &json,
        "router",
        "fault",
        [
            "no route to 198.19.0.0/16",
            "asked for 198.19.128.1",
            "route add -net 198.19.0.0/16 198.19.0.203",
        ],
    );
    has(
        &json,
        "router",
        "fault",
        [
            "igb1 runs at 100 Mbit/s, not 1 Gbit/s",
            "100baseTX",
            "negotiation",
        ],
    );
    has(
        &json,
        "router",
        "warning",
        [
            "will forget who has 198.18.0.203",
            "pkt-gen",
            "arp -s 198.18.0.203 0c:c4:7a:ab:29:35",
        ],
    );
    has(
        &json,
        "router",
        "fault",
        [
            "the wrong Ethernet address for 198.19.0.203",
            "29:99",
            "arp -s 198.19.0.203 0c:c4:7a:ab:29:36",
        ],
    );
    has(
        &json,
        "router",
        "fault",
        [
            "frames for igb1 arrive at igb2",
            "igb1 of router counted 0 frames",
            "swapped",
        ],
    );
    has(
        &json,
        "tester",
        "fault",
        ["igb2 has no link", "1000baseT", "pkt-gen has it open"],
    );
}
