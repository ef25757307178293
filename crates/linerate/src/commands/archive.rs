//! `linerate archive`: campaigns as a dataset.

use super::each::each;
use crate::prelude::*;
use linerate_report::pages::Records;
use linerate_runner::dataset::{Added, Dataset, Partition};

/// Keep campaigns in an archive that other programs query.
#[derive(Args)]
pub struct Archive {
    #[command(subcommand)]
    what: What,
}

/// The verbs of an archive.
#[derive(Subcommand)]
pub enum What {
    /// Add campaigns
    ///
    /// Writes three files for each campaign: trials, cells and facts. Adding a campaign again changes nothing. A campaign that was
    /// continued replaces its earlier state, never the reverse. Several linerates
    /// may add at the same time, also from several hosts, and a reader never sees a part of a file.
    #[command(after_help = "Examples:
  linerate archive add linerate-results --to archive
  linerate archive add last --to /mnt/archive --lab apu2      the campaign belongs to the lab apu2
  linerate archive add ~/netbenches --to archive              the public archive
  duckdb -init queries/tables.sql -f queries/median-by-machine-and-release.sql      in the folder of the archive

The archive may be on a mounted object store: adding takes a rename, and neither links nor locks.

Exit status: 0 everything is in the archive; 1 something was left out, with the reason; 2 bad arguments; 130 stopped
by Ctrl-C: what is not named as left out is in the archive.")]
    Add(Add),
    /// Read the whole archive, and say what does not agree
    ///
    /// Every file must be readable and of a known version, every row in the folder of its lab and month, no campaign in two files, and
    /// each cell must count the trials that are there. It also names files that killed writers left behind.
    #[command(after_help = "Exit status: 0 it agrees; 1 it does not; 2 bad arguments.")]
    Check(Of),
    /// Make one file of the many of each month
    ///
    /// The new folder replaces the old one in one step, so that a kill neither loses nor doubles a row. Removes the files that killed
    /// writers left behind. Waits for those that are adding. A query that reads meanwhile may find a file gone, and has to be repeated.
    #[command(
        after_help = "Exit status: 0 done; 1 a month stays as it was, with the reason; 2 bad arguments."
    )]
    Compact(Of),
}

/// Campaigns that are added.
#[derive(Args)]
pub struct Add {
    /// Campaigns, folders of campaigns, or trees laid out as the public archive
    #[arg(required = true, value_name = "DIR", value_parser = handle::folder)]
    directories: Vec<PathBuf>,
    /// The archive's folder; new, or an archive
    #[arg(long, value_name = "ROOT")]
    to: PathBuf,
    /// Name of the campaigns' lab [default: the lab under which the archive has the campaign, else where its trials ran: namespaces, hosts, simulated or imported]
    #[arg(long, value_name = "NAME", value_parser = Partition::lab)]
    lab: Option<String>,
}

/// An archive.
#[derive(Args)]
pub struct Of {
    /// The archive's folder
    #[arg(value_name = "ROOT")]
    root: PathBuf,
}

/// Runs the verb.
///
/// # Errors
/// The archive cannot be read or written.
pub fn run(args: &Archive) -> Exit {
    match &args.what {
        What::Add(args) => add(args),
        What::Check(args) => check(&args.root),
        What::Compact(args) => compact(&args.root),
    }
}

fn add(args: &Add) -> Exit {
    interrupt::install();
    let archive = Dataset::create(&args.to)?;
    let mut code = ExitCode::SUCCESS;
    let [mut new, mut replaced, mut same] = [0; 3];
    let mut failed = false;
    for directory in &args.directories {
        let one = [directory.clone()];
        let ended = each(&one, |folder, records| {
            if interrupted() {
                bail!("{folder} and all behind it, because you stopped linerate");
            }
            match archive.add(records, &origin(folder, records), args.lab.as_deref()) {
                Ok(Added::New) => new += 1,
                Ok(Added::Replaced) => replaced += 1,
                Ok(Added::Same) => same += 1,
                Ok(Added::Kept(there)) => {
                    same += 1;
                    tell(format!(
                        "{folder} has {}, and the archive has {there} of the same campaign: they stay",
                        counted(records.trials.len(), "trial")
                    ));
                }
                Err(why) => {
                    failed = true;
                    tell(format!("left out: {folder}: {why}"));
                }
            }
            Ok(())
        });
        match ended {
            Ok(ended) if ended == ExitCode::SUCCESS => {}
            Ok(ended) => code = ended,
            Err(why) => {
                tell(format!("left out: {why}"));
                code = FAILED.into();
            }
        }
    }
    if interrupted() {
        code = INTERRUPTED.into();
    } else if failed {
        code = FAILED.into();
    }
    let others = when(code != ExitCode::SUCCESS, "; others are left out");
    print(&format!(
        "{}: {new} added, {replaced} replaced, {same} there already{others}\n",
        counted(new + replaced + same, "campaign")
    ));
    Ok(code)
}

/// The folder of a campaign, wherever it is read from.
fn origin(folder: &str, records: &Records<'_>) -> String {
    if let Some(imported) = &records.campaign.imported {
        return imported.path.clone();
    }
    let name = Path::new(folder).file_name();
    name.map_or(String::new(), |name| name.to_string_lossy().into_owned())
}

fn check(root: &Path) -> Exit {
    let found = Dataset::open(root)?.check()?;
    let mut text = String::new();
    for fault in &found.faults {
        text += &format!("{}\n", fault.escape_debug());
    }
    for draft in &found.drafts {
        text += &format!(
            "{} is being written, or its writer was killed; no reader sees it\n",
            draft.escape_debug()
        );
    }
    text += &format!(
        "{} with {} in {}: {}\n",
        counted(found.campaigns, "campaign"),
        counted(found.trials, "trial"),
        counted(found.files, "file"),
        if found.faults.is_empty() {
            "all agree".into()
        } else {
            counted(found.faults.len(), "fault")
        }
    );
    print(&text);
    exit(if found.faults.is_empty() {
        SUCCESS
    } else {
        FAILED
    })
}

fn compact(root: &Path) -> Exit {
    let done = Dataset::open(root)?.compact()?;
    for left in &done.left {
        tell(format!("not compacted: {left}"));
    }
    let removed = match done.removed {
        0 => String::new(),
        n => format!("; {} of killed writers removed", counted(n, "draft")),
    };
    print(&format!(
        "{} became {}{removed}\n",
        counted(done.before, "file"),
        done.after
    ));
    exit(if done.left.is_empty() {
        SUCCESS
    } else {
        FAILED
    })
}
