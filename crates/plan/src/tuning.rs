//! A plan as a list of changes: its first variant is the DUT as it is, and each other variant makes one change of it. Experiments make
//! several changes at once. Changes that give one key different values are levels of a factor, and exclude each other.

use super::Plan;
use super::author::{Author, Cell as Written, Variant, changed, difference};
use super::campaign::{Campaign, Cell};
use super::diagnostic::Diagnostic;
use super::forms::duration_text;
use linerate_measure::experiment::Trials;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Changes of a DUT. Any of them can be made together, but for the levels of a factor.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// The variant of the DUT as it is, and its cell as the plan has it.
    base: String,
    written: Written,
    /// The changes, in the order of the plan's variants.
    pub changes: Vec<Candidate>,
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
    /// The plan has factors, a variant that takes something away from the first one, or one that excludes others without being a level of
    /// the same key.
    pub fn of(plan: &Campaign) -> Result<Tuning, Vec<Diagnostic>> {
        let fault = |message: String, remedy: &str| vec![Diagnostic::new(message).remedy(remedy)];
        let cells: Vec<&Cell> = (0..plan.cells.len())
            .filter(|c| !plan.is_ceiling(*c))
            .map(|c| &plan.cells[c])
            .collect();
        if let Some(factor) = plan.experiment.factors.first() {
            let message = format!(
                "the factor '{}' is for comparisons of its levels, and each change of a tuning is a variant",
                factor.name
            );
            return Err(fault(
                message,
                "make a variant of each level: those that give one key different values are compared as levels",
            ));
        }
        let base = cells
            .iter()
            .copied()
            .find(|cell| cell.baseline.is_none())
            .or(cells.first().copied());
        let (Some(base), true) = (base, cells.len() > 1) else {
            let message = "the plan has no changes: it needs a variant for the DUT as it is, and one for each change";
            return Err(fault(
                message.into(),
                "[variants.NAME] with from = the first variant",
            ));
        };
        let author = Author::of(plan)?;
        let written = author.cell(base);
        let mut changes: Vec<Candidate> = Vec::new();
        for cell in cells.iter().filter(|cell| cell.variant != base.variant) {
            let (name, from) = (cell.variant.clone(), &base.variant);
            let patch = difference(&written.settings, &author.cell(cell).settings)
                .map(Json::Object)
                .ok_or_else(|| {
                    fault(
                        format!("'{name}' lacks a setting of '{from}': a change adds settings, or gives them other values"),
                        "write it with from",
                    )
                })?;
            let factor = None;
            changes.push(Candidate {
                name,
                patch,
                factor,
            });
        }
        name_factors(&mut changes).map_err(|message| {
            fault(message, "leave one of them out, or give them one key alone")
        })?;
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
            files,
        })
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

/// Names the factors of changes that exclude each other.
///
/// # Errors
/// A change excludes others, and no key has a value of its own in each of them.
fn name_factors(changes: &mut [Candidate]) -> Result<(), String> {
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
            return Err(format!(
                "'{}' cannot be made together with '{}', because both set {}, and they are not levels of one setting: other changes share this key with one of them alone, or give it the same value",
                changes[at].name, changes[*first].name, of_first[0]
            ));
        };
        changes[at].factor = Some(key);
    }
    Ok(())
}

/// The keys that both set to different values, in the order of the alphabet. Lists grow.
fn conflicts(a: &Candidate, b: &Candidate) -> Vec<String> {
    let of = |candidate: &Candidate| {
        let mut all = Vec::new();
        leaves("", &candidate.patch, &mut all);
        all
    };
    let known = of(a);
    let differs = |(key, value): &(String, Json)| {
        !value.is_array()
            && known
                .iter()
                .any(|(other, its)| other == key && its != value)
    };
    let keys = of(b).into_iter().filter(differs).map(|(key, _)| key);
    keys.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_measure::experiment::System;

    const PLAN: &str = r#"
        title = "t"
        question = "q"
        [variants.router]
        sysctls = { "net.ipv4.conf.all.rp_filter" = 1 }
        [variants.loose]
        from = "router"
        sysctls = { "net.ipv4.conf.all.rp_filter" = 0 }
        [variants.no-gro]
        from = "router"
        interface.gro = false
        [variants.rules]
        from = "router"
        rules = { tool = "nftables", filter = "stateless", before = 100 }
        [traffic]
        flows = 7
        [trials]
        duration = "100 ms"
        blocks = 6
    "#;

    fn plan(text: &str) -> Campaign {
        Plan::read(text.as_bytes())
            .unwrap()
            .campaign(System::Linux, false)
            .unwrap()
            .clone()
    }

    #[test]
    fn changes_are_made_together() {
        let plan = plan(PLAN);
        let tuning = Tuning::of(&plan).unwrap();
        let words: Vec<String> = tuning.changes.iter().flat_map(Candidate::keys).collect();
        assert_eq!(
            words[..2],
            [
                "sysctls.net.ipv4.conf.all.rp_filter = 0",
                "interface.gro = false"
            ]
        );
        let trials = &plan.experiment.trials;
        let runs = [
            vec![false; 3],
            vec![true, true, false],
            vec![true; 3],
            vec![true; 3],
        ];
        let name = |n: usize| format!("run-{n}");
        let Combined {
            campaign: made,
            cells,
            ..
        } = tuning
            .experiment(&plan, ["t", "q"], &runs, name, trials)
            .unwrap();
        let of = |run: usize| &made.lanes[made.cells[cells[run]].lane].settings;
        assert_eq!(of(0), &plan.lanes[plan.cells[1].lane].settings);
        assert_eq!(of(1).sysctls["net.ipv4.conf.all.rp_filter"], "0");
        assert!(of(1).rules.is_none() && of(2).rules.is_some());
        assert_eq!(of(2), of(3));
        assert_ne!(
            made.cells[cells[2]].lane, made.cells[cells[3]].lane,
            "each run has a DUT of its own"
        );
        assert_eq!(made.kinds[made.cells[cells[3]].kind].flows, 7);
    }

    #[test]
    fn changes_that_give_one_key_different_values_are_levels_of_a_factor() {
        let budgets = "[variants.small]\nfrom = \"rules\"\nrules.before = 5\n[variants.large]\nfrom = \"router\"\n\
            rules = { tool = \"nftables\", filter = \"stateless\", before = 1000 }";
        let tuning = Tuning::of(&plan(&(PLAN.to_string() + budgets))).unwrap();
        let factors: Vec<Option<&str>> = tuning
            .changes
            .iter()
            .map(|change| change.factor.as_deref())
            .collect();
        let before = Some("rules.before");
        assert_eq!(factors, [None, None, before, before, before]);
        assert_eq!(tuning.factor_of(), [0, 1, 2, 2, 2]);
    }

    #[test]
    fn faults() {
        let fault = |text: &str| Tuning::of(&plan(text)).unwrap_err()[0].message.clone();
        // A change that excludes two others, which do not exclude each other.
        let both = PLAN.to_string()
            + "[variants.both]\nfrom = \"rules\"\nrules.before = 5\ninterface.gro = true";
        assert!(
            fault(&both).contains("not levels of one setting"),
            "{}",
            fault(&both)
        );
        let factor =
            PLAN.to_string() + "[factors.flows]\nsets = \"traffic.flows\"\nlevels = [1, 2]";
        assert!(fault(&factor).contains("factor 'flows'"));
        let alone = PLAN.split("[variants.loose]").next().unwrap().to_string()
            + "[trials]\nduration = \"1 s\"\nblocks = 6";
        assert!(fault(&alone).contains("no changes"));
    }
}
