//! Command lines: options that each tool gets, and options that it must not get.

use super::*;
use linerate_plan::names::Named;
use linerate_wire::{
    EndpointRange, Family, FlowOrder, FlowSpace, FrameMix, FrameSpec, Load, MacAddr, Traffic,
    Transport,
};
use proptest::prelude::*;
use std::time::Duration;

/// 64-byte frames from one flow for 30 s.
fn plain() -> Task {
    let to = "00:0d:b9:41:ca:3d".parse().unwrap();
    let frame = FrameSpec::new(to, MacAddr::default(), Family::V4, Transport::Udp);
    let flows = FlowSpace::parse("198.18.10.1:2000", "198.19.10.1:2000").unwrap();
    Task {
        interface: "igb2".into(),
        traffic: Traffic::new(frame, FrameMix::single(64), flows),
        load: Load::lasting(Duration::from_secs(30)),
        threads: 1,
        link_wait_s: 4,
    }
}

fn changed(mut task: Task, change: impl FnOnce(&mut Task)) -> Task {
    change(&mut task);
    task
}

fn flows(task: &mut Task, source: &str, destination: &str) {
    task.traffic.flows = FlowSpace::parse(source, destination).unwrap();
}

/// The archive's usual 2000 flows.
fn archive() -> Task {
    changed(plain(), |t| {
        flows(
            t,
            "198.18.10.1:2000-198.18.10.20",
            "198.19.10.1:2000-198.19.10.100",
        )
    })
}

fn generator(tool: Backend, task: &Task) -> Result<Invocation, Unsuitable> {
    command(tool, Side::Generator, task)
}

fn receiver(tool: Backend, task: &Task) -> Result<Invocation, Unsuitable> {
    command(tool, Side::Receiver, task)
}

fn words(invocation: &Invocation) -> String {
    invocation.argv.join(" ")
}

fn refusal(tool: Backend, change: impl FnOnce(&mut Task)) -> String {
    generator(tool, &changed(plain(), change))
        .unwrap_err()
        .to_string()
}

#[test]
fn pkt_gen_as_the_archive_calls_it() {
    let sent = generator(Backend::PktGen, &archive()).unwrap();
    assert_eq!(
        words(&sent),
        "timeout --foreground -s INT -k 5 34 pkt-gen -N -f tx -i igb2 -w 4 -n 0 -l 60 -4 -s 198.18.10.1:2000-198.18.10.20 \
         -d 198.19.10.1:2000-198.19.10.100 -D 00:0d:b9:41:ca:3d"
    );
    let command = crate::pktgen::Command::parse(None, sent.argv[7..].join(" ").as_bytes());
    assert_eq!(
        (command.flows(), command.length(), command.family()),
        (Some(2000), Some(60), Some("inet4"))
    );
    let received = receiver(Backend::PktGen, &archive()).unwrap();
    assert_eq!(
        words(&received),
        "timeout --foreground -s INT -k 5 43 pkt-gen -N -f rx -i igb2 -w 4"
    );
}

#[test]
fn pkt_gen_is_told_each_thread_s_share_of_the_rate() {
    let traffic = changed(archive(), |t| (t.load.rate, t.threads) = (Some(20e6), 2));
    let sent = generator(Backend::PktGen, &traffic).unwrap();
    assert!(
        words(&sent).contains(" -p 2 -R 10000000 -n 600000000 "),
        "{sent:?}"
    );
}

#[test]
fn pkt_gen_varies_one_group_of_an_ipv6_address() {
    let mut traffic = plain();
    (traffic.traffic.mix, traffic.traffic.frame.family) = (FrameMix::single(66), Family::V6);
    let destination = "[2001:2:0:8010::1]:2000-[2001:2:0:8010::1]:2100";
    flows(
        &mut traffic,
        "[2001:2:0:10::1]:2000-[2001:2:0:10::14]",
        destination,
    );
    let text = words(&generator(Backend::PktGen, &traffic).unwrap());
    assert!(
        text.contains(" -l 62 -6 -s [2001:2:0:10::1]:2000-[2001:2:0:10::14] "),
        "{text}"
    );
    assert!(
        text.contains(" -d [2001:2:0:8010::1]:2000-[2001:2:0:8010::1]:2100 "),
        "{text}"
    );
    flows(
        &mut traffic,
        "[2001:2:0:10::ffff]:2000-[2001:2:0:10::1:14]",
        destination,
    );
    let reason = generator(Backend::PktGen, &traffic)
        .unwrap_err()
        .to_string();
    assert!(reason.contains("one group of 16 bits"), "{reason}");
}

