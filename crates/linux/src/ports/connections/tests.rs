//! When connections and SYNs of a flood leave, by the program's own account of credit.

use super::super::port::pin_to_cpu;
use super::*;
use crate::host::cpu;
use aya::programs::{Program, TestRun, TestRunOptions};
use linerate_wire::{Exchange, MacAddr};
use opener::USUAL_PRICE;
use std::mem::offset_of;

/// An opener on this thread's CPU, whose frames go nowhere.
struct Paced {
    ends: ConnectionEnds,
    cpu: usize,
}

impl Paced {
    /// `state`: what the opener begins with, in the middle of its load.
    fn new(flood: u32, state: OpenerState) -> Paced {
        let lab = Netns::anonymous().unwrap();
        let target = Target {
            ifindex: 1,
            source: MacAddr([2; 6]),
            destination: MacAddr([4; 6]),
        };
        let mut ends = ConnectionEnds::new(&lab, &[target], &lab, &[], false).unwrap();
        let cpu = cpu::online_cpus().unwrap()[0];
        pin_to_cpu(cpu).unwrap();
        let connections = ConnectionSpec {
            flood,
            ..ConnectionSpec::new(Exchange::Request, 6)
        };
        let wanted = Wanted {
            connections,
            first: [[198, 18, 10, 1], [198, 19, 10, 1]].map(IpAddr::from),
            cpus: vec![cpu],
            target: 0,
            alone: true,
            closed_loop: false,
            hosts: false,
        };
        ends.begin(&wanted, 0);
        let state = OpenerState {
            left: 1 << 20,
            first_ns: 1,
            last_ns: crate::ports::monotonic_ns(),
            deadline_ns: u64::MAX,
            price: USUAL_PRICE,
            flood_price: USUAL_PRICE,
            ..state
        };
        let cpu = cpu as usize;
        ends.openers.set(cpu, state);
        Paced { ends, cpu }
    }

    /// Lets the program run so many times, each of which may open a connection or send a SYN.
    fn run(&self, times: u32) -> OpenerState {
        let Some(Program::Xdp(program)) = self.ends.ebpf.program("open4") else {
            panic!("no program");
        };
        let options = TestRunOptions {
            data_in: Some(&[0; 60]),
            repeat: times,
            ..TestRunOptions::new()
        };
        program.test_run(options).unwrap();
        self.ends.openers.get(self.cpu)
    }
}

/// Thousandths of connections a second with which the credit does not grow during a test.
const SLOW: u64 = 1;

#[test]
#[ignore = "needs root: run by make test as root"]
fn connections_at_a_rate_are_unevenly_spaced_and_keep_the_rate() {
    let paced = Paced::new(
        0,
        OpenerState {
            rate_mfps: SLOW,
            ..OpenerState::default()
        },
    );
    let (mut prices, credit) = (Vec::new(), offset_of!(OpenerState, credit));
    for opened in 1..=100 {
        let price = paced.ends.openers.get(paced.cpu).price;
        paced
            .ends
            .openers
            .set_field(paced.cpu, credit, 2 * USUAL_PRICE);
        let state = paced.run(1);
        assert_eq!(state.attempted, opened);
        // A look at the clock gives a little credit.
        let left = (2 * USUAL_PRICE - state.credit) as f64 / USUAL_PRICE as f64;
        let price = price as f64 / USUAL_PRICE as f64;
        assert!((left - price).abs() < 0.01, "{left} taken of {price}");
        prices.push(price);
    }
    let all: f64 = prices.iter().sum();
    assert!((99.0..101.0).contains(&all), "{all} for 100 connections");
    let even = prices.iter().filter(|price| (*price - 1.0).abs() < 0.1);
    assert!(even.count() < 50, "{prices:?}");
    let least = prices.iter().copied().fold(1.0, f64::min);
    let most = prices.iter().copied().fold(1.0, f64::max);
    assert!(least < 0.5 && most > 1.5, "{prices:?}");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn after_a_stall_connections_and_syns_leave_in_proportion_to_those_that_wait() {
    // Each has 50 ms of its rate to catch up.
    for (connections, syns) in [(1000, 1000), (100, 10_000), (10_000, 100)] {
        let waiting = |number: u64| (number * USUAL_PRICE, 20_000 * number);
        let ((credit, rate_mfps), (flood_credit, flood_mfps)) =
            (waiting(connections), waiting(syns));
        let paced = Paced::new(
            1,
            OpenerState {
                rate_mfps,
                credit,
                flood_mfps,
                flood_credit,
                ..OpenerState::default()
            },
        );
        let sent = (connections + syns) / 2;
        let state = paced.run(sent as u32);
        assert_eq!(state.attempted + state.flooded, sent);
        let expected = connections as f64 / 2.0;
        // Five standard deviations of a choice by chance.
        let share = expected / sent as f64;
        let far = 5.0 * (sent as f64 * share * (1.0 - share)).sqrt();
        assert!(
            (state.attempted as f64 - expected).abs() < far,
            "{} of {expected} connections beside {syns} SYNs",
            state.attempted
        );
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_slow_rate_and_a_slow_flood_go_on() {
    // Each may be late by nearly a whole distance: the credit must grow to twice the usual price.
    let paced = Paced::new(
        1,
        OpenerState {
            rate_mfps: 1000,
            flood_mfps: 1000,
            price: 2 * USUAL_PRICE - 1,
            flood_price: 2 * USUAL_PRICE - 1,
            credit: 2 * USUAL_PRICE - 1000,
            flood_credit: 2 * USUAL_PRICE - 1000,
            ..OpenerState::default()
        },
    );
    let state = paced.run(1000);
    // The prices of the next are drawn: a stall of the CPU may pay a low one.
    let few = 1..10;
    assert!(
        few.contains(&state.attempted) && few.contains(&state.flooded),
        "{} connections, {} SYNs",
        state.attempted,
        state.flooded
    );
}
