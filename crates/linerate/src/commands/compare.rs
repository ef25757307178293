//! `linerate compare`: campaigns, variants or plain files, compared with the first of them.

mod several;
mod source;

use super::export;
use super::slower::{status, told};
use crate::prelude::*;
use linerate_measure::compare::{
    Comparison, Named, Rates, compare, compare_searched, correct, partners, same_traffic,
};
use linerate_measure::slower::Held;
use linerate_report::export::{Suite, junit, tap};
use linerate_stats::ministat::{self, Confidence, Dataset, Options};
use source::Source;
pub(super) use source::{OpenCampaign, split};

/// Campaigns to compare, and how.
#[derive(Args)]
#[command(after_help = "Examples:
  linerate compare linerate-results/X               every variant of a campaign with its baseline
  linerate compare X:forwarding X:nft-stateful      two variants of a campaign, paired by block
  linerate compare before after                     two campaigns: variants of the same name
  linerate compare before.txt after.txt             plain files, a rate on each line
  linerate compare before after --fail-if-slower 3%   for CI
  linerate compare a1 a2 a3 a4 --with b1 b2 b3 b4  are the b faster? each campaign is one value

After a campaign, :VARIANT selects cells: by the variant's name, by the beginning of a cell's name as the page prints it, up to a whole value
(\"X:forwarding IPv6\", \"X:nftables, rules 1000\"), or by a cell's number in `linerate show --full` (X:2).

Numbers in plain files must be rates: more is better. A result of a search or of an RFC 2544 test has a lower and
an upper bound: a difference of two results is proven if their ranges do not overlap.

Exit status: 0 compared; 1 an error; 2 bad arguments; with --fail-if-slower: 1 the
reference has a result that the other campaign lacks, 3 proven slower by that much, 5 undecided (also if a slow-down
is proven, but the campaigns were disturbed). For git bisect run, turn 3 into 1 (bad), and
all else but 0 into 125 (skip): linerate compare ...; case $? in 0) exit 0;; 3) exit 1;; *) exit 125;; esac (docs/ci.md)")]
pub struct Compare {
    /// Campaigns, CAMPAIGN:VARIANT, or files; the first is the reference. A campaign is a folder, last, last-1, or a name that
    /// `linerate list` shows
    #[arg(value_name = "WHAT", default_value = "last")]
    what: Vec<String>,

    /// The campaigns before this option are the reference; those after it are judged. Each campaign is one value, its
    /// median, so that the interval covers the drift of the machine between campaigns. An interval of 95 % needs 4 campaigns a side
    #[arg(long = "with", alias = "against", value_name = "WHAT", num_args = 1.., requires = "what")]
    others: Vec<String>,

    /// Confidence of the intervals, in percent: 80, 90, 95, 98, 99 or 99.5
    #[arg(short, long, value_name = "PERCENT", default_value = "95")]
    confidence: Confidence,

    /// Exit with status 3 if a campaign or variant is slower than the reference by at least this share (such as 3%) over its
    /// whole interval; with 5 if over a part of it only, or if there is no interval
    #[arg(long, value_name = "SHARE")]
    fail_if_slower: Option<Share>,

    /// Also write the verdicts of --fail-if-slower into this file, as JUnit XML for CI
    #[arg(long, value_name = "FILE", requires = "fail_if_slower")]
    junit: Option<PathBuf>,

    /// Also write these verdicts into this file, in the Test Anything Protocol
    #[arg(long, value_name = "FILE", requires = "fail_if_slower")]
    tap: Option<PathBuf>,

    #[command(flatten)]
    printed: Printed,
}

/// The limit of a comparison of two campaigns.
const DRIFT: &str = "no interval includes the drift of the machine between two campaigns: measure both variants in one campaign (`linerate bench`, `linerate run`), or compare 4 campaigns a side (--with)";

/// ministat takes no set of fewer.
const ENOUGH_FOR_MINISTAT: usize = 3;

/// Runs the verb.
///
/// # Errors
/// Something cannot be read, or has nothing that can be compared.
pub fn run(args: &Compare) -> Exit {
    let confidence = args.confidence.percent() / 100.0;
    let mut found = Found::default();
    if !args.others.is_empty() {
        let [references, others] = [&args.what, &args.others].map(|side| open_all(side));
        let (references, others) = (references?, others?);
        found.name_disturbed(references.iter().chain(&others));
        found.several(&references, &others, confidence);
        return finish(args, found, Some(&references[0].stored.campaign));
    }
    let sources = args
        .what
        .iter()
        .map(|what| Source::open(what))
        .collect::<Result<Vec<_>>>()?;
    found.name_disturbed(sources.iter().filter_map(Source::campaign));
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
    let campaign = sources.iter().find_map(Source::campaign);
    finish(
        args,
        found,
        campaign.map(|campaign| &campaign.stored.campaign),
    )
}

