//! Accounts of small counts, at each place where frames are lost.

use super::*;
use linerate_measure::audit::{Evidence, audit};
use linerate_measure::trial::Rates;
use linerate_plan::settings::Dut;

fn stats(rx: u64, tx: u64, tx_dropped: u64) -> LinkStats {
    LinkStats {
        rx_packets: rx,
        tx_packets: tx,
        tx_dropped,
        ..LinkStats::default()
    }
}

fn ports(sent: u64, received: u64) -> (PortCounters, PortCounters) {
    let port = |frames| PortCounters {
        frames,
        ..PortCounters::default()
    };
    (port(sent), port(received))
}

/// The account of frames from the inside to the outside.
fn forward(
    setup: &Setup,
    shared: bool,
    [b, a]: [&Snapshot; 2],
    ports: [&PortCounters; 2],
) -> Account {
    reconcile(
        setup,
        &WAYS[0],
        shared,
        [b, a],
        ports,
        &mut Reasons::between(b, a),
    )
}

fn valid(a: &Account, g: PortCounters, r: PortCounters) -> bool {
    let (losses, second_counts) = (a.losses.clone(), a.second_counts.clone());
    let rates = Some(Rates {
        offered: 1e6,
        received: 1e6,
        seconds: 0.25,
    });
    audit(&Evidence {
        rates,
        generator: g,
        receiver: r,
        losses,
        second_counts,
        ..Evidence::default()
    })
    .valid
}

#[test]
fn a_dut_that_is_overrun_loses_at_its_ring_and_the_account_balances() {
    let before = Snapshot {
        dut: Some(DutSnapshot::default()),
        ..Snapshot::default()
    };
    let dut = DutSnapshot {
        inside: stats(700, 0, 0),
        outside: stats(0, 690, 0),
        ..DutSnapshot::default()
    };
    let dut = DutSnapshot {
        counters: [
            ("Ip.InDiscards".to_string(), 10),
            ("Ip.ForwDatagrams".to_string(), 690),
        ]
        .into(),
        ..dut
    };
    let after = Snapshot {
        generator: stats(0, 700, 300),
        receiver: stats(690, 0, 0),
        dut: Some(dut),
    };
    let (g, r) = ports(1000, 690);
    let a = forward(
        &Setup::of(Dut::Forwarding),
        false,
        [&before, &after],
        [&g, &r],
    );
    let places = [0, 1].map(|i| (a.losses[i].place.as_str(), a.losses[i].frames));
    assert_eq!(
        places,
        [
            ("DUT in: receive ring full", 300),
            ("DUT: Ip.InDiscards", 10)
        ]
    );
    assert_eq!(
        [0, 1].map(|i| a.losses[i].cause),
        [Cause::QueueFull, Cause::Dropped]
    );
    assert!(valid(&a, g, r));
}

#[test]
fn updates_lost_by_cpus_that_share_a_queue_are_made_good_where_frames_could_go_nowhere_else() {
    let before = Snapshot {
        dut: Some(DutSnapshot::default()),
        ..Snapshot::default()
    };
    let dut = DutSnapshot {
        inside: stats(700, 0, 0),
        outside: stats(0, 700, 0),
        ..DutSnapshot::default()
    };
    let after = |refused| Snapshot {
        generator: stats(0, 700, refused),
        receiver: stats(700, 0, 0),
        dut: Some(dut.clone()),
    };
    let (g, r) = ports(1000, 700);
    let shared = |refused, shared_queue| {
        let setup = Setup::of(Dut::Forwarding);
        valid(
            &forward(&setup, shared_queue, [&before, &after(refused)], [&g, &r]),
            g.clone(),
            r.clone(),
        )
    };
    assert!(
        shared(284, true),
        "16 updates are missing, as the kernel loses them"
    );
    assert!(!shared(316, true), "more was refused than sent");
    assert!(!shared(284, false), "a queue of its own counts exactly");
}

