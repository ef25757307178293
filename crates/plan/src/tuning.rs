//! A plan as a list of changes: its first variant is the DUT as it is, and each other variant makes one change of it. Experiments make
//! several changes at once. Changes that give one key different values are levels of a factor, and exclude each other.

use super::Plan;
use super::author::{Author, Cell as Written, Variant, changed, difference};
use super::campaign::{Campaign, Cell};
use super::diagnostic::Diagnostic;
use super::forms::duration_text;
use linerate_measure::experiment::Trials;
use linerate_measure::tuning::{LeftOut, MOST};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Why a change is not tried that the DUT has before it is made.
pub const NOTHING_NEW: &str = "the DUT has that already";

/// A fault with the section that it is about: its table and its name.
type Fault = ([String; 2], Diagnostic);

/// Changes of a DUT. Any of them can be made together, but for the levels of a factor.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// The variant of the DUT as it is, and its cell as the plan has it.
    base: String,
    written: Written,
    /// The changes, in the order of the plan's variants.
    pub changes: Vec<Candidate>,
    /// Variants that make no change of their own.
    pub left_out: Vec<LeftOut>,
    /// Rule files, by the names that the plan has for them.
    pub files: BTreeMap<String, String>,
}

/// An experiment that measures combinations of changes side by side, each on its own DUT.
#[derive(Debug, Clone)]
pub struct Combined {
    /// The plan.
    pub text: String,
    /// The plan, read.
    pub campaign: Campaign,
    /// The cell of each combination.
    pub cells: Vec<usize>,
}

/// A change that may make the DUT faster.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The name of its variant.
    pub name: String,
    /// Keys of a variant with their values, as a plan has them.
    pub patch: Json,
    /// The key that other changes give other values: they and this one are the levels of a factor of this name.
    pub factor: Option<String>,
}

impl Candidate {
    /// Paths of single values, with the values. Lists are left out: they grow.
    fn leaves(&self) -> Vec<(String, Json)> {
        let mut all = Vec::new();
        leaves("", &self.patch, &mut all);
        all.retain(|(_, value)| !value.is_array());
        all
    }

    /// Keys with their values: `interface.gro = false`.
    pub fn keys(&self) -> Vec<String> {
        let mut all = Vec::new();
        leaves("", &self.patch, &mut all);
        all.into_iter()
            .map(|(key, value)| format!("{key} = {value}"))
            .collect()
    }
}

impl Tuning {
    /// The changes of a plan.
    ///
    /// # Errors
    /// The plan has factors, no changes or too many, a variant that takes something away from the first one, or one that excludes others
    /// without being a level of the same key.
    pub fn of(plan: &Campaign) -> Result<Tuning, Vec<Diagnostic>> {
        let author = Author::of(plan)?;
        Tuning::by(plan, &author).map_err(|faults| author.locate(faults))
    }

    fn by(plan: &Campaign, author: &Author<'_>) -> Result<Tuning, Vec<Fault>> {
        if let Some(factor) = plan.experiment.factors.first() {
            let message = format!(
                "a tuning takes variants, and this plan has the factor '{}'",
                factor.name
            );
            let remedy = "remove the factor, and write a variant for each level; variants that give one key different values are compared as levels";
            let fault = Diagnostic::new(message).remedy(remedy);
            return Err(vec![(["factors".into(), factor.name.clone()], fault)]);
        }
        let cells = duts(plan);
        let base = base(&cells);
        let (Some(base), true) = (base, cells.len() > 1) else {
            let message = "the plan has no changes: it needs a variant for the DUT as it is, and one for each change";
            let fault =
                Diagnostic::new(message).remedy("[variants.NAME] with from = the first variant");
            return Err(vec![of_variant("", fault)]);
        };
        let written = author.cell(base);
        let (mut changes, left_out) = candidates(plan, author, &cells, base)?;
        if changes.len() > MOST {
            let message = format!(
                "the plan has {} changes, and one tuning has at most {MOST}",
                changes.len()
            );
            let fault = Diagnostic::new(message).remedy("make several plans of it");
            return Err(vec![of_variant(&changes[MOST].name, fault)]);
        }
        name_factors(&mut changes).map_err(|fault| vec![fault])?;
        not_shared(&changes)?;
        let files = plan
            .lanes
            .iter()
            .filter_map(|lane| lane.settings.rule_file.as_ref());
        let files = files
            .map(|file| (file.file.clone(), file.text.clone()))
            .collect();
        Ok(Tuning {
            base: base.variant.clone(),
            written,
            changes,
            left_out,
            files,
        })
    }

