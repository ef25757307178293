use super::queues::Layout;
use super::*;
use linerate_measure::watch::{Interface, Side};
use proptest::prelude::*;

/// Queue, whether tx, packets, bytes and drops that an interface has if each of these counters is 1 and all others are 0.
fn queues(names: &[&str]) -> Vec<(usize, char, [u64; 3])> {
    let mut interface = Interface::default();
    Layout::of(names).fill(names, &vec![1; names.len()], &mut interface);
    let figures = |side: &Side| [side.packets, side.bytes, side.drops];
    let of = |(nth, queue): (usize, &linerate_measure::watch::Queue)| {
        let rx = queue.rx.as_ref().map(|side| (nth, 'r', figures(side)));
        let tx = queue.tx.as_ref().map(|side| (nth, 't', figures(side)));
        [rx, tx].into_iter().flatten().collect::<Vec<_>>()
    };
    interface.queues.iter().enumerate().flat_map(of).collect()
}

#[test]
fn the_queues_of_drivers_of_linux() {
    for (driver, names) in [
        (
            "igb, ixgbe, ice, hv_netvsc",
            [
                "rx_queue_1_packets",
                "rx_queue_1_bytes",
                "rx_queue_1_drops",
                "tx_queue_1_packets",
            ],
        ),
        (
            "i40e, iavf",
            ["rx-1.packets", "rx-1.bytes", "rx-1.dropped", "tx-1.packets"],
        ),
        (
            "mlx5, mlx4, virtio_net",
            ["rx1_packets", "rx1_bytes", "rx1_drops", "tx1_packets"],
        ),
        (
            "bnxt",
            [
                "[1]: rx_ucast_packets",
                "[1]: rx_ucast_bytes",
                "[1]: rx_discards",
                "[1]: tx_ucast_packets",
            ],
        ),
        (
            "ena",
            [
                "queue_1_rx_cnt",
                "queue_1_rx_bytes",
                "queue_1_rx_rx_drops",
                "queue_1_tx_cnt",
            ],
        ),
        (
            "gve",
            [
                "rx_packets[1]",
                "rx_bytes[1]",
                "rx_drops_packet_over_mru[1]",
                "tx_packets[1]",
            ],
        ),
        (
            "ionic",
            ["rx_1_pkts", "rx_1_bytes", "rx_1_dropped", "tx_1_pkts"],
        ),
        (
            "nicvf, hinic, be2net",
            ["rxq1: frames", "rxq1: bytes", "rxq1: drops", "txq1: frames"],
        ),
        (
            "atlantic",
            [
                "Queue[1] InPackets",
                "Queue[1] InOctets",
                "Queue[1] InPackets dropped",
                "Queue[1] OutPackets",
            ],
        ),
    ] {
        let found = queues(&names);
        let usual = vec![(1, 'r', [1, 1, 1]), (1, 't', [1, 0, 0])];
        let without_drops = vec![(1, 'r', [1, 1, 0]), (1, 't', [1, 0, 0])];
        assert!(
            found == usual || (driver == "atlantic" && found == without_drops),
            "{driver}: {found:?}"
        );
    }
    assert_eq!(queues(&["q1_rx_pkt_n", "q1_tx_pkt_n"]).len(), 2, "stmmac");
}

#[test]
fn parts_are_added_and_views_of_the_same_frames_are_not() {
    assert_eq!(
        queues(&["[0]: rx_ucast_packets", "[0]: rx_mcast_packets"]),
        [(0, 'r', [2, 0, 0])]
    );
    // virtio_net counts the frames that XDP has seen again.
    assert_eq!(
        queues(&["rx0_packets", "rx0_xdp_packets", "rx0_xdp_drops"]),
        [(0, 'r', [1, 0, 0])]
    );
    // Of Linux 6.10 and later, it shows no others.
    assert_eq!(
        queues(&[
            "rx0_xdp_packets",
            "rx0_xdp_drops",
            "rx0_drops",
            "tx0_xdp_tx"
        ]),
        []
    );
    let veth = [
        "rx_queue_0_xdp_packets",
        "rx_queue_0_xdp_bytes",
        "rx_queue_0_drops",
        "rx_queue_0_xdp_drops",
        "tx_queue_0_xdp_xmit",
        "tx_queue_0_xdp_xmit_errors",
    ];
    assert_eq!(queues(&veth), [(0, 'r', [1, 1, 1]), (0, 't', [1, 0, 1])]);
}

