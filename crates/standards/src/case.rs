//! The records of a campaign, as the checks look at them.

use linerate_measure::experiment::{Benchmark, Measure, Method, Trials};
use linerate_measure::record::EventClass::{OsReset, PowerInterruption, ProcessReset};
use linerate_measure::record::{
    Benchmarked, Campaign, Direction, Ended, Figures, Guests, HostFacts, LabKind, Searched, Slot,
    SlotFacts, Summary, Tested, TrialRecord, Why,
};
use linerate_wire::words::{distinct, together};
use linerate_wire::{Selection, Traffic};
use serde::Serialize;

/// The records of a campaign.
#[derive(Debug, Clone, Copy)]
pub struct Records<'a> {
    pub campaign: &'a Campaign,
    pub host: &'a HostFacts,
    pub trials: &'a [TrialRecord],
    pub facts: &'a [SlotFacts],
    pub summary: Option<&'a Summary>,
}

#[derive(Debug, Clone)]
pub enum Outcome {
    Met(String),
    Fails(String),
    NotApplicable(String),
    NotRun(String),
}

/// Met, or not, with the same evidence.
pub fn holds(is_met: bool, found: impl Into<String>) -> Outcome {
    if is_met { met(found) } else { fails(found) }
}

pub fn met(found: impl Into<String>) -> Outcome {
    Outcome::Met(found.into())
}

pub fn fails(why: impl Into<String>) -> Outcome {
    Outcome::Fails(why.into())
}

pub fn not_applicable(why: impl Into<String>) -> Outcome {
    Outcome::NotApplicable(why.into())
}

pub fn not_run(why: impl Into<String>) -> Outcome {
    Outcome::NotRun(why.into())
}

/// The name of a test in plans.
pub fn name(test: Benchmark) -> String {
    struct Name(Benchmark);
    impl std::fmt::Display for Name {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.serialize(f)
        }
    }
    Name(test).to_string()
}

pub const SECOND: u64 = 1_000_000_000;

pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Frame lengths that RFC 2544 recommends for Ethernet.
pub const SIZES: [u16; 7] = linerate_wire::lengths::RFC2544_LENGTHS;
/// End of the reason for a test that was not asked for.
pub const ABSENT: &str = "is not part of this campaign";
pub const VIRTUAL: &str = "virtual link";

/// The records, and the parts that several checks use.
pub struct Case<'a> {
    pub campaign: &'a Campaign,
    pub host: &'a HostFacts,
    pub facts: &'a [SlotFacts],
    /// The slots with a DUT.
    pub slots: Vec<&'a Slot>,
    /// Valid trials of these slots, without those before the tests.
    pub trials: Vec<&'a TrialRecord>,
    /// All trials.
    pub all_trials: &'a [TrialRecord],
    pub design: &'a Trials,
    /// The tests that were asked for.
    pub tests: Vec<Benchmark>,
    pub benchmarks: &'a [Benchmarked],
    /// The searches by MLRsearch.
    pub searches: &'a [Searched],
    /// The searches by any method.
    found: &'a [Searched],
    summary: Option<&'a Summary>,
    pub simulated: bool,
}

