//! `linerate show`: the tables of a recorded campaign.

use crate::cli::Show;
use crate::output::{print, print_campaign, show};
use anyhow::Result;
use linerate_linux::records;
use linerate_measure::record::SCHEMA;
use linerate_measure::strategy::Stopped;
use linerate_measure::summary::summarise;
use std::process::ExitCode;

/// Runs the verb.
///
/// # Errors
/// The directory is no record.
pub fn run(args: &Show) -> Result<ExitCode> {
    let Some(directory) = &args.directory else {
        print(SCHEMA);
        return Ok(ExitCode::SUCCESS);
    };
    let stored = records::read(directory)?;
    // A campaign that was killed has no summary: what it measured until then is whole.
    let ended = stored.summary.is_some();
    let summary =
        stored.summary.unwrap_or_else(|| summarise(&stored.campaign, &stored.trials, Stopped::Failed, 0));
    print_campaign(&args.printed, directory, &stored.campaign, &stored.host, &summary)?;
    if args.printed.is_json() {
        return Ok(ExitCode::SUCCESS);
    }
    if args.trials {
        show(args.printed.format(), &linerate_report::pages::trials(&stored.campaign, &stored.trials));
    }
    if !ended {
        eprintln!(
            "linerate: this campaign did not come to its end; the above is computed from its {} trials",
            stored.trials.len()
        );
    }
    if stored.cut_off {
        eprintln!("linerate: the last line of trials.jsonl is cut off and left out");
    }
    Ok(ExitCode::SUCCESS)
}
