//! The experiment that proves a change of the DUT: a plan that measures it beside the DUT as it was.

use super::Plan;
use super::author::{Author, Cell as Written, Keys, Variant, changed, section};
use super::campaign::{Campaign, Lab};
use super::diagnostic::Diagnostic;
use super::forms::duration_text;
use super::keys::EXPECT;
use linerate_measure::experiment::Reboot;
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
const UNTIL: &str = "2 %";

/// Plain forwarding beside the two.
const PLAIN: &str = "plain";

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
    /// Whether only the profile of plain forwarding shows the cause.
    pub beside_plain: bool,
}

/// An experiment with the variants [`AS_MEASURED`] and [`CHANGED`], plain forwarding if it needs that, and the same traffic.
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
    /// The experiment that compares a cell of a campaign with the same cell after a change. `place`: where a file is that the plan names,
    /// its lab or an image.
    ///
    /// # Errors
    /// The change names keys or values that a plan does not have, that are not possible for this DUT, or that it has already. Or the
    /// record does not have the plan as it was written.
    pub fn new(
        measured: &Campaign,
        cell: usize,
        change: &Change<'_>,
        place: &dyn Fn(&str) -> String,
    ) -> Result<Proof, Vec<Diagnostic>> {
        if !change.patch.is_object() {
            return Err(vec![Diagnostic::new(
                "a change is a table of a variant's keys",
            )]);
        }
        let cell = &measured.cells[cell];
        let mut written = Author::of(measured)?.cell(cell);
        for file in [
            written.lab.get_mut("file"),
            named(&mut written.settings, "image"),
        ]
        .into_iter()
        .flatten()
        {
            *file = place(file.as_str().unwrap_or_default()).into();
        }
        let mut files = BTreeMap::new();
        let own_rules = measured.lanes[cell.lane].settings.rule_file.as_ref();
        if let Some((own, file)) = own_rules.zip(named(&mut written.settings, "rules")) {
            // Beside the plan, wherever that will be.
            let name = own.file.rsplit('/').next().unwrap_or_default();
            *file = name.into();
            files.insert(name.to_string(), own.text.clone());
        }
        let mut read = |name: &str| {
            files
                .get(name)
                .cloned()
                .ok_or_else(|| "the campaign had none".into())
        };
        let mut planned = |with_plain: bool| {
            let text = text(measured, &cell.name, &written, change, with_plain);
            let plan = Plan::read_with(text.as_bytes(), &mut read)?;
            let campaign = plan.campaign(measured.experiment.system, false).cloned();
            Ok::<_, Vec<Diagnostic>>((text, campaign))
        };
        let (mut text, mut campaign) = planned(false)?;
        let has_plain = |campaign: &Campaign| {
            let mut lanes = campaign.lanes.iter();
            lanes.any(|lane| lane.settings.is_plain())
        };
        let lacks = change.beside_plain && matches!(measured.lab, Lab::Embedded { .. });
        if lacks && campaign.as_ref().is_some_and(|own| !has_plain(own)) {
            (text, campaign) = planned(true)?;
        }
        let campaign =
            campaign.filter(|campaign| campaign.lanes.iter().all(|lane| lane.variants.len() == 1));
        match campaign {
            Some(campaign) => Ok(Proof {
                text,
                campaign,
                files,
            }),
            None => Err(vec![Diagnostic::new(
                "the change changes nothing: the DUT was measured so already",
            )]),
        }
    }
}

/// The file that a table of settings names.
fn named<'k>(settings: &'k mut Keys, table: &str) -> Option<&'k mut Json> {
    settings.get_mut(table)?.get_mut("file")
}

fn text(
    measured: &Campaign,
    cell: &str,
    written: &Written,
    change: &Change<'_>,
    with_plain: bool,
) -> String {
    let Change {
        words,
        because,
        patch,
        ..
    } = *change;
    let after = changed(&written.settings, patch);
    let variant = |name: &str, about: &str, settings| Variant {
        name: name.into(),
        about: about.into(),
        apart: false,
        settings,
    };
    let mut variants = vec![
        variant(AS_MEASURED, cell, written.settings.clone()),
        variant(CHANGED, words, after),
    ];
    if with_plain {
        let settings = Keys::from_iter([("dut".into(), "forwarding".into())]);
        variants.push(variant(PLAIN, "what its frames do not pass", settings));
    }
    let then = &measured.experiment.trials;
    let embedded = matches!(measured.lab, Lab::Embedded { .. });
    let boots = ["boot", "image"].iter().any(|key| patch.get(key).is_some());
    let duration_ns = if embedded {
        then.duration_ns.min(LONGEST_NS)
    } else {
        then.duration_ns
    };
    let mut how = Keys::from_iter([("duration".into(), duration_text(duration_ns).into())]);
    match embedded {
        true => how.insert("budget".into(), duration_text(BUDGET_NS).into()),
        false => how.insert("blocks".into(), BLOCKS.into()),
    };
    let reboot = if boots && then.reboot == Reboot::Never {
        Reboot::WhenNeeded
    } else {
        then.reboot
    };
    how.extend((reboot != Reboot::Never).then(|| ("reboot".into(), json!(reboot))));
    how.extend((then.pause_ns > 0).then(|| ("pause".into(), duration_text(then.pause_ns).into())));
    let question = format!("How many more frames does '{cell}' forward with this change?");
    let mut out = written.experiment([words, &question], &variants, Some(UNTIL), &how);
    let expect = json!({ "of": CHANGED, "is": "faster", "than": AS_MEASURED, "because": because });
    section(&mut out, "[expect]", &EXPECT, &expect);
    out.0
}
