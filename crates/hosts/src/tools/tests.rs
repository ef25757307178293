//! The monitors' reports about tools' output.

mod iperf3;

use super::*;
use crate::phases::Status;
use proptest::prelude::*;

fn monitor(tool: Backend, side: Side, text: &str) -> Monitor {
    let mut monitor = Monitor::new(tool, side);
    monitor.feed(text.as_bytes());
    monitor
}

fn ended(tool: Backend, side: Side, text: &str, exit: Option<Status>) -> Report {
    let mut monitor = monitor(tool, side, text);
    monitor.end(exit, false);
    monitor.report().clone()
}

fn kinds(report: &Report) -> Vec<FaultKind> {
    report.faults.iter().map(|f| f.kind).collect()
}

fn receiver(text: &str) -> Report {
    monitor(Backend::PktGen, Side::Receiver, text)
        .report()
        .clone()
}

/// A sample that is consistent, as the new grammar has it.
fn line(second: u64, pps: u64) -> String {
    format!(
        "{:03}.500000 main_thread [2277] {pps} pps ({pps} pkts {} bps in 1000000 usec) 9.5 avg_batch 0 min_space\n",
        second % 1000,
        pps * 480
    )
}

const OPENING: &str = "CMD on bigone: sudo pkt-gen -N -f rx -i ix1 -w 2 -W\n\
    998.1 garbled\n\
    998.000001 main [2552] interface is ix1\n998.000002 main [2675] running on 1 cpus (have 8)\n\
    998.100000 extract_ip_range [465] range is 10.0.0.1:1234 to 10.0.0.1:1234\n\
    998.200000 main [2770] mapped 334980KB at 0x801e00000\nReceiving from netmap:ix1: 8 queues, 1 threads and 1 cpus.\n";

#[test]
fn a_receiver_s_life() {
    let mut monitor = monitor(Backend::PktGen, Side::Receiver, "CMD: pkt-gen -f rx\n");
    let mut states = vec![monitor.report().state];
    let zero = line(1, 0);
    let some = line(2, 1_000_000);
    for text in [
        OPENING,
        "998.300000 start_threads [2235] Wait 2 secs for phy reset\n",
        "000.300001 start_threads [2237] Ready...\n",
        "000.300002 receiver_body [1606] reading from netmap:ix1 fd 3 main_fd 3\n\
         000.400000 receiver_body [1621] waiting for initial packets, poll returns 0 0\n",
        &zero,
        &some,
        "Received 1000000 packets 60000000 bytes 105263 events 60 bytes each in 1.00 seconds.\n",
    ] {
        monitor.feed(text.as_bytes());
        states.push(monitor.report().state);
    }
    use State::*;
    assert_eq!(states, [Starting, Starting, Starting, Up, Up, Up, Up, Over]);
    let report = monitor.report();
    assert_eq!(
        (report.totals.packets, report.totals.said),
        (Some(1_000_000), true)
    );
    assert_eq!((report.samples.len(), report.fatal()), (2, None));
}

#[test]
fn a_terminated_receiver_s_totals_are_its_samples() {
    let text: String = (0..20)
        .map(|s| line(990 + s, if s < 2 { 0 } else { 500_000 }))
        .collect();
    let report = ended(
        Backend::PktGen,
        Side::Receiver,
        &(text + "Terminated\n"),
        Some(Status::Signal(15)),
    );
    assert_eq!(kinds(&report), [FaultKind::Crashed]);
    let mut monitor = monitor(
        Backend::PktGen,
        Side::Receiver,
        &(0..20).map(|s| line(990 + s, 500_000)).collect::<String>(),
    );
    monitor.end(Some(Status::Signal(15)), true);
    let report = monitor.report();
    assert_eq!((report.state, report.faults.len()), (State::Over, 0));
    assert_eq!(
        (report.totals.packets, report.totals.said),
        (Some(10_000_000), false)
    );
    assert_eq!(
        (report.totals.seconds, report.samples.len()),
        (Some(20.0), 20)
    );
    assert_eq!(
        report.samples[10].end_us - report.samples[9].end_us,
        1_000_000,
        "stamps are modulo 1000 s"
    );
}

