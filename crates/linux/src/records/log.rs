//! The file of trials, and the thread that puts them on the disk while the next one runs.

use super::{advice, failed};
use crate::error::{Doing, Error};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Lines that may wait for the disk. With more, the campaign waits, so that a slow disk does not fill the memory.
const WAITING: usize = 1024;

/// A trial's number and its line, newline included.
type Line = (u64, String);

/// The campaign's end of the thread.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    lines: Option<SyncSender<Line>>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Writer {
    /// Starts the thread on a file that was opened for appending and has `trials` whole trials.
    pub fn start(file: File, path: PathBuf, trials: u64) -> Result<Self, Error> {
        let (sender, receiver) = sync_channel(WAITING);
        let mut log = TrialLog::new(file, path.clone(), trials)?;
        let thread = Builder::new().name("records".into()).spawn(move || log.run(&receiver));
        let thread = thread.doing("start the thread that writes trials")?;
        Ok(Writer { path, lines: Some(sender), thread: Some(thread) })
    }

    /// Hands a line over.
    pub fn append(&mut self, trial: u64, line: String) -> Result<(), Error> {
        if self.lines.as_ref().is_some_and(|lines| lines.send((trial, line)).is_ok()) {
            return Ok(());
        }
        // The thread ends before the last line only when it fails.
        self.finish()?;
        let path = self.path.display();
        Err(Error::Refused(format!("{path} takes no more trials after the failure that was reported before")))
    }

    /// Waits for everything that was handed over. A failure is reported once.
    pub fn finish(&mut self) -> Result<(), Error> {
        drop(self.lines.take());
        let ended = self.thread.take().map_or(Ok(Ok(())), JoinHandle::join);
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Writer {
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
    /// Their number.
    trials: u64,
    /// How many of them the disk has confirmed.
    safe: u64,
}

impl TrialLog {
    /// A file that was opened for appending and has `trials` whole trials.
    pub(super) fn new(file: File, path: PathBuf, trials: u64) -> Result<Self, Error> {
        let bytes = file.metadata().map_err(failed("read", &path))?.len();
        Ok(TrialLog { file, path, bytes, trials, safe: trials })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a trial on the disk. `line`: newline included.
    ///
    /// # Errors
    /// It cannot be written; those before it are whole.
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
            if self.file.set_len(self.bytes).and_then(|()| self.file.sync_data()).is_ok() {
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
        let detail = format!("; the first {} trials are safe there{}", self.safe, advice(&source));
        Error::System { operation, source, detail }
    }
}
