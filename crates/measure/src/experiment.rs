//! The questions of an experiment, and how its trials are run: the part of a plan that records, strategies and results share.
//!
//! Slots are referred to by their numbers in the record, which are those of the plan's cells.

#[cfg(test)]
mod tests;

use linerate_stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// An experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Experiment {
    pub title: String,
    /// The question that it answers.
    pub question: String,
    /// The document that the experiment comes from.
    pub source: Option<String>,
    /// The system of the device under test.
    pub system: System,
    /// Whether this is the quick form.
    pub quick: bool,
    /// Speed in bit/s that is 100 % of line rate.
    pub link_speed: Option<f64>,
    /// The factors, in the order of the plan.
    pub factors: Vec<Factor>,
    /// Pairs of slots whose ratio is of interest.
    pub comparisons: Vec<Comparison>,
    /// Expectations of the author.
    pub expectations: Vec<Expectation>,
    /// How trials are run.
    pub trials: Trials,
}

/// The level of each factor that applies, as an index into [`Factor::levels`], by the factor's index.
pub type Levels = Vec<(usize, usize)>;

impl Experiment {
    /// The factors that apply, each with the label of its level.
    pub fn labels<'a>(&'a self, levels: &'a Levels) -> impl Iterator<Item = (&'a Factor, &'a str)> {
        levels.iter().filter_map(|(factor, level)| {
            let factor = self.factors.get(*factor)?;
            Some((factor, factor.levels.get(*level)?.as_str()))
        })
    }

    /// Whether each cell has the shortest frames among those that differ from it in nothing but their length. Of each: variant, levels,
    /// and mean frame length.
    pub fn shortest(&self, cells: &[(&str, &Levels, f64)]) -> Vec<bool> {
        let sized: Vec<bool> = self
            .factors
            .iter()
            .map(|f| f.sets.iter().any(|field| field == "traffic.size"))
            .collect();
        let others = |levels: &Levels| -> Levels {
            levels
                .iter()
                .copied()
                .filter(|(f, _)| sized.get(*f) != Some(&true))
                .collect()
        };
        let mut least: BTreeMap<(&str, Levels), f64> = BTreeMap::new();
        for (variant, levels, length) in cells {
            let known = least.entry((variant, others(levels))).or_insert(*length);
            *known = known.min(*length);
        }
        cells
            .iter()
            .map(|(variant, levels, length)| least.get(&(*variant, others(levels))) == Some(length))
            .collect()
    }

    /// A level with its factor: `rules 1000`.
    pub fn level(&self, level: (usize, usize)) -> String {
        self.name("", &vec![level], |_| true)
            .trim_start_matches(", ")
            .into()
    }

    /// A variant with the levels of some factors: `nft-stateful, rules 1000`.
    pub fn name(&self, variant: &str, levels: &Levels, shown: impl Fn(&Factor) -> bool) -> String {
        let shown = self.labels(levels).filter(|(factor, _)| shown(factor));
        shown.fold(variant.into(), |name, (factor, label)| {
            format!("{name}, {} {label}", factor.name)
        })
    }

    /// A variant with all levels but that of one factor.
    pub fn name_without(&self, variant: &str, levels: &Levels, factor: Option<usize>) -> String {
        let without = factor.and_then(|f| self.factors.get(f)).map(|f| &f.name);
        self.name(variant, levels, |factor| Some(&factor.name) != without)
    }
}

/// An operating system (or a distribution of one) that a device under test may run.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// Linux.
    #[default]
    Linux,
    /// VyOS: takes the settings for Linux, then its own.
    Vyos,
    /// FreeBSD.
    FreeBsd,
    /// pfSense: takes the settings for FreeBSD, then its own.
    PfSense,
    /// OPNsense: takes the settings for FreeBSD, then its own.
    OpnSense,
    /// OpenBSD.
    OpenBsd,
}

impl System {
    /// The system whose sections apply before its own.
    pub fn parent(self) -> Option<System> {
        match self {
            System::Vyos => Some(System::Linux),
            System::PfSense | System::OpnSense => Some(System::FreeBsd),
            _ => None,
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            System::Linux => "Linux",
            System::Vyos => "VyOS",
            System::FreeBsd => "FreeBSD",
            System::PfSense => "pfSense",
            System::OpnSense => "OPNsense",
            System::OpenBsd => "OpenBSD",
        })
    }
}

/// Something that is varied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Factor {
    /// Name in the plan.
    pub name: String,
    /// A description in words.
    pub about: Option<String>,
    /// The fields that it sets: `rules.before`, `traffic.flows`.
    pub sets: Vec<String>,
    /// Levels, as text.
    pub levels: Vec<String>,
    /// The levels as numbers, for the axis of a plot; `None` unless all levels are numbers.
    pub numbers: Option<Vec<f64>>,
    /// Whether it is swept by itself, while the other factors that are swept alone keep the values of the plan. Otherwise each
    /// level is combined with each level of the others.
    pub alone: bool,
}

