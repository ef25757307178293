//! The experiment that proves a change of the DUT: a plan that measures it beside the DUT as it was.

use super::Plan;
use super::campaign::{Campaign, Cell, Kind, Lab};
use super::diagnostic::Diagnostic;
use super::keys::{COMPARE, EXPECT, LAB, TRAFFIC, TRIALS, VARIANT};
use super::toml_text::Toml;
use super::units::Rate;
use super::writer::{
    Keys, Variant, head, keys, lab, section, settings, traffic, trials, variants, without_defaults,
};
use linerate_measure::experiment::{Reboot, Trials};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// The DUT of the campaign whose cell is explained.
pub const AS_MEASURED: &str = "as-measured";
/// The DUT with the change.
pub const CHANGED: &str = "changed";

/// Time for all trials in the embedded lab.
const BUDGET_NS: u64 = 10_000_000_000;
/// The longest trial there: a shorter one gives more pairs in that time.
const LONGEST_NS: u64 = 250_000_000;
/// Blocks in a lab of hosts, where each trial takes as long as in the campaign.
const BLOCKS: u32 = 10;
/// The campaign ends once the ratio is known this well.
const UNTIL: f64 = 0.02;

/// A change that may make a DUT faster.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The change in a few words, the title of the plan: `no reverse-path filter`.
    pub words: &'a str,
    /// Why the DUT must be faster with it.
    pub because: &'a str,
    /// Keys of a variant with their values, as a plan has them. They are merged into those of the cell as `from` does it, and `null`
    /// removes a key: `{ "interface": { "gro": false }, "rules": null }`.
    pub patch: &'a Json,
}

/// An experiment with two variants, [`AS_MEASURED`] and [`CHANGED`], and the same traffic.
#[derive(Debug, Clone)]
pub struct Proof {
    /// The plan.
    pub text: String,
    /// The plan, read.
    pub campaign: Campaign,
    /// The rule files that the plan names, with their texts.
    pub files: BTreeMap<String, String>,
}

impl Proof {
    /// The experiment that compares a cell of a campaign with the same cell after a change.
    ///
    /// # Errors
    /// The change names keys or values that a plan does not have, that are not possible for this DUT, or that it has already.
    pub fn new(measured: &Campaign, cell: usize, change: &Change<'_>) -> Result<Proof, Vec<Diagnostic>> {
        if !change.patch.is_object() {
            return Err(vec![Diagnostic::new("a change is a table of a variant's keys")]);
        }
        let cell = &measured.cells[cell];
        let set = &measured.lanes[cell.lane].settings;
        let mut files = BTreeMap::new();
        let mut before = settings(set);
        if let Some(file) = &set.rule_file {
            // Beside the plan, wherever that will be.
            let name = file.file.rsplit('/').next().unwrap_or_default().to_string();
            before["rules"]["file"] = json!(name);
            files.insert(name, file.text.clone());
        }
        let text = text(measured, cell, before, change);
        let mut read = |name: &str| files.get(name).cloned().ok_or_else(|| "the campaign had none".into());
        let plan = Plan::read_with(text.as_bytes(), &mut read)?;
        let campaign = plan.campaign(measured.experiment.system, false).cloned();
        let campaign = campaign.filter(|campaign| campaign.lanes.iter().all(|lane| lane.variants.len() == 1));
        match campaign {
            Some(campaign) => Ok(Proof { text, campaign, files }),
            None => Err(vec![Diagnostic::new("the change changes nothing: the DUT was measured so already")]),
        }
    }
}

fn text(measured: &Campaign, cell: &Cell, before: Keys, change: &Change<'_>) -> String {
    let Change { words, because, patch } = *change;
    let after = changed(&before, patch);
    let question = format!("How many more frames does '{}' forward with this change?", cell.name);
    let variant = |name: &str, about: &str, settings| Variant {
        name: name.into(),
        described: keys(&VARIANT, json!({ "about": about })),
        settings,
    };
    let variants = [variant(AS_MEASURED, &cell.name, before), variant(CHANGED, words, after)];
    let then = &measured.experiment.trials;
    let embedded = matches!(measured.lab, Lab::Embedded { .. });
    let boots = ["boot", "image"].iter().any(|key| patch.get(key).is_some());
    let now = Trials {
        duration_ns: if embedded { then.duration_ns.min(LONGEST_NS) } else { then.duration_ns },
        blocks: (!embedded).then_some(BLOCKS),
        budget_ns: embedded.then_some(BUDGET_NS),
        reboot: if boots && then.reboot == Reboot::Never { Reboot::WhenNeeded } else { then.reboot },
        pause_ns: then.pause_ns,
        until: Some(UNTIL),
        ..Trials::default()
    };
    let mut out = experiment(measured, cell, [words, &question], &variants, &now);
    let expect = json!({ "of": CHANGED, "is": "faster", "than": AS_MEASURED, "because": because });
    section(&mut out, "[expect]", &EXPECT, keys(&EXPECT, expect));
    out.0
}

/// A plan that compares variants with the first one, in the lab and under the traffic of a cell that was measured.
pub(crate) fn experiment(
    measured: &Campaign,
    cell: &Cell,
    [title, question]: [&str; 2],
    all: &[Variant],
    how: &Trials,
) -> Toml {
    let mut out = Toml::default();
    head(&mut out, title, question, None);
    section(&mut out, "lab", &LAB, lab(measured));
    let frames = traffic(&measured.kinds[cell.kind], &cell.rate);
    section(&mut out, "traffic", &TRAFFIC, without_defaults(frames, &traffic(&Kind::default(), &Rate::Max)));
    variants(&mut out, all);
    let with = all.first().map(|first| &first.name);
    section(&mut out, "compare", &COMPARE, keys(&COMPARE, json!({ "with": with, "until": how.until })));
    section(&mut out, "trials", &TRIALS, trials(how));
    out
}

/// Settings after a change: a merge patch of RFC 7396, except that lists grow.
pub(crate) fn changed(before: &Keys, patch: &Json) -> Keys {
    let mut after = Json::Object(before.clone());
    merge(&mut after, patch);
    // A setting for both interfaces wins over what one of them had.
    if let Some(of_both) = patch.get("interface").and_then(Json::as_object) {
        for end in ["in", "out"] {
            let asked = |key: &str| of_both.get(end).is_some_and(|end| end.get(key).is_some());
            let own = after.get_mut("interface").and_then(|now| now.get_mut(end)?.as_object_mut());
            own.into_iter().for_each(|own| own.retain(|key, _| !of_both.contains_key(key) || asked(key)));
        }
    }
    after.as_object().cloned().unwrap_or_default()
}

fn merge(target: &mut Json, patch: &Json) {
    if let (Json::Array(target), Json::Array(more)) = (&mut *target, patch) {
        target.extend(more.iter().cloned());
        return;
    }
    let Json::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        match value {
            Json::Null => drop(target.as_object_mut().and_then(|target| target.remove(key))),
            value => merge(&mut target[key], value),
        }
    }
}
