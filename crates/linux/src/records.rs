//! Records on disk: a folder per campaign, in which every trial is safe as soon as it is over.
//!
//! Files: `campaign.json`, `host.json`, `trials.jsonl` (one line per trial, only ever appended to), `summary.json`; `profiles/N.stack` for each slot that was
//! profiled; `facts.jsonl` with a line for each slot whose DUT was asked how it is configured.

mod reader;

use crate::error::{Doing, Error};
use crate::files;
use linerate_measure::calendar;
use linerate_measure::record::{Campaign, HostFacts, SlotFacts, Summary, TrialRecord};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use reader::{StoredCampaign, find, has_ended, head, is_running, read, verdict};

const CAMPAIGN: &str = "campaign.json";
const HOST: &str = "host.json";
const TRIALS: &str = "trials.jsonl";
const SUMMARY: &str = "summary.json";
const FACTS: &str = "facts.jsonl";
/// Bytes of that file: the facts of slots beyond it are left out.
const MOST_FACTS: u64 = 64 << 20;
/// The folder of folded stacks.
const PROFILES: &str = "profiles";

/// The folder of a campaign that is being run.
#[derive(Debug)]
pub struct RecordStore {
    directory: PathBuf,
    /// To the thread that puts trials on the disk while the next one runs.
    lines: Option<SyncSender<Line>>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl RecordStore {
    /// Makes its folder; see [`make_folder`].
    ///
    /// # Errors
    /// The folder cannot be made, or `explicit_out` has something in it.
    pub fn create(base: &Path, name: &str, explicit_out: Option<&Path>) -> Result<Self, Error> {
        let directory = make_folder(base, name, explicit_out)?;
        let file = open_trials(&directory, OpenOptions::new().create_new(true))?;
        sync_directory(&directory)?;
        if let Some(parent) = directory.parent().filter(|p| !p.as_os_str().is_empty()) {
            sync_directory(parent)?;
        }
        RecordStore::start(directory, file, 0)
    }

    /// Opens the folder of a stopped campaign, to resume it, and reads its records. An incomplete last line is cut away, and drafts of
    /// documents are removed; everything else stays.
    ///
    /// # Errors
    /// The folder is no record, it cannot be written, or another process is writing it.
    pub fn reopen(directory: &Path) -> Result<(Self, StoredCampaign), Error> {
        read(directory)?; // before anything is opened for writing
        let file = open_trials(directory, OpenOptions::new().create(true))?;
        let (path, stored) = (directory.join(TRIALS), read(directory)?);
        if stored.is_damaged {
            return Err(Error::Refused(format!(
                "{} cannot be resumed: {}",
                directory.display(),
                stored.missing.join("; ")
            )));
        }
        file.set_len(reader::whole_lines(&path)?)
            .map_err(failed("shorten", &path))?;
        // Nobody else writes here now.
        files::remove_drafts(directory, &[CAMPAIGN, HOST, SUMMARY]);
        let store = RecordStore::start(directory.to_path_buf(), file, stored.trials.len() as u64)?;
        Ok((store, stored))
    }

    /// Starts the thread on a file that was opened for appending and has `trials` whole trials.
    fn start(directory: PathBuf, file: File, trials: u64) -> Result<Self, Error> {
        let (lines, receiver) = sync_channel(WAITING);
        let mut log = TrialLog::new(file, directory.join(TRIALS), trials)?;
        let thread = Builder::new()
            .name("records".into())
            .spawn(move || log.run(&receiver));
        let thread = thread.doing("start the thread that writes trials")?;
        Ok(RecordStore {
            directory,
            lines: Some(lines),
            thread: Some(thread),
        })
    }

    /// Nothing was measured: takes the folder away again, if nothing has been written into it.
    pub fn abandon(mut self) {
        let path = self.directory.join(TRIALS);
        let untouched = self.finish().is_ok() && fs::metadata(&path).is_ok_and(|m| m.len() == 0);
        if untouched && fs::remove_file(&path).is_ok() {
            // Fails, and may, where the folder holds anything else.
            let _ = fs::remove_dir(&self.directory);
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes `campaign.json`, whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_campaign(&self, campaign: &Campaign) -> Result<(), Error> {
        self.write_document(CAMPAIGN, campaign)
    }

    /// Writes `host.json`, whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_host(&self, host: &HostFacts) -> Result<(), Error> {
        self.write_document(HOST, host)
    }

    /// Appends a trial to `trials.jsonl` and requests a sync to disk, without waiting for that: the disk must not delay the next
    /// trial. A later call, or [`RecordStore::finish`], reports errors.
    ///
    /// # Errors
    /// This or an earlier trial could not be written. Those before it are whole on the disk.
    pub fn append_trial(&mut self, trial: &TrialRecord) -> Result<(), Error> {
        let line =
            serde_json::to_string(trial).unwrap_or_else(|_| unreachable!("a trial can be written"));
        if self
            .lines
            .as_ref()
            .is_some_and(|lines| lines.send((trial.trial, line + "\n")).is_ok())
        {
            return Ok(());
        }
        // The thread ends before the last line only when it fails.
        self.finish()?;
        let path = self.directory.join(TRIALS);
        let path = path.display();
        Err(Error::Refused(format!(
            "{path} takes no more trials after the failure that was reported before"
        )))
    }

    /// The facts of slots that were asked. A line that was cut off is taken away.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn facts(&self) -> Result<Vec<SlotFacts>, Error> {
        let facts = reader::facts(&self.directory)?.documents;
        let path = self.directory.join(FACTS);
        if path.exists() {
            let shorten = |whole| OpenOptions::new().write(true).open(&path)?.set_len(whole);
            shorten(reader::whole_lines(&path)?).map_err(failed("shorten", &path))?;
        }
        Ok(facts)
    }

    /// Appends how a slot's DUT is configured to `facts.jsonl`, and waits until it is on the disk. A file of [`MOST_FACTS`] takes no
    /// more.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append_facts(&self, facts: &SlotFacts) -> Result<(), Error> {
        let path = self.directory.join(FACTS);
        let line = serde_json::to_string(facts)
            .unwrap_or_else(|_| unreachable!("facts can be written"))
            + "\n";
        let append = || {
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            if file.metadata()?.len() + line.len() as u64 <= MOST_FACTS {
                file.write_all(line.as_bytes())?;
                file.sync_data()?;
            }
            Ok(())
        };
        append().map_err(failed("write", &path))
    }

