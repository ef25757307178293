//! Warnings about throughputs that may be decided by single losses: one trial without loss makes a throughput of RFC 2544.

use crate::experiment::Benchmark;
use crate::record::{Benchmarked, Campaign, Figures, Slot, TrialRecord, Warning};
use linerate_wire::units::counted;

/// A larger frame whose throughput in frames/s is so many times that of a smaller one shows that chance decided.
const MUCH: f64 = 1.5;

pub(super) fn warnings(
    campaign: &Campaign,
    trials: &[TrialRecord],
    benchmarks: &[Benchmarked],
) -> Vec<Warning> {
    let found: Vec<(&Slot, f64)> = benchmarks
        .iter()
        .filter_map(|of| Some((campaign.slots.get(of.slot)?, throughput(of)?)))
        .collect();
    let warning = |(slot, text): (&Slot, String)| Warning {
        slot: Some(slot.id),
        text,
        spoils: None,
    };
    let losing = found
        .iter()
        .filter_map(|(slot, fps)| Some((*slot, losing(slot, *fps, trials)?)));
    let overtaken = found
        .iter()
        .filter_map(|(slot, fps)| Some((*slot, overtaken(campaign, slot, *fps, &found)?)));
    losing.chain(overtaken).map(warning).collect()
}

fn throughput(of: &Benchmarked) -> Option<f64> {
    of.tests.iter().find_map(|tested| match &tested.figures {
        Figures::Throughput(found) => Some(found.fps),
        _ => None,
    })
}

/// Further trials at the throughput that lost frames. Those with events lose frames on purpose.
fn losing(slot: &Slot, fps: f64, trials: &[TrialRecord]) -> Option<String> {
    let further = |trial: &&TrialRecord| {
        let tests = [Benchmark::Latency, Benchmark::DelayVariation];
        let at_throughput = trial.benchmark.is_some_and(|test| tests.contains(&test));
        trial.slot == slot.id && trial.audit.valid && at_throughput && trial.asked_fps == Some(fps)
    };
    let further: Vec<&TrialRecord> = trials.iter().filter(further).collect();
    let losses: Vec<f64> = further
        .iter()
        .map(|trial| trial.loss_ratio)
        .filter(|loss| *loss > 0.0)
        .collect();
    let most = losses.iter().copied().reduce(f64::max)?;
    Some(format!(
        "{} of {} at the throughput (latency, delay variation) lost frames, up to {} % of them: a single trial without loss decided the throughput, so another run may find less. Use longer trials (--duration), or search for the load with little loss: linerate search --goal pdr",
        losses.len(),
        counted(further.len(), "further trial"),
        percent(most)
    ))
}

/// A share in percent, with two digits.
fn percent(share: f64) -> String {
    let value = 100.0 * share;
    let decimals = (1.0 - value.log10().floor()).clamp(0.0, 8.0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// A larger frame of the same variant with a much higher throughput.
fn overtaken(campaign: &Campaign, slot: &Slot, fps: f64, found: &[(&Slot, f64)]) -> Option<String> {
    let factors = campaign
        .planned
        .as_ref()
        .map_or(&[][..], |planned| &planned.experiment.factors);
    let is_size = |factor: usize| {
        factors
            .get(factor)
            .is_some_and(|factor| factor.sets.iter().all(|set| set == "traffic.size"))
    };
    let alike = |slot: &Slot| {
        let levels = slot.levels.iter().copied();
        let levels: Vec<(usize, usize)> = levels.filter(|(factor, _)| !is_size(*factor)).collect();
        let (variant, family) = (slot.variant.clone(), slot.family.clone());
        (
            variant,
            family,
            slot.transport.clone(),
            slot.direction,
            levels,
        )
    };
    let larger = found.iter().filter(|(other, _)| {
        other.average_len_fcs() > slot.average_len_fcs() && alike(other) == alike(slot)
    });
    let (other, most) = larger.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (*most > MUCH * fps).then(|| {
        format!(
            "the larger frames of {} have {:.1} times this throughput in frames/s, although they are no less work: single losses decided here. Measure again, with longer trials (--duration)",
            other.name,
            most / fps
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Audit;
    use crate::record::{Tested, Throughput};

    fn slot(id: usize, length: u16) -> Slot {
        Slot {
            id,
            name: format!("forwarding IPv4 {length} B"),
            variant: "forwarding".into(),
            lengths_fcs: vec![length],
            ..Slot::default()
        }
    }

    fn of(slot: usize, fps: f64) -> Benchmarked {
        let found = Throughput {
            fps,
            upper: None,
            frames: 1,
            seconds: 1.0,
            burst_s: None,
        };
        Benchmarked {
            slot,
            maximum: None,
            tests: vec![Tested {
                test: Benchmark::Throughput,
                why: None,
                valid_trials: 1,
                trials: 1,
                figures: Figures::Throughput(found),
            }],
        }
    }

    fn trial(slot: usize, fps: f64, test: Benchmark, loss_ratio: f64) -> TrialRecord {
        TrialRecord {
            slot,
            asked_fps: Some(fps),
            benchmark: Some(test),
            loss_ratio,
            audit: Audit {
                valid: true,
                ..Audit::default()
            },
            ..TrialRecord::default()
        }
    }

    #[test]
    fn losses_at_the_throughput_and_faster_large_frames_are_told() {
        let campaign = Campaign {
            slots: vec![slot(0, 64), slot(1, 512), slot(2, 1518)],
            ..Campaign::default()
        };
        let benchmarks = [of(0, 1e6), of(1, 0.9e6), of(2, 3e6)];
        let trials = [
            trial(0, 1e6, Benchmark::Latency, 0.0),
            trial(0, 1e6, Benchmark::Latency, 2e-5),
            trial(0, 1e6, Benchmark::DelayVariation, 1e-5),
            // At another load, and where frames are lost on purpose.
            trial(0, 2e6, Benchmark::Latency, 0.5),
            trial(1, 0.9e6, Benchmark::Reset, 0.5),
            trial(1, 0.9e6, Benchmark::Latency, 0.0),
        ];
        let found = warnings(&campaign, &trials, &benchmarks);
        let told: Vec<(usize, &str)> = found
            .iter()
            .map(|warning| (warning.slot.unwrap(), warning.text.as_str()))
            .collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(
            told[0].0 == 0
                && told[0]
                    .1
                    .starts_with("2 of 3 further trials at the throughput"),
            "{told:?}"
        );
        assert!(told[0].1.contains("up to 0.002 % of them"), "{told:?}");
        for (slot, times) in [(0, "3.0 times"), (1, "3.3 times")] {
            assert!(
                told.iter()
                    .any(|(of, text)| *of == slot && text.contains(times)),
                "{told:?}"
            );
        }
        // Frames of nearly the same throughput are no sign of chance.
        let close = [of(0, 1e6), of(1, 1.2e6)];
        assert!(warnings(&campaign, &[], &close).is_empty());
    }
}
