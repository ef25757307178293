//! The example's lab, sound, and then with one thing wrong at a time; and with everything wrong at once.

mod single;

use super::*;
use crate::systems::{Silence, Unanswered, Way};
use linerate_plan::Severity;
use linerate_plan::lab::EXAMPLE;

/// ifconfig of a host with two test interfaces.
fn ifconfig(ports: [(&str, &str, &str, &str); 2]) -> String {
    let port = |(name, mac, v4, v6): (&str, &str, &str, &str)| {
        format!(
            "{name}: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500\n\tether {mac}\n\
             \tinet {v4} netmask 0xffffff00 broadcast 198.18.0.255\n\tinet6 {v6} prefixlen 64\n\
             \tmedia: Ethernet autoselect (1000baseT <full-duplex>)\n\tstatus: active\n"
        )
    };
    format!(
        "igb0: flags=8843<UP> metric 0 mtu 1500\n\tether 00:0d:b9:41:ca:00\n\tstatus: active\n{}{}",
        port(ports[0]),
        port(ports[1])
    )
}

const ROUTER: [(&str, &str, &str, &str); 2] = [
    ("igb1", "00:0d:b9:41:ca:3d", "198.18.0.205", "2001:2::205"),
    (
        "igb2",
        "00:0d:b9:41:ca:3e",
        "198.19.0.205",
        "2001:2:0:8000::205",
    ),
];
const TESTER: [(&str, &str, &str, &str); 2] = [
    ("igb1", "0c:c4:7a:ab:29:35", "198.18.0.203", "2001:2::203"),
    (
        "igb2",
        "0c:c4:7a:ab:29:36",
        "198.19.0.203",
        "2001:2:0:8000::203",
    ),
];

fn facts(
    own: [(&str, &str, &str, &str); 2],
    far: [(&str, &str, &str, &str); 2],
    uname: &str,
) -> Facts {
    let mut facts = Facts::default();
    facts.answer(&Question::Uname, uname.as_bytes(), 0);
    facts.answer(
        &Question::Mounts,
        b"/dev/ufs/BSDRPs1a on / (ufs, local, read-only)\n",
        0,
    );
    facts.date(b"1753567260", 1_753_567_260.1, 1_753_567_260.2);
    facts.answer(&Question::User, b"0", 0);
    facts.answer(&Question::Interfaces, ifconfig(own).as_bytes(), 0);
    let mut arp = String::new();
    let mut ndp = String::new();
    for ((_, mac, v4, v6), (name, ..)) in far.into_iter().zip(own) {
        arp.push_str(&format!(
            "? ({v4}) at {mac} on {name} permanent [ethernet]\n"
        ));
        ndp.push_str(&format!("{v6} {mac} {name} permanent R\n"));
    }
    facts.answer(&Question::Neighbours, arp.as_bytes(), 0);
    facts.answer(&Question::Neighbours6, ndp.as_bytes(), 0);
    facts.answer(&Question::Disk, b"/dev/md0 1000000 12 900000 0% /tmp\n", 0);
    facts.answer(
        &Question::Sysctls(vec![]),
        b"net.inet.ip.forwarding: 1\nnet.inet6.ip6.forwarding: 1\n",
        0,
    );
    facts.answer(
        &Question::Programs,
        b"/usr/local/bin/pkt-gen\n/usr/bin/timeout\n",
        0,
    );
    facts
}