impl<'a> Case<'a> {
    /// `None`: the campaign made no test of a standard.
    pub fn new(records: &Records<'a>) -> Option<Case<'a>> {
        let Records {
            campaign,
            host,
            trials,
            facts,
            summary,
        } = *records;
        let design = &campaign.planned.as_ref()?.experiment.trials;
        let tests = match design.measure {
            // Their tests are those of RFC 3511.
            _ if campaign.opens_connections() || campaign.carries_http() => Vec::new(),
            Measure::Rfc2544 => {
                let mut tests = design.tests.clone();
                if tests.iter().any(|test| test.needs_throughput())
                    && !tests.contains(&Benchmark::Throughput)
                {
                    tests.insert(0, Benchmark::Throughput);
                }
                tests
            }
            Measure::Search
                if design
                    .goals
                    .iter()
                    .any(|goal| goal.loss == 0.0 && goal.exceed == 0) =>
            {
                vec![Benchmark::Throughput]
            }
            Measure::LossCurve => vec![Benchmark::FrameLoss],
            _ => return None,
        };
        let searched = summary.map_or(&[][..], |summary| &summary.searches);
        let by_mlrsearch =
            design.method == Method::Mlrsearch && design.measure != Measure::LossCurve;
        let is_dut =
            |slot: &&Slot| !slot.is_calibration() && slot.plan_variant != "tester-baseline";
        let slots: Vec<&Slot> = campaign.slots.iter().filter(is_dut).collect();
        let of_dut = |trial: &&TrialRecord| {
            let of_a_test = trial.benchmark != Some(Benchmark::Stability);
            trial.audit.valid && of_a_test && slots.iter().any(|slot| slot.id == trial.slot)
        };
        Some(Case {
            campaign,
            host,
            facts,
            trials: trials.iter().filter(of_dut).collect(),
            all_trials: trials,
            design,
            tests,
            benchmarks: summary.map_or(&[], |summary| &summary.benchmarks),
            searches: if by_mlrsearch { searched } else { &[] },
            found: searched,
            summary,
            simulated: campaign.asked.lab == LabKind::Simulated
                || campaign.asked.guests == Some(Guests::Emulated),
            slots,
        })
    }

    /// Whether the plan's quick form was run.
    pub fn is_quick(&self) -> bool {
        let planned = self.campaign.planned.as_ref();
        planned.is_some_and(|planned| planned.experiment.quick)
    }

    /// Slots without a valid trial that are no search's, by reason.
    pub fn unmeasured(&self) -> Option<String> {
        let lacks = |slot: &&Slot| {
            let planned = self.campaign.planned.as_ref()?;
            let skipped = planned.skipped.iter().find(|s| s.cell == slot.id);
            let why = match skipped {
                Some(skipped) if skipped.optional => return None,
                Some(skipped) => skipped.reasons.join("; "),
                None if self.trials.iter().any(|trial| trial.slot == slot.id) => return None,
                None => "it has no valid trial".into(),
            };
            Some((why, self.campaign.shortened(&slot.name)))
        };
        let found = together(self.slots.iter().filter_map(lacks));
        let said = |(why, slots): &(String, Vec<String>)| format!("{} ({why})", slots.join("; "));
        (!found.is_empty()).then(|| found.iter().map(said).collect::<Vec<_>>().join("; "))
    }

    /// Why a test has no figures; `None`: it has some.
    pub fn test(&self, test: Benchmark) -> Option<Outcome> {
        if !self.tests.contains(&test) {
            return Some(not_run(format!("{} {ABSENT}", name(test))));
        }
        if self.design.measure != Measure::Rfc2544 {
            return None;
        }
        let tested: Vec<&Tested> = self.tested(test).map(|(_, tested)| tested).collect();
        if tested.iter().any(|tested| tested.figures != Figures::None) {
            return None;
        }
        let whys: Vec<Why> = tested.iter().filter_map(|tested| tested.why).collect();
        Some(match whys.as_slice() {
            [first, ..]
                if whys
                    .iter()
                    .all(|why| why == first && *why == Why::AtMaximum) =>
            {
                not_applicable("the highest load loses nothing")
            }
            [first, ..] => not_run(first.words(test)),
            [] => not_run("no test of this kind has a result"),
        })
    }

    /// The slots where one of these tests has no complete result, by reason. A test that does not apply to a slot lacks none: the highest
    /// load loses nothing, or the plan has no event for it.
    pub fn lacking(&self, tests: &[Benchmark]) -> Option<String> {
        let lacks = |slot: &&Slot| {
            Some((
                self.lacks(slot, tests)?,
                self.campaign.shortened(&slot.name),
            ))
        };
        let found = together(self.slots.iter().filter_map(lacks));
        let said = |(why, slots): &(String, Vec<String>)| format!("{} ({why})", slots.join("; "));
        (!found.is_empty()).then(|| found.iter().map(said).collect::<Vec<_>>().join("; "))
    }

    fn lacks(&self, slot: &Slot, tests: &[Benchmark]) -> Option<String> {
        let planned = self.campaign.planned.as_ref()?;
        if let Some(skipped) = planned.skipped.iter().find(|s| s.cell == slot.id) {
            return (!skipped.optional).then(|| skipped.reasons.join("; "));
        }
        if self.design.measure != Measure::Rfc2544 {
            let search = self.found.iter().find(|search| search.slot == slot.id);
            let complete = search.is_some_and(|search| {
                let mut goals = search.goals.iter();
                search.ended.is_some() && goals.all(|goal| goal.outcome.lower.is_some())
            });
            return (!complete).then(|| match (search, self.summary) {
                (Some(search), Some(summary)) if search.ended != Some(Ended::Known) => {
                    search.stopped(summary.stopped).into()
                }
                (Some(_), _) => "even the lowest load loses frames".into(),
                (None, _) => "it was not measured".into(),
            });
        }
        tests.iter().find_map(|test| {
            let mut own = self
                .tested(*test)
                .filter(|(of, _)| of.slot == slot.id)
                .map(|(_, tested)| tested)
                .peekable();
            if own.peek().is_none() {
                return Some("it was not measured".into());
            }
            let why = own.find_map(|tested| match tested.why {
                Some(Why::AtMaximum | Why::NoEvent) => None,
                None if tested.figures != Figures::None => None,
                why => Some(why.unwrap_or(Why::Unfinished)),
            });
            why.map(|why| why.words(*test).into())
        })
    }

    /// The disturbance that distorted the rates of these slots, in a few words.
    pub fn disturbed(&self) -> Option<String> {
        let warnings = self.summary.map_or(&[][..], |summary| &summary.warnings);
        let concerns = |slot: Option<usize>| slot.is_none_or(|slot| self.slot(slot).is_some());
        let own = warnings.iter().filter(|warning| concerns(warning.slot));
        let spoils = distinct(own.filter_map(|warning| warning.spoils.as_deref()));
        (!spoils.is_empty()).then(|| spoils.join("; "))
    }

    /// The results of a test, each with its slot's.
    pub fn tested(&self, test: Benchmark) -> impl Iterator<Item = (&'a Benchmarked, &'a Tested)> {
        let benchmarks = self.benchmarks;
        let of_slot = move |of: &'a Benchmarked| of.tests.iter().map(move |tested| (of, tested));
        benchmarks
            .iter()
            .flat_map(of_slot)
            .filter(move |(_, tested)| tested.test == test)
    }

    /// Valid trials of a test. In a search, all are of its one test.
    pub fn of(&self, test: Benchmark) -> Vec<&'a TrialRecord> {
        let own = |trial: &&&TrialRecord| match self.design.measure {
            Measure::Rfc2544 => trial.benchmark == Some(test),
            _ => self.tests.contains(&test),
        };
        self.trials.iter().filter(own).copied().collect()
    }

