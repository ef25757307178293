//! `linerate import benchlab`: a lab that bench-lab.sh drives becomes a lab file and plans.

use crate::args::Printed;
use crate::output::{faulty, result, usage};
use anyhow::{Context, Result, bail};
use clap::Args;
use linerate_import::benchlab::{Imported, LAB_FILE, MOST_BYTES, Source, import};
use linerate_linux::folders::read_folder;
use linerate_report::pages;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A lab that bench-lab.sh drives, as a lab file and plans.
///
/// Reads the script's configuration, and the folders that it is called with: configuration sets (files for the DUT, a folder for each
/// variant) and pkt-gen presets. Makes a lab file of the hosts, their interfaces, addresses and tools, and a plan whose variants are
/// the sets and whose factors are what the presets vary; presets that are no levels of factors get a plan each.
///
/// The configuration is shell, and is never executed: quotes, variables and ${NAME:=default} are understood, anything that would run
/// something is told. What cannot be carried over is listed with its file and line, here and at the end of each plan. Links are not
/// followed. The lab file says isolated = false, so that nothing is sent before you have made sure of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate import benchlab bench-lab-2nodes.config                    what would become of it
  linerate import benchlab bench-lab-2nodes.config --out mine         writes mine/LAB.toml and mine/PLAN.toml
  linerate import benchlab bench-lab-2nodes.config -c configs -p pktgen.configs/RFC2544 -n 10 --out mine
  linerate plan show mine/PLAN.toml

The letters are the script's own.

Exit status: 0 read; 1 a file or folder cannot be read or written; 2 the configuration has faults, or bad arguments.")]
pub struct Benchlab {
    /// The script's configuration
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,

    /// Configuration sets: a folder with a folder for each
    #[arg(short = 'c', long, value_name = "DIR")]
    pub sets: Option<PathBuf>,

    /// pkt-gen presets: a folder of files
    #[arg(short = 'p', long, value_name = "DIR")]
    pub presets: Option<PathBuf>,

    /// How often each is measured [default: what the configuration says, else 6]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub runs: Option<u64>,

    /// Write the lab file and the plans into this folder, which must be new or empty
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub printed: Printed,
}

/// Runs the verb.
///
/// # Errors
/// Something cannot be read or written.
pub fn run(args: &Benchlab) -> Result<ExitCode> {
    let path = args.config.display().to_string();
    let folder = |path: &Option<_>| path.as_deref().map(read_folder).transpose();
    let source = Source {
        title: title(&args.config),
        config: read(&args.config)?,
        sets: folder(&args.sets)?,
        presets: folder(&args.presets)?,
        runs: args.runs,
        path,
    };
    let imported = import(&source).map_err(|faults| faulty(&source.path, &faults))?;
    if let Some(out) = &args.out {
        write(out, &imported)?;
    }
    let out = args.out.as_ref().map(|out| out.display().to_string());
    result(&args.printed, || &imported, || pages::benchlab(&source.path, &imported, out.as_deref()))
}

/// Title of the lab: the name of the configuration's file, and of its folder, which in the archive names the machine.
fn title(config: &Path) -> String {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let stem =
        config.file_stem().map_or_else(|| "bench-lab".into(), |stem| stem.to_string_lossy().into_owned());
    let above = config.parent().and_then(name).filter(|above| above != "..");
    let title = above.map_or_else(|| stem.clone(), |above| format!("{above}, {stem}"));
    title.chars().map(|c| if c.is_control() { '?' } else { c }).take(100).collect()
}

/// Reads a configuration.
fn read(path: &Path) -> Result<Vec<u8>> {
    let reading = || format!("cannot read the configuration {}", path.display());
    if path.is_dir() {
        return Err(usage(format!(
            "{} is a folder: name the configuration that bench-lab.sh is given with -f, and folders with -c and -p",
            path.display()
        )));
    }
    linerate_linux::files::read(path, MOST_BYTES).with_context(reading)
}

/// Writes the files into a folder that has none.
fn write(out: &Path, imported: &Imported) -> Result<()> {
    let writing = || format!("cannot write into {}", out.display());
    std::fs::create_dir_all(out).with_context(writing)?;
    if std::fs::read_dir(out).with_context(writing)?.next().is_some() {
        bail!("{} is not empty: name a new folder with --out", out.display());
    }
    let lab = (LAB_FILE, imported.lab.as_str());
    let plans = imported.plans.iter().map(|plan| (plan.name.as_str(), plan.text.as_str()));
    for (name, text) in std::iter::once(lab).chain(plans) {
        let path = out.join(name);
        let created = OpenOptions::new().write(true).create_new(true).open(&path);
        let written = created.and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(error) = written {
            let full =
                if error.kind() == ErrorKind::StorageFull { "; make room, or name another disk" } else { "" };
            bail!("cannot write {}: {error}{full}", path.display());
        }
    }
    Ok(())
}
