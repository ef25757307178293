//! Records on disk: a folder per campaign, in which every trial is safe as soon as it is over.
//!
//! Files: `campaign.json`, `host.json`, `trials.jsonl` (one line per trial, only ever appended to), `summary.json`.

mod imported;
mod log;
mod reader;

use crate::Error;
use crate::files;
use linerate_measure::calendar;
use linerate_measure::record::{Campaign, HostFacts, Summary, TrialRecord};
use log::Writer;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use imported::ImportStore;
pub use log::TrialLog;
pub use reader::{StoredCampaign, find, read};

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
    pub fn create(base: &Path, name: &str, explicit_out: Option<&Path>) -> Result<Self, Error> {
        let directory = match explicit_out {
            Some(out) => make_empty(out)?,
            None => make_new(base, &stamped(name), "", |path| DirBuilder::new().create(path))?.0,
        };
        let file = open_trials(&directory, OpenOptions::new().create_new(true))?;
        sync_directory(&directory)?;
        if let Some(parent) = directory.parent().filter(|p| !p.as_os_str().is_empty()) {
            sync_directory(parent)?;
        }
        Ok(RecordStore { writer: Writer::start(file, directory.join(TRIALS), 0)?, directory })
    }

    /// Opens the folder of a stopped campaign, to resume it, and reads its records. An incomplete last line is cut away;
    /// everything before it stays.
    ///
    /// # Errors
    /// It is not a record, it cannot be written, or another process is writing it.
    pub fn reopen(directory: &Path) -> Result<(Self, StoredCampaign), Error> {
        read(directory)?; // before anything is opened for writing
        let file = open_trials(directory, OpenOptions::new().create(true))?;
        let (path, stored) = (directory.join(TRIALS), read(directory)?);
        file.set_len(reader::whole_lines(&path)?).map_err(failed("shorten", &path))?;
        let writer = Writer::start(file, path, stored.trials.len() as u64)?;
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
    pub fn write_campaign(&self, campaign: &Campaign) -> Result<(), Error> {
        self.write_document(CAMPAIGN, campaign)
    }

    /// Writes `host.json`, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_host(&self, host: &HostFacts) -> Result<(), Error> {
        self.write_document(HOST, host)
    }

    /// Appends a trial to `trials.jsonl` and requests a sync to disk, without waiting for that: the disk must not delay the next
    /// trial. A later call, or [`RecordStore::finish`], reports errors.
    ///
    /// # Errors
    /// This or an earlier trial could not be written. Those before it are whole on the disk.
    pub fn append_trial(&mut self, trial: &TrialRecord) -> Result<(), Error> {
        let line = serde_json::to_string(trial).unwrap_or_else(|_| unreachable!("a trial can be written"));
        self.writer.append(trial.trial, line + "\n")
    }

    /// Writes `summary.json`, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written. The trials are safe all the same.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), Error> {
        self.write_document(SUMMARY, summary)
    }

    /// Waits until every trial is on the disk. After that, none can be added.
    ///
    /// # Errors
    /// A trial could not be written.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.writer.finish()
    }

    fn write_document(&self, name: &str, document: &impl serde::Serialize) -> Result<(), Error> {
        let path = self.directory.join(name);
        files::replace(&path, document).map_err(failed("write", &path))?;
        sync_directory(&self.directory)
    }
}

/// Opens the file of trials to append to it. This process holds it as long as it is open.
fn open_trials(directory: &Path, options: &mut OpenOptions) -> Result<File, Error> {
    let path = directory.join(TRIALS);
    let file = options.append(true).open(&path).map_err(failed("open", &path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(Error::Refused(format!(
            "{} is being written by another linerate: wait for it, or end it",
            directory.display()
        ))),
        // Some network file systems have no locks.
        Ok(()) | Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(file),
        Err(error) => Err(failed("lock", &path)(error.into())),
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

/// `20260131T235959Z-NAME`, which sorts by time and is a file name everywhere.
fn stamped(name: &str) -> String {
    format!("{}-{}", utc_now().replace(['-', ':'], ""), sanitised(name))
}

/// `2026-01-31T23:59:59Z`, as RFC 3339 has it.
pub fn rfc3339_utc(time: SystemTime) -> String {
    // A clock before 1970 has not been set; then the epoch is as good as any time.
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    calendar::rfc3339(seconds as i64)
}

/// The time now, as RFC 3339 has it.
pub fn utc_now() -> String {
    rfc3339_utc(SystemTime::now())
}

/// Makes `<base>/<name><ending>`, with `-2`, `-3` behind the name if there is one already.
fn make_new<T>(
    base: &Path,
    name: &str,
    ending: &str,
    make: impl Fn(&Path) -> io::Result<T>,
) -> Result<(PathBuf, T), Error> {
    fs::create_dir_all(base).map_err(failed("make", base))?;
    for number in 1.. {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let path = base.join(format!("{name}{suffix}{ending}"));
        // Making it is also the test whether it exists: two campaigns that begin at once get one each.
        match make(&path) {
            Ok(made) => return Ok((path, made)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < 10_000 => {}
            Err(e) => return Err(failed("make", &path)(e)),
        }
    }
    unreachable!("the loop ends by returning")
}

impl TrialLog {
    /// Makes the file `explicit`, or `<base>/<UTC time>-<name>.jsonl`.
    ///
    /// # Errors
    /// It cannot be made, or `explicit` is there already.
    pub fn create(base: &Path, name: &str, explicit: Option<&Path>) -> Result<Self, Error> {
        let make = |path: &Path| OpenOptions::new().append(true).create_new(true).open(path);
        let (path, file) = match explicit {
            Some(path) => (path.to_path_buf(), make(path).map_err(failed("make", path))?),
            None => make_new(base, &stamped(name), ".jsonl", make)?,
        };
        TrialLog::new(file, path, 0)
    }
}

fn make_empty(out: &Path) -> Result<PathBuf, Error> {
    let is_empty = fs::create_dir_all(out).and_then(|()| Ok(fs::read_dir(out)?.next().is_none()));
    match is_empty.map_err(failed("make", out))? {
        true => Ok(out.into()),
        false => Err(Error::Refused(format!(
            "{} is not empty: name a new folder for the records, or an empty one",
            out.display()
        ))),
    }
}

/// Puts the names in a folder on the disk, without which a file's content is lost with its name.
fn sync_directory(directory: &Path) -> Result<(), Error> {
    let synced = File::open(directory).and_then(|d| d.sync_all());
    match synced {
        // Some network file systems have no fsync for folders.
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        other => other.map_err(failed("put on disk", directory)),
    }
}

/// For `map_err`: a failed operation on a file or folder of a record, with a remedy.
fn failed(operation: &str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| {
        let detail = advice(&source).into();
        Error::System { operation: format!("{operation} {}", path.display()), source, detail }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => ". Free space there, or keep the records on another file system",
        Some(libc::EDQUOT) => ". The disk quota is used up: free space, or keep the records elsewhere",
        Some(libc::EFBIG) => ". A limit on file sizes is in force (ulimit -f): raise it, or run fewer trials",
        Some(libc::EROFS) => ". That file system is read-only: keep the records elsewhere",
        Some(libc::EACCES | libc::EPERM) => ". Keep the records where you may write",
        Some(libc::EIO) => ". The disk or its controller fails: see the kernel's log",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
