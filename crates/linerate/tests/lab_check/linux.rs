//! Three Linux hosts, cabled by veths: generator eth0 - eth0 DUT eth1 - eth0 receiver.

use super::{check, has, problems};
use crate::common::LINERATE;
use crate::sshd::{SshHost, SshLab};
use linerate_linux::net::netlink::{Route, VethEnd};
use serde_json::json;
use std::time::Duration;

const LAB: &str = r#"
title = "three hosts"
isolated = true

[hosts.generator]
role = "generator"
ssh = "generator"
[hosts.generator.send]
name = "eth0"
mac = "02:10:00:00:00:01"
addresses = ["10.1.0.1/24", "2001:db8:1::1/64"]

[hosts.dut]
role = "dut"
ssh = "dut"
[hosts.dut.in]
name = "eth0"
addresses = ["10.1.0.2/24", "2001:db8:1::2/64"]
networks = ["198.18.64.0/18"]
[hosts.dut.out]
name = "eth1"
addresses = ["10.2.0.2/24"]
networks = ["198.19.64.0/18"]

[hosts.receiver]
role = "receiver"
ssh = "receiver"
[hosts.receiver.receive]
addresses = ["10.2.0.1/24"]
"#;

/// A cable between two hosts' interfaces: names and Ethernet addresses.
fn cable(ends: [(&SshHost, &str, [u8; 6]); 2]) {
    let [(a, name, mac), (b, peer_name, peer_mac)] = ends;
    let end = |name: &str, mac: [u8; 6]| VethEnd {
        name: name.into(),
        mac,
        mtu: 1500,
        index: u32::from(mac[1]) * 10 + u32::from(mac[5]),
    };
    let route = Route::open(&a.netns).unwrap();
    route
        .create_veth(&end(name, mac), &end(peer_name, peer_mac), &b.netns, 1)
        .unwrap();
}

