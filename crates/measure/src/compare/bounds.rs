//! Comparisons of results of searches. The trials of a search have many loads, so their rates are no sample of anything: the bounds
//! of the results are compared.

use super::{Change, Comparison, Method};
use crate::experiment::Measure;
use crate::record::{
    Benchmarked, Campaign, Figures, Searched, SearchedGoal, Stopped, Summary, TrialRecord,
};
use crate::results;
use linerate_search::Goal;
use linerate_stats::Estimate;
use serde::Serialize;

/// The results that a comparison is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sought {
    /// `throughput`, or `rate for the goal pdr`.
    pub what: String,
    pub reference: Bounds,
    pub other: Bounds,
    /// Figures of other tests of RFC 2544 that both have.
    pub beside: Vec<Beside>,
}

/// A figure of a test of both sides. It has no interval, so nothing is claimed of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Beside {
    pub figure: &'static str,
    pub unit: Unit,
    /// The loads at which it was measured, in frames/s.
    pub loads: [f64; 2],
    /// Of the reference, and of the other.
    pub values: [f64; 2],
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    Ns,
    Frames,
    FramesPerSecond,
    Share,
}

/// The figures of two slots' tests.
fn beside(reference: &Benchmarked, other: &Benchmarked) -> Vec<Beside> {
    let figures = |of: &Benchmarked| -> Vec<(&'static str, Unit, f64, Option<f64>)> {
        let each = |figures: &Figures| match figures {
            Figures::Latency(found) => vec![
                (
                    "latency, median",
                    Unit::Ns,
                    found.load,
                    Some(found.typical_ns),
                ),
                ("latency, p99.9", Unit::Ns, found.load, Some(found.worst_ns)),
            ],
            Figures::DelayVariation(found) => {
                vec![("PDV", Unit::Ns, found.load, Some(found.pdv_ns))]
            }
            Figures::FrameLoss(loads) => loads.first().map_or(Vec::new(), |at| {
                let lost = at.lost as f64 / at.sent.max(1) as f64;
                vec![(
                    "frame loss at the highest load",
                    Unit::Share,
                    at.load,
                    Some(lost),
                )]
            }),
            Figures::BackToBack(found) => {
                let rate = found.mean / found.implied_s;
                vec![("longest burst, mean", Unit::Frames, rate, Some(found.mean))]
            }
            Figures::Recovery(found) => {
                vec![("recovery, mean", Unit::Ns, found.overload, found.mean_ns)]
            }
            Figures::Reset(found) => vec![("reset, mean", Unit::Ns, found.load, found.by_loss_ns)],
            Figures::ForwardingRate(found) => vec![(
                "highest forwarding rate (MFR)",
                Unit::FramesPerSecond,
                found.mfr_offered,
                Some(found.mfr),
            )],
            Figures::Throughput(_) | Figures::None => Vec::new(),
        };
        of.tests
            .iter()
            .flat_map(|tested| each(&tested.figures))
            .collect()
    };
    let known = figures(reference);
    let with = |(figure, unit, load, value): (&'static str, Unit, f64, Option<f64>)| {
        let (_, _, than, reference) = *known.iter().find(|(name, ..)| *name == figure)?;
        Some(Beside {
            figure,
            unit,
            loads: [than, load],
            values: [reference?, value?],
        })
    };
    figures(other).into_iter().filter_map(with).collect()
}

/// A result of a search, as far as its trials tell it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    /// The highest load that meets the goal, and the lowest that misses it, in frames/s.
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    /// The ends between which the result lies: its 95 % interval where that is known, or else the bounds. `None`: open.
    pub range: [Option<f64>; 2],
    /// Whether `range` is the interval.
    pub interval: bool,
}

impl Bounds {
    /// `line`: the rate of the medium, if the tester can fill it: no result is higher. `None`: nothing is known of the result.
    pub fn of(goal: &SearchedGoal, line: Option<f64>) -> Option<Bounds> {
        let (lower, upper) = (goal.outcome.lower, goal.outcome.upper);
        lower.or(upper)?;
        let most = upper.or(line);
        let interval = goal.interval != [None; 2];
        let range = match (lower, most) {
            _ if interval => goal.interval,
            // Where the loss changes with time, bounds may contradict each other.
            (Some(low), Some(high)) => [Some(low.min(high)), Some(low.max(high))],
            (low, high) => [low, high],
        };
        Some(Bounds {
            lower,
            upper,
            range,
            interval,
        })
    }