    /// Writes `summary.json`, whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written. The trials are safe all the same.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), Error> {
        self.write_document(SUMMARY, summary)
    }

    /// Writes the folded stacks of a slot, of a kind (`-locks`; samples have none), and returns the name of the file below the folder.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write_stacks(&self, slot: usize, kind: &str, lines: &[String]) -> Result<String, Error> {
        let name = stacks_of(slot, kind);
        let path = self.directory.join(&name);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let made = fs::create_dir_all(self.directory.join(PROFILES));
        made.and_then(|()| fs::write(&path, text))
            .map_err(failed("write", &path))?;
        Ok(name)
    }

    /// Waits until every trial is on the disk. After that, none can be added.
    ///
    /// # Errors
    /// A trial could not be written.
    pub fn finish(&mut self) -> Result<(), Error> {
        drop(self.lines.take());
        let ended = self.thread.take().map_or(Ok(Ok(())), JoinHandle::join);
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn write_document(&self, name: &str, document: &impl serde::Serialize) -> Result<(), Error> {
        write_document(&self.directory, name, document)
    }
}

/// Writes a document into a folder, whole or not at all.
///
/// # Errors
/// The document cannot be written.
pub fn write_document(
    folder: &Path,
    name: &str,
    document: &impl serde::Serialize,
) -> Result<(), Error> {
    let path = folder.join(name);
    files::replace(&path, document).map_err(failed("write", &path))?;
    sync_directory(folder)
}

/// Makes the folder `<base>/<UTC time>-<name>/`, with `-2`, `-3` behind it if there is one already; or the folder `explicit_out`,
/// which must be new or empty.
///
/// # Errors
/// The folder cannot be made, or `explicit_out` has something in it.
pub fn make_folder(base: &Path, name: &str, explicit_out: Option<&Path>) -> Result<PathBuf, Error> {
    match explicit_out {
        Some(out) => make_empty(out),
        None => Ok(make_new(base, &stamped(name), "", |path| {
            DirBuilder::new().create(path)
        })?
        .0),
    }
}