#[test]
fn pkt_gen_s_own_ends() {
    for (text, told) in [
        (
            "016.123644 receiver_body [1648] poll err\n017.058433 main_thread [2304] ouch, thread 0 exited with error\n",
            FaultKind::Crashed,
        ),
        (
            "501.118283 sender_body [1691] poll error on queue 0: timeout\n",
            FaultKind::RingStalled,
        ),
        (
            "501.118283 sender_body [1691] poll error/timeout on queue 0: No error: 0\n",
            FaultKind::RingStalled,
        ),
        (
            "1.5 x\n501.118283 main [2719] Unable to open netmap:ix9: Device not configured\n501.118284 main [2810] aborting\n",
            FaultKind::NoInterface,
        ),
        (
            "501.118283 main [2719] Unable to open netmap:ix9: Invalid argument\n",
            FaultKind::NotOpened,
        ),
        (
            "501.118283 main [2719] Unable to open netmap:ix9: Operation not permitted\n",
            FaultKind::NoPrivilege,
        ),
        (
            "501.118283 main [2719] Unable to open netmap:ix1: Device busy\n",
            FaultKind::Busy,
        ),
        (
            "501.118283 nm_open [920] NIOCREGIF failed: Device not configured ix9\n",
            FaultKind::NoInterface,
        ),
        (
            "501.118283 main [2719] failed to open device igb2\n",
            FaultKind::NotOpened,
        ),
        (
            "501.118283 main [2719] cannot find interface igb9\n",
            FaultKind::NoInterface,
        ),
        (
            "/dev/netmap: No such file or directory\n501.118283 main [2719] aborting\n",
            FaultKind::NotOpened,
        ),
        ("/dev/netmap: Permission denied\n", FaultKind::NoPrivilege),
        ("igb9: Device not configured\n", FaultKind::NoInterface),
        (
            "501.118283 main [2719] pkt_size (1600) must be <= mtu (1500)\n",
            FaultKind::FrameTooLong,
        ),
        (
            "501.118283 main [2719] bad nthreads 9, have 8 queues\n",
            FaultKind::BadArgument,
        ),
        (
            "pkt-gen: illegal option -- U\nUsage:\npkt-gen arguments\n",
            FaultKind::BadArgument,
        ),
        ("501.118283 main [3300] exiting\n", FaultKind::Crashed),
        ("501.118283 main [3300] link is down\n", FaultKind::LinkDown),
        ("sh: pkt-gen: not found\n", FaultKind::NotInstalled),
        ("sudo: a password is required\n", FaultKind::NoPrivilege),
        (
            "Received 22199 packets 1331940 bytes 7772 events 60 bytes each in -1505074016.06 seconds.\n",
            FaultKind::Crashed,
        ),
        (
            "Speed: -0 pps Bandwidth: -0 bps (raw -0 bps). Average batch: 2.86 pkts\n",
            FaultKind::Crashed,
        ),
    ] {
        let report = receiver(text);
        assert_eq!(kinds(&report).first(), Some(&told), "{text}");
        assert_eq!(report.fatal().is_some(), told.is_fatal(), "{text}");
        assert!(fault::remedy(Backend::PktGen, report.faults[0].kind).len() > 20);
    }
}

#[test]
fn what_only_sounds_like_a_fault() {
    let report = receiver(
        "501.118283 get_vnet_hdr_len [547] Unable to get virtio-net header length\n\
         501.118283 main [2910] failed to install ^C handler: Invalid argument\n\
         + eval /usr/bin/ssh -x root@x 'pkt-gen: not found'\nping6: failed to get receiving hop limit\n\
         Warning: no access to tty (Bad file descriptor).\nThus no job control in this shell.\n",
    );
    assert_eq!(report.faults.len(), 0, "{report:?}");
}

