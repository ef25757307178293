//! The paper's own recommendations for the machines of the archive, and what each release has.

use linerate_advise::{Advice, Demands, Item, Role, Runtime, Setting, State, advise};
use linerate_hosts::configuration::{
    Bounded, Card, Configuration, ConnectionTable, Cpu, Interrupt, Release,
};
use linerate_hosts::systems::Pause;
use std::path::Path;

const MACHINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/netbenches");

/// A router of FreeBSD with a CPU of this model and a card of this driver.
fn router(
    release: &str,
    model: &str,
    cores: u32,
    threads: u32,
    driver: &str,
    bits: f64,
) -> Configuration {
    let card = |unit| Card {
        name: format!("{driver}{unit}"),
        found: true,
        speed: Some(bits),
        features: [
            ("large-receive-offload".into(), true),
            ("tcp-segmentation-offload".into(), true),
        ]
        .into(),
        ..Card::default()
    };
    let cpu = |cpu: u32| Cpu {
        cpu,
        core: Some(cpu / threads),
        siblings: (cpu / threads * threads..(cpu / threads + 1) * threads).collect(),
        ..Cpu::default()
    };
    let mut found = Configuration {
        system: Release {
            kernel: "freebsd".into(),
            release: Some(format!("{release}-RELEASE")),
            product: None,
        },
        cards: vec![card(0), card(1)],
        sysctls: [
            ("net.inet.ip.forwarding".into(), "1".into()),
            ("net.inet6.ip6.forwarding".into(), "1".into()),
        ]
        .into(),
        ..Configuration::default()
    };
    found.machine.model = Some(model.into());
    found.machine.cpus = (0..cores * threads).map(cpu).collect();
    found
}

fn advice(found: &Configuration) -> Advice {
    advise(found, Demands::default()).unwrap()
}

fn item<'a>(advice: &'a Advice, id: &str) -> Option<&'a Item> {
    advice.items.iter().find(|item| item.id == id)
}

fn wanted(item: &Item, setting: &str) -> Option<String> {
    item.settings
        .iter()
        .find(|s| s.name == setting)?
        .wanted
        .clone()
}

/// Folder of the archive, cores, threads per core, driver, link; then what the paper's summary (section II.M) and its figures
/// recommend there: the harvest mask's gain in percent (illustration 9), queues (II.H: more than 8 cores), rx_process_limit
/// (illustration 20), the card's features (illustration 21).
type Expected = (
    &'static str,
    u32,
    u32,
    &'static str,
    f64,
    Option<f64>,
    bool,
    bool,
    bool,
);
const EXPECTED: [Expected; 17] = [
    (
        "AMD_G-T40E_2Cores/RTL8111E",
        2,
        1,
        "re",
        1e9,
        None,
        false,
        false,
        false,
    ),
    (
        "AMD_GX-412TC_4Cores/Intel_i210AT",
        4,
        1,
        "igb",
        1e9,
        Some(3.139),
        false,
        true,
        false,
    ),
    (
        "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710",
        8,
        2,
        "ixl",
        1e10,
        None,
        false,
        false,
        false,
    ),
    (
        "Atom_C2558_4Cores/Intel_i350",
        4,
        1,
        "igb",
        1e9,
        Some(4.75),
        false,
        true,
        false,
    ),
    (
        "Atom_C2758_8Cores/Chelsio_T520-SO",
        8,
        1,
        "cxl",
        1e10,
        Some(12.52),
        false,
        false,
        true,
    ),
    (
        "Atom_C2758_8Cores/Chelsio_T540-CR",
        8,
        1,
        "cxl",
        1e10,
        Some(12.52),
        false,
        false,
        true,
    ),
    (
        "Atom_C2758_8Cores/Intel_82599",
        8,
        1,
        "ix",
        1e10,
        Some(6.14),
        false,
        true,
        false,
    ),
    (
        "Xeon_E5-2630_16Cores/Intel_X540-AT2",
        16,
        2,
        "ix",
        1e10,
        None,
        true,
        true,
        false,
    ),
    (
        "Xeon_E5-2650Lv2_10Cores/Chelsio_T540-CR",
        10,
        2,
        "cxl",
        1e10,
        None,
        true,
        false,
        true,
    ),
    (
        "Xeon_E5-2650_8Cores/Chelsio_T540-CR",
        8,
        2,
        "cxl",
        1e10,
        None,
        false,
        false,
        true,
    ),
    (
        "Xeon_E5-2650_8Cores/OneConnect_be3",
        8,
        2,
        "oce",
        1e10,
        None,
        false,
        false,
        false,
    ),
    (
        "Xeon_E5-2650v4_2x12Cores/Chelsio_T520-CR",
        24,
        2,
        "cxl",
        1e10,
        Some(0.0),
        true,
        false,
        true,
    ),
    (
        "Xeon_E5-2650v4_2x12Cores/Intel_82599ES",
        24,
        2,
        "ix",
        1e10,
        Some(0.0),
        true,
        true,
        false,
    ),
    (
        "Xeon_E5-2650v4_2x12Cores/Mellanox_ConnectX-3",
        24,
        2,
        "mlxen",
        1e10,
        Some(11.66),
        false,
        false,
        false,
    ),
    (
        "Xeon_E5-2650v4_2x12Cores/Mellanox_ConnectX-4",
        24,
        2,
        "mce",
        1e10,
        None,
        false,
        false,
        false,
    ),
    (
        "Xeon_E5-2697Av4_16Cores/Chelsio_T580",
        16,
        2,
        "cxl",
        4e10,
        None,
        true,
        false,
        true,
    ),
    (
        "Xeon_L5630_4Cores/Intel_82599EB",
        4,
        2,
        "ix",
        1e10,
        None,
        false,
        true,
        false,
    ),
];

