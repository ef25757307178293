//! Files that users name, and standard input. Files of numbers are read piece by piece: one of any length needs no more memory than
//! its points.

use crate::progress::Progress;
use anyhow::{Context, Result, anyhow};
use linerate_linux::files;
use linerate_plan::rules::own::MOST_BYTES;
use linerate_stats::ministat::{Columns, PointReader};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// Bytes read at once: few calls, and still in the cache when they are looked at.
const PIECE: usize = 128 << 10;

/// Bytes after which it may take a while, and progress is shown: some 200 MB are read in a second.
const MUCH: u64 = 100 << 20;

/// Whether a path means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The name of a set that comes from a file.
pub fn name(path: &Path) -> String {
    if is_stdin(path) {
        "<stdin>".into()
    } else {
        path.to_string_lossy().into_owned()
    }
}

/// The words for a file or folder that cannot be read, before the system's reason. `what`: what it should be, or nothing.
pub fn cannot_read(what: &str, path: &Path) -> String {
    format!("cannot read {what}{}", path.display())
}

/// The content of a file, or of standard input; one byte more than `most` is enough to know that it is too large. `what`: a word
/// for the kind of file, and a remedy or an empty text.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path, most: usize, [what, remedy]: [&str; 2]) -> Result<Vec<u8>> {
    if !is_stdin(path) {
        return files::read(path, most)
            .with_context(|| format!("{}{remedy}", cannot_read(&format!("the {what} "), path)));
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin()
        .lock()
        .take(most as u64 + 1)
        .read_to_end(&mut bytes);
    read.context("cannot read standard input")?;
    Ok(bytes)
}

/// Reads a file, or standard input, piece by piece.
///
/// # Errors
/// The file cannot be opened.
pub fn reader(path: &Path) -> Result<Box<dyn BufRead>> {
    if is_stdin(path) {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file = files::open(path).with_context(|| cannot_read("", path))?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
}

/// A text without the numbers of the system's errors, ` (os error 2)`.
pub fn without_number(error: &str) -> String {
    let mut parts = error.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once(')').map_or(part, |(_, rest)| rest)
    })
}

/// The text of a rule file.
///
/// # Errors
/// The reason why the file has no text.
pub fn rules(path: &Path) -> Result<String, String> {
    let bytes = files::read(path, MOST_BYTES).map_err(|e| without_number(&e.to_string()))?;
    if bytes.len() > MOST_BYTES {
        return Err(format!("it has more than {MOST_BYTES} bytes"));
    }
    String::from_utf8(bytes)
        .map_err(|e| format!("byte {} is not UTF-8 text", e.utf8_error().valid_up_to()))
}

/// The points of a file, in the order in which they stand there; `-` is standard input.
///
/// # Errors
/// The file cannot be read, or a line has something else than a number; the error names both.
pub fn numbers(path: &Path, columns: &Columns) -> Result<Vec<f64>> {
    if is_stdin(path) {
        return read_from(std::io::stdin().lock(), None, &name(path), columns);
    }
    let file = files::open(path).with_context(|| cannot_read("", path))?;
    let length = file
        .metadata()
        .ok()
        .filter(|facts| facts.is_file())
        .map(|facts| facts.len());
    read_from(file, length, &name(path), columns)
}

fn read_from(
    mut source: impl Read,
    length: Option<u64>,
    name: &str,
    columns: &Columns,
) -> Result<Vec<f64>> {
    let mut reader = PointReader::new(columns.clone());
    let mut piece = vec![0; PIECE];
    let (mut done, mut progress) = (0, None);
    loop {
        match source.read(&mut piece) {
            Ok(0) => break,
            Ok(got) => {
                reader
                    .feed(&piece[..got])
                    .map_err(|error| anyhow!("{name}, {error}"))?;
                done += got as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {name}")),
        }
        if done > MUCH {
            progress
                .get_or_insert_with(|| Progress::of_bytes(name, length))
                .advance_bytes(done);
        }
    }
    reader.finish().map_err(|error| anyhow!("{name}, {error}"))
}