fn sound(lab: &Lab) -> BTreeMap<String, Facts> {
    let mut router = facts(
        ROUTER,
        TESTER,
        "FreeBSD apu2-2.lab 16.0-CURRENT FreeBSD 16.0-CURRENT BSDRP-AMD64 amd64",
    );
    for question in router_ways(lab) {
        let Question::Way(to) = &question else {
            panic!("{question:?}")
        };
        let (hop, name) = match to.to_string() {
            t if t.starts_with("198.18.") => ("198.18.0.203", "igb1"),
            t if t.starts_with("198.19.") => ("198.19.0.203", "igb2"),
            t if t.starts_with("2001:2:0:c000:") => ("2001:2:0:8000::203", "igb2"),
            _ => ("2001:2::203", "igb1"),
        };
        let answer = format!(
            "    gateway: {hop}\n  interface: {name}\n      flags: <UP,GATEWAY,DONE,STATIC>\n"
        );
        router.answer(&question, answer.as_bytes(), 0);
    }
    let tester = facts(
        TESTER,
        ROUTER,
        "FreeBSD sm1 15.0-PRERELEASE FreeBSD 15.0-PRERELEASE BSDRP-AMD64 amd64",
    );
    [
        ("router".to_string(), router),
        ("tester".to_string(), tester),
    ]
    .into()
}

fn lab() -> Lab {
    Lab::read(EXAMPLE.as_bytes()).unwrap()
}

fn router_ways(lab: &Lab) -> Vec<Question> {
    ways_to_ask(lab, lab.dut().unwrap(), &Facts::default())
}

fn told(facts: &BTreeMap<String, Facts>) -> Vec<Diagnostic> {
    check(&lab(), facts)
}

#[test]
fn a_sound_lab_has_no_problems() {
    let lab = lab();
    let asked: Vec<String> = router_ways(&lab)
        .iter()
        .map(|q| match q {
            Question::Way(to) => to.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        asked,
        [
            "198.18.128.1",
            "2001:2:0:4000::1",
            "198.19.128.1",
            "2001:2:0:c000::1"
        ]
    );
    let facts = sound(&lab);
    assert_eq!(told(&facts), []);
    let questions = interface_questions(&lab, &lab.hosts[0], &facts["router"]);
    assert_eq!(
        questions,
        [
            Question::Pause("igb1".into()),
            Question::Pause("igb2".into())
        ]
    );
}

fn port<'a>(facts: &'a mut Facts, name: &str) -> &'a mut Interface {
    facts
        .interfaces
        .iter_mut()
        .find(|i| i.name == name)
        .unwrap()
}

#[test]
fn ways_are_asked_beyond_the_cables() {
    let dut = lab().dut().unwrap().clone();
    let behind = |network: &str| {
        way::behind(network, &dut, &Facts::default())
            .unwrap()
            .to_string()
    };
    assert_eq!(behind("198.18.10.0/24"), "198.18.10.1");
    assert_eq!(behind("198.18.0.0/24"), "198.18.0.1");
    assert_eq!(behind("198.18.0.0/23"), "198.18.1.1");
    assert_eq!(
        (
            behind("10.0.0.1/32").as_str(),
            behind("10.0.0.0/31").as_str()
        ),
        ("10.0.0.1", "10.0.0.0")
    );
    assert_eq!(
        (behind("0.0.0.0/0").as_str(), behind("::/0").as_str()),
        ("0.0.0.1", "::1")
    );
    let mut first = dut.clone();
    first.inside.as_mut().unwrap().addresses = vec!["198.18.1.1/24".parse().unwrap()];
    let other = way::behind("198.18.1.0/24", &first, &Facts::default()).unwrap();
    assert_eq!(other.to_string(), "198.18.1.129", "not the DUT itself");
}

#[test]
fn a_slow_link_and_a_full_disk() {
    let lab = lab();
    let mut facts = sound(&lab);
    let slow = facts.get_mut("router").unwrap();
    port(slow, "igb1").speed = Some(1e8);
    slow.disks[0].free = 1 << 20;
    let problems = told(&facts);
    let all: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
    assert_eq!(all.len(), 3, "{problems:#?}");
    assert!(
        all[0].contains("too little free space")
            && problems[0]
                .evidence
                .as_ref()
                .unwrap()
                .contains("1 MiB are free on /tmp")
    );
    assert!(all[1].contains("igb1 runs at 100 Mbit/s, not 1 Gbit/s"));
    assert!(all[2].contains("tester igb1 - router igb1 run at different speeds"));
}

