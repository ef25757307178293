//! Machines and cards: their lists, and the page of each.

use super::paged::{MOST_ROWS, Paged, sections};
use super::times::Times;
use super::words::{extremes, listed, range, sets_of, shown, some, span, systems, up};
use super::{Entry, Facet, Site};
use crate::pages::simulation::warn_of_simulation;
use crate::prelude::*;

impl Site {
    /// The names of a facet with their campaigns, those with most sets first.
    pub(super) fn rows(&self, facet: Facet) -> Vec<(&str, Vec<&Entry>)> {
        let mut rows: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        let named = self
            .entries
            .iter()
            .filter(|entry| facet.has_page(facet.of(entry)));
        named.for_each(|entry| rows.entry(facet.of(entry)).or_default().push(entry));
        let mut rows: Vec<(&str, Vec<&Entry>)> = rows.into_iter().collect();
        rows.sort_by_key(|(_, entries)| std::cmp::Reverse(sets_of(entries)));
        rows
    }

    /// All names of a facet.
    pub(super) fn list(&self, facet: Facet) -> Paged {
        let mut rows = self.rows(facet);
        rows.sort_by_key(|(name, _)| *name);
        let title = format!("All {}", facet.folder());
        let mut all = Vec::new();
        for rows in rows.chunks(MOST_ROWS / 4) {
            let [first, last] =
                [rows.first(), rows.last()].map(|row| row.map_or("", |(name, _)| shown(name)));
            all.extend(sections(&format!("{first} to {last}"), rows, |rows| {
                facet_table(facet, rows, &self.files[facet as usize], "../")
            }));
        }
        Paged {
            title,
            first: Document::default(),
            sections: all,
        }
    }

    /// A machine or a card: its facts, and its campaigns by card or machine.
    pub(super) fn facet(
        &self,
        facet: Facet,
        name: &str,
        entries: &[&Entry],
        times: &Times<'_>,
    ) -> Paged {
        let other = if facet == Facet::Machine {
            Facet::Card
        } else {
            Facet::Machine
        };
        let all = || entries.iter().copied();
        let mut first = opened(name, entries, "");
        first.fact(
            if other == Facet::Card {
                "cards"
            } else {
                "machines"
            },
            listed(all().map(|entry| other.of(entry))),
        );
        first.fact("topics", listed(all().map(|entry| entry.topic.as_str())));
        let systems = systems(all());
        first.fact("systems", systems);
        first.fact("measured", span(all()).unwrap_or_default());
        let of_name = |place: &[&str; 3]| place[facet as usize] == name;
        first.append(times.links(of_name));
        let mut groups: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        all().for_each(|entry| groups.entry(other.of(entry)).or_default().push(entry));
        let table = |entries: &[&Entry]| -> Table {
            let high = extremes(entries.iter().copied()).map_or(0.0, |[_, high]| high);
            let unit = RateUnit::of([high]);
            let end_of = |entry: &&Entry, end: usize| {
                extremes([*entry]).map(|ends| rate(ends[end], unit.scale, 4))
            };
            Table::of(entries.iter().copied())
                .column("campaign", "", |entry| {
                    Link::new(shown(&entry.label), up(&entry.page))
                })
                .column("topic", "", |entry| {
                    Link::new(
                        shown(&entry.topic),
                        up(&self.files[2][entry.topic.as_str()]),
                    )
                })
                .if_any("system", "", |entry| some(&entry.system))
                .if_any("begun", "", |entry| entry.started.get(..10))
                .column("sets", "", |entry| count(entry.sets.len() as u64))
                .if_any("slowest", unit.name, |entry| end_of(entry, 0))
                .if_any("fastest", unit.name, |entry| end_of(entry, 1))
                .into()
        };
        let sections = groups
            .into_iter()
            .flat_map(|(name, entries)| sections(shown(name), &entries, table))
            .collect();
        Paged {
            title: shown(name).into(),
            first,
            sections,
        }
    }
}

/// The beginning of the page of a machine, card or topic: its sets and their rates; `on` says where they were measured.
pub fn opened(name: &str, entries: &[&Entry], on: &str) -> Document {
    let mut page = Document::default();
    warn_of_simulation(&mut page, entries.iter().map(|entry| entry.unreal));
    let rates = range(entries.iter().copied()).map_or(String::new(), |rates| {
        format!(", with median rates {rates}")
    });
    let (sets, campaigns) = (
        counted(sets_of(entries), "set"),
        counted(entries.len(), "campaign"),
    );
    page.answer(format!(
        "{}: {sets} of {campaigns}{on}{rates}.",
        shown(name)
    ));
    page
}

/// `place` leads from the page of the table to the front page.
pub fn facet_table(
    facet: Facet,
    rows: &[(&str, Vec<&Entry>)],
    files: &BTreeMap<String, String>,
    place: &str,
) -> Table {
    let different = |entries: &[&Entry], of: Facet| {
        let mut names: BTreeSet<&str> = entries.iter().map(|entry| of.of(entry)).collect();
        names.remove("");
        (!names.is_empty()).then(|| count(names.len() as u64))
    };
    let fastest = |entries: &[&Entry]| extremes(entries.iter().copied()).map(|[_, high]| high);
    let unit = RateUnit::of(rows.iter().filter_map(|(_, entries)| fastest(entries)));
    let others = Facet::ALL.into_iter().filter(|other| *other != facet);
    let table = Table::of(rows)
        .column(facet.name(), "", |(name, _)| {
            Link::new(shown(name), format!("{place}{}", files[*name]))
        })
        .column("sets", "", |(_, entries)| count(sets_of(entries) as u64))
        .column("campaigns", "", |(_, entries)| count(entries.len() as u64));
    others
        .fold(table, |table, other| {
            table.if_any(other.folder(), "", |(_, entries)| different(entries, other))
        })
        .rate("fastest", unit, |(_, entries)| fastest(entries))
        .if_any("fastest", "Mbit/s", |(_, entries)| {
            let sets = entries
                .iter()
                .flat_map(|entry| &entry.sets)
                .filter(|set| set.unit.is_mbits() && set.counts());
            sets.map(|set| set.rate.median)
                .reduce(f64::max)
                .map(|rate| number(rate, 4))
        })
        .if_any("systems", "", |(_, entries)| {
            Some(systems(entries.iter().copied())).filter(|s| !s.is_empty())
        })
        .into()
}