impl Factor {
    /// Whether the frames show its level.
    pub fn of_frames(&self) -> bool {
        self.sets
            .iter()
            .all(|f| f == "traffic.size" || f == "traffic.family")
    }

    /// Whether it sets the number of CPUs.
    pub fn sets_cpus(&self) -> bool {
        self.sets.iter().any(|s| s == "cpus")
    }
}

/// A ratio of interest: the rate of `of` divided by the rate of `than`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Numerator, a cell.
    pub of: usize,
    /// Denominator, a cell.
    pub than: usize,
    /// Why it is of interest.
    pub why: Interest,
    /// Whether the stopping rule waits for it.
    pub decides: bool,
}

/// Why a ratio is of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interest {
    /// A variant with the baseline variant.
    Variants,
    /// A level with the first level of the factor of this index.
    Levels(usize),
    /// The expectation of this index.
    Expectation(usize),
    /// A variant with the tester alone.
    Ceiling,
}

/// An expectation of the author, which makes a plan a test as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expectation {
    /// In words: `nft-stateful is slower than forwarding`.
    pub words: String,
    /// Why.
    pub because: String,
    /// The expected result.
    pub claim: Claim,
    /// Cells, each with the cell that it is compared with (`None` for rates). Empty if the quick form or this system lacks them.
    pub pairs: Vec<(usize, Option<usize>)>,
    /// Line of the plan.
    pub line: usize,
}

/// A claim about the ratio of two rates, about a rate, or about connections. Shares are of 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// Slower, by at least this share.
    Slower(f64),
    /// Faster, by at least this share.
    Faster(f64),
    /// Neither slower nor faster by more than this share.
    Within(f64),
    /// No difference may be proven.
    NoDifference,
    /// At least this number of frames/s.
    AtLeast(f64),
    /// At most this number of frames/s.
    AtMost(f64),
    /// Each connection that was kept open carried its request and answer; or each SYN of a flood, or illegal one, arrived.
    AllPass,
    /// None of them did.
    NonePasses,
}

/// The judgement of an estimate about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// The estimate is as claimed.
    Met,
    /// The estimate is not as claimed.
    Missed,
    /// The interval reaches over the border, or there is no interval.
    Undecided,
}

impl Claim {
    /// Whether it is about a part of a whole, which is exact.
    pub fn is_of_share(&self) -> bool {
        matches!(self, Claim::AllPass | Claim::NonePasses)
    }

    /// Whether it compares a cell with another.
    pub fn compares(&self) -> bool {
        !self.is_of_share() && !matches!(self, Claim::AtLeast(_) | Claim::AtMost(_))
    }

    /// Judges a claim by an estimate: of the ratio of the two rates, of the rate itself in frames/s for [`Claim::AtLeast`] and
    /// [`Claim::AtMost`], or of the share that passed for [`Claim::AllPass`] and [`Claim::NonePasses`].
    pub fn judge(&self, estimate: &Estimate) -> Judgement {
        let (Some(low), Some(high)) = (estimate.low, estimate.high) else {
            return Judgement::Undecided;
        };
        let (met, missed) = match *self {
            Claim::Slower(by) => (high < 1.0 - by, low >= 1.0 - by),
            Claim::Faster(by) => (low > 1.0 + by, high <= 1.0 + by),
            Claim::Within(share) => (
                low >= 1.0 - share && high <= 1.0 + share,
                high < 1.0 - share || low > 1.0 + share,
            ),
            Claim::NoDifference => (low <= 1.0 && high >= 1.0, low > 1.0 || high < 1.0),
            Claim::AtLeast(rate) => (low >= rate, high < rate),
            Claim::AtMost(rate) => (high <= rate, low > rate),
            Claim::AllPass => (low >= 1.0, high < 1.0),
            Claim::NonePasses => (high <= 0.0, low > 0.0),
        };
        match (met, missed) {
            (true, _) => Judgement::Met,
            (_, true) => Judgement::Missed,
            _ => Judgement::Undecided,
        }
    }
}

