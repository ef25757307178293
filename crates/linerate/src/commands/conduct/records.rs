//! The file of a test's records: a line of JSON for each trial, on the disk before the next one begins.

use anyhow::{Context, Result};
use linerate_import::conductor::Trial;
use linerate_linux::records::stamp_utc;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where records are kept if nobody says where.
const FOLDER: &str = "linerate-results";

/// A new file.
pub struct Records {
    file: File,
    path: PathBuf,
    /// Length of the whole lines.
    bytes: u64,
}

impl Records {
    /// Makes `explicit`, or a file called by the time and the test's name.
    ///
    /// # Errors
    /// It cannot be made, or is there already.
    pub fn create(explicit: Option<&Path>, test: &str) -> Result<Self> {
        if let Some(path) = explicit {
            return Ok(Records { file: make(path)?, path: path.to_path_buf(), bytes: 0 });
        }
        std::fs::create_dir_all(FOLDER).with_context(|| format!("cannot make the folder {FOLDER}"))?;
        let name = format!("{}-{}", stamp_utc(SystemTime::now()), sanitised(test));
        let mut number = 1;
        loop {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let path = Path::new(FOLDER).join(format!("{name}{suffix}.jsonl"));
            match make(&path) {
                Err(error) if error.downcast_ref().is_some_and(exists) => number += 1,
                made => return Ok(Records { file: made?, path, bytes: 0 }),
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a trial on the disk. Gives its line, without the line's end.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(&mut self, trial: &Trial) -> Result<String> {
        let mut line = serde_json::to_string(trial)?;
        line.push('\n');
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // A part of the line may be there: whoever reads the file wants whole ones. The error to tell is the first.
            let _ = self.file.set_len(self.bytes);
            let what = format!("cannot write trial {} to {}", trial.trial, self.path.display());
            return Err(anyhow::Error::new(error).context(what));
        }
        self.bytes += line.len() as u64;
        line.pop();
        Ok(line)
    }
}

fn exists(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::AlreadyExists
}

fn make(path: &Path) -> Result<File> {
    let made = OpenOptions::new().append(true).create_new(true).open(path);
    made.with_context(|| format!("cannot make the file of records {}", path.display()))
}

/// A name that is a part of a file name everywhere.
fn sanitised(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.chars().take(64).map(|c| if allowed(c) { c } else { '-' }).collect()
}