#[test]
fn lines_that_ran_into_each_other() {
    let whole = line(22, 342_835);
    let cut = &whole[..40];
    let report = receiver(&format!("{cut}{whole}\x1bkpxetest1\x1b\\{whole}"));
    assert_eq!(
        (report.samples.len(), report.faults.len()),
        (2, 0),
        "{report:?}"
    );
    // Digits of two lines make a figure that no division gives.
    let wrong = whole.replace("342835 pps", "3428351234 pps");
    let report = receiver(&wrong);
    assert_eq!(
        (report.samples.len(), kinds(&report)),
        (0, vec![FaultKind::Garbled])
    );
    assert_eq!(report.fatal(), None);
}

#[test]
fn numbers_with_unit_prefixes_and_options() {
    let report = receiver(
        "001.000001 main_thread [2781] 14.880 Mpps (14.894 Mpkts 7.149 Gbps in 1001000 usec) 3 avg_batch 9 min_space\n\
         002.000001 main_thread [2781] 14.880 Mpps [avg/std 14.8 M/1.2 Kpps](14.894 Mpkts 7.149 Gbps in 1001000 usec) 3 avg_batch\n",
    );
    assert_eq!(report.samples.len(), 2, "{report:?}");
    assert_eq!(report.samples[1].packets, Some(14_894_000));
}

#[test]
fn totals_of_every_year() {
    let sent = |text: &str| {
        monitor(Backend::PktGen, Side::Generator, text)
            .report()
            .totals
    };
    let old = sent("Sent 80000000 packets, 60 bytes each, in 94.72 seconds.\n");
    assert_eq!(
        (old.packets, old.bytes, old.seconds),
        (Some(80_000_000), Some(4_800_000_000), Some(94.72))
    );
    let oldest = receiver("Received 1000 packets, in 2.00 seconds.\nSpeed: 500.00pps.\n").totals;
    assert_eq!(
        (oldest.packets, oldest.bytes, oldest.seconds),
        (Some(1000), None, Some(2.0))
    );
    let nothing = ended(
        Backend::PktGen,
        Side::Generator,
        "Sent nothing.\n",
        Some(Status::Exit(0)),
    );
    assert_eq!(
        (nothing.totals.packets, kinds(&nothing)),
        (Some(0), vec![FaultKind::NoTraffic])
    );
    // The generator's totals in a receiver's log are not the receiver's.
    let foreign = receiver("Sent 80000000 packets, 60 bytes each, in 94.72 seconds.\n");
    assert_eq!(foreign.totals.packets, None);
}

#[test]
fn a_flood_is_bounded() {
    let mut monitor = Monitor::new(Backend::PktGen, Side::Receiver);
    let block: String = (0..1000).map(|s| line(s, 5)).collect();
    for _ in 0..100 {
        monitor.feed(block.as_bytes());
    }
    let report = monitor.report();
    assert_eq!(report.samples.len(), MOST_SAMPLES);
    assert_eq!(report.totals.packets, Some(500_000));
    let mut noisy = Monitor::new(Backend::PktGen, Side::Receiver);
    for _ in 0..100 {
        noisy.feed("x: not found\npoll err\n".repeat(100).as_bytes());
    }
    assert_eq!(
        noisy
            .report()
            .faults
            .iter()
            .map(|f| f.count)
            .collect::<Vec<_>>(),
        [10_000, 10_000]
    );
}

#[test]
fn exits_tell_what_nothing_else_did() {
    let told = |exit| kinds(&ended(Backend::PktGen, Side::Generator, "", exit));
    assert_eq!(told(Some(Status::Exit(127))), [FaultKind::NotInstalled]);
    assert_eq!(told(Some(Status::Exit(126))), [FaultKind::NoPrivilege]);
    assert_eq!(told(Some(Status::Signal(11))), [FaultKind::Crashed]);
    assert_eq!(told(Some(Status::Exit(139))), [FaultKind::Crashed]);
    assert_eq!(told(None), [FaultKind::PeerGone]);
    assert_eq!(told(Some(Status::Exit(3))), [FaultKind::Other]);
    assert_eq!(told(Some(Status::Exit(0))), [FaultKind::NoTraffic]);
    // The deadline ends tasks without a count: that is no fault if frames passed.
    let text = line(1, 5);
    assert_eq!(
        kinds(&ended(
            Backend::PktGen,
            Side::Generator,
            &text,
            Some(Status::Exit(124))
        )),
        []
    );
}

