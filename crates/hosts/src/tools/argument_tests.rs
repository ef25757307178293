//! Command lines: what each tool is asked for, and what it is not.

use super::*;
use linerate_plan::names::Named;
use proptest::prelude::*;

fn v4(text: &str) -> std::net::IpAddr {
    text.parse().unwrap()
}

/// 64-byte frames from one flow for 30 s.
fn plain() -> Traffic {
    Traffic {
        interface: "igb2".into(),
        transport: Transport::Udp,
        frame_len_fcs: 64,
        source: Endpoints::one(v4("198.18.10.1"), 2000),
        destination: Endpoints::one(v4("198.19.10.1"), 2000),
        source_mac: None,
        destination_mac: Some("00:0d:b9:41:ca:3d".parse().unwrap()),
        pps: None,
        seconds: 30,
        threads: 1,
        link_wait_s: 4,
    }
}

/// The archive's usual 2000 flows.
fn archive() -> Traffic {
    let mut traffic = plain();
    traffic.source.last = v4("198.18.10.20");
    traffic.destination.last = v4("198.19.10.100");
    traffic
}

fn words(invocation: &Invocation) -> String {
    invocation.argv.join(" ")
}

fn refusal(tool: Tool, change: impl FnOnce(&mut Traffic)) -> String {
    let mut traffic = plain();
    change(&mut traffic);
    generator(tool, &traffic).unwrap_err().to_string()
}

#[test]
fn pkt_gen_as_the_archive_calls_it() {
    let sent = generator(Tool::PktGen, &archive()).unwrap();
    assert_eq!(
        words(&sent),
        "timeout --foreground -s INT -k 5 34 pkt-gen -N -f tx -i igb2 -w 4 -n 0 -l 60 -4 -s 198.18.10.1:2000-198.18.10.20 \
         -d 198.19.10.1:2000-198.19.10.100 -D 00:0d:b9:41:ca:3d"
    );
    let command = crate::pktgen::Command::parse(None, sent.argv[7..].join(" ").as_bytes());
    assert_eq!((command.flows(), command.length(), command.family()), (Some(2000), Some(60), Some("inet4")));
    let received = receiver(Tool::PktGen, &archive()).unwrap();
    assert_eq!(words(&received), "timeout --foreground -s INT -k 5 43 pkt-gen -N -f rx -i igb2 -w 4");
}

#[test]
fn pkt_gen_is_told_each_thread_s_share_of_the_rate() {
    let traffic = Traffic { pps: Some(20e6), threads: 2, ..archive() };
    let sent = generator(Tool::PktGen, &traffic).unwrap();
    assert!(words(&sent).contains(" -p 2 -R 10000000 -n 600000000 "), "{sent:?}");
    // 512 frames every 51,200 ns, as the archive's logs say of this rate.
    assert_eq!(sent.offered_pps, Some(20e6));
    let odd = generator(Tool::PktGen, &Traffic { pps: Some(13e6), ..archive() }).unwrap();
    // `Sending 512 packets every  0.000039384 s`.
    assert!((odd.offered_pps.unwrap() - 512.0 / 39_384e-9).abs() < 1e-3, "{odd:?}");
    let slow = generator(Tool::PktGen, &Traffic { pps: Some(7.0), ..archive() }).unwrap();
    assert!((slow.offered_pps.unwrap() - 7.0).abs() < 1e-6);
}

#[test]
fn pkt_gen_varies_one_group_of_an_ipv6_address() {
    let mut traffic = plain();
    traffic.frame_len_fcs = 66;
    traffic.source = Endpoints { last: v4("2001:2:0:10::14"), ..Endpoints::one(v4("2001:2:0:10::1"), 2000) };
    traffic.destination = Endpoints { last_port: 2100, ..Endpoints::one(v4("2001:2:0:8010::1"), 2000) };
    let text = words(&generator(Tool::PktGen, &traffic).unwrap());
    assert!(text.contains(" -l 62 -6 -s [2001:2:0:10::1]:2000-[2001:2:0:10::14] "), "{text}");
    assert!(text.contains(" -d [2001:2:0:8010::1]:2000-[2001:2:0:8010::1]:2100 "), "{text}");
    traffic.source.last = v4("2001:2:0:10::1:14");
    let reason = generator(Tool::PktGen, &traffic).unwrap_err().to_string();
    assert!(reason.contains("one group of 16 bits"), "{reason}");
}

