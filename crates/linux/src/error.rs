//! The error of this crate: an operation with its object and the system's words, or a sentence that says what to do.

use linerate_measure::record::RecordError;
use linerate_wire::WireError;
use std::fmt::Display;
use std::io;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused an operation.
    #[error("cannot {operation}: {}{detail}", errno_text(.source))]
    System {
        /// The operation, its object and its namespace.
        operation: String,
        source: io::Error,
        /// The kernel's own explanation, if it gave one, or a remedy.
        detail: String,
    },
    /// Something named does not exist.
    #[error("there is no {0}")]
    Missing(String),
    /// The kernel did not take an eBPF program.
    #[error("the kernel does not accept the eBPF program {program}: {reason}")]
    Program {
        program: String,
        /// The last lines of the kernel's message.
        reason: String,
    },
    /// Traffic or a filter that cannot be.
    #[error(transparent)]
    Traffic(#[from] WireError),
    /// A file of a record that cannot be understood.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Any other reason.
    #[error("{0}")]
    Refused(String),
}

impl Error {
    /// An error out of an errno.
    pub(crate) fn system(operation: impl Display, source: impl Into<io::Error>) -> Error {
        Error::System {
            operation: operation.to_string(),
            source: source.into(),
            detail: String::new(),
        }
    }

    /// A value that was refused before the kernel saw it.
    pub(crate) fn unusable(what: &str, value: impl Display, reason: &str) -> Error {
        Error::Refused(format!("{what} `{value}` is not usable: {reason}"))
    }

    /// With the privileges that packet I/O takes, where one is missing.
    pub(crate) fn naming_privileges(mut self) -> Error {
        let permission = self.is_permission();
        if let Error::System { detail, .. } = &mut self
            && permission
        {
            *detail =
                " (eBPF programs need root, or CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW)".into();
        }
        self
    }

    /// The errno, where the kernel gave one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::System { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// Whether the reason is a missing privilege (EPERM, EACCES).
    pub fn is_permission(&self) -> bool {
        matches!(self.errno(), Some(libc::EPERM | libc::EACCES))
    }

    /// Whether the object is not there (ENOENT, ENODEV, or found missing by us).
    pub fn is_missing(&self) -> bool {
        matches!(self, Error::Missing(_))
            || matches!(self.errno(), Some(libc::ENOENT | libc::ENODEV))
    }
}

/// Names the operation that a system call failed in.
pub(crate) trait Doing<T> {
    /// `operation` completes "cannot ...", and is written only after a failure.
    fn doing(self, operation: impl Display) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, operation: impl Display) -> Result<T, Error> {
        self.map_err(|source| Error::system(operation, source))
    }
}

/// The errno's text without Rust's ` (os error 1)`.
fn errno_text(error: &io::Error) -> String {
    let text = error.to_string();
    text.rfind(" (os error ")
        .map_or(text.clone(), |end| text[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_operation_object_errno_and_the_kernels_words() {
        let error = Error::System {
            operation: "create veth pair g0/d0 in namespace linerate-dut".into(),
            source: io::Error::from_raw_os_error(libc::EPERM),
            detail: " (no)".into(),
        };
        assert_eq!(
            error.to_string(),
            "cannot create veth pair g0/d0 in namespace linerate-dut: Operation not permitted (no)"
        );
        assert!(error.is_permission() && !error.is_missing());
    }
}
