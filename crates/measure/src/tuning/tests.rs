use super::*;
use crate::trial::Rates;

fn rated(received: f64) -> Rates {
    Rates {
        offered: received,
        received,
        seconds: 1.0,
    }
}

fn stage(name: &str, changes: Vec<usize>, runs: Runs, factors: &[f64]) -> Stage {
    let slots: Vec<usize> = (1..=runs.len()).collect();
    let mut trials = Vec::new();
    for block in 0..9 {
        for (run, slot) in runs.iter().zip(&slots) {
            let on = run.iter().zip(&changes).filter(|(on, _)| **on);
            let rate: f64 = on.map(|(_, change)| factors[*change]).product();
            // Set-ups and trials differ a little, each in its own way.
            let noise = 1.0 + 0.001 * ((slot * 7 + block * 13) % 11) as f64;
            let mut trial = TrialRecord {
                slot: *slot,
                block: block as u32,
                ..TrialRecord::default()
            };
            trial.rates = Some(rated(1e6 * rate * noise));
            trial.audit.valid = true;
            trials.push(trial);
        }
    }
    // The fastest trial of all was not valid.
    trials[5].audit.valid = false;
    trials[5].rates = Some(rated(1e12));
    let mut stage = Stage {
        name: name.into(),
        records: String::new(),
        changes,
        runs,
        levels: Vec::new(),
        trials: [0; 2],
        warnings: Vec::new(),
    };
    stage.measure(&slots, &trials);
    assert_eq!(stage.trials[0], stage.trials[1] + 1);
    stage
}

#[test]
fn what_helps_is_kept_and_what_costs_is_named() {
    let factors = [1.0, 1.2, 1.0, 0.5, 1.0];
    let names = (0..5).map(|n| (format!("change {n}"), vec![format!("key = {n}")]));
    let mut tuned = Tuned::new("t".into(), "p".into(), names);
    let left = tuned
        .screened(stage(
            "screening",
            (0..5).collect(),
            screening_runs(&[0, 1, 2, 3, 4]),
            &factors,
        ))
        .unwrap();
    assert_eq!(left, [1, 3]);
    let runs = confirming_runs(&tuned.factor_of(&left));
    assert_eq!(runs.len(), 16);
    assert_eq!(
        tuned
            .confirmed(stage("confirmation", left, runs, &factors))
            .unwrap(),
        [1]
    );
    let verdicts: Vec<Verdict> = tuned.changes.iter().map(|change| change.verdict).collect();
    use Verdict::{Harmful, Kept, NoEffect};
    assert_eq!(verdicts, [NoEffect, Kept, NoEffect, Harmful, NoEffect]);
    let of = |change: usize| tuned.changes[change].confirmed.unwrap().ratio;
    assert!((of(1).median - 1.2).abs() < 0.01 && (of(3).median - 0.5).abs() < 0.01);
    assert_eq!(tuned.interactions, []);
}

#[test]
fn a_change_that_lets_no_frame_pass_is_named_and_left_out() {
    let factors = [1.0, 1.2, 1.0, 0.5, 1.0];
    let names = (0..5).map(|n| (format!("change {n}"), Vec::new()));
    let mut tuned = Tuned::new("t".into(), "p".into(), names);
    let mut screening = stage(
        "screening",
        (0..5).collect(),
        screening_runs(&[0, 1, 2, 3, 4]),
        &factors,
    );
    let broken = screening.runs.iter().map(|run| run[4]);
    screening
        .levels
        .iter_mut()
        .zip(broken)
        .filter(|(_, broken)| *broken)
        .for_each(|(level, _)| *level = None);
    assert_eq!(tuned.screened(screening).unwrap(), [1, 3]);
    assert_eq!(
        (tuned.changes[4].verdict, tuned.changes[0].verdict),
        (Verdict::Breaks, Verdict::NoEffect)
    );
}

#[test]
fn what_spoils_a_stage_is_named() {
    let mut spoilt = stage("screening", vec![0], screening_runs(&[0]), &[1.0]);
    spoilt.records = "t/screening".into();
    spoilt.levels.fill(None);
    let runs = spoilt.runs.len();
    let lost = format!(
        "no frame passed in {runs} of {runs} runs, nor through the DUT as it is: linerate show t/screening"
    );
    assert!(spoilt.unclear().starts_with(&lost), "{}", spoilt.unclear());
    spoilt.trials = [40, 3];
    let invalid = "only 3 of 40 trials were valid: linerate show t/screening --trials";
    assert!(
        spoilt.unclear().starts_with(invalid),
        "{}",
        spoilt.unclear()
    );
    spoilt.trials = [4, 4];
    spoilt.levels.fill(Some(0.0));
    assert!(spoilt.unclear().contains("larger --budget"));
}

