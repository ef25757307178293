//! The paper's recommendations for the machines of the archive, their gains, and its size of pf's state table.

use super::{advice, item, router, wanted};
use linerate_advise::{Demands, Role, State, advise};
use linerate_hosts::configuration::ConnectionTable;
use std::path::Path;

const MACHINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/netbenches");

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
fn state_tables_are_computed_as_in_the_paper() {
    let mut found = router("11.1", "Xeon E5-2650 v2", 8, 1, "cxl", 1e10);
    found.machine.memory = Some(8 << 30);
    found.boot.insert(
        "/etc/rc.conf".into(),
        [("pf_enable".into(), "YES".into())].into(),
    );
    let table = ConnectionTable {
        entries: Some(10),
        most: Some(10_000),
        buckets: Some(32_768),
    };
    found.connections.insert("pf".into(), table);
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
