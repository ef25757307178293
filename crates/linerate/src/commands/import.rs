//! `linerate import`: results of other tools, and labs that bench-lab.sh drives.

use crate::prelude::*;

use crate::output::faulty;
use linerate_hosts::folder::MOST_BYTES;
use linerate_import::benchlab::{Imported, LAB_FILE, Source, import};
use linerate_import::netbenches::records::records;
use linerate_import::netbenches::{Archive, FileProblem};
use linerate_linux::files::read_folder;
use linerate_linux::records::ImportStore;
use linerate_runner::archive::visit;
use std::fs::OpenOptions;
use std::io::ErrorKind;

/// Read what other tools use and leave: results become linerate's records, labs become lab files and plans.
#[derive(Args)]
pub struct Import {
    /// Whose results.
    #[command(subcommand)]
    from: ImportFrom,
}

/// Sources of an import.
#[derive(Subcommand)]
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
#[derive(Args)]
#[command(after_help = "Examples:
  linerate import netbenches ~/netbenches                            read and check everything
  linerate import netbenches ~/netbenches/Atom_C2558_4Cores          one machine
  linerate import netbenches ~/netbenches --out records              and write records, a campaign per results folder
  linerate import netbenches . --json | jq '.dir as $dir | .sets[] | select(.agrees == false) | $dir, .set, .disagreement'

With --json, problems of files that belong to no set are printed on standard error.

Exit status: 0 read, whatever it found; 1 the folder cannot be read, holds no results, or the records
cannot be written; 2 bad arguments.")]
pub struct Netbenches {
    /// The archive, or a folder of it
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Write records into this folder, which must be new or empty: a campaign for each results folder
    #[arg(long, value_name = "RECORDS")]
    out: Option<PathBuf>,

    #[command(flatten)]
    printed: Printed,
}

/// A lab that bench-lab.sh drives, as a lab file and plans.
///
/// Reads the script's configuration, and the folders that it is called with: configuration sets (files for the DUT, a folder for each
/// variant) and pkt-gen presets. Makes a lab file of the hosts, their interfaces, addresses and tools, and a plan whose variants are
/// the sets and whose factors are what the presets vary; presets that are no levels of factors get a plan each.
///
/// The configuration is shell, and is never executed: quotes, variables and ${NAME:=default} are understood, anything that would run
/// something is told. What cannot be carried over is listed with its file and line, here and at the end of each plan. Links are not
/// followed. The lab file says isolated = false, so that nothing is sent before you have made sure of it.
#[derive(Args)]
#[command(after_help = "Examples:
  linerate import benchlab bench-lab-2nodes.config                    which lab file and plans it would give
  linerate import benchlab bench-lab-2nodes.config --out mine         writes mine/LAB.toml and mine/PLAN.toml
  linerate import benchlab bench-lab-2nodes.config -c configs -p pktgen.configs/RFC2544 -n 10 --out mine
  linerate plan show mine/PLAN.toml

The short options -c, -p and -n are the script's own.

Exit status: 0 read; 1 a file or folder cannot be read or written; 2 the configuration has faults, or bad arguments.")]
pub struct Benchlab {
    /// The script's configuration
    #[arg(value_name = "CONFIG")]
    config: PathBuf,

    /// Configuration sets: a folder that has a subfolder for each set
    #[arg(short = 'c', long, value_name = "DIR")]
    sets: Option<PathBuf>,

    /// pkt-gen presets: a folder of files
    #[arg(short = 'p', long, value_name = "DIR")]
    presets: Option<PathBuf>,

    /// How many times each set and preset is measured [default: what the configuration says, else 6]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: Option<u64>,

    /// Write the lab file and the plans into this folder, which must be new or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    #[command(flatten)]
    printed: Printed,
}

/// Runs the verb.
///
/// # Errors
/// Nothing can be read, or the records cannot be written.
pub fn run(args: &Import) -> Exit {
    match &args.from {
        ImportFrom::Netbenches(args) => netbenches(args),
        ImportFrom::Benchlab(args) => benchlab(args),
    }
}

