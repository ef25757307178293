use super::*;
use proptest::prelude::*;

const OLD: &[u8] = b"290.703575 main_thread [1441] 729113 pps (730571 pkts in 1002000 usec)";
const NEW: &[u8] =
    b"022.940404 main_thread [2277] 342835 pps (343485 pkts 164872800 bps in 1001897 usec) 2.57 avg_batch 0 min_space";

fn sample(line: &[u8]) -> Sample {
    match parse(line) {
        Line::Sample(sample) | Line::ScaledSample(sample) => sample,
        other => panic!("{other:?}"),
    }
}

fn read(text: &str) -> Log {
    let mut reader = Reader::new();
    reader.feed(text.as_bytes());
    reader.finish()
}

#[test]
fn both_grammars() {
    let old = Sample {
        time_us: 290_703_575,
        pps: 729_113,
        packets: 730_571,
        bps: None,
        interval_us: 1_002_000,
    };
    assert_eq!(sample(OLD), old);
    let new = sample(NEW);
    assert_eq!(
        (new.time_us, new.pps, new.bps),
        (22_940_404, 342_835, Some(164_872_800))
    );
}

#[test]
fn quantities_with_unit_prefixes() {
    let line =
        b"001.000001 main_thread [2781] 14.880 Mpps (14.894 Mpkts 7.149 Gbps in 1001000 usec) 3 avg_batch";
    let s = sample(line);
    assert_eq!(
        (s.pps, s.packets, s.bps, s.interval_us),
        (14_880_000, 14_894_000, Some(7_149_000_000), 1_001_000)
    );
}

#[test]
fn what_is_cut_or_garbled_is_no_sample() {
    for line in [
        &OLD[..60],
        b"29.703575 main_thread [1441] 1 pps (1 pkts in 1 usec)",
        b"290.703575 main_thread [14",
    ] {
        assert!(
            !matches!(parse(line), Line::Sample(_)),
            "{}",
            String::from_utf8_lossy(line)
        );
    }
    let huge = b"290.703575 main_thread [1441] 99999999999999999999 pps (1 pkts in 1 usec)";
    assert_eq!(parse(huge), Line::Message);
}

#[test]
fn headers_with_and_without_host_and_sudo() {
    let plain = read("CMD: pkt-gen -N -f rx -i igb3 -w 4\n")
        .command
        .unwrap();
    assert_eq!(
        (plain.host.as_deref(), plain.sudo, plain.program()),
        (None, false, "pkt-gen")
    );
    let remote = read("CMD on bigone: sudo pkt-gen -N -f rx -i ix1 -w 2 -W\n")
        .command
        .unwrap();
    assert_eq!(
        (remote.host.as_deref(), remote.sudo),
        (Some("bigone"), true)
    );
    let titled = read("\x1bkpxetest1\x1b\\CMD on pxetest1: pkt-gen -N -f rx -i vcxl0 -w 2 -W\n")
        .command
        .unwrap();
    assert_eq!(titled.option('i'), Some("vcxl0"));
    let v6 = read("CMD on 192.168.1.2:: pkt-gen -f rx\n")
        .command
        .unwrap();
    assert_eq!(v6.program(), "pkt-gen");
    assert_eq!(read("CMD on pxetest4: \n").command.unwrap().program(), "");
}

#[test]
fn facts_of_a_sender() {
    let text = "CMD: pkt-gen -U -f tx -i igb3 -n 80000000 -l 60 -4         -d 198.19.10.1:2000-198.19.10.100 \
                -D 00:0d:b9:41:ca:3d -s 198.18.10.1:2000-198.18.10.20         -w 4 -R 850k\n";
    let command = read(text).command.unwrap();
    let facts: std::collections::BTreeMap<_, _> = command.facts().into_iter().collect();
    assert_eq!(
        (facts["length"].as_str(), facts["length_fcs"].as_str()),
        ("60", "64")
    );
    assert_eq!(
        (
            facts["flows"].as_str(),
            facts["family"].as_str(),
            facts["rate_pps"].as_str()
        ),
        ("2000", "inet4", "850000")
    );
    assert_eq!(
        (facts["interface"].as_str(), facts["wait_s"].as_str()),
        ("igb3", "4")
    );
}

