//! `linerate show`: the tables of a recorded campaign.

use super::tune::record;
use super::{export, report};
use crate::output::rendered;
use crate::prelude::*;
use linerate_report::document::Block;
use linerate_report::pages::Unreal;
use linerate_report::tables;
use linerate_runner::messages::style;

/// Print the tables of a recorded campaign again.
#[derive(Args)]
#[command(after_help = "Examples:
  linerate show                                 the newest campaign: the answer on one screen
  linerate show last-1 --full                   everything about the one before
  linerate show -o page.html                    with pictures, for a browser
  linerate show linerate-results/20260101T120000Z-bench --trials
  linerate show --trials --format csv           a line for each trial, for a program
  linerate show --table cells --format csv      one table of the whole page
  linerate show --format csv -o tables/         each table of the page as a file
  linerate show --schema                        what --json prints, as a JSON Schema")]
pub struct Show {
    /// The campaign: its folder, last (the newest in linerate-results), last-1, or a name that `linerate list` shows [default: last]
    #[arg(value_name = "DIR", value_parser = handle::folder)]
    directory: Option<PathBuf>,
    /// Print the whole page, not one screen
    #[arg(long)]
    full: bool,
    /// Print the whole page, and a line for each trial; with --format csv the lines of the trials alone
    #[arg(long)]
    trials: bool,
    /// Print one table of the whole page. NAME is its heading, or the beginning of it; `cells` stands for the first table, which
    /// --format csv prints without this option. An unknown name prints the list of the names
    #[arg(long, value_name = "NAME", conflicts_with_all = ["full", "trials", "json", "schema"])]
    table: Option<String>,
    #[command(flatten)]
    printed: Printed,
    /// Write to this file instead of standard output; the ending chooses the format: .html, .csv, .json or .md. With --format csv
    /// and a folder (FOLDER/), write each table of the page as a file
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["trials", "schema"])]
    out: Option<PathBuf>,
    /// Print the JSON Schema of the output of `bench`, `run` and `show` with --json (docs/records.md)
    #[arg(long, conflicts_with_all = ["directory", "full", "trials", "json", "format"])]
    schema: bool,
}

/// The name of the table of trials.
const TRIALS: &str = "Trials";

/// Prints the table of this name, or the first; or writes all into a folder.
fn tables_of(
    args: &Show,
    printed: &Printed,
    page: &Document,
    unreal: Option<Unreal>,
    name: Option<&str>,
) -> Exit {
    let out = args.out.as_deref();
    let drawn = |mut page: Document| {
        if let (Some(Block::Heading { text }), Some(unreal)) = (page.blocks.first_mut(), unreal) {
            *text = format!("{}: {text}", unreal.word());
        }
        printed.format().render(&page, style())
    };
    let all = tables::named(page);
    let is_folder =
        |out: &&Path| out.is_dir() || out.as_os_str().as_encoded_bytes().ends_with(b"/");
    if let (Some(folder), None) = (out.filter(is_folder), name) {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        export::replace(&folder.join("00-said.csv"), &drawn(tables::said(page)))?;
        for ((name, table), number) in all.iter().zip(1..) {
            let file = folder.join(format!("{number:02}-{}.csv", tables::slug(name)));
            export::replace(&file, &drawn(tables::alone(name, table)))?;
        }
        tell(format!(
            "written: {} files in {}",
            all.len() + 1,
            folder.display()
        ));
        return DONE;
    }
    let Some(name) = name.or(all.first().map(|(name, _)| name.as_str())) else {
        return export::write(out, &drawn(page.clone()));
    };
    if args.table.is_none() && !args.trials && all.len() > 1 {
        tell(format!(
            "this is the table '{name}': --table NAME prints another, -o FOLDER/ writes all {} as files",
            all.len()
        ));
    }
    let table = tables::only(page, name).map_err(usage)?;
    export::write(out, &drawn(table))
}

/// Runs the verb.
///
/// # Errors
/// The directory is no record.
pub fn run(args: &Show) -> Exit {
    if args.schema {
        return all_of(linerate_report::printed::SCHEMA);
    }
    let directory = &args
        .directory
        .clone()
        .map_or_else(handle::newest, Ok)
        .map_err(usage)?;
    if let Some(file) = args.out.as_deref().filter(|file| report::is_pdf(file)) {
        bail_usage!("{}", report::by_browser(Some(directory), file));
    }
    let printed = args.printed.for_file(args.out.as_deref())?;
    let csv = printed.format().name() == "csv";
    let table = args.table.as_deref();
    let table = table.or_else(|| (args.trials && csv).then_some(TRIALS));
    let is_table = csv || table.is_some();
    if table.is_some() && printed.is_json() {
        bail_usage!("--format json prints the whole record: leave --table out");
    }
    if printed.format().name() == "html" && table.is_none() {
        return report::of(std::slice::from_ref(directory), args.out.as_deref());
    }
    let out = args.out.as_deref();
    if let Some(tuned) = record::read(directory)? {
        if is_table {
            let unreal = tuned.simulated.then_some(Unreal::Simulated);
            return tables_of(args, &printed, &pages::tuning(&tuned), unreal, table);
        }
        let page = || pages::tuning(&tuned);
        return export::write(out, &rendered(&printed, || &tuned, page)?);
    }
    let stored = output::stored(directory)?;
    // A campaign that was killed has no summary: its trials until then are whole.
    let ended = stored.summary.is_some();
    let summary = stored
        .summary
        .unwrap_or_else(|| summarise(&stored.campaign, &stored.trials, Stopped::Failed, 0));
    if is_table {
        let mut page = pages::summary(&stored.campaign, &stored.host, &summary);
        page.part(TRIALS, pages::trials(&stored.campaign, &stored.trials));
        output::name_records(&mut page, &directory.display().to_string());
        let unreal = pages::unreal(&stored.campaign);
        tables_of(args, &printed, &page, unreal, table)?;
    } else {
        let text = output::campaign(
            &printed,
            args.full || args.trials,
            directory,
            &stored.campaign,
            &stored.host,
            &summary,
            &stored.facts,
        )?;
        export::write(out, &text)?;
        if printed.is_json() {
            return DONE;
        }
        if args.trials {
            show(
                printed.format(),
                &pages::trials(&stored.campaign, &stored.trials),
            );
        }
    }
    if !ended {
        tell(format!(
            "this campaign did not come to its end; the above is computed from its {}",
            pages::counted(stored.trials.len(), "trial")
        ));
    }
    DONE
}
