//! The plans that come with linerate, run in their quick form on this machine, and the laws of physics that their results must
//! obey.

use crate::common::{Ended, Scratch, linerate, median};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans");

/// A campaign of a plan's quick form.
struct Quick {
    name: String,
    document: Value,
    trials: Vec<Value>,
    took: Duration,
    /// Faults other than those against physics.
    faults: Vec<String>,
}

/// The ratio of two cells' rates within blocks: its median, with the 95 % interval by order statistics if there is one.
#[derive(Debug, Clone, Copy)]
struct Ratio {
    low: f64,
    median: f64,
    high: f64,
    blocks: usize,
}

impl Ratio {
    fn of(mut ratios: Vec<f64>) -> Ratio {
        ratios.sort_by(f64::total_cmp);
        let n = ratios.len();
        // The largest k so that P(fewer than k of n fair coins show heads) is 2.5 % at most.
        let (mut below, mut chance, mut k) = (0.0, 0.5f64.powi(n as i32), 0);
        while k < n && below + chance <= 0.025 {
            below += chance;
            chance *= (n - k) as f64 / (k + 1) as f64;
            k += 1;
        }
        let (low, high) = if k == 0 {
            (0.0, f64::INFINITY)
        } else {
            (ratios[k - 1], ratios[n - k])
        };
        Ratio {
            low,
            median: median(&ratios),
            high,
            blocks: n,
        }
    }

    fn is_slower(&self) -> bool {
        self.high < 1.0
    }

    fn is_faster(&self) -> bool {
        self.low > 1.0
    }

    /// Likely to be slower, and not proven to be anything else.
    fn is_likely_slower(&self) -> bool {
        self.median < 1.0 && self.low < 1.0
    }

    /// Proven to be within this share of 1, or, if that is not decided, likely to be within another one.
    fn is_within(&self, share: f64, likely: f64) -> bool {
        let off = |ratio: f64| (ratio - 1.0).abs();
        let disproven = self.low > 1.0 + share || self.high < 1.0 - share;
        !disproven && (off(self.low).max(off(self.high)) <= share || off(self.median) <= likely)
    }
}

impl Quick {
    fn run(file: &std::path::Path) -> Quick {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let (scratch, began) = (Scratch::new(), Instant::now());
        let args = [
            "run",
            file.to_str().unwrap(),
            "--quick",
            "--allow-host-changes",
            "--json",
            "--out",
            "records",
        ];
        let ended = linerate(args).dir(scratch.path()).within(120).run();
        let took = began.elapsed();
        let mut quick = Quick {
            name,
            document: Value::Null,
            trials: Vec::new(),
            took,
            faults: Vec::new(),
        };
        quick.read(&ended, &scratch);
        quick
    }

    fn read(&mut self, ended: &Ended, scratch: &Scratch) {
        let status = ended.status.code();
        if status == Some(4) {
            println!("{}: all is skipped: {}", self.name, ended.stderr);
            if !ended.stderr.contains("skipped: ") {
                self.faults
                    .push("everything is skipped without a reason".into());
            }
            return;
        }
        self.document = serde_json::from_str(&ended.stdout).unwrap_or_default();
        let measure =
            self.document["campaign"]["planned"]["experiment"]["trials"]["measure"].as_str();
        let without_result = self.document["summary"]["unmeasured"]
            .as_array()
            .map_or(0, Vec::len);
        let expected = match status {
            // 3: an expectation was missed. Which of them must hold on any machine is looked at below.
            Some(0 | 3 | 5) => true,
            // The budget of a quick search is over before all of it has a result.
            Some(1) => matches!(measure, Some("search" | "rfc2544")) && without_result > 0,
            _ => false,
        };
        if !expected || ended.stderr.contains("panicked") {
            self.faults
                .push(format!("exit status {status:?}: {}", ended.stderr));
        }
        self.trials = crate::common::campaign::trials(&scratch.path().join("records"));
        self.check_cells();
    }