#[test]
fn machines_of_the_archive_get_the_papers_recommendations() {
    for (folder, cores, threads, driver, bits, harvest, queues, limit, features) in EXPECTED {
        assert!(
            Path::new(MACHINES).join(folder).is_dir(),
            "{folder} is a machine of the archive"
        );
        let model = folder.split('_').nth(1).unwrap();
        let found = router(
            "11.1",
            &format!("Intel(R) {model} @ 2.40GHz"),
            cores,
            threads,
            driver,
            bits,
        );
        let all = advice(&found);
        assert_eq!(all.role, Role::Router);
        // "Exclude Ethernet packets & interrupts as entropy sources", in the illustration's own number.
        let mask = item(&all, "freebsd-harvest").unwrap();
        assert_eq!(
            wanted(mask, "kern.random.harvest.mask").as_deref(),
            Some("351"),
            "{folder}"
        );
        assert_eq!(
            mask.settings[0].lasting.as_ref().unwrap().line.as_deref(),
            Some("harvest_mask=\"351\"")
        );
        if let Some(gain) = harvest {
            assert!(
                (mask.gain * 100.0 - gain).abs() < 0.01 && mask.certainty == 0.9,
                "{folder}: {mask:?}"
            );
        }
        // "Apply Yandex's AFDATA and RADIX locks patches", or a later release.
        assert_eq!(
            item(&all, "freebsd-upgrade").unwrap().state,
            State::ByHand,
            "{folder}"
        );
        // "Disable HyperThreading", where there are threads; the page on forwarding adds that it harms an E5-2650L.
        let threading = item(&all, "freebsd-hyper-threading");
        assert_eq!(
            threading.map(|item| item.state),
            (threads > 1).then_some(State::Measure),
            "{folder}"
        );
        // "Increase Intel & Chelsio NIC drivers queues if number of core > 8, and with Chelsio use a power of 2".
        let more = item(&all, "freebsd-cxgbe-queues").or(item(&all, "freebsd-ix-queues"));
        assert_eq!(more.is_some(), queues, "{folder}");
        if let Some(more) = more {
            let name = if driver == "ix" {
                "hw.ix.num_queues"
            } else {
                "hw.cxgbe.nrxq10g"
            };
            let n = if cores >= 16 { "16" } else { "8" };
            assert_eq!(wanted(more, name).as_deref(), Some(n), "{folder}");
        }
        // "Intel NIC driver: remove maximum limit of packets to process".
        assert_eq!(
            item(&all, "freebsd-rx-process-limit").is_some(),
            limit,
            "{folder}"
        );
        // "Chelsio driver: prevent to reserve resources for unused features".
        let caps = item(&all, "freebsd-cxgbe-caps");
        assert_eq!(
            caps.map(|caps| caps.settings.len()),
            features.then_some(4),
            "{folder}"
        );
        // "Disable TSO and LRO".
        let offloads = item(&all, "freebsd-offloads").unwrap();
        let off: Vec<&str> = offloads.settings.iter().map(|s| s.name.as_str()).collect();
        assert!(
            off.contains(&format!("ifconfig {driver}0 lro").as_str()),
            "{off:?}"
        );
        // "Use good NIC like Mellanox and Chelsio".
        assert_eq!(
            item(&all, "freebsd-emulex").is_some(),
            driver == "oce",
            "{folder}"
        );
        // 11.1 has neither fastforwarding nor its successor's condition.
        let gone = item(&all, "freebsd-fastforwarding").unwrap();
        assert!(
            gone.state == State::Absent
                && gone.settings.is_empty()
                && gone.note.as_ref().unwrap().contains("up to 10.4")
        );
        assert_eq!(item(&all, "freebsd-redirect").unwrap().state, State::Absent);
    }
}

