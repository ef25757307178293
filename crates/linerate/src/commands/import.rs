//! `linerate import`: results of other tools. What describes labs is in [`super::benchlab`].

use crate::cli::{Import, ImportFrom, Netbenches};
use crate::output::Output;
use crate::output::show;
use crate::progress::Progress;
use anyhow::{Result, bail};
use linerate_import::netbenches::records::records;
use linerate_import::netbenches::{Archive, FileProblem, ResultDirectory, export};
use linerate_linux::netbenches::{Progress as Seen, visit};
use linerate_linux::records::ImportStore;
use linerate_measure::strategy::Stopped;
use linerate_measure::summary::summarise;
use linerate_report::document::Tone;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

/// Runs the verb.
///
/// # Errors
/// Nothing can be read, or the records cannot be written.
pub fn run(args: &Import) -> Result<ExitCode> {
    match &args.from {
        ImportFrom::Netbenches(args) => netbenches(args),
        ImportFrom::Benchlab(args) => super::benchlab::run(args),
    }
}

fn netbenches(args: &Netbenches) -> Result<ExitCode> {
    let line = Progress::of_quick_steps();
    let mut progress = |seen: Seen| {
        // A clock for each file would cost more than the file.
        if seen.files.is_multiple_of(64) {
            line.say(format!("{} files, {} MB read", seen.files, seen.bytes / 1_000_000));
        }
    };
    let mut out = args.out.as_deref().map(Records::create).transpose()?;
    let mut directories = Vec::new();
    let mut lines = BufWriter::new(Output);
    let archive = visit(&args.directory, out.is_some(), &mut progress, |mut directory| {
        if args.printed.is_json() {
            for line in export::lines(&directory)? {
                let _ = writeln!(lines, "{line}");
            }
        }
        if let Some(out) = &mut out {
            out.write(directory.clone())?;
            directory.sets.iter_mut().flat_map(|s| &mut s.runs).for_each(|run| run.log_samples = Vec::new());
        }
        directories.push(directory);
        Ok::<(), anyhow::Error>(())
    })?;
    drop(line);
    if directories.is_empty() {
        bail!(
            "{} holds no results: no logs (bench.*.receiver), medians (*.pps) or tables (*.data) in {} files",
            args.directory.display(),
            archive.files.values().sum::<u64>()
        );
    }
    let written = out.map(Records::finish).transpose()?;
    directories.sort_by(|a, b| a.path.cmp(&b.path));
    let archive = Archive { directories, ..archive };
    if args.printed.is_json() {
        drop(lines);
        archive.problems.iter().filter(|p| p.set.is_none()).for_each(tell);
    } else {
        let mut page = linerate_report::pages::archive(&archive);
        page.gap();
        let written = written.unwrap_or("Nothing was written: --out RECORDS writes records.".into());
        page.paragraph(&written, Tone::Plain);
        show(args.printed.format(), &page);
    }
    Ok(ExitCode::SUCCESS)
}

/// Records that are being written.
struct Records {
    store: ImportStore,
    campaigns: usize,
    trials: usize,
}

impl Records {
    fn create(directory: &Path) -> Result<Self> {
        Ok(Records { store: ImportStore::create(directory)?, campaigns: 0, trials: 0 })
    }

    fn write(&mut self, directory: ResultDirectory) -> Result<()> {
        let Some(records) = records(directory, env!("CARGO_PKG_VERSION")) else { return Ok(()) };
        let summary = summarise(&records.campaign, &records.trials, Stopped::Trials, 0);
        self.store.write(&records, &summary)?;
        self.campaigns += 1;
        self.trials += records.trials.len();
        Ok(())
    }

    /// What was written, and how to look at it.
    fn finish(self) -> Result<String> {
        let path = self.store.directory().display().to_string();
        self.store.finish()?;
        Ok(format!(
            "{} campaigns with {} trials are in {path}: linerate show {path}/NAME prints one.",
            self.campaigns, self.trials
        ))
    }
}

fn tell(problem: &FileProblem) {
    eprintln!("linerate: {}: {}", problem.path.escape_debug(), problem.reason);
}
