//! The rules of users' files: how many of the frames met each.

use crate::document::{Document, Tone};
use linerate_measure::record::{Campaign, Summary};

/// The rules that met most frames, for each slot that has a rule file; `name` names a slot.
pub fn hottest(page: &mut Document, campaign: &Campaign, summary: &Summary, name: impl Fn(usize) -> String) {
    let mut begun = false;
    for row in summary.rows.iter().filter(|row| row.valid_trials > 0) {
        let Some(file) = campaign.slots.get(row.slot).and_then(|slot| campaign.rule_file(slot)) else {
            continue;
        };
        if !std::mem::replace(&mut begun, true) {
            page.heading("Rules that met most frames, in % of the frames sent");
        }
        page.paragraph(&name(row.slot), Tone::Plain);
        for (rule, share) in &row.rules {
            page.item(&format!("{:>8.2}  ", 100.0 * share), rule, Tone::Plain);
        }
        match (row.rules.is_empty(), file.counts()) {
            (true, true) => page.item("          ", "no rule with a counter met a frame", Tone::Plain),
            (true, false) => page.item("          ", "the file has no counters", Tone::Plain),
            _ => {}
        }
    }
}