#[test]
fn gains_come_from_the_same_hardware_first() {
    let limit = |model: &str, driver: &str| {
        let found = router("11.1", model, 8, 1, driver, 1e10);
        item(&advice(&found), "freebsd-rx-process-limit")
            .unwrap()
            .clone()
    };
    // Illustration 20: +22.66 % on an Atom C2758 with an 82599, +3.75 % on Xeons.
    let atom = limit("Intel(R) Atom(TM) CPU  C2758  @ 2.40GHz", "ix");
    assert!(
        (atom.gain - 0.2266).abs() < 1e-9 && atom.certainty == 0.9,
        "{atom:?}"
    );
    assert_eq!(atom.measured[0].likeness, 3);
    let other = limit("AMD EPYC 3151", "ix");
    assert_eq!((other.certainty, other.measured[0].likeness), (0.5, 1));
    // +24.45 % on a Xeon E5-2650, -38.5 % on an E5-2650L whose queues used its threads: measure.
    let threads = |model: &str| {
        let found = router("11.1", model, 10, 2, "cxl", 1e10);
        item(&advice(&found), "freebsd-hyper-threading")
            .unwrap()
            .clone()
    };
    let (plain, low) = (
        threads("Xeon(R) CPU E5-2650 v2 @ 2.60GHz"),
        threads("Xeon(R) CPU E5-2650L v2 @ 1.70GHz"),
    );
    assert!(
        (plain.gain - 0.2445).abs() < 1e-9 && plain.state == State::Measure,
        "{plain:?}"
    );
    assert!(low.gain < 0.0, "{low:?}");
}

#[test]
fn releases_decide_which_settings_there_are() {
    let of = |release: &str| advice(&router(release, "AMD GX-412TC SOC", 4, 1, "igb", 1e9));
    let old = of("10.3");
    let fast = item(&old, "freebsd-fastforwarding").unwrap();
    assert_eq!(fast.state, State::Change);
    let expected = Runtime::Sysctl {
        name: "net.inet.ip.fastforwarding".into(),
        value: "1".into(),
    };
    assert_eq!(fast.settings[0].runtime, Some(expected));
    let harvest = item(&old, "freebsd-harvest").unwrap();
    assert!(
        harvest.state == State::Absent
            && harvest
                .note
                .as_ref()
                .unwrap()
                .contains("kern.random.sys.harvest")
    );
    let new = of("12.4");
    assert_eq!(item(&new, "freebsd-redirect").unwrap().state, State::Change);
    assert_eq!(item(&new, "freebsd-redirect").unwrap().settings.len(), 2);
    assert_eq!(
        item(&new, "freebsd-rx-process-limit").unwrap().state,
        State::Absent
    );
    assert!(item(&new, "freebsd-upgrade").is_none());
    assert!(
        item(&of("14.1"), "freebsd-redirect")
            .unwrap()
            .note
            .as_ref()
            .unwrap()
            .contains("13.0")
    );
    // A line that is still written down although the release does not have the setting goes.
    let mut stale = router("12.4", "AMD GX-412TC SOC", 4, 1, "igb", 1e9);
    stale.boot.insert(
        "/etc/sysctl.conf".into(),
        [("net.inet.ip.fastforwarding".into(), "1".into())].into(),
    );
    stale.boot.insert(
        "/boot/loader.conf".into(),
        [("hw.igb.rxd".into(), "4096".into())].into(),
    );
    let all = advice(&stale);
    let gone = item(&all, "freebsd-fastforwarding").unwrap();
    assert_eq!(
        (
            gone.state,
            gone.settings[0].lasting.as_ref().unwrap().line.clone()
        ),
        (State::Undo, None)
    );
    let rings = item(&all, "freebsd-descriptors").unwrap();
    assert!(
        rings.state == State::Undo && rings.gain > 0.1 && rings.certainty == 0.9,
        "{rings:?}"
    );
}