#[test]
fn too_few_runs_are_no_verdict() {
    let mut tuned = Tuned::new("t".into(), "p".into(), [("a".into(), Vec::new())]);
    let mut few = stage("screening", vec![0], screening_runs(&[0]), &[1.0]);
    few.levels.fill(None);
    few.levels[0] = Some(0.0);
    assert_eq!(tuned.screened(few), None);
    assert_eq!(tuned.changes[0].verdict, Verdict::Unknown);
}

#[test]
fn confirmations_have_enough_runs() {
    for survivors in 1..=MOST {
        let alone: Vec<usize> = (0..survivors).collect();
        for factor_of in [alone, vec![0; survivors]] {
            let n = confirming_runs(&factor_of).len();
            assert!(n >= 8 && n > survivors + 1, "{factor_of:?}: {n}");
        }
    }
}

#[test]
fn of_the_levels_that_help_the_best_is_kept() {
    // Three levels of one factor, two of another, of which neither helps, and a change of its own.
    let factors = [1.1, 1.3, 1.2, 1.0, 0.7, 1.15];
    let names = (0..6).map(|n| (format!("change {n}"), Vec::new()));
    let mut tuned = Tuned::new("t".into(), "p".into(), names);
    for (at, factor) in ["ring", "ring", "ring", "budget", "budget"]
        .iter()
        .enumerate()
    {
        tuned.changes[at].factor = Some(factor.to_string());
    }
    let all: Vec<usize> = (0..6).collect();
    assert_eq!(tuned.factor_of(&all), [0, 0, 0, 3, 3, 5]);
    let runs = screening_runs(&tuned.factor_of(&all));
    let left = tuned
        .screened(stage("screening", all, runs, &factors))
        .unwrap();
    assert!(
        [0, 1, 2, 4, 5].iter().all(|at| left.contains(at)),
        "{left:?}"
    );
    let runs = confirming_runs(&tuned.factor_of(&left));
    let kept = tuned.confirmed(stage("confirmation", left, runs, &factors));
    assert_eq!(kept.unwrap(), [1, 5]);
    let of = |change: usize| tuned.changes[change].verdict;
    use Verdict::{Harmful, Kept, NoEffect, NotChosen, NotConfirmed};
    assert_eq!([0, 1, 2].map(of), [NotChosen, Kept, NotChosen]);
    assert_eq!([4, 5].map(of), [Harmful, Kept]);
    assert!(
        matches!(of(3), NoEffect | NotConfirmed),
        "one in ten survives by chance"
    );
    let of = |change: usize| tuned.changes[change].confirmed.unwrap().ratio.median;
    for at in [0, 1, 2, 4, 5] {
        assert!(
            (of(at) / factors[at] - 1.0).abs() < 0.01,
            "{at}: {}",
            of(at)
        );
    }
}

#[test]
fn effects_of_kept_changes_are_multiplied() {
    let names = ["a", "b", "c"].map(|name| (name.to_string(), Vec::new()));
    let mut tuned = Tuned::new("t".into(), "p".into(), names);
    assert_eq!(tuned.confirmed_gain(), None);
    for change in &mut tuned.changes {
        let ratio = Estimate {
            median: 1.1,
            low: Some(1.08),
            high: Some(1.12),
            n: 16,
        };
        change.confirmed = Some(Measured { ratio, p: 0.001 });
    }
    tuned.changes[0].verdict = Verdict::Kept;
    tuned.changes[2].verdict = Verdict::Kept;
    let gain = tuned.confirmed_gain().unwrap();
    let [low, high] = [gain.low, gain.high].map(Option::unwrap);
    // 0.02 * sqrt(2) of 1.1 on either side, and not 0.04.
    assert!((gain.median - 1.21).abs() < 1e-9, "{gain:?}");
    assert!(
        (low - 1.179).abs() < 1e-3 && (high - 1.241).abs() < 1e-3,
        "{gain:?}"
    );
}
