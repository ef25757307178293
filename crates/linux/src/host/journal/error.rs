//! Why the host was not changed.

use std::io;
use std::path::PathBuf;

/// Why the host was not changed, or not put back.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file of the journal, or of the host.
    #[error("cannot {operation} {}: {source}", .path.display())]
    System {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        source: io::Error,
    },
    /// A file that a change may not touch.
    #[error("'{file}' is not a host setting: {reason}")]
    NotASetting { file: String, reason: &'static str },
    #[error(
        "/{file} was set by another linerate (process {pid}), which has not ended: wait for it, or end it"
    )]
    Held { file: String, pid: u32 },
    /// Another campaign may change the host.
    #[error(
        "another linerate (process {pid}) may change settings of this host now (--allow-host-changes): wait for its end, then start this one again"
    )]
    Reserved { pid: String },
    /// The kernel took something else.
    #[error("/{file} should be {wanted} and the kernel made it {found}")]
    NotTaken {
        file: String,
        /// What was written.
        wanted: String,
        /// The value that is there now.
        found: String,
    },
    /// A module that cannot be loaded or removed.
    #[error("cannot {operation} kernel module {module}: {reason}")]
    Module {
        /// Load or remove.
        operation: &'static str,
        module: String,
        reason: String,
    },
}

impl JournalError {
    pub(crate) fn system(
        operation: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> JournalError {
        let path = path.into();
        move |source| JournalError::System { operation, path, source }
    }
}
