//! Finds campaigns below a folder.

use super::{CAMPAIGN, RecordsError};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders below each other that are looked into.
const DEEPEST: usize = 32;

/// The folders of all campaigns at or below `directory`, in the order of their paths. Links are not followed, and unreadable
/// folders below it are skipped.
///
/// # Errors
/// `directory` itself cannot be read.
pub fn find(directory: &Path) -> Result<Vec<PathBuf>, RecordsError> {
    fs::read_dir(directory).map_err(|e| RecordsError::system("read", directory, e))?;
    let mut found = Vec::new();
    let mut open = vec![(directory.to_path_buf(), 0)];
    while let Some((folder, depth)) = open.pop() {
        if folder.join(CAMPAIGN).is_file() {
            found.push(folder);
            continue;
        }
        let below = fs::read_dir(&folder).into_iter().flatten().flatten();
        let folders = below.filter(|e| depth < DEEPEST && e.file_type().is_ok_and(|t| t.is_dir()));
        open.extend(folders.map(|e| (e.path(), depth + 1)));
    }
    found.sort();
    Ok(found)
}
