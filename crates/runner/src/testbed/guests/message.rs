//! The dialogue of linerate with itself in a guest: a question, and then its answer, each a line of JSON.

use crate::testbed::{Request, TrialOutcome};
use linerate_measure::record::{HostFacts, Skipped};
use linerate_plan::Backend;
use linerate_plan::campaign::Campaign;
use serde::{Deserialize, Serialize};

/// A question or an order to the guest.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "what", content = "with", rename_all = "kebab-case")]
pub enum Order {
    /// The kind of machine.
    Hello {},
    /// Make a lab for the cells of this plan that have this kernel.
    Prepare(Box<Preparation>),
    /// Run a trial.
    Run(Request),
}

/// The facts that a guest needs before its first trial.
#[derive(Debug, Serialize, Deserialize)]
pub struct Preparation {
    pub plan: Campaign,
    /// The kernel, as the plan names it.
    pub kernel: String,
    /// Why no guest uses XDP: one of them cannot.
    pub no_xdp: Option<String>,
    /// Frames that are handed over at once; `None`: the guest chooses by trying.
    pub batch: Option<u32>,
}

/// The answer of the guest.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "what", content = "with", rename_all = "kebab-case")]
pub enum Answer {
    /// The guest's machine is this one.
    Welcome(Box<Machine>),
    /// The lab stands.
    Prepared(Lab),
    /// The trial is over.
    Outcome(Box<TrialOutcome>),
    /// The order was not carried out.
    Failed { why: String },
}

/// A guest as it sees itself.
#[derive(Debug, Serialize, Deserialize)]
pub struct Machine {
    pub facts: HostFacts,
    /// Why XDP programs cannot be used.
    pub no_xdp: Option<String>,
}

/// The cells that can be measured in a guest.
#[derive(Debug, Serialize, Deserialize)]
pub struct Lab {
    pub skipped: Vec<Skipped>,
    pub notes: Vec<String>,
    pub backend: Backend,
    pub batch: u32,
}

/// A message as a line.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
