//! The stand-ins for BSD hosts (crates/linerate/tests/bsd-host) answer as the parsers expect of the real ones, and the faults
//! that they play are recognised.

#[path = "stand_in/pkt_gen.rs"]
mod pkt_gen;
mod stand_in;

use linerate_hosts::configuration::{Bounded, Configuration, label, questions};
use linerate_hosts::counters;
use linerate_hosts::systems::{Facts, Kernel, Question};
use linerate_hosts::tools::{FaultKind, Sample, Side, State};
use linerate_measure::record::Collected;
use linerate_plan::lab::OperatingSystem;
use stand_in::Host;
use std::fs;
use std::process::{Command, Output};

impl Host {
    fn run(&self, argv: &[&str]) -> Output {
        self.command(argv).output().unwrap()
    }

    fn ask(&self, facts: &mut Facts, question: &Question, kernel: Kernel) {
        let argv = question.argv(kernel).unwrap();
        let output = self.run(&argv.iter().map(String::as_str).collect::<Vec<_>>());
        facts.answer(question, &output.stdout, output.status.code().unwrap_or(-1));
    }
}

/// Samples of a pkt-gen that ends by itself.
const ALL: usize = usize::MAX;
const RECEIVE: [&str; 6] = ["-f", "rx", "-i", "igb2", "-w", "1"];
const SEND: [&str; 13] = [
    "-f", "tx", "-i", "igb1", "-w", "1", "-n", "3000000", "-R", "500000", "-p", "2", "-4",
];

fn near(sample: Sample, expected: f64) -> bool {
    let pps = sample.packets.unwrap() as f64 * 1e6 / sample.interval_us as f64;
    (pps / expected - 1.0).abs() < 0.001
}

#[test]
fn a_freebsd_router_s_facts() {
    let host = Host::new("freebsd", "facts");
    let kernel = Kernel::FreeBsd;
    assert!(
        host.run(&["arp", "-s", "198.18.0.203", "0c:c4:7a:ab:29:35"])
            .status
            .success()
    );
    assert!(
        host.run(&["route", "add", "-net", "198.19.0.0/16", "198.19.0.203"])
            .status
            .success()
    );
    assert!(
        host.run(&["sysctl", "net.inet.ip.forwarding=1"])
            .status
            .success()
    );
    let mut facts = Facts::default();
    let to = "198.19.10.1".parse().unwrap();
    let questions = [Question::Uname, Question::Files, Question::Mounts]
        .into_iter()
        .chain(Question::second(kernel));
    let more = [
        Question::Way(to),
        Question::Pause("igb1".into()),
        Question::Programs,
    ];
    for question in questions.chain(more) {
        host.ask(&mut facts, &question, kernel);
    }
    let system = facts.system.clone().unwrap();
    assert_eq!(
        (system.system, system.product.as_deref()),
        (OperatingSystem::Bsdrp, Some("BSDRP 1.994"))
    );
    assert_eq!((facts.read_only_root, facts.cpus), (Some(true), Some(4)));
    let port = facts.interface("igb1").unwrap();
    assert_eq!(
        (port.up, port.link, port.speed),
        (true, Some(true), Some(1e9))
    );
    assert_eq!(port.addresses[0].to_string(), "198.18.0.205/24");
    assert!(port.pause.is_on());
    assert_eq!(
        facts.neighbours[0].mac.unwrap().to_string(),
        "0c:c4:7a:ab:29:35"
    );
    assert_eq!(facts.ways[&to].as_ref().unwrap().interface, "igb2");
    assert_eq!(facts.number("net.inet.ip.forwarding"), Some(1));
    assert_eq!(facts.counters.len(), 2);
    assert!(facts.programs.contains_key("pkt-gen"));
    let log = host.read("log");
    assert_eq!(log.lines().count(), 3, "{log}");
}

#[test]
fn an_openbsd_router_s_facts() {
    let host = Host::new("openbsd", "open");
    assert!(
        host.run(&["arp", "-s", "198.18.0.203", "0c:c4:7a:ab:29:35"])
            .status
            .success()
    );
    let mut facts = Facts::default();
    host.ask(&mut facts, &Question::Uname, Kernel::OpenBsd);
    for question in Question::second(Kernel::OpenBsd) {
        host.ask(&mut facts, &question, Kernel::OpenBsd);
    }
    assert_eq!(facts.kernel(), Some(Kernel::OpenBsd));
    assert_eq!((facts.interfaces.len(), facts.cpus), (2, Some(4)));
    assert_eq!(
        facts.interfaces[1].mac.unwrap().to_string(),
        "00:0d:b9:41:ca:3e"
    );
    assert_eq!(
        (
            facts.neighbours.len(),
            facts.number("net.inet.ip.forwarding")
        ),
        (1, Some(0))
    );
}

