//! Rule files of users, read from the disk.

use linerate_linux::files;
use linerate_plan::rules::own::MOST_BYTES;
use std::path::Path;

/// The text of a rule file.
///
/// # Errors
/// Why there is none.
pub fn text(path: &Path) -> Result<String, String> {
    let bytes = files::read(path, MOST_BYTES).map_err(|e| e.to_string())?;
    if bytes.len() > MOST_BYTES {
        return Err(format!("it has more than {MOST_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|e| format!("byte {} is not UTF-8 text", e.utf8_error().valid_up_to()))
}