    /// The figure that stands for the result: its lower bound, or the upper one where no load meets the goal.
    pub fn value(&self) -> f64 {
        self.lower.or(self.upper).unwrap_or_default()
    }
}

impl Campaign {
    /// Whether the loads of its trials were chosen by searches and tests: then a rate is a result of these, not of the trials.
    pub fn is_searched(&self) -> bool {
        let measure = |planned: &crate::record::Planned| planned.experiment.trials.measure;
        self.planned
            .as_ref()
            .is_some_and(|planned| measure(planned) != Measure::Rate)
    }

    /// The name of a goal's result.
    pub fn sought(&self, goal: &SearchedGoal) -> String {
        let is_test = self
            .planned
            .as_ref()
            .is_some_and(|planned| planned.experiment.trials.measure == Measure::Rfc2544);
        match is_test {
            true => "throughput".into(),
            false => format!("rate for the goal {}", goal.name),
        }
    }
}

/// The results of a campaign's searches: those of its verdict or, of one that has none yet, by its trials.
pub fn searched(
    campaign: &Campaign,
    trials: &[TrialRecord],
    summary: Option<&Summary>,
) -> Vec<Searched> {
    match summary {
        Some(summary) => summary.searches.clone(),
        None => results::Ratios::new(campaign, trials, Stopped::Interrupted).searches(),
    }
}

/// A slot with the result of its search, under a name.
#[derive(Debug, Clone)]
pub struct Named<'a> {
    pub name: String,
    pub campaign: &'a Campaign,
    pub search: Option<&'a Searched>,
    pub tests: Option<&'a Benchmarked>,
    /// Why its campaign ended.
    pub stopped: Stopped,
}

impl Named<'_> {
    fn goals(&self) -> &[SearchedGoal] {
        self.search.map_or(&[], |search| &search.goals)
    }

    fn bounds(&self, goal: &SearchedGoal) -> Option<Bounds> {
        let maximum = self.tests.and_then(|tests| tests.maximum);
        let line = maximum.filter(|maximum| maximum.is_line());
        Bounds::of(goal, line.map(|line| line.fps))
    }
}

/// Compares the results of the goals that two slots were both searched for. The second list says what is not compared, and why.
pub fn compare_searched(
    reference: &Named<'_>,
    other: &Named<'_>,
    confidence: f64,
) -> (Vec<Comparison>, Vec<String>) {
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    for side in [reference, other] {
        if side.goals().is_empty() {
            notes.push(format!(
                "{} has no throughput: its campaign has a loss curve, or ended first. `linerate rfc2544 --test throughput` and `linerate search --goal ndr` search for one",
                side.name
            ));
        }
    }
    if !notes.is_empty() {
        return (found, notes);
    }
    let asks_the_same = |a: &SearchedGoal, b: &SearchedGoal| {
        a.name == b.name && (a.goal.loss, a.goal.exceed) == (b.goal.loss, b.goal.exceed)
    };
    for goal in other.goals() {
        let Some(than) = reference.goals().iter().find(|g| asks_the_same(g, goal)) else {
            notes.push(format!(
                "{}: {} has no result for the goal {}: search both for the same goals (linerate search --goal {1})",
                other.name, reference.name, goal.name
            ));
            continue;
        };
        match (reference.bounds(than), other.bounds(goal)) {
            (Some(a), Some(b)) => {
                found.push(of_goal(
                    [reference, other],
                    [a, b],
                    [&than.goal, &goal.goal],
                    goal,
                    confidence,
                ));
            }
            (a, _) => {
                let without = if a.is_none() { reference } else { other };
                let what = without.campaign.sought(goal);
                let why = match without.search {
                    Some(search) if !search.loads.is_empty() => search.stopped(without.stopped),
                    _ => "no trial searched for it (linerate rfc2544 --test throughput)",
                };
                notes.push(format!(
                    "{} has no {what}: {why}; see linerate show",
                    without.name
                ));
            }
        }
    }
    (found, notes)
}