#[test]
fn a_reboot_forgets_what_was_not_saved_and_takes_its_time() {
    let host = Host::new("freebsd", "reboot");
    host.run(&["sysctl", "net.inet.ip.forwarding=1"]);
    host.run(&["config", "save"]);
    host.run(&["sysctl", "net.inet6.ip6.forwarding=1"]);
    host.set("boot-s", "never");
    assert!(host.run(&["shutdown", "-r", "now"]).status.success());
    assert_eq!(host.run(&["uname", "-a"]).status.code(), Some(255));
    fs::remove_file(host.state.join("down-until")).unwrap();
    let sysctl = host.run(&[
        "sysctl",
        "-n",
        "net.inet.ip.forwarding",
        "net.inet6.ip6.forwarding",
    ]);
    assert_eq!(String::from_utf8_lossy(&sysctl.stdout), "1\n0\n");
    assert_eq!(host.read("boots"), "1\n");
    host.set("boot-s", "3600");
    host.run(&["reboot"]);
    let until: u64 = host.read("down-until").trim().parse().unwrap();
    assert!(until > 3600 && host.run(&["ifconfig", "-a"]).status.code() == Some(255));
}

#[test]
fn pkt_gen_sends_what_it_is_told_and_gives_the_interface_back() {
    let host = Host::new("freebsd", "send");
    let sent = host.pkt_gen(Side::Generator, ALL, &SEND);
    assert_eq!(
        (sent.state, &sent.faults[..]),
        (State::Over, &[][..]),
        "{sent:?}"
    );
    assert_eq!(
        (sent.totals.packets, sent.totals.said),
        (Some(3_000_000), true)
    );
    // Frames are whole, and so are those of a sample of some milliseconds.
    assert!(near(sent.samples[0], 1e6), "-R is of each thread: {sent:?}");
    let mut facts = Facts::default();
    host.ask(&mut facts, &Question::Interfaces, Kernel::FreeBsd);
    assert_eq!(facts.interface("igb1").unwrap().link, Some(true));
    assert!(!host.state.join("netmap.igb1").exists());
}

#[test]
fn pkt_gen_receives_what_is_on_the_wire() {
    let host = Host::new("freebsd", "receive");
    let alone = host.pkt_gen(Side::Receiver, 3, &RECEIVE);
    // Seconds of the recording that the stand-in is made from.
    let seconds = alone.samples.iter().zip([976_609.0, 963_794.0, 973_674.0]);
    assert!(
        seconds.clone().count() == 3 && seconds.clone().all(|(s, pps)| near(*s, pps)),
        "{alone:?}"
    );
    let wire = host.state.join("shared");
    fs::create_dir(&wire).unwrap();
    host.set("wire", wire.to_str().unwrap());
    let silent = host.pkt_gen(Side::Receiver, 3, &RECEIVE);
    let is_silent = silent.samples.iter().all(|s| s.packets == Some(0));
    assert!(is_silent && !silent.samples.is_empty(), "{silent:?}");
    assert_eq!(silent.faults[0].kind, FaultKind::NoTraffic);
    fs::write(wire.join("offered.gen.igb0"), "500000\n").unwrap();
    let fed = host.pkt_gen(Side::Receiver, 3, &RECEIVE);
    assert!(fed.samples.iter().all(|s| near(*s, 500_000.0)), "{fed:?}");
    fs::write(wire.join("forwards-from"), "9999999999\n").unwrap();
    assert!(
        !host.pkt_gen(Side::Receiver, 3, &RECEIVE).has_traffic(),
        "a DUT that is not through with its boot"
    );
}

#[test]
fn pkt_gen_s_faults_are_told() {
    let host = Host::new("freebsd", "faults");
    for (fault, samples, told) in [
        ("open", ALL, FaultKind::NotOpened),
        ("busy", ALL, FaultKind::Busy),
        ("crash", ALL, FaultKind::Crashed),
        ("zero", 3, FaultKind::NoTraffic),
        ("hang", 0, FaultKind::NoTraffic),
        ("stall", 3, FaultKind::RingStalled),
        ("garble", 3, FaultKind::Garbled),
    ] {
        host.set("fault", fault);
        let report = host.pkt_gen(Side::Receiver, samples, &RECEIVE);
        let kinds: Vec<FaultKind> = report.faults.iter().map(|f| f.kind).collect();
        assert_eq!(
            (kinds.first(), report.state),
            (Some(&told), State::Over),
            "{fault}: {report:?}"
        );
    }
    host.set("fault", "");
    let absent = host.pkt_gen(Side::Generator, ALL, &["-f", "tx", "-i", "igb9"]);
    assert_eq!(
        (absent.faults[0].kind, absent.state),
        (FaultKind::NoInterface, State::Over)
    );
    let option = host.pkt_gen(Side::Generator, ALL, &["-f", "tx", "-i", "igb1", "-U"]);
    assert_eq!(option.faults[0].kind, FaultKind::BadArgument);
}

