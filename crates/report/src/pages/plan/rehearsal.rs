//! The actions of a plan on the hosts of a lab.

use crate::document::{Document, Tone};
use crate::format::ascii;
use linerate_hosts::rehearsal::{Action, Part};

/// The hosts' parts, as a section of a plan's page.
pub fn rehearsal(parts: &[Part]) -> Document {
    let mut page = Document::default();
    page.gap();
    page.heading("What would be done on which host");
    for part in parts {
        page.paragraph(&ascii(&format!("{} {}", part.host, part.when)), Tone::Strong);
        if part.actions.is_empty() {
            page.item("  ", "nothing", Tone::Plain);
        }
        for action in &part.actions {
            page.item("  ", &line(action), Tone::Plain);
        }
    }
    page
}

fn line(action: &Action) -> String {
    let undo = action.undo.as_ref().map_or(String::new(), |undo| format!("; undone by {undo}"));
    let quote = if action.argv.is_empty() { "" } else { "`" };
    ascii(&format!("{}: {quote}{}{quote}{undo}", action.what, action.command))
}