fn netbenches(args: &Netbenches) -> Exit {
    let line = Progress::of_files();
    let store = args.out.as_deref().map(ImportStore::create).transpose()?;
    let (mut campaigns, mut trials) = (0, 0);
    let mut directories = Vec::new();
    let mut lines = BufWriter::new(Output);
    let archive = visit(
        &args.directory,
        store.is_some(),
        &mut |seen| line.files(seen),
        |mut directory| {
            if args.printed.is_json() {
                let _ = writeln!(lines, "{}", serde_json::to_string(&directory)?);
            }
            if let Some(store) = &store {
                if let Some(records) = records(directory.clone(), env!("CARGO_PKG_VERSION")) {
                    let summary = summarise(&records.campaign, &records.trials, Stopped::Trials, 0);
                    store.write(&records.campaign, &records.host, &records.trials, &summary)?;
                    campaigns += 1;
                    trials += records.trials.len();
                }
                directory
                    .sets
                    .iter_mut()
                    .flat_map(|s| &mut s.runs)
                    .for_each(|run| run.log_samples = Vec::new());
            }
            directories.push(directory);
            Ok::<(), anyhow::Error>(())
        },
    )?;
    drop(line);
    if directories.is_empty() {
        bail!(
            "{} holds no results: no logs (bench.*.receiver), medians (*.pps) or tables (*.data) in {} files",
            args.directory.display(),
            archive.files.values().sum::<u64>()
        );
    }
    let mut written = "Nothing was written: --out RECORDS writes records.".to_string();
    if let Some(store) = store {
        let path = store.directory().display().to_string();
        store.finish()?;
        written = format!(
            "In {path}: {} with {}. linerate show {path}/NAME prints one.",
            counted(campaigns, "campaign"),
            counted(trials, "trial")
        );
    }
    directories.sort_by(|a, b| a.path.cmp(&b.path));
    let archive = Archive {
        directories,
        ..archive
    };
    if args.printed.is_json() {
        drop(lines);
        archive
            .problems
            .iter()
            .filter(|p| p.set.is_none())
            .for_each(tell);
    } else {
        let mut page = pages::archive(&archive);
        page.gap();
        page.say(written);
        show(args.printed.format(), &page);
    }
    DONE
}

fn tell(problem: &FileProblem) {
    output::tell(format!(
        "{}: {}",
        problem.path.escape_debug(),
        problem.reason
    ));
}

fn benchlab(args: &Benchlab) -> Exit {
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
    result(
        &args.printed,
        || &imported,
        || pages::benchlab(&source.path, &imported, out.as_deref()),
    )
}

/// Title of the lab: the name of the configuration's file, and of its folder, which in the archive names the machine.
fn title(config: &Path) -> String {
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let stem = config.file_stem().map_or_else(
        || "bench-lab".into(),
        |stem| stem.to_string_lossy().into_owned(),
    );
    let above = config.parent().and_then(name).filter(|above| above != "..");
    let title = above.map_or_else(|| stem.clone(), |above| format!("{above}, {stem}"));
    title
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .take(100)
        .collect()
}

/// Reads a configuration.
fn read(path: &Path) -> Result<Vec<u8>> {
    let reading = || input::cannot_read("the configuration ", path);
    if path.is_dir() {
        bail_usage!(
            "{} is a folder: name the configuration that bench-lab.sh is given with -f, and folders with -c and -p",
            path.display()
        );
    }
    linerate_linux::files::read(path, MOST_BYTES).with_context(reading)
}

/// Writes the files into a folder that has none.
fn write(out: &Path, imported: &Imported) -> Result<()> {
    let writing = || format!("cannot write into {}", out.display());
    std::fs::create_dir_all(out).with_context(writing)?;
    if std::fs::read_dir(out)
        .with_context(writing)?
        .next()
        .is_some()
    {
        bail!(
            "{} is not empty: name a new folder with --out",
            out.display()
        );
    }
    let lab = (LAB_FILE, imported.lab.as_str());
    let plans = imported
        .plans
        .iter()
        .map(|plan| (plan.name.as_str(), plan.text.as_str()));
    for (name, text) in std::iter::once(lab).chain(plans) {
        let path = out.join(name);
        let created = OpenOptions::new().write(true).create_new(true).open(&path);
        let written = created.and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(error) = written {
            let full = when(
                error.kind() == ErrorKind::StorageFull,
                "; make room, or name another disk",
            );
            bail!("cannot write {}: {error}{full}", path.display());
        }
    }
    Ok(())
}
