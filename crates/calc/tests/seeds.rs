//! Every figure of the documents that linerate follows which a formula gives, with its place. Where a document errs, the test says so.
//!
//! - 2018: Olivier Cochard-Labbé, "Tuning FreeBSD for routing and firewalling"
//! - 2015: Neville-Neil and Thompson, "Measure Twice, Code Once: Network Performance Analysis for FreeBSD"
//! - 82580: BSD Router Project, "Forwarding performance lab of an IBM System x3550 M3 with Intel 82580"
//! - page: BSD Router Project, "FreeBSD forwarding Performance"
//! - guide: calomel.org, "Network Tuning and Performance"

use linerate_calc::bus::Slot;
use linerate_calc::ethernet::{
    Headers, Load, Processors, Rate, budget, convert, imix, ip_length, line_rate, objective,
    overhead,
};
use linerate_calc::harvest::{COSTLY, Mask, harvest_mask};
use linerate_calc::queues::{Card, best, busiest, queues};
use linerate_calc::states::{
    Asked, IPFW_MOST_BUCKETS, ipfw_buckets, ipfw_states, pf_hash, pf_states,
};
use linerate_calc::tcp::{bdp, bdp_bytes, window_scale};
use linerate_calc::{Amount, Calculation};
use linerate_wire::units::line_rate as frames_at;
use linerate_wire::{FlowSpace, FrameMix};

fn number(page: &Calculation, name: &str) -> f64 {
    page.number(name)
        .unwrap_or_else(|| panic!("no {name} in {page:?}"))
}