/// A client's document, cut down to the parts that are read and a little more.
const CLIENT: &str = r#"{
	"start":	{"connected": [{"socket": 5}], "version": "iperf 3.12", "test_start": {"protocol": "UDP", "num_streams": 1, "blksize": 1472, "omit": 1, "duration": 4}},
	"intervals":	[
		{"streams": [{"socket": 5, "packets": 9}], "sum": {"start": 0, "end": 1.0, "seconds": 1.0, "bytes": 1472000, "bits_per_second": 11776000.0, "packets": 1000, "omitted": true, "sender": true}},
		{"streams": [], "sum": {"start": 0, "end": 1.0, "seconds": 1.0, "bytes": 1472000, "bits_per_second": 11776000.0, "packets": 1000, "omitted": false, "sender": true}},
		{"streams": [], "sum": {"start": 1.0, "end": 2.0, "seconds": 1.0, "bytes": 2944000, "bits_per_second": 23552000.0, "packets": 2000, "omitted": false, "sender": true}},
		{"streams": [], "sum": {"start": 2.0, "end": 3.0, "seconds": 1.0, "bytes": 2944000, "bits_per_second": 23552000.0, "packets": 2000, "omitted": false, "sender": true}}
	],
	"end":	{"streams": [], "sum": {"start": 0, "end": 3.0, "seconds": 3.0, "bytes": 7360000, "jitter_ms": 0.003, "lost_packets": 40, "packets": 5000, "lost_percent": 0.8},
		"sum_sent": {"start": 0, "end": 3.0, "seconds": 3.0, "bytes": 7360000, "bits_per_second": 19626666.6, "packets": 5000, "lost_packets": 0},
		"sum_received": {"start": 0, "end": 3.0, "seconds": 3.001, "bytes": 7301120, "packets": 5000, "lost_packets": 40, "sender": false},
		"cpu_utilization_percent": {"host_total": 3.5}}
}
"#;

#[test]
fn netperf_s_samples_and_totals() {
    let text = "MIGRATED UDP STREAM TEST from 198.18.0.1 () port 0 AF_INET to 198.19.0.1 () port 0 AF_INET : demo\n\
        Interim result:  938.51 10^6bits/s over 1.000 seconds ending at 1412345678.123\n\
        Interim result:    1.10 10^9bits/s over 1.001 seconds ending at 1412345679.124\n\
        ELAPSED_TIME=10.00\nTHROUGHPUT=957.01\nTHROUGHPUT_UNITS=10^6bits/s\nLOCAL_SEND_CALLS=812695\n\
        LOCAL_BYTES_SENT=1196287040\nREMOTE_RECV_CALLS=812000\nREMOTE_BYTES_RECVD=1195264000\n";
    let report = ended(
        Backend::Netperf,
        Side::Generator,
        text,
        Some(Status::Exit(0)),
    );
    assert_eq!(
        (report.state, report.faults.len()),
        (State::Over, 0),
        "{report:?}"
    );
    assert_eq!(
        (report.samples[0].bps, report.samples[1].end_us),
        (Some(938.51e6), 2_001_000)
    );
    assert_eq!(
        (report.totals.packets, report.totals.lost),
        (Some(812_695), Some(695))
    );
    let refused = "establish control: are you sure there is a netserver listening on 192.0.2.10 at port 12866?\n\
        establish_control could not establish the control connection from 0.0.0.0 port 0 address family AF_UNSPEC to 192.0.2.10\n";
    assert_eq!(
        kinds(&ended(
            Backend::Netperf,
            Side::Generator,
            refused,
            Some(Status::Exit(255))
        )),
        [FaultKind::NoServer]
    );
    let server = "Starting netserver with host '198.19.0.1' port '12865' and family AF_UNSPEC\n";
    assert_eq!(
        monitor(Backend::Netperf, Side::Receiver, server)
            .report()
            .state,
        State::Up
    );
}

