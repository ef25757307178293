//! `linerate import`: results of other tools. [`super::benchlab`] imports labs.

use super::benchlab::Benchlab;
use crate::args::Printed;
use crate::output::{self, Output, show};
use crate::progress::Progress;
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use linerate_import::netbenches::records::{self, records};
use linerate_import::netbenches::{Archive, FileProblem, ResultDirectory};
use linerate_linux::netbenches::visit;
use linerate_linux::records::ImportStore;
use linerate_measure::strategy::Stopped;
use linerate_measure::summary::summarise;
use linerate_report::document::Tone;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Read what other tools use and leave: results become linerate's records, labs become lab files and plans.
#[derive(Debug, Args)]
pub struct Import {
    /// Whose results.
    #[command(subcommand)]
    pub from: ImportFrom,
}

/// What can be imported.
#[derive(Debug, Subcommand)]
pub enum ImportFrom {
    /// The public FreeBSD forwarding archive, any part of it, or a tree laid out like it.
    Netbenches(Netbenches),
    /// A lab that bench-lab.sh drives: its configuration, configuration sets and pkt-gen presets, as a lab file and plans.
    Benchlab(Benchlab),
}

/// The public FreeBSD forwarding archive (netbenches), any part of it, or a tree laid out like it.
///
/// Reads pkt-gen's logs, the medians published beside them, tables, configurations and facts. Recomputes each run's median as
/// the archive's script does, holds it against what was published, and names every set that disagrees, with what differs. A second
/// figure rests on the steady part of each run, found by where its rate changes. Broken files are listed with the reason; they
/// neither stop the import nor become numbers. Nothing is executed; links are not followed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate import netbenches ~/netbenches                            read and check everything
  linerate import netbenches ~/netbenches/Atom_C2558_4Cores          one machine
  linerate import netbenches ~/netbenches --out records              and write records, a campaign per results folder
  linerate import netbenches . --json | jq 'select(.agrees == false) | .dir, .set, .disagreement'

With --json, problems of files that belong to no set are on standard error.

Exit status: 0 read, whatever it found; 1 the folder cannot be read, holds no results, or the records
cannot be written; 2 bad arguments.")]
pub struct Netbenches {
    /// The archive, or a folder of it
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,

    /// Write records into this folder, which must be new or empty: a campaign for each results folder
    #[arg(long, value_name = "RECORDS")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub printed: Printed,
}

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
    let line = Progress::of_files();
    let mut out = args.out.as_deref().map(Records::create).transpose()?;
    let mut directories = Vec::new();
    let mut lines = BufWriter::new(Output);
    let archive = visit(&args.directory, out.is_some(), &mut |seen| line.files(seen), |mut directory| {
        if args.printed.is_json() {
            for line in records::lines(&directory)? {
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

    /// A message about the records written, and the command that shows them.
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
    output::tell(format!("{}: {}", problem.path.escape_debug(), problem.reason));
}