#[test]
fn flows_of_address_and_port_ranges() {
    let flows = |s: &str, d: &str| {
        Command::parse(None, format!("pkt-gen -f tx -s {s} -d {d}").as_bytes()).flows()
    };
    assert_eq!(
        flows("198.18.1.1:2000-198.18.1.255:2200", "198.19.0.11:2000"),
        Some(255 * 201)
    );
    assert_eq!(
        flows(
            "\"[2001:2::1]-[2001:2::14]\"",
            "\"[2001:2:0:8001::1]-[2001:2:0:8001::64]\""
        ),
        Some(20 * 100)
    );
    // Ends are swapped; the port that is not named is 1234.
    assert_eq!(flows("198.18.1.9-198.18.1.1", "198.19.0.1"), Some(9));
    assert_eq!(
        flows("198.18.1.1", "198.19.0.1-198.19.0.2:1243"),
        Some(2 * 10)
    );
    for (range, count) in [
        ("[2001:2::1]", Some(1)),
        ("[2001:2::1]:2001", Some(1)),
        ("[2001:2::1]:2001-[2001:2::14]", Some(20)),
        ("[2001:2::1]:2001-[2001:2::14]:2003", Some(60)),
        ("[2001:2::1]-[2001:2::14]", Some(20)),
        ("2001:2::1-2001:2::14", Some(20)),
        ("6@[2001:2::1:1]:9-[2001:2::5:1]", Some(5)),
        ("6@2001:2::1:1-6@2001:2::5:1", Some(5)),
        // pkt-gen sends other addresses, or its behaviour is unknown.
        ("[2001:2::14]-[2001:2::1]", None),
        ("[2001:2::1]-[2001:2::5:1]", None),
        ("6@[2001:2::1:1]-5@[2001:2::5:1]", None),
        ("[2001:2::1]:x-[2001:2::14]", None),
        ("[2001:2::1]x-[2001:2::14]", None),
        ("[2001:2::1-[2001:2::14]", None),
        ("[2001:2::1]-198.18.0.1", None),
        ("[2001:2::1]-[2001:2::14]-[2001:2::20]", None),
        ("198.18.0.1:1-198.18.0.2-198.18.0.3", None),
        ("198.18.0.1-", None),
    ] {
        assert_eq!(flows(range, "198.19.0.1"), count, "{range}");
        assert_eq!(flows("198.19.0.1", range), count, "{range}");
    }
    let family =
        |d: &str| Command::parse(None, format!("pkt-gen -f tx -d {d}").as_bytes()).family();
    assert_eq!(
        [
            family("6@2001:2::1"),
            family("::1-::2"),
            family("192.0.2.1:9")
        ],
        [Some("inet6"), Some("inet6"), Some("inet4")]
    );
    assert_eq!(flows("::", "-"), None);
    assert_eq!(
        flows(
            "[::]-[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
            "198.19.0.1"
        ),
        None
    );
}

#[test]
fn options_as_getopt_reads_them() {
    let command = Command::parse(
        None,
        b"pkt-gen -Nftx -i \"a b\" -l60 -l 61 - x -\xc3\xa9 -w",
    );
    assert_eq!(
        (
            command.option('N'),
            command.option('f'),
            command.option('i')
        ),
        (Some(""), Some("tx"), Some("a b"))
    );
    assert_eq!(
        (command.length(), command.option('w'), command.option('q')),
        (Some(61), Some(""), None)
    );
}

proptest! {
    #[test]
    fn any_command_is_taken(text in "\\PC{0,80}") {
        Command::parse(None, text.as_bytes()).facts();
        Command::parse(None, format!("pkt-gen -f tx -s {text} -d {text} -R {text}").as_bytes()).facts();
    }
}

