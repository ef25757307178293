//! What can go wrong with an agent.

use linerate_hosts::agent::client::Lost;
use linerate_hosts::agent::message::Fault;
use std::time::Duration;

/// What went wrong with an agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// There is no agent there any more.
    #[error("{host}: lost the agent while {doing}: {why}{}", complaint(.said))]
    Lost {
        /// The host.
        host: String,
        /// What was going on.
        doing: String,
        /// Why.
        why: Lost,
        /// The last that the agent, or ssh, complained of.
        said: String,
    },
    /// It did not do it.
    #[error("{host}: {fault}")]
    Refused {
        /// The host.
        host: String,
        /// What it said.
        fault: Box<Fault>,
    },
    /// It did not answer in time.
    #[error("{host}: no answer within {} s while {doing}", .limit.as_secs_f64())]
    Late {
        /// The host.
        host: String,
        /// What was going on.
        doing: String,
        /// The time that it had.
        limit: Duration,
    },
    /// Its clock could not be compared.
    #[error("{host}: its clock cannot be compared with ours: no answer makes sense")]
    Clock {
        /// The host.
        host: String,
    },
    /// A load did not do what it should.
    #[error("{host}: {why}")]
    Load {
        /// The host.
        host: String,
        /// What it did instead.
        why: String,
    },
}

fn complaint(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!("; it said: {text}"),
    }
}