#[test]
fn what_is_done_is_not_proposed() {
    let mut found = router("12.4", "AMD GX-412TC SOC", 4, 1, "igb", 1e9);
    for name in ["net.inet.ip.redirect", "net.inet6.ip6.redirect"] {
        found.sysctls.insert(name.into(), "0".into());
    }
    found
        .sysctls
        .insert("kern.random.harvest.mask".into(), "351".into());
    let all = advice(&found);
    assert_eq!(item(&all, "freebsd-redirect").unwrap().state, State::Done);
    assert_eq!(item(&all, "freebsd-harvest").unwrap().state, State::Done);
    // 13.2 after an upgrade: 991 has NET_ETHER off and INTERRUPT on.
    found
        .sysctls
        .insert("kern.random.harvest.mask".into(), "991".into());
    let mask = advice(&found);
    assert_eq!(
        wanted(
            item(&mask, "freebsd-harvest").unwrap(),
            "kern.random.harvest.mask"
        )
        .as_deref(),
        Some("863")
    );
}

#[test]
fn settings_that_the_host_lacks_are_not_proposed() {
    let mut found = router("12.4", "AMD GX-412TC SOC", 4, 1, "igb", 1e9);
    found.cards[0].settings.insert("debug".into(), "-1".into());
    found
        .sysctls
        .extend((0..30).map(|nth| (format!("net.inet.ip.x{nth}"), "0".into())));
    found
        .sysctls
        .insert("net.inet.ip.redirect".into(), "1".into());
    let all = advice(&found);
    let redirect = item(&all, "freebsd-redirect").unwrap();
    assert_eq!(
        (redirect.state, redirect.settings.len()),
        (State::Change, 1)
    );
    let mask = item(&all, "freebsd-harvest").unwrap();
    assert!(
        mask.state == State::Absent
            && mask
                .note
                .as_ref()
                .unwrap()
                .contains("kern.random.harvest.mask"),
        "{mask:?}"
    );
    // igb0 has told its settings, igb1 has not.
    let pause = item(&all, "freebsd-flow-control").unwrap();
    assert_eq!(
        pause
            .settings
            .iter()
            .map(|s| s.name.as_str())
            .collect::<Vec<_>>(),
        ["dev.igb.1.fc"]
    );
}

#[test]
fn slots_are_compared_with_the_ports() {
    let mut found = router("13.2", "Xeon", 8, 1, "cxl", 1e10);
    for (nth, card) in found.cards.iter_mut().enumerate() {
        card.pci.slot = Some(format!("pci0:1:0:{nth}"));
        (card.pci.width, card.pci.speed) = (Some(4), Some(5.0));
    }
    // PCIe 2 x4: 16 Gbit/s after 8b/10b, less in packets; two ports have 20.
    let slow = advice(&found);
    assert!(
        item(&slow, "freebsd-slot")
            .unwrap()
            .evidence
            .as_ref()
            .unwrap()
            .contains("PCIe 2 x4")
    );
    found
        .cards
        .iter_mut()
        .for_each(|card| card.pci.width = Some(8));
    assert!(item(&advice(&found), "freebsd-slot").is_none());
}

#[test]
fn state_tables_are_computed_as_in_the_paper() {
    let mut found = router("11.1", "Xeon E5-2650 v2", 8, 1, "cxl", 1e10);
    found.machine.memory = Some(8 << 30);
    found.boot.insert(
        "/etc/rc.conf".into(),
        [("pf_enable".into(), "YES".into())].into(),
    );
    found.connections = Some(ConnectionTable {
        entries: Some(10),
        most: Some(10_000),
        buckets: Some(32_768),
    });
    let demands = Demands {
        connections: Some(5_000_000),
        ..Demands::default()
    };
    let all = advise(&found, demands).unwrap();
    assert_eq!(all.role, Role::Firewall);
    // Illustration 34: 5 million flows are 10 million states; 33,554,432 slots x 80 bytes = 2.5 GB.
    let pf = item(&all, "freebsd-pf-states").unwrap();
    assert_eq!(wanted(pf, "set limit states").as_deref(), Some("10000000"));
    assert_eq!(
        wanted(pf, "net.pf.states_hashsize").as_deref(),
        Some("33554432")
    );
    let limit = pf
        .settings
        .iter()
        .find_map(|setting| setting.lasting.as_ref())
        .unwrap();
    let text = linerate_advise::lines::changed(
        Some("set limit states 5000\nset skip on lo0\npass\n"),
        &[limit],
    );
    assert_eq!(text, "set skip on lo0\nset limit states 10000000\npass\n");
    assert!(
        pf.computation
            .as_ref()
            .unwrap()
            .contains("2560.0 MiB of 8192.0 MiB"),
        "{:?}",
        pf.computation
    );
}

