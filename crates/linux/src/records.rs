//! Records on disk: a folder per campaign, in which every trial is safe as soon as it is over.
//!
//! Files: `campaign.json`, `host.json`, `trials.jsonl` (one line per trial, only ever appended to), `summary.json`.

mod error;
mod find;
mod imported;
mod reader;
mod time;
mod writer;

use crate::files;
use linerate_measure::record::{Campaign, HostFacts, Summary, TrialRecord};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use writer::Writer;

pub use error::RecordsError;
pub use find::find;
pub use imported::ImportStore;
pub use reader::{StoredCampaign, read};
use time::stamp_utc;
pub use time::{rfc3339_utc, utc_now};
pub use writer::TrialLog;

const CAMPAIGN: &str = "campaign.json";
const HOST: &str = "host.json";
const TRIALS: &str = "trials.jsonl";
const SUMMARY: &str = "summary.json";

/// The folder of a campaign that is being run.
#[derive(Debug)]
pub struct RecordStore {
    directory: PathBuf,
    writer: Writer,
}

impl RecordStore {
    /// Makes the folder `<base>/<UTC time>-<name>/`, with `-2`, `-3` behind it if there is one already; or the folder
    /// `explicit_out`, which must be new or empty.
    ///
    /// # Errors
    /// The folder cannot be made, or `explicit_out` has something in it.
    pub fn create(base: &Path, name: &str, explicit_out: Option<&Path>) -> Result<Self, RecordsError> {
        let directory = match explicit_out {
            Some(out) => make_empty(out)?,
            None => make_new(base, &stamped(name), "", |path| DirBuilder::new().create(path))?.0,
        };
        let path = directory.join(TRIALS);
        let file = OpenOptions::new().append(true).create_new(true).open(&path);
        let file = file.map_err(|e| RecordsError::system("make", &path, e))?;
        lock(&file, &directory, &path)?;
        sync_directory(&directory)?;
        if let Some(parent) = directory.parent().filter(|p| !p.as_os_str().is_empty()) {
            sync_directory(parent)?;
        }
        let writer =
            Writer::start(file, path.clone(), 0).map_err(|e| RecordsError::system("write", &path, e))?;
        Ok(RecordStore { directory, writer })
    }

    /// Opens the folder of a stopped campaign, to resume it, and reads its records. An incomplete last line is cut away;
    /// everything before it stays.
    ///
    /// # Errors
    /// It is not a record, it cannot be written, or another process is writing it.
    pub fn reopen(directory: &Path) -> Result<(Self, StoredCampaign), RecordsError> {
        read(directory)?; // before anything is opened for writing
        let path = directory.join(TRIALS);
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.map_err(|e| RecordsError::system("open", &path, e))?;
        lock(&file, directory, &path)?;
        let stored = read(directory)?;
        let whole = reader::whole_lines(&path)?;
        file.set_len(whole).map_err(|e| RecordsError::system("shorten", &path, e))?;
        let writer = Writer::start(file, path.clone(), stored.trials.len() as u64)
            .map_err(|e| RecordsError::system("write", &path, e))?;
        Ok((RecordStore { directory: directory.to_path_buf(), writer }, stored))
    }

    /// Nothing was measured: takes the folder away again, if nothing has been written into it.
    pub fn abandon(self) {
        let RecordStore { directory, writer } = self;
        drop(writer);
        let path = directory.join(TRIALS);
        let untouched = std::fs::metadata(&path).is_ok_and(|m| m.len() == 0);
        if untouched && std::fs::remove_file(&path).is_ok() {
            // Fails, and may, where the folder holds anything else.
            let _ = std::fs::remove_dir(&directory);
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes `campaign.json`, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_campaign(&self, campaign: &Campaign) -> Result<(), RecordsError> {
        self.write_document(CAMPAIGN, campaign)
    }

    /// Writes `host.json`, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_host(&self, host: &HostFacts) -> Result<(), RecordsError> {
        self.write_document(HOST, host)
    }

    /// Appends a trial to `trials.jsonl` and requests a sync to disk, without waiting for that: the disk must not delay the next
    /// trial. A later call, or [`RecordStore::finish`], reports errors.
    ///
    /// # Errors
    /// This or an earlier trial could not be written. Those before it are whole on the disk.
    pub fn append_trial(&mut self, trial: &TrialRecord) -> Result<(), RecordsError> {
        let line = serde_json::to_string(trial);
        let mut line =
            line.map_err(|e| RecordsError::system("write", &self.directory.join(TRIALS), e.into()))?;
        line.push('\n');
        self.writer.append(trial.trial, line)
    }

    /// Writes `summary.json`, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written. The trials are safe all the same.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), RecordsError> {
        self.write_document(SUMMARY, summary)
    }

