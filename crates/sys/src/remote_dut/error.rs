//! What can go wrong with a device under test, and what to do about it.

use crate::remote::{ChangeError, RemoteError};
use std::time::Duration;

/// A device under test that could not be brought to where it should be.
#[derive(Debug, thiserror::Error)]
pub enum DutError {
    /// A change of it.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The connection to it.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// It does not tell what its interfaces count.
    #[error("{host}: it does not tell the counters of {} and {}: no frame could be accounted for; see whether netstat -i (Linux: /proc/net/dev) there has them", .ends[0], .ends[1])]
    Uncounted {
        /// What it is called.
        host: String,
        /// Its interfaces.
        ends: [String; 2],
    },
    /// It was told to reboot, and does not go down.
    #[error("{host}: it was told to reboot, and is still there after {} s{said}; try `reboot` there by hand", .after.as_secs())]
    StillUp {
        /// What it is called.
        host: String,
        /// How long it was waited for.
        after: Duration,
        /// What it said.
        said: String,
    },
    /// It did not come back.
    #[error("{host}: it has not come back {} s after its reboot ({why}){power}; {}", .after.as_secs(), remedy(.console))]
    Gone {
        /// What it is called.
        host: String,
        /// How long it was waited for.
        after: Duration,
        /// What the last try to reach it came to.
        why: String,
        /// What turning its power off and on came to.
        power: String,
        /// The program that shows its console.
        console: Vec<String>,
    },
    /// It is back, and reaches nothing.
    #[error("{host}: it is back, but does not reach {what} within {} s (asked from {from}); see its interfaces, addresses and routes after a boot", .after.as_secs())]
    Unreaching {
        /// What it is called.
        host: String,
        /// What does not answer.
        what: String,
        /// Who asked.
        from: String,
        /// How long it was tried.
        after: Duration,
    },
    /// What was put back counts from its next boot on, and there must be none.
    #[error(
        "{host}: what was put back there counts from its next boot on only, and this plan allows none; reboot it by hand, or add reboot = \"when-needed\" to [trials]"
    )]
    Owed {
        /// What it is called.
        host: String,
    },
    /// It booted by itself.
    #[error(
        "{host}: it booted in the middle of a campaign, and is not as it was set up any more; look at its console and its logs, then let the campaign go on (--resume)"
    )]
    Booted {
        /// What it is called.
        host: String,
    },
    /// The user wants to stop.
    #[error("{host}: interrupted while it was being set up")]
    Interrupted {
        /// What it is called.
        host: String,
    },
}

impl DutError {
    /// Whether nothing can be measured with this host any more.
    pub fn is_final(&self) -> bool {
        match self {
            DutError::Change(error) => {
                !matches!(error, ChangeError::Failed { .. } | ChangeError::Unread { .. })
            }
            DutError::Unreaching { .. } | DutError::Uncounted { .. } | DutError::Interrupted { .. } => false,
            _ => true,
        }
    }
}

fn remedy(console: &[String]) -> String {
    match console {
        [] => "look at its console".into(),
        _ => format!("look at its console: {}", console.join(" ")),
    }
}