#[test]
fn everything_wrong_is_told_at_once() {
    let lab = lab();
    let mut facts = sound(&lab);
    for f in facts.values_mut() {
        f.date(b"1", 1_753_567_260.0, 1_753_567_260.1);
        f.user = Some(7);
        port(f, "igb1").up = false;
        f.neighbours.clear();
        f.disks[0].free = 0;
    }
    let problems = told(&facts);
    for host in ["router", "tester"] {
        let of = problems
            .iter()
            .filter(|p| p.subject.as_deref() == Some(host))
            .count();
        assert!(of >= 8, "{host}: {of} of {problems:#?}");
    }
    assert_eq!(check(&lab, &BTreeMap::new()).len(), 2);
}

#[test]
fn a_lab_that_says_little_is_held_to_little() {
    let text = "isolated = true\n[hosts.g]\nrole = \"generator\"\nssh = \"g\"\nsend.name = \"igb1\"\n\
        [hosts.d]\nrole = \"dut\"\nssh = \"d\"\nin.name = \"igb1\"\nout.name = \"igb2\"\n\
        [hosts.r]\nrole = \"receiver\"\nssh = \"r\"\nreceive.name = \"igb2\"\n";
    let lab = Lab::read(text.as_bytes()).unwrap();
    let example = sound(&self::lab());
    let facts: BTreeMap<String, Facts> = [("g", "tester"), ("d", "router"), ("r", "tester")]
        .map(|(n, of)| (n.to_string(), example[of].clone()))
        .into();
    assert_eq!(check(&lab, &facts), []);
}

#[test]
fn what_the_file_does_not_say_is_found_by_the_way_to_the_other_end() {
    let said = "name = \"igb1\"\nmac = \"0c:c4:7a:ab:29:35\"\naddresses = [\"198.18.0.203/24\", \"2001:2::203/64\"]";
    let text = EXAMPLE.replacen(said, "threads = 2", 1);
    let lab = Lab::read(text.as_bytes()).unwrap_or_else(|faults| panic!("{faults:?}"));
    let tester = &lab.hosts[1];
    let mut facts = sound(&self::lab());
    let asked = ways_to_ask(&lab, tester, &facts["tester"]);
    assert_eq!(asked.len(), 2, "{asked:?}");
    let before = check(&lab, &facts);
    assert!(
        before.iter().any(|p| p
            .evidence
            .as_ref()
            .unwrap()
            .contains("no interface leads to 198.18.0.205")),
        "{before:#?}"
    );
    let answer = "  interface: igb1\n      flags: <UP,DONE,PINNED>\n";
    facts
        .get_mut("tester")
        .unwrap()
        .answer(&asked[0], answer.as_bytes(), 0);
    let after = check(&lab, &facts);
    assert!(
        !after.iter().any(|p| p.message.contains("not there")),
        "{after:#?}"
    );
}

#[test]
fn what_was_not_answered_is_told() {
    let mut facts = sound(&lab());
    let router = facts.get_mut("router").unwrap();
    router.unanswered = vec![
        Unanswered {
            command: "ethtool igb1".into(),
            why: Silence::Missing,
        },
        Unanswered {
            command: "df -Pk /tmp".into(),
            why: Silence::TooSlow,
        },
    ];
    let problems = told(&facts);
    assert!(
        problems.len() == 2 && problems.iter().all(|p| p.severity == Severity::Warning),
        "{problems:#?}"
    );
    assert!(
        problems[0].message.starts_with("ethtool is not there")
            && problems[0]
                .evidence
                .as_ref()
                .unwrap()
                .contains("ethtool igb1")
    );
    assert!(problems[1].message.starts_with("df gave no answer"));
}

#[test]
fn a_lab_that_is_not_isolated_or_whose_interfaces_have_no_names() {
    let text = EXAMPLE
        .replace("isolated = true", "isolated = false")
        .replacen("name = \"igb1\"\n", "", 1);
    let lab = Lab::read(text.as_bytes()).unwrap();
    let facts = sound(&self::lab());
    let problems = check(&lab, &facts);
    let told: Vec<_> = problems
        .iter()
        .map(|p| (p.subject.as_deref(), p.severity))
        .collect();
    assert_eq!(
        told,
        [(Some("router"), Severity::Warning), (None, Severity::Fault)]
    );
    let plan = frames::plan(&lab, &facts);
    assert!(
        plan.probes.is_empty() && plan.skipped[0].why.contains("isolated"),
        "{plan:?}"
    );
}

