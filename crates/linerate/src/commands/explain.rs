//! `linerate explain`: why a DUT forwards no more frames, and where the extra time of a slower variant goes.

use super::compare::OpenCampaign;
use super::facts;
use super::prove;
use super::slower::UNDECIDED;
use crate::args::{Printed, duration};
use crate::output::{INTERRUPTED, name_records, result, tell, usage};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use linerate_explain::{Difference, Records, difference, explain};
use linerate_measure::compare::compare;
use linerate_measure::record::{Campaign, Mode, Slot, Stopped, Summary, Verdict};
use linerate_measure::summary::summarise;
use linerate_profile::Profile;
use linerate_report::pages::{self, Extent};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Say why a DUT does not forward more frames: the causes, their evidence, and the setting that changes them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo linerate bench --profile                 measure, profile and explain this machine's forwarding
  linerate explain                              explain the newest campaign again
  linerate explain linerate-results/X --json    findings with their evidence, for programs
  linerate explain X:forwarding X:nft-stateful  where nft-stateful spends its extra time
  sudo linerate explain linerate-results/X --prove      run the experiments that prove the findings
  linerate explain linerate-results/X --write-plans F   write them as plans for `linerate run`

Diagnostic rules look for known causes in the rates, counters, CPU shares and profiles of the records. A
finding says how it is known: observed (its cost was measured here), inferred (counters or
settings imply it) or possible. Most diagnostic rules need the call stacks that --profile samples; without them, the
page says how many causes were not examined, and --full lists them. docs/explain.md lists the causes and the evidence for each.

If a plan can make the change that a finding proposes, the finding has an experiment: alternating trials of the DUT
without the change and with it. --prove runs experiments in the embedded lab only, and refuses on
any machine but the measured one. It runs no experiment that changes settings of the whole host.

Exit status: 0 explained; 1 an error; 2 bad arguments; 5 with --prove: no experiment was run; 130 interrupted.")]
pub struct Explain {
    /// A campaign, or CAMPAIGN:VARIANT; give two to compare them. If a variant has several cells, name one by the beginning of its name
    /// ('X:forwarding IPv6'), or by its number in `linerate show --full` (X:2). A campaign is a folder, last, last-1, or a name that `linerate
    /// list` shows
    #[arg(num_args = 0..=2, value_name = "WHAT", default_value = "last")]
    pub what: Vec<String>,
    /// Print the whole page: all findings with their facts, all that frames meet on their path, and the time of each stage of this path
    #[arg(long)]
    pub full: bool,
    /// As --full, and also the causes that were looked for and are absent
    #[arg(long)]
    pub all: bool,
    /// Run the experiments of the findings in the embedded lab (some 20 s each: trials of 10 s, see --budget, and the set-up), and say which findings
    /// are proven
    #[arg(long)]
    pub prove: bool,
    /// Time for the trials of each experiment [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "prove")]
    pub budget: Option<Duration>,
    /// Write the experiments of the findings into this folder, as plans for `linerate run`
    #[arg(long, value_name = "FOLDER")]
    pub write_plans: Option<PathBuf>,
    #[command(flatten)]
    pub printed: Printed,
}

/// A campaign with everything that rules read.
struct Read {
    open: OpenCampaign,
    summary: Summary,
    stacks: BTreeMap<usize, Profile>,
}

impl Read {
    fn open(what: &str) -> Result<Read> {
        let open = OpenCampaign::open(what)?;
        let stacks = open.stored.stacks(&open.path)?;
        let (campaign, trials) = (&open.stored.campaign, &open.stored.trials);
        let summary = open.stored.summary.clone();
        let summary = summary.unwrap_or_else(|| summarise(campaign, trials, Stopped::Failed, 0));
        Ok(Read {
            open,
            summary,
            stacks,
        })
    }

    fn records(&self) -> Records<'_> {
        let stored = &self.open.stored;
        Records {
            campaign: &stored.campaign,
            host: &stored.host,
            summary: &self.summary,
            trials: &stored.trials,
            facts: &stored.facts,
            stacks: &self.stacks,
        }
    }

    /// The only slot that is meant.
    fn slot(&self) -> Result<&Slot> {
        match self.open.results()[..] {
            [slot] => Ok(slot),
            ref slots => {
                let one = slots.last().map(|slot| self.open.argument(slot));
                Err(usage(format!(
                    "{} has {} cells: name one of them, such as {}",
                    self.open.name,
                    slots.len(),
                    one.unwrap_or_default()
                )))
            }
        }
    }
}

