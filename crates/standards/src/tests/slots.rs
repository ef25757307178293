//! A slot's trials of all tests, their figures, and its search.

use super::*;
use linerate_measure::counters::Outage;
use linerate_measure::record::{
    AtLoad, BackToBack, DelayVariation, DutEvent, Ended, ForwardingRate, Latency, LatencyRun,
    Recovery, RecoveryRun, Reset, ResetRun, SearchedGoal, Tested, Throughput, VariationRun, Why,
};
use linerate_search::{Goal, Limits, Outcome};

pub(super) fn of_slot(slot: usize, trials: &mut Vec<TrialRecord>) -> (Benchmarked, Searched) {
    use Benchmark::*;
    let mut add = |count: usize, made: TrialRecord| trials.extend(std::iter::repeat_n(made, count));
    add(1, trial(slot, Some(Throughput), THROUGHPUT, 60, 0));
    add(1, trial(slot, Some(Throughput), 1004.0, 60, 10));
    let mut latency = trial(slot, Some(Latency), THROUGHPUT, 120, 0);
    latency.receiver.delays = delays(latency.receiver.frames);
    add(20, latency);
    let mut variation = trial(slot, Some(DelayVariation), THROUGHPUT, 60, 0);
    variation.receiver.delays = delays(variation.receiver.frames);
    add(20, variation);
    let loads: Vec<AtLoad> = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
        .map(|share| {
            let (load, lost) = (share * MAXIMUM, if share > 0.5 { 60 } else { 0 });
            add(1, trial(slot, Some(FrameLoss), load, 60, lost));
            AtLoad {
                load,
                share,
                offered: load,
                forwarded: load,
                sent: (load * 60.0) as u64,
                lost,
            }
        })
        .into();
    let mut burst = trial(slot, Some(BackToBack), MAXIMUM, 2, 0);
    burst.shape = Shape::Burst { frames: 400 };
    (burst.generator, burst.receiver) = (
        port(400, case::SIZES[slot - 1]),
        port(400, case::SIZES[slot - 1]),
    );
    add(1, burst);
    let mut step = trial(slot, Some(Recovery), 1100.0, 120, 5);
    step.shape = Shape::Step {
        after_ns: 60 * S,
        fps: 550.0,
    };
    add(5, step);
    let mut event = trial(slot, Some(Reset), THROUGHPUT, 75, 20_000);
    event.receiver.outages = vec![Outage {
        from_ns: 15 * S,
        to_ns: 35 * S,
        stream: 0,
        missing: 20_000,
    }];
    event.event = Some(DutEvent {
        what: "power-off".into(),
        class: EventClass::PowerInterruption,
        began_ns: 15 * S,
        ended_ns: 31 * S,
        ran: Vec::new(),
    });
    event.shape = Shape::Event { after_ns: 15 * S };
    add(if slot == 1 { 5 } else { 0 }, event);
    add(1, trial(slot, Some(ForwardingRate), MAXIMUM, 30, 100));
    let run = LatencyRun {
        tags: 500,
        first_ns: 1000,
        typical_ns: 1000.0,
        worst_ns: 1000.0,
    };
    let variation = VariationRun {
        frames: 60_000,
        pdv_ns: 1.0,
        ipdv_ns: [0.0; 3],
        broken: 0,
    };
    let reset = |what: &str, class: EventClass| self::Reset {
        event: DutEvent {
            what: what.into(),
            class,
            began_ns: 0,
            ended_ns: 0,
            ran: Vec::new(),
        },
        load: THROUGHPUT,
        runs: vec![
            ResetRun {
                lost: 100,
                by_loss_ns: 1e8,
                by_stamps_ns: Some(100_000_000),
                back: true
            };
            5
        ],
        by_loss_ns: Some(1e8),
        by_stamps_ns: Some(1e8),
    };
    let mut figures = vec![
        (
            Throughput,
            Figures::Throughput(self::Throughput {
                fps: THROUGHPUT,
                upper: Some(1004.0),
                frames: 60_000,
                seconds: 60.0,
                burst_s: None,
            }),
        ),
        (
            Latency,
            Figures::Latency(self::Latency {
                load: THROUGHPUT,
                runs: vec![run; 20],
                mean_ns: 1000.0,
                typical_ns: 1000.0,
                worst_ns: 1000.0,
            }),
        ),
        (FrameLoss, Figures::FrameLoss(loads.clone())),
        (
            BackToBack,
            Figures::BackToBack(self::BackToBack {
                bursts: vec![400; 50],
                mean: 400.0,
                least: 400,
                most: 400,
                deviation: Some(0.0),
                implied_s: 0.2,
                corrected_s: 0.1,
                actual_s: None,
                throughput: THROUGHPUT,
                limit: 4000,
                step: 1,
            }),
        ),
        (
            Recovery,
            Figures::Recovery(self::Recovery {
                throughput: THROUGHPUT,
                overload: 1100.0,
                reduced: 550.0,
                runs: vec![
                    RecoveryRun {
                        lost: 5,
                        ns: Some(9)
                    };
                    5
                ],
                mean_ns: Some(9.0),
            }),
        ),
        (
            DelayVariation,
            Figures::DelayVariation(self::DelayVariation {
                load: THROUGHPUT,
                runs: vec![variation; 20],
                pdv_ns: 1.0,
                ipdv_ns: [0.0; 3],
            }),
        ),
        (
            ForwardingRate,
            Figures::ForwardingRate(self::ForwardingRate {
                frmol: 900.0,
                frmol_offered: MAXIMUM,
                mfr: 1000.0,
                mfr_offered: 1000.0,
                loads,
            }),
        ),
    ];
    if slot == 1 {
        figures.push((
            Reset,
            Figures::Reset(reset("power-off", EventClass::PowerInterruption)),
        ));
        figures.push((Reset, Figures::Reset(reset("reboot", EventClass::OsReset))));
    }
    if slot != 1 {
        figures.push((Reset, Figures::None));
    }
    let tests = figures.into_iter().map(|(test, figures)| Tested {
        test,
        why: (figures == Figures::None).then_some(Why::NoEvent),
        valid_trials: 1,
        trials: 1,
        figures,
    });
    let maximum = Some(Maximum {
        fps: MAXIMUM,
        medium: true,
        tester_fps: 3000.0,
        kept: None,
    });
    let goal = Goal {
        loss: 0.0,
        exceed: 500_000_000,
        width: 0.005,
        initial_ns: S,
        final_ns: 60 * S,
        sum_ns: 60 * S,
        coarser: 2,
    };
    let outcome = Outcome {
        lower: Some(THROUGHPUT),
        upper: Some(1004.0),
        conditional: Some(THROUGHPUT),
        irregular: None,
    };
    let searched = Searched {
        slot,
        goals: vec![SearchedGoal {
            name: "rfc2544".into(),
            goal,
            outcome,
            interval: [None; 2],
        }],
        limits: Limits {
            min: 1.0,
            max: 2500.0,
        },
        stalls: Some(0.0),
        loads: Vec::new(),
        stability: None,
        table: None,
        ended: Some(Ended::Known),
    };
    (
        Benchmarked {
            slot,
            maximum,
            tests: tests.collect(),
        },
        searched,
    )
}