#[test]
fn tools_that_send_by_the_system_need_two_hosts_and_routes() {
    let one = Lab::read(
        EXAMPLE
            .replace("tool = \"pkt-gen\"", "tool = \"iperf3\"")
            .as_bytes(),
    )
    .unwrap();
    let mut facts = sound(&lab());
    let programs = b"/usr/local/bin/iperf3\n/usr/bin/timeout\n";
    facts
        .get_mut("tester")
        .unwrap()
        .answer(&Question::Programs, programs, 0);
    let problems = check(&one, &facts);
    assert!(
        problems.len() == 1 && problems[0].message == "iperf3 would not send over the cables",
        "{problems:#?}"
    );

    let text = "isolated = true\n[hosts.g]\nrole = \"generator\"\nssh = \"g\"\ntool = \"iperf3\"\nsend.name = \"igb1\"\n\
        [hosts.d]\nrole = \"dut\"\nssh = \"d\"\nout.name = \"igb2\"\n\
        in = { name = \"igb1\", addresses = [\"198.18.0.205/24\"] }\n\
        [hosts.r]\nrole = \"receiver\"\nssh = \"r\"\ntool = \"iperf3\"\nreceive.name = \"igb2\"\n";
    let two = Lab::read(text.as_bytes()).unwrap();
    let named = [("g", "tester"), ("d", "router"), ("r", "tester")];
    let mut facts: BTreeMap<String, Facts> = named
        .map(|(n, of)| (n.to_string(), facts[of].clone()))
        .into();
    let to: IpAddr = "198.19.0.203".parse().unwrap();
    let way = |interface: &str| {
        Some(Way {
            gateway: "198.18.0.205".parse().ok(),
            interface: interface.into(),
        })
    };
    facts.get_mut("g").unwrap().ways.insert(to, way("igb1"));
    assert_eq!(check(&two, &facts), []);
    facts.get_mut("g").unwrap().ways.insert(to, way("igb0"));
    facts
        .get_mut("r")
        .unwrap()
        .ways
        .insert("198.18.0.203".parse().unwrap(), None);
    let problems = check(&two, &facts);
    let told: Vec<&str> = problems
        .iter()
        .map(|p| p.remedy.as_deref().unwrap())
        .collect();
    assert_eq!(
        told,
        [
            "route add -host 198.19.0.203 198.18.0.205",
            "route add -host 198.18.0.203 NEIGHBOUR"
        ]
    );
    assert!(
        problems[0]
            .evidence
            .as_ref()
            .unwrap()
            .contains("by igb0, not igb1"),
        "{problems:#?}"
    );

    let other = Lab::read(
        text.replacen(
            "ssh = \"r\"\ntool = \"iperf3\"",
            "ssh = \"r\"\ntool = \"netperf\"",
            1,
        )
        .as_bytes(),
    )
    .unwrap();
    let problems = check(&other, &facts);
    assert!(
        problems
            .iter()
            .any(|p| p.message == "iperf3 has no server to connect to"),
        "{problems:#?}"
    );
}

#[test]
fn no_load_goes_by_the_interface_that_ssh_comes_in_at() {
    let text = EXAMPLE.replace("root@192.0.2.5", "root@198.18.0.205");
    let text = text.replace(
        "[hosts.router.management]               # never touched by a test\nname = \"igb0\"\n",
        "",
    );
    let lab = Lab::read(text.as_bytes()).unwrap();
    assert!(lab.dut().unwrap().management.is_none());
    let problems = check(&lab, &sound(&self::lab()));
    assert!(
        problems.len() == 1 && problems[0].message == "[in] is the interface that ssh comes in at",
        "{problems:#?}"
    );
}
