//! Why slots forward no more frames: findings, the limit, and where the time of a frame goes.

pub(super) mod balance;
mod findings;
mod path;
mod short;
#[cfg(test)]
mod tests;

use super::simulation::{unreal, warn_of_simulation};
use crate::prelude::*;
use findings::{changes, evidence, known, merged, names, says};
use linerate_measure::record::{
    Explanation, Finding, NotExamined, Proof, Searched, SlotProfile, Stage, Verdict,
};
use linerate_plan::settings::cpu_list;

/// Findings on the page of a campaign. `linerate explain` lists all.
const MOST: usize = 4;
/// Slots side by side in a table.
const CELLS: usize = 6;

/// The limit of hosts whose DUT lost no frame.
pub(super) const NO_CEILING: &str =
    "What the tester does alone is not known: the DUT may be faster.";

/// The limit, where it cannot be told.
pub(super) const NOISY: &str =
    "The trials scatter too much to tell whether the DUT or the tester was the limit.";

/// How much of an explanation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// One screen.
    Short,
    /// All findings with their facts.
    Full,
    /// The causes that are absent as well.
    WithAbsent,
}

/// The page of `linerate explain`.
pub fn explanation(
    campaign: &Campaign,
    host: &HostFacts,
    summary: &Summary,
    extent: Extent,
) -> Document {
    if extent == Extent::Short {
        return short::short(campaign, host, summary);
    }
    let mut page = Document::default();
    begin(&mut page, campaign);
    limits(&mut page, campaign, summary, usize::MAX);
    let alone = campaign.slots.iter().filter(|slot| slot.is_calibration());
    let alone: Vec<String> = alone.map(|slot| (slot.id + 1).to_string()).collect();
    if !alone.is_empty() {
        let cells = listed(&alone);
        page.note(format!(
            "Without a DUT, where the tester measures itself: cell {cells}."
        ));
    }
    for (finding, slots) in merged(&summary.explanations) {
        page.gap();
        page.answer(&finding.statement);
        facts(&mut page, campaign, &summary.explanations, finding, &slots);
    }
    path::path(&mut page, campaign, &summary.explanations, None);
    stages(&mut page, campaign, &summary.explanations);
    balance::balance(&mut page, campaign, &summary.explanations, false);
    let explained = |of: &&SlotProfile| summary.explanations.iter().any(|e| e.slot == of.slot);
    let profiles: Vec<SlotProfile> = summary.profiles.iter().filter(explained).cloned().collect();
    events(&mut page, &profiles);
    not_examined(&mut page, &summary.explanations);
    if extent == Extent::WithAbsent {
        let absent = together(
            summary
                .explanations
                .iter()
                .map(|e| (&e.absent, campaign.name_of(e.slot))),
        );
        for (causes, slots) in absent {
            page.note(format!(
                "Looked for and absent ({}): {}.",
                slots.join(", "),
                causes.join(", ")
            ));
        }
    }
    end(&mut page, campaign, host, summary);
    page
}

fn begin(page: &mut Document, campaign: &Campaign) {
    warn_of_simulation(page, [unreal(campaign)]);
    page.heading(format!(
        "Why the DUT does not {} more {}s",
        forwards(campaign),
        campaign.noun()
    ));
}

/// Experiments that are open, and the machine.
fn end(page: &mut Document, campaign: &Campaign, host: &HostFacts, summary: &Summary) {
    let mut open = summary.explanations.iter().flat_map(|e| &e.findings);
    if open.any(|finding| finding.patch.is_some() && finding.proof.is_none()) {
        page.note("Experiments for these findings: `linerate explain DIRECTORY --prove` runs them, `--write-plans FOLDER` writes them.");
    }
    if let Some(machine) = machine(campaign, host) {
        page.note(machine);
    }
}