/// Output of the corpus' router, as the sections of a sample.
fn router(file: impl Fn(&str) -> String) -> String {
    let names = [
        ("netstat -ibdnW", "netstat-ibdnW"),
        ("vmstat -ia", "vmstat-i"),
        ("netstat -Q", "netstat-Q"),
        ("pfctl -s info", "pfctl-si"),
        ("pfctl -s memory", "pfctl-sm"),
        ("pfctl -vsr", "pfctl-vsr"),
        ("ipfw -a list", "ipfw-show"),
        ("dev", "sysctl-dev-em"),
        ("netstat -s -p ip", "netstat-s"),
    ];
    names
        .map(|(name, from)| format!("==> {name} <==\n{}\n", file(from)))
        .concat()
        + "==> sysctl -n kern.cp_times <==\n1 2 3 4 5 6 7 8 9 10\n==> date +%s.%N <==\n1700000000.N\n"
}

const CORPUS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/corpus/freebsd-13.2"
);

/// Programs that print what a real router did, `PROGRAM ARGUMENTS: FILE`; others fail.
const RECORDED: [(&str, &str, &str); 16] = [
    ("sysctl", "-i dev.em.*", "sysctl-dev-em.txt"),
    ("sysctl", "*", "sysctl-a.txt sysctl-ipfw.txt"),
    ("ifconfig", "-a", "ifconfig-a.txt"),
    ("pciconf", "*", "pciconf.txt"),
    ("vmstat", "-i", "vmstat-i.txt"),
    ("cpuset", "-g -x *", "cpuset-g.txt"),
    ("kldstat", "*", "kldstat-v.txt"),
    ("pfctl", "-s info", "pfctl-si.txt"),
    ("pfctl", "-s memory", "pfctl-sm.txt"),
    ("pfctl", "-s rules", "pfctl-vsr.txt"),
    ("netstat", "-rn", "netstat-rn.txt"),
    ("netstat", "-Q", "netstat-Q.txt"),
    ("netstat", "-m", "netstat-m.txt"),
    ("netstat", "-ibdnW", "netstat-ibdnW.txt"),
    ("netstat", "-s", "netstat-s.txt"),
    ("arp", "-an", "arp-an.txt"),
];

