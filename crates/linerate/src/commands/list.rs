//! `linerate list`: the recorded campaigns, by the names that other verbs take.

use super::tune::record;
use crate::prelude::*;
use linerate_report::document::Table;

/// List recorded campaigns.
#[derive(Args)]
#[command(after_help = "Examples:
  linerate list                                 the campaigns in linerate-results, the newest first
  linerate show last-1                          the one before the newest
  linerate show firewalls                       the newest campaign of this name
  linerate list --json                          for programs")]
pub struct List {
    /// The folder of the campaigns
    #[arg(value_name = "DIR", default_value = handle::RESULTS)]
    directory: PathBuf,
    #[command(flatten)]
    printed: Printed,
}

/// A campaign in the list.
#[derive(Debug, Serialize)]
struct Line {
    handle: String,
    folder: PathBuf,
    begun: String,
    machine: String,
    answer: String,
}

/// Runs the verb.
///
/// # Errors
/// There is no such folder, or the list cannot be written as JSON.
pub fn run(args: &List) -> Exit {
    let folders = handle::all(&args.directory);
    let is_usual = args.directory == Path::new(handle::RESULTS);
    if !is_usual && !args.directory.is_dir() {
        bail_usage!("there is no folder {}", args.directory.display());
    }
    let mut lines = Vec::new();
    for (at, folder) in folders.into_iter().enumerate() {
        let handle = match at {
            _ if !is_usual => folder.display().to_string(),
            0 => "last".into(),
            n => format!("last-{n}"),
        };
        match line(handle, folder) {
            Ok(line) => lines.push(line),
            // A folder that is broken must not hide the others.
            Err(error) => tell(told(&error)),
        }
    }
    let page = || {
        let mut page = Document::default();
        if lines.is_empty() {
            let here = handle::here().map_or(String::new(), |here| format!(" {here}"));
            page.say(format!(
                "There is no campaign in {}.{here}",
                args.directory.display()
            ));
            return page;
        }
        let name = |line: &Line| {
            line.folder
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        page.table(
            Table::of(&lines)
                .column("", "", |line| line.handle.as_str())
                .column("campaign", "", |line| name(line))
                .column("answer", "", |line| line.answer.as_str())
                .optional("machine", "", |line| line.machine.as_str()),
        );
        page
    };
    result(&args.printed, || &lines, page)
}

fn line(handle: String, folder: PathBuf) -> Result<Line> {
    if let Some(tuned) = record::read(&folder)? {
        let answer = format!("tuning: {}", pages::tuned(&tuned));
        return Ok(Line {
            handle,
            folder,
            begun: String::new(),
            machine: String::new(),
            answer,
        });
    }
    let campaign = records::head(&folder)?;
    let (host, verdict) = records::verdict(&folder)?;
    let unreal = pages::unreal(&campaign);
    let simulated = unreal.map_or(String::new(), |of| format!("{}: ", of.word()));
    let answer = match verdict {
        Some(summary) => pages::in_short(&campaign, &summary),
        None if records::is_running(&folder) => "running".into(),
        None => "did not come to its end".into(),
    };
    Ok(Line {
        handle,
        folder,
        begun: campaign.started,
        machine: host.cpu_model,
        answer: format!("{simulated}{answer}"),
    })
}
