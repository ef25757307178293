//! RFC 2544, section 26.2, and RFC 8219, section 7.2: latency.

use super::{close, few, figures, must, should, step};
use crate::Part::Test;
use crate::Section;
use crate::case::{Case, Outcome, SECOND, fails, met, seconds};
use linerate_measure::experiment::Benchmark::Latency;
use linerate_measure::record::{self, Benchmarked, TrialRecord};

pub const SECTIONS: &[Section] = &[(
    Test(Latency),
    &[
        step(
            "2544-26.2a",
            "at the throughput of the frame size",
            |case| {
                case.each_of(
                    latencies(case),
                    "loads equal to the throughput",
                    |of, figure| case.off(of.slot, figure.load),
                )
            },
        ),
        should(
            "2544-26.2b",
            "a stream of 120 s with the tag after 60 s",
            |case| case.each(case.of(Latency), "trials", early),
        ),
        must(
            "2544-26.2c",
            "the receiver recognises the tag and stamps it",
            |case| {
                case.each(
                    latency_runs(case),
                    "runs with tagged frames",
                    |(of, run)| {
                        (run.tags == 0)
                            .then(|| format!("{}: a run without tagged frames", case.name_of(*of)))
                    },
                )
            },
        ),
        must("2544-26.2d", "at least 20 runs, and their mean", |case| {
            case.each_of(
                latencies(case),
                "sizes with 20 runs or more",
                |_, figure| {
                    few(figure.runs.len(), 20).or_else(|| {
                        let firsts: f64 = figure.runs.iter().map(|run| run.first_ns as f64).sum();
                        let mean = firsts / figure.runs.len() as f64;
                        (!close(figure.mean_ns, mean, 1e-6))
                            .then(|| format!("their mean is {mean:.0} ns"))
                    })
                },
            )
        }),
        should(
            "2544-26.2e",
            "to the same destination and, again, to a new one",
            |case| {
                let networks = |(of, _): (&Benchmarked, &record::Latency)| {
                    Some(case.slot(of.slot)?.traffic.as_ref()?.flows.networks())
                };
                let networks: Vec<_> = latencies(case).filter_map(networks).collect();
                match (
                    networks.iter().any(|n| *n <= 1),
                    networks.iter().any(|n| *n > 1),
                ) {
                    (true, true) => met("one pair and several networks"),
                    (true, false) => fails("the same destinations throughout"),
                    (false, _) => fails("new destinations throughout"),
                }
            },
        ),
        must(
            "2544-26.2f",
            "the report names the definition of latency (RFC 1242)",
            |case| {
                case.some(latencies(case), "from the time at which the generator writes the frame to the receiver's program: nearest to store-and-forward")
            },
        ),
        should(
            "8219-7.2a",
            "at the throughput, 120 s, 500 tagged frames after 60 s, median and P99.9",
            |case| {
                let loads = latencies(case).find_map(|(of, figure)| case.off(of.slot, figure.load));
                let early = case.of(Latency).iter().find_map(early);
                let few = latency_runs(case)
                    .into_iter()
                    .find(|(_, run)| run.tags < 500)
                    .map(|(_, run)| format!("{} tagged frames", run.tags));
                match loads.or(early).or(few) {
                    Some(why) => Outcome::Fails(why),
                    None => case.some(latency_runs(case), "runs with 500 tagged frames and more"),
                }
            },
        ),
        must("8219-7.2b", "at least 20 runs, and their medians", |case| {
            case.each_of(
                latencies(case),
                "sizes with 20 runs or more",
                |_, figure| {
                    few(figure.runs.len(), 20).or_else(|| {
                        let middle = |time: fn(&record::LatencyRun) -> f64| {
                            linerate_stats::median(
                                &figure.runs.iter().map(time).collect::<Vec<_>>(),
                            )
                        };
                        let medians = [middle(|run| run.typical_ns)?, middle(|run| run.worst_ns)?];
                        let same = close(figure.typical_ns, medians[0], 1e-6)
                            && close(figure.worst_ns, medians[1], 1e-6);
                        (!same).then(|| format!("their medians are {medians:?} ns"))
                    })
                },
            )
        }),
    ],
)];

figures!(latencies, Latency);

fn latency_runs(case: &Case<'_>) -> Vec<(usize, record::LatencyRun)> {
    latencies(case)
        .flat_map(|(of, figure)| figure.runs.iter().map(move |run| (of.slot, *run)))
        .collect()
}

/// The reason if a latency trial is too short, or tags frames too early.
fn early(trial: &&TrialRecord) -> Option<String> {
    let tagged = trial
        .receiver
        .delays
        .as_ref()
        .and_then(|delays| delays.tagged.iter().map(|(sent, _)| *sent).min());
    let first = tagged.unwrap_or(0);
    (trial.timing.run_ns < 120 * SECOND || first < 60 * SECOND).then(|| {
        format!(
            "trial {}: {} s, first tag after {:.1} s",
            trial.trial,
            seconds(trial.timing.run_ns),
            seconds(first)
        )
    })
}
