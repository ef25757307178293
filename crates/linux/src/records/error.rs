//! Errors of records, each with the file and a remedy.

use linerate_measure::record::RecordError;
use std::io;
use std::path::{Path, PathBuf};

/// Why records cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    #[error("cannot {operation} {}: {source}{}", path.display(), advice(source))]
    System {
        /// The operation.
        operation: &'static str,
        /// On which file or folder.
        path: PathBuf,
        source: io::Error,
    },
    /// A trial could not be put on the disk.
    #[error(
        "cannot write trial {trial} to {}: {source}; the first {kept} trials are safe there{}",
        path.display(), advice(source)
    )]
    Trial {
        trial: u64,
        path: PathBuf,
        /// Trials that are on the disk, whole.
        kept: u64,
        source: io::Error,
    },
    /// Writing failed before, which has been reported.
    #[error("{} takes no more trials after the failure that was reported before", .0.display())]
    Closed(PathBuf),
    /// The folder asked for has something in it.
    #[error("{} is not empty: name a new folder for the records, or an empty one", .0.display())]
    NotEmpty(PathBuf),
    /// Another process writes there.
    #[error("{} is being written by another linerate: wait for it, or end it", .0.display())]
    InUse(PathBuf),
    /// The folder does not hold a record.
    #[error("{} is not a record of linerate: {reason}", directory.display())]
    NotARecord {
        directory: PathBuf,
        /// The missing part.
        reason: String,
    },
    /// A file of the record cannot be understood.
    #[error(transparent)]
    Format(#[from] RecordError),
}

impl RecordsError {
    /// A failed operation on a file or folder.
    pub(super) fn system(operation: &'static str, path: &Path, source: io::Error) -> Self {
        RecordsError::System { operation, path: path.into(), source }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => ". Free space there, or keep the records on another file system",
        Some(libc::EDQUOT) => ". The disk quota is used up: free space, or keep the records elsewhere",
        Some(libc::EFBIG) => ". A limit on file sizes is in force (ulimit -f): raise it, or run fewer trials",
        Some(libc::EROFS) => ". That file system is read-only: keep the records elsewhere",
        Some(libc::EACCES | libc::EPERM) => ". Keep the records where you may write",
        Some(libc::EIO) => ". The disk or its controller fails: see the kernel's log",
        _ => "",
    }
}