fn of_goal(
    sides: [&Named<'_>; 2],
    [a, b]: [Bounds; 2],
    goals: [&Goal; 2],
    goal: &SearchedGoal,
    confidence: f64,
) -> Comparison {
    let [reference, other] = sides;
    let over = |of: Option<f64>, than: Option<f64>| Some(of? / than.filter(|than| *than > 0.0)?);
    let ratio = Estimate {
        median: b.value() / a.value(),
        low: over(b.range[0], a.range[1]),
        high: over(b.range[1], a.range[0]),
        n: 1,
    };
    let change = Change {
        ratio,
        method: Method::Bounds,
    };
    let mut warnings = Vec::new();
    if !(a.interval && b.interval) {
        warnings.push("each result is that of one search, in which a single trial can decide about a load: its bounds are no confidence interval. Repeat both campaigns to see how far another search ends from them".into());
    }
    let seconds = |goal: &Goal| goal.final_ns as f64 / 1e9;
    let [first, second] = goals.map(seconds);
    if first != second {
        warnings.push(format!(
            "the deciding trials of {} last {first} s, those of {} {second} s: longer trials lose frames more often",
            reference.name, other.name
        ));
    }
    let several = other.goals().len() > 1;
    let name = |side: &Named<'_>| match several {
        true => format!("{}, {}", side.name, goal.name),
        false => side.name.clone(),
    };
    Comparison {
        reference: name(reference),
        other: name(other),
        blocks: None,
        campaigns: false,
        reference_rates: vec![a.value()],
        other_rates: vec![b.value()],
        outcome: change.outcome(),
        change,
        sought: Some(Sought {
            what: other.campaign.sought(goal),
            reference: a,
            other: b,
            beside: match (reference.tests, other.tests) {
                (Some(a), Some(b)) => beside(a, b),
                _ => Vec::new(),
            },
        }),
        change_of_share: None,
        lost: [0.0; 2],
        dropped: [0.0; 2],
        handled: None,
        pairs: None,
        undecided: None,
        disturbed: None,
        p: None,
        confidence,
        warnings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Outcome;
    use crate::record::{Ended, SearchedLoad, Slot};
    use crate::slower::Slowdown;
    use linerate_search::{Irregular, Limits};

    fn goal(name: &str, bounds: [Option<f64>; 2], interval: [Option<f64>; 2]) -> SearchedGoal {
        SearchedGoal {
            name: name.into(),
            goal: Goal::new(0.0, 0, 1_000_000_000, 1_000_000_000),
            outcome: linerate_search::Outcome {
                lower: bounds[0],
                upper: bounds[1],
                conditional: bounds[0],
                irregular: bounds[1].is_none().then_some(Irregular::MaxLoad),
            },
            interval,
        }
    }

    fn campaign() -> Campaign {
        let timing = serde_json::json!({ "warm_up_ns": 0, "run_ns": 1, "interval_ns": 1, "quiet_ns": 0, "drain_ns": 0, "settle_ns": 0 });
        let campaign = serde_json::json!({
            "version": 1, "linerate": "0", "name": "n", "started": "", "notes": [], "standing": {},
            "asked": {
                "command": [], "mode": "inline", "lab": "simulated", "generator": "", "receiver": "", "flows": 1,
                "order": "sequential", "rate": "max", "timing": timing, "batch": 1, "seed": 1
            },
            "roles": { "generator": [], "dut": [], "receiver": [], "control": [] },
            "slots": [Slot::default()],
        });
        serde_json::from_value(campaign).unwrap()
    }

    fn compared(
        reference: Vec<SearchedGoal>,
        other: Vec<SearchedGoal>,
    ) -> (Vec<Comparison>, Vec<String>) {
        let campaign = campaign();
        let search = |goals| Searched {
            slot: 0,
            goals,
            limits: Limits { min: 1.0, max: 9.0 },
            stalls: None,
            loads: vec![SearchedLoad {
                load: 1.0,
                trials: 1,
                clean: 1,
                loss: 0.0,
                most: 0.0,
            }],
            stability: None,
            table: None,
            ended: Some(Ended::Known),
        };
        let searches = [search(reference), search(other)];
        let named = |at: usize, name: &str| Named {
            name: name.into(),
            campaign: &campaign,
            search: Some(&searches[at]),
            tests: None,
            stopped: Stopped::Precise,
        };
        compare_searched(&named(0, "a"), &named(1, "b"), 0.95)
    }

    #[test]
    fn bounds_decide_and_not_the_rates_of_all_trials() {
        let of = |low, high| vec![goal("ndr", [low, high], [None; 2])];
        let one = |reference, other| {
            let (mut found, notes) = compared(reference, other);
            assert!(notes.is_empty(), "{notes:?}");
            found.pop().unwrap()
        };
        let slower = one(of(Some(100.0), Some(101.0)), of(Some(69.0), Some(70.0)));
        assert_eq!(slower.outcome, Outcome::Slower);
        let held = |of: &Comparison, limit| of.held(limit).slowdown;
        assert_eq!(
            (held(&slower, 0.3), held(&slower, 0.35)),
            (Slowdown::Proven, Slowdown::Excluded)
        );
        assert!(slower.warnings[0].contains("one search"));
        // The bounds overlap, so equality is not excluded.
        let open = one(of(Some(100.0), Some(101.0)), of(Some(99.0), Some(100.5)));
        assert_eq!(open.outcome, Outcome::NotShown);
        assert_eq!(
            (held(&open, 0.01), held(&open, 0.03)),
            (Slowdown::Undecided, Slowdown::Excluded)
        );
        // No load was too high for the other: the DUT may be faster, but is not slower.
        let faster = one(of(Some(100.0), Some(101.0)), of(Some(102.0), None));
        assert_eq!(
            (faster.outcome, faster.change.ratio.high),
            (Outcome::Faster, None)
        );
        assert_eq!(held(&faster, 0.01), Slowdown::Excluded);
        let unknown = one(of(Some(100.0), None), of(Some(100.0), None));
        assert_eq!(
            (unknown.outcome, held(&unknown, 0.5)),
            (Outcome::NotShown, Slowdown::Undecided)
        );
        // No result is above the rate of the medium.
        let line = Bounds::of(&of(Some(100.0), None)[0], Some(100.0)).unwrap();
        assert_eq!(line.range, [Some(100.0), Some(100.0)]);
        // No load meets the goal: the throughput is below the lowest load.
        let silent = one(of(Some(100.0), Some(101.0)), of(None, Some(1.0)));
        assert_eq!(
            (silent.outcome, held(&silent, 0.9)),
            (Outcome::Slower, Slowdown::Proven)
        );
    }

    #[test]
    fn an_interval_counts_in_place_of_the_bounds() {
        let with = |low, high| {
            let interval = [Some(0.9 * low), Some(1.1 * high)];
            vec![goal("ndr", [Some(low), Some(high)], interval)]
        };
        let (found, _) = compared(with(100.0, 101.0), with(95.0, 96.0));
        assert_eq!(found[0].outcome, Outcome::NotShown);
        assert!(found[0].warnings.is_empty(), "{:?}", found[0].warnings);
    }

    #[test]
    fn what_has_no_partner_has_a_reason() {
        let of = |name, low| vec![goal(name, [low, low.map(|low| low + 1.0)], [None; 2])];
        let (found, notes) = compared(of("ndr", Some(5.0)), of("pdr", Some(5.0)));
        assert!(
            found.is_empty() && notes[0].contains("the goal pdr"),
            "{notes:?}"
        );
        let (found, notes) = compared(of("ndr", Some(5.0)), of("ndr", None));
        assert!(
            found.is_empty() && notes[0].starts_with("b has no rate for"),
            "{notes:?}"
        );
        let (found, notes) = compared(of("ndr", Some(5.0)), Vec::new());
        assert!(
            found.is_empty() && notes[0].contains("loss curve"),
            "{notes:?}"
        );
    }
}