#[test]
fn end_hosts_get_the_guides_buffers_and_routers_do_not() {
    let mut found = Configuration {
        system: Release {
            kernel: "linux".into(),
            release: Some("6.12.8".into()),
            product: None,
        },
        cards: vec![Card {
            name: "eth0".into(),
            speed: Some(1e9),
            driver: Some("igb".into()),
            ..Card::default()
        }],
        ..Configuration::default()
    };
    let end = Demands {
        role: Some(Role::EndHost),
        ..Demands::default()
    };
    let all = advise(&found, end).unwrap();
    let buffers = item(&all, "linux-tcp-buffers").unwrap();
    // 1 Gbit/s x 100 ms = 12.5 MB, and as much for the overhead of packets. The guide has 16777216, which 67 ms take.
    assert_eq!(
        wanted(buffers, "net.core.rmem_max").as_deref(),
        Some("33554432")
    );
    assert_eq!(
        wanted(buffers, "net.ipv4.tcp_rmem").as_deref(),
        Some("4096 524288 33554432")
    );
    let near = advise(
        &found,
        Demands {
            rtt_ns: 67e6,
            ..end
        },
    )
    .unwrap();
    let near = item(&near, "linux-tcp-buffers").unwrap();
    assert_eq!(
        wanted(near, "net.core.wmem_max").as_deref(),
        Some("16777216")
    );
    assert!(
        buffers
            .computation
            .as_ref()
            .unwrap()
            .contains("12500000 bytes"),
        "{:?}",
        buffers.computation
    );
    // A larger present limit stays; a window of 4 MiB carries a third of the product.
    found
        .sysctls
        .insert("net.ipv4.tcp_rmem".into(), "4096 131072 67108864".into());
    found
        .sysctls
        .insert("net.ipv4.tcp_wmem".into(), "4096 16384 4194304".into());
    let grown = advise(&found, end).unwrap();
    let buffers = item(&grown, "linux-tcp-buffers").unwrap();
    assert_eq!(
        wanted(buffers, "net.ipv4.tcp_rmem").as_deref(),
        Some("4096 524288 67108864")
    );
    let how = buffers.computation.as_ref().unwrap();
    assert!(how.contains("gain: net.ipv4.tcp_wmem lets at most 4194304 bytes pass in each round trip, 336 Mbit/s, and 12500000 / 4194304 - 1 = +198 %"), "{how}");
    assert!(
        (buffers.gain - (12.5e6 / 4_194_304.0 - 1.0)).abs() < 1e-9 && buffers.certainty == 0.5,
        "{buffers:?}"
    );
    found.sysctls.clear();
    // 10 Gbit/s x 80 ms = 100 MB.
    let far = advise(
        &found,
        Demands {
            rate: Some(1e10),
            rtt_ns: 80e6,
            ..end
        },
    )
    .unwrap();
    assert_eq!(
        wanted(
            item(&far, "linux-tcp-buffers").unwrap(),
            "net.core.rmem_max"
        )
        .as_deref(),
        Some("268435456")
    );
    for (setting, value) in [
        ("net.ipv4.tcp_slow_start_after_idle", "0"),
        ("net.ipv4.tcp_no_metrics_save", "1"),
    ] {
        assert_eq!(
            wanted(item(&all, "linux-tcp-idle").unwrap(), setting).as_deref(),
            Some(value)
        );
    }
    assert_eq!(
        wanted(
            item(&all, "linux-tcp-htcp").unwrap(),
            "net.ipv4.tcp_congestion_control"
        )
        .as_deref(),
        Some("htcp")
    );
    // The guide turns SYN cookies and path MTU discovery off: the advice is to turn them on again.
    found
        .sysctls
        .insert("net.ipv4.tcp_syncookies".into(), "0".into());
    found
        .sysctls
        .insert("net.ipv4.ip_no_pmtu_disc".into(), "1".into());
    let all = advise(&found, end).unwrap();
    assert_eq!(
        wanted(
            item(&all, "linux-tcp-syncookies").unwrap(),
            "net.ipv4.tcp_syncookies"
        )
        .as_deref(),
        Some("1")
    );
    assert_eq!(
        wanted(
            item(&all, "linux-path-mtu").unwrap(),
            "net.ipv4.ip_no_pmtu_disc"
        )
        .as_deref(),
        Some("0")
    );
    let router = advise(
        &found,
        Demands {
            role: Some(Role::Router),
            ..Demands::default()
        },
    )
    .unwrap();
    assert!(
        router
            .items
            .iter()
            .all(|item| !item.id.starts_with("linux-tcp")),
        "{:?}",
        router.items
    );
    assert!(item(&router, "linux-offloads").is_none());
    // `off [fixed]` of ethtool: nobody can turn it on.
    found.cards[0].features = [
        ("large-receive-offload".into(), false),
        ("generic-receive-offload".into(), false),
    ]
    .into();
    found.cards[0].fixed = vec!["large-receive-offload".into()];
    let all = advise(&found, end).unwrap();
    let offloads = item(&all, "linux-offloads").unwrap();
    assert!(
        wanted(offloads, "ethtool -K eth0 gro").is_some()
            && wanted(offloads, "ethtool -K eth0 lro").is_none()
    );
}

