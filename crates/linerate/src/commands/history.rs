//! `linerate history`: changes of the level of results, and their possible causes.

use crate::prelude::*;
use linerate_import::history as archive;
use linerate_import::netbenches::records::directory as of_records;
use linerate_import::netbenches::{Archive, ResultDirectory};
use linerate_measure::history::{Timelines, campaigns, judge};
use linerate_runner::archive::read_archive;

#[derive(Args)]
#[command(after_help = "Examples:
  linerate history linerate-results               all campaigns below this folder
  linerate history linerate-results --json        with every point, for other programs
  linerate history netbenches/Atom_C2558_4Cores   a part of the public archive

Marks in a plot: * is a point, o is an outlier, - is the level; letters mark the changes.

Exit status: 0 judged, with or without changes; 1 no results, or a folder cannot be read; 2 bad arguments.")]
pub struct History {
    /// Folders with campaigns in subfolders at any depth, or folders laid out like the public archive
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,

    #[command(flatten)]
    printed: Printed,
}

/// Something that was found and could not be used.
#[derive(Debug, Serialize)]
struct Skipped {
    path: PathBuf,
    reason: String,
}

/// Time lines read, and files skipped.
#[derive(Default)]
struct Input {
    timelines: Timelines,
    /// Folders of archives, also of imported ones.
    directories: Vec<ResultDirectory>,
    skipped: Vec<Skipped>,
    /// Files of archives that are broken.
    broken: usize,
}

/// Runs the verb.
///
/// # Errors
/// A folder cannot be read, or holds nothing to judge.
pub fn run(args: &History) -> Exit {
    let progress = Progress::of_files();
    let mut input = Input::default();
    for directory in &args.directories {
        input.read(directory, &progress)?;
    }
    let directories = std::mem::take(&mut input.directories);
    archive::add(
        &mut input.timelines,
        &Archive {
            directories,
            ..Archive::default()
        },
    );
    let timelines = input.timelines.finish();
    if timelines.is_empty() {
        input.skipped.iter().for_each(tell);
        let names = args
            .directories
            .iter()
            .map(|d| d.display().to_string())
            .joined(", ");
        bail!(
            "nothing to judge in {}: neither campaigns of linerate nor results laid out as the archive's are there",
            names
        );
    }
    let history = judge(&timelines, |i| {
        progress.say(format!("time line {} of {}", i + 1, timelines.len()))
    });
    drop(progress);
    let mut record = serde_json::to_value(&history)?;
    record["skipped"] = serde_json::to_value(&input.skipped)?;
    result(
        &args.printed,
        || record,
        || linerate_report::pages::history(&history),
    )?;
    input.skipped.iter().for_each(tell);
    if input.broken > 0 {
        output::tell(format!(
            "{} problems in files of the archive (`linerate import` lists them)",
            input.broken
        ));
    }
    DONE
}

fn tell(skipped: &Skipped) {
    output::tell(format!(
        "left out {}: {}",
        skipped.path.display(),
        skipped.reason
    ));
}

impl Input {
    /// Reads campaigns at any depth, and folders with the layout of the archive.
    fn read(&mut self, directory: &Path, progress: &Progress) -> Result<()> {
        let found = records::find(directory)?;
        for (i, path) in found.iter().enumerate() {
            progress.say(format!("campaign {} of {}", i + 1, found.len()));
            match records::read(path) {
                Ok(stored) => {
                    if let Some(found) = of_records(&stored.campaign, &stored.trials) {
                        self.directories.push(found);
                        continue;
                    }
                    let source = path.display().to_string();
                    campaigns::add(
                        &mut self.timelines,
                        &source,
                        &stored.campaign,
                        &stored.host,
                        &stored.trials,
                        stored.summary.as_ref(),
                    );
                }
                Err(error) => self.skipped.push(Skipped {
                    path: path.clone(),
                    reason: error.to_string(),
                }),
            }
        }
        let read = read_archive(directory, &mut |seen| progress.files(seen))?;
        if !read.directories.is_empty() {
            self.broken += read.problems.len();
        }
        self.directories.extend(read.directories);
        Ok(())
    }
}
