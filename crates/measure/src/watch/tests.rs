use super::*;
use crate::record::RuleCount;
use proptest::prelude::*;

/// A host with an interface of two queues: counters in thousands.
fn sample(at_s: u64, rx: [u64; 2], drops: u64) -> Sample {
    let side = |packets: u64, drops| Side {
        packets: packets * 1000,
        bytes: packets * 60_000,
        drops,
        ..Side::default()
    };
    let queue = |packets| Queue {
        rx: Some(side(packets, 0)),
        tx: None,
    };
    let interface = Interface {
        index: 7,
        rx: side(rx.iter().sum(), drops),
        queues: rx.map(queue).into(),
        driver: [("rx_csum".to_owned(), rx[0])].into(),
        ..Interface::default()
    };
    Sample {
        at_ns: at_s * 1_000_000_000,
        interfaces: [("eth0".into(), interface)].into(),
        ..Sample::default()
    }
}

fn rates(samples: impl IntoIterator<Item = Sample>) -> Vec<Rates> {
    let mut differ = Differ::default();
    samples
        .into_iter()
        .filter_map(|sample| differ.take(sample))
        .collect()
}

#[test]
fn rates_are_by_the_samples_own_clock() {
    let all = rates([sample(10, [1, 1], 0), sample(12, [5, 3], 40)]);
    let [rates] = &all[..] else { panic!("{all:?}") };
    assert_eq!(
        (rates.seconds, rates.total.rx.pps, rates.total.rx.drops),
        (2.0, 3000.0, 20.0)
    );
    // 64 bytes with FCS, and 20 of preamble and gap.
    assert_eq!(
        (rates.total.rx.bits_layer_2, rates.total.rx.bits_layer_1),
        (3e3 * 512.0, 3e3 * 672.0)
    );
    let queues: Vec<f64> = rates.interfaces[0]
        .queues
        .iter()
        .map(|queue| queue.rx.unwrap().pps)
        .collect();
    assert_eq!(queues, [2000.0, 1000.0]);
    assert_eq!(
        rates.interfaces[0].moving,
        [Moving {
            name: "rx_csum".into(),
            per_second: 2.0
        }]
    );
}

#[test]
fn rates_of_queues_are_by_the_time_at_which_the_driver_was_asked() {
    let at = |at_s: u64, late_ns: u64| {
        let mut sample = sample(at_s, [at_s, at_s], 0);
        sample.interfaces.get_mut("eth0").unwrap().driver_at_ns = sample.at_ns + late_ns;
        sample
    };
    // Two frames a millisecond, of which a driver that was asked 250 ms late has counted 2,500.
    let late = sample(2, [2, 2], 0);
    let mut later = at(2, 250_000_000);
    let queues = &mut later.interfaces.get_mut("eth0").unwrap().queues;
    queues
        .iter_mut()
        .for_each(|queue| queue.rx.as_mut().unwrap().packets += 250);
    for (second, expected) in [(late, 1000.0), (later, 1000.0)] {
        let first = Sample { ..at(1, 0) };
        let all = rates([first, second]);
        let of = &all[0].interfaces[0];
        let queues: Vec<f64> = of
            .queues
            .iter()
            .map(|queue| queue.rx.unwrap().pps)
            .collect();
        assert_eq!((of.rx.pps, queues), (2000.0, vec![expected; 2]));
    }
}