/// The file of a slot's stacks of a kind, below the campaign's folder.
fn stacks_of(slot: usize, kind: &str) -> String {
    format!("{PROFILES}/{}{kind}.stack", slot + 1)
}

/// Lines that may wait for the disk. With more, the campaign waits, so that a slow disk does not fill the memory.
const WAITING: usize = 1024;

/// A trial's number and its line, newline included.
type Line = (u64, String);

impl Drop for RecordStore {
    fn drop(&mut self) {
        drop(self.lines.take());
        // `finish` reports failures; here it only matters that the lines reach the disk.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A file of trials, one line each. It holds only whole lines, even if the disk fails.
#[derive(Debug)]
pub struct TrialLog {
    file: File,
    path: PathBuf,
    /// Length of the whole lines.
    bytes: u64,
    /// Number of whole lines, each a trial.
    trials: u64,
    /// How many of them the disk has confirmed.
    safe: u64,
}

impl Drop for TrialLog {
    fn drop(&mut self) {
        // Said, as by a journal: a program that another thread starts may have this descriptor for a moment.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl TrialLog {
    /// Makes the file `explicit`, or `<base>/<UTC time>-<name>.jsonl`.
    ///
    /// # Errors
    /// The file cannot be made, or `explicit` is there already.
    pub fn create(base: &Path, name: &str, explicit: Option<&Path>) -> Result<Self, Error> {
        let make = |path: &Path| OpenOptions::new().append(true).create_new(true).open(path);
        let (path, file) = match explicit {
            Some(path) => (
                path.to_path_buf(),
                make(path).map_err(failed("make", path))?,
            ),
            None => make_new(base, &stamped(name), ".jsonl", make)?,
        };
        TrialLog::new(file, path, 0)
    }

    /// A file that was opened for appending and has `trials` whole trials.
    fn new(file: File, path: PathBuf, trials: u64) -> Result<Self, Error> {
        let bytes = file.metadata().map_err(failed("read", &path))?.len();
        Ok(TrialLog {
            file,
            path,
            bytes,
            trials,
            safe: trials,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a trial on the disk. `line`: newline included.
    ///
    /// # Errors
    /// The trial cannot be written; those before it are whole.
    pub fn write(&mut self, trial: u64, line: &str) -> Result<(), Error> {
        self.append(trial, line)?;
        self.sync(trial)
    }

    fn run(&mut self, lines: &Receiver<Line>) -> Result<(), Error> {
        while let Ok((mut last, line)) = lines.recv() {
            self.append(last, &line)?;
            // Lines that came in meanwhile go to the disk by the same fdatasync.
            while let Ok((trial, line)) = lines.try_recv() {
                self.append(trial, &line)?;
                last = trial;
            }
            self.sync(last)?;
        }
        Ok(())
    }

    fn sync(&mut self, last: u64) -> Result<(), Error> {
        self.file.sync_data().map_err(|e| self.failure(last, e))?;
        self.safe = self.trials;
        Ok(())
    }

    fn append(&mut self, trial: u64, line: &str) -> Result<(), Error> {
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // A part of the line may be there. Without it, the file holds whole trials only. Should this fail too, the
            // reader leaves an incomplete last line out.
            if self
                .file
                .set_len(self.bytes)
                .and_then(|()| self.file.sync_data())
                .is_ok()
            {
                self.safe = self.trials;
            }
            return Err(self.failure(trial, error));
        }
        self.bytes += line.len() as u64;
        self.trials += 1;
        Ok(())
    }

    fn failure(&self, trial: u64, source: io::Error) -> Error {
        let operation = format!("write trial {trial} to {}", self.path.display());
        let detail = format!(
            "; the first {} trials are safe there{}",
            self.safe,
            advice(&source)
        );
        Error::System {
            operation,
            source,
            detail,
        }
    }
}

/// The folder that takes the campaigns of one import.
#[derive(Debug)]
pub struct ImportStore {
    directory: PathBuf,
    /// The folder was not there before.
    made: bool,
}

impl ImportStore {
    /// Makes the folder, which must be new or empty.
    ///
    /// # Errors
    /// The folder cannot be made, or has something in it.
    pub fn create(directory: &Path) -> Result<Self, Error> {
        let made = !directory.exists();
        Ok(ImportStore {
            directory: make_empty(directory)?,
            made,
        })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes a campaign's folder under another name, puts it on the disk with one call, and renames it: a reader sees the
    /// whole campaign or none.
    ///
    /// # Errors
    /// Something cannot be written. Campaigns written before are whole.
    pub fn write(
        &self,
        campaign: &Campaign,
        host: &HostFacts,
        trials: &[TrialRecord],
        summary: &Summary,
    ) -> Result<PathBuf, Error> {
        let draft = self.directory.join(".new");
        let write = || -> io::Result<()> {
            fs::create_dir(&draft)?;
            files::write(&draft.join(CAMPAIGN), campaign)?;
            files::write(&draft.join(HOST), host)?;
            let mut lines = BufWriter::new(File::create(draft.join(TRIALS))?);
            for trial in trials {
                writeln!(lines, "{}", serde_json::to_string(trial)?)?;
            }
            lines.flush()?;
            files::write(&draft.join(SUMMARY), summary)?;
            // One call for all files of a campaign, instead of one for each.
            Ok(rustix::fs::syncfs(File::open(&draft)?)?)
        };
        let rename = |path: &Path| match fs::rename(&draft, path) {
            Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty => {
                Err(ErrorKind::AlreadyExists.into())
            }
            other => other,
        };
        let written = write().map_err(failed("write", &draft));
        let named = written
            .and_then(|()| make_new(&self.directory, &sanitised(&campaign.name), "", rename));
        // A part of a campaign is not a record; the error to report is the first one.
        Ok(named.inspect_err(|_| drop(fs::remove_dir_all(&draft)))?.0)
    }

    /// Puts the campaigns' names on the disk.
    ///
    /// # Errors
    /// The system refuses.
    pub fn finish(self) -> Result<(), Error> {
        sync_directory(&self.directory)
    }
}

impl Drop for ImportStore {
    /// A failed import leaves nothing behind.
    fn drop(&mut self) {
        if self.made {
            // Fails, and may, where anything is in it.
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

/// Opens the file of trials to append to it. This process holds it as long as it is open.
fn open_trials(directory: &Path, options: &mut OpenOptions) -> Result<File, Error> {
    let path = directory.join(TRIALS);
    let file = options
        .append(true)
        .open(&path)
        .map_err(failed("open", &path))?;
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
    let name: String = name
        .chars()
        .take(LONGEST_NAME)
        .map(|c| if allowed(c) { c } else { '-' })
        .collect();
    if name.trim_matches('.').is_empty() {
        "campaign".into()
    } else {
        name
    }
}

/// `20260131T235959Z-NAME`, which sorts by time and is a file name everywhere.
fn stamped(name: &str) -> String {
    format!("{}-{}", utc_now().replace(['-', ':'], ""), sanitised(name))
}

/// `2026-01-31T23:59:59Z`, as RFC 3339 has it.
pub fn rfc3339_utc(time: SystemTime) -> String {
    // A clock before 1970 has not been set; then the epoch is as good as any time.
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs();
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
        let suffix = if number == 1 {
            String::new()
        } else {
            format!("-{number}")
        };
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
pub(crate) fn sync_directory(directory: &Path) -> Result<(), Error> {
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
        Error::System {
            operation: format!("{operation} {}", path.display()),
            source,
            detail,
        }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => ". Free space there, or keep the records on another file system",
        Some(libc::EDQUOT) => {
            ". The disk quota is used up: free space, or choose another folder with --out"
        }
        Some(libc::EFBIG) => {
            ". A limit on file sizes is in force (ulimit -f): raise it, or run fewer trials"
        }
        Some(libc::EROFS) => ". That file system is read-only: choose another folder with --out",
        Some(libc::EACCES | libc::EPERM) => ". Keep the records where you may write",
        Some(libc::EIO) => ". The disk or its controller fails: see the kernel's log",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