/// The machine that was measured, as far as it is known.
fn machine(campaign: &Campaign, host: &HostFacts) -> Option<String> {
    let is_host = campaign.asked.lab == LabKind::Hosts;
    let (name, system, os) = if is_host {
        ("DUT", "kernel", &host.os)
    } else {
        ("Machine", "Linux", &String::new())
    };
    let mut words = vec![host.cpu_model.clone(), os.clone()];
    words.extend((!host.kernel.is_empty()).then(|| format!("{system} {}", host.kernel)));
    words.retain(|word| !word.is_empty());
    (!words.is_empty()).then(|| format!("{name}: {}.", words.join(", ")))
}

/// The section on the page of a campaign: findings in short, or that there are none. `whole`: all findings, each with its facts, for a
/// reader who has no records.
pub(super) fn section(page: &mut Document, campaign: &Campaign, summary: &Summary, whole: bool) {
    let explanations = &summary.explanations;
    if explanations.is_empty() {
        return;
    }
    let mut part = Document::default();
    let merged = merged(explanations);
    let shown = if whole { merged.len() } else { MOST };
    for (finding, slots) in merged.iter().take(shown) {
        let names = names(campaign, explanations, slots);
        part.entry(
            "- ",
            format!("{names}{} ({})", finding.statement, known(finding.strength)),
        );
        let evidence = evidence(campaign, explanations, finding, slots);
        let evidence = evidence.first().map(|evidence| format!("{evidence}. "));
        let change = changes(campaign, finding)
            .next()
            .map(|c| format!("{}: {}", c.system, c.commands));
        part.item(
            "  ",
            format!(
                "{}{}",
                evidence.unwrap_or_default(),
                change.unwrap_or_default()
            ),
            Tone::Note,
        );
        if whole {
            let title = format!(
                "{} in full: evidence, mechanism, change, undo and gain",
                finding.cause
            );
            part.folded(title, |page| {
                facts(page, campaign, explanations, finding, slots)
            });
        }
    }
    if merged.is_empty() {
        part.say("None of the known causes was found.");
    }
    stages(&mut part, campaign, explanations);
    if whole {
        part.folded(
            "The limit of each cell, and the causes that were not looked for",
            |page| {
                limits(page, campaign, summary, usize::MAX);
                not_examined(page, explanations);
            },
        );
        part.note("`linerate explain DIRECTORY --prove` runs the experiments of findings whose change a plan can make.");
    } else {
        let more = merged.len().saturating_sub(shown);
        let more = when(more > 0, format!("{more} more findings, "));
        part.note(format!(
            "`linerate explain DIRECTORY` shows {more}the limit of each cell and, for each finding, the mechanism, a change to try, and the way to undo it. {}",
            open(explanations)
        ));
    }
    page.part("Why not more", part);
}

/// How many causes were not examined, in a sentence; empty where all were.
fn open(explanations: &[Explanation]) -> String {
    let mut causes: Vec<(&str, bool)> = Vec::new();
    for NotExamined { cause, reason } in explanations.iter().flat_map(|e| &e.not_examined) {
        if !causes.iter().any(|(known, _)| known == cause) {
            causes.push((cause, reason.contains("--profile")));
        }
    }
    let by_profile = causes.iter().filter(|(_, by_profile)| *by_profile).count();
    match (causes.len(), by_profile) {
        (0, _) => String::new(),
        (all, 0) => format!("linerate could not look for {}.", counted(all, "cause")),
        (all, some) if all == some => {
            format!(
                "linerate could not look for {} without --profile.",
                counted(all, "cause")
            )
        }
        (all, some) => {
            format!(
                "{} were not examined; measure again with --profile to examine {some} of them.",
                counted(all, "cause")
            )
        }
    }
}

