//! `linerate compare`: campaigns, variants or plain files, compared with the first of them.

use super::export;
use super::slower::{Claim, Verdict, any_slower};
use crate::args::{Printed, Share};
use crate::output::{self, result, usage};
use anyhow::{Context, Result, bail};
use clap::Args;
use linerate_linux::records::StoredCampaign;
use linerate_measure::compare::{
    Comparison, Named, Rates, chosen, compare, compare_searched, correct, partners, searched,
};
use linerate_measure::record::{Campaign, Searched, Slot, Stopped};
use linerate_report::export::{Suite, junit};
use linerate_runner::{handle, input};
use linerate_stats::ministat::{self, Columns, Confidence, Dataset, Options};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Campaigns to compare, and how.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate compare linerate-results/X               every variant of a campaign with its baseline
  linerate compare X:forwarding X:nft-stateful      two variants of a campaign, paired by block
  linerate compare before after                     two campaigns: variants of the same name
  linerate compare before.txt after.txt             plain files, a rate on each line
  linerate compare before after --fail-if-slower 3%   for CI

After a campaign, :VARIANT selects cells: by the variant's name, by the beginning of a cell's name as the page prints it
(\"X:forwarding IPv6\", \"X:nftables, rules 1000\"), or by a cell's number in `linerate show --full` (X:2).

Numbers in plain files must be rates: more is better. Of searches and of RFC 2544's tests, the results are compared with
their bounds: a difference is proven if the bounds exclude that both are equal.

Exit status: 0 compared; 1 an error; 2 bad arguments; with --fail-if-slower: 1 the
reference has a result that the other campaign lacks, 3 proven slower by that much, 5 undecided.")]
pub struct Compare {
    /// Campaigns, CAMPAIGN:VARIANT, or files; the first is the reference. A campaign is a folder, last, last-1, or a name that
    /// `linerate list` shows
    #[arg(value_name = "WHAT", default_value = "last")]
    pub what: Vec<String>,

    /// Confidence of the intervals, in percent: 80, 90, 95, 98, 99 or 99.5
    #[arg(short, long, value_name = "PERCENT", default_value = "95")]
    pub confidence: Confidence,

    /// Exit with status 3 if anything is proven slower than the reference by at least this share, such as 3%
    #[arg(long, value_name = "SHARE")]
    pub fail_if_slower: Option<Share>,

    /// Also write the verdicts of --fail-if-slower into this file, as JUnit XML for CI
    #[arg(long, value_name = "FILE", requires = "fail_if_slower")]
    pub junit: Option<PathBuf>,

    #[command(flatten)]
    pub printed: Printed,
}

/// ministat takes no set of fewer.
const ENOUGH_FOR_MINISTAT: usize = 3;

/// Runs the verb.
///
/// # Errors
/// Something cannot be read, or has nothing that can be compared.
pub fn run(args: &Compare) -> Result<ExitCode> {
    let sources = args
        .what
        .iter()
        .map(|what| Source::open(what))
        .collect::<Result<Vec<_>>>()?;
    let confidence = args.confidence.percent() / 100.0;
    let mut found = Found::default();
    match &sources[..] {
        [Source::Campaign(only)] if only.wanted.is_none() => found.within(only, confidence),
        [only] => {
            bail_usage!("{} alone: name something to compare it with", only.name());
        }
        [first, others @ ..] => {
            others
                .iter()
                .for_each(|other| found.against(first, other, confidence));
        }
        [] => unreachable!("clap asks for at least one"),
    }
    if found.comparisons.is_empty() {
        bail!("nothing to compare: {}", found.notes.join("; "));
    }
    correct(&mut found.comparisons);
    let campaign = sources.iter().find_map(|source| match source {
        Source::Campaign(campaign) => Some(&campaign.stored.campaign),
        _ => None,
    });
    show_found(args, &found, campaign)?;
    if let (Some(file), Some(Share(limit))) = (&args.junit, args.fail_if_slower) {
        export::write(
            Some(file),
            &junit(&[Suite::of_comparisons(&found.comparisons, limit)]),
        )?;
    }
    if args.fail_if_slower.is_some() && !found.missing.is_empty() {
        bail!("--fail-if-slower: {}", found.missing.join("; "));
    }
    Ok(verdict(args, &found.comparisons))
}

fn show_found(args: &Compare, found: &Found, campaign: Option<&Campaign>) -> Result<ExitCode> {
    let Found {
        comparisons, notes, ..
    } = found;
    let options = Options {
        confidence: args.confidence,
        ..Options::default()
    };
    let block = |c: &Comparison| {
        let sets = [
            (&c.reference, &c.reference_rates),
            (&c.other, &c.other_rates),
        ];
        let enough = sets
            .iter()
            .all(|(_, rates)| rates.len() >= ENOUGH_FOR_MINISTAT);
        let sets = sets.map(|(name, rates)| Dataset::new(name.clone(), rates.clone()));
        enough.then(|| ministat::block(&sets, &options))
    };
    let page = || {
        let blocks: Vec<String> = comparisons.iter().filter_map(block).collect();
        linerate_report::pages::comparisons(comparisons, &blocks, notes, campaign)
    };
    result(
        &args.printed,
        || serde_json::json!({ "comparisons": comparisons, "warnings": notes }),
        page,
    )
}

fn verdict(args: &Compare, comparisons: &[Comparison]) -> ExitCode {
    let Some(limit) = args.fail_if_slower else {
        return ExitCode::SUCCESS;
    };
    let claims = comparisons.iter().map(|c| Claim {
        of: &c.other,
        than: &c.reference,
        drops: c.handled.is_some(),
        verdict: Verdict::of(c.is_slower(limit.0), c.may_be_slower(limit.0)),
    });
    any_slower(limit, claims).status()
}

/// Comparisons so far, and notes about sets that could not be compared.
#[derive(Default)]
struct Found {
    comparisons: Vec<Comparison>,
    notes: Vec<String>,
    /// Results of a reference that are not among the others.
    missing: Vec<String>,
}

impl Found {
    /// Every slot of a campaign against its baseline.
    fn within(&mut self, campaign: &OpenCampaign, confidence: f64) {
        let slots = &campaign.stored.campaign.slots;
        let compared = slots
            .iter()
            .filter_map(|s| Some((slots.get(s.baseline?)?, s)));
        for (reference, other) in compared.collect::<Vec<_>>() {
            if campaign.is_searched() {
                let short = |slot: &Slot| campaign.stored.campaign.shortened(&slot.name);
                let sides = [(campaign, reference), (campaign, other)];
                self.searched(
                    sides.map(|(of, slot)| (of, slot, short(slot))),
                    confidence,
                );
                continue;
            }
            let rates = |s: &Slot| campaign.rates(s, campaign.stored.campaign.shortened(&s.name));
            let paired = campaign.has_blocks();
            self.push(&rates(reference), &rates(other), paired, confidence);
        }
        if self.comparisons.is_empty() && self.notes.is_empty() {
            let name = &campaign.name;
            let duts: Vec<&Slot> = slots.iter().filter(|s| !s.is_calibration()).collect();
            let alike = duts.split_first().and_then(|(first, others)| {
                let (pairs, _) = partners(&[*first], others, false);
                pairs.into_iter().next()
            });
            let remedy = match alike {
                Some((a, b)) => format!(
                    "name two variants: linerate compare '{name}:{}' '{name}:{}'",
                    a.name, b.name
                ),
                None => format!("name another campaign: linerate compare '{name}' OTHER"),
            };
            self.notes
                .push(format!("{name} has no variant with a baseline: {remedy}"));
        }
    }

    fn against(&mut self, first: &Source, other: &Source, confidence: f64) {
        match (first, other) {
            (Source::Campaign(first), Source::Campaign(other)) => {
                self.campaigns(first, other, confidence)
            }
            (Source::Campaign(campaign), file) | (file, Source::Campaign(campaign))
                if campaign.is_searched() =>
            {
                self.notes.push(format!(
                    "{} has results of searches, and {} rates: compare two campaigns of one kind (linerate compare {0} OTHER)",
                    campaign.name,
                    file.name()
                ));
            }
            (first, other) => match (first.alone(), other.alone()) {
                (Ok(first), Ok(other)) => self.push(&first, &other, false, confidence),
                (first, other) => self
                    .notes
                    .extend([first.err(), other.err()].into_iter().flatten()),
            },
        }
    }

    fn campaigns(&mut self, first: &OpenCampaign, other: &OpenCampaign, confidence: f64) {
        let one_campaign = first.path == other.path;
        let same_variant = first.wanted.is_none() && other.wanted.is_none();
        if first.is_searched() != other.is_searched() {
            let (results, rates) = match first.is_searched() {
                true => (first, other),
                false => (other, first),
            };
            self.notes.push(format!(
                "{} has results of searches, the highest loads that meet a goal, and {} has forwarding rates at one load: they are not the same figure. Measure both with one command: linerate rfc2544, linerate search or linerate bench",
                results.name, rates.name
            ));
            return;
        }
        let (references, others) = (first.results(), other.results());
        let (pairs, mut alone) = partners(&references, &others, same_variant);
        if same_variant {
            alone.retain(|slot| !slot.is_calibration());
        }
        self.notes
            .extend(not_compared(&alone, other, first, same_variant));
        if same_variant {
            let (_, mut lacking) = partners(&others, &references, true);
            lacking.retain(|slot| !slot.is_calibration());
            let missing = not_compared(&lacking, first, other, true);
            self.notes.extend(missing.iter().cloned());
            self.missing.extend(missing);
        }
        if !one_campaign {
            self.notes.extend(differences(first, other));
        }
        for (a, b) in pairs {
            // The tester's own rate is in the shares of the others.
            if same_variant && a.is_calibration() && first.same_machine(other) {
                continue;
            }
            if one_campaign && a.id == b.id {
                self.notes.push(format!(
                    "{} and {} are the same cell",
                    first.name, other.name
                ));
                continue;
            }
            let [short, other_short] =
                [(first, a), (other, b)].map(|(of, slot)| of.stored.campaign.shortened(&slot.name));
            // A level that only one of two campaigns has is part of the difference.
            let alike = one_campaign || a.name == b.name && short == other_short;
            let name = |campaign: &OpenCampaign, slot: &Slot, short: String| {
                let name = if alike { short } else { slot.name.clone() };
                match one_campaign {
                    true => name,
                    false => format!("{name} ({})", campaign.short_name()),
                }
            };
            if first.is_searched() {
                let sides = [(first, a, name(first, a, short)), (other, b, name(other, b, other_short))];
                self.searched(sides, confidence);
                continue;
            }
            let (reference, rates) = (
                first.rates(a, name(first, a, short)),
                other.rates(b, name(other, b, other_short)),
            );
            let paired = one_campaign && first.has_blocks();
            self.push(&reference, &rates, paired, confidence);
            // One machine on another day is another machine: the rates of its tester alone show by how much.
            let shares = first.shares(a).zip(other.shares(b));
            if let Some((x, y)) = shares.filter(|_| !one_campaign && first.same_machine(other))
                && let Some(last) = self.comparisons.pop_if(|c| c.other == rates.name)
            {
                self.comparisons.push(last.with_shares(&x, &y));
            }
        }
    }

    /// The results of the searches of two slots.
    fn searched(&mut self, sides: [(&OpenCampaign, &Slot, String); 2], confidence: f64) {
        let searches = sides.each_ref().map(|(of, ..)| of.searches());
        let named = |at: usize| {
            let (of, slot, name) = &sides[at];
            let tests = of.stored.summary.iter().flat_map(|s| &s.benchmarks);
            Named {
                name: name.clone(),
                campaign: &of.stored.campaign,
                search: searches[at].iter().find(|search| search.slot == slot.id),
                tests: tests.into_iter().find(|tests| tests.slot == slot.id),
                stopped: of
                    .stored
                    .summary
                    .as_ref()
                    .map_or(Stopped::Interrupted, |s| s.stopped),
            }
        };
        let (found, notes) = compare_searched(&named(0), &named(1), confidence);
        if found.is_empty() {
            self.missing.extend(notes.iter().cloned());
        }
        self.comparisons.extend(found);
        self.notes.extend(notes);
    }

    fn push(&mut self, reference: &Rates, other: &Rates, paired: bool, confidence: f64) {
        match compare(reference, other, paired, confidence) {
            Some(comparison) => self.comparisons.push(comparison),
            None => self.notes.push(format!(
                "{} and {} cannot be compared: {}",
                other.name,
                reference.name,
                match [reference, other]
                    .into_iter()
                    .find(|rates| rates.dropped >= 1.0)
                {
                    Some(rates) => format!("{} dropped every frame", rates.name),
                    None if paired => "no block in which both are valid".into(),
                    None => "one of them has no rate above 0".into(),
                }
            )),
        }
    }
}

/// One note for each reason why cells of `of` are not compared.
fn not_compared(
    cells: &[&Slot],
    of: &OpenCampaign,
    than: &OpenCampaign,
    same_variant: bool,
) -> Vec<String> {
    let others = than.slots();
    let reason = |cell: &Slot| match others.iter().any(|other| other.variant == cell.variant) {
        _ if !same_variant => "no cell with the same frames at the same load",
        true => "these variants only with other frames, loads or factor levels",
        false => "no variants of these names",
    };
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for cell in cells {
        reasons.entry(reason(cell)).or_default().push(&cell.name);
    }
    let (of, than) = (&of.name, &than.name);
    let note = |(reason, names): (&str, Vec<&str>)| {
        let names = names.join("; ");
        format!("cells of {of} are not compared, because {than} has {reason}: {names}")
    };
    reasons.into_iter().map(note).collect()
}

/// Other differences between two campaigns, which may explain a difference of rates instead of the DUT.
fn differences(first: &OpenCampaign, other: &OpenCampaign) -> Vec<String> {
    let facts = |c: &OpenCampaign| {
        let host = &c.stored.host;
        let asked = &c.stored.campaign.asked;
        [
            ("kernel", host.kernel.clone()),
            ("CPU", host.cpu_model.clone()),
            ("CPUs online", host.cpus.to_string()),
            ("linerate", c.stored.campaign.linerate.clone()),
            ("mode", asked.mode.to_string()),
            ("generator", asked.generator.clone()),
            ("flows (the most of any cell)", asked.flows.to_string()),
            ("order of flows", asked.order.clone()),
            ("batch", asked.batch.to_string()),
        ]
    };
    let (a, b) = (facts(first), facts(other));
    let differ = a.iter().zip(&b).filter(|(a, b)| a != b);
    differ
        .map(|((name, a), (_, b))| {
            let remedy = match *name {
                "batch" => ", which changes the tester's rate: give both the same --batch",
                _ => "",
            };
            let (of_a, of_b) = (&first.name, &other.name);
            format!("the campaigns differ in {name}: {a} in {of_a}, {b} in {of_b}{remedy}")
        })
        .collect()
}

/// Source of the rates that one argument names.
enum Source {
    /// A campaign, or some of its slots.
    Campaign(Box<OpenCampaign>),
    /// Numbers.
    File(Rates),
}

/// A campaign that an argument names, or some of its slots.
pub(super) struct OpenCampaign {
    /// As the user wrote it.
    pub name: String,
    /// Path and selection, to recognise the same source.
    pub path: PathBuf,
    wanted: Option<String>,
    pub stored: StoredCampaign,
}

/// A path, and the selection in it. Both may have colons: `DIR:forwarding, order zipf:1.1`.
pub(super) fn split(what: &str) -> (&str, Option<String>) {
    if Path::new(what).exists() {
        return (what, None);
    }
    let at_colons = what
        .match_indices(':')
        .map(|(at, _)| (&what[..at], &what[at + 1..]));
    let existing = at_colons.rev().find(|(path, _)| Path::new(path).is_dir());
    existing
        .or(what.rsplit_once(':'))
        .map_or((what, None), |(path, wanted)| (path, Some(wanted.into())))
}

impl Source {
    fn open(what: &str) -> Result<Self> {
        let (path, wanted) = split(what);
        let path = &handle::folder(path).map_err(usage)?;
        if !path.is_dir() {
            if wanted.is_some() {
                bail_usage!("{what}: only a campaign's folder has variants to choose from");
            }
            return Ok(Source::File(numbers(path)?));
        }
        Ok(Source::Campaign(Box::new(OpenCampaign::open(what)?)))
    }

    fn name(&self) -> &str {
        match self {
            Source::Campaign(campaign) => &campaign.name,
            Source::File(rates) => &rates.name,
        }
    }

    /// The only rates that it has, or why it has others.
    fn alone(&self) -> Result<Rates, String> {
        match self {
            Source::File(rates) => Ok(rates.clone()),
            Source::Campaign(campaign) => match &campaign.slots()[..] {
                [slot] => Ok(campaign.rates(slot, slot.name.clone())),
                slots => Err(format!(
                    "{} has {} variants: choose one to hold a file against, {}:{}",
                    campaign.name,
                    slots.len(),
                    campaign.name,
                    slots.last().map(|s| s.id).unwrap_or_default()
                )),
            },
        }
    }
}

fn numbers(path: &Path) -> Result<Rates> {
    let values = input::numbers(path, &Columns::default())?;
    if values.is_empty() {
        bail!("{} has no numbers", input::name(path));
    }
    Ok(Rates {
        name: input::name(path),
        values,
        ..Rates::default()
    })
}

impl OpenCampaign {
    /// Opens FOLDER or FOLDER:VARIANT.
    pub fn open(what: &str) -> Result<OpenCampaign> {
        let (path, wanted) = split(what);
        let path = &handle::folder(path).map_err(usage)?;
        let stored = output::stored(path)?;
        let path = path
            .canonicalize()
            .with_context(|| input::cannot_read("", path))?;
        let open = OpenCampaign {
            name: what.into(),
            path,
            wanted,
            stored,
        };
        if open.stored.campaign.slots.is_empty() {
            bail!("{what} has no variant: nothing was measured in it");
        }
        if open.slots().is_empty() {
            let there: Vec<String> = open
                .stored
                .campaign
                .slots
                .iter()
                .map(|s| s.name.clone())
                .collect();
            bail_usage!("{what}: no such variant; there are {}", there.join(", "));
        }
        Ok(open)
    }

    /// The slots that are meant.
    pub fn slots(&self) -> Vec<&Slot> {
        chosen(&self.stored.campaign, self.wanted.as_deref())
    }

    /// Those with a result: the tester alone is not searched.
    fn results(&self) -> Vec<&Slot> {
        let mut slots = self.slots();
        slots.retain(|slot| !self.is_searched() || !slot.is_calibration());
        slots
    }

    fn is_searched(&self) -> bool {
        self.stored.campaign.is_searched()
    }

    fn searches(&self) -> Vec<Searched> {
        let StoredCampaign {
            campaign,
            trials,
            summary,
            ..
        } = &self.stored;
        searched(campaign, trials, summary.as_ref())
    }

    fn short_name(&self) -> String {
        self.path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    /// Whether trials of one block were measured side by side: of other tools' runs, the numbers say nothing of that.
    fn has_blocks(&self) -> bool {
        self.stored.campaign.imported.is_none()
    }

    fn same_machine(&self, other: &OpenCampaign) -> bool {
        let machine = |c: &OpenCampaign| (c.stored.host.cpu_model.clone(), c.stored.host.cpus);
        machine(self) == machine(other)
    }

    /// The rates of a slot under this name.
    pub fn rates(&self, slot: &Slot, name: String) -> Rates {
        Rates::of_slot(name, slot.id, &self.stored.campaign, &self.stored.trials)
    }

    /// The slot's rates as shares of the tester's own, taken in the same block.
    fn shares(&self, slot: &Slot) -> Option<Rates> {
        let ceiling = self.stored.campaign.slots.get(slot.ceiling?)?;
        Some(
            self.rates(slot, slot.name.clone())
                .as_share_of(&self.rates(ceiling, ceiling.name.clone())),
        )
    }
}
