//! What sends and counts in a lab of hosts: linerate on these hosts, or the tools that they have.

use crate::testbed::PACED_BATCH;
use anyhow::Result;
use linerate_hosts::tools::Task;
use linerate_plan::timing::Timing;
use linerate_remote::agents::Flown;
use linerate_remote::agents::lab::RealLab;
use linerate_remote::external::{ToolHost, ToolTrial};
use linerate_wire::Load;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Frames handed over at once where no rate was asked for.
pub const BATCH: u32 = 64;

/// What a DUT has seen of its flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// None of them: nothing came through.
    Nothing,
    /// The direction of the load.
    OneWay,
    /// Both directions of each.
    Answered,
}

/// How often flows are shown until each has been answered: a frame or an answer may get lost.
const ROUNDS: u32 = 4;

/// The hosts that send and count.
pub enum Tester {
    /// They have linerate.
    Agents(Box<Agents>),
    /// They have tools.
    Tools(Tools),
}

/// Hosts with linerate.
pub struct Agents {
    /// They.
    pub lab: RealLab,
    /// What sends and what counts, for records.
    pub names: [String; 2],
    /// How long it may take until frames come through.
    pub patience: Duration,
}

/// Hosts with tools.
pub struct Tools {
    /// The generators.
    pub generators: Vec<ToolHost>,
    /// The receiver.
    pub receiver: ToolHost,
    /// How long the first frame may take to come through.
    pub patience: Duration,
    /// By kind of traffic.
    pub kinds: Vec<ToolTasks>,
}

/// What tools do with a kind of traffic.
pub struct ToolTasks {
    /// By generator.
    pub sent: Vec<Task>,
    /// Of the receiver.
    pub received: Task,
}

impl Tester {
    /// Shows the device so many flows of a kind, again and again until they come through: a link may be down for a while after settings
    /// of a card, and a router forwards nothing for a while after a boot. Tools wait for the first frame of each trial; they cannot count
    /// flows, and their warm-up must do. With `answer`, the receiver answers each flow where it can.
    pub fn learn(
        &mut self,
        kind: usize,
        flows: u64,
        answer: bool,
        interrupted: &AtomicBool,
    ) -> Result<Learned> {
        let Tester::Agents(agents) = self else { return Ok(Learned::OneWay) };
        let answer = answer && agents.lab.can_answer(kind);
        let (began, mut before) = (Instant::now(), 0u64);
        for round in 1.. {
            let [sent, arrived, answers] = agents.lab.learn(kind, flows, answer, interrupted)?;
            if answer && sent > 0 && answers >= sent {
                return Ok(Learned::Answered);
            }
            if answer && round < ROUNDS && arrived > 0 && !interrupted.load(Ordering::Relaxed) {
                continue;
            }
            // Of a slow device, no more will arrive the next time.
            let steady = before > 0 && arrived <= before.saturating_add(before / 5);
            let enough = arrived.saturating_mul(2) >= sent || steady;
            before = arrived;
            if enough || interrupted.load(Ordering::Relaxed) || began.elapsed() > agents.patience {
                return Ok(if arrived > 0 { Learned::OneWay } else { Learned::Nothing });
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        unreachable!("the rounds do not end")
    }

    /// One trial through the device as it stands.
    pub fn trial(
        &mut self,
        kind: usize,
        rate: Option<f64>,
        timing: Timing,
        interrupted: &AtomicBool,
    ) -> Result<Flown> {
        match self {
            Tester::Agents(agents) => {
                let batch = if rate.is_some() { PACED_BATCH } else { BATCH };
                let load = Load { rate, batch, ..Load::lasting(timing.load()) };
                Ok(agents.lab.trial(kind, timing, load, interrupted)?)
            }
            Tester::Tools(tools) => tools.trial(kind, rate, timing, interrupted),
        }
    }

    /// What sends and what counts, for records.
    pub fn names(&self) -> [String; 2] {
        match self {
            Tester::Agents(agents) => agents.names.clone(),
            Tester::Tools(tools) => {
                let mut sending: Vec<&str> = tools.generators.iter().map(|g| g.tool.name()).collect();
                sending.dedup();
                [sending.join(", "), tools.receiver.tool.name().into()]
            }
        }
    }

    /// Lets the hosts go; what went wrong with it.
    pub fn take_down(self) -> Vec<String> {
        match self {
            Tester::Agents(agents) => agents.lab.take_down().iter().map(ToString::to_string).collect(),
            Tester::Tools(_) => Vec::new(),
        }
    }
}

impl Tools {
    fn trial(
        &self,
        kind: usize,
        rate: Option<f64>,
        timing: Timing,
        interrupted: &AtomicBool,
    ) -> Result<Flown> {
        let ToolTasks { sent, received } = &self.kinds[kind];
        // Every generator sends its share.
        let rate = rate.map(|rate| rate / sent.len() as f64);
        let at = |task: &Task| Task { load: Load { rate, ..task.load }, ..task.clone() };
        let generators: Vec<(ToolHost, Task)> =
            self.generators.iter().cloned().zip(sent.iter().map(at)).collect();
        let receiver = Some((&self.receiver, at(received)));
        let trial = ToolTrial { generators: &generators, receiver, timing, patience: self.patience };
        Ok(trial.run(interrupted)?)
    }
}