/// All that is known of a finding beside its statement.
fn facts(
    page: &mut Document,
    campaign: &Campaign,
    explanations: &[Explanation],
    finding: &Finding,
    slots: &[usize],
) {
    let names = slots
        .iter()
        .map(|slot| campaign.name_of(*slot))
        .joined("; ");
    page.fact(
        "cause",
        format!(
            "{} ({}), in {}",
            finding.cause,
            known(finding.strength),
            names
        ),
    );
    evidence(campaign, explanations, finding, slots)
        .into_iter()
        .for_each(|evidence| page.fact("evidence", evidence));
    page.fact("why", &finding.mechanism);
    for change in changes(campaign, finding) {
        page.fact("change", format!("{}: {}", change.system, change.commands));
        page.fact("undo", format!("{}: {}", change.system, change.undo));
    }
    page.fact("gain", &finding.gain);
    for explanation in explanations.iter().filter(|of| slots.contains(&of.slot)) {
        let own = explanation.findings.iter().filter(|of| says(of, finding));
        let cell = match slots {
            [_] => String::new(),
            _ => format!("{}: ", campaign.name_of(explanation.slot)),
        };
        own.filter_map(|of| of.proof.as_ref())
            .for_each(|proof| page.fact("proof", format!("{cell}{}", proven(proof))));
    }
    finding
        .untried
        .iter()
        .for_each(|why| page.fact("proof", format!("not possible: {why}")));
}

/// `proven: 61.3 % more frames with the change, 95 % interval +58.9..+63.1 %; records in X`
fn proven(proof: &Proof) -> String {
    let records = proof
        .records
        .iter()
        .map(|records| format!("; records in {records}"))
        .collect::<String>();
    let Some(ratio) = proof.ratio else {
        let known = if proof.verdict == Verdict::Proven {
            "proven"
        } else {
            "not run"
        };
        return format!(
            "{known}: {}{records}",
            proof.reason.as_deref().unwrap_or_default()
        );
    };
    // From twice the rate on, percentages are hard to read.
    let times = ratio.median >= 2.0;
    let shown = |ratio: f64| {
        if times {
            significant(ratio, 3)
        } else {
            format!("{:+.1}", 100.0 * (ratio - 1.0))
        }
    };
    let unit = when(!times, " %");
    let change = match (ratio.side_of(1.0), ratio.low.zip(ratio.high)) {
        (_, None) => "too few valid trials to tell".into(),
        (side, Some((low, high))) => {
            let change = match side {
                None => "no difference is shown".into(),
                Some(_) if times => {
                    format!("{} times the frames with the change", shown(ratio.median))
                }
                Some(side) => {
                    let than = if side.is_lt() { "fewer" } else { "more" };
                    format!(
                        "{:.1} % {than} frames with the change",
                        100.0 * (ratio.median - 1.0).abs()
                    )
                }
            };
            format!(
                "{change}, 95 % interval {}..{}{unit}",
                shown(low),
                shown(high)
            )
        }
    };
    let verdict = match proof.verdict {
        Verdict::Proven => "proven",
        Verdict::Refuted => "refuted, no gain of 2 % or more",
        Verdict::Undecided | Verdict::NotRun => "not decided",
    };
    let reason = proof
        .reason
        .iter()
        .map(|reason| format!("{reason}; "))
        .collect::<String>();
    format!("{verdict}: {reason}{change}{records}")
}

/// A sentence for each slot that was explained, for so many of them.
fn limits(page: &mut Document, campaign: &Campaign, summary: &Summary, most: usize) {
    for explanation in summary.explanations.iter().take(most) {
        if let Some(row) = summary.rows.iter().find(|row| row.slot == explanation.slot) {
            let searched = summary.searches.iter().find(|of| of.slot == row.slot);
            page.say(limit(campaign, explanation, row, searched));
        }
    }
    if let Some(more @ 1..) = summary.explanations.len().checked_sub(most) {
        page.note(format!("{} with --full.", counted(more, "more cell")));
    }
}

/// The verb for what the DUT does with frames or connections.
fn forwards(campaign: &Campaign) -> &'static str {
    if campaign.noun() != "frame" {
        "carry"
    } else {
        "forward"
    }
}

