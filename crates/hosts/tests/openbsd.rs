//! Output of a real OpenBSD 7.8 (../shared/corpus/openbsd-7.8), read as linerate asks for it.

use linerate_hosts::agent::merge::{self, Seen};
use linerate_hosts::configuration::{Configuration, label, questions};
use linerate_hosts::counters;
use linerate_hosts::dut_changes::Runtime;
use linerate_hosts::systems::{Facts, Kernel, Question};
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{Collected, Direction};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

const CORPUS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/corpus/openbsd-7.8"
);

/// Programs with their arguments, and the file with what they printed.
const RECORDED: [(&str, &str, &str); 14] = [
    ("sysctl", "net.inet.ip.ifq*", "em/sysctl-ifq.txt"),
    ("sysctl", "*", "em/sysctl-a.txt"),
    ("ifconfig", "-a hwfeatures", "em/ifconfig-hwfeatures.txt"),
    ("ifconfig", "-a", "em/ifconfig-a.txt"),
    ("vmstat", "-i", "em/vmstat-i.txt"),
    ("pfctl", "-s info", "em/pfctl-si.txt"),
    ("pfctl", "-s memory", "em/pfctl-sm.txt"),
    ("pfctl", "-s rules", "em/pfctl-sr.txt"),
    ("netstat", "-rn", "em/netstat-rn.txt"),
    ("netstat", "-ind", "em/netstat-ind.txt"),
    ("netstat", "-ine", "em/netstat-ine.txt"),
    ("netstat", "-s", "em/netstat-s.txt"),
    ("arp", "-an", "em/arp-an.txt"),
    ("ndp", "-an", "em/ndp-an.txt"),
];

fn file(name: &str) -> String {
    let text = fs::read_to_string(format!("{CORPUS}/{name}.txt")).unwrap();
    text.lines()
        .filter(|line| !line.starts_with("$ ") && !line.starts_with("[exit"))
        .map(|line| line.to_string() + "\n")
        .collect()
}

