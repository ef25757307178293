//! The goals of searches, with the trials that suit the machine, and the bounds of both.

use crate::experiment::{Measure, SEARCH_WIDTH, Trials, WantedGoal};
use linerate_search::{Goal, GoalError, Limits, STEPS};

/// Default of the lowest load, in frames/s.
pub const LEAST_FPS: f64 = 1000.0;
/// Invalid trials in succession that end a search.
pub(super) const ATTEMPTS: usize = 3;
/// Shortest trial on a machine with stalls, in nanoseconds.
const SHORTEST_NS: u64 = 50_000_000;
/// Trials last at most the mean time between stalls divided by this, so that more than half of them have no stall.
const STALLS: f64 = 1.5;
/// Length of the first trials of RFC 2544's throughput, in nanoseconds.
const FIRST_NS: u64 = 1_000_000_000;
/// Duration sum of `ndr` and `pdr`, in full trials: CSIT has 21 s with trials of 1 s.
const SUM: u64 = 21;

/// The longest trial in which a stall is unlikely, in nanoseconds, at most `longest`. `stalls`: a second.
pub(super) fn suited(longest: u64, stalls: Option<f64>) -> u64 {
    let between = stalls
        .filter(|stalls| *stalls > 0.0)
        .map_or(f64::INFINITY, |stalls| 1e9 / stalls / STALLS);
    let suited = (longest as f64).min(between.max(SHORTEST_NS as f64)) as u64;
    // Whole milliseconds are easier to read.
    (suited / 1_000_000 * 1_000_000).max(1_000_000)
}

impl Trials {
    /// The goals of a search. `suited_ns`: length of full trials of goals without their own times.
    pub fn search_goals(&self, suited_ns: u64) -> Vec<Goal> {
        let goal = |wanted: &WantedGoal| {
            let [initial_ns, final_ns, sum_ns] =
                wanted
                    .times_ns
                    .unwrap_or([suited_ns, suited_ns, SUM * suited_ns]);
            let width = self.width.unwrap_or(SEARCH_WIDTH);
            Goal {
                initial_ns,
                width,
                ..Goal::new(wanted.loss, wanted.exceed, final_ns, sum_ns)
            }
        };
        if self.measure == Measure::Rfc2544 {
            return vec![goal(&self.throughput_goal())];
        }
        self.goals.iter().map(goal).collect()
    }

    /// The goal of RFC 2544's throughput: one trial of full length without loss meets it.
    pub(super) fn throughput_goal(&self) -> WantedGoal {
        let duration = self.duration_ns;
        let times_ns = Some([duration.min(FIRST_NS), duration, duration]);
        WantedGoal {
            name: "rfc2544".into(),
            loss: 0.0,
            exceed: 0,
            times_ns,
        }
    }

    /// Checks the goals, the step and the limits of the loads.
    ///
    /// # Errors
    /// The first fault.
    pub fn check_goals(&self) -> Result<(), GoalError> {
        let limits = Limits::new(
            self.min_fps.unwrap_or(LEAST_FPS),
            self.max_fps.unwrap_or(f64::MAX),
        )?;
        if let Some(step) = self.step.filter(|step| !STEPS.contains(step)) {
            return Err(GoalError::Step(step));
        }
        match &self.search_goals(self.duration_ns)[..] {
            [] => Ok(()),
            goals => Goal::check_all(goals, limits),
        }
    }
}