/// The counters of a card with four queues each way, as the driver prints them under headings, with values that name their place.
#[test]
fn the_queues_of_vmxnet3_are_below_headings() {
    let mut text = String::from("NIC statistics:\n");
    for queue in 0..4 {
        text += &format!(
            "     Tx Queue#: {queue}\n       TSO pkts tx: 9\n       TSO bytes tx: 9\n       ucast pkts tx: 4{queue}\n       \
             ucast bytes tx: 5{queue}\n       mcast pkts tx: 3\n       bcast pkts tx: 0\n       pkts tx err: 9\n       \
             pkts tx discard: 1\n       drv dropped tx total: 2\n          too many frags: 9\n          giant hdr: 9\n       \
             ring full: 9\n       giant hdr: 9\n"
        );
    }
    for queue in 0..4 {
        text += &format!(
            "     Rx Queue#: {queue}\n       LRO pkts rx: 9\n       LRO byte rx: 9\n       ucast pkts rx: 1{queue}\n       \
             ucast bytes rx: 2{queue}\n       mcast pkts rx: 5\n       bcast pkts rx: 0\n       pkts rx OOB: 3\n       \
             pkts rx err: 9\n       drv dropped rx total: 4\n          err: 9\n       rx buf alloc fail: 9\n"
        );
    }
    text += "     tx timeout count: 6\n";
    let (names, values) = crate::systems::procnet::driver(&text);
    let mut interface = Interface::default();
    Layout::of(&names).fill(&names, &values, &mut interface);
    let figures = |side: Option<Side>| side.map(|side| [side.packets, side.bytes, side.drops]);
    let queues: Vec<_> = interface
        .queues
        .iter()
        .map(|of| (figures(of.rx), figures(of.tx)))
        .collect();
    let expected = |n: u64| (Some([15 + n, 20 + n, 7]), Some([43 + n, 50 + n, 3]));
    assert_eq!(queues, (0..4).map(expected).collect::<Vec<_>>());
    assert_eq!(interface.driver["tx timeout count"], 6);
    assert_eq!(interface.driver["Rx Queue 2: rx buf alloc fail"], 9);
}

#[test]
fn the_queues_of_drivers_of_freebsd() {
    let found = queues(&[
        "rxq1.ipackets",
        "rxq1.ibytes",
        "rxq1.iqdrops",
        "txq1.opackets",
        "txq1.obytes",
    ]);
    assert_eq!(found, [(1, 'r', [1, 1, 1]), (1, 't', [1, 1, 0])], "vtnet");
    assert_eq!(
        queues(&[
            "queue0.rx_packets",
            "queue0.rx_bytes",
            "queue0.tx_packets",
            "queue0.rx_discarded"
        ]),
        [(0, 'r', [1, 1, 1]), (0, 't', [1, 0, 0])],
        "ix, igb"
    );
    assert_eq!(
        queues(&["pf.rxq00.packets", "pf.txq00.packets", "pf.rxq01.packets"]).len(),
        3,
        "ixl"
    );
    assert_eq!(
        queues(&[
            "rxstat0.packets",
            "txstat0tc0.packets",
            "txstat0tc1.packets"
        ]),
        [(0, 'r', [1, 0, 0]), (0, 't', [2, 0, 0])],
        "mce"
    );
    assert_eq!(
        queues(&["rxq.3.rxcsum", "txq.3.txcsum"]),
        [(3, 'r', [1, 0, 0])],
        "cxl"
    );
    assert_eq!(
        queues(&[
            "iflib.txq0.r_enqueues",
            "iflib.txq0.r_drops",
            "iflib.txq0.txq_processed"
        ]),
        [(0, 't', [1, 0, 1])],
        "em"
    );
    assert_eq!(
        queues(&["queue0.rx_ring.cnt", "queue0.tx_ring.cnt"]).len(),
        2,
        "ena"
    );
    assert_eq!(
        queues(&["queue.0.rx_pkts", "queue.0.tx_pkts"]).len(),
        2,
        "bxe"
    );
}