#[test]
fn trafgen_s_totals() {
    let text = "     1 packets to schedule\n    60 bytes in total\nRunning! Hang up with ^C!\n\n\n\r           6 packets outgoing\n\
        \r         360 bytes outgoing\n\r           0 sec, 31151 usec on CPU0 (6 packets)\n";
    let report = ended(
        Backend::Trafgen,
        Side::Generator,
        text,
        Some(Status::Exit(0)),
    );
    assert_eq!(
        (report.state, report.faults.len()),
        (State::Over, 0),
        "{report:?}"
    );
    assert_eq!(
        (report.totals.packets, report.totals.bytes),
        (Some(6), Some(360))
    );
    assert!((report.totals.seconds.unwrap() - 0.031_151).abs() < 1e-9);
    let wrong = "No networking device or pcap file: nosuch0\nFailed to open output device\n";
    let report = ended(
        Backend::Trafgen,
        Side::Generator,
        wrong,
        Some(Status::Exit(1)),
    );
    assert_eq!(
        kinds(&report),
        [FaultKind::NoInterface, FaultKind::NotOpened]
    );
    let report = ended(
        Backend::Trafgen,
        Side::Generator,
        "Syntax error at line 1, char 'o': syntax error\n",
        Some(Status::Exit(1)),
    );
    assert_eq!(kinds(&report), [FaultKind::BadArgument]);
}

fn tools() -> impl Strategy<Value = (Backend, Side)> {
    let side = prop_oneof![Just(Side::Generator), Just(Side::Receiver)];
    let tools = [
        Backend::PktGen,
        Backend::Iperf3,
        Backend::Netperf,
        Backend::Trafgen,
        Backend::Linerate,
    ];
    (prop::sample::select(tools.to_vec()), side)
}

/// Pieces of real output, and anything.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let known = prop_oneof![
        Just(OPENING.to_string()),
        Just(line(1, 5)),
        Just(CLIENT.to_string()),
        Just("Interim result: 1.0 10^6bits/s over 1.0 seconds ending at 5\n".to_string()),
        Just("LOCAL_SEND_CALLS=".to_string()),
        Just("   1.000 s       1000 pps  (1000 frames sent in 1000.0 ms)\nInterface: 9 sent, 18446744073709551615 refused\n".to_string()),
        Just("Sent 1000 frames of 64.0 bytes with FCS in 1.000 s:".to_string()),
        Just("{\"sum\":[".to_string()),
        Just("}".to_string()),
        Just("\n".to_string()),
        Just("Received 5 packets, in ".to_string()),
    ]
    .prop_map(String::into_bytes);
    let piece = prop_oneof![known, prop::collection::vec(any::<u8>(), 0..20)];
    (
        prop::collection::vec(piece, 0..8),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    )
        .prop_map(|(pieces, changes)| {
            let mut bytes = pieces.concat();
            for (at, byte) in changes {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            bytes
        })
}

proptest! {
    #[test]
    fn pieces_of_any_size_read_the_same((tool, side) in tools(), bytes in output(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5)) {
        let mut whole = Monitor::new(tool, side);
        whole.feed(&bytes);
        whole.end(Some(Status::Exit(0)), false);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let mut pieces = Monitor::new(tool, side);
        let mut from = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            pieces.feed(&bytes[from..cut]);
            from = cut;
        }
        pieces.end(Some(Status::Exit(0)), false);
        prop_assert_eq!(whole.report(), pieces.report());
        prop_assert!(whole.report().faults.len() <= 16);
    }
}
