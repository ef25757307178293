//! What is said at the end of a campaign, and the exit status.

use crate::campaign::Finished;
use crate::cli::{CampaignArgs, Share};
use crate::output::{FAILED, INTERRUPTED, print_campaign, print_place, tell};
use anyhow::Result;
use linerate_measure::record::{Campaign, HostFacts, Summary};
use linerate_measure::results::Compared;
use linerate_measure::strategy::Stopped;
use linerate_plan::campaign::Interest;
use linerate_plan::judge::Judgement;
use std::process::ExitCode;

/// Exit status where an expectation of the plan was missed, or a variant is slower than it may be.
const MISSED: u8 = 3;

/// Prints the result, and says what it means to a script.
pub fn report(
    args: &CampaignArgs,
    campaign: &Campaign,
    facts: &HostFacts,
    finished: Finished,
) -> Result<ExitCode> {
    let Finished { summary, directory, failure, .. } = finished;
    if !args.quiet {
        print_campaign(&args.printed, &directory, campaign, facts, &summary)?;
        print_place(&args.printed, &directory);
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    if summary.stopped == Stopped::Interrupted {
        tell(format!("stopped; to resume: linerate run --resume {}", directory.display()));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let missed = missed(args, &summary);
    let slower = args.fail_if_slower.is_some_and(|limit| slower(limit, &summary));
    if args.quiet {
        for unmeasured in &summary.unmeasured {
            tell(format!("{} {}", unmeasured.name, unmeasured.why));
        }
    }
    Ok(match (summary.unmeasured.is_empty(), missed || slower) {
        (false, _) => ExitCode::from(FAILED),
        (true, true) => ExitCode::from(MISSED),
        (true, false) => ExitCode::SUCCESS,
    })
}

/// Whether an expectation of the plan was; where no page says which, it is told.
fn missed(args: &CampaignArgs, summary: &Summary) -> bool {
    let missed: Vec<_> =
        summary.expectations.iter().filter(|e| e.judgement == Some(Judgement::Missed)).collect();
    for expected in missed.iter().filter(|_| args.quiet) {
        tell(format!("what was expected is not so: {}", expected.words));
    }
    !missed.is_empty()
}

/// Whether a variant is proven slower than the baseline variant, by at least so much.
fn slower(Share(limit): Share, summary: &Summary) -> bool {
    let mut found = false;
    for compared in summary.comparisons.iter().filter(|c| c.why == Interest::Variants) {
        let Some(ratio) = compared.against.ratio else { continue };
        let (of, than) = (name(summary, compared.of), name(summary, compared.against.than));
        let percent = 100.0 * limit;
        if compared.against.proven && ratio.median <= 1.0 - limit {
            found = true;
            tell(format!("{of} {} {than} by {percent} % or more{}", what(compared), why(compared)));
        } else if ratio.low.is_none_or(|low| low <= 1.0 - limit) {
            tell(format!(
                "{of}: that it is {percent} % slower than {than} is not proven, and not excluded either: more trials would tell"
            ));
        }
    }
    found
}

fn name(summary: &Summary, cell: usize) -> &str {
    summary.rows.get(cell).map_or("", |row| &row.name)
}

fn what(compared: &Compared) -> &'static str {
    if compared.against.cost.is_some() { "passes less than" } else { "is slower than" }
}

fn why(compared: &Compared) -> &'static str {
    if compared.against.cost.is_some() { ": it drops frames" } else { "" }
}