    /// Waits until every trial is on the disk. After that, none can be added.
    ///
    /// # Errors
    /// A trial could not be written.
    pub fn finish(&mut self) -> Result<(), RecordsError> {
        self.writer.finish()
    }

    fn write_document(&self, name: &str, document: &impl serde::Serialize) -> Result<(), RecordsError> {
        let path = self.directory.join(name);
        let temporary = self.directory.join(format!(".{name}.new"));
        files::replace(&path, &temporary, document).map_err(|e| RecordsError::system("write", &path, e))?;
        sync_directory(&self.directory)
    }
}

/// Holds the trials' file for this process, as long as it is open.
fn lock(file: &File, directory: &Path, path: &Path) -> Result<(), RecordsError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(RecordsError::InUse(directory.into())),
        // Some network file systems have no locks.
        Ok(()) | Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(error) => Err(RecordsError::system("lock", path, error.into())),
    }
}

/// File names may be 255 bytes long; a time must fit before, and a number behind.
const LONGEST_NAME: usize = 200;

/// A name that is a part of a file name on every system.
fn sanitised(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = name.chars().take(LONGEST_NAME).map(|c| if allowed(c) { c } else { '-' }).collect();
    if name.trim_matches('.').is_empty() { "campaign".into() } else { name }
}

fn stamped(name: &str) -> String {
    format!("{}-{}", stamp_utc(SystemTime::now()), sanitised(name))
}

/// Makes `<base>/<name><ending>`, with `-2`, `-3` behind the name if there is one already.
fn make_new<T>(
    base: &Path,
    name: &str,
    ending: &str,
    make: impl Fn(&Path) -> io::Result<T>,
) -> Result<(PathBuf, T), RecordsError> {
    fs::create_dir_all(base).map_err(|e| RecordsError::system("make", base, e))?;
    for number in 1.. {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let path = base.join(format!("{name}{suffix}{ending}"));
        // Making it is also the test whether it exists: two campaigns that begin at once get one each.
        match make(&path) {
            Ok(made) => return Ok((path, made)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < 10_000 => {}
            Err(e) => return Err(RecordsError::system("make", &path, e)),
        }
    }
    unreachable!("the loop ends by returning")
}

impl TrialLog {
    /// Makes the file `explicit`, or `<base>/<UTC time>-<name>.jsonl`.
    ///
    /// # Errors
    /// It cannot be made, or `explicit` is there already.
    pub fn create(base: &Path, name: &str, explicit: Option<&Path>) -> Result<Self, RecordsError> {
        let make = |path: &Path| OpenOptions::new().append(true).create_new(true).open(path);
        let (path, file) = match explicit {
            Some(path) => {
                (path.to_path_buf(), make(path).map_err(|e| RecordsError::system("make", path, e))?)
            }
            None => make_new(base, &stamped(name), ".jsonl", make)?,
        };
        TrialLog::new(file, path.clone(), 0).map_err(|e| RecordsError::system("read", &path, e))
    }
}

fn make_empty(out: &Path) -> Result<PathBuf, RecordsError> {
    let cannot = |e| RecordsError::system("make", out, e);
    fs::create_dir_all(out).map_err(cannot)?;
    if fs::read_dir(out).map_err(cannot)?.next().is_some() {
        return Err(RecordsError::NotEmpty(out.into()));
    }
    Ok(out.into())
}

/// Puts the names in a folder on the disk, without which a file's content is lost with its name.
fn sync_directory(directory: &Path) -> Result<(), RecordsError> {
    let synced = File::open(directory).and_then(|d| d.sync_all());
    match synced {
        // Some network file systems have no fsync for folders.
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        other => other.map_err(|e| RecordsError::system("put on disk", directory, e)),
    }
}

#[cfg(test)]
mod tests;