/// A command on a host.
fn on(host: &SshHost, command: &str) {
    let output = host
        .netns
        .command("sh")
        .args(["-ec", command])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The lab, sound.
fn sound() -> SshLab {
    let lab = SshLab::new(&["generator", "dut", "receiver", "spare"]);
    let [generator, dut, receiver, _] = lab.hosts.as_slice() else {
        unreachable!()
    };
    cable([
        (generator, "eth0", [2, 0x10, 0, 0, 0, 1]),
        (dut, "eth0", [2, 0x10, 0, 0, 0, 2]),
    ]);
    cable([
        (dut, "eth1", [2, 0x20, 0, 0, 0, 3]),
        (receiver, "eth0", [2, 0x20, 0, 0, 0, 4]),
    ]);
    on(
        generator,
        "ip addr add 10.1.0.1/24 dev eth0; ip addr add 2001:db8:1::1/64 dev eth0 nodad; ip link set eth0 up",
    );
    on(
        receiver,
        "ip addr add 10.2.0.1/24 dev eth0; ip link set eth0 up",
    );
    on(
        dut,
        "ip addr add 10.1.0.2/24 dev eth0; ip addr add 2001:db8:1::2/64 dev eth0 nodad; ip addr add 10.2.0.2/24 dev eth1",
    );
    on(
        dut,
        "ip link set eth0 up; ip link set eth1 up; sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
    );
    on(
        dut,
        "ip route add 198.18.64.0/18 via 10.1.0.1; ip route add 198.19.64.0/18 via 10.2.0.1",
    );
    on(generator, "ip route add 10.2.0.0/24 via 10.1.0.2");
    on(receiver, "ip route add 10.1.0.0/24 via 10.2.0.2");
    for host in [generator, dut, receiver] {
        Route::open(&host.netns)
            .unwrap()
            .wait_all_running(Duration::from_secs(60))
            .unwrap();
    }
    for host in [generator, receiver] {
        host.stand_in("linerate", &format!("#!/bin/sh\nexec {LINERATE} \"$@\"\n"));
    }
    lab
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_sound_lab_has_nothing_wrong_and_its_frames_arrive() {
    let lab = sound();
    // A veth takes no frames of XDP before its other end has GRO or a program.
    let text = check(&lab, LAB, &[]).ok().stdout;
    for part in [
        "generator eth0 sends by af-packet: 100 test frames; eth0 of dut counted",
        "eth0 (driver veth) does not transmit frames of XDP",
        "generator eth0 10.1.0.1 to 10.2.0.1 of receiver through dut: 10 of 10 answered",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        text.starts_with("LAB.toml: fit for a campaign; 3 hosts, nothing wrong.\n"),
        "{text}"
    );
    let by_xdp = LAB.replace("ssh = \"generator\"", "ssh = \"generator\"\ntool = \"xdp\"");
    let json = check(&lab, &by_xdp, &["--json"]).fails(1, &[]).json();
    has(
        &json,
        "generator",
        "fault",
        [
            "ports cannot be used",
            "eth0 (driver veth) does not transmit frames of XDP",
            "af-packet",
        ],
    );

    on(&lab.hosts[1], "ethtool -K eth0 gro on");
    let ended = check(&lab, LAB, &["--json"]).ok();
    let json = ended.json();
    assert_eq!(
        (&json["faults"], &json["warnings"], &json["problems"]),
        (&json!(0), &json!(0), &json!([]))
    );
    let frames = json["frames"].as_array().unwrap();
    let ways: Vec<_> = frames
        .iter()
        .map(|f| (f["source"].as_str().unwrap(), f["to"].as_str().unwrap()))
        .collect();
    let expected = [
        ("10.1.0.1", "10.1.0.2"),
        ("2001:db8:1::1", "2001:db8:1::2"),
        ("10.2.0.1", "10.2.0.2"),
        ("10.1.0.1", "10.2.0.1"),
    ];
    assert!(
        ways.len() == 4 && expected.iter().all(|way| ways.contains(way)),
        "{ways:?}"
    );
    for frame in frames {
        assert_eq!(
            (&frame["sent"], &frame["answered"]),
            (&json!(10), &json!(10)),
            "{frame}"
        );
        let arrived = frame["arrived"].as_array().unwrap();
        assert!(
            arrived.iter().all(|a| a["counted"].as_u64().unwrap() >= 10),
            "{frame}"
        );
    }
    let host = |n: usize| &json["hosts"][n];
    assert_eq!(
        (&host(0)["tool"], &host(1)["tool"]),
        (&json!("linerate"), &json!(null))
    );
    assert_eq!(
        (
            &host(2)["interfaces"][0]["found"]["name"],
            &host(2)["reached"]
        ),
        (&json!("eth0"), &json!(true))
    );
    assert_eq!(host(1)["interfaces"][1]["found"]["link"], true);
    assert!(host(0)["clock_ahead_s"].as_f64().unwrap().abs() < 1.0);

    let port = &json["tester"][0];
    assert_eq!(port["from"], json!(["generator", "eth0"]));
    assert_eq!((&port["port"], &port["why"]), (&json!("xdp"), &json!(null)));
    assert!(
        port["sent"].as_u64() >= Some(100) && port["arrived"].as_u64() >= Some(100),
        "{port}"
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn everything_that_is_broken_is_told_at_once() {
    let mut lab = sound();
    lab.host("spare").kill_sshd();
    let [generator, dut, receiver, _] = lab.hosts.as_slice() else {
        unreachable!()
    };
    generator.stand_in("date", "#!/bin/sh\nexec /bin/date -d '+1 hour' \"$@\"\n");
    dut.stand_in("df", "#!/bin/sh\necho Filesystem 1024-blocks Used Available Capacity Mounted on\necho /dev/md0 1000 990 10 99% /tmp\n");
    on(
        dut,
        "sysctl -qw net.ipv4.ip_forward=0; ip route replace 198.19.64.0/18 via 10.1.0.1",
    );
    receiver.stand_in("id", "#!/bin/sh\necho 1001\n");
    on(receiver, "ip link set eth0 down");
    let spare = "[hosts.spare]\nrole = \"generator\"\nssh = \"spare\"\nsend.name = \"eth0\"\n";
    let text = LAB.replace("02:10:00:00:00:01", "02:10:00:00:00:99") + spare;
    let json = check(&lab, &text, &["--json"]).fails(1, &[]).json();
    has(
        &json,
        "spare",
        "fault",
        [
            "cannot be reached",
            "refuses connections",
            "start sshd there",
        ],
    );
    has(
        &json,
        "generator",
        "fault",
        ["its clock is 3", "of this machine", "chronyd"],
    );
    has(
        &json,
        "generator",
        "fault",
        [
            "another Ethernet address",
            "02:10:00:00:00:01, not 02:10:00:00:00:99",
            "correct the lab file",
        ],
    );
    has(
        &json,
        "dut",
        "fault",
        ["too little free space", "0 MiB are free on /tmp", "delete"],
    );
    has(
        &json,
        "dut",
        "fault",
        [
            "does not forward",
            "net.ipv4.ip_forward is 0",
            "sysctl net.ipv4.ip_forward=1",
        ],
    );
    let route = "ip route replace 198.19.64.0/18 via 10.2.0.1 dev eth1";
    has(
        &json,
        "dut",
        "fault",
        [
            "198.19.64.0/18 by another interface",
            "by eth0, not eth1",
            route,
        ],
    );
    has(&json, "dut", "fault", ["eth1 has no link", "", "cable"]);
    has(
        &json,
        "receiver",
        "fault",
        ["need root", "id -u says 1001", "sudo = true"],
    );
    has(
        &json,
        "receiver",
        "fault",
        ["eth0 is switched off", "", "ip link set eth0 up"],
    );
    // Frames that can be sent are still sent.
    let sent: Vec<_> = json["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| &f["to"])
        .collect();
    assert_eq!(sent, [&json!("10.1.0.2"), &json!("2001:db8:1::2")]);
    assert!(
        json["not_tried"].to_string().contains("has no link"),
        "{}",
        json["not_tried"]
    );
    let page = check(&lab, &text, &["--no-frames"]).fails(1, &[]).stdout;
    for words in [
        "LAB.toml: not fit for a campaign; 4 hosts, ",
        "\nspare (spare)\n",
        "FAULT    eth1 has no link",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(
        page.is_ascii() && page.lines().all(|line| line.len() <= 120),
        "{page}"
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn frames_show_what_no_setting_does() {
    let lab = sound();
    let [generator, dut, receiver, _] = lab.hosts.as_slice() else {
        unreachable!()
    };
    // The DUT drops frames that it should forward, and the receiver has the address of another host for the DUT.
    on(
        dut,
        "nft 'add table ip t; add chain ip t c { type filter hook forward priority 0; policy drop; }'",
    );
    on(
        receiver,
        "ip neigh replace 10.2.0.2 lladdr 02:20:00:00:00:77 dev eth0 nud permanent",
    );
    let json = check(&lab, LAB, &["--json"]).fails(1, &[]).json();
    let evidence = "eth0 of receiver counted 0 frames";
    has(
        &json,
        "dut",
        "fault",
        [
            "does not forward frames from 10.1.0.1 for 10.2.0.1 of receiver",
            evidence,
            "firewall",
        ],
    );
    has(
        &json,
        "receiver",
        "warning",
        [
            "sends from 10.2.0.1 to 10.2.0.2 of dut arrives, and is not answered",
            "0 of 10",
            "firewall",
        ],
    );
    has(
        &json,
        "receiver",
        "fault",
        [
            "has the wrong Ethernet address for 10.2.0.2",
            "02:20:00:00:00:77",
            "ip neigh replace",
        ],
    );
    // Without frames, settings look right, except for the entries of ARP.
    let json = check(&lab, LAB, &["--json", "--no-frames"])
        .fails(1, &[])
        .json();
    assert!(
        problems(&json, "dut").iter().all(|p| p[0] == "warning") && json["frames"] == json!([]),
        "{json:#}"
    );

    // Cables that are swapped.
    on(
        generator,
        "ip link set eth0 name tmp 2>/dev/null || { ip link set eth0 down; ip link set eth0 name tmp; ip link set tmp up; }",
    );
    let json = check(&lab, LAB, &["--json"]).fails(1, &[]).json();
    has(
        &json,
        "generator",
        "fault",
        [
            "[send] is not there",
            "there is no interface eth0; it has lo",
            "correct the lab file",
        ],
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn swapped_cables_are_seen_by_where_frames_arrive() {
    let lab = sound();
    let dut = &lab.hosts[1];
    // Frames of a link that comes up would be counted, too.
    for host in &lab.hosts {
        on(
            host,
            "for i in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 >$i; done",
        );
    }
    // Each cable is in the other's socket; names and addresses are as the lab file has them.
    let down = "ip addr flush dev eth0; ip addr flush dev eth1; ip link set eth0 down; ip link set eth1 down";
    on(
        dut,
        &format!(
            "{down}; ip link set eth0 name x; ip link set eth1 name eth0; ip link set x name eth1"
        ),
    );
    on(
        dut,
        "ip addr add 10.1.0.2/24 dev eth0; ip addr add 10.2.0.2/24 dev eth1; ip link set eth0 up; ip link set eth1 up",
    );
    on(
        dut,
        "ip route add 198.18.64.0/18 via 10.1.0.1; ip route add 198.19.64.0/18 via 10.2.0.1",
    );
    let text = LAB
        .replace(", \"2001:db8:1::1/64\"", "")
        .replace(", \"2001:db8:1::2/64\"", "");
    let json = check(&lab, &text, &["--json"]).fails(1, &[]).json();
    let where_to_look = "see for swapped cables";
    has(
        &json,
        "dut",
        "fault",
        [
            "frames for eth0 arrive at eth1",
            "eth0 of dut counted",
            where_to_look,
        ],
    );
    has(
        &json,
        "dut",
        "fault",
        [
            "frames for eth1 arrive at eth0",
            "eth1 of dut counted",
            where_to_look,
        ],
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn nothing_is_sent_in_a_lab_that_is_not_isolated() {
    let lab = sound();
    lab.hosts[0].stand_in("ping", "#!/bin/sh\ntouch \"$HOME/pinged\"\n");
    let json = check(
        &lab,
        &LAB.replace("isolated = true", "isolated = false"),
        &["--json"],
    )
    .fails(1, &[])
    .json();
    has(
        &json,
        "",
        "fault",
        ["nothing will be sent", "isolated = true", "RFC 6815"],
    );
    assert_eq!(json["frames"], json!([]));
    assert!(
        json["not_tried"][0]["why"]
            .as_str()
            .unwrap()
            .contains("isolated")
    );
    let others: Vec<_> = ["generator", "dut", "receiver"]
        .iter()
        .flat_map(|host| problems(&json, host))
        .collect();
    assert!(
        others
            .iter()
            .all(|p| p[0] == "warning" && p[1].contains("does not know who has")),
        "{others:?}"
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn unknown_hosts_are_refused_unless_the_user_says_so_and_who_hangs_is_passed_over() {
    let lab = sound();
    std::fs::write(lab.known_hosts(), "").unwrap();
    lab.hosts[1].stand_in("df", "#!/bin/sh\nexec sleep 60\n");
    let json = check(&lab, LAB, &["--json", "--no-frames"])
        .fails(1, &[])
        .json();
    for host in ["generator", "dut", "receiver"] {
        has(
            &json,
            host,
            "fault",
            [
                "cannot be reached",
                "key of the host is not known",
                "fingerprint",
            ],
        );
    }
    let json = check(&lab, LAB, &["--json", "--accept-new-keys"])
        .ok()
        .json();
    assert_eq!(
        (&json["faults"], &json["hosts"][1]["cpus"].is_number()),
        (&json!(0), &true)
    );
    has(
        &json,
        "dut",
        "warning",
        [
            "df gave no answer in time",
            "df -Pk /tmp /var/tmp",
            "by hand",
        ],
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn what_needs_root_is_done_by_sudo_where_the_file_says_so() {
    let lab = sound();
    let sudo = "#!/bin/sh\n[ \"$1\" = -n ] || exit 1\nshift\n[ \"$1\" != -- ] || shift\necho \"$*\" >>\"$HOME/by-sudo\"\nexec \"$@\"\n";
    for host in &lab.hosts {
        host.stand_in("id", "#!/bin/sh\necho 1001\n");
        host.stand_in("sudo", sudo);
    }
    let json = check(&lab, LAB, &["--json"]).fails(1, &[]).json();
    for host in ["generator", "dut", "receiver"] {
        has(
            &json,
            host,
            "fault",
            ["need root", "sudo -n works there", "write sudo = true"],
        );
    }
    assert!(
        json["not_tried"]
            .to_string()
            .contains("ping needs root on generator"),
        "{}",
        json["not_tried"]
    );
    let text = ["generator", "dut", "receiver"]
        .iter()
        .fold(LAB.to_string(), |text, name| {
            text.replace(
                &format!("ssh = \"{name}\""),
                &format!("ssh = \"{name}\"\nsudo = true"),
            )
        });
    let json = check(&lab, &text, &["--json"]).ok().json();
    assert_eq!(
        (&json["problems"], json["frames"].as_array().unwrap().len()),
        (&json!([]), 4)
    );
    let by_sudo =
        std::fs::read_to_string(lab.folder().parent().unwrap().join("generator/by-sudo")).unwrap();
    for command in ["ip -d -j addr show", "ethtool eth0", "ping -n -c 10"] {
        assert!(by_sudo.contains(command), "{command}: {by_sudo}");
    }
}