#[test]
fn summaries_of_both_years() {
    let old = read(
        "Sent 80000000 packets, 124 bytes each, in 94.72 seconds.\nSpeed: 844.63 Kpps Bandwidth: 837.88 Mbps (raw 1.00 Gbps)\n",
    );
    let s = old.summary.unwrap();
    assert_eq!(
        (s.packets, s.length, s.seconds, s.pps),
        (Some(80_000_000), Some(124), Some(94.72), Some(844_630.0))
    );
    let new = read(
        "Sent 1000000000 packets 43000000000 bytes 2735080 events 43 bytes each in 50.08 seconds.\n\
         Speed: 19968118 pps Bandwidth: 6869032491 bps (raw 6869032491 bps). Average batch: 365.62 pkts\n",
    );
    let s = new.summary.unwrap();
    assert_eq!(
        (s.length, s.seconds, s.pps, s.bps),
        (
            Some(43),
            Some(50.08),
            Some(19_968_118.0),
            Some(6_869_032_491.0)
        )
    );
}

#[test]
fn crashes_are_faults_and_no_figures() {
    let log = read(
        "016.123644 receiver_body [1648] poll err\n\
         017.058433 main_thread [2304] ouch, thread 0 exited with error\n\
         Received 22199 packets 1331940 bytes 7772 events 60 bytes each in -1505074016.06 seconds.\n\
         Speed: -0 pps Bandwidth: -0 bps (raw -0 bps). Average batch: 2.86 pkts\n",
    );
    let words = [
        "negative speed or time in its summary",
        "ouch, thread exited with error",
        "poll err",
    ];
    assert_eq!(
        log.crashes,
        words
            .map(|words| format!("pkt-gen crashed: {words}"))
            .iter()
            .map(|w| &w[..])
            .collect()
    );
    assert_eq!(log.summary, None);
    let warned = read(
        "1 x\n501.118283 sender_body [1691] poll error on queue 0: timeout\n\
         501.118283 get_vnet_hdr_len [547] Unable to get virtio-net header length\n",
    );
    assert!(warned.crashes.is_empty());
}

#[test]
fn lines_of_others_are_no_figures() {
    let shell = "+ return 0\n+ eval /usr/bin/ssh -x\nTerminated\n\nWarning: no access to tty (Bad file descriptor).\n\
         Thus no job control in this shell.\n";
    assert!(
        shell
            .lines()
            .all(|line| parse(line.as_bytes()) == Line::Shell)
    );
    assert_eq!(
        parse(b"ping6: failed to get receiving hop limit"),
        Line::Unknown
    );
    let log = read(shell);
    assert_eq!((log.samples.len(), log.newlines), (0, 6));
}

#[test]
fn time_stamps_are_unwrapped() {
    let lines = [
        "999.500000",
        "000.500000",
        "999.900000",
        "001.500000",
        "002.600000",
    ];
    let text: String = lines
        .map(|t| format!("{t} main_thread [1] 1 pps (1 pkts in 1000000 usec)\n"))
        .concat();
    let times: Vec<u64> = read(&text)
        .samples
        .iter()
        .map(|(_, s)| s.time_us / 100_000)
        .collect();
    assert_eq!(times, [9_995, 10_005, 9_999, 10_015, 10_026]);
}

#[test]
fn the_last_line_needs_no_newline_and_may_be_cut() {
    let log = read(&format!(
        "{}\n{}",
        String::from_utf8_lossy(NEW),
        String::from_utf8_lossy(NEW)
    ));
    assert_eq!((log.samples.len(), log.newlines), (2, 1));
    assert_eq!(log.frame_length(), Some(60));
    assert_eq!(read(&String::from_utf8_lossy(&NEW[..70])).samples.len(), 0);
}

proptest! {
    #[test]
    fn pieces_of_any_size_read_the_same(cuts in prop::collection::vec(0usize..400, 0..6)) {
        let text = format!("CMD: pkt-gen -f rx\n{0}\n+ return 0\n{0}\nTerminated", String::from_utf8_lossy(NEW));
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut reader = Reader::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            reader.feed(&bytes[from..cut]);
            from = cut;
        }
        prop_assert_eq!(reader.finish(), read(&text));
    }

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut reader = Reader::new();
        reader.feed(&bytes);
        let log = reader.finish();
        prop_assert!(log.newlines <= bytes.len() as u64);
    }
}