#[test]
fn queues_interrupts_and_hashes_are_settings() {
    let mut found = router("13.2", "Xeon", 4, 1, "cxl", 1e10);
    let queue = |nth: u32, name: String| Interrupt {
        number: 10 + nth,
        name,
        allowed: vec![0, 1, 2, 3],
        cpus: vec![0],
    };
    found.cards.truncate(1);
    found.cards[0].interrupts = (0..4)
        .map(|nth| queue(nth, format!("t5nex0:0a{nth}")))
        .collect();
    let all = advice(&found);
    let pins = item(&all, "freebsd-chelsio-pinning").unwrap();
    assert_eq!((pins.state, pins.settings.len()), (State::Change, 4));
    assert_eq!(
        pins.settings[2].runtime,
        Some(Runtime::CpuSet {
            irq: 12,
            cpus: "2".into()
        })
    );
    // Without the interrupts' numbers it is a person's work.
    found.cards[0].interrupts.clear();
    assert_eq!(
        item(&advice(&found), "freebsd-chelsio-pinning")
            .unwrap()
            .state,
        State::ByHand
    );

    found.system = Release {
        kernel: "linux".into(),
        release: Some("6.12.8".into()),
        product: None,
    };
    found.sysctls = [("net.ipv4.ip_forward".into(), "1".into())].into();
    found.cards[0] = Card {
        name: "eth0".into(),
        combined_queues: Bounded {
            now: Some(4),
            most: Some(8),
        },
        indirection: vec![0, 1, 0, 1, 0, 1, 0, 1],
        hash_fields: [("udp4".into(), vec!["IP SA".into(), "IP DA".into()])].into(),
        interrupts: (0..4)
            .map(|nth| queue(nth, format!("eth0-TxRx-{nth}")))
            .chain([queue(4, "eth0".into())])
            .collect(),
        ..Card::default()
    };
    let all = advice(&found);
    let pins = item(&all, "linux-interrupts").unwrap();
    assert_eq!((pins.state, pins.settings.len()), (State::Measure, 4));
    let path = "/proc/irq/13/smp_affinity_list".to_string();
    assert_eq!(
        pins.settings[3].runtime,
        Some(Runtime::File {
            path,
            value: "3".into()
        })
    );
    let words = |id: &str| match &item(&all, id).unwrap().settings[..] {
        [
            Setting {
                runtime: Some(Runtime::Ethtool { arguments }),
                lasting: None,
                now,
                ..
            },
        ] => (arguments.join(" "), now.clone().unwrap()),
        other => panic!("{id}: {other:?}"),
    };
    assert_eq!(
        words("linux-indirection"),
        ("-X eth0 equal 4".into(), "2".into())
    );
    assert_eq!(
        words("linux-hash-fields"),
        ("-N eth0 rx-flow-hash udp4 sdfn".into(), "sd".into())
    );
    // Each queue on a CPU of its own, in the table, and hashed by ports.
    for (nth, irq) in found.cards[0].interrupts.iter_mut().enumerate() {
        irq.cpus = vec![nth as u32];
    }
    found.cards[0].indirection = vec![0, 1, 2, 3];
    found.cards[0].hash_fields.clear();
    let all = advice(&found);
    assert!(
        ["linux-interrupts", "linux-indirection", "linux-hash-fields"]
            .iter()
            .all(|id| item(&all, id).is_none())
    );
}