/// Opens campaigns, of which each must be another one.
fn open_all(side: &[String]) -> Result<Vec<OpenCampaign>> {
    let all: Vec<OpenCampaign> = side
        .iter()
        .map(|what| OpenCampaign::open(what))
        .collect::<Result<_>>()?;
    for (at, one) in all.iter().enumerate() {
        if all[..at].iter().any(|before| before.path == one.path) {
            bail_usage!("{} is given twice: each campaign is one value", one.name);
        }
    }
    Ok(all)
}

/// Shows what was found, and judges it. `campaign`: one whose rates were compared.
fn finish(args: &Compare, mut found: Found, campaign: Option<&Campaign>) -> Exit {
    if found.comparisons.is_empty() {
        bail!("nothing to compare: {}", found.notes.join("; "));
    }
    correct(&mut found.comparisons);
    show_found(args, &found, campaign)?;
    let Some(Share(limit)) = args.fail_if_slower else {
        return DONE;
    };
    let held: Vec<Held> = found.comparisons.iter().map(|c| c.held(limit)).collect();
    let worst = told(&held);
    let suites = [Suite::of_comparisons(held)];
    if let Some(file) = &args.junit {
        export::write(Some(file), &junit(&suites))?;
    }
    if let Some(file) = &args.tap {
        export::write(Some(file), &tap(&suites))?;
    }
    if !found.missing.is_empty() {
        bail!("--fail-if-slower: {}", found.missing.join("; "));
    }
    exit(status(worst))
}

