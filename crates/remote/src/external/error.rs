//! What can go wrong with the tools of hosts before there is a trial.

use crate::RemoteError;
use linerate_hosts::tools::Fault;
use linerate_plan::Backend;
use linerate_plan::backend::Unsuitable;
use std::time::Duration;

/// Why there is no trial.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The tool cannot do this.
    #[error("{host}: {refusal}")]
    Refused {
        /// The host.
        host: String,
        /// What it cannot, and what can.
        refusal: Unsuitable,
    },
    /// A host was lost, or runs no commands.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// A tool failed before its first frame.
    #[error("{host}: {} failed while {doing}: {}; {}", tool, .fault.message, .fault.remedy(*tool))]
    Failed {
        /// The host.
        host: String,
        /// The tool.
        tool: Backend,
        /// What it was to do.
        doing: String,
        /// What went wrong, in its own words.
        fault: Fault,
    },
    /// A tool did not come up.
    #[error(
        "{host}: {} did nothing for {} s while {doing}; see whether its interface has a link, and run it there by hand: {command}",
        tool, .within.as_secs()
    )]
    Late {
        /// The host.
        host: String,
        /// The tool.
        tool: Backend,
        /// What it was to do.
        doing: String,
        /// How long was waited.
        within: Duration,
        /// Its command line.
        command: String,
    },
}