#[test]
fn other_numbers_are_no_queues() {
    let names = [
        "rx_64_byte_packets",
        "rx_65_to_127_octet_packets",
        "tx_size_64",
        "port.rx_size_1522",
        "rx_prio0_packets",
        "tx_prio_3_bytes",
        "rx_frames_64",
        "mac_stats.tx_frames_65_127",
        "rx_pcs_symbol_err_phy",
        "ch0_poll",
        "rx_ppp0",
        "rx_queue_0_csum_err",
        "tx_queue_0_restart",
        "rx_packets",
        "rx_queue_99999_packets",
        "stats.rx_ovflow0",
    ];
    assert_eq!(queues(&names), []);
}

#[test]
fn sections_have_names() {
    let all = sections("Welcome!\n==> a <==\n1\n2\n==> b c <==\n==> end <==\n");
    assert_eq!(all, [("a", "1\n2\n"), ("b c", ""), ("end", "")]);
    assert_eq!(
        sections("").len() + sections("==>").len() + sections("==> <==").len(),
        0
    );
    assert_eq!(Answers::of("==> a <==\n1\n==> a <==\n2").to("a"), "2");
    assert_eq!(
        fine_time("1700000000.123456789\n"),
        Some(1_700_000_000_123_456_789)
    );
    assert_eq!(fine_time("1700000000.N\n"), None);
}

#[test]
fn a_busy_router_of_freebsd() {
    let text = "==> date +%s.%N <==\n1700000000.500000000\n==> netstat -ibdnW <==\nName Mtu Network Address Ipkts Ierrs Idrop Ibytes Opkts Oerrs Obytes Coll Drop\n\
        cxl0 1500 <Link#1> 00:07:43:2e:e4:70 14000 1 7900 836000 5800 2 353000 3 4\ncxl0.7 1500 <Link#9> 00:07:43:2e:e4:70 1 0 0 1 1 0 1 0 0\n\
        ==> dev <==\ndev.cxl.0.rxq.0.rxcsum: 856\ndev.cxl.0.rxq.1.rxcsum: 862\ndev.cxl.0.stats.rx_ovflow0: 7301719197\ndev.cxl.0.stats.rx_frames_64: 12522860904\n\
        ==> vmstat -ia <==\ninterrupt total rate\ncpu0:timer 749022 583\nirq284: t5nex0:0a0 608689 474\nTotal 11978149 9318\n==> sysctl -q net.inet.ip.fw.dyn_count net.inet.ip.fw.dyn_max <==\nnet.inet.ip.fw.dyn_count: 3\nnet.inet.ip.fw.dyn_max: 16384\n";
    let sample = freebsd::sample(text, 1);
    let cxl = &sample.interfaces["cxl0"];
    assert_eq!(
        (cxl.rx.drops, cxl.rx.errors, cxl.tx.drops, cxl.collisions),
        (7900, 1, 4, 3)
    );
    let queues: Vec<u64> = cxl
        .queues
        .iter()
        .map(|queue| queue.rx.unwrap().packets)
        .collect();
    assert_eq!(
        (queues, cxl.driver["stats.rx_ovflow0"]),
        (vec![856, 862], 7_301_719_197)
    );
    assert!(sample.interfaces["cxl0.7"].stacked);
    assert_eq!(sample.interrupts[1].name, "irq284: t5nex0:0a0");
    assert_eq!(
        (
            sample.at_ns,
            sample.states.unwrap().limit,
            sample.missing.len()
        ),
        (1_700_000_000_500_000_000, 16_384, 0)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn no_name_makes_it_panic(names in prop::collection::vec("\\PC{0,24}|(rx|tx|queue|q|[\\[\\]_. 0-9]){1,8}(packets|bytes|drops)?", 0..8)) {
        let mut interface = Interface::default();
        Layout::of(&names).fill(&names, &vec![u64::MAX; names.len()], &mut interface);
        prop_assert!(interface.queues.len() <= 4096);
    }

    #[test]
    fn no_output_makes_it_panic(text in "(==> (date \\+%s.%N|sysctl -n kern.cp_times|netstat -ibdnW|dev|vmstat -ia|netstat -Q|netstat -s -p ip|pfctl -s info|pfctl -s memory|pfctl -vsr|ipfw -a list) <==\n|\\PC{0,20}\n|WSID CPU QDrops\n|Name Address Ipkts\n|[0-9 ]{1,30}\n|e <Link#1> a 1\n|current entries\n|\\[ Packets: \n){0,24}") {
        freebsd::sample(&text, 1);
    }
}
