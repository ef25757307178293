//! Plans: experiments as files that a person can read aloud.
//!
//! A plan is read in steps: [`reader`] finds faults of form against the tables of [`keys`], [`draft`] resolves names, [`expand`]
//! and [`checks`] combine all levels for each operating system and form, and find impossible plans. The result is a
//! [`campaign::Campaign`], which has everything that an executor needs. docs/plans.md has the format.
#![forbid(unsafe_code)]

mod author;
pub mod backend;
mod built_in;
pub mod campaign;
pub mod card;
pub mod changes;
mod checks;
pub mod diagnostic;
mod draft;
mod dut;
mod expand;
mod forms;
pub mod goal;
mod grammar;
pub mod keys;
pub mod lab;
mod lower;
#[cfg(test)]
mod mutated;
pub mod names;
mod needs;
pub mod offload;
pub mod placeholders;
pub mod proof;
mod reader;
pub mod rules;

pub mod schema;
pub mod settings;
pub mod source;
pub mod sysctl;
pub mod text_form;
pub mod timetable;
pub mod toml_text;
pub mod tuning;
pub mod tunnel;
pub mod units;
mod value;

#[cfg(test)]
mod tests;

pub use crate::backend::Backend;
use crate::diagnostic::Lines;
pub use crate::diagnostic::{Diagnostic, Place, Problems, Severity, Span};
pub use built_in::BuiltIn;
use campaign::{Campaign, Lab, OPEN_LOOP};
use draft::Draft;
pub use forms::{duration_text, parse_cpus, parse_duration_ns};
use linerate_measure::experiment::{Measure, System};
use linerate_measure::record::States;
use linerate_wire::units::{counted, grouped};
pub use proof::Proof;
pub use source::{Keyed, Source};
use timetable::Timetable;
pub use tuning::Tuning;

/// Bytes of a plan at most. Rules, tables and routes are generated, so that no plan needs more.
pub const MOST_BYTES: usize = 1 << 20;

/// A plan to begin with, that explains itself.
pub const EXAMPLE: &str = include_str!("example.toml");

/// Fewer blocks cannot give a 95 % interval of a median.
const LEAST_BLOCKS: u64 = 6;

/// A plan without faults.
#[derive(Debug)]
pub struct Plan {
    pub title: String,
    /// The systems that it is for, at least one.
    pub systems: Vec<System>,
    /// For each system its full form, and then its quick form, if it has one.
    campaigns: Vec<Campaign>,
    /// Remarks: facts that are no faults.
    pub remarks: Vec<Diagnostic>,
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the text.
    pub fn read(bytes: &[u8]) -> Result<Plan, Vec<Diagnostic>> {
        Self::read_with(bytes, &mut |_| {
            Err("this plan has no folder that a rule file could be in".into())
        })
    }

    /// Reads a plan; `files` gives the text of a rule file that it names, or the reason why there is no text.
    ///
    /// # Errors
    /// All faults, in the order of the text.
    pub fn read_with(
        bytes: &[u8],
        files: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Plan, Vec<Diagnostic>> {
        Self::of(&Self::source(bytes)?, files)
    }

    /// The text of a plan file.
    ///
    /// # Errors
    /// The text is no TOML.
    pub fn source(bytes: &[u8]) -> Result<Source, Vec<Diagnostic>> {
        Source::read(
            bytes,
            "a plan",
            "say how many rules or routes there are: they are generated",
        )
    }

    /// Reads a plan as it was written: a file, arguments, or both.
    ///
    /// # Errors
    /// All faults, in the order of the text; those of arguments name the argument.
    pub fn of(
        source: &Source,
        files: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Plan, Vec<Diagnostic>> {
        let is_lab = "this is a lab file, and no plan";
        let help = "`linerate lab check` checks lab files";
        let is_for = source.is_for(["variants", "hosts"], is_lab, help);
        is_for.map_err(|fault| vec![fault])?;
        let lines = source.lines();
        let (tree, mut problems) = reader::read(source, &keys::PLAN);
        if tree.entries.is_empty() && !problems.is_empty() {
            return Err(lines.locate_all(problems));
        }
        let mut draft = Draft::new(tree, source.options().to_vec(), &mut problems);
        draft.read_files(files);
        checks::plan(&draft, &mut problems);
        let mut campaigns = campaigns(&draft, &lines, &mut problems);
        if problems.is_empty() {
            unjudged(&draft, &campaigns, &mut problems);
        }
        if !problems.is_empty() {
            return Err(lines.locate_all(problems));
        }
        campaigns
            .iter_mut()
            .for_each(|campaign| campaign.source = source.written());
        let mut remarks = Vec::new();
        remark(&draft, &campaigns, &mut remarks);
        let title = draft.tree.text("title").unwrap_or_default().to_string();
        Ok(Plan {
            title,
            systems: draft.systems,
            campaigns,
            remarks: lines.locate_all(remarks),
        })
    }

    /// The campaign for a system, in the full or the quick form; `None` if the plan does not cover that system, or has no quick
    /// form.
    pub fn campaign(&self, system: System, quick: bool) -> Option<&Campaign> {
        self.campaigns.iter().find(|campaign| {
            campaign.experiment.system == system && campaign.experiment.quick == quick
        })
    }
}

/// The text of a file. `what` is its kind; `shorter` is the remedy for a file that is too long.
pub fn text<'b>(bytes: &'b [u8], what: &str, shorter: &str) -> Result<&'b str, Diagnostic> {
    if bytes.len() > MOST_BYTES {
        let message = format!("{what} has at most {MOST_BYTES} bytes, and this file has more");
        return Err(Diagnostic::new(message).remedy(shorter));
    }
    diagnostic::utf8(bytes)
}