/// Runs the verb.
///
/// # Errors
/// An argument names no record, or no slot of it can be explained.
pub fn run(args: &Explain) -> Result<ExitCode> {
    if let Some(host) = args
        .what
        .iter()
        .find(|what| what.contains('@') && !Path::new(what).exists())
    {
        bail_usage!(
            "explain reads records, and {host} is a host: linerate advise {host} recommends settings, linerate watch {host} shows its queues and limits"
        );
    }
    if let Some(folder) = args.what.iter().find(|what| facts::is_saved(what)) {
        bail_usage!(
            "{folder} is a folder of saved outputs, which show settings and no load: linerate facts {folder} prints them, linerate advise {folder} recommends settings. explain reads records of campaigns; linerate watch root@router looks at a router while it is busy"
        );
    }
    let read = args
        .what
        .iter()
        .map(|what| Read::open(what))
        .collect::<Result<Vec<_>>>()?;
    match &read[..] {
        [_, _] if args.prove || args.write_plans.is_some() => {
            bail_usage!(
                "experiments are for the findings of one campaign: name one, without the other"
            )
        }
        [before, after] => {
            let difference = compared(before, after)?;
            result(
                &args.printed,
                || &difference,
                || pages::difference(&difference, after.open.stored.campaign.noun()),
            )
        }
        _ => one(&read[0], args),
    }
}

fn one(read: &Read, args: &Explain) -> Result<ExitCode> {
    let meant = read.open.slots();
    let mut summary = read.summary.clone();
    summary.explanations = explain(&read.records());
    summary
        .explanations
        .retain(|explanation| meant.iter().any(|slot| slot.id == explanation.slot));
    if read.open.stored.campaign.asked.mode == Mode::EndHosts {
        bail!(
            "{}: the rules are about hosts that forward; of end hosts, the table of TCP in `linerate show {}` says what limits each: bytes in flight beside the bandwidth-delay product, time in queues, and bytes sent again",
            read.open.name,
            read.open.name
        );
    }
    if summary.explanations.is_empty() {
        bail!(
            "{}: no variant with a DUT has a valid trial, so there is nothing to explain",
            read.open.name
        );
    }
    let campaign = &read.open.stored.campaign;
    let (mut whole, mut tried) = (true, true);
    if args.prove || args.write_plans.is_some() {
        let experiments = prove::experiments(campaign, &summary.explanations);
        if experiments.is_empty() {
            tell(format!(
                "there is no experiment: no finding has a change that a plan can make{}",
                by_hand(campaign)
            ));
        }
        if let Some(folder) = &args.write_plans {
            for plan in prove::write(&experiments, folder)? {
                tell(format!("written: linerate run {}", plan.display()));
            }
        }
        if args.prove {
            let (host, path) = (&read.open.stored.host, &read.open.path);
            whole = prove::prove(
                experiments,
                campaign,
                host,
                path,
                args.budget,
                &mut summary.explanations,
            );
            tried = summary
                .explanations
                .iter()
                .flat_map(|explanation| &explanation.findings)
                .filter_map(|finding| finding.proof.as_ref())
                .any(|proof| proof.verdict != Verdict::NotRun);
        }
    }
    if !whole {
        tell("interrupted: an experiment that was not carried out to its end proves nothing");
    }
    let page = || {
        let (campaign, host) = (&read.open.stored.campaign, &read.open.stored.host);
        let extent = match args {
            Explain { all: true, .. } => Extent::WithAbsent,
            // A proof belongs to the facts of its finding.
            Explain { full: true, .. } | Explain { prove: true, .. } => Extent::Full,
            _ => Extent::Short,
        };
        let mut page = pages::explanation(campaign, host, &summary, extent);
        name_records(&mut page, &read.open.name);
        page
    };
    let code = result(&args.printed, || &summary.explanations, page)?;
    Ok(match (whole, tried) {
        (true, true) => code,
        (true, false) => ExitCode::from(UNDECIDED),
        (false, _) => ExitCode::from(INTERRUPTED),
    })
}

/// The way to try a change of a user's rules, which no plan can make.
fn by_hand(campaign: &Campaign) -> String {
    let words = &campaign.asked.command;
    let file = words.windows(2).find(|pair| pair[0] == "--rules");
    file.map_or(String::new(), |pair| {
        format!(
            "; change a copy of the rules by hand, and measure both side by side: sudo linerate bench --rules {} --rules COPY",
            pair[1]
        )
    })
}

fn compared(before: &Read, after: &Read) -> Result<Difference> {
    let slots = [before.slot()?, after.slot()?];
    if before.open.path == after.open.path && slots[0].id == slots[1].id {
        bail_usage!(
            "{} and {} are the same variant: name two",
            before.open.name,
            after.open.name
        );
    }
    let rates = |read: &Read, slot: &Slot| read.open.rates(slot, slot.name.clone());
    let paired = before.open.path == after.open.path;
    let comparison = compare(
        &rates(before, slots[0]),
        &rates(after, slots[1]),
        paired,
        0.95,
    );
    let comparison = comparison.with_context(|| {
        format!(
            "{} and {} have no rates to compare: a variant needs valid trials at one load, and those of a search have many (measure with linerate bench)",
            slots[0].name, slots[1].name
        )
    })?;
    let ratio = comparison
        .handled
        .as_ref()
        .unwrap_or(&comparison.change)
        .ratio;
    let (a, b) = (before.records(), after.records());
    let cases = a
        .case(slots[0])
        .zip(b.case(slots[1]))
        .context("one of the two variants has no valid trial")?;
    difference([&cases.0, &cases.1], ratio).map_err(|why| anyhow!(why))
}