/// A sentence for the stage that takes most of the time.
fn longest(explanation: &Explanation) -> String {
    let stages = explanation.stages.iter();
    let stage = stages.max_by(|a, b| a.ns.total_cmp(&b.ns));
    stage.map_or_else(String::new, |stage| {
        format!(
            " The largest part of this time is '{}', {:.0} ns{}.",
            stage.name,
            stage.ns,
            remark(&stage.name)
        )
    })
}

/// `forwarding: 0.626 Mpps. The DUT was the limit: a frame takes 1597 ns, including the tester's share. CPU 1, which forwards, was full.`
///
/// A search ends at a load, and not at the time that a frame takes.
fn limit(
    campaign: &Campaign,
    explanation: &Explanation,
    row: &Row,
    searched: Option<&Searched>,
) -> String {
    let rate = rate_of(campaign, row.received.median);
    let full = &row.full_cpus;
    let of_dut = when(campaign.asked.lab == LabKind::Hosts, " of the DUT");
    let were_full = |cpus: &[u32], [one, many]: [&str; 2]| match cpus {
        [] => String::new(),
        [cpu] => format!(" CPU {cpu}{of_dut}{one} was full."),
        _ => format!(" CPUs {}{of_dut}{many} were full.", cpu_list(cpus)),
    };
    let forwarding = match campaign.asked.mode {
        Mode::Inline => {
            let own = campaign.slots.get(explanation.slot);
            let own = own.and_then(|slot| slot.cpus.as_ref());
            Some(own.unwrap_or(&campaign.roles.generator))
        }
        Mode::Threaded => Some(&campaign.roles.dut),
        Mode::Hosts | Mode::EndHosts => None,
    };
    let busy = match forwarding {
        _ if searched.is_some() => String::new(),
        // Inline, the generator polls between frames that it sends at a rate.
        Some(_) if row.limit == Limit::OfferedLoad => String::new(),
        None => were_full(full, ["", ""]),
        Some(forwarding) => {
            let (own, others): (Vec<u32>, Vec<u32>) =
                full.iter().partition(|cpu| forwarding.contains(cpu));
            were_full(&own, [", which forwards,", ", which forward,"])
                + &were_full(
                    &others,
                    [", which does other work,", ", which do other work,"],
                )
        }
    };
    let goal = searched.and_then(|of| of.goals.first());
    let limit = match row.limit {
        Limit::Dut | Limit::DutDrops | Limit::Tester | Limit::Unknown
            if goal.is_some() && row.valid_trials > 0 =>
        {
            goal.map(|goal| format!("No higher load met the goal {}.", goal.name))
                .unwrap_or_default()
        }
        Limit::Dut if row.ns_per_frame > 0.0 => format!(
            "The DUT was the limit: a {} takes {:.0} ns, including the tester's share.",
            campaign.noun(),
            row.ns_per_frame
        ),
        Limit::DutDrops if campaign.opens_connections() => format!(
            "{} % of the connections fail at the DUT.",
            percent(row.dropped)
        ),
        Limit::DutDrops if row.dropped >= 1.0 => "The DUT forwards no frame.".into(),
        Limit::DutDrops => format!(
            "The DUT does not forward {} % of the frames that it takes in.",
            percent(row.dropped)
        ),
        Limit::Dut => "The DUT was the limit.".into(),
        Limit::Tester if row.ceiling.is_none() => NO_CEILING.into(),
        Limit::Tester => "The tester was the limit.".into(),
        Limit::Noisy => NOISY.into(),
        Limit::OfferedLoad if campaign.noun() != "frame" => {
            "The DUT carried all that was asked for.".into()
        }
        Limit::OfferedLoad => "The DUT forwarded all that was asked for.".into(),
        Limit::Path => "The path was the limit.".into(),
        Limit::Calibration | Limit::Unknown => String::new(),
    };
    let most = longest(explanation);
    let found = match (explanation.findings.len(), explanation.absent.len()) {
        (0, 0) => " No cause could be examined.",
        (0, _) => " No known cause was found.",
        _ => "",
    };
    let (number, name) = (explanation.slot + 1, campaign.name_of(explanation.slot));
    if let Some(low) = searched.and_then(Searched::unstable) {
        let lost = lost_at(low, campaign.noun());
        return format!("cell {number}, {name}: unstable: {lost}.{found}");
    }
    format!("cell {number}, {name}: {rate}. {limit}{busy}{most}{found}")
}

