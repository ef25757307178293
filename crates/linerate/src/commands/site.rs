//! `linerate site`: a folder of pages over many campaigns.

use super::report::{page_of, summary_of};
use crate::prelude::*;
use linerate_import::history as archive;
use linerate_import::netbenches::records::{directory as of_records, records};
use linerate_import::netbenches::{Archive, ImportedSlot, ResultDirectory, Set};
use linerate_import::reproduce::{Evidence, reproduce};
use linerate_linux::site::SiteFolder;
use linerate_measure::history::{Timelines, campaigns, judge};
use linerate_measure::record::TrialRecord;
use linerate_report::format::Style;
use linerate_report::pages::site::{self, FOLDERS, FRONT, INDEX, Problem, Sizes};
use linerate_runner::archive::visit;

/// Make a site of many campaigns.
#[derive(Args)]
#[command(after_help = "Examples:
  linerate site linerate-results -o site                    all campaigns below this folder
  linerate site ~/netbenches -o site                        the public archive, or a part of it
  linerate site results-2025 results-2026 -o site --json    several folders; prints the counts as JSON for other programs

Open site/index.html in a browser, or copy the folder to any web server. If you make the site again in the same folder,
linerate replaces the site's own pages and leaves other files alone. The same results give the same bytes.

Exit status: 0 made, with or without broken files, which a page of the site lists; 1 a folder cannot be read
or holds no results, or the site cannot be written; 2 bad arguments.")]
pub struct Site {
    /// Folders with campaigns in subfolders at any depth, or folders laid out like the public archive
    #[arg(value_name = "ARCHIVE", required = true)]
    archives: Vec<PathBuf>,

    /// The site's folder: new, empty, or an earlier site
    #[arg(short, long, alias = "output", value_name = "DIR")]
    out: PathBuf,

    #[command(flatten)]
    printed: Printed,
}

/// The site made.
#[derive(Debug, Serialize)]
struct Made<'a> {
    front: PathBuf,
    pages: usize,
    #[serde(flatten)]
    sizes: Sizes,
    problems_found: &'a [Problem],
}

/// Runs the verb.
///
/// # Errors
/// An archive cannot be read, nothing is in any, or a page cannot be written.
pub fn run(args: &Site) -> Exit {
    for archive in &args.archives {
        std::fs::read_dir(archive).with_context(|| input::cannot_read("", archive))?;
    }
    let progress = Progress::of_files();
    let mut maker = Maker {
        folder: SiteFolder::create(&args.out, &[FRONT, INDEX], &FOLDERS)?,
        site: site::Site::default(),
        timelines: Timelines::default(),
        directories: Vec::new(),
        pages: 0,
        progress: &progress,
    };
    for path in &args.archives {
        let prefix = when(args.archives.len() > 1, format!("{}: ", name(path)));
        maker.campaigns(path, &prefix)?;
        maker.archive(path, &prefix)?;
    }
    if maker.site.entries.is_empty() {
        let names = args
            .archives
            .iter()
            .map(|path| path.display().to_string())
            .joined(", ");
        bail!(
            "{} holds no results: neither campaigns of linerate nor a tree laid out as the archive's",
            names
        );
    }
    maker.finish()?;
    let Maker { site, pages, .. } = maker;
    drop(progress);
    let made = Made {
        front: args.out.join(FRONT),
        pages,
        sizes: site.sizes(),
        problems_found: &site.problems,
    };
    result(&args.printed, || &made, || page(&made))
}

fn page(made: &Made<'_>) -> Document {
    let mut page = Document::default();
    let Sizes {
        campaigns,
        sets,
        problems,
        ..
    } = made.sizes;
    page.answer(format!(
        "{} of {} on {}: open {}",
        counted(sets, "set"),
        counted(campaigns, "campaign"),
        counted(made.pages, "page"),
        made.front.display()
    ));
    if problems > 0 {
        page.note(format!(
            "{} cannot be used, or only in part. A page of the site lists what is wrong.",
            counted(problems, "file")
        ));
    }
    page
}

/// The last part of a path.
fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// A site that is being made: pages are written as soon as they are known.
struct Maker<'a> {
    folder: SiteFolder,
    site: site::Site,
    timelines: Timelines,
    /// Folders of archives, for their time lines.
    directories: Vec<ResultDirectory>,
    pages: usize,
    progress: &'a Progress,
}

