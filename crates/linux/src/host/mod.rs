//! Everything that a figure depends on: the machine, its kernel and settings, how busy its CPUs are, and our own memory.

pub mod cpu;
mod facts;
mod interfaces;
pub mod journal;
pub mod memory;
mod tools;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub use facts::facts;

/// The first `most` bytes of a file below `root`. Files in /proc and /sys are made as they are read: no more of them is
/// made than is asked for.
fn read_start(root: &Path, path: &str, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(root.join(path))?.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The one line of a file below `root`, trimmed; `None` where there is no such file, or nothing in it.
fn line(root: &Path, path: &str) -> Option<String> {
    let text = read_start(root, path, 4096).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_string())
}

/// The one line of a file below `root`, or `unknown` and why.
fn line_or_reason(root: &Path, path: &str) -> String {
    match read_start(root, path, 4096) {
        Ok(text) => match text.lines().next().map(str::trim) {
            Some(line) if !line.is_empty() => line.to_string(),
            _ => format!("unknown (/{path} is empty)"),
        },
        Err(error) => unknown(path, &error),
    }
}

/// The names in a folder below `root`.
fn names(root: &Path, path: &str) -> io::Result<Vec<String>> {
    let entries = std::fs::read_dir(root.join(path))?.flatten();
    Ok(entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

fn unknown(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("unknown (no /{path})"),
        io::ErrorKind::PermissionDenied => format!("unknown (/{path} may not be read)"),
        _ => format!("unknown (/{path}: {error})"),
    }
}

#[cfg(test)]
mod tests;
