//! The one error of this crate. Callers print it and do not distinguish its causes.

/// The fault of a text, a frame, a load or a capture, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WireError(String);

impl WireError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        WireError(message.into())
    }
}
