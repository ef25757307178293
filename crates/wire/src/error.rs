//! The one error of this crate: nobody asks which it is, everybody prints it.

/// What is wrong with a text, a frame, a load or a capture, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WireError(String);

impl WireError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        WireError(message.into())
    }
}
