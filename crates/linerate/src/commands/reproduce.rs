//! `linerate reproduce`: published figures compared with the published data.

use crate::prelude::*;
use linerate_import::reproduce::{Evidence, Mapping, Reproduction, reproduce};
use linerate_runner::archive::read_archive;

#[derive(Args)]
#[command(after_help = "Examples:
  linerate reproduce netbenches                       everything
  linerate reproduce netbenches --only 22,31          two illustrations
  linerate reproduce part-one part-two                an archive in two places; the first hit counts
  linerate reproduce netbenches --mapping mine.toml   results of another document

The archive: git clone https://github.com/ocochard/netbenches (about 1 GB). Medians are taken from
its .pps files, or recomputed from its logs where there are none. docs/reproduce.md describes
mappings.

Exit status: 0 everything with data was recomputed, whether it agrees or not; 1 an archive or a mapping
cannot be read, or is empty; 2 bad arguments.")]
pub struct Reproduce {
    /// Folders of the archive, or laid out like it
    #[arg(required = true, value_name = "ARCHIVE")]
    archives: Vec<PathBuf>,

    /// Recompute only these illustrations: 9,22,perf-1
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    only: Vec<String>,

    /// File that maps printed numbers to their data, instead of the built-in mappings; may be repeated
    #[arg(long = "mapping", value_name = "FILE")]
    mappings: Vec<PathBuf>,

    #[command(flatten)]
    printed: Printed,
}

/// The mappings that come with linerate.
const BUILT_IN: [(&str, &str); 2] = [
    (
        "tuning-2018.toml",
        include_str!("../../mappings/tuning-2018.toml"),
    ),
    (
        "lab-pages.toml",
        include_str!("../../mappings/lab-pages.toml"),
    ),
];

/// Runs the verb.
///
/// # Errors
/// An archive or a mapping cannot be read, or holds nothing.
pub fn run(args: &Reproduce) -> Exit {
    let mappings = mappings(args)?;
    let mut evidence = Evidence::default();
    let line = Progress::of_files();
    for directory in &args.archives {
        let archive = read_archive(directory, &mut |seen| line.files(seen))?;
        evidence.add(&archive);
    }
    drop(line);
    let mut found: Vec<Reproduction> = mappings.iter().map(|m| reproduce(m, &evidence)).collect();
    if evidence.is_empty() || !found.iter().any(|r| r.has_data(&evidence)) {
        let none = if evidence.is_empty() {
            "no results"
        } else {
            "nothing behind any of the printed figures"
        };
        bail!(
            "{} holds {none}: name the folder of the archive, the one with the machines in it",
            args.archives[0].display()
        );
    }
    let known = found
        .iter()
        .flat_map(Reproduction::illustrations)
        .joined(", ");
    if !args.only.is_empty() {
        found
            .iter_mut()
            .for_each(|reproduction| reproduction.only(&args.only));
    }
    found.retain(|found| {
        !(found.figures.is_empty() && found.blocks.is_empty() && found.plots.is_empty())
    });
    if found.is_empty() {
        bail_usage!(
            "there is no illustration {}: there are {}",
            args.only.join(", "),
            known
        );
    }
    let pictures = args.printed.format().name() == "html";
    let page = || {
        let mut page = Document::default();
        for found in &found {
            page.gap();
            page.append(linerate_report::pages::reproduction(found, pictures));
        }
        page
    };
    result(&args.printed, || &found, page)
}

/// The documents whose figures linerate knows.
///
/// # Errors
/// One of them has a fault.
pub fn built_in() -> Result<Vec<Mapping>> {
    BUILT_IN
        .iter()
        .map(|(name, text)| Ok(Mapping::read(name, text)?))
        .collect()
}

fn mappings(args: &Reproduce) -> Result<Vec<Mapping>> {
    if args.mappings.is_empty() {
        return built_in();
    }
    args.mappings.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Mapping> {
    let text = String::from_utf8(input::read(path, usize::MAX, ["mapping", ""])?)
        .with_context(|| input::cannot_read("the mapping ", path))?;
    Ok(Mapping::read(&path.display().to_string(), &text)?)
}
