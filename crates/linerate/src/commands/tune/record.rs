//! The record of a tuning.

use anyhow::{Context, Result, bail};
use linerate_measure::tuning::{Tuned, VERSION};
use linerate_runner::input;
use std::path::Path;

/// The record of a tuning, in its folder.
pub(super) const RECORD: &str = "tuning.json";
/// Bytes of the record at most.
const MOST_BYTES: usize = 64 << 20;

/// The record of a tuning in a folder, if there is one.
///
/// # Errors
/// The record cannot be read, or is of another version.
pub fn read(folder: &Path) -> Result<Option<Tuned>> {
    let path = folder.join(RECORD);
    if !path.exists() {
        return Ok(None);
    }
    let name = path.display();
    let bytes = input::read(&path, MOST_BYTES, ["record", ""])?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let tuned: Tuned = serde_json::from_str(text)
        .with_context(|| format!("{name} is not the record of a tuning"))?;
    if tuned.version != VERSION || !tuned.is_sound() {
        bail!(
            "{name} is the record of another linerate (version {}), or damaged",
            tuned.version
        );
    }
    Ok(Some(tuned))
}
