//! `linerate report`: campaigns as one page for a browser.

use super::tune::record;
use crate::prelude::*;
use linerate_measure::tuning::Tuned;
use linerate_report::format::Style;

/// The file of a page beside the records of its campaign.
const FILE: &str = "report.html";

/// Write campaigns and tunings as one page for a browser.
#[derive(Args)]
#[command(after_help = "Examples:
  linerate report -o report.html                the newest campaign
  linerate report linerate-results/* -o all.html
  linerate report linerate-results/TIME-tune    a tuning: what was tried, its effect, and what was kept
  sudo linerate bench --report                  the page is written at the end, beside the records

The page is one file that loads nothing and is complete without its script: it can be mailed, archived and printed. It
has the answer, the table and the method first, with the lab drawn; then pictures with every trial and their data, the
audit, conformance, the plan, and the facts of all hosts. docs/report.md describes these parts.")]
pub struct Report {
    /// The campaigns or tunings: folders, last, last-1, or names that `linerate list` shows
    #[arg(value_name = "DIR", default_value = "last", value_parser = handle::folder)]
    directories: Vec<PathBuf>,
    /// The page's file [default: standard output]
    #[arg(short, long, alias = "output", value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the verb.
///
/// # Errors
/// A directory is no record, or the page cannot be written.
pub fn run(args: &Report) -> Exit {
    of(&args.directories, args.out.as_deref())
}

pub(super) fn is_pdf(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "pdf")
}

/// How a browser makes a PDF of the page of a campaign.
pub(super) fn by_browser(directory: Option<&Path>, file: &Path) -> String {
    let directory = directory.map_or(String::new(), |of| format!("{} ", of.display()));
    format!(
        "linerate writes HTML, and a browser prints it into a PDF: linerate show {directory}-o page.html && chromium --headless --print-to-pdf={} page.html",
        file.display()
    )
}

/// Writes the page of campaigns.
///
/// # Errors
/// A folder is no record, or the page cannot be written.
pub(super) fn of(directories: &[PathBuf], out: Option<&Path>) -> Exit {
    if let Some(file) = out.filter(|file| is_pdf(file)) {
        let only = <&[_; 1]>::try_from(directories).ok();
        bail_usage!("{}", by_browser(only.map(|[only]| only.as_path()), file));
    }
    let pages = directories
        .iter()
        .map(|directory| page(directory))
        .collect::<Result<Vec<_>>>()?;
    let text = drawn(match <[_; 1]>::try_from(pages) {
        Ok([(_, page)]) => page,
        Err(pages) => pages::reports(pages),
    });
    let Some(file) = out else {
        return all_of(&text);
    };
    write(file, &text)?;
    tell(format!("the page is in {}", file.display()));
    DONE
}

/// Writes the page of a campaign beside its records; `quiet`: without a word.
///
/// # Errors
/// The page cannot be written.
pub fn beside(directory: &Path, quiet: bool) -> Result<()> {
    let file = directory.join(FILE);
    write(&file, &drawn(page(directory)?.1))?;
    if !quiet {
        tell(format!("the page is in {}", file.display()));
    }
    Ok(())
}

pub(super) fn drawn(page: Document) -> String {
    named("html").render(&page, Style::default())
}

fn write(file: &Path, text: &str) -> Result<()> {
    files::replace_by(file, |to| to.write_all(text.as_bytes()))
        .with_context(|| format!("writing {}", file.display()))
}

/// The page of a campaign or a tuning, and when it began.
///
/// # Errors
/// The directory is no record.
pub(super) fn page(directory: &Path) -> Result<(String, Document)> {
    if let Some(tuned) = record::read(directory)? {
        return tuning(directory, &tuned);
    }
    let stored = output::stored(directory)?;
    let page = page_of(&stored, &summary_of(&stored), directory)?;
    Ok((stored.campaign.started, page))
}

/// The page of a tuning with those of its campaigns, and when it began.
fn tuning(directory: &Path, tuned: &Tuned) -> Result<(String, Document)> {
    let mut started = String::new();
    let mut campaigns = Vec::new();
    for stage in &tuned.stages {
        // The folder may have moved since.
        let Some(name) = Path::new(&stage.records).file_name() else {
            continue;
        };
        let folder = directory.join(name);
        match page(&folder) {
            Ok((began, page)) => {
                if started.is_empty() {
                    started = began;
                }
                campaigns.push((format!("Campaign: {}", stage.name), page));
            }
            Err(error) => tell(format!(
                "{} is left out: {}",
                folder.display(),
                told(&error)
            )),
        }
    }
    Ok((started, pages::tuning_report(tuned, campaigns)))
}

/// The verdict of a campaign, also of one that got none.
pub(super) fn summary_of(stored: &StoredCampaign) -> Summary {
    let own = stored.summary.clone();
    own.unwrap_or_else(|| summarise(&stored.campaign, &stored.trials, Stopped::Failed, 0))
}

/// The page of a campaign whose records are in a directory.
pub(super) fn page_of(
    stored: &StoredCampaign,
    summary: &Summary,
    directory: &Path,
) -> Result<Document> {
    let stacks = stored.stacks(directory)?;
    let mut page = pages::report(&pages::Records {
        campaign: &stored.campaign,
        host: &stored.host,
        summary,
        trials: &stored.trials,
        facts: &stored.facts,
        stacks: &stacks,
    });
    if stored.summary.is_none() {
        let running = records::is_running(directory);
        let state = if running {
            "is running"
        } else {
            "did not come to its end"
        };
        let text = format!(
            "This campaign {state}: the figures are of its {}.",
            pages::counted(stored.trials.len(), "trial")
        );
        page.above(text, Tone::Warning);
    }
    for text in &stored.missing {
        page.above(format!("This record is not whole: {text}."), Tone::Warning);
    }
    Ok(page)
}