#[test]
fn iperf3_counts_payload_and_streams() {
    let traffic = changed(plain(), |t| {
        (t.traffic.mix, t.load.rate) = (FrameMix::single(1518), Some(10_000.0))
    });
    let sent = generator(Backend::Iperf3, &traffic).unwrap();
    assert_eq!(
        words(&sent),
        "timeout --foreground -s INT -k 5 45 iperf3 -J -c 198.19.10.1 -B 198.18.10.1 -p 2000 -t 30 -i 1 -P 1 -l 1472 -b 117760000 -u"
    );
    let tcp = changed(traffic.clone(), |t| {
        (t.traffic.frame.transport, t.load.rate) = (Transport::Tcp, None)
    });
    assert!(words(&generator(Backend::Iperf3, &tcp).unwrap()).ends_with("-P 1 -M 1460"));
    assert_eq!(
        words(&receiver(Backend::Iperf3, &traffic).unwrap()),
        "timeout --foreground -s INT -k 5 64 iperf3 -J -s -1 -i 1 -B 198.19.10.1 -p 2000"
    );
}

#[test]
fn netperf_has_its_options_in_two_halves() {
    let sent = generator(
        Backend::Netperf,
        &changed(plain(), |t| t.traffic.mix = FrameMix::single(1518)),
    )
    .unwrap();
    assert_eq!(
        words(&sent),
        "timeout --foreground -s INT -k 5 45 netperf -H 198.19.10.1 -L 198.18.10.1 -t UDP_STREAM -l 30 -D 1 -P 0 -- -m 1472 -R 1 \
         -P 2000,2000 -k ELAPSED_TIME,THROUGHPUT,THROUGHPUT_UNITS,LOCAL_SEND_CALLS,LOCAL_BYTES_SENT,REMOTE_RECV_CALLS,\
         REMOTE_BYTES_RECVD"
    );
    assert!(
        words(&receiver(Backend::Netperf, &plain()).unwrap())
            .ends_with("netserver -D -L 198.19.10.1")
    );
}

#[test]
fn trafgen_s_packet_is_one_argument() {
    let mut traffic = changed(plain(), |t| t.load.rate = Some(1000.0));
    flows(
        &mut traffic,
        "198.18.10.1:2000-198.18.10.2:2002",
        "198.19.10.1:2000",
    );
    let sent = generator(Backend::Trafgen, &traffic).unwrap();
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
    let sent = generator(
        Backend::Linerate,
        &changed(archive(), |t| t.load.rate = Some(127_251.5)),
    )
    .unwrap();
    assert_eq!(
        words(&sent),
        "timeout --foreground -s INT -k 5 39 linerate send -i igb2 --isolated-lab igb2 -N -T 250 -w 4 --size 64 \
         -s 198.18.10.1:2000-198.18.10.20 -d 198.19.10.1:2000-198.19.10.100 -D 00:0d:b9:41:ca:3d -R 127251.5 -p 1 --duration 30s \
         --unsigned"
    );
    let received = receiver(
        Backend::Linerate,
        &changed(archive(), |t| t.traffic.mix = FrameMix::single(9018)),
    )
    .unwrap();
    assert_eq!(
        words(&received),
        "timeout --foreground -s INT -k 5 48 linerate receive -i igb2 --isolated-lab igb2 -N -T 250 -w 4 --port af-packet --unsigned \
         --duration 39s"
    );
    let syn = changed(plain(), |t| {
        (t.traffic.frame.transport, t.traffic.mix) = (Transport::Tcp, FrameMix::single(128));
    });
    assert!(
        words(&generator(Backend::AfXdp, &syn).unwrap()).contains(" --port af-xdp --size 128 ")
    );
    assert!(words(&generator(Backend::AfXdp, &syn).unwrap()).contains(" --transport TCP "));
}