#[test]
fn what_a_steered_card_drops_beyond_its_ring_was_the_backlogs() {
    let before = Snapshot {
        dut: Some(DutSnapshot::default()),
        ..Snapshot::default()
    };
    let inside = LinkStats {
        rx_dropped: 340,
        ..stats(700, 0, 0)
    };
    let dut = DutSnapshot {
        inside,
        outside: stats(0, 660, 0),
        ..DutSnapshot::default()
    };
    let after = Snapshot {
        generator: stats(0, 700, 300),
        receiver: stats(660, 0, 0),
        dut: Some(dut),
    };
    let (g, r) = ports(1000, 660);
    let mut setup = Setup::of(Dut::Forwarding);
    setup.settings.inside.rps = Some(vec![1]);
    let losses = forward(&setup, false, [&before, &after], [&g, &r]).losses;
    let places: Vec<(&str, u64)> = losses
        .iter()
        .map(|l| (l.place.as_str(), l.frames))
        .collect();
    assert_eq!(places, [("DUT in: receive ring full", 300), (BACKLOG, 40)]);
}

#[test]
fn frames_lost_between_interfaces_inside_a_dut_are_found_there() {
    let cards = ["card-in0", "card-out0"].map(str::to_string);
    let dut = |inside, outside, counters: &[(&str, u64)]| DutSnapshot {
        cards: cards.clone(),
        counters: counters
            .iter()
            .map(|(name, n)| (name.to_string(), *n))
            .collect(),
        ..DutSnapshot {
            inside,
            outside,
            ..DutSnapshot::default()
        }
    };
    let none = dut(stats(0, 0, 0), stats(0, 0, 0), &[]);
    let before = Snapshot {
        dut: Some(none),
        ..Snapshot::default()
    };
    let counters = [
        ("Ip.InDiscards", 10),
        ("host: card-out0.tx_dropped", 5),
        ("host: to-in0.tx_dropped", 40),
        ("in0.rx_dropped", 40),
        ("out0.tx_dropped", 30),
    ];
    let after = Snapshot {
        generator: stats(0, 1000, 0),
        receiver: stats(910, 0, 0),
        dut: Some(dut(stats(1000, 0, 0), stats(0, 910, 5), &counters)),
    };
    let (g, r) = ports(1000, 910);
    let a = forward(&Setup::of(Dut::Nested), false, [&before, &after], [&g, &r]);
    let found: Vec<_> = a
        .losses
        .iter()
        .map(|l| (l.place.as_str(), l.frames, l.cause))
        .collect();
    assert_eq!(
        found,
        [
            ("receiver: receive ring full", 5, Cause::QueueFull),
            ("DUT: Ip.InDiscards", 10, Cause::Dropped),
            ("DUT: host: to-in0.tx_dropped", 40, Cause::QueueFull),
            ("DUT: out0.tx_dropped", 30, Cause::QueueFull),
            (&unexplained("DUT"), 5, Cause::Unexplained),
        ]
    );
}

#[test]
fn frames_that_a_router_sends_back_are_told_from_those_that_it_drops() {
    let after = |back: u64, messages: u64| Snapshot {
        generator: stats(0, 1000, 0),
        receiver: stats(300, 0, 0),
        dut: Some(DutSnapshot {
            inside: stats(1000, back, 0),
            outside: stats(0, 300, 0),
            counters: [("Icmp.OutMsgs".to_string(), messages)].into(),
            ..DutSnapshot::default()
        }),
    };
    let before = Snapshot {
        dut: Some(DutSnapshot::default()),
        ..Snapshot::default()
    };
    let lost = |back, messages| {
        let after = after(back, messages);
        let (g, r) = ports(1000, 300);
        let setup = Setup::of(Dut::Forwarding);
        let a = forward(&setup, false, [&before, &after], [&g, &r]);
        assert!(valid(&a, g, r));
        let places = a.losses.iter().map(|l| (l.place.clone(), l.frames));
        places.collect::<Vec<_>>()
    };
    let (returned, other) = (RETURNED.to_string(), unexplained("DUT"));
    assert_eq!(lost(600, 0), [(returned, 600), (other.clone(), 100)]);
    // Errors that the DUT sends, and a question for an address, are no frames of the test.
    assert_eq!(lost(600, 598), [(other, 700)]);
}

