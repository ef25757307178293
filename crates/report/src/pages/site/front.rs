//! The front page: the contents of the site in words and lists.

use super::facets::facet_table;
use super::words::{capital, range, span, systems};
use super::{Facet, INDEX, MOST_LISTED, Site};
use crate::document::{Block, Document, Link};
use crate::pages::numbers::{counted, grouped};
use crate::pages::warn_of_simulation;

impl Site {
    /// In words and lists: the contents of the site.
    pub(super) fn front(&self) -> Document {
        let [.., history, problems] = self.lists.each_ref().map(String::as_str);
        let sizes = self.sizes();
        let mut page = Document {
            title: Some(format!("Forwarding rates of {}", counted(sizes.machines, "machine"))),
            ..Document::default()
        };
        warn_of_simulation(&mut page, self.entries.iter().any(|entry| entry.simulated));
        let entries = || self.entries.iter();
        page.answer(format!(
            "{} sets of runs in {} campaigns: {} with {} on {}.",
            grouped(sizes.sets as u64),
            grouped(sizes.campaigns as u64),
            counted(sizes.machines, "machine"),
            counted(sizes.cards, "network card"),
            counted(sizes.topics, "topic"),
        ));
        let mut said = Vec::new();
        if let Some(rates) = range(entries()) {
            said.push(format!("Median rates range {rates}."));
        }
        if let Some(span) = span(entries()) {
            said.push(format!("Measured {span}."));
        }
        let systems = systems(entries());
        if !systems.is_empty() {
            said.push(format!("Systems: {systems}."));
        }
        said.push("A set is the runs of one configuration; a campaign is the sets that were measured together. Rates are medians of runs, in frames per second; their 95 % intervals need six runs.".into());
        page.say(said.join(" "));
        page.blocks.push(Block::Search { index: INDEX.into() });
        let mut links = Vec::new();
        if !self.history.timelines.is_empty() {
            links.push(Link::new("History: where results changed", history));
        }
        if !self.problems.is_empty() {
            links.push(Link::new(
                format!("{} that cannot be used", counted(self.problems.len(), "file")),
                problems,
            ));
        }
        if !links.is_empty() {
            page.links(links);
        }
        for facet in [Facet::Topic, Facet::Machine, Facet::Card] {
            let rows = self.rows(facet);
            page.heading(capital(facet.folder()));
            if rows.len() > MOST_LISTED {
                page.links(vec![Link::new(
                    format!("All {} {}", grouped(rows.len() as u64), facet.folder()),
                    self.lists[facet as usize].as_str(),
                )]);
                page.note(format!("Those with most sets, {MOST_LISTED} of them:"));
            }
            page.table(facet_table(
                facet,
                &rows[..rows.len().min(MOST_LISTED)],
                &self.files[facet as usize],
                "",
            ));
        }
        page
    }
}