fn text<'a>(page: &'a Calculation, name: &str) -> &'a str {
    let found = page.results.iter().find_map(|q| match &q.amount {
        Amount::Text { text } if q.name == name => Some(text.as_str()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no {name} in {page:?}"))
}

/// Whether a document's figure is this value, cut off or rounded to the digits that it prints.
fn printed(value: f64, figure: &str) -> bool {
    let decimals = figure
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len() as i32);
    let (scaled, printed) = (
        value * 10f64.powi(decimals),
        figure.parse::<f64>().unwrap() * 10f64.powi(decimals),
    );
    (scaled.round() - printed).abs() < 1e-6 || (scaled.floor() - printed).abs() < 1e-6
}

fn frames(len: u16) -> FrameMix {
    FrameMix::single(len)
}

#[test]
fn line_rates() {
    let page = |link| line_rate(Load::Link(link), &[frames(64)]).unwrap();
    let (one, ten) = (page(1e9), page(1e10));
    // 2018, introduction: 1.48 and 14.8 Mfps, both cut off; full duplex "3 Mpps" and "30 Mpps", rounded.
    assert!(printed(number(&one, "each direction") / 1e6, "1.48"));
    assert!(printed(number(&ten, "each direction") / 1e6, "14.8"));
    assert!(printed(number(&one, "both directions") / 1e6, "3"));
    assert!(printed(number(&ten, "both directions") / 1e6, "30"));
    // 82580: "1.488Mpps (the maximum rate for GigaEthernet)"; page: "receiving 14Mpps (10G line-rate)", cut off.
    assert!(printed(number(&one, "each direction") / 1e6, "1.488"));
    assert!(printed(number(&ten, "each direction") / 1e6, "14"));
    // 2018, II.F: "the throughput of a simple gigabit NIC (1.44Mpps)": it errs, 1.488 was meant.
    assert!(!printed(number(&one, "each direction") / 1e6, "1.44"));
    // The reverse; 82580 counted 1,488,142 frames in a second, 32 millionths above line rate: two clocks.
    let back = line_rate(Load::Frames(1_488_142.0), &[frames(64)]).unwrap();
    assert!(
        (number(&back, "layer 1") / 1e9 - 1.0).abs() < 4e-5
            && back.answer.ends_with("a link of 1 Gbit/s."),
        "{}",
        back.answer
    );
}

/// 2015, tables 1 to 3, column TX. The lengths are without FCS, except for the first: the rates are line rate for 4 bytes more, within
/// 25 millionths.
#[test]
fn card_to_card_baseline() {
    for (size, tx) in [
        (128, 8_215_485.0),
        (256, 4_464_323.0),
        (512, 2_332_123.0),
        (1024, 1_192_770.0),
        (1500, 820_229.0),
    ] {
        let line = frames_at(1e10, f64::from(size + 4));
        let away = tx / line - 1.0;
        match size {
            128 => assert!((-0.0011..0.0).contains(&away), "{away}"),
            _ => assert!((0.0..25e-6).contains(&away), "{size}: {away}"),
        }
    }
    // 64 is with FCS: without, line rate would be less than the 14,685,502 frames sent.
    assert!(frames_at(1e10, 68.0) < 14_685_502.0 && frames_at(1e10, 64.0) > 14_685_502.0);
    // Table 1 errs: its row of 1024 has the rate of 512, as tables 2 and 3 show; no 10-gigabit link carries it.
    assert!(2_332_123.0 > frames_at(1e10, 1024.0));
    // The shares of line rate in tables 2 and 3 are those of TX. Three of them err: 12.8 % and 13.1 % are printed as 14, 79.49 % as 80.
    let shares = [
        (1_069_691.0, 14_685_502.0, "7"),
        (952_227.0, 4_464_323.0, "21"),
        (949_432.0, 2_332_123.0, "41"),
        (1_273_975.0, 4_464_323.0, "28"),
        (1_267_776.0, 2_332_123.0, "54"),
        (1_192_755.0, 1_192_770.0, "100"),
    ];
    for (rx, tx, percent) in shares {
        assert!(printed(100.0 * rx / tx, percent), "{rx}");
    }
    assert!(
        [1_051_849.0, 1_079_852.0]
            .iter()
            .all(|rx| !printed(100.0 * rx / 8_215_485.0, "14"))
    );
    assert!(printed(100.0 * 948_172.0 / 1_192_770.0, "79"));
}

#[test]
fn simple_imix() {
    let mix = FrameMix::imix();
    // 2018, "Throughput to bandwidth": the shares of bytes are 37, 56 and 7 %.
    let bytes = [1500.0, 4.0 * 576.0, 7.0 * 40.0];
    let all: f64 = bytes.iter().sum();
    assert!(
        bytes
            .iter()
            .zip(["37", "56", "7"])
            .all(|(part, percent)| printed(100.0 * part / all, percent))
    );
    assert_eq!(12.0 * ip_length(&mix), all);
    // The two formulas there.
    let page = imix(Load::Frames(7e6), &mix).unwrap();
    let close =
        |name, value: f64| assert!((number(&page, name) / value - 1.0).abs() < 1e-12, "{name}");
    close(
        "IP layer",
        7e6 * (7.0 * 40.0 + 4.0 * 576.0 + 1500.0) / 12.0 * 8.0,
    );
    close(
        "Ethernet without FCS",
        7e6 * (7.0 * 54.0 + 4.0 * 590.0 + 1514.0) / 12.0 * 8.0,
    );
    // "700K pps = Gigabit IMIX router, 7M pps = 10 Gigabit IMIX router": both directions, without FCS, preamble and gap.
    assert!(printed(objective(1e9) / 1e5, "7") && printed(objective(1e10) / 1e6, "7"));
    // The paper errs on the safe side: with all that the line carries, 655 kpps and 6.55 Mpps are enough. "Switch counters" count the
    // FCS, and no frame of 54 bytes exists.
    let link = imix(Load::Link(1e10), &mix).unwrap();
    assert!(printed(
        number(&link, "frames in both directions") / 1e6,
        "6.55"
    ));
    assert!(
        page.answer.contains("is a 10 Gbit/s IMIX router"),
        "{}",
        page.answer
    );
    // II.E: both gigabit routers reach the objective (951 and 726 kpps); no 10-gigabit router does, and 4.87 Mpps is the most.
    for (kpps, link) in [
        (951.0, "1 Gbit/s"),
        (726.0, "1 Gbit/s"),
        (4870.0, "5 Gbit/s"),
        (8610.0, "10 Gbit/s"),
    ] {
        let page = imix(Load::Frames(kpps * 1e3), &mix).unwrap();
        assert!(
            page.answer.contains(&format!("is a {link} IMIX router")),
            "{}",
            page.answer
        );
    }
    // Table 11 of the paper calls 6.46 Mpps too little for 7 Mpps: it is too little for the line as well, but 6.72 (table 12) is not.
    let answer = |mpps: f64| imix(Load::Frames(mpps * 1e6), &mix).unwrap().answer;
    assert!(answer(6.46).contains("5 Gbit/s") && answer(6.72).contains("10 Gbit/s"));
}

#[test]
fn headers_and_payload() {
    let headers = |tcp, options| Headers {
        ipv6: false,
        tcp,
        vlans: 0,
        options,
    };
    // 2015, 4: "58 bytes of packet headers, 14 for Ethernet, 20 for IPv4, and 20 for TCP and a 4 byte checksum"; TCP leaves 6 bytes.
    let tcp = overhead(1e10, &[frames(64)], headers(true, 0)).unwrap();
    assert_eq!(
        (number(&tcp, "headers and FCS"), number(&tcp, "payload")),
        (58.0, 6.0)
    );
    // "at most 10 bytes of data when UDP is used": it errs. UDP's header is 12 bytes shorter than TCP's, not 4: 18 bytes.
    let udp = overhead(1e10, &[frames(64)], headers(false, 0)).unwrap();
    assert_eq!(number(&udp, "payload"), 18.0);
    // "6.8Gbps of the bandwidth are being used for packet headers", and "about 1.1Gbps of data": with the 14,685,502 frames/s of table
    // 2; the latter with its 10 bytes. At line rate, headers are 6.9 Gbit/s.
    assert!(
        printed(14_685_502.0 * 8.0 * 58.0 / 1e9, "6.8")
            && printed(14_685_502.0 * 8.0 * 10.0 / 1e9, "1.1")
    );
    assert!(printed(
        number(&tcp, "bits of headers and FCS") / 1e9,
        "6.9"
    ));
    // 1500 bytes: "9.4Gbps of the bandwidth is usable data and only 354Mbps is given over to overhead", with the 820,229 frames/s of
    // table 2. The latter errs by the FCS: 54 bytes give 354 Mbit/s, 58 give 381.
    assert!(printed(820_229.0 * 8.0 * 1442.0 / 1e9, "9.4"));
    assert!(
        printed(820_229.0 * 8.0 * 54.0 / 1e6, "354")
            && printed(820_229.0 * 8.0 * 58.0 / 1e6, "381")
    );
    // 2015, figure 2: iperf3's 9.41 Gbit/s is a full line of TCP with timestamps.
    let stream = overhead(1e10, &[frames(1518)], headers(true, 12)).unwrap();
    assert_eq!(number(&stream, "payload"), 1448.0);
    assert!(printed(number(&stream, "bits of payload") / 1e9, "9.41"));
    // Guide, hardware: "full gigabit speeds (~112MB/sec data throughput)": MiB, of the same stream. "up to 930 megabits" is below it.
    let gigabit = number(
        &overhead(1e9, &[frames(1518)], headers(true, 12)).unwrap(),
        "bits of payload",
    );
    assert!(printed(gigabit / 8.0 / 1048576.0, "112") && gigabit > 930e6);
    // Guide, test 2: netperf's messages. 8,972 bytes fill an MTU of 9,000 (20 IPv4, 8 UDP).
    let jumbo = overhead(1e10, &[frames(9018)], headers(false, 0)).unwrap();
    assert_eq!(number(&jumbo, "payload"), 8972.0);
    assert!(
        printed(8_294_531.0 * 8.0 * 8972.0 / 60e6, "9922.4")
            && number(&jumbo, "bits of payload") > 9922.4e6
    );
    assert!(
        printed(9_666_777.0 * 8.0 * 1500.0 / 60e6, "1933.3")
            && printed(9_666_777.0 / 60.0, "161112")
    );
    // The guide errs about "an MTU of 1500": 1,500 bytes of data are two fragments; 1,472 fit.
    assert_eq!(
        number(
            &overhead(1e10, &[frames(1518)], headers(false, 0)).unwrap(),
            "payload"
        ),
        1472.0
    );
    // mssdflt=1440 is 20 bytes less than IPv4 allows, and what IPv6 allows.
    let ipv6 = Headers {
        ipv6: true,
        ..headers(true, 0)
    };
    assert_eq!(
        (1518.0 - ipv6.bytes(), 1518.0 - headers(true, 0).bytes()),
        (1440.0, 1460.0)
    );
}

/// Guide: megabytes and gigabytes a second beside bits a second.
#[test]
fn conversions() {
    let bytes = |bits: f64| {
        number(
            &convert(Rate::Layer2(bits), &frames(1518)).unwrap(),
            "bytes at layer 2",
        )
    };
    // "300 Mbits/sec (37 Megabytes/sec)"; "9.2 Gbits/sec or 1.15 gigabytes per second"; "800 Mbits/sec ... over 100 megabytes".
    assert!(
        printed(bytes(300e6) / 1e6, "37")
            && printed(bytes(9.2e9) / 1e9, "1.15")
            && bytes(800e6).round() >= 100e6
    );
    // "a gigabit connection which can move 1000/8= 128 Megabytes/second": it errs, 125.
    assert_eq!(bytes(1e9).round(), 125e6);
    // iperf's GBytes are 2^30, as its lines show (its time is rounded). One line errs: 3.25 GBytes in 30 s are 931 Mbit/s, not 868.
    let mbit = |gib: f64, seconds: f64| gib * 1073741824.0 * 8.0 / seconds / 1e6;
    for (gib, seconds, figure) in [
        (1.10, 30.0, 315.0),
        (1.24, 30.0, 356.0),
        (1.13, 30.2, 321.0),
        (1.28, 30.0, 368.0),
        (2.95, 30.0, 845.0),
        (2.69, 30.0, 772.0),
        (2.82, 30.2, 803.0),
        (32.7, 30.0, 9350.0),
        (31.8, 30.0, 9120.0),
    ] {
        assert!((mbit(gib, seconds) / figure - 1.0).abs() < 0.005, "{gib}");
    }
    assert!(printed(mbit(3.25, 30.0), "931"));
    // Page, netstat: frames of 64 bytes are counted as 60, without their FCS: 836M in 14M packets.
    let short = convert(Rate::Frames(14e6), &frames(64)).unwrap();
    assert!(((number(&short, "bytes at layer 2") - 4.0 * 14e6) / 836e6 - 1.0).abs() < 0.005);
}

#[test]
fn budget_of_a_frame() {
    // 2015, 2: "67 nanoseconds to process each one", "a 3GHz processor has approximately 200 cycles", "A single cache miss can cost 32ns".
    let page = budget(
        Load::Link(1e10),
        &frames(64),
        Processors {
            cores: 1,
            hertz: 3e9,
            miss_ns: 32.0,
        },
    )
    .unwrap();
    assert!(printed(number(&page, "time"), "67") && printed(number(&page, "cycles") / 100.0, "2"));
    assert_eq!(number(&page, "cache misses"), 2.0);
}

#[test]
fn pci_buses() {
    let bus = |mhz, bits, x| Slot::Pci { mhz, bits, x };
    // Guide: 66*32/8 = 264, 133*64/8 = 1064 megabytes/second; two cards share: 532.
    assert_eq!(
        (
            bus(66.0, 32.0, false).bytes(),
            bus(133.0, 64.0, true).bytes()
        ),
        (264e6, 1064e6)
    );
    assert_eq!(bus(133.0, 64.0, true).bytes() / 2.0, 532e6);
    // The guide's table in Mbit/s. It counts PCI's 33.33 and 66.67 MHz as 133, 266 and 532 MB/s: 0.3 % less than these clocks
    // give. It errs for PCI-X at 133 MHz: 8,192 is 1,024 x 8; its own equation gives 8,512.
    let table = [
        (100.0 / 3.0, 32.0, false, 1064.0),
        (100.0 / 3.0, 64.0, false, 2128.0),
        (200.0 / 3.0, 32.0, false, 2128.0),
        (200.0 / 3.0, 64.0, false, 4256.0),
        (100.0, 64.0, true, 6400.0),
    ];
    for (mhz, bits, x, mbit) in table {
        let away = bus(mhz, bits, x).bytes() * 8.0 / (mbit * 1e6) - 1.0;
        assert!((-1e-9..0.0026).contains(&away), "{mhz} {bits}: {away}");
    }
    assert_eq!(bus(133.0, 64.0, true).bytes() * 8.0, 8512e6);
    // "Standard PCI is 32 bit wide and the bus speed is 66MHz or 133 MHz" errs: 33 or 66; 133 is PCI-X. A card on it that forwards has
    // no gigabit full in both directions at 33 MHz, as frames cross it twice.
    let carries = |slot: Slot| slot.link(256.0, 1.0);
    assert_eq!(
        (
            carries(bus(33.0, 32.0, false)),
            carries(bus(66.0, 32.0, false))
        ),
        (Some(1e8), Some(1e9))
    );
}

#[test]
fn pci_express() {
    let slot = |generation, lanes| Slot::express(generation, lanes).unwrap();
    // Guide: MB/s of a lane in each direction.
    for (generation, mb) in [(1, "250"), (2, "500"), (3, "985"), (4, "1969")] {
        assert!(
            printed(slot(generation, 1).bytes() / 1e6, mb),
            "{generation}"
        );
    }
    // GB/s of slots. Most are cut off. It errs for v4 x8: 11.7 is printed, it is twice the 7.8 of x4.
    let table = [
        (2, 1, "0.5"),
        (2, 4, "2"),
        (2, 8, "4"),
        (2, 16, "8"),
        (3, 1, "0.9"),
        (3, 4, "3.9"),
        (3, 8, "7.8"),
        (3, 16, "15.7"),
        (4, 1, "1.9"),
        (4, 4, "7.8"),
        (4, 16, "31.5"),
    ];
    for (generation, lanes, gb) in table {
        assert!(
            printed(slot(generation, lanes).bytes() / 1e9, gb),
            "{generation} x{lanes}"
        );
    }
    assert!(
        printed(slot(4, 8).bytes() / 1e9, "15.7") && !printed(slot(4, 8).bytes() / 1e9, "11.7")
    );
    // GT/s: 5 and 8 a lane; 20, 32, 64, 128, 256 together.
    for (slot, gt) in [
        (slot(2, 4), 20e9),
        (slot(3, 4), 32e9),
        (slot(4, 4), 64e9),
        (slot(3, 16), 128e9),
        (slot(4, 16), 256e9),
    ] {
        assert!(slot.transfers() == gt);
    }
    // "20% bandwidth overhead" of 8b/10b, "approximately 1.5%" of 128b/130b.
    let lost =
        |generation, transfers: f64| 100.0 * (1.0 - slot(generation, 1).bytes() * 8.0 / transfers);
    assert!(printed(lost(2, 5e9), "20") && printed(lost(3, 8e9), "1.5"));
    // "Fine for N Gbit firewall", with headers of 256-byte payloads, in both directions.
    let fine = [
        (2, 1, 1e9),
        (2, 4, 1e10),
        (2, 16, 4e10),
        (3, 1, 1e9),
        (3, 4, 1e10),
        (3, 8, 4e10),
        (3, 16, 1e11),
        (4, 1, 1e10),
        (4, 4, 4e10),
    ];
    for (generation, lanes, link) in fine {
        assert!(
            slot(generation, lanes).link(256.0, 1.0).unwrap() >= link,
            "{generation} x{lanes}"
        );
    }
    // The guide errs for v4 x16, "250 Gbit": that is the raw rate (252); headers and flow control leave 212.
    assert!(slot(4, 16).bytes() * 8.0 > 250e9 && slot(4, 16).usable(256.0) * 8.0 < 250e9);
    assert_eq!(slot(4, 16).link(256.0, 1.0), Some(2e11));
    // "to support 4, 1Gbps connections on one card ... a PCIe x2 or faster slot": v1 x2 has 4 Gbit/s raw, which headers reduce to 3.4.
    assert_eq!(slot(1, 2).bytes() * 8.0, 4e9);
    assert_eq!(
        (slot(1, 2).link(256.0, 4.0), slot(1, 4).link(256.0, 4.0)),
        (Some(1e8), Some(1e9))
    );
    // The I350-T2 of the guide (PCIe 2 x4, two gigabit ports), and its dual-port 10-gigabit card in a PCIe 2 x8 slot.
    assert!(slot(2, 4).link(256.0, 2.0) >= Some(1e9) && slot(2, 8).link(256.0, 2.0) >= Some(1e10));
}

#[test]
fn state_tables() {
    // 2018, illustration 33: 16,384 states and 256 buckets; 5,000,000 and 65,536 (max).
    assert_eq!(
        (ipfw_buckets(16_384), ipfw_buckets(5_000_000)),
        (256, 65_536)
    );
    // "theoretically the maximum number of states should be about 4M".
    assert_eq!(
        number(
            &ipfw_states(Asked::Hash(IPFW_MOST_BUCKETS as f64)).unwrap(),
            "states"
        ),
        4_194_304.0
    );
    // The configuration of 2018 errs: 65,536, a power of two, was meant by "net.inet.ip.fw.dyn_buckets=65535".
    let page = ipfw_states(Asked::States(5e6)).unwrap();
    assert_eq!(number(&page, "buckets"), 65_536.0);
    // Illustration 34: 10,000 and 32,768, 2.5 MB; 10,000,000 and 33,554,432, 2.5 GB: both are 2^20 and 2^30.
    for (states, hash, bytes) in [
        (10_000, 32_768, 2.5 * 1048576.0),
        (10_000_000, 33_554_432, 2.5 * 1073741824.0),
    ] {
        assert_eq!(pf_hash(states), hash);
        assert_eq!(
            number(
                &pf_states(Asked::States(states as f64), None).unwrap(),
                "memory of the hash"
            ),
            bytes
        );
    }
    // "5M of unidirectional UDP flow, so: IPFW maximum state entry needs to be 5M, PF 10M".
    let page = pf_states(Asked::Connections(5e6), None).unwrap();
    assert_eq!(
        (number(&page, "states"), number(&page, "hash slots")),
        (1e7, 33_554_432.0)
    );
    assert_eq!(
        text(&page, "/boot/loader.conf"),
        "net.pf.states_hashsize=\"33554432\""
    );
    assert_eq!(
        number(&ipfw_states(Asked::Connections(5e6)).unwrap(), "states"),
        5e6
    );
    // "(max with 8GB RAM)": the hash is 31 % of it.
    let page = pf_states(Asked::States(1e7), Some(8.0 * 1073741824.0)).unwrap();
    assert!(printed(100.0 * number(&page, "share of the memory"), "31"));
}

/// 2018, illustration 8 and section II.E; page, "Entropy harvest impact".
#[test]
fn harvest_masks() {
    let all =
        "[UMA],[FS_ATIME],SWI,INTERRUPT,NET_NG,NET_ETHER,NET_TUN,MOUSE,KEYBOARD,ATTACH,CACHED";
    let less =
        "[UMA],[FS_ATIME],SWI,[INTERRUPT],NET_NG,[NET_ETHER],NET_TUN,MOUSE,KEYBOARD,ATTACH,CACHED";
    assert_eq!(
        (Mask(511).to_string().as_str(), Mask(511).binary().as_str()),
        (all, "00111111111")
    );
    assert_eq!(
        (Mask(351).to_string().as_str(), Mask(351).binary().as_str()),
        (less, "00101011111")
    );
    assert_eq!(
        (all.parse(), "00101011111".parse()),
        (Ok(Mask(511)), Ok(Mask(351)))
    );
    let page = harvest_mask(Mask(511), &COSTLY).unwrap();
    assert_eq!(
        (text(&page, "mask"), text(&page, "/etc/rc.conf")),
        ("351", "harvest_mask=\"351\"")
    );
}

#[test]
fn numbers_of_queues() {
    // 2018, summary: a power of two; 16 for 24 cores with cxgbe and ixgbe. Illustration 2: 4 and 8 cores.
    assert_eq!([best(24, 64), best(8, 8), best(4, 8)], [16, 8, 4]);
    // "cxl0: nrxq (6), hw RSS table size (64); expect uneven traffic distribution": 10 or 11 slots each.
    assert_eq!(busiest(6, 64), 11.0 / 64.0);
    let page = queues(Card {
        cores: 6,
        most: 64,
        slots: 64,
        wanted: None,
    })
    .unwrap();
    assert_eq!(number(&page, "queues"), 4.0);
    // II.K: "Theoretically this server should be able to reach the line rate with only 11 queues but it have to use 16": at the rate
    // of a queue of the 8-core server (10.9 Mpps by 8, table 11).
    let card = Card {
        cores: 24,
        most: 64,
        slots: 128,
        wanted: Some((14.88e6, 10.9e6 / 8.0)),
    };
    let page = queues(card).unwrap();
    assert_eq!(
        (
            number(&page, "queues needed"),
            number(&page, "queues needed, as a power of two")
        ),
        (11.0, 16.0)
    );
    // 82580: "about 2000 flows" are 20 sources to 100 destinations; "2000 different UDP destination ports" from 2000 to 4000 are 2,001.
    let flows = |src, dst| FlowSpace::parse(src, dst).unwrap().len();
    assert_eq!(
        flows(
            "198.18.10.1:2000-198.18.10.20",
            "198.19.10.1:2000-198.19.10.100"
        ),
        2000
    );
    assert_eq!(flows("1.3.3.1", "2.3.3.1:2000-2.3.3.1:4000"), 2001);
}

/// Guide: the sizes of its sysctl.conf as windows. It prints no product itself; these are what its values carry.
#[test]
fn bandwidth_delay_products() {
    let rate = |window, ms: f64| number(&bdp(None, Some(ms * 1e6), Some(window)).unwrap(), "rate");
    let reach = |link, window| {
        number(
            &bdp(Some(link), None, Some(window)).unwrap(),
            "round-trip time",
        ) / 1e6
    };
    // tcp_rmem 16777216: 10 Gbit/s up to 13.4 ms, and a 16 MiB window needs scale 9. recvspace 262144: 1 Gbit/s up to 2.1 ms.
    assert!(printed(reach(1e10, 16_777_216.0), "13.4") && printed(reach(1e9, 262_144.0), "2.1"));
    assert_eq!(
        (window_scale(16_777_216.0), window_scale(262_144.0)),
        (Some(9), Some(3))
    );
    // The guide's traceroute to Australia takes 240 ms: 64 KiB without scaling (rfc1323=0) are 2.2 Mbit/s, 16 MiB 559 Mbit/s.
    assert!(
        printed(rate(65_535.0, 240.0) / 1e6, "2.2")
            && printed(rate(16_777_216.0, 240.0) / 1e6, "559")
    );
    assert_eq!(bdp_bytes(1e9, 240e6), 30e6);
    // "ALTq ... a 32bit int and thus can not support values over 2^32 or 4294Mb (4.29Gb)".
    assert!(printed(2f64.powi(32) / 1e6, "4294") && printed(2f64.powi(32) / 1e9, "4.29"));
}