/// A stage in words, or how frames avoid one that a firewall adds on purpose.
fn remark(stage: &str) -> &'static str {
    match stage {
        "frame buffers" => ": the kernel allocates and frees memory for each frame",
        "connection tracking" => {
            "; on Linux, a flow table takes established flows past it, and notrack frames that need no state"
        }
        "address translation" => "; on Linux, a flow table takes established flows past it",
        _ => "",
    }
}

/// A line of the table of stages.
enum Line {
    Stage(usize),
    Together,
    /// A part of the whole: of one of two routers.
    Router(usize),
}

/// Nanoseconds of a frame by stage, for slots that were profiled.
fn stages(page: &mut Document, campaign: &Campaign, explanations: &[Explanation]) {
    let profiled: Vec<&Explanation> = explanations
        .iter()
        .filter(|e| !e.stages.is_empty())
        .take(CELLS)
        .collect();
    let Some(first) = profiled.first() else {
        return;
    };
    let part = |explanation: &Explanation, row: &Line| match *row {
        Line::Stage(stage) => explanation.stages.get(stage).map(|stage| stage.ns),
        Line::Together => Some(explanation.stages.iter().map(|stage| stage.ns).sum()),
        Line::Router(router) => explanation.routers.get(router).map(|part| part.ns),
    };
    let is_taken = |row: &Line| {
        profiled
            .iter()
            .any(|e| part(e, row).is_some_and(|ns| ns > 0.0))
    };
    let stages = (0..first.stages.len()).map(Line::Stage);
    let routers: &[Stage] = profiled
        .iter()
        .map(|e| &e.routers[..])
        .max_by_key(|of| of.len())
        .unwrap_or_default();
    let rows = stages
        .filter(is_taken)
        .chain([Line::Together])
        .chain((0..routers.len()).map(Line::Router));
    let table = Table::of(rows);
    let table = table.column(
        &format!("stage of a {}'s way", campaign.noun()),
        "",
        |row| match *row {
            Line::Stage(stage) => first.stages[stage].name.clone(),
            Line::Together => "together".to_string(),
            Line::Router(router) => format!("in the {}", routers[router].name),
        },
    );
    let table = profiled.iter().fold(table, |table, explanation| {
        table.column(&format!("cell {}", explanation.slot + 1), "ns", |row| {
            part(explanation, row).map_or(Cell::Nothing, |ns| fixed(ns, 0))
        })
    });
    page.gap();
    page.table(table);
    page.note(format!(
        "Shares of the samples, as parts of a {}'s time in the trials without samples.",
        campaign.noun()
    ));
}

/// Events that the CPUs counted, for each frame.
pub(super) fn events(page: &mut Document, profiles: &[SlotProfile]) {
    let columns = profiles
        .iter()
        .map(|of| (format!("cell {}", of.slot + 1), of.counted_by_frame()));
    let columns: Vec<_> = columns
        .filter(|(_, counted)| !counted.is_empty())
        .take(CELLS)
        .collect();
    if !columns.is_empty() {
        page.gap();
        page.table(super::kernel::events(&columns));
        page.note("Events per frame on the CPUs that forward, counted in kernel mode during the sampled trials. They include the tester's own.");
    }
}

/// Causes that were not looked for, by reason.
fn not_examined(page: &mut Document, explanations: &[Explanation]) {
    let all = explanations
        .iter()
        .flat_map(|e| &e.not_examined)
        .map(|n| (&n.reason, &n.cause));
    for (reason, mut causes) in together(all) {
        causes.sort_unstable();
        causes.dedup();
        let causes = causes.into_iter().map(String::as_str).joined(", ");
        page.note(format!("Not examined: {causes}, because {reason}."));
    }
}
