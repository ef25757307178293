//! bench-lab.sh's configurations, configuration sets and pkt-gen presets, as a lab file and plans.
//!
//! [`shell`] evaluates the variables, [`testbed`] makes hosts of them, [`traffic`] frames, and [`sets`] variants. [`lab_file`]
//! and [`plan_file`] write TOML. Nothing is executed, no shell string is built, and settings that cannot be carried over are
//! reported with their file and line.

mod lab_file;
mod notes;
mod plan_file;
mod router;
mod sets;
mod shell;
mod testbed;
#[cfg(test)]
mod tests;
mod traffic;
mod values;

use linerate_hosts::folder::{File, Folder};
use linerate_plan::diagnostic::{Diagnostic, Lines, Problems, Span};
use linerate_plan::lab::Lab;
use linerate_plan::{Plan, text};
pub use notes::{Note, Notes};
use serde::Serialize;
use traffic::Traffic;
use values::Values;

/// The name of the lab file, which plans refer to.
pub const LAB_FILE: &str = "LAB.toml";
/// Default number of runs of each configuration: the script's own default is 5, and a 95 % interval needs 6.
pub const DEFAULT_RUNS: u64 = 6;

/// Presets of one folder at most.
const MOST_PRESETS: usize = 500;

/// Arguments of bench-lab.sh.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// Title of the lab.
    pub title: String,
    /// Path of the configuration, for messages.
    pub path: String,
    /// Content of the configuration (`-f`).
    pub config: Vec<u8>,
    /// Configuration sets (`-c`).
    pub sets: Option<Folder>,
    /// pkt-gen presets (`-p`).
    pub presets: Option<Folder>,
    /// Runs of each (`-n`).
    pub runs: Option<u64>,
}

/// A plan that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanFile {
    /// Name of the file: `PLAN.toml`.
    pub name: String,
    /// Text of the plan, without faults.
    pub text: String,
}

/// Result of an import.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Imported {
    /// The text of the lab file.
    pub lab: String,
    /// The plans: one, unless presets differ in more than the levels of factors can say.
    pub plans: Vec<PlanFile>,
    /// Settings that were carried over, and settings that were not.
    #[serde(flatten)]
    pub notes: Notes,
    /// Settings that the user must add to the lab file, because no input has them.
    pub lacking: Vec<Diagnostic>,
}

/// Makes a lab file and plans.
///
/// # Errors
/// The configuration runs something, so that its values are unknown without running it; or the text is no configuration, with its
/// faults.
pub fn import(source: &Source) -> Result<Imported, Vec<Diagnostic>> {
    let text = text(
        &source.config,
        "a configuration",
        "keep assignments, leave data out",
    )
    .map_err(|f| vec![f])?;
    let mut values = Values::default();
    let mut problems = values.read(text, &source.path);
    if problems.is_empty() {
        problems = essentials(text, &values);
    }
    if !problems.is_empty() {
        return Err(Lines::new(text).locate_all(problems));
    }
    let mut notes = Notes::default();
    for folder in source.sets.iter().chain(&source.presets) {
        let unread = folder.unread.iter();
        unread
            .for_each(|(path, reason)| notes.left(&join(&folder.path, path), None, reason.clone()));
    }
    let sets = source
        .sets
        .as_ref()
        .map(|folder| sets::sets(folder, &mut notes))
        .unwrap_or_default();
    let usual = sets.iter().find(|set| set.baseline).or(sets.first());
    let hosts = testbed::hosts(&values, usual, &mut notes);
    let presets = presets(source, text, &values, &mut notes);
    let lab = lab_file::write(source, &hosts);
    let mut plans = plan_file::plans(source, &values, &sets, &presets, &mut notes);
    unused(&values, &mut notes);
    let lacking = Lab::read(lab.as_bytes()).err().unwrap_or_default();
    notes.sort();
    let left = plan_file::left(&notes);
    for plan in &mut plans {
        plan.text += &left;
        Plan::read(plan.text.as_bytes())?;
    }
    Ok(Imported {
        lab,
        plans,
        notes,
        lacking,
    })
}