    /// Every cell that is not skipped has trials whose audit held.
    fn check_cells(&mut self) {
        let skipped = self.document["campaign"]["planned"]["skipped"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        for skip in &skipped {
            let cell = skip["cell"].as_u64().unwrap() as usize;
            println!(
                "{}: {} is skipped: {}",
                self.name,
                self.titles()[cell],
                skip["reasons"]
            );
        }
        for (cell, title) in self.titles().iter().enumerate() {
            if skipped.iter().any(|s| s["cell"] == cell) {
                continue;
            }
            let of_cell: Vec<&Value> = self.trials.iter().filter(|t| t["slot"] == cell).collect();
            let valid = of_cell
                .iter()
                .filter(|t| crate::common::campaign::valid(t))
                .count();
            if valid == 0 || valid * 2 < of_cell.len() {
                let why = of_cell
                    .iter()
                    .find_map(|t| crate::common::campaign::failures(t).first().cloned());
                self.faults.push(format!(
                    "{title}: {valid} of {} trials are valid; {}",
                    of_cell.len(),
                    why.unwrap_or_default()
                ));
            }
        }
    }

    /// Adds the trials of another campaign of the same plan, and replaces the faults by those of that campaign.
    fn and(mut self, other: Quick) -> Quick {
        let last = self
            .trials
            .iter()
            .filter_map(|t| t["block"].as_u64())
            .max()
            .unwrap_or(0);
        for mut trial in other.trials {
            trial["block"] = (trial["block"].as_u64().unwrap() + last + 1).into();
            self.trials.push(trial);
        }
        let Quick {
            name,
            document,
            faults,
            ..
        } = other;
        Quick {
            name,
            document,
            faults,
            trials: self.trials,
            took: self.took + other.took,
        }
    }

    fn titles(&self) -> Vec<String> {
        let slots = &self.document["campaign"]["slots"];
        slots
            .as_array()
            .into_iter()
            .flatten()
            .map(|c| c["name"].as_str().unwrap().to_string())
            .collect()
    }

    /// The one cell of this title.
    fn cell(&self, title: &str) -> Option<usize> {
        self.titles().iter().position(|t| t == title)
    }

    /// The ratio of two cells, by their titles.
    fn ratio(&self, of: &str, than: &str) -> Result<Ratio, String> {
        let cell = |title: &str| {
            self.cell(title)
                .ok_or_else(|| format!("{}: no '{title}' in {:?}", self.name, self.titles()))
        };
        let rates = |cell: usize| -> BTreeMap<u64, f64> {
            let valid = self
                .trials
                .iter()
                .filter(|t| t["slot"] == cell && crate::common::campaign::valid(t));
            valid
                .filter_map(|t| Some((t["block"].as_u64()?, t["rates"]["received"].as_f64()?)))
                .collect()
        };
        let (of, than) = (rates(cell(of)?), rates(cell(than)?));
        let ratios: Vec<f64> = of
            .iter()
            .filter_map(|(block, a)| Some(a / than.get(block)?))
            .collect();
        if ratios.is_empty() {
            return Err(format!("{}: no block has both", self.name));
        }
        Ok(Ratio::of(ratios))
    }
}

/// A law for the ratio of two cells of a plan that holds on every machine.
struct Law {
    plan: &'static str,
    of: &'static str,
    than: &'static str,
    holds: fn(&Ratio) -> bool,
    says: &'static str,
}

const fn law(
    plan: &'static str,
    of: &'static str,
    than: &'static str,
    holds: fn(&Ratio) -> bool,
    says: &'static str,
) -> Law {
    Law {
        plan,
        of,
        than,
        holds,
        says,
    }
}

/// The planted difference is 3 %, which a quick form of 12 s is too short to prove on every machine.
const LAWS: [Law; 15] = [
    law(
        "tcp-endhost",
        "tuned, rtt 35 ms",
        "as-it-is, rtt 35 ms",
        Ratio::is_faster,
        "faster",
    ),
    law(
        "rules",
        "nftables, rules 10000",
        "nftables, rules 10",
        Ratio::is_slower,
        "slower",
    ),
    law(
        "rules",
        "iptables, rules 10000",
        "iptables, rules 10",
        Ratio::is_slower,
        "slower",
    ),
    law(
        "tables",
        "nftables, entries 100000",
        "nftables, entries 10",
        |r| r.is_within(0.15, 0.25),
        "within 15 %",
    ),
    law(
        "tables",
        "iptables, entries 100000",
        "iptables, entries 10",
        |r| r.is_within(0.15, 0.25),
        "within 15 %",
    ),
    law(
        "established",
        "established, rules 1000",
        "established, rules 0",
        |r| r.is_within(0.15, 0.25),
        "within 15 %",
    ),
    law(
        "established",
        "every-frame-walks, rules 1000",
        "every-frame-walks, rules 0",
        Ratio::is_slower,
        "slower",
    ),
    law(
        "nat",
        "nft-nat, cores 1",
        "forwarding, cores 1",
        Ratio::is_slower,
        "slower",
    ),
    law(
        "nat",
        "iptables-nat, cores 1",
        "forwarding, cores 1",
        Ratio::is_slower,
        "slower",
    ),
    law(
        "firewalls",
        "nft-nat, family IPv4",
        "forwarding, family IPv4",
        Ratio::is_slower,
        "slower",
    ),
    law(
        "firewalls",
        "iptables-nat, family IPv4",
        "forwarding, family IPv4",
        Ratio::is_slower,
        "slower",
    ),
    law(
        "planted",
        "planted",
        "control",
        Ratio::is_likely_slower,
        "slower",
    ),
    law(
        "xdp",
        "xdp, size 64 B",
        "forwarding, size 64 B",
        Ratio::is_faster,
        "faster",
    ),
    law(
        "xdp",
        "xdp, size 1518 B",
        "forwarding, size 1518 B",
        Ratio::is_faster,
        "faster",
    ),
    law(
        "forwarding",
        "forwarding, size 64 B",
        "tester-baseline, size 64 B",
        Ratio::is_slower,
        "slower",
    ),
];

/// Figures of a plan that contradict physics.
fn against_physics(quick: &Quick) -> Vec<String> {
    let mut broken = Vec::new();
    for law in LAWS.iter().filter(|law| law.plan == quick.name) {
        match quick.ratio(law.of, law.than) {
            Ok(ratio) => {
                println!("{}: {} / {}: {ratio:.3?}", law.plan, law.of, law.than);
                if !(law.holds)(&ratio) {
                    let Law {
                        plan,
                        of,
                        than,
                        says,
                        ..
                    } = law;
                    broken.push(format!(
                        "{plan}: {of} against {than} is not {says}: {ratio:.3?}"
                    ));
                }
            }
            Err(missing) => broken.push(missing),
        }
    }
    broken
}

/// Everything that is wrong with a campaign. By construction, 1 in 20 comparisons of a configuration with itself errs. Such a
/// comparison runs once more, with a summary of its own, and 1 in 400 errs twice.
fn wrong_with(quick: &Quick) -> Vec<String> {
    let faults = quick.faults.iter().map(|f| format!("{}: {f}", quick.name));
    let of_the_same = (quick.name == "a-a")
        .then(|| shown_difference(quick))
        .flatten();
    faults
        .chain(against_physics(quick))
        .chain(of_the_same)
        .collect()
}

/// The plans of the embedded lab.
fn plans() -> Vec<PathBuf> {
    let all = fs::read_dir(PLANS).unwrap().map(|e| e.unwrap().path());
    let mut plans: Vec<PathBuf> = all
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    plans.sort();
    plans
}

/// All of them, with everything that is wrong at once: some five minutes.
#[test]
#[ignore = "needs root: run by make test as root"]
fn takes_minutes_quick_forms_show_what_physics_demands() {
    let (mut wrong, began) = (Vec::new(), Instant::now());
    let plans = plans();
    for file in &plans {
        let mut quick = Quick::run(file);
        let mut broken = wrong_with(&quick);
        if !broken.is_empty() {
            // A second run, in case other programs disturbed the first; the trials of both count.
            println!("{}; once more", broken.join("; "));
            quick = quick.and(Quick::run(file));
            broken = wrong_with(&quick);
        }
        println!(
            "{}: {:.1} s, {} trials",
            quick.name,
            quick.took.as_secs_f64(),
            quick.trials.len()
        );
        wrong.extend(broken);
    }
    println!(
        "{} plans in {:.0} s",
        plans.len(),
        began.elapsed().as_secs_f64()
    );
    assert!(
        wrong.is_empty(),
        "{} faults:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The difference shown between a configuration and itself, if any.
fn shown_difference(quick: &Quick) -> Option<String> {
    let comparisons = quick.document["summary"]["comparisons"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let again = quick.cell("again")?;
    let Some(comparison) = comparisons.iter().find(|c| c["of"] == again) else {
        return Some(format!("a-a: no comparison among {comparisons:?}"));
    };
    let bound = |name: &str| comparison["ratio"][name].as_f64();
    println!("a-a: {}", comparison["ratio"]);
    let proven =
        matches!((bound("low"), bound("high")), (Some(low), Some(high)) if low > 1.0 || high < 1.0);
    proven.then(|| {
        format!(
            "a-a: a difference is proven where there is none: {}",
            comparison["ratio"]
        )
    })
}

#[test]
fn ratios_have_the_intervals_of_order_statistics() {
    let ratios = |n: usize| Ratio::of((1..=n).map(|i| i as f64).collect());
    // Confidence intervals for a median, from tables of the binomial distribution: n = 5 has none, then ranks 1 and 6, 2 and 8 of
    // 9, 3 and 10 of 12, 6 and 15 of 20.
    assert_eq!((ratios(5).low, ratios(5).high), (0.0, f64::INFINITY));
    for (n, low, high) in [
        (6, 1.0, 6.0),
        (9, 2.0, 8.0),
        (12, 3.0, 10.0),
        (20, 6.0, 15.0),
    ] {
        let ratio = ratios(n);
        assert_eq!((ratio.low, ratio.high, ratio.blocks), (low, high, n));
    }
    assert!(Ratio::of(vec![0.9; 6]).is_slower() && Ratio::of(vec![1.1; 6]).is_faster());
    assert!(!Ratio::of(vec![0.9; 5]).is_slower());
    let within = |ratios: &[f64]| Ratio::of(ratios.to_vec()).is_within(0.15, 0.25);
    assert!(within(&[0.9, 0.95, 1.0, 1.0, 1.05, 1.1]) && within(&[0.6, 0.7, 0.8, 0.8, 0.9, 1.4]));
    assert!(
        !within(&[0.7, 0.71, 0.72, 0.73, 0.74, 0.8]) && !within(&[0.5, 0.6, 0.7, 0.7, 0.8, 0.9])
    );
}
