//! What can go wrong with a device under test, and what to do about it.

use crate::{ChangeError, Fault, RemoteError};
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
    #[error("{host}: it has not come back {} s after {since} ({why}); {}", .after.as_secs(), remedy(.console))]
    Gone {
        /// What it is called.
        host: String,
        /// What became of it.
        since: &'static str,
        /// How long it was waited for.
        after: Duration,
        /// What the last try to reach it came to, and what turning its power off and on.
        why: String,
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

/// What of a plan can still be measured after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The other variants: this one cannot be set up.
    Others,
    /// The other variants, once the host is back: with this one it does not come back.
    OthersOnceBack,
    /// All variants, once the host is back.
    AllOnceBack,
    /// None.
    Nothing,
}

impl DutError {
    /// What can still be measured.
    pub fn left(&self) -> Left {
        match self {
            DutError::Change(error) => left(error),
            DutError::Remote(error) => of_connection(error),
            DutError::Unreaching { .. } | DutError::Uncounted { .. } => Left::Others,
            DutError::StillUp { .. } | DutError::Gone { .. } => Left::OthersOnceBack,
            DutError::Booted { .. } => Left::AllOnceBack,
            DutError::Owed { .. } | DutError::Interrupted { .. } => Left::Nothing,
        }
    }
}

fn left(error: &ChangeError) -> Left {
    match error {
        ChangeError::Failed { .. } | ChangeError::Unread { .. } | ChangeError::Here { .. } => Left::Others,
        ChangeError::Remote(error) => of_connection(error),
        // What could not be put back for want of a connection, or because nothing ends there any more, is put back once it is back.
        ChangeError::Left { first, .. }
            if left(first) == Left::AllOnceBack
                || matches!(**first, ChangeError::Failed { by_itself: false, .. }) =>
        {
            Left::AllOnceBack
        }
        ChangeError::Left { .. }
        | ChangeError::Journal { .. }
        | ChangeError::Busy { .. }
        | ChangeError::Another { .. } => Left::Nothing,
    }
}

/// A connection can be made again, unless it is another host that answers.
fn of_connection(error: &RemoteError) -> Left {
    if is_final(error) { Left::Nothing } else { Left::AllOnceBack }
}

/// Waiting longer changes nothing about these.
pub(super) fn is_final(error: &RemoteError) -> bool {
    matches!(
        error.fault,
        Fault::ChangedKey
            | Fault::UnknownKey
            | Fault::RevokedKey
            | Fault::NoClient
            | Fault::Address
            | Fault::Configuration
    )
}

fn remedy(console: &[String]) -> String {
    match console {
        [] => "look at its console".into(),
        _ => format!("look at its console: {}", console.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(fault: Fault) -> ChangeError {
        ChangeError::Remote(RemoteError { host: "router".into(), fault, said: String::new() })
    }

    #[test]
    fn what_a_lost_connection_left_changed_can_wait_for_the_next() {
        let unfinished = |first: ChangeError| {
            DutError::from(ChangeError::Left {
                host: "router".into(),
                count: 1,
                path: "j".into(),
                first: Box::new(first),
            })
        };
        assert_eq!(unfinished(remote(Fault::Lost)).left(), Left::AllOnceBack);
        assert_eq!(unfinished(remote(Fault::ChangedKey)).left(), Left::Nothing);
        let failed = |by_itself| ChangeError::Failed {
            host: "router".into(),
            what: "sysctl a".into(),
            doing: "put back",
            why: "it took too long".into(),
            by_itself,
        };
        assert_eq!(
            [unfinished(failed(false)).left(), unfinished(failed(true)).left()],
            [Left::AllOnceBack, Left::Nothing]
        );
        assert_eq!(unfinished(ChangeError::Busy { host: "router".into() }).left(), Left::Nothing);
        assert_eq!(DutError::from(remote(Fault::Lost)).left(), Left::AllOnceBack);
    }
}