/// Without these there is no lab.
fn essentials(text: &str, values: &Values) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for name in ["DUT_ADMIN", "SENDER_ADMIN", "RECEIVER_ADMIN"] {
        let value = values.get(name);
        let message = match value.map(|value| value.text.as_deref()) {
            None => format!("{name} is not set: this is not a configuration of bench-lab.sh"),
            Some(Err(why)) => format!("the value of {name} is not known: {why}"),
            Some(Ok(text)) if text.trim().is_empty() => format!("{name} is empty"),
            Some(Ok(_)) => continue,
        };
        let span = value.map_or_else(Span::default, |value| line(text, value.line));
        problems.fault(
            span,
            message,
            format!("write {name}=\"...\", the host that ssh connects to"),
        );
    }
    problems
}

/// The place of a line.
fn line(text: &str, number: usize) -> Span {
    let start: usize = text
        .split_inclusive('\n')
        .take(number.saturating_sub(1))
        .map(str::len)
        .sum();
    let length = text[start..].lines().next().unwrap_or_default().len();
    Span {
        start,
        end: start + length,
    }
}

/// The frames of each preset, as the script would send them: in its shell, one preset after the other, each followed by the
/// configuration once more.
fn presets(
    source: &Source,
    config: &str,
    values: &Values,
    notes: &mut Notes,
) -> Vec<(String, Traffic)> {
    let Some(folder) = &source.presets else {
        return Vec::new();
    };
    let mut presets = Vec::new();
    let mut running = values.clone();
    for file in &folder.files {
        let path = join(&folder.path, &file.path);
        if file.path.contains('/') {
            notes.left(
                &path,
                None,
                "presets are files, and this is in a folder of its own".into(),
            );
            continue;
        }
        if presets.len() >= MOST_PRESETS {
            notes.left(
                &path,
                None,
                format!("the preset is left out: more than {MOST_PRESETS}"),
            );
            continue;
        }
        let with = |before: &Values| preset(file, &path, before, (config, &source.path));
        let (after, alone) = match (with(&running), with(values)) {
            (Ok(after), Ok(alone)) => (after, alone),
            (Err(first), _) | (_, Err(first)) => {
                let line = first.place.map(|place| place.line);
                notes.left(
                    &path,
                    line,
                    format!("the preset is left out: {}", first.message),
                );
                continue;
            }
        };
        running = after;
        let name = sets::name(&file.path);
        let traffic = traffic::traffic(&running, notes);
        if traffic != traffic::traffic(&alone, &mut Notes::default()) {
            let what =
                "the preset says less than one before it, whose values are kept, as in the script";
            notes.left(&path, None, what.to_string());
        }
        notes.carry(&path, None, format!("frames: {traffic}"));
        presets.push((name, traffic));
    }
    presets
}

/// The variables after a preset and the configuration.
fn preset(
    file: &File,
    path: &str,
    before: &Values,
    (config, config_path): (&str, &str),
) -> Result<Values, Diagnostic> {
    let text = text(&file.bytes, "a preset", "keep assignments")?;
    let mut values = before.clone();
    let faults = Lines::new(text).locate_all(values.read(text, path));
    values.read(config, config_path);
    faults.into_iter().next().map_or(Ok(values), Err)
}

/// Variables that nothing uses.
fn unused(values: &Values, notes: &mut Notes) {
    for (name, value) in values.iter() {
        let used = notes.is_used(name) || values.is_referred(name);
        if !used && value.text.as_deref() != Ok("") {
            let why = match &value.text {
                Ok(_) => testbed::why_not(name).to_string(),
                Err(why) => format!("its value is not known: {why}"),
            };
            notes.left_value(value, format!("{name}: {why}"));
        }
    }
}

fn join(folder: &str, path: &str) -> String {
    format!("{}/{path}", folder.trim_end_matches('/'))
}