#[test]
fn iperf3_counts_payload_and_streams() {
    let traffic = Traffic { frame_len_fcs: 1518, pps: Some(10_000.0), ..plain() };
    let sent = generator(Tool::Iperf3, &traffic).unwrap();
    assert_eq!(
        words(&sent),
        "timeout --foreground -s INT -k 5 45 iperf3 -J -c 198.19.10.1 -B 198.18.10.1 -p 2000 -t 30 -i 1 -P 1 -l 1472 -b 117760000 -u"
    );
    let tcp = Traffic { transport: Transport::Tcp, pps: None, ..traffic.clone() };
    assert!(words(&generator(Tool::Iperf3, &tcp).unwrap()).ends_with("-P 1 -M 1460"));
    assert_eq!(
        words(&receiver(Tool::Iperf3, &traffic).unwrap()),
        "timeout --foreground -s INT -k 5 64 iperf3 -J -s -1 -i 1 -B 198.19.10.1 -p 2000"
    );
}

#[test]
fn netperf_has_its_options_in_two_halves() {
    let sent = generator(Tool::Netperf, &Traffic { frame_len_fcs: 1518, ..plain() }).unwrap();
    assert_eq!(
        words(&sent),
        "timeout --foreground -s INT -k 5 45 netperf -H 198.19.10.1 -L 198.18.10.1 -t UDP_STREAM -l 30 -D 1 -P 0 -- -m 1472 -R 1 \
         -P 2000,2000 -k ELAPSED_TIME,THROUGHPUT,THROUGHPUT_UNITS,LOCAL_SEND_CALLS,LOCAL_BYTES_SENT,REMOTE_RECV_CALLS,\
         REMOTE_BYTES_RECVD"
    );
    assert!(words(&receiver(Tool::Netperf, &plain()).unwrap()).ends_with("netserver -D -L 198.19.10.1"));
}

#[test]
fn trafgen_s_packet_is_one_argument() {
    let mut traffic = Traffic { pps: Some(1000.0), ..plain() };
    traffic.source.last = v4("198.18.10.2");
    traffic.source.last_port = 2002;
    let sent = generator(Tool::Trafgen, &traffic).unwrap();
    assert_eq!(
        sent.argv.last().unwrap(),
        "{ eth(da=00:0d:b9:41:ca:3d), ipv4(sa=dinc(3323070977, 3323070978), da=198.19.10.1, ttl=64), \
         udp(sp=dinc(2000, 2002), dp=2000), fill(0x5a, 18) }"
    );
    assert!(words(&sent).starts_with(
        "timeout --foreground -s KILL -k 5 39 trafgen --no-sock-mem -Q -P 1 -o igb2 -n 30000 -b 1000pps {"
    ));
}

#[test]
fn linerate_by_hand_counts_what_others_send() {
    let sent = generator(Tool::Linerate, &Traffic { pps: Some(127_251.5), ..archive() }).unwrap();
    assert_eq!(
        words(&sent),
        "timeout --foreground -s INT -k 5 39 linerate send -i igb2 --isolated-lab igb2 -N -T 250 -w 4 --size 64 \
         -s 198.18.10.1:2000-198.18.10.20 -d 198.19.10.1:2000-198.19.10.100 -D 00:0d:b9:41:ca:3d -R 127251.5 -p 1 --duration 30s \
         --unsigned"
    );
    let received = receiver(Tool::Linerate, &Traffic { frame_len_fcs: 9018, ..archive() }).unwrap();
    assert_eq!(
        words(&received),
        "timeout --foreground -s INT -k 5 48 linerate receive -i igb2 --isolated-lab igb2 -N -T 250 -w 4 --port af-packet --unsigned \
         --duration 39s"
    );
    assert!(refusal(Tool::Linerate, |t| t.transport = Transport::Tcp).contains("TCP"));
}