/// Runs a program where the recorded ones are. The file of kstat has no first and last line of the recorder.
fn run(argv: &[String]) -> Output {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder =
        std::env::temp_dir().join(format!("linerate-openbsd-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut programs: Vec<&str> = RECORDED
        .iter()
        .map(|(program, ..)| *program)
        .chain(["kstat"])
        .collect();
    programs.dedup();
    for program in programs {
        let cases = RECORDED.iter().filter(|(of, ..)| *of == program).map(|(_, arguments, file)| {
            format!(
                "case \"$*\" in {}) sed '/^\\$ /d; /^\\[exit/d' {CORPUS}/{file}; exit ;; esac\n",
                arguments.replace(' ', "\\ ")
            )
        });
        let mut text: String = std::iter::once("#!/bin/sh\n".to_string())
            .chain(cases)
            .collect();
        text += &match program {
            "kstat" => format!("cat {CORPUS}/em/kstat.txt\n"),
            // The part of one interface.
            "ifconfig" => format!(
                "awk -v of=\"$1:\" '/^[a-z]/ {{ prints = $1 == of }} prints' {CORPUS}/em/ifconfig-hwfeatures.txt\n"
            ),
            _ => "exit 1\n".into(),
        };
        fs::write(folder.join(program), text).unwrap();
        fs::set_permissions(folder.join(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("PATH={}:/usr/bin:/bin", folder.display());
    let ended = Command::new("env").arg(path).args(argv).output().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    ended
}

fn ends() -> [String; 2] {
    ["em1", "em2"].map(String::from)
}

fn seen(kernel: Kernel) -> Seen {
    let said = run(&counters::question(kernel, &ends())).stdout;
    counters::read(kernel, &ends(), &said)
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn losses_are_counted_once_and_each_at_its_place() {
    let before = Seen::default();
    let after = seen(Kernel::OpenBsd);
    let em1 = &after.links["em1"];
    assert_eq!(
        (em1["rx_packets"], em1["rx_dropped"], em1["rx_missed"]),
        (44_569, 4863, 0)
    );
    assert_eq!(
        (
            after.links["em2"]["tx_packets"],
            after.links["em2"]["tx_dropped"]
        ),
        (24_966, 14_747)
    );
    // All that was sent came in: 4,863 found the system's queue full, and 14,747 the card's.
    let port = |frames| PortCounters {
        frames,
        ..PortCounters::default()
    };
    let losses = merge::losses(
        Direction::Forward,
        [&port(44_569), &port(24_950)],
        &before,
        &after,
        ["em1", "em2"],
    );
    let found: Vec<(&str, u64)> = losses
        .iter()
        .map(|loss| (loss.place.as_str(), loss.frames))
        .collect();
    assert_eq!(
        found[0],
        ("DUT in: queue of received packets full", 4863),
        "{found:?}"
    );
    assert!(
        found.contains(&("DUT out: transmit queue full", 14_747)),
        "{found:?}"
    );
    assert!(
        !found
            .iter()
            .any(|(place, _)| place.contains("ring") || place.contains("generator")),
        "{found:?}"
    );
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn a_card_s_own_counters_have_their_end() {
    let found = seen(Kernel::OpenBsd).counters;
    let expected = [
        ("in: rxq qdrops", 4863),
        ("out: txq qdrops", 14_747),
        ("in: stats rx missed", 0),
        ("in: stats rx good", 44_592),
        ("in: stats rx good bytes", 2_856_886),
        ("interrupt irq65/em1", 1007),
        ("net.inet.ip.ifq.maxlen", 2048),
        // 713 acks (for 182459 bytes)
        ("tcp: acks (for N bytes)", 713),
        ("tcp: data packets (N bytes)", 673),
        ("ip: packets forwarded", 24_936),
        ("pf: match", 31_862),
    ];
    for (name, n) in expected {
        assert_eq!(found.get(name), Some(&n), "{name}: {found:#?}");
    }
    let digits = |name: &&String| {
        name.starts_with("tcp: ")
            && name
                .split(['(', ' ', ')'])
                .any(|w| w.parse::<u64>().is_ok())
    };
    assert_eq!(found.keys().find(digits), None);
}

#[test]
fn what_a_ring_has_no_room_for_is_missed_once() {
    let table = "==> netstat -ind <==\nName Mtu Network Address Ipkts Idrop Opkts Odrop Colls\nem1 1500 <Link> 00:0b:5d:00:00:02 100 5 7 0 0\n\
        ==> netstat -ine <==\nName Mtu Network Address Ipkts Ierrs Opkts Oerrs Colls\nem1 1500 <Link> 00:0b:5d:00:00:02 101 9 7 0 0\n\
        ==> kstat <==\nem1:0:em-stats:0\n       rx missed: 11 packets\nem1:0:rxq:0\n         qlen: 3 packets\n";
    let seen = counters::read(Kernel::OpenBsd, &ends(), table.as_bytes());
    let em1 = &seen.links["em1"];
    assert_eq!(
        (em1["rx_packets"], em1["rx_dropped"], em1["rx_missed"]),
        (100, 5, 11)
    );
    assert!(
        !seen.counters.contains_key("in: rxq qlen"),
        "{:?}",
        seen.counters
    );
}

fn configuration(pf: &str) -> Configuration {
    let asked = questions(Kernel::OpenBsd, &ends());
    let answer = |argv: Vec<String>| {
        let ended = run(&argv);
        let output = match ended.status.success() {
            true => Ok(String::from_utf8(ended.stdout)
                .unwrap()
                .replace("Status: Enabled", pf)),
            false => Err(ended.status.to_string()),
        };
        Collected {
            command: label(&argv),
            output,
        }
    };
    let answers: Vec<Collected> = asked.into_iter().map(answer).collect();
    Configuration::of(Kernel::OpenBsd, &ends(), &answers)
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn the_configuration_of_a_real_openbsd_router() {
    let found = configuration("Status: Enabled");
    let card = found.card("em1").unwrap();
    let interrupts: Vec<(u32, &str)> = card
        .interrupts
        .iter()
        .map(|i| (i.number, i.name.as_str()))
        .collect();
    assert_eq!(interrupts, [(65, "em1")]);
    assert!(
        card.features["rx-checksumming"] && !card.features["large-receive-offload"],
        "{:?}",
        card.features
    );
    assert_eq!(
        card.addresses
            .iter()
            .filter(|a| a.address.is_ipv6())
            .count(),
        2
    );
    let (on_path, _) = found.on_path(&[]);
    let names: Vec<&str> = on_path.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "pf: 5 rules",
            "2 rules of pf that log",
            "states of pf, 6 when linerate looked"
        ]
    );
    assert_eq!(
        found.sysctls.get("kern.hz").map(String::as_str),
        Some("100")
    );
    // Routes are those of networks: entries of hosts at a link, and the own addresses, are no routes. Nor are own addresses neighbours.
    assert_eq!((found.routes["IPv4"], found.routes["IPv6"]), (6, 6));
    let neighbours: u64 = found.neighbours.values().copied().sum();
    assert_eq!(
        (neighbours, found.rule_sets.len()),
        (5, 1),
        "{:?}",
        found.neighbours
    );
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn a_pf_that_is_off_is_no_firewall() {
    let found = configuration("Status: Disabled");
    assert!(
        found.rule_sets.is_empty() && found.connections.is_empty(),
        "{:?}",
        found.connections
    );
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn a_host_s_own_addresses_are_no_neighbours() {
    let mut facts = Facts::of_kernel(Kernel::OpenBsd);
    for (question, name) in [
        (Question::Neighbours, "arp-an"),
        (Question::Neighbours6, "ndp-an"),
    ] {
        facts.answer(&question, file(&format!("vio/{name}")).as_bytes(), 0);
    }
    let mut found: Vec<String> = facts
        .neighbours
        .iter()
        .map(|n| n.address.to_string())
        .collect();
    found.sort();
    assert_eq!(found.len(), 7, "{found:?}");
    assert!(
        !found.contains(&"198.18.0.1".to_string()) && found.contains(&"198.18.0.2".to_string()),
        "{found:?}"
    );
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn large_receive_offload_is_refused_on_a_card_without_it() {
    let read = |name: &str, given: &str| {
        let single = Runtime::Ifconfig {
            arguments: [name, given].map(String::from).into(),
        };
        let read = single.step(Kernel::OpenBsd).unwrap().read.unwrap();
        let ended = run(&read.program.argv);
        let value = read.form.value(&String::from_utf8(ended.stdout).unwrap());
        (
            ended.status.success(),
            value,
            String::from_utf8(ended.stderr).unwrap(),
        )
    };
    let (taken, _, said) = read("em1", "tcplro");
    assert!(
        !taken && said.contains("em1 has no large receive offload"),
        "{said}"
    );
    assert_eq!(
        read("lo0", "tcplro"),
        (true, Some("tcplro".into()), String::new())
    );
    assert_eq!(
        read("em1", "-tcplro"),
        (true, Some("-tcplro".into()), String::new())
    );
}

#[test]
fn frames_that_match_old_states_make_a_stateless_trial_none() {
    let grown = |searches: u64, met: u64| {
        BTreeMap::from([("pf: searches".into(), searches), ("pf: match".into(), met)])
    };
    // In and out, and a few of ssh.
    assert_eq!(counters::past_the_rules(&grown(2030, 2004), 1000), None);
    // Some were lost behind the first rules.
    assert_eq!(counters::past_the_rules(&grown(2500, 2400), 700), None);
    let why = counters::past_the_rules(&grown(2030, 40), 1000).unwrap();
    assert!(
        why.contains("met 40 packets while 1000 frames passed"),
        "{why}"
    );
    // pf skips the interfaces, or says nothing.
    assert_eq!(counters::past_the_rules(&grown(30, 4), 1000), None);
    assert_eq!(counters::past_the_rules(&BTreeMap::new(), 1000), None);
}