/// How trials are run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Trials {
    /// The measured window of one trial, in nanoseconds.
    #[serde(alias = "duration")]
    pub duration_ns: u64,
    /// Blocks at most.
    pub blocks: Option<u32>,
    /// Time for all trials at most, in nanoseconds.
    #[serde(alias = "budget")]
    pub budget_ns: Option<u64>,
    /// Time for all trials after a search or tests were continued with a larger budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extended_ns: Option<u64>,
    pub order: Order,
    /// Seed of the order; drawn and recorded where the plan names none.
    pub seed: Option<u64>,
    /// When the device under test is rebooted.
    pub reboot: Reboot,
    /// Pause before each trial, in nanoseconds.
    #[serde(alias = "pause")]
    pub pause_ns: u64,
    /// Stop once the 95 % interval of every comparison that decides is narrower than this share (0.02 = 2 %).
    pub until: Option<f64>,
    /// The figure of each cell.
    pub measure: Measure,
    /// Goals of a search, with one duration of full trials.
    pub goals: Vec<WantedGoal>,
    pub method: Method,
    /// Step of a loss curve, as a share of the highest load; default [`CURVE_STEP`].
    pub step: Option<f64>,
    /// Largest distance of a search's bounds at the end, relative to the upper bound; default [`SEARCH_WIDTH`].
    pub width: Option<f64>,
    /// The lowest and the highest load of a search, in frames/s.
    #[serde(alias = "min-load")]
    pub min_fps: Option<f64>,
    #[serde(alias = "max-load")]
    pub max_fps: Option<f64>,
    /// The tests of [`Measure::Rfc2544`], in their order.
    pub tests: Vec<Benchmark>,
    /// Runs of each repeated test; default [`Benchmark::repeats`].
    pub repeats: Option<u32>,
    /// Further trials with loss before a burst counts as too long, or, in a binary search, a load as too high.
    pub verify: u32,
    /// Whether searches for a rate begin with loads far below it; false in records from before there were such trials.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stability: bool,
    /// The wait for the last frames of a trial, and the rest after it, in nanoseconds; `None`: the lab's.
    #[serde(alias = "drain")]
    pub drain_ns: Option<u64>,
    #[serde(alias = "settle")]
    pub settle_ns: Option<u64>,
}

/// Default of [`Trials::width`].
pub const SEARCH_WIDTH: f64 = 0.005;

/// Default of [`Trials::step`]: the largest step that RFC 2544, section 26.3 allows.
pub const CURVE_STEP: f64 = 0.1;

/// A test of RFC 2544 or a later RFC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Benchmark {
    /// RFC 2544, section 26.1.
    Throughput,
    /// Section 26.2, and RFC 8219, section 7.2.
    Latency,
    /// Delay variation by RFC 8219, section 7.3.
    DelayVariation,
    /// RFC 2544, section 26.3.
    FrameLoss,
    /// Section 26.4, and RFC 9004.
    BackToBack,
    /// RFC 2544, section 26.5.
    Recovery,
    /// Section 26.6, and RFC 6201.
    Reset,
    /// The forwarding rate at the maximum offered load, and the highest at any load (RFC 2889, section 5.1).
    ForwardingRate,
    /// No test that can be asked for: the loads far below the DUT's rate, before a search.
    Stability,
}

impl Benchmark {
    /// All tests: those of RFC 2544 in its order, then those of later RFCs.
    pub const ALL: [Benchmark; 8] = [
        Benchmark::Throughput,
        Benchmark::Latency,
        Benchmark::FrameLoss,
        Benchmark::BackToBack,
        Benchmark::Recovery,
        Benchmark::Reset,
        Benchmark::DelayVariation,
        Benchmark::ForwardingRate,
    ];

    /// Default number of runs: latency at least 20 (RFC 2544, section 26.2; RFC 8219, section 7), back-to-back frames 50 (section 26.4).
    pub fn repeats(self) -> u32 {
        match self {
            Benchmark::Latency | Benchmark::DelayVariation => 20,
            Benchmark::BackToBack => 50,
            Benchmark::Recovery | Benchmark::Reset => 5,
            Benchmark::Throughput
            | Benchmark::FrameLoss
            | Benchmark::ForwardingRate
            | Benchmark::Stability => 1,
        }
    }

    /// Whether it needs the throughput of its frames.
    pub fn needs_throughput(self) -> bool {
        !matches!(
            self,
            Benchmark::FrameLoss | Benchmark::ForwardingRate | Benchmark::Stability
        )
    }

    /// Section and name of the test.
    pub fn title(self) -> &'static str {
        match self {
            Benchmark::Throughput => "Throughput (RFC 2544, 26.1)",
            Benchmark::Latency => "Latency (RFC 2544, 26.2; RFC 8219, 7.2)",
            Benchmark::FrameLoss => "Frame loss rate (RFC 2544, 26.3)",
            Benchmark::BackToBack => "Back-to-back frames (RFC 2544, 26.4; RFC 9004)",
            Benchmark::Recovery => "System recovery (RFC 2544, 26.5)",
            Benchmark::Reset => "Reset (RFC 2544, 26.6; RFC 6201)",
            Benchmark::DelayVariation => "Delay variation (RFC 8219, 7.3)",
            Benchmark::ForwardingRate => "Forwarding rate (RFC 2889, 5.1)",
            Benchmark::Stability => "Stability, before the tests",
        }
    }
}