/// The answers of the recorded router.
fn recorded(programs: Vec<Vec<String>>, name: &str) -> Vec<Collected> {
    let folder =
        std::env::temp_dir().join(format!("linerate-recorded-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for (program, arguments, files) in RECORDED {
        let files: Vec<String> = files
            .split(' ')
            .map(|file| format!("{CORPUS}/{file}"))
            .collect();
        let case = format!(
            "case \"$*\" in {}) cat {}; exit ;; esac\n",
            arguments.replace(' ', "\\ "),
            files.join(" ")
        );
        let path = folder.join(program);
        let text = fs::read_to_string(&path).unwrap_or("#!/bin/sh\n".into());
        fs::write(
            &path,
            text.trim_end_matches("exit 1\n").to_string() + &case + "exit 1\n",
        )
        .unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let run = |argv: Vec<String>| {
        let ran = Command::new("env")
            .arg(format!("PATH={}:/usr/bin:/bin", folder.display()))
            .args(&argv)
            .output()
            .unwrap();
        let output = match ran.status.success() {
            true => Ok(String::from_utf8(ran.stdout).unwrap()),
            false => Err(ran.status.to_string()),
        };
        Collected {
            command: label(&argv),
            output,
        }
    };
    let answers = programs.into_iter().map(run).collect();
    fs::remove_dir_all(&folder).unwrap();
    answers
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn a_router_of_the_corpus() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/corpus/freebsd-13.2"
    );
    let file = |name: &str| std::fs::read_to_string(format!("{folder}/{name}.txt")).unwrap();
    let sample = linerate_hosts::watch::freebsd::sample(&router(file), 77);
    assert_eq!(
        (sample.at_ns, sample.missing.len()),
        (77, 1),
        "{:?}",
        sample.missing
    );
    assert_eq!(
        sample.interfaces.keys().collect::<Vec<_>>(),
        ["em0", "em1", "lo0", "vtnet0"]
    );
    let vtnet = &sample.interfaces["vtnet0"];
    assert_eq!(
        (
            vtnet.rx.packets,
            vtnet.rx.bytes,
            vtnet.tx.packets,
            vtnet.tx.bytes
        ),
        (3538, 209_844, 3518, 560_026)
    );
    assert!(sample.interfaces["lo0"].stacked && !vtnet.stacked);
    assert_eq!(sample.interfaces["em1"].queues.len(), 1);
    assert_eq!(sample.cpus[&1], [6, 7, 8, 10, 0, 9, 0, 0]);
    let uart = sample
        .interrupts
        .iter()
        .find(|i| i.name == "irq4: uart0")
        .unwrap();
    assert_eq!((uart.counts[0], sample.interrupts.len()), (515, 7));
    assert_eq!(
        (sample.softnet[&0].processed, sample.softnet[&0].dropped),
        (3564 + 6 + 1 + 3565, 0)
    );
    let states = sample.states.unwrap();
    assert_eq!((states.entries, states.limit), (2, 100_000));
    let rules: Vec<(&str, u64)> = sample
        .rules
        .iter()
        .flatten()
        .map(|r| (r.rule.as_str(), r.frames))
        .collect();
    assert_eq!(
        rules,
        [
            ("pf: @0 pass all flags S/SA keep state", 237),
            (
                "ipfw: 00100 allow ip from any to any keep-state :default",
                54
            ),
            ("ipfw: 65535 allow ip from any to any", 0)
        ]
    );
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn the_configuration_of_a_real_freebsd_router() {
    let ends = ["em0", "em1"].map(String::from);
    let answers = recorded(questions(Kernel::FreeBsd, &ends), "configuration");
    let found = Configuration::of(Kernel::FreeBsd, &ends, &answers);
    let machine = &found.machine;
    assert_eq!(
        machine.model.as_deref(),
        Some("QEMU Virtual CPU version 2.5+")
    );
    assert_eq!(machine.virtual_machine.as_deref(), Some("generic"));
    assert_eq!((machine.cpus.len(), machine.memory), (1, Some(793_227_264)));
    assert_eq!(
        machine.mitigations["machdep.mitigations.mds.state"],
        "inactive"
    );
    let card = found.card("em0").unwrap();
    assert_eq!(
        (card.driver.as_deref(), card.driver_version.as_deref()),
        (Some("em"), Some("7.6.1-k"))
    );
    assert_eq!((card.mtu, card.speed), (Some(1500), Some(1e9)));
    assert_eq!((card.pause.rx, card.pause.tx), (Some(false), Some(false)));
    assert_eq!(card.pci.slot.as_deref(), Some("pci0:0:4:0"));
    assert_eq!(
        card.rx_queues,
        Bounded {
            now: Some(1),
            most: None
        }
    );
    assert!(card.features["rx-checksumming"] && !card.features["large-receive-offload"]);
    assert!(!card.features["tcp-segmentation-offload"] && card.features["VLAN_HWTAGGING"]);
    assert!(
        card.coalescing.contains_key("rx_int_delay"),
        "{:?}",
        card.coalescing
    );
    let interrupts: Vec<(u32, &str)> = card
        .interrupts
        .iter()
        .map(|i| (i.number, i.name.as_str()))
        .collect();
    assert!(interrupts.contains(&(11, "em0:irq0")), "{interrupts:?}");
    assert_eq!(found.number("kern.random.harvest.mask"), Some(991));
    assert_eq!(found.number("net.inet.ip.forwarding"), Some(1));
    assert_eq!((found.routes["IPv4"], found.routes["IPv6"]), (9, 7));
    let rules = found
        .rule_sets
        .iter()
        .map(|set| (set.filter.as_str(), set.longest().unwrap().rules));
    assert_eq!(rules.collect::<Vec<_>>(), [("pf", 1)]);
    assert!(found.rule_sets[0].tracks());
    let table = found.table("pf").unwrap();
    assert_eq!((table.entries, table.most), (Some(2), Some(100_000)));
    assert!(
        found.modules.iter().any(|module| module == "kernel"),
        "{:?}",
        found.modules
    );
    let silent: Vec<&str> = found
        .unanswered
        .iter()
        .map(|u| u.question.as_str())
        .collect();
    assert_eq!(
        silent,
        [
            "ipfw list",
            "ipfstat -io",
            "ipfstat -s",
            "dmesg",
            "taps",
            "ipsec"
        ]
    );
    let (on_path, _) = found.on_path(&[]);
    let names: Vec<&str> = on_path.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(
        names,
        ["pf: 1 rule", "states of pf, 2 when linerate looked"]
    );
    // The recording has no answers of these.
    let not_known = found.not_known_of_path().join("; ");
    for what in ["packet sockets (", "policies of IPsec ("] {
        assert!(not_known.contains(what), "{not_known}");
    }
}

/// The route of a real router; nodes of netgraph, packet sockets, policies and queues as their programs document them.
#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn the_way_of_a_real_freebsd_router() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/corpus/freebsd-13.2"
    );
    let route = fs::read_to_string(format!("{folder}/route-get.txt")).unwrap();
    let answer = |command: &str, text: String| Collected {
        command: command.into(),
        output: Ok(text),
    };
    let nodes = "There are 2 total nodes:\n  \
        Name: ipfw            Type: ipfw            ID: 00000002   Num hooks: 1\n  \
        Name: ngctl1234       Type: socket          ID: 00000005   Num hooks: 0\n";
    let answers = [
        answer(
            "way 198.19.128.1 198.18.0.1",
            format!("==> to 198.19.128.1 <==\n{route}"),
        ),
        answer("netgraph", nodes.into()),
        answer(
            "taps",
            "  Pid  Netif   Flags      Recv      Drop     Match Sblen Hblen Command\n \
             1234    em1 p--s---      2215         0      2215     0     0 tcpdump\n \
             1301    em7 p--s---         5         0         5     0     0 dhclient\n"
                .into(),
        ),
        answer(
            "ipsec",
            "10.1.0.0/24[any] 10.0.0.0/24[any] any\n\tin ipsec\n\tesp/tunnel/192.0.2.1-192.0.2.2/require\n\
             10.0.0.0/24[any] 10.1.0.0/24[any] any\n\tout ipsec\n\tesp/tunnel/192.0.2.2-192.0.2.1/require\n\
             10.9.0.0/24[any] 10.0.0.0/24[any] any\n\tin none\n"
                .into(),
        ),
        answer(
            "queues",
            "queue root_em1 on em1 bandwidth 1Gb priority 0 {std, low}\nqueue std on em1 bandwidth 90%\n".into(),
        ),
    ];
    let found = Configuration::of(Kernel::FreeBsd, &["em0".into()], &answers);
    let (on_path, ways) = found.on_path(&["198.19.128.1".parse().unwrap()]);
    assert_eq!(ways, ["to 198.19.128.1: via 198.19.0.2, device em1"]);
    let names: Vec<&str> = on_path.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "netgraph node ipfw (ipfw)",
            "1 policy in, 1 policy out",
            "2 queues of pf",
            "packet socket of tcpdump"
        ]
    );
    let flows = "flow esp in from 10.1.0.0/24 to 10.0.0.0/24 peer 192.0.2.1 type require\n\
                 flow esp out from 10.0.0.0/24 to 10.1.0.0/24 peer 192.0.2.1 type require\n";
    let answers = [
        answer("ipsec", flows.into()),
        answer(
            "queues",
            "queue root on em1 bandwidth 100M\nqueue std parent root bandwidth 50M default\n"
                .into(),
        ),
    ];
    let found = Configuration::of(Kernel::OpenBsd, &["em0".into()], &answers);
    let names: Vec<String> = found
        .on_path(&[])
        .0
        .into_iter()
        .map(|item| item.name)
        .collect();
    assert_eq!(names, ["1 policy in, 1 policy out", "2 queues of pf"]);
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn the_counters_of_a_real_freebsd_router() {
    let ends = ["em0", "em1"].map(String::from);
    let said = recorded(vec![counters::question(Kernel::FreeBsd, &ends)], "counters")
        .remove(0)
        .output
        .unwrap();
    let seen = counters::read(Kernel::FreeBsd, &ends, said.as_bytes());
    assert_eq!(seen.links.keys().collect::<Vec<_>>(), ["em0", "em1"]);
    let found = seen.counters;
    let expected = [
        ("CPU0: netisr ip dispatched", 3564),
        ("CPU0: netisr ether handled", 3565),
        ("interrupt irq11: em0:irq0", 2),
        ("interrupt cpu0:timer", 7127),
        ("mbufs: requests for mbufs denied", 0),
        ("pf: searches", 56),
        ("ip: total packets received", 3640),
        ("pf: state-mismatch", 0),
        ("in: dev.em.0.mac_stats.recv_no_buff", 0),
        ("out: dev.em.1.iflib.rxq0.cpu", 0),
    ];
    for (name, n) in expected {
        assert_eq!(found.get(name), Some(&n), "{name}: {found:#?}");
    }
    assert!(!found.contains_key("interrupt Total"));
}