    /// The faults for which `linerate tune` refuses a plan whose variants are all changes of the first one. They are warnings, because
    /// `linerate run` takes the plan.
    pub fn warnings(plan: &Campaign) -> Vec<Diagnostic> {
        let (Ok(author), cells) = (Author::of(plan), duts(plan)) else {
            return Vec::new();
        };
        let Some(base) = base(&cells).filter(|_| plan.experiment.factors.is_empty()) else {
            return Vec::new();
        };
        let mut others = cells.iter().filter(|cell| cell.variant != base.variant);
        if cells.len() < 2 || !others.all(|cell| author.is_from(&cell.variant, &base.variant)) {
            return Vec::new();
        }
        let found = match Tuning::by(plan, &author) {
            // A plan that compares equal variants.
            Ok(tuning) if tuning.changes.is_empty() => Vec::new(),
            Ok(tuning) => {
                let said = |left: LeftOut| {
                    let message = format!(
                        "`linerate tune` does not try '{}': {}",
                        left.name, left.reason
                    );
                    of_variant(&left.name, Diagnostic::new(message))
                };
                tuning.left_out.into_iter().map(said).collect()
            }
            Err(faults) => {
                let said = |(place, fault): Fault| {
                    let message = format!("`linerate tune` refuses this plan: {}", fault.message);
                    (place, Diagnostic { message, ..fault })
                };
                faults.into_iter().map(said).collect()
            }
        };
        author
            .locate(found)
            .into_iter()
            .map(Diagnostic::doubtful)
            .collect()
    }

    /// The factor of each change: a number that the levels of one factor have in common.
    pub fn factor_of(&self) -> Vec<usize> {
        let first = |(at, change): (usize, &Candidate)| {
            let factor = change.factor.as_ref();
            let same = |other: &Candidate| factor.is_some() && other.factor.as_ref() == factor;
            self.changes.iter().position(same).unwrap_or(at)
        };
        self.changes.iter().enumerate().map(first).collect()
    }

    /// The variant of the DUT as it is.
    pub fn base_variant(&self) -> &str {
        &self.base
    }

    /// Whether a variant is the DUT as it is.
    pub fn is_base(&self, variant: &str) -> bool {
        self.base == variant
    }

    /// The DUT as it is: the name of its variant, with its keys and their values.
    pub fn base(&self) -> String {
        let all = Candidate {
            name: String::new(),
            patch: Json::Object(self.written.settings.clone()),
            factor: None,
        }
        .keys();
        let settings = if all.is_empty() {
            String::new()
        } else {
            format!(" ({})", all.join(", "))
        };
        format!("{}{settings}", self.base)
    }

    /// The experiment that measures combinations of changes. `name` is that of a variant: the one by this number makes the changes of
    /// `runs[number]`.
    ///
    /// # Errors
    /// Changes that are possible alone are not possible together.
    pub fn experiment(
        &self,
        measured: &Campaign,
        [title, question]: [&str; 2],
        runs: &[Vec<bool>],
        name: impl Fn(usize) -> String,
        trials: &Trials,
    ) -> Result<Combined, Vec<Diagnostic>> {
        let variant = |(number, run): (usize, &Vec<bool>)| {
            let made = || {
                self.changes
                    .iter()
                    .zip(run)
                    .filter(|(_, made)| **made)
                    .map(|(change, _)| change)
            };
            let names: Vec<&str> = made().map(|change| change.name.as_str()).collect();
            let about = if names.is_empty() {
                "as it is".into()
            } else {
                names.join(" + ")
            };
            Variant {
                name: name(number),
                about,
                apart: true,
                settings: made().fold(self.written.settings.clone(), |before, change| {
                    changed(&before, &change.patch)
                }),
            }
        };
        let variants: Vec<Variant> = runs.iter().enumerate().map(variant).collect();
        let mut how = self.written.trials.clone();
        for (key, value) in [
            ("blocks", trials.blocks.map(Json::from)),
            (
                "budget",
                trials.budget_ns.map(|ns| duration_text(ns).into()),
            ),
            ("seed", trials.seed.map(Json::from)),
        ] {
            how.remove(key);
            how.extend(value.map(|value| (key.into(), value)));
        }
        let text = self
            .written
            .experiment([title, question], &variants, None, &how)
            .0;
        let mut read = |name: &str| {
            self.files
                .get(name)
                .cloned()
                .ok_or_else(|| "the plan had none".into())
        };
        let plan = Plan::read_with(text.as_bytes(), &mut read)?;
        let campaign = plan.campaign(measured.experiment.system, false).cloned();
        let cells = |campaign: &Campaign| -> Option<Vec<usize>> {
            (0..runs.len())
                .map(|n| {
                    campaign
                        .cells
                        .iter()
                        .position(|cell| cell.variant == name(n))
                })
                .collect()
        };
        let found = campaign.and_then(|campaign| {
            Some(Combined {
                cells: cells(&campaign)?,
                campaign,
                text,
            })
        });
        found.ok_or_else(|| vec![Diagnostic::new("the plan is for another system")])
    }
}

/// Paths of single values, with the values.
fn leaves(path: &str, value: &Json, all: &mut Vec<(String, Json)>) {
    match value {
        Json::Object(table) => {
            let dot = if path.is_empty() { "" } else { "." };
            table
                .iter()
                .for_each(|(key, value)| leaves(&format!("{path}{dot}{key}"), value, all));
        }
        value => all.push((path.into(), value.clone())),
    }
}

/// The cells of a plan with a DUT.
fn duts(plan: &Campaign) -> Vec<&Cell> {
    (0..plan.cells.len())
        .filter(|cell| !plan.is_ceiling(*cell))
        .map(|cell| &plan.cells[cell])
        .collect()
}