impl Trials {
    /// The runs of a test.
    pub fn runs(&self, test: Benchmark) -> u32 {
        match test.repeats() {
            1 => 1,
            usual => self.repeats.unwrap_or(usual),
        }
    }

    /// The length of the load of a trial, in nanoseconds; for back-to-back frames, of the longest burst. RFC 2544 has 60 s for
    /// throughput and frame loss; all other tests keep their proportion to it.
    pub fn load_ns(&self, test: Benchmark) -> u64 {
        let duration = self.duration_ns;
        match test {
            Benchmark::Throughput | Benchmark::FrameLoss | Benchmark::DelayVariation => duration,
            Benchmark::Stability => duration.min(1_000_000_000),
            Benchmark::Latency | Benchmark::Recovery => 2 * duration,
            Benchmark::Reset => self.before_ns(test) + duration,
            Benchmark::ForwardingRate => duration / 2,
            Benchmark::BackToBack => duration / 30,
        }
    }

    /// The part of that length before frames are tagged, the rate falls, or the event begins.
    pub fn before_ns(&self, test: Benchmark) -> u64 {
        match test {
            Benchmark::Latency | Benchmark::Recovery => self.duration_ns,
            // RFC 6201, section 4: 15 s.
            Benchmark::Reset => self.duration_ns / 4,
            _ => 0,
        }
    }

    /// The sections of RFC 2544 that these trials depart from. `sizes`: number of frame lengths.
    pub fn departures(&self, sizes: usize) -> Vec<&'static str> {
        const S: u64 = 1_000_000_000;
        let tests = |test: Benchmark| self.tests.contains(&test);
        let waits = self.pause_ns >= 4 * S
            && self.drain_ns.is_some_and(|ns| ns >= 2 * S)
            && self.settle_ns.is_some_and(|ns| ns >= 5 * S);
        let departs = [
            (sizes < 5, "9"),
            (!waits, "23"),
            (self.duration_ns < 60 * S, "24"),
            (
                tests(Benchmark::Latency)
                    && (self.runs(Benchmark::Latency) < 20 || self.duration_ns < 60 * S),
                "26.2",
            ),
            (
                tests(Benchmark::BackToBack) && self.runs(Benchmark::BackToBack) < 50,
                "26.4",
            ),
            (
                tests(Benchmark::Recovery) && self.duration_ns < 60 * S,
                "26.5",
            ),
            (tests(Benchmark::Reset) && self.duration_ns < 60 * S, "26.6"),
        ];
        departs
            .into_iter()
            .filter(|(departs, _)| *departs)
            .map(|(_, section)| section)
            .collect()
    }
}

/// The figure that a campaign measures of each cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The forwarding rate at the load of its traffic.
    #[default]
    Rate,
    /// The highest load that meets each goal.
    Search,
    /// The loss at falling loads, until two successive trials lose nothing.
    LossCurve,
    /// The tests of RFC 2544 and later RFCs.
    Rfc2544,
}

/// The search method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// MLRsearch (RFC 9971).
    #[default]
    Mlrsearch,
    /// Binary search, one trial at each load.
    #[serde(alias = "binary")]
    Bisection,
}

/// A goal of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WantedGoal {
    /// As it was asked for: `ndr`, `0.5%:1s:21s:0.5`.
    pub name: String,
    /// The highest loss ratio of a good trial.
    pub loss: f64,
    /// The largest share of the time in bad trials, in billionths.
    pub exceed: u32,
    /// Durations of first trials, of full trials and of all trials at a load, in nanoseconds. `None`: [`Trials::duration_ns`], or shorter
    /// if the machine stalls often.
    pub times_ns: Option<[u64; 3]>,
}

/// The strategy that chooses the order of trials. Records with another one are refused: their trials would be shown as those of
/// the wrong strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    #[default]
    Blocks,
    Sequential,
    Bisection,
}

impl Default for Trials {
    fn default() -> Self {
        Trials {
            duration_ns: 250_000_000,
            blocks: None,
            budget_ns: None,
            extended_ns: None,
            order: Order::Blocks,
            seed: None,
            reboot: Reboot::Never,
            pause_ns: 0,
            until: None,
            measure: Measure::Rate,
            goals: Vec::new(),
            method: Method::Mlrsearch,
            step: None,
            width: None,
            min_fps: None,
            max_fps: None,
            tests: Vec::new(),
            repeats: None,
            verify: 0,
            stability: false,
            drain_ns: None,
            settle_ns: None,
        }
    }
}

/// When the device under test is rebooted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reboot {
    /// Never.
    #[default]
    Never,
    /// When the next cell needs other settings that take effect at boot.
    WhenNeeded,
    /// Before each trial.
    EachTrial,
}