fn show_found(args: &Compare, found: &Found, campaign: Option<&Campaign>) -> Exit {
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

/// Comparisons so far, and notes about sets that could not be compared.
#[derive(Default)]
struct Found {
    comparisons: Vec<Comparison>,
    notes: Vec<String>,
    /// Results of a reference that are not among the others.
    missing: Vec<String>,
}

impl Found {
    /// Warns of campaigns that something else than the DUT made slower.
    fn name_disturbed<'a>(&mut self, campaigns: impl Iterator<Item = &'a OpenCampaign>) {
        let all: BTreeMap<&PathBuf, &OpenCampaign> =
            campaigns.map(|one| (&one.path, one)).collect();
        let means = match all.len() {
            1 => "its variants had that in common, because their trials alternate",
            _ => {
                "a difference may come from that and not from the DUT; measure again on a quiet machine"
            }
        };
        let disturbed = all.values().filter_map(|one| one.disturbed());
        self.notes
            .extend(disturbed.map(|said| format!("{said}: {means}")));
    }

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
                self.searched(sides.map(|(of, slot)| (of, slot, short(slot))), confidence);
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
                .push(format!("{name} has no two cells to compare: {remedy}"));
        }
    }

    fn against(&mut self, first: &Source, other: &Source, confidence: f64) {
        let before = self.comparisons.len();
        self.sources(first, other, confidence);
        let sides = [first, other].map(|side| side.campaign().into_iter().collect::<Vec<_>>());
        let disturbed = disturbed(sides.each_ref().map(|side| &side[..]));
        for comparison in &mut self.comparisons[before..] {
            comparison.disturbed.clone_from(&disturbed);
        }
    }

    fn sources(&mut self, first: &Source, other: &Source, confidence: f64) {
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
            let (results, rates) = if first.is_searched() {
                (first, other)
            } else {
                (other, first)
            };
            self.notes.push(format!(
                "{} has results of searches, the highest loads that meet a goal, and {} has forwarding rates at one load: they are not the same figure. Measure both with one command: linerate rfc2544, linerate search or linerate bench",
                results.name, rates.name
            ));
            return;
        }
        let (references, others) = (first.results(), other.results());
        let one_of_all = first.wanted.is_none() && other.wanted.is_some();
        let (pairs, alone) = if one_of_all {
            only_partners(&references, &others)
        } else {
            partners(&references, &others, same_variant)
        };
        self.notes
            .extend(not_compared(&alone, other, first, same_variant));
        let by_hand = |slot: &&Slot| {
            let fitting = references.iter().copied();
            let fitting: Vec<&Slot> = fitting.filter(|r| same_traffic(r, slot)).collect();
            let reference = first.argument(like(slot, &fitting)?);
            let command = format!("linerate compare {reference} {}", other.argument(slot));
            Some(format!("to compare with another variant: {command}"))
        };
        self.notes.extend(alone.iter().find_map(by_hand));
        if same_variant {
            let (_, mut lacking) = partners(&others, &references, true);
            lacking.retain(|slot| !slot.is_calibration());
            let missing = not_compared(&lacking, first, other, true);
            self.notes.extend(missing.iter().cloned());
            self.missing.extend(missing);
        }
        if !one_campaign {
            self.notes.extend(differences(first, other));
            if first.has_blocks() && !self.notes.iter().any(|note| note == DRIFT) {
                self.notes.push(DRIFT.into());
            }
        }
        for (a, b) in pairs {
            self.cells((first, a), (other, b), confidence);
        }
    }

    /// A cell of a campaign against one of another, or of the same.
    fn cells(
        &mut self,
        (first, a): (&OpenCampaign, &Slot),
        (other, b): (&OpenCampaign, &Slot),
        confidence: f64,
    ) {
        let one_campaign = first.path == other.path;
        if one_campaign && a.id == b.id {
            self.notes.push(format!(
                "{} and {} are the same cell",
                first.name, other.name
            ));
            return;
        }
        let [short, other_short] =
            [(first, a), (other, b)].map(|(of, slot)| of.stored.campaign.shortened(&slot.name));
        // A level that only one of two campaigns has is part of the difference.
        let alike = one_campaign || a.name == b.name && short == other_short;
        let name = |campaign: &OpenCampaign, slot: &Slot, short: String| {
            let name = if alike { short } else { slot.name.clone() };
            if one_campaign {
                name
            } else {
                format!("{name} ({})", campaign.short_name())
            }
        };
        if first.is_searched() {
            let sides = [
                (first, a, name(first, a, short)),
                (other, b, name(other, b, other_short)),
            ];
            self.searched(sides, confidence);
            return;
        }
        let (reference, rates) = (
            first.rates(a, name(first, a, short)),
            other.rates(b, name(other, b, other_short)),
        );
        let paired = one_campaign && first.has_blocks();
        self.push(&reference, &rates, paired, confidence);
        let Some(mut last) = self
            .comparisons
            .pop_if(|c| c.other == rates.name && !one_campaign)
        else {
            return;
        };
        // One machine on another day is another machine: the rates of its tester alone show by how much.
        if first.same_machine(other)
            && let (Some(x), Some(y)) = (first.shares(a), other.shares(b))
        {
            last = last.with_shares(&x, &y);
        }
        if let Some(why) = other_batch([(first, a), (other, b)]) {
            last = last.without_verdict(why);
        }
        self.comparisons.push(last);
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

/// The disturbed campaigns, where these are half of one side or more: a few that are disturbed are outliers of a side. `None` within one
/// campaign: its trials alternate.
fn disturbed(sides: [&[&OpenCampaign]; 2]) -> Option<String> {
    if let [[a], [b]] = sides
        && a.path == b.path
    {
        return None;
    }
    let of_side = sides.map(|side| {
        let said: Vec<String> = side.iter().filter_map(|one| one.disturbed()).collect();
        when(2 * said.len() >= side.len(), said)
    });
    let all = of_side.concat();
    (!all.is_empty()).then(|| format!("{}; measure again on a quiet machine", all.join("; ")))
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

/// For each of `others` the slot of the same variant or, where there is none, the only slot with the same traffic; and those without.
fn only_partners<'a>(
    references: &[&'a Slot],
    others: &[&'a Slot],
) -> (Vec<(&'a Slot, &'a Slot)>, Vec<&'a Slot>) {
    let (mut pairs, mut alone) = (Vec::new(), Vec::new());
    for other in others {
        let fitting: Vec<&'a Slot> = references
            .iter()
            .copied()
            .filter(|reference| same_traffic(reference, other))
            .collect();
        let (same, _) = partners(&fitting, &[*other], true);
        match (&same[..], &fitting[..]) {
            ([pair, ..], _) => pairs.push(*pair),
            ([], [only]) => pairs.push((*only, *other)),
            _ => alone.push(*other),
        }
    }
    (pairs, alone)
}

/// The slot that one is most like: at the same levels of the factors, if there is any.
fn like<'a>(slot: &Slot, fitting: &[&'a Slot]) -> Option<&'a Slot> {
    let same_levels = fitting.iter().find(|other| other.levels == slot.levels);
    same_levels.or(fitting.first()).copied()
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
        ]
    };
    let (a, b) = (facts(first), facts(other));
    let differ = a.iter().zip(&b).filter(|(a, b)| a != b);
    differ
        .map(|((name, a), (_, b))| {
            let (of_a, of_b) = (&first.name, &other.name);
            format!("the campaigns differ in {name}: {a} in {of_a}, {b} in {of_b}")
        })
        .collect()
}

/// Why two rates are no figures of one tester: a batch that is handed over at once costs the generator and the DUT other times. Frames at
/// a rate that was asked for do not wait for a large batch.
fn other_batch(sides: [(&OpenCampaign, &Slot); 2]) -> Option<String> {
    let [a, b] = sides.map(|(campaign, _)| campaign.stored.campaign.asked.batch);
    let paced = sides.iter().all(|(_, slot)| slot.asked_fps.is_some());
    (a != b && !paced).then(|| {
        format!("the batches differ ({a} and {b} frames), and the rate depends on the batch; measure both with --batch 64")
    })
}
