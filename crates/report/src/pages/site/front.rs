//! The front page: the contents of the site in words and lists.

use super::facets::facet_table;
use super::words::{capital, range, span, systems};
use super::{Facet, INDEX, MOST_LISTED, Site};
use crate::pages::simulation::warn_of_simulation;
use crate::prelude::*;
use linerate_import::reproduce::Reproduction;

impl Site {
    /// In words and lists: the contents of the site.
    pub(super) fn front(&self, documents: &[(String, &Reproduction)]) -> Document {
        let [.., history, problems] = self.lists.each_ref().map(String::as_str);
        let sizes = self.sizes();
        let mut page = Document::titled(match sizes.machines {
            0 => format!("Results on {}", counted(sizes.topics, "topic")),
            n => format!("Forwarding rates of {}", counted(n, "machine")),
        });
        warn_of_simulation(&mut page, self.entries.iter().map(|entry| entry.unreal));
        let entries = || self.entries.iter();
        let hosts = match (sizes.machines, sizes.cards) {
            (0, _) => " on ".into(),
            (machines, 0) => format!(": {} on ", counted(machines, "machine")),
            (machines, cards) => {
                format!(
                    ": {} with {} on ",
                    counted(machines, "machine"),
                    counted(cards, "network card")
                )
            }
        };
        page.answer(format!(
            "{} of runs in {}{hosts}{}.",
            counted(sizes.sets, "set"),
            counted(sizes.campaigns, "campaign"),
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
        said.push("A set is the runs of one configuration; a campaign is the sets that were measured together. Rates are medians of runs; their 95 % intervals need six runs.".into());
        page.say(said.join(" "));
        page.blocks.push(Block::Search {
            index: INDEX.into(),
        });
        let mut links = Vec::new();
        if !self.history.timelines.is_empty() {
            links.push(Link::new("History: where results changed", history));
        }
        if !self.problems.is_empty() {
            links.push(Link::new(
                format!(
                    "{} that cannot be used, or only in part",
                    counted(self.problems.len(), "file")
                ),
                problems,
            ));
        }
        let published = documents.iter();
        links.extend(
            published
                .map(|(file, found)| Link::new(format!("Published: {}", found.document), file)),
        );
        if !links.is_empty() {
            page.links(links);
        }
        for facet in [Facet::Topic, Facet::Machine, Facet::Card] {
            self.add_facet(&mut page, facet);
        }
        page
    }

    fn add_facet(&self, page: &mut Document, facet: Facet) {
        let rows = self.rows(facet);
        if rows.is_empty() {
            return;
        }
        page.heading(capital(facet.folder()));
        if rows.len() > MOST_LISTED {
            page.links(vec![Link::new(
                format!("All {} {}", grouped(rows.len() as u64), facet.folder()),
                self.lists[facet as usize].as_str(),
            )]);
            page.note(format!("Those with most sets, {MOST_LISTED} of them:"));
        }
        let most = &rows[..rows.len().min(MOST_LISTED)];
        page.table(facet_table(facet, most, &self.files[facet as usize], ""));
    }
}
