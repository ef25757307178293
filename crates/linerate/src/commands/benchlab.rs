//! `linerate import benchlab`: a lab that bench-lab.sh drives becomes a lab file and plans.

use crate::cli::Benchlab;
use crate::output::{faulty, result, usage};
use anyhow::{Context, Result, bail};
use linerate_import::benchlab::{Imported, LAB_FILE, MOST_BYTES, Source, import};
use linerate_linux::folders::read_folder;
use linerate_report::pages;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

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
    result(&args.printed, || &imported, || pages::benchlab(&source.path, &imported, out.as_deref()))?;
    Ok(ExitCode::SUCCESS)
}

/// What the lab is called: as the configuration's file, and the folder that it is in, which in the archive names the machine.
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
