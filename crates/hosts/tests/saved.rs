//! Facts of saved folders: real outputs, real configuration files, and whatever somebody may send.

use linerate_hosts::configuration::{Configuration, is_wanted, of_saved};
use linerate_measure::record::SlotFacts;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
            continue;
        }
        let name = path
            .strip_prefix(root)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        if is_wanted(&name) {
            files.insert(
                name,
                String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned(),
            );
        }
    }
}

fn folder(path: &str) -> Configuration {
    let mut files = BTreeMap::new();
    collect(Path::new(path), Path::new(path), &mut files);
    read(files)
}

fn read(files: BTreeMap<String, String>) -> Configuration {
    Configuration::recorded(&of_saved(&files).unwrap()).unwrap()
}

fn files(named: &[(&str, &str)]) -> Configuration {
    read(
        named
            .iter()
            .map(|(name, text)| ((*name).into(), (*text).into()))
            .collect(),
    )
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn outputs_of_a_real_freebsd_router() {
    let found = folder(&format!("{SHARED}/corpus/freebsd-13.2"));
    assert_eq!(
        (
            found.system.kernel.as_str(),
            found.system.release.as_deref()
        ),
        ("freebsd", Some("13.2-RELEASE"))
    );
    let names: Vec<&str> = found.cards.iter().map(|card| card.name.as_str()).collect();
    assert_eq!(names, ["vtnet0", "em0", "em1"]);
    let em = found.card("em0").unwrap();
    assert_eq!(
        (em.speed, em.mtu, em.pause.rx),
        (Some(1e9), Some(1500), Some(false))
    );
    assert_eq!(em.driver_version.as_deref(), Some("7.6.1-k"));
    assert!(em.features["rx-checksumming"] && em.coalescing.contains_key("rx_int_delay"));
    assert_eq!(found.number("kern.random.harvest.mask"), Some(991));
    assert_eq!((found.routes["IPv4"], found.routes["IPv6"]), (9, 7));
    let filters: Vec<&str> = found
        .rule_sets
        .iter()
        .map(|set| set.filter.as_str())
        .collect();
    assert_eq!(filters, ["pf", "ipfw"]);
    // Each table has its own numbers, and rules are counted once: pfctl -vsr and -sa have the same.
    let of = |owner| {
        found
            .table(owner)
            .map(|table| [table.entries, table.most, table.buckets])
    };
    assert_eq!(of("pf").unwrap()[..2], [Some(2), Some(100_000)]);
    assert_eq!(of("ipfw").unwrap()[2], Some(256));
    let rules = found
        .rule_sets
        .iter()
        .map(|set| set.longest().unwrap().rules);
    assert_eq!(rules.collect::<Vec<_>>(), [1, 2]);
    assert_eq!(
        found.written("gateway_enable"),
        Some(("/etc/rc.conf", "YES"))
    );
    assert_eq!(found.machine.cpus.len(), 1);
    // Nobody asked for it.
    assert!(found.written("hostname").is_none() && !found.sysctls.contains_key("kern.hostname"));
}

#[test]
fn configuration_files_of_the_archive() {
    let base = format!(
        "{ROOT}/testdata/netbenches/AMD_GX-412TC_4Cores/Intel_i210AT/kern.random.harvest.mask/configs"
    );
    for (label, mask) in [
        ("511-default", None),
        ("351", Some(("/etc/rc.conf", "351"))),
    ] {
        let found = folder(&format!("{base}/{label}"));
        assert_eq!(
            (
                found.system.kernel.as_str(),
                found.system.release.as_deref()
            ),
            ("freebsd", None)
        );
        let names: Vec<&str> = found.cards.iter().map(|card| card.name.as_str()).collect();
        assert_eq!(names, ["igb0", "igb1", "igb2"]);
        // `-tso4 -tso6 -lro -vlanhwtso` of igb1 and igb2.
        assert!(found.cards[0].features.is_empty());
        assert!(!found.cards[1].features["large-receive-offload"]);
        assert_eq!(found.written("harvest_mask"), mask);
        assert_eq!(
            found.written("dev.igb.0.fc"),
            Some(("/etc/sysctl.conf", "0"))
        );
        assert!(found.written("static_arp_generator").is_none());
    }
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn outputs_that_the_documents_print() {
    let text = |name: &str| {
        let all = std::fs::read_dir(format!("{SHARED}/seeds"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let path = all
            .into_iter()
            .find(|path| {
                path.file_name()
                    .unwrap()
                    .to_string_lossy()
                    .starts_with(name)
            })
            .unwrap();
        std::fs::read_to_string(path).unwrap()
    };
    // The page on forwarding performance: interrupts of an 8-core Xeon with a Chelsio card, and the mask.
    let page = text("003");
    let begin = page
        .find("interrupt                          total")
        .unwrap();
    let interrupts = &page[begin..begin + page[begin..].find("\nTotal").unwrap()];
    let masks: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("kern.random.harvest"))
        .take(3)
        .collect();
    let found = files(&[
        ("vmstat-i.txt", interrupts),
        ("sysctl.txt", &masks.join("\n")),
    ]);
    assert_eq!(found.number("kern.random.harvest.mask"), Some(511));
    let igb = found.card("igb1").unwrap();
    assert_eq!((igb.interrupts.len(), igb.interrupts[0].number), (9, 273));
    // The paper: the card's NUMA node in the boot messages of 2 x 12 cores.
    let paper = text("000")
        .replace("-\nc8ffffff", "-0xc8ffffff")
        .replace('\n', " ");
    let begin = paper.find("t5nex0: <Chelsio T520-CR>").unwrap();
    let line = &paper[begin..begin + paper[begin..].find(" Illustration").unwrap()];
    assert!(line.contains("numa-domain 1"), "{line}");
    let smp = "FreeBSD/SMP: Multiprocessor System Detected: 48 CPUs\nFreeBSD/SMP: 2 package(s) x 12 core(s) x 2 hardware threads";
    let found = files(&[
        ("dmesg.txt", &format!("{smp}\n{line}\n")),
        ("vmstat-i.txt", "irq284: t5nex0:0a0 608689 474\n"),
    ]);
    let card = found.card("cxl0").unwrap();
    assert_eq!(
        (card.pci.node, card.interrupts[0].number),
        (Some(1), 284),
        "{line}"
    );
    assert_eq!(
        (found.machine.cpus.len(), found.machine.cores()),
        (48, Some(24))
    );
    assert_eq!(found.machine.cpus[47].siblings, [46, 47]);
    for (line, threads, cores) in [
        (
            "FreeBSD/SMP: 2 package(s) x 8 core(s) x 2 SMT threads",
            32,
            16,
        ),
        (
            "FreeBSD/SMP: 1 package(s) x 2 cache groups x 4 core(s) x 2 hardware threads",
            16,
            8,
        ),
        ("FreeBSD/SMP: 1 package(s) x 4 core(s)", 4, 4),
    ] {
        let machine = files(&[("dmesg.boot", line)]).machine;
        assert_eq!(
            (machine.cpus.len(), machine.cores()),
            (threads, Some(cores)),
            "{line}"
        );
    }
    // The guide: /etc/sysctl.conf of OpenBSD, with its comments.
    let guide = text("004");
    let begin = guide
        .find("### Calomel.org  OpenBSD v5.1 and later")
        .unwrap();
    let sysctls = &guide[begin..begin + guide[begin..].find("\n\n").unwrap()];
    let found = files(&[
        ("uname-a.txt", "OpenBSD fw 5.1 GENERIC.MP#207 amd64\n"),
        ("etc/sysctl.conf", sysctls),
    ]);
    assert_eq!(
        (
            found.system.kernel.as_str(),
            found.system.release.as_deref()
        ),
        ("openbsd", Some("5.1"))
    );
    assert_eq!(
        found.written("net.inet.ip.ifq.maxlen"),
        Some(("/etc/sysctl.conf", "512"))
    );
    // A comment sign before it: it is not set.
    assert_eq!(found.written("net.inet.udp.recvspace"), None);
}

#[test]
fn answers_of_a_real_linux_firewall() {
    let text = std::fs::read_to_string(format!("{ROOT}/testdata/facts/linux-firewall/facts.jsonl"))
        .unwrap();
    let found =
        Configuration::recorded(&serde_json::from_str::<SlotFacts>(&text).unwrap()).unwrap();
    assert!(
        found.system.release.as_deref().unwrap().starts_with("6."),
        "{:?}",
        found.system
    );
    assert!(found.system.product.as_deref().unwrap().contains("Debian"));
    let names: Vec<(&str, Option<&str>)> = found
        .cards
        .iter()
        .map(|c| (c.name.as_str(), c.kind.as_deref()))
        .collect();
    assert_eq!(names, [("in0", Some("veth")), ("out0", Some("veth"))]);
    assert_eq!(found.cards[0].receive_queues(), Some(2));
    assert_eq!(
        (
            found.number("net.ipv4.ip_forward"),
            found.number("net.ipv4.conf.all.rp_filter")
        ),
        (Some(1), Some(1))
    );
    let set = &found.rule_sets[0];
    assert!(
        set.tracks() && set.sets == 1 && set.longest().unwrap().logging == 1,
        "{set:?}"
    );
    // Blanks between the numbers of a list.
    assert_eq!(found.sysctls["net.ipv4.tcp_rmem"].split(' ').count(), 3);
    assert!(found.machine.memory > Some(1 << 30));
}

#[test]
fn a_tree_of_a_real_linux_machine() {
    let found = folder(&format!("{ROOT}/testdata/facts/linux-tree"));
    assert_eq!(found.system.kernel, "linux");
    assert!(
        found.system.release.as_deref().unwrap().starts_with("6."),
        "{:?}",
        found.system
    );
    assert_eq!(
        (
            found.machine.cpus.len(),
            found.number("net.ipv4.ip_forward")
        ),
        (2, Some(1))
    );
    assert_eq!(
        found
            .cards
            .iter()
            .map(|card| card.name.as_str())
            .collect::<Vec<_>>(),
        ["eth0"]
    );
    assert_eq!(
        found.written("net.core.rmem_max"),
        Some(("/etc/sysctl.d/99-guide.conf", "16777216"))
    );
}

#[test]
fn outputs_of_linux_commands() {
    let found = files(&[
        (
            "lscpu.txt",
            "CPU(s):                             40\nThread(s) per core:  2\nCore(s) per socket: 10\nSocket(s): 2\n\
          Model name: Intel(R) Xeon(R) CPU E5-2650L v2 @ 1.70GHz\nNUMA node(s): 2\nNUMA node0 CPU(s): 0-9,20-29\nNUMA node1 CPU(s): 10-19,30-39\n",
        ),
        (
            "ethtool-k-enp1s0f0.txt",
            "Features for enp1s0f0:\nrx-checksumming: on\nlarge-receive-offload: on\n",
        ),
        (
            "ethtool-g-enp1s0f0.txt",
            "Pre-set maximums:\nRX:\t\t4096\nCurrent hardware settings:\nRX:\t\t512\n",
        ),
        (
            "sysctl-a.txt",
            "net.ipv4.ip_forward = 1\nnet.ipv4.tcp_rmem = 4096\t131072\t6291456\nkernel.hostname = box\n",
        ),
    ]);
    assert_eq!(
        (found.machine.cpus.len(), found.machine.cores()),
        (40, Some(20))
    );
    assert_eq!(
        (
            found.machine.cpus[3].siblings.as_slice(),
            found.machine.nodes[&1].len()
        ),
        ([3, 23].as_slice(), 20)
    );
    let card = found.card("enp1s0f0").unwrap();
    assert_eq!(
        (
            card.features["large-receive-offload"],
            card.rx_ring.now,
            card.rx_ring.most
        ),
        (true, Some(512), Some(4096))
    );
    assert_eq!(found.sysctls["net.ipv4.tcp_rmem"], "4096 131072 6291456");
    assert!(!found.sysctls.contains_key("kernel.hostname"));
}

#[test]
fn secrets_are_left_out() {
    let all = [
        (
            "etc/rc.conf",
            "gateway_enable=YES\nifconfig_em0_alias0=\"vhid 1 pass geheim1 10.0.0.1/32\"\nwpa_psk=\"geheim2\"\nsnmpd_flags=\"-c geheim3\"\n\
          ifconfig_wlan0=\"ssid x wepkey geheim4\"\n",
        ),
        (
            "boot/loader.conf",
            "geli_ada0_keyfile0_name=\"geheim5\"\nhw.igb.rxd=4096\nkern.geom.eli.passphrase=\"geheim6\"\n",
        ),
        (
            "etc/sysctl.conf",
            "net.inet.tcp.fastopen.setkey=geheim7\nnet.inet.ip.redirect=0\n",
        ),
        (
            "sysctl-a.txt",
            "kern.hostuuid: geheim8\nnet.inet.ip.forwarding: 1\nkern.geom.confxml: <x>\ngeheim9\nsecurity.bsd.x: geheim10\n",
        ),
        (
            "ifconfig-a.txt",
            "em0: flags=8843<UP> metric 0 mtu 1500\n\twgpubkey: geheim11\n",
        ),
        (
            "etc/pf.conf",
            "set limit states 5000\npass in from 10.0.0.1 # geheim12\n",
        ),
    ];
    let files: BTreeMap<String, String> = all
        .iter()
        .map(|(name, text)| ((*name).into(), (*text).into()))
        .collect();
    let facts = of_saved(&files).unwrap();
    let found = Configuration::recorded(&facts).unwrap();
    for text in [
        serde_json::to_string(&facts).unwrap(),
        serde_json::to_string(&found).unwrap(),
    ] {
        assert!(!text.contains("geheim"), "{text}");
    }
    assert_eq!(
        found.written("hw.igb.rxd"),
        Some(("/boot/loader.conf", "4096"))
    );
    assert_eq!(
        (
            found.number("net.inet.ip.forwarding"),
            found.written("net.inet.ip.redirect").is_some()
        ),
        (Some(1), true)
    );
}

#[test]
fn folders_of_nothing_known_say_so() {
    assert!(
        of_saved(&BTreeMap::new())
            .unwrap_err()
            .contains("uname-a.txt")
    );
    for name in [
        "README.md",
        "../etc/shadow",
        "etc/passwd",
        "etc/rc.d/netif",
        "home/x/.ssh/id_rsa",
        "mysysctl.conf",
    ] {
        assert!(!is_wanted(name), "{name}");
    }
    for name in [
        "sysctl-a.txt",
        "boot/loader.conf.local",
        "rc.conf.txt",
        "proc/sys/net/ipv4/ip_forward",
        "ethtool-k-eth0.txt",
    ] {
        assert!(is_wanted(name), "{name}");
    }
}

proptest! {
    #[test]
    fn any_folder_is_read_without_a_panic(
        texts in prop::collection::vec((0..14usize, "(?s)([a-z0-9.:= ]{0,12}[\\PC\n\t]{0,40}){0,6}"), 1..5),
        kernel in prop::sample::select(vec!["FreeBSD x 12.1", "Linux x 6.1 y", "OpenBSD x 7.4 y", ""]),
    ) {
        let names = [
            "sysctl-a.txt", "ifconfig-a.txt", "vmstat-i.txt", "dmesg.txt", "pfctl-sa.txt", "ipfw-show.txt", "etc/rc.conf", "pf.conf",
            "proc/cpuinfo", "sys/class/net/e0/device/x", "ethtool-k-eth0.txt", "ip-link.json", "netstat-rn.txt", "boot/loader.conf",
        ];
        let mut files: BTreeMap<String, String> = texts.into_iter().map(|(at, text)| (names[at].to_string(), text)).collect();
        files.insert("uname-a.txt".into(), kernel.into());
        if let Ok(facts) = of_saved(&files) {
            prop_assert!(Configuration::recorded(&facts).is_some());
        }
    }
}

#[test]
fn the_fill_of_ipf_and_limits_in_braces() {
    // The forms of versions 4 and 5 of ipfstat(8).
    for stat in [
        "IP states added:\n\t3 TCP\n\t12 active\n\t9 expired\n",
        "12\tactive state table entries\n0\tadd bad\n",
    ] {
        let found = files(&[
            ("uname.txt", "FreeBSD r 13.2-RELEASE"),
            ("ipfstat-s.txt", stat),
            (
                "ipf-T-list.txt",
                "state_max\tmin 0x1\tmax 0x7fffffff\tcurrent 4013\nstate_size\tmin 0x1\tmax 0x7fffffff\tcurrent 5737\n",
            ),
            (
                "pf.conf",
                "set limit { states 10000, src-nodes 2000 }\nset limit frags 5000\n",
            ),
        ]);
        let table = found.table("ipf").unwrap();
        assert_eq!(
            (table.entries, table.most, table.buckets),
            (Some(12), Some(4013), Some(5737))
        );
        let limits = &found.boot["/etc/pf.conf"];
        assert_eq!(
            (
                limits["set limit states"].as_str(),
                limits["set limit src-nodes"].as_str(),
                limits.len()
            ),
            ("10000", "2000", 3)
        );
    }
}

#[test]
fn rules_of_pf_that_pass_keep_state_unless_they_say_so() {
    for (rules, tracking) in [
        ("block all\npass all flags S/SA\n", 1),
        ("pass all no state\npass in all flags S/SA keep state\n", 1),
        ("pass all no state\n", 0),
    ] {
        let found = files(&[("uname.txt", "OpenBSD r 7.4"), ("pfctl-sr.txt", rules)]);
        assert_eq!(
            found.rule_sets[0].longest().unwrap().tracking,
            tracking,
            "{rules}"
        );
    }
}

/// One command in several forms is one answer, and an interface that two outputs have is one interface.
#[test]
fn what_is_saved_twice_is_there_once() {
    let ifconfig = "em0: flags=8843<UP> mtu 1500\n\tlladdr 52:54:00:12:34:56\n\tinet 198.18.0.1 netmask 0xffffff00\n\tinet6 2001:2::1 prefixlen 64\nvlan4: flags=8843<UP> mtu 1500\n\tgroups: vlan\n";
    let hwfeatures = "em0: flags=8843<UP> mtu 1500\n\thwfeatures=10<VLAN_MTU> hardmtu 9216\n\tinet 198.18.0.1 netmask 0xffffff00\nvlan4: flags=8843<UP> mtu 1500\n\tgroups: vlan\n";
    let rules = "block return all\npass all flags S/SA\n";
    let numbered = "@0 block return all\n  [ Evaluations: 13 ]\n@1 pass all flags S/SA\n";
    let all = format!(
        "FILTER RULES:\n{rules}\nSTATES:\nall tcp 1 <- 2\n\nINFO:\nStatus: Enabled for 0 days\n\nLABEL COUNTERS:\npass one 0 0\n"
    );
    let outputs: [&[(&str, &str)]; 4] = [
        &[("pfctl-sr.txt", rules)],
        &[("pfctl-vsr.txt", numbered)],
        &[("pfctl-sa.txt", &all)],
        &[
            ("pfctl-sa.txt", &all),
            ("pfctl-sr.txt", rules),
            ("pfctl-vsr.txt", numbered),
            ("pfctl-vvsr.txt", numbered),
        ],
    ];
    for rules in outputs {
        let before = [
            ("uname.txt", "OpenBSD r 7.8"),
            ("ifconfig-a.txt", ifconfig),
            ("ifconfig-hwfeatures.txt", hwfeatures),
        ];
        let found = files(&[&before[..], rules].concat());
        assert_eq!(found.rule_sets.len(), 1);
        assert_eq!(found.rule_sets[0].longest().unwrap().rules, 2, "{rules:?}");
        let names: Vec<&str> = found.cards.iter().map(|card| card.name.as_str()).collect();
        assert_eq!((names, found.links.len()), (vec!["em0"], 1));
        // The listing with hwfeatures lacks IPv6.
        assert_eq!(found.cards[0].addresses.len(), 2);
    }
    // Without the whole listing, those of single interfaces are parts of it.
    let found = files(&[
        ("uname.txt", "OpenBSD r 7.8"),
        ("ifconfig-em0.txt", "em0: flags=8843<UP> mtu 1500\n"),
        ("ifconfig-em1.txt", "em1: flags=8843<UP> mtu 1500\n"),
    ]);
    assert_eq!(found.cards.len(), 2);
}

/// An appliance is known by the file that it is known by over ssh, saved, or by its own word; uname(1) and os-release need not be there.
#[test]
fn appliances_are_known_by_their_files() {
    let sysctl = ("sysctl-a.txt", "net.inet.ip.forwarding: 1\n");
    let core = (
        "usr/local/opnsense/version/core",
        "{\n    \"product_id\": \"opnsense\",\n    \"product_version\": \"24.7.1\",\n}\n",
    );
    let uname = ("uname-a.txt", "FreeBSD fw 14.1-RELEASE-p3 amd64\n");
    let release = (
        "etc/os-release",
        "ID=freebsd\nPRETTY_NAME=\"FreeBSD 14.1\"\n",
    );
    let said = ("opnsense-version.txt", "OPNsense 24.7.1 (amd64)\n");
    let platform = ("etc/platform", "pfSense\n");
    let product = |named: &[(&str, &str)]| {
        let found = files(named).system;
        assert_eq!(found.kernel, "freebsd", "{named:?}");
        found.product
    };
    for named in [
        &[sysctl, core, uname][..],
        &[sysctl, core],
        &[core, release],
        &[sysctl, said],
        &[said, uname, release],
    ] {
        assert_eq!(product(named).as_deref(), Some("OPNsense 24.7.1"));
    }
    assert_eq!(product(&[uname, platform]).as_deref(), Some("pfSense"));
    assert_eq!(product(&[uname, sysctl]), None);
}