#[test]
fn what_a_tool_cannot_is_refused_with_the_reason() {
    let to = |tool, change: fn(&mut Traffic)| refusal(tool, change);
    let many: fn(&mut Traffic) = |t| t.source.last = v4("198.18.10.20");
    for (tool, change, reason) in [
        (Tool::PktGen, (|t| t.transport = Transport::Tcp) as fn(&mut Traffic), "speak TCP"),
        (Tool::PktGen, |t| t.destination_mac = None, "without a destination MAC"),
        (Tool::PktGen, |t| t.frame_len_fcs = 20_000, "at most 16384"),
        (Tool::PktGen, |t| t.pps = Some(1e12), "each can be asked for"),
        (Tool::Iperf3, many, "vary addresses"),
        (Tool::Iperf3, |t| t.threads = 2, "1 flows of 2 stream(s)"),
        (Tool::Iperf3, |t| t.source_mac = t.destination_mac, "source address"),
        (Tool::Netperf, |t| t.pps = Some(1000.0), "at a rate"),
        (Tool::Netperf, |t| t.source.last_port = 2001, "more than one flow"),
        (Tool::Trafgen, |_| (), "without a rate"),
        (Tool::Trafgen, |t| t.threads = 4, "more than one process"),
        (Tool::PktGen, |t| t.interface = "-f".into(), "no interface's name"),
        (Tool::PktGen, |t| t.interface = "igb0; reboot".into(), "no interface's name"),
        (Tool::PktGen, |t| t.interface = String::new(), "no interface's name"),
        (Tool::PktGen, |t| t.source.last = v4("198.18.9.1"), "goes upwards"),
        (Tool::PktGen, |t| t.source.last = v4("2001:2::1"), "one version of IP"),
        (Tool::PktGen, |t| t.frame_len_fcs = 63, "make it 64 to"),
        (Tool::PktGen, |t| t.seconds = 0, "run for 0 s"),
        (Tool::PktGen, |t| t.pps = Some(f64::NAN), "at least 1"),
        (Tool::PktGen, |t| t.threads = 0, "run 0 threads"),
    ] {
        let said = to(tool, change);
        assert!(said.starts_with(&format!("{} cannot ", tool.key())) && said.contains(reason), "{said}");
    }
    let both = archive();
    let reason = generator(Tool::Trafgen, &Traffic { pps: Some(1e3), ..both }).unwrap_err().to_string();
    assert!(reason.contains("make 2000 flows"), "{reason}");
    assert!(receiver(Tool::Trafgen, &plain()).unwrap_err().to_string().contains("receive"));
}

fn any_address() -> impl Strategy<Value = std::net::IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|n| std::net::Ipv4Addr::from(n).into()),
        any::<u128>().prop_map(|n| std::net::Ipv6Addr::from(n).into()),
    ]
}

proptest! {
    #[test]
    fn any_traffic_is_taken_or_refused(
        interface in "\\PC{0,12}",
        ends in prop::collection::vec((any_address(), any::<u16>()), 4),
        (length, seconds, threads) in (any::<u32>(), any::<u32>(), any::<u32>()),
        pps in prop::option::of(any::<f64>()),
        tcp in any::<bool>(),
    ) {
        let side = |a: usize| Endpoints {
            first: ends[a].0, last: ends[a + 1].0, first_port: ends[a].1, last_port: ends[a + 1].1,
        };
        let traffic = Traffic {
            interface, seconds, threads, pps,
            transport: if tcp { Transport::Tcp } else { Transport::Udp },
            frame_len_fcs: length, source: side(0), destination: side(2), ..plain()
        };
        for tool in Tool::all() {
            for made in [generator(tool, &traffic), receiver(tool, &traffic)].into_iter().flatten() {
                prop_assert!(made.argv[0] == "timeout" && made.limit_s >= made.lead_s);
            }
        }
    }

    #[test]
    fn a_load_ends_by_itself(seconds in 1u32..86_400, wait in 0u32..60, pps in prop::option::of(1.0f64..1e8)) {
        let traffic = Traffic { seconds, link_wait_s: wait, pps, ..plain() };
        let made = generator(Tool::PktGen, &traffic).unwrap();
        let deadline: u32 = made.argv[6].parse().unwrap();
        prop_assert!((wait + seconds..=wait + seconds + 5).contains(&deadline));
        if let Some(pps) = pps {
            prop_assert!((made.offered_pps.unwrap() / pps.round() - 1.0).abs() < 2e-4);
        }
    }
}