/// Frames a second that a DUT is supposed to pass where a load has no rate.
const SUPPOSED_FPS: f64 = 1e6;

/// Remarks about variants each of whose frames is to open a connection, in trials with more frames than flows.
fn few_flows(draft: &Draft, campaigns: &[Campaign], remarks: &mut Vec<Diagnostic>) {
    let mut told = Vec::new();
    for campaign in campaigns
        .iter()
        .filter(|c| c.experiment.trials.measure == Measure::Rate)
    {
        let seconds = campaign.timing().load_ns() as f64 / 1e9;
        for cell in &campaign.cells {
            let kind = &campaign.kinds[cell.kind];
            let is_new = campaign.lanes[cell.lane].settings.states == States::New;
            let link = campaign.experiment.link_speed;
            let known =
                cell.rate
                    .frames_per_second(kind.size.average_len_fcs(), link, usize::MAX >> 11);
            let known = known.ok().flatten();
            // Without a rate, only flows that are clearly too few are told.
            let (rate, share) = known.map_or((SUPPOSED_FPS, 0.1), |rate| (rate, 0.95));
            let (flows, frames) = (kind.flows, rate * seconds);
            let few = is_new && kind.connections.is_none() && f64::from(flows) < share * frames;
            if !few || told.contains(&&cell.variant) {
                continue;
            }
            told.push(&cell.variant);
            let about = if known.is_some() { "some" } else { "at 1 Mpps" };
            let frames = grouped(frames as u64);
            let message = format!(
                "'{}': states = \"new\" with {} flows, and a trial has {about} {frames} frames: those after the first of each flow find their connection",
                cell.variant,
                grouped(flows)
            );
            let variant = draft
                .variants
                .iter()
                .find(|variant| variant.name == cell.variant);
            let span = variant.map(|variant| variant.span).unwrap_or_default();
            let help = "give it as many flows as a trial has frames (flows), a shorter duration, or a rate";
            remarks.push(Diagnostic::warning(span, message).remedy(help));
        }
    }
}

/// Remarks about guesses in rule files, and about their missing counters.
fn rule_files(draft: &Draft, campaigns: &[Campaign], remarks: &mut Vec<Diagnostic>) {
    let lanes = campaigns
        .iter()
        .filter(|campaign| !campaign.experiment.quick)
        .flat_map(|full| &full.lanes);
    for file in lanes.filter_map(|lane| lane.settings.rule_file.as_ref()) {
        let span = draft
            .files
            .get(&file.file)
            .map_or(Span::default(), |(span, _)| *span);
        let notes = file.notes().join("; ");
        if !file.guessed.is_empty() {
            let help = "where a guess is wrong, write map = { ... } beside file";
            remarks.push(Diagnostic::warning(span, notes).remedy(help));
        } else if !file.counts() {
            remarks.push(Diagnostic::warning(span, notes));
        }
    }
}

