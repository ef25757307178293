//! RFC 2544, section 26.2, and RFC 8219, section 7.2: latency.

use super::{close, few, figures, row};
use crate::Level::{Must, Procedure, Should};
use crate::Part::Test;
use crate::Row;
use crate::case::{Case, Outcome, SECOND};
use linerate_measure::experiment::Benchmark::Latency;
use linerate_measure::record::{self, Benchmarked, TrialRecord};

pub const ROWS: &[&Row] = &[
    &row("2544-26.2a", Procedure, Test(Latency), "at the throughput of the frame size", |case| {
        case.each_of(
            latencies(case),
            |of, figure| case.off(of.slot, figure.load),
            "loads equal to the throughput",
        )
    }),
    &row("2544-26.2b", Should, Test(Latency), "a stream of 120 s with the tag after 60 s", |case| {
        case.each(case.of(Latency), early, "trials")
    }),
    &row("2544-26.2c", Must, Test(Latency), "the receiver recognises the tag and stamps it", |case| {
        let none = |(of, run): &(usize, record::LatencyRun)| {
            (run.tags == 0).then(|| format!("{}: a run without tagged frames", case.campaign.name_of(*of)))
        };
        case.each(latency_runs(case), none, "runs with tagged frames")
    }),
    &row("2544-26.2d", Must, Test(Latency), "at least 20 runs, and their mean", |case| {
        let other = |_: &_, figure: &record::Latency| {
            few(figure.runs.len(), 20).or_else(|| {
                let firsts: f64 = figure.runs.iter().map(|run| run.first_ns as f64).sum();
                let mean = firsts / figure.runs.len() as f64;
                (!close(figure.mean_ns, mean, 1e-6)).then(|| format!("their mean is {mean:.0} ns"))
            })
        };
        case.each_of(latencies(case), other, "sizes with 20 runs or more")
    }),
    &row("2544-26.2e", Should, Test(Latency), "to the same destination and, again, to a new one", |case| {
        let networks = |(of, _): (&Benchmarked, &record::Latency)| {
            Some(case.slot(of.slot)?.traffic.as_ref()?.flows.networks())
        };
        let networks: Vec<_> = latencies(case).filter_map(networks).collect();
        match (networks.iter().any(|n| *n <= 1), networks.iter().any(|n| *n > 1)) {
            (true, true) => Outcome::Met("one pair and several networks".into()),
            (true, false) => Outcome::Fails("the same destinations throughout".into()),
            (false, _) => Outcome::Fails("new destinations throughout".into()),
        }
    }),
    &row(
        "2544-26.2f",
        Must,
        Test(Latency),
        "the report names the definition of latency (RFC 1242)",
        |case| {
            case.each(
                latencies(case),
                |_| None,
                "from the time at which the generator writes the frame to the receiver's program: nearest to store-and-forward",
            )
        },
    ),
    &row(
        "8219-7.2a",
        Should,
        Test(Latency),
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
                None => case.each(latency_runs(case), |_| None, "runs with 500 tagged frames and more"),
            }
        },
    ),
    &row("8219-7.2b", Must, Test(Latency), "at least 20 runs, and their medians", |case| {
        let other = |_: &_, figure: &record::Latency| {
            few(figure.runs.len(), 20).or_else(|| {
                let middle = |time: fn(&record::LatencyRun) -> f64| {
                    linerate_stats::median(&figure.runs.iter().map(time).collect::<Vec<_>>())
                };
                let medians = [middle(|run| run.typical_ns)?, middle(|run| run.worst_ns)?];
                let same =
                    close(figure.typical_ns, medians[0], 1e-6) && close(figure.worst_ns, medians[1], 1e-6);
                (!same).then(|| format!("their medians are {medians:?} ns"))
            })
        };
        case.each_of(latencies(case), other, "sizes with 20 runs or more")
    }),
];

figures!(latencies, Latency);

fn latency_runs(case: &Case<'_>) -> Vec<(usize, record::LatencyRun)> {
    latencies(case).flat_map(|(of, figure)| figure.runs.iter().map(move |run| (of.slot, *run))).collect()
}

/// The reason if a latency trial is too short, or tags frames too early.
fn early(trial: &&TrialRecord) -> Option<String> {
    let tagged =
        trial.receiver.delays.as_ref().and_then(|delays| delays.tagged.iter().map(|(sent, _)| *sent).min());
    let first = tagged.unwrap_or(0);
    (trial.timing.run_ns < 120 * SECOND || first < 60 * SECOND).then(|| {
        format!(
            "trial {}: {} s, first tag after {:.1} s",
            trial.trial,
            trial.timing.run_ns as f64 / 1e9,
            first as f64 / 1e9
        )
    })
}