#[test]
fn what_a_tool_cannot_is_refused_with_the_reason() {
    let to = |tool, change: fn(&mut Task)| refusal(tool, change);
    let many: fn(&mut Task) = |t| flows(t, "198.18.10.1:2000-198.18.10.20", "198.19.10.1:2000");
    for (tool, change, reason) in [
        (
            Backend::PktGen,
            (|t| t.traffic.frame.transport = Transport::Tcp) as fn(&mut Task),
            "frames of TCP",
        ),
        (
            Backend::PktGen,
            |t| t.traffic.frame.dst_mac = MacAddr::default(),
            "without a destination MAC",
        ),
        (
            Backend::Trafgen,
            |t| t.traffic.mix = FrameMix::single(2000),
            "at most 1984",
        ),
        (
            Backend::PktGen,
            |t| t.traffic.mix = FrameMix::imix(),
            "frames of one length",
        ),
        (
            Backend::PktGen,
            |t| t.traffic.order = FlowOrder::Random { seed: 1 },
            "random order",
        ),
        (
            Backend::PktGen,
            |t| t.load.rate = Some(1e12),
            "each can be asked for",
        ),
        (Backend::Iperf3, many, "vary addresses"),
        (Backend::Iperf3, |t| t.threads = 2, "1 flows of 2 stream(s)"),
        (
            Backend::Iperf3,
            |t| t.traffic.frame.src_mac = t.traffic.frame.dst_mac,
            "source address",
        ),
        (
            Backend::Netperf,
            |t| t.load.rate = Some(1000.0),
            "at a rate",
        ),
        (
            Backend::Netperf,
            |t| flows(t, "198.18.10.1:2000-198.18.10.1:2001", "198.19.10.1:2000"),
            "more than one flow",
        ),
        (Backend::Trafgen, |_| (), "without a rate"),
        (Backend::Trafgen, |t| t.threads = 4, "more than one process"),
        (
            Backend::PktGen,
            |t| t.interface = "-f".into(),
            "no interface's name",
        ),
        (
            Backend::PktGen,
            |t| t.interface = "igb0; reboot".into(),
            "no interface's name",
        ),
        (
            Backend::PktGen,
            |t| t.interface = String::new(),
            "no interface's name",
        ),
        (
            Backend::PktGen,
            |t| t.traffic.frame.family = Family::V6,
            "choose one",
        ),
        (
            Backend::PktGen,
            |t| t.traffic.mix = FrameMix::single(63),
            "needs at least",
        ),
        (Backend::PktGen, |t| t.load.duration_ns = 0, "run for 0 s"),
        (
            Backend::PktGen,
            |t| t.load.rate = Some(f64::NAN),
            "at least 1",
        ),
        (Backend::PktGen, |t| t.threads = 0, "run 0 threads"),
    ] {
        let said = to(tool, change);
        assert!(
            said.starts_with(&format!("{tool} cannot ")) && said.contains(reason),
            "{said}"
        );
    }
    let both = archive();
    let reason = generator(
        Backend::Trafgen,
        &changed(both, |t| t.load.rate = Some(1e3)),
    )
    .unwrap_err()
    .to_string();
    assert!(reason.contains("make 2000 flows"), "{reason}");
    assert!(
        receiver(Backend::Trafgen, &plain())
            .unwrap_err()
            .to_string()
            .contains("receive")
    );
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
        (length, duration_ns, threads) in (any::<u16>(), any::<u64>(), any::<u32>()),
        pps in prop::option::of(any::<f64>()),
        tcp in any::<bool>(),
    ) {
        let side = |a: usize| EndpointRange::new(ends[a].0, ends[a + 1].0, ends[a].1, ends[a + 1].1);
        let (Ok(source), Ok(destination)) = (side(0), side(2)) else { return Ok(()) };
        let Ok(flows) = FlowSpace::new(source, destination) else { return Ok(()) };
        let task = changed(plain(), |t| {
            (t.interface, t.threads, t.traffic.flows) = (interface, threads, flows);
            t.traffic.frame.family = t.traffic.flows.family();
            t.traffic.frame.transport = if tcp { Transport::Tcp } else { Transport::Udp };
            t.traffic.mix = FrameMix::single(length);
            (t.load.duration_ns, t.load.rate) = (duration_ns, pps);
        });
        for tool in Backend::all() {
            for made in [generator(tool, &task), receiver(tool, &task)].into_iter().flatten() {
                prop_assert!(made.argv[0] == "timeout" && made.limit_s >= made.lead_s);
            }
        }
    }

    #[test]
    fn a_load_ends_by_itself(seconds in 1u32..86_400, wait in 0u32..60, pps in prop::option::of(1.0f64..1e8)) {
        let traffic = changed(plain(), |t| {
            (t.load.duration_ns, t.link_wait_s, t.load.rate) = (u64::from(seconds) * 1_000_000_000, wait, pps);
        });
        let made = generator(Backend::PktGen, &traffic).unwrap();
        let deadline: u32 = made.argv[6].parse().unwrap();
        prop_assert!((wait + seconds..=wait + seconds + 5).contains(&deadline));
    }
}
