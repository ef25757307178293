//! Commands on other hosts: by the system's OpenSSH client, or here in a network namespace, with the same supervision.
//!
//! A [`Connection`] is a control master of OpenSSH with everything that its user has set up: keys, agents, jump hosts,
//! known_hosts. Over it go sessions, each with one command. On the host, a script for /bin/sh (`shell.sh`) starts the command on
//! request, and ends its process group on request, when the connection is closed, or when linerate is silent for too long.
//!
//! Reading order: [`target`] (hosts), [`error`] (failures), [`connection`], `shell.sh`, [`Order`] (a command with its bounds),
//! [`session`] (one that runs), [`ExecutionTarget::run`] (one that is waited for), [`driver`] (a campaign's phases).
#![cfg(target_os = "linux")]

pub mod agents;
mod boot;
pub mod changes;
mod channel;
pub mod collectors;
pub mod connection;
pub mod driver;
pub mod dut;
pub mod error;
pub mod execution_target;
pub mod external;
mod facts;
mod order;
mod run;
pub mod session;
pub mod survey;
pub mod target;
pub mod telemetry;
mod trial_result;
pub mod watch;

pub use boot::mark;
pub use changes::{Changes, Undone};
pub(crate) use channel::{
    Control, Part, Scanner, end_within, fresh_mark, spawn_piped, would_block,
};
pub use collectors::{AfterLoad, Busy, Configured, Observed, UnderLoad};
pub use connection::Connection;
pub(crate) use connection::{Need, Slot, allow_files};
pub use driver::{Driver, Notice, Started};
pub use error::{Fault, Interrupt, Left, RemoteError, Result};
pub(crate) use error::{classify, not_started};
pub use execution_target::ExecutionTarget;
pub(crate) use execution_target::SessionPermit;
pub use facts::facts;
pub use order::{Finished, Order};
pub(crate) use session::{Heard, Kind};
pub use session::{Session, Start, Stream};
pub use survey::Approach;
pub use target::{Target, line};
pub use telemetry::Probed;
pub use trial_result::TrialResult;
