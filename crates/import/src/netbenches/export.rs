//! A set as one JSON object, for `linerate import netbenches --json`. docs/netbenches.md lists the fields.

use super::{Equilibrium, ResultDirectory, Rule, Set, folder};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct SetLine<'a> {
    dir: &'a str,
    set: &'a str,
    /// `forwarding`, `profiling` or `equilibrium`.
    kind: &'a str,
    machine: Option<&'a str>,
    card: Option<&'a str>,
    topic: Option<&'a str>,
    label: Option<&'a str>,
    image: Option<&'a str>,
    config: Option<&'a str>,
    pktgen: Option<&'a str>,
    family: Option<&'a str>,
    runs: Vec<RunLine<'a>>,
    published: Option<&'a [f64]>,
    published_file: Option<&'a str>,
    agrees: Option<bool>,
    rule: Option<Rule>,
    disagreement: Option<&'a str>,
    /// Bytes without FCS, as pkt-gen counts them.
    frame_length: Option<u64>,
    facts: &'a BTreeMap<String, String>,
    /// File -> `name=value`, or the rule.
    description: BTreeMap<&'a str, Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    equilibrium: Option<&'a Equilibrium>,
    problems: &'a [String],
}

#[derive(Serialize)]
struct RunLine<'a> {
    log: &'a str,
    number: Option<u32>,
    samples: usize,
    lines: Option<(u64, u64)>,
    median_pps: Option<f64>,
    sound_pps: Option<f64>,
    sound_samples: usize,
    offered_pps: Option<f64>,
    problems: &'a [String],
}

/// One line for each set of a folder, and for each search for an equilibrium: JSON without a newline.
///
/// # Errors
/// None that is known: numbers and strings always make JSON.
pub fn lines(directory: &ResultDirectory) -> serde_json::Result<Vec<String>> {
    let sets = directory.sets.iter().map(|set| serde_json::to_string(&set_line(directory, set)));
    let equilibria =
        directory.equilibria.iter().map(|e| serde_json::to_string(&equilibrium_line(directory, e)));
    sets.chain(equilibria).collect()
}

fn set_line<'a>(directory: &'a ResultDirectory, set: &'a Set) -> SetLine<'a> {
    let runs = set.runs.iter().map(|run| RunLine {
        log: &run.log,
        number: run.number,
        samples: run.samples,
        lines: run.lines,
        median_pps: run.median_pps,
        sound_pps: run.sound_pps,
        sound_samples: run.sound_samples,
        offered_pps: run.offered_pps,
        problems: &run.problems,
    });
    let description = set.description.iter().map(|(file, settings)| {
        let lines = settings.iter().map(|s| match s.name.as_str() {
            "" => s.value.clone(),
            name => format!("{name}={}", s.value),
        });
        (file.as_str(), lines.collect())
    });
    SetLine {
        dir: set.directory(),
        set: &set.name,
        kind: if set.profiling { "profiling" } else { "forwarding" },
        image: set.image.as_deref(),
        config: set.config.as_deref(),
        pktgen: set.pktgen.as_deref(),
        family: set.family.as_deref(),
        runs: runs.collect(),
        published: set.published.as_ref().map(|p| p.values.as_slice()),
        published_file: set.published.as_ref().map(|p| p.file.as_str()),
        agrees: set.agrees,
        rule: set.rule,
        disagreement: set.disagreement.as_deref(),
        frame_length: set.frame_length,
        facts: &set.facts,
        description: description.collect(),
        problems: &set.problems,
        ..placed(directory)
    }
}

fn equilibrium_line<'a>(directory: &'a ResultDirectory, equilibrium: &'a Equilibrium) -> SetLine<'a> {
    let published = equilibrium.published.as_ref().map(|p| p.file.as_str());
    let log = equilibrium.runs.first().map(|r| r.log.as_str());
    SetLine {
        dir: published.or(log).map_or(directory.path.as_str(), folder),
        set: &equilibrium.name,
        kind: "equilibrium",
        equilibrium: Some(equilibrium),
        facts: &equilibrium.facts,
        problems: &equilibrium.problems,
        ..placed(directory)
    }
}

/// A line that knows no more than its place.
fn placed(directory: &ResultDirectory) -> SetLine<'_> {
    static NO_FACTS: BTreeMap<String, String> = BTreeMap::new();
    SetLine {
        dir: &directory.path,
        set: "",
        kind: "",
        machine: directory.machine.as_deref(),
        card: directory.card.as_deref(),
        topic: directory.topic.as_deref(),
        label: directory.label.as_deref(),
        image: None,
        config: None,
        pktgen: None,
        family: None,
        runs: Vec::new(),
        published: None,
        published_file: None,
        agrees: None,
        rule: None,
        disagreement: None,
        frame_length: None,
        facts: &NO_FACTS,
        description: BTreeMap::new(),
        equilibrium: None,
        problems: &[],
    }
}