    /// The name of a slot.
    pub fn name_of(&self, slot: usize) -> &'a str {
        self.campaign.name_of(slot)
    }

    pub fn slot(&self, id: usize) -> Option<&'a Slot> {
        self.slots.iter().find(|slot| slot.id == id).copied()
    }

    /// Throughput by slot, in frames/s.
    pub fn throughput(&self, slot: usize) -> Option<f64> {
        let figure = self
            .tested(Benchmark::Throughput)
            .find(|(of, _)| of.slot == slot);
        match figure.map(|(_, tested)| &tested.figures) {
            Some(Figures::Throughput(found)) => Some(found.fps),
            _ => self.found.iter().find(|of| of.slot == slot)?.throughput(),
        }
    }

    /// Says so if a load, in frames/s, is not the throughput of its slot.
    pub fn off(&self, slot: usize, load: f64) -> Option<String> {
        let Some(throughput) = self.throughput(slot) else {
            return Some("no throughput".into());
        };
        let same = (load - throughput).abs() <= 1e-6 * throughput;
        (!same).then(|| format!("{load:.0} frames/s instead of the throughput, {throughput:.0}"))
    }

    pub fn traffics(&self) -> impl Iterator<Item = &'a Traffic> {
        self.slots.iter().filter_map(|slot| slot.traffic.as_deref())
    }

    /// Frame lengths that were measured alone, in ascending order.
    pub fn sizes(&self) -> Vec<u16> {
        let single = |slot: &&Slot| match slot.lengths_fcs.as_slice() {
            [length] => Some(*length),
            _ => None,
        };
        let mut sizes: Vec<u16> = self.slots.iter().filter_map(single).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Whether the links are virtual, so that nothing limits them but the tester.
    pub fn is_virtual(&self) -> bool {
        self.campaign.asked.lab != LabKind::Hosts
    }

    /// Carries out a check that needs a medium, unless the links are virtual or their speed is unknown.
    pub fn with_medium(&self, check: impl FnOnce() -> Outcome) -> Outcome {
        match self
            .benchmarks
            .iter()
            .filter_map(|of| of.maximum)
            .all(|maximum| maximum.medium)
        {
            _ if self.is_virtual() => not_applicable(VIRTUAL),
            true if !self.benchmarks.is_empty() => check(),
            _ => not_run("the speed of the links is not known"),
        }
    }

    pub fn both_ways(&self) -> bool {
        self.slots
            .iter()
            .any(|slot| slot.direction == Direction::Both)
    }

    /// Whether a reset test has an event that RFC 6201 calls a reset.
    pub fn is_reset(&self) -> bool {
        let figures = self
            .benchmarks
            .iter()
            .flat_map(|of| &of.tests)
            .map(|tested| &tested.figures);
        let is_reset = |class| matches!(class, OsReset | ProcessReset | PowerInterruption);
        figures
            .into_iter()
            .any(|figures| matches!(figures, Figures::Reset(found) if is_reset(found.event.class)))
    }

    /// Whether there are random addresses or ports.
    pub fn draws(&self) -> bool {
        self.traffics().any(is_drawn)
    }

    /// Judges each figure: the first that fails gives the reason. If none fails, the evidence is their number and `met`.
    pub fn each<T>(
        &self,
        of: impl IntoIterator<Item = T>,
        met: &str,
        fails: impl Fn(&T) -> Option<String>,
    ) -> Outcome {
        let all: Vec<T> = of.into_iter().collect();
        match all.iter().find_map(fails) {
            Some(why) => Outcome::Fails(why),
            None if all.is_empty() => not_run("no test of this kind has a result"),
            None => Outcome::Met(format!("{} {met}", all.len())),
        }
    }

    /// [`Case::each`] of these, which only have to be there.
    pub fn some<T>(&self, of: impl IntoIterator<Item = T>, met: &str) -> Outcome {
        self.each(of, met, |_| None)
    }

    /// [`Case::each_numbered`] for the trials of a test.
    pub fn each_trial(
        &self,
        test: Benchmark,
        met: &str,
        fails: impl Fn(&TrialRecord) -> Option<String>,
    ) -> Outcome {
        self.each_numbered(self.of(test), met, fails)
    }

    /// [`Case::each`] for trials; the trial's number comes before the reason.
    pub fn each_numbered<'t>(
        &self,
        trials: impl IntoIterator<Item = &'t TrialRecord>,
        met: &str,
        fails: impl Fn(&TrialRecord) -> Option<String>,
    ) -> Outcome {
        self.each(trials, met, |trial| {
            fails(trial).map(|why| format!("trial {}: {why}", trial.trial))
        })
    }

    /// [`Case::each`] for figures with their slots; the slot's name comes before the reason.
    pub fn each_of<T: 'a>(
        &self,
        of: impl Iterator<Item = (&'a Benchmarked, &'a T)>,
        met: &str,
        fails: impl Fn(&Benchmarked, &T) -> Option<String>,
    ) -> Outcome {
        let named = |(of, figure): &(&Benchmarked, &T)| {
            fails(of, figure).map(|why| format!("{}: {why}", self.name_of(of.slot)))
        };
        self.each(of, met, named)
    }
}

/// Whether addresses or ports are drawn at random.
pub fn is_drawn(traffic: &Traffic) -> bool {
    let flows = &traffic.flows;
    [flows.addresses(), flows.ports()]
        .iter()
        .any(|selection| *selection != Selection::Counted)
}
