//! The last messages of a campaign, and the exit status.

use super::super::slower::{Claim, MISSED, any_slower};
use crate::args::{CampaignArgs, Share};
use crate::campaign::Finished;
use crate::output::{FAILED, INTERRUPTED, print_campaign, print_place, tell};
use anyhow::Result;
use linerate_measure::experiment::{Interest, Judgement};
use linerate_measure::record::{Campaign, HostFacts, Summary};
use linerate_measure::results::Compared;
use linerate_measure::strategy::Stopped;
use std::process::ExitCode;

/// Prints the result, and returns the exit status for scripts.
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
    let slower = args.fail_if_slower.is_some_and(|limit| is_slower(limit, &summary));
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

/// Whether the campaign missed an expectation of the plan. In quiet mode, which has no page, it names each one.
fn missed(args: &CampaignArgs, summary: &Summary) -> bool {
    let missed: Vec<_> =
        summary.expectations.iter().filter(|e| e.judgement == Some(Judgement::Missed)).collect();
    for expected in missed.iter().filter(|_| args.quiet) {
        tell(format!("expectation missed: {}", expected.words));
    }
    !missed.is_empty()
}

/// Whether a variant is proven slower than the baseline variant, by at least this share.
fn is_slower(limit: Share, summary: &Summary) -> bool {
    let name = |cell: usize| summary.rows.get(cell).map_or("", |row| &row.name);
    let claim = |compared: &Compared| {
        let (against, ratio) = (&compared.against, compared.against.ratio?);
        let is_slower = against.proven && ratio.median <= 1.0 - limit.0;
        Some(Claim {
            of: name(compared.of),
            than: name(against.than),
            drops: against.cost.is_some(),
            is_slower,
            may_be_slower: !is_slower && ratio.low.is_none_or(|low| low <= 1.0 - limit.0),
        })
    };
    let judged = summary.comparisons.iter().filter(|c| c.why == Interest::Variants);
    any_slower(limit, judged.filter_map(claim))
}