/// One flow of a machine that is nearly idle.
#[test]
fn queues_are_no_limit_while_cpus_have_time() {
    let at = |at_s: u64, ticks: [u64; 8]| Sample {
        cpus: (0..4).map(|cpu| (cpu, ticks)).collect(),
        softnet: [(
            0,
            Softnet {
                squeezed: 3 * at_s,
                ..Softnet::default()
            },
        )]
        .into(),
        ..sample(at_s, [at_s, 0], 0)
    };
    let of = |idle: u64| {
        let all = rates([at(1, [0; 8]), at(2, [0, 0, 0, idle, 0, 0, 100 - idle, 0])]);
        all[0]
            .limits
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(of(88), [""; 0]);
    assert_eq!(of(0).len(), 6, "{:?}", of(0));
    // Nothing is known of the CPUs.
    let all = rates([sample(1, [1, 0], 0), sample(2, [2, 0], 0)]);
    assert!(
        matches!(all[0].limits[..], [Limit::OneQueue { .. }]),
        "{:?}",
        all[0].limits
    );
}

#[test]
fn counters_go_on_across_a_wrap_and_not_across_a_reset() {
    assert_eq!(growth(5, 9), Some(4));
    assert_eq!(growth(u64::from(u32::MAX) - 1, 3), Some(5));
    assert_eq!(growth(u64::MAX, 0), Some(1));
    // 2,000 million frames in an interval are no wrap but a reset.
    assert_eq!(growth(2_000_000_000, 3), None);
    assert_eq!(growth(12_345, 3), None);
}

#[test]
fn an_interface_that_was_reset_or_made_anew_has_no_rates_for_one_interval() {
    let made_anew = |mut sample: Sample| {
        sample.interfaces.get_mut("eth0").unwrap().index = 8;
        sample
    };
    let reset = rates([
        sample(1, [500, 500], 9),
        sample(2, [1, 1], 0),
        sample(3, [2, 2], 0),
    ]);
    let other = rates([
        sample(1, [5, 5], 0),
        made_anew(sample(2, [900, 900], 9)),
        made_anew(sample(3, [901, 901], 9)),
    ]);
    for all in [reset, other] {
        let seen: Vec<(bool, f64)> = all
            .iter()
            .map(|r| (r.interfaces[0].is_new, r.total.rx.pps))
            .collect();
        assert_eq!(seen, [(true, 0.0), (false, 2000.0)]);
        assert_eq!(all[0].limits, []);
    }
    let gone = rates([
        sample(1, [5, 5], 0),
        Sample {
            at_ns: 2_000_000_000,
            ..Sample::default()
        },
        sample(3, [9, 9], 0),
    ]);
    assert_eq!(gone[0].interfaces, []);
    assert!(gone[1].interfaces[0].is_new && gone[1].total.rx.pps == 0.0);
}

#[test]
fn frames_that_are_counted_twice_are_added_once() {
    let vlan = |mut sample: Sample| {
        let copy = Interface {
            stacked: true,
            ..sample.interfaces["eth0"].clone()
        };
        sample.interfaces.insert("eth0.5".into(), copy);
        sample
    };
    let all = rates([vlan(sample(1, [1, 1], 0)), vlan(sample(2, [2, 1], 0))]);
    assert_eq!((all[0].interfaces.len(), all[0].total.rx.pps), (2, 1000.0));
}

#[test]
fn a_frame_that_is_lost_between_two_ends_is_lost_once() {
    let pair = |at_s: u64| {
        let mut sample = sample(at_s, [1, 1], at_s * 100);
        let far = sample.interfaces.get_mut("eth0").unwrap();
        far.peer_here = true;
        let tx = Side {
            drops: at_s * 100,
            ..Side::default()
        };
        let near = Interface {
            peer_here: true,
            tx,
            ..Interface::default()
        };
        sample.interfaces.insert("near".into(), near);
        sample
    };
    let all = rates([pair(1), pair(2)]);
    assert_eq!(
        (
            all[0].total.rx.drops,
            all[0].total.tx.drops,
            all[0].limits.len()
        ),
        (0.0, 100.0, 1),
        "{:?}",
        all[0].limits
    );
}

#[test]
fn rules_have_rates_between_their_own_readings() {
    let at = |at_s, rules: Option<[u64; 2]>| {
        let rule = |frames| RuleCount {
            rule: "counter".into(),
            frames,
        };
        Sample {
            rules: rules.map(|counts| counts.map(rule).into()),
            ..sample(at_s, [0, 0], 0)
        }
    };
    let all = rates([
        at(1, Some([10, 5])),
        at(2, None),
        at(5, Some([10, 13])),
        at(6, None),
    ]);
    let of = |rates: &Rates| {
        rates
            .rules
            .iter()
            .map(|rule| rule.per_second)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        all.iter().map(of).collect::<Vec<_>>(),
        [vec![], vec![2.0], vec![2.0]]
    );
}

#[test]
fn the_limit_is_the_cpu_that_has_no_time_left() {
    let at = |at_s, ticks: [[u64; 8]; 2]| {
        let interrupts = vec![
            Interrupt {
                name: "LOC".into(),
                counts: vec![at_s * 1000, at_s * 1000],
            },
            Interrupt {
                name: "36 eth0-rx-1".into(),
                counts: vec![0, at_s * 900],
            },
        ];
        let cpus = (0..).zip(ticks).collect();
        Sample {
            cpus,
            interrupt_cpus: vec![0, 1],
            interrupts,
            ..sample(at_s, [at_s * 10, 0], at_s * 50)
        }
    };
    let idle = [0, 0, 0, 80, 0, 0, 20, 0];
    let busy = [0, 0, 1, 0, 0, 0, 99, 0];
    let all = rates([at(0, [[0; 8]; 2]), at(1, [idle, busy])]);
    let said: Vec<String> = all[0].limits.iter().map(Limit::to_string).collect();
    assert_eq!(
        said,
        [
            "CPU 1 is 100 % busy (99 % softirq), mostly for 36 eth0-rx-1; the others are 20 % busy",
            "eth0 drops 50 pps (rx)",
            "rx queue 0 of eth0 has 100 % of the frames, the other 1 hardly any",
        ]
    );
}

#[test]
fn queues_are_compared_with_their_fair_share() {
    let side = |pps| {
        Some(SideRates {
            pps,
            ..SideRates::default()
        })
    };
    let states = |rates: &[Option<SideRates>]| queue_states(rates);
    use QueueState::{Even, Overfull, Starves};
    assert_eq!(
        states(&[side(900.0), side(100.0), None, side(1000.0), side(4000.0)]),
        [Even, Starves, Even, Even, Overfull]
    );
    assert_eq!(states(&[side(900.0), side(0.0)])[1], Starves);
    assert_eq!(states(&[side(90.0), side(0.0)])[1], Even);
    assert_eq!(states(&[side(9000.0)]), [Even]);
    assert_eq!(states(&[]), []);
}

#[test]
fn samples_are_read_as_they_were_written() {
    let sample = sample(3, [1, 2], 3);
    let text = serde_json::to_string(&sample).unwrap();
    assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), sample);
    // Records of other versions may lack fields.
    assert_eq!(
        serde_json::from_str::<Sample>("{}").unwrap(),
        Sample::default()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_counters_make_nonsense_of_rates(then: [u64; 6], now: [u64; 6], seconds in 0u64..3) {
        let at = |at_s: u64, n: [u64; 6]| {
            let side = Side { packets: n[0], bytes: n[1], drops: n[2], errors: n[3], overruns: n[4] };
            let mut sample = sample(at_s, [0, 0], 0);
            let interface = sample.interfaces.get_mut("eth0").unwrap();
            (interface.rx, interface.queues[0].tx) = (side, Some(side));
            sample.cpus.insert(0, [n[0], n[1], n[2], n[3], n[4], n[5], 0, 0]);
            sample
        };
        for rates in rates([at(1, then), at(1 + seconds, now)]) {
            let side = rates.interfaces[0].rx;
            let all = [side.pps, side.bits_layer_1, side.drops, side.errors, side.overruns];
            prop_assert!(all.iter().all(|rate| rate.is_finite() && *rate >= 0.0), "{side:?}");
            prop_assert!(rates.cpus.iter().all(|cpu| (0.0..=1.0).contains(&cpu.busy())));
            rates.limits.iter().for_each(|limit| drop(limit.to_string()));
        }
    }
}
