//! The example's lab with one thing wrong at a time.

use super::*;
use linerate_plan::lab::OperatingSystem;

type Change = fn(&mut Facts);

fn forget(facts: &mut Facts, address: &str) {
    facts
        .neighbours
        .retain(|n| n.address.to_string() != address);
}

#[test]
fn one_thing_wrong_at_a_time() {
    let cases: [(&str, Change, Severity, &str, &str); 25] = [
        (
            "router",
            |f| *f = Facts::unreachable("Connection refused", "start sshd there"),
            Severity::Fault,
            "it cannot be reached",
            "try: ssh root@192.0.2.5",
        ),
        (
            "router",
            |f| f.date(b"1753563660", 1_753_567_260.0, 1_753_567_260.1),
            Severity::Fault,
            "its clock is 3599 s behind",
            "ntpdate",
        ),
        (
            "router",
            |f| f.date(b"1753567270", 1_753_567_260.0, 1_753_567_260.1),
            Severity::Warning,
            "its clock is 10 s ahead",
            "ntpdate",
        ),
        (
            "tester",
            |f| f.user = Some(1001),
            Severity::Fault,
            "need root",
            "let ssh log in as root",
        ),
        (
            "tester",
            |f| (f.user, f.sudo) = (Some(1001), Some(true)),
            Severity::Fault,
            "need root",
            "write sudo = true",
        ),
        (
            "router",
            |f| f.interfaces.retain(|i| i.name != "igb2"),
            Severity::Fault,
            "[out] is not there",
            "load the driver",
        ),
        (
            "router",
            |f| port(f, "igb1").up = false,
            Severity::Fault,
            "igb1 is switched off",
            "ifconfig igb1 up",
        ),
        (
            "router",
            |f| port(f, "igb1").link = Some(false),
            Severity::Fault,
            "igb1 has no link",
            "resets the link",
        ),
        (
            "router",
            |f| port(f, "igb1").full_duplex = Some(false),
            Severity::Fault,
            "half duplex",
            "negotiate",
        ),
        (
            "router",
            |f| port(f, "igb1").pause.tx = Some(true),
            Severity::Warning,
            "igb1 uses pause frames",
            "driver",
        ),
        (
            "tester",
            |f| f.answer(&Question::Pause("igb2".into()), b"dev.igb.2.fc: 3\n", 0),
            Severity::Warning,
            "igb2 uses pause frames",
            "sysctl dev.igb.2.fc=0",
        ),
        (
            "router",
            |f| port(f, "igb2").mac = Some("02:00:00:00:00:09".parse().unwrap()),
            Severity::Fault,
            "another Ethernet address",
            "correct the lab file",
        ),
        (
            "router",
            |f| {
                port(f, "igb2").addresses.remove(0);
            },
            Severity::Fault,
            "does not have the address 198.19.0.205/24",
            "ifconfig igb2 inet 198.19.0.205/24 alias",
        ),
        (
            "router",
            |f| port(f, "igb2").mtu = Some(9000),
            Severity::Warning,
            "different MTUs",
            "set both alike",
        ),
        (
            "router",
            |f| forget(f, "198.19.0.203"),
            Severity::Fault,
            "does not know who has 198.19.0.203 of tester",
            "arp -s 198.19.0.203 0c:c4:7a:ab:29:36",
        ),
        (
            "tester",
            |f| forget(f, "2001:2::205"),
            Severity::Warning,
            "does not know who has 2001:2::205 of router",
            "ndp -s 2001:2::205 00:0d:b9:41:ca:3d",
        ),
        (
            "router",
            |f| f.neighbours[0].mac = None,
            Severity::Fault,
            "does not answer it",
            "arp -s",
        ),
        (
            "router",
            |f| f.neighbours[0].mac = Some("02:00:00:00:00:09".parse().unwrap()),
            Severity::Fault,
            "has the wrong Ethernet address for 198.18.0.203",
            "arp -s",
        ),
        (
            "router",
            |f| f.neighbours[0].interface = "igb2".into(),
            Severity::Fault,
            "behind another interface",
            "swapped cables",
        ),
        (
            "router",
            |f| {
                f.ways.insert("198.19.128.1".parse().unwrap(), None);
            },
            Severity::Fault,
            "no route to 198.19.0.0/16",
            "route add -net 198.19.0.0/16 198.19.0.203",
        ),
        (
            "router",
            |f| {
                f.ways.values_mut().flatten().for_each(|w| {
                    if w.interface == "igb2" {
                        w.interface = "igb0".into()
                    }
                })
            },
            Severity::Fault,
            "by another interface",
            "route add",
        ),
        (
            "router",
            |f| {
                f.ways
                    .values_mut()
                    .flatten()
                    .for_each(|w| w.gateway = Some("198.19.0.9".parse().unwrap()))
            },
            Severity::Fault,
            "to another neighbour",
            "route add",
        ),
        (
            "router",
            |f| {
                f.sysctls
                    .insert("net.inet.ip.forwarding".into(), "0".into());
            },
            Severity::Fault,
            "it does not forward",
            "sysctl net.inet.ip.forwarding=1",
        ),
        (
            "router",
            |f| {
                f.system.as_mut().unwrap().system = OperatingSystem::OpenBsd;
                f.sysctls
                    .insert("net.inet.ip.forwarding".into(), "2".into());
            },
            Severity::Fault,
            "it forwards IPsec packets only",
            "sysctl net.inet.ip.forwarding=1",
        ),
        (
            "tester",
            |f| f.programs.clear(),
            Severity::Fault,
            "pkt-gen is not there",
            "install it",
        ),
    ];
    let lab = lab();
    for (host, change, severity, what, remedy) in cases {
        let mut facts = sound(&lab);
        change(facts.get_mut(host).unwrap());
        let problems = told(&facts);
        let found = problems
            .iter()
            .find(|p| p.message.contains(what))
            .unwrap_or_else(|| panic!("{what}: {problems:#?}"));
        assert_eq!(found.severity, severity, "{found:?}");
        assert!(
            found.subject.as_deref() == Some(host) || what.contains("MTU"),
            "{found:?}"
        );
        assert!(
            found.remedy.as_ref().unwrap().contains(remedy) && found.evidence.is_some(),
            "{found:?}"
        );
    }
}