/// The cell of the DUT as it is.
fn base<'c>(cells: &[&'c Cell]) -> Option<&'c Cell> {
    let compared_with = cells.iter().find(|cell| cell.baseline.is_none());
    compared_with.or(cells.first()).copied()
}

/// The changes that variants make of the first one, and the variants that make none of their own.
///
/// # Errors
/// A variant takes something away from the first one.
fn candidates(
    plan: &Campaign,
    author: &Author<'_>,
    cells: &[&Cell],
    base: &Cell,
) -> Result<(Vec<Candidate>, Vec<LeftOut>), Vec<Fault>> {
    let settings = |cell: &Cell| &plan.lanes[cell.lane].settings;
    let written = author.cell(base).settings;
    let (mut changes, mut left_out) = (Vec::new(), Vec::new());
    let mut tried: Vec<&Cell> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.variant != base.variant) {
        let name = cell.variant.clone();
        if settings(cell) == settings(base) {
            let reason = NOTHING_NEW.into();
            left_out.push(LeftOut { name, reason });
            continue;
        }
        if let Some(same) = tried.iter().find(|one| settings(one) == settings(cell)) {
            let reason = format!("'{}' is the same change", same.variant);
            left_out.push(LeftOut { name, reason });
            continue;
        }
        let patch = difference(&written, &author.cell(cell).settings);
        let Some(patch) = patch.map(Json::Object) else {
            let message = format!(
                "'{name}' lacks a setting of '{}': a change adds settings, or gives them other values",
                base.variant
            );
            let fault = Diagnostic::new(message).remedy("write it with from");
            return Err(vec![of_variant(&name, fault)]);
        };
        tried.push(cell);
        changes.push(Candidate {
            name,
            patch,
            factor: None,
        });
    }
    Ok((changes, left_out))
}

/// A fault with the section of the plan that it is about.
fn of_variant(name: &str, fault: Diagnostic) -> Fault {
    (["variants".into(), name.into()], fault)
}

/// Names the factors of changes that exclude each other.
///
/// # Errors
/// A change excludes others, and no key has a value of its own in each of them.
fn name_factors(changes: &mut [Candidate]) -> Result<(), Fault> {
    for at in 0..changes.len() {
        let excludes =
            |other: &usize| *other != at && !conflicts(&changes[*other], &changes[at]).is_empty();
        let levels: Vec<usize> = (0..changes.len()).filter(excludes).collect();
        let Some(first) = levels.first() else {
            continue;
        };
        // In a plan's order, so that all levels of a factor find the same name.
        let of_first = conflicts(&changes[*first], &changes[at]);
        let in_all = |key: &&String| {
            let all = || levels.iter().chain([&at]);
            all().all(|a| {
                all().all(|b| a == b || conflicts(&changes[*a], &changes[*b]).contains(key))
            })
        };
        let Some(key) = of_first.iter().find(in_all).cloned() else {
            let name = &changes[at].name;
            let of = |other: &usize| {
                let keys = conflicts(&changes[*other], &changes[at]).join(", ");
                format!(
                    "with '{}', because they give {keys} different values",
                    changes[*other].name
                )
            };
            let others: Vec<String> = levels.iter().map(of).collect();
            let message = format!(
                "'{name}' cannot be made together {}: variants that exclude each other must all set the same key, each to another value",
                others.join("; nor ")
            );
            let remedy = format!("make a variant of each key of '{name}', or leave it out");
            return Err(of_variant(name, Diagnostic::new(message).remedy(remedy)));
        };
        changes[at].factor = Some(key);
    }
    Ok(())
}

/// Whether each change has keys of its own: two that make the same part of the DUT's settings do not have effects of their own. Levels of a
/// factor are never made together.
///
/// # Errors
/// For each two changes that share a key, a fault.
fn not_shared(changes: &[Candidate]) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        for other in &changes[..at] {
            let of_one_factor = change.factor.is_some() && change.factor == other.factor;
            let known = other.leaves();
            let shared = change
                .leaves()
                .into_iter()
                .find(|leaf| known.contains(leaf));
            let Some((key, value)) = shared.filter(|_| !of_one_factor) else {
                continue;
            };
            let (a, b) = (&other.name, &change.name);
            let message = format!(
                "'{a}' and '{b}' both set {key} = {value}: a run that makes both has it once, so their effects cannot be told apart"
            );
            let remedy =
                "set it in one of them alone, in the first variant, or in a variant of its own";
            faults.push(of_variant(b, Diagnostic::new(message).remedy(remedy)));
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

/// The keys that both set to different values, in the order of the alphabet. Lists grow.
fn conflicts(a: &Candidate, b: &Candidate) -> Vec<String> {
    let known = a.leaves();
    let differs = |(key, value): &(String, Json)| {
        known
            .iter()
            .any(|(other, its)| other == key && its != value)
    };
    let keys = b.leaves().into_iter().filter(differs).map(|(key, _)| key);
    keys.collect()
}

#[cfg(test)]
mod tests;
