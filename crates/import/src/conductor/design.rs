//! A test of Conductor as a campaign over hosts.

use super::{Mode, Step, Test, Worker};
use linerate_hosts::phases::{self, Design, Phase, Rules};

const SECOND_NS: u64 = 1_000_000_000;

impl Test {
    /// The campaign that carries this test out: all workers need each other.
    ///
    /// Conductor goes on when a step has failed: `rules` say whether this does.
    pub fn design(&self, wanted: &[Phase]) -> Design {
        let phases = Phase::ALL.map(|phase| wanted.contains(&phase));
        Design {
            trials: self.trials,
            phases,
            hosts: self.workers.iter().map(host).collect(),
            rules: Rules::default(),
        }
    }
}

fn host(worker: &Worker) -> phases::Host {
    let steps = |phase: Phase| worker.steps(phase).iter().map(step).collect();
    phases::Host { name: worker.name.clone(), phases: Phase::ALL.map(steps) }
}

fn step(step: &Step) -> phases::Step {
    let limit_ns = step.limit_s.map(|seconds| u64::from(seconds) * SECOND_NS);
    let mode = match (step.mode, limit_ns) {
        (Mode::Normal, Some(limit_ns)) => phases::Mode::Waited { limit_ns },
        (Mode::Timeout, Some(limit_ns)) => phases::Mode::Timed { limit_ns },
        (Mode::Spawn | Mode::Normal | Mode::Timeout, limit_ns) => phases::Mode::Background { limit_ns },
    };
    phases::Step { command: step.command.clone(), mode }
}
