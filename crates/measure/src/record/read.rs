//! The reader of a record's files.

use super::{TrialRecord, VERSION};
use serde::Deserialize;

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not JSON of the expected shape.
    #[error("{what}, line {line}: {reason}")]
    Malformed {
        /// The file.
        what: String,
        /// Line, from 1.
        line: usize,
        /// The message of serde.
        reason: String,
    },
    /// Written by a newer linerate.
    #[error("{what} has record format {found}, this linerate reads up to {VERSION}: use a newer linerate")]
    TooNew {
        /// The file.
        what: String,
        /// Version of the record.
        found: u32,
    },
}

/// Reads one JSON document of a record, refusing versions from the future.
///
/// # Errors
/// Malformed JSON, or a newer format.
pub fn read_document<T: serde::de::DeserializeOwned>(what: &str, text: &str) -> Result<T, RecordError> {
    let malformed = |e: serde_json::Error| RecordError::Malformed {
        what: what.into(),
        line: e.line(),
        reason: if e.is_eof() { "the file is cut off".into() } else { e.to_string() },
    };
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let Versioned { version } = serde_json::from_str(text).map_err(malformed)?;
    if version > VERSION {
        return Err(RecordError::TooNew { what: what.into(), found: version });
    }
    serde_json::from_str(text).map_err(malformed)
}

/// Trials read back, and whether the last line had been cut off (by a full disk or a power failure).
#[derive(Debug, Clone, PartialEq)]
pub struct Trials {
    /// All complete trials.
    pub trials: Vec<TrialRecord>,
    /// The last line was incomplete and is left out.
    pub cut_off: bool,
}

/// Reads `trials.jsonl`. An incomplete last line is no error: every trial before it is whole.
///
/// # Errors
/// A malformed line that is not the last, or a newer format.
pub fn read_trials(what: &str, text: &str) -> Result<Trials, RecordError> {
    let (trials, cut_off) = read_lines(what, text)?;
    Ok(Trials { trials, cut_off })
}

/// Reads documents, one in each line, and whether the last line is incomplete and left out.
///
/// # Errors
/// A malformed line that is not the last, or a newer format.
pub fn read_lines<T: serde::de::DeserializeOwned>(
    what: &str,
    text: &str,
) -> Result<(Vec<T>, bool), RecordError> {
    let mut documents = Vec::new();
    let mut lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()).peekable();
    while let Some((index, line)) = lines.next() {
        match read_document(what, line) {
            Ok(document) => documents.push(document),
            Err(RecordError::Malformed { .. }) if lines.peek().is_none() && !text.ends_with('\n') => {
                return Ok((documents, true));
            }
            Err(RecordError::Malformed { what, reason, .. }) => {
                return Err(RecordError::Malformed { what, line: index + 1, reason });
            }
            Err(error) => return Err(error),
        }
    }
    Ok((documents, false))
}