/// Three cards: one uses pause frames and shares a CPU, one has neither, and one is the way to the administrator.
#[test]
fn each_card_gets_what_it_needs_and_the_session_is_spared() {
    let mut found = router("13.2", "Xeon", 4, 1, "igb", 1e9);
    found.system = Release {
        kernel: "linux".into(),
        release: Some("6.12.8".into()),
        product: None,
    };
    found.sysctls = [("net.ipv4.ip_forward".into(), "1".into())].into();
    let pause = Pause {
        autoneg: Some(true),
        rx: Some(true),
        tx: Some(true),
    };
    let card = |name: &str, pause: Pause, queues: u32| Card {
        name: name.into(),
        pause,
        combined_queues: Bounded {
            now: Some(queues),
            most: Some(queues),
        },
        ..Card::default()
    };
    let plain = Pause::default();
    found.cards = vec![
        card("eth0", pause, 4),
        card("eth1", plain, 1),
        card("mgmt0", pause, 4),
    ];
    found.session = vec!["br0".into()];
    found.cards[2].master = Some("br0".into());
    let changes = |found: &Configuration, id: &str| {
        let item = item(&advice(found), id).unwrap().clone();
        let of = |setting: &Setting| setting.runtime.is_some().then(|| setting.name.clone());
        (
            item.state,
            item.settings.iter().filter_map(of).collect::<Vec<_>>(),
            item.note.unwrap_or_default(),
        )
    };
    let (state, settings, note) = changes(&found, "linux-flow-control");
    let expected = ["autoneg", "rx", "tx"].map(|word| format!("ethtool -A eth0 {word}"));
    assert_eq!(
        (state, settings.as_slice()),
        (State::Change, expected.as_slice())
    );
    assert!(
        note.contains("mgmt0 carries this ssh session, and is left out"),
        "{note}"
    );
    let (_, settings, note) = changes(&found, "linux-rps");
    assert_eq!(
        (settings, note.as_str()),
        (vec!["/sys/class/net/eth1/queues/rx-0/rps_cpus".into()], "")
    );
    // The only one that needs it is a person's work.
    found.cards[0].pause = plain;
    let (state, settings, note) = changes(&found, "linux-flow-control");
    assert!(
        state == State::ByHand && settings.is_empty() && note.contains("mgmt0"),
        "{note}"
    );
    found.session.clear();
    assert_eq!(changes(&found, "linux-flow-control").0, State::Change);
}

#[test]
fn redirects_are_off_on_every_interface() {
    let mut found = router("13.2", "Xeon", 4, 1, "igb", 1e10);
    found.system = Release {
        kernel: "linux".into(),
        release: Some("6.12.8".into()),
        product: None,
    };
    found.sysctls = [("net.ipv4.ip_forward".into(), "1".into())].into();
    for (name, value) in [
        ("igb0", "1"),
        ("veth1", "1"),
        ("igb1", "0"),
        ("all", "0"),
        ("default", "1"),
        ("lo", "1"),
    ] {
        found
            .sysctls
            .insert(format!("net.ipv4.conf.{name}.send_redirects"), value.into());
    }
    let all = advice(&found);
    let settings = &item(&all, "linux-redirects").unwrap().settings;
    let sends = settings
        .iter()
        .filter(|one| one.name.ends_with("send_redirects"));
    let sends: Vec<_> = sends
        .map(|one| (one.name.split('.').nth(3).unwrap(), one.lasting.is_some()))
        .collect();
    // `default` comes last, because interfaces without a value of their own follow it; a container's card is gone after a boot.
    assert_eq!(sends, [("igb0", true), ("veth1", false), ("default", true)]);
    let patch = item(&all, "linux-redirects")
        .unwrap()
        .patch
        .clone()
        .unwrap();
    assert!(
        patch["sysctls"]
            .get("net.ipv4.conf.default.send_redirects")
            .is_some()
    );
    assert!(
        patch["sysctls"]
            .get("net.ipv4.conf.igb0.send_redirects")
            .is_none(),
        "{patch}"
    );
}