/// 40 frames are lost in the router that they pass first, 20 of them with a reason, and 50 in the other one, 10 of them with a reason.
#[test]
fn of_two_routers_the_one_that_lost_frames_is_named() {
    for (way, own, reasons) in [
        (
            0,
            FIRST_ROUTER,
            ["Ip.InDiscards", "second router: Ip.OutDiscards"],
        ),
        (
            1,
            SECOND_ROUTER,
            ["second router: Ip.InDiscards", "Ip.OutDiscards"],
        ),
    ] {
        let dut = |entered, between, left| {
            let all = [(reasons[0], entered / 50), (reasons[1], entered / 100)];
            let counters = all.map(|(name, n): (&str, u64)| (name.into(), n));
            let (card, link) = (stats(entered, left, 0), stats(between, between, 0));
            DutSnapshot {
                inside: card,
                outside: card,
                between: Some(link),
                counters: counters.into(),
                ..DutSnapshot::default()
            }
        };
        let [before, after] = [dut(0, 0, 0), dut(1000, 960, 910)].map(Some);
        let before = Snapshot {
            dut: before,
            ..Snapshot::default()
        };
        let tester = stats(910, 1000, 0);
        let after = Snapshot {
            generator: tester,
            receiver: tester,
            dut: after,
        };
        let (g, r) = ports(1000, 910);
        let mut all = Reasons::between(&before, &after);
        all.returned = 0;
        let setup = Setup::of(Dut::Gre);
        let of = [&before, &after].map(|s| WAYS[way].of(s));
        let a = reconcile(
            &setup,
            &WAYS[way],
            false,
            [&of[0], &of[1]],
            [&g, &r],
            &mut all,
        );
        let mut found: Vec<_> = a
            .losses
            .iter()
            .map(|l| (l.place.clone(), l.frames))
            .collect();
        found.sort();
        let other = WAYS[way].routers[1];
        let mut wanted = vec![
            (format!("DUT: {}", reasons[0]), 20),
            (format!("DUT: {}", reasons[1]), 10),
            (unexplained(own), 20),
            (unexplained(other), 40),
        ];
        wanted.sort();
        assert_eq!(found, wanted);
        assert!(valid(&a, g, r));
    }
}

#[test]
fn an_xdp_program_that_cannot_send_frames_back_loses_them() {
    for counter in ["xdp_drops", "xdp_tx_errors"] {
        let counter = format!("host: in0.ethtool.rx_queue_0_{counter}");
        assert!(is_reason(&counter, false) && !is_reason(&counter, true));
    }
    assert!(!is_reason("in0.ethtool.rx_queue_0_xdp_tx", false));
}

#[test]
fn a_receiver_that_is_overrun_is_the_testers_fault() {
    let after = Snapshot {
        generator: stats(0, 900, 100),
        receiver: stats(900, 0, 0),
        dut: None,
    };
    let (g, r) = ports(1000, 900);
    let a = forward(
        &Setup::of(Dut::TesterBaseline),
        false,
        [&Snapshot::default(), &after],
        [&g, &r],
    );
    assert_eq!(a.losses[0].side, Side::Tester);
    assert!(!valid(&a, g, r));
}

#[test]
fn a_program_that_miscounts_is_found_out() {
    let after = Snapshot {
        generator: stats(0, 1000, 0),
        receiver: stats(1000, 0, 0),
        dut: None,
    };
    let (g, r) = ports(1001, 1001);
    let a = forward(
        &Setup::of(Dut::TesterBaseline),
        false,
        [&Snapshot::default(), &after],
        [&g, &r],
    );
    assert!(!valid(&a, g, r));
}