impl Maker<'_> {
    /// Recorded campaigns below a folder.
    fn campaigns(&mut self, directory: &Path, prefix: &str) -> Result<()> {
        for path in records::find(directory)? {
            let shown = path
                .strip_prefix(directory)
                .unwrap_or(&path)
                .display()
                .to_string();
            let stored = records::read(&path);
            let read = stored.map_err(anyhow::Error::from).and_then(|stored| {
                let summary = summary_of(&stored);
                Ok((page_of(&stored, &summary, &path)?, summary, stored))
            });
            let (page, summary, stored) = match read {
                Ok(read) => read,
                Err(error) => {
                    self.problem(format!("{prefix}{shown}"), told(&error));
                    continue;
                }
            };
            for text in &stored.missing {
                self.problem(format!("{prefix}{shown}"), text.clone());
            }
            for trial in stored
                .trials
                .iter()
                .filter_map(|trial| trial.imported.as_ref())
            {
                if !trial.problems.is_empty() {
                    self.problem(format!("{prefix}{}", trial.file), trial.problems.join("; "));
                }
            }
            match of_records(&stored.campaign, &stored.trials) {
                Some(found) => self.directories.push(for_history(&found)),
                None => {
                    let (source, campaign) = (path.display().to_string(), &stored.campaign);
                    campaigns::add(
                        &mut self.timelines,
                        &source,
                        campaign,
                        &stored.host,
                        &stored.trials,
                        Some(&summary),
                    );
                }
            }
            self.add(
                &stored.campaign,
                &stored.host,
                &summary,
                &stored.trials,
                (prefix, &name(&path)),
                page,
            )?;
        }
        Ok(())
    }

    /// Folders of an archive of other tools.
    fn archive(&mut self, directory: &Path, prefix: &str) -> Result<()> {
        let before = self.site.entries.len();
        let progress = self.progress;
        let read = visit(
            directory,
            false,
            &mut |seen| progress.files(seen),
            |found| {
                self.directories.push(for_history(&found));
                let label = found.path.clone();
                if let Some(records) = records(found, env!("CARGO_PKG_VERSION")) {
                    let summary = summarise(&records.campaign, &records.trials, Stopped::Trials, 0);
                    let page = pages::report(&pages::Records {
                        campaign: &records.campaign,
                        host: &records.host,
                        summary: &summary,
                        trials: &records.trials,
                        facts: &[],
                        stacks: &BTreeMap::new(),
                    });
                    self.add(
                        &records.campaign,
                        &records.host,
                        &summary,
                        &records.trials,
                        (prefix, &label),
                        page,
                    )?;
                }
                Ok::<(), anyhow::Error>(())
            },
        )?;
        if self.site.entries.len() > before {
            for problem in read.problems {
                self.problem(format!("{prefix}{}", problem.path), problem.reason);
            }
        }
        Ok(())
    }

    fn problem(&mut self, path: String, reason: String) {
        self.site.problems.push(Problem { path, reason });
    }

    /// Writes the page of a campaign, and keeps its figures for the others.
    fn add(
        &mut self,
        campaign: &Campaign,
        host: &HostFacts,
        summary: &Summary,
        trials: &[TrialRecord],
        label: (&str, &str),
        page: Document,
    ) -> Result<()> {
        self.site.add(campaign, host, summary, trials, label);
        self.progress
            .say(format!("{} campaigns", self.site.entries.len()));
        let Some(entry) = self.site.entries.last() else {
            return Ok(());
        };
        write(
            &mut self.folder,
            &mut self.pages,
            &entry.page,
            &self.site.linked(entry, page),
        )
    }

    /// Writes all other pages.
    fn finish(&mut self) -> Result<()> {
        let directories = std::mem::take(&mut self.directories);
        let archive = Archive {
            directories,
            ..Archive::default()
        };
        let mut evidence = Evidence::default();
        evidence.add(&archive);
        for mapping in super::reproduce::built_in()? {
            let found = reproduce(&mapping, &evidence);
            if found.has_data(&evidence) {
                self.site.documents.push(found);
            }
        }
        archive::add(&mut self.timelines, &archive);
        drop(archive);
        let timelines = std::mem::take(&mut self.timelines).finish();
        let say = |i: usize| {
            self.progress
                .say(format!("time line {} of {}", i + 1, timelines.len()))
        };
        self.site.history = judge(&timelines, say);
        drop(timelines);
        let Maker {
            folder,
            site,
            pages,
            progress,
            ..
        } = self;
        site.pages(|file, page| {
            progress.say(format!("page {}", *pages + 1));
            write(folder, pages, file, &page)
        })?;
        folder.write(INDEX, &site::index(site))?;
        Ok(())
    }
}

fn write(folder: &mut SiteFolder, pages: &mut usize, file: &str, page: &Document) -> Result<()> {
    *pages += 1;
    Ok(folder.write(file, &named("html").render(page, Style::default()))?)
}

/// A folder without the parts that no time line needs.
fn for_history(found: &ResultDirectory) -> ResultDirectory {
    let set = |set: &Set| {
        let slot = &set.slot;
        Set {
            slot: ImportedSlot {
                set: slot.set.clone(),
                profiling: slot.profiling,
                published: slot.published.clone(),
                facts: slot.facts.clone(),
                ..ImportedSlot::default()
            },
            image: set.image.clone(),
            family: set.family.clone(),
            frame_length: set.frame_length,
            runs: set.runs.clone(),
        }
    };
    ResultDirectory {
        path: found.path.clone(),
        place: found.place.clone(),
        sets: found.sets.iter().map(set).collect(),
        series: found.series.clone(),
        ..ResultDirectory::default()
    }
}