/// Remarks about variants of hosts without `rules` that are compared with some.
fn rules_of_hosts(draft: &Draft, campaigns: &[Campaign], remarks: &mut Vec<Diagnostic>) {
    let mut told = Vec::new();
    let of_hosts = |campaign: &&Campaign| matches!(campaign.lab, Lab::File { .. });
    for campaign in campaigns.iter().filter(of_hosts) {
        let cell = |at: usize| {
            let cell = &campaign.cells[at];
            (&cell.variant, &campaign.lanes[cell.lane].settings)
        };
        for pair in &campaign.experiment.comparisons {
            let (of, than) = (cell(pair.of), cell(pair.than));
            for ((own, kept), (other, replaced)) in [(of, than), (than, of)] {
                if !kept.keeps_firewalls() || replaced.firewall().is_none() || told.contains(&own) {
                    continue;
                }
                told.push(own);
                let message = format!(
                    "'{own}' keeps the rules that the host runs, and '{other}' replaces them"
                );
                let variant = draft.variants.iter().find(|variant| variant.name == *own);
                let span = variant.map(|variant| variant.span).unwrap_or_default();
                let help = "for no packet filter, write rules = { filter = \"none\" }";
                remarks.push(Diagnostic::warning(span, message).remedy(help));
            }
        }
    }
}

fn campaigns(draft: &Draft, lines: &Lines<'_>, problems: &mut Vec<Diagnostic>) -> Vec<Campaign> {
    let forms: &[bool] = if draft.tree.table("quick").is_some() {
        &[false, true]
    } else {
        &[false]
    };
    let all = draft
        .systems
        .iter()
        .flat_map(|system| forms.iter().map(|quick| (*system, *quick)));
    all.filter_map(|(system, quick)| expand::expand(draft, system, quick, lines, problems))
        .collect()
}

/// Expectations that select no cells in any form or system.
fn unjudged(draft: &Draft, campaigns: &[Campaign], problems: &mut Vec<Diagnostic>) {
    for (at, expected) in draft.expected.iter().enumerate() {
        if campaigns
            .iter()
            .all(|campaign| campaign.experiment.expectations[at].pairs.is_empty())
        {
            let help =
                "name levels that factors have for these variants; `than` must differ from `of`";
            problems.fault(
                expected.span,
                "no two cells of this plan are like that",
                help,
            );
        }
    }
}

fn remark(draft: &Draft, campaigns: &[Campaign], remarks: &mut Vec<Diagnostic>) {
    for campaign in campaigns {
        let (table, form) = if campaign.experiment.quick {
            ("quick", "quick form: ")
        } else {
            ("trials", "")
        };
        let blocks = Timetable::new(campaign).blocks;
        if blocks < LEAST_BLOCKS && campaign.experiment.trials.measure == Measure::Rate {
            let message = format!(
                "{form}{} of {} will be run: a 95 % interval needs {LEAST_BLOCKS}",
                counted(blocks as usize, "block"),
                counted(campaign.cells.len(), "trial")
            );
            let span = draft
                .tree
                .entry(table)
                .map(|entry| entry.key_span)
                .unwrap_or_default();
            remarks.push(
                Diagnostic::warning(span, message).remedy("give it more blocks or a larger budget"),
            );
        }
    }
    rule_files(draft, campaigns, remarks);
    few_flows(draft, campaigns, remarks);
    rules_of_hosts(draft, campaigns, remarks);
    for name in campaigns
        .iter()
        .filter(|c| !c.experiment.quick)
        .flat_map(Campaign::open_loops)
    {
        let variant = draft.variants.iter().find(|variant| variant.name == name);
        let span = variant.map(|variant| variant.span).unwrap_or_default();
        let help = format!(
            "{}, where the DUT has a CPU of its own",
            draft.add("lab", "mode", "\"threaded\"")
        );
        remarks.push(Diagnostic::warning(span, format!("'{name}': {OPEN_LOOP}")).remedy(help));
    }
    let order = draft
        .tree
        .table("trials")
        .and_then(|trials| trials.get("order"));
    if let Some(node) = order.filter(|order| order.text() == Some("sequential")) {
        let message = "one variant after the other measures the drift of the machine as well";
        remarks.push(
            Diagnostic::warning(node.span, message)
                .remedy("use order = \"blocks\" for results that are to be believed"),
        );
    }
}
