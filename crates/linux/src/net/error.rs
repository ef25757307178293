//! The error of everything under `net`: the operation, its object, and the kernel's own words.

use std::io;

/// Why something about a namespace or a link could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {operation}: {}{}", errno_text(.source), detail_text(.detail))]
    Kernel {
        /// The operation, its object and its namespace.
        operation: String,
        source: io::Error,
        /// The kernel's own explanation, if it gave one (netlink's extended acknowledgement).
        detail: Option<String>,
    },
    /// Something named does not exist.
    #[error("there is no {what} in {place}")]
    NotFound {
        /// The object, with its name.
        what: String,
        /// Where it was looked for.
        place: String,
    },
    /// A value was refused before the kernel saw it.
    #[error("{what} `{value}` is not usable: {reason}")]
    Invalid {
        /// The kind of value.
        what: &'static str,
        value: String,
        /// Why it was refused.
        reason: &'static str,
    },
    /// The kernel does not have this.
    #[error("cannot {operation}: {reason}")]
    Unsupported {
        /// The operation.
        operation: String,
        /// The missing part, and a remedy.
        reason: String,
    },
}

impl Error {
    /// An error out of an errno.
    pub(crate) fn kernel(operation: impl Into<String>, source: io::Error) -> Error {
        Error::Kernel { operation: operation.into(), source, detail: None }
    }

    /// The errno, where the kernel gave one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Kernel { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// Whether the reason is a missing privilege (EPERM, EACCES).
    pub fn is_permission(&self) -> bool {
        matches!(self.errno(), Some(libc::EPERM | libc::EACCES))
    }

    /// Whether the object is not there (ENOENT, ENODEV, or found missing by us).
    pub fn is_missing(&self) -> bool {
        matches!(self, Error::NotFound { .. }) || matches!(self.errno(), Some(libc::ENOENT | libc::ENODEV))
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match &error {
            Error::Kernel { source, .. } => source.kind(),
            Error::NotFound { .. } => io::ErrorKind::NotFound,
            Error::Invalid { .. } => io::ErrorKind::InvalidInput,
            Error::Unsupported { .. } => io::ErrorKind::Unsupported,
        };
        io::Error::new(kind, error)
    }
}

/// The errno's text without Rust's ` (os error 1)`.
fn errno_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

fn detail_text(detail: &Option<String>) -> String {
    detail.as_ref().map(|words| format!(" ({words})")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_operation_object_errno_and_the_kernels_words() {
        let error = Error::Kernel {
            operation: "create veth pair g0/d0 in namespace linerate-dut".into(),
            source: io::Error::from_raw_os_error(libc::EPERM),
            detail: Some("no".into()),
        };
        assert_eq!(
            error.to_string(),
            "cannot create veth pair g0/d0 in namespace linerate-dut: Operation not permitted (no)"
        );
        assert!(error.is_permission());
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::PermissionDenied);
    }
}
