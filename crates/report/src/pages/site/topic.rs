//! The page of a topic: its pictures, and the comparison of its sets.

use super::facets::opened;
use super::paged::{Paged, sections};
use super::times::Times;
use super::words::{shown, span, up, words_of};
use super::{Entry, Facet, Site};
use crate::pages::sets::{self, Set, Unit};
use crate::prelude::*;
use linerate_measure::history::revision::Revision;
use linerate_stats::ministat::{Confidence, Dataset, Era, difference};

/// The fewest runs that ministat compares.
const ENOUGH: usize = 3;
/// Rows of a page that a picture takes the place of.
const ROWS_OF_A_PICTURE: usize = 30;
/// Campaigns that have a picture each on one page.
const FEW_CAMPAIGNS: usize = 6;

impl Site {
    /// A topic: its picture, and the comparison of its sets, by machine and card.
    pub(super) fn topic(&self, name: &str, entries: &[&Entry], times: &Times<'_>) -> Paged {
        let all = || entries.iter().copied();
        let mut machines: BTreeSet<&str> = all().map(|entry| entry.machine.as_str()).collect();
        machines.remove("");
        let on = match machines.len() {
            0 => String::new(),
            n => format!(" on {}", counted(n, "machine")),
        };
        let mut first = opened(name, entries, &on);
        if let Some(span) = span(all()) {
            first.note(format!("Measured {span}."));
        }
        let mut groups: BTreeMap<[&str; 2], Vec<&Entry>> = BTreeMap::new();
        all().for_each(|entry| {
            groups
                .entry([&entry.machine, &entry.card])
                .or_default()
                .push(entry)
        });
        let of_all = pictures(name, name, entries);
        // Each machine and card has a picture of its own where one has no room for all.
        let apart = of_all.left_out() > 0 && groups.len() > 1;
        let note = of_all.told(if apart {
            "Each machine has its own picture below, and the tables have all sets."
        } else {
            "The tables have all sets."
        });
        first
            .blocks
            .extend(of_all.charts.into_iter().map(Block::Chart));
        note.into_iter().for_each(|note| first.note(note));
        first.append(times.links(|place| words_of(place[2]) == words_of(name)));
        first.note("In each campaign, ministat (Student's t, 95 %) compares every set with the one that is named; runs under a profiler, of the tester alone, and with a fault are left out.");
        let place = |[machine, card]: [&str; 2]| {
            let known: Vec<&str> = [machine, card]
                .into_iter()
                .filter(|n| !n.is_empty())
                .collect();
            if known.is_empty() {
                "Sets".into()
            } else {
                known.join(", ")
            }
        };
        let mut all_sections = Vec::new();
        for (names, entries) in groups {
            let [machine, card] = names;
            let rows: Vec<Compared<'_>> =
                entries.iter().flat_map(|entry| compared(entry)).collect();
            let mut of_group = sections(&place(names), &rows, comparison);
            if let Some((weight, section)) = of_group.first_mut() {
                let mut head = Document::default();
                let links = [(Facet::Machine, machine), (Facet::Card, card)];
                head.links(
                    links
                        .into_iter()
                        .filter_map(|(facet, name)| self.link(facet, name))
                        .collect(),
                );
                if apart {
                    let own = pictures(&place(names), name, &entries);
                    let note = own.told("The table has all sets.");
                    *weight += ROWS_OF_A_PICTURE * own.charts.len();
                    head.blocks.extend(own.charts.into_iter().map(Block::Chart));
                    note.into_iter().for_each(|note| head.note(note));
                }
                section.blocks.splice(1..1, head.blocks);
            }
            all_sections.extend(of_group);
        }
        Paged {
            title: shown(name).into(),
            first,
            sections: all_sections,
        }
    }
}

/// A set with the one that it is compared with.
pub struct Compared<'a> {
    entry: &'a Entry,
    set: &'a Set,
    reference: Option<&'a Set>,
}

/// The sets of a campaign, each beside another of the same IP version: that of the plan; of several revisions, the same configuration
/// at the first one; and within a revision, or without any, the default, the one without a firewall, the one of the same name with the
/// least number, or the first.
pub fn compared(entry: &Entry) -> Vec<Compared<'_>> {
    // A name without an IP version is mostly one of IPv4.
    let six = |set: &Set| set.family == "IPv6";
    let mut sets: Vec<(String, f64, &Set)> = Vec::new();
    // A campaign without any stands in the table all the same.
    let none = !entry.sets.iter().any(Set::counts);
    for set in entry.sets.iter().filter(|set| none || set.counts()) {
        let (stem, number) = sets::numbered(&set.variant).unwrap_or((set.variant.clone(), 0.0));
        sets.push((stem, number, set));
    }
    sets.sort_by(|a, b| {
        a.0.cmp(&b.0)
            .then(six(a.2).cmp(&six(b.2)))
            .then(a.1.total_cmp(&b.1))
    });
    let revised: Vec<(Option<Build>, String)> =
        sets.iter().map(|(.., set)| revised(&set.variant)).collect();
    let of = |at: usize, (stem, _, set): &(String, f64, &'_ Set)| -> Option<usize> {
        let alike = |other: &Set| {
            !none && other.unit == set.unit && set.unit != Unit::Unnamed && six(other) == six(set)
        };
        let (revision, setup) = &revised[at];
        let first = |is: &dyn Fn(&str, &Set) -> bool| {
            let mut all = sets.iter().zip(&revised);
            all.position(|((stem, _, other), (of, _))| {
                of == revision && alike(other) && is(stem, other)
            })
        };
        // A row of two differences would explain neither.
        let before = || {
            let (own, patch) = revision.as_ref()?;
            let since = |of: &Build| {
                let commits = own.since(&of.0)?;
                (commits > 0 || *patch > of.1).then_some(commits)
            };
            let all = sets.iter().zip(&revised).enumerate();
            let same = all.filter(|(_, ((.., other), (_, same)))| same == setup && alike(other));
            let earlier = same.filter_map(|(at, (_, (of, _)))| Some((since(of.as_ref()?)?, at)));
            let first = earlier.max_by_key(|(commits, at)| (*commits, std::cmp::Reverse(*at)));
            first.map(|(_, at)| at)
        };
        let by_plan = set.baseline.and_then(|at| entry.sets.get(at));
        let by_plan =
            by_plan.and_then(|other| sets.iter().position(|(.., set)| std::ptr::eq(*set, other)));
        let numbered = sets.iter().filter(|(other, ..)| other == stem).count() > 2;
        by_plan
            .or_else(before)
            .or_else(|| first(&|_, other| other.variant.contains("default")))
            .or_else(|| first(&|_, other| other.variant.contains("forwarding")))
            .or_else(|| first(&|other, _| numbered && other == stem))
            .or_else(|| first(&|_, _| true))
    };
    let compared = sets.iter().enumerate().map(|(at, one)| {
        let reference = of(at, one)
            .map(|at| sets[at].2)
            .filter(|other| !std::ptr::eq(*other, one.2));
        Compared {
            entry,
            set: one.2,
            reference,
        }
    });
    compared.collect()
}

/// A source revision, and the patch of it.
type Build = (Revision, String);

/// The source revision in a name, and the other words of the name.
fn revised(name: &str) -> (Option<Build>, String) {
    let words = || name.split(['.', '-']);
    let build = words().find_map(|word| {
        let (revision, patch) = Revision::parse(word)?;
        Some((revision, patch.to_string()))
    });
    let others = words().filter(|word| Revision::parse(word).is_none());
    (build, others.joined("."))
}

pub fn comparison(rows: &[Compared<'_>]) -> Table {
    let rates = rows
        .iter()
        .filter(|row| row.set.unit == Unit::Frames)
        .map(|row| row.set.rate.median);
    let RateUnit { scale, name: unit } = RateUnit::of(rates);
    let precision = |row: &Compared<'_>| digits(&row.set.rate).clamp(4, 5);
    let frames = |row: &Compared<'_>| row.set.unit == Unit::Frames;
    // A set without a run has no rate, and none is not 0.
    let median = |row: &Compared<'_>, is: bool, scale: f64, digits| {
        (is && row.set.rate.n > 0).then(|| number(row.set.rate.median / scale, digits))
    };
    Table::of(rows)
        .column("set", "", |row| {
            Link::new(row.set.name.as_str(), up(&row.entry.page))
        })
        .column("campaign", "", |row| row.entry.label.as_str())
        .if_any("median", unit, |row| {
            median(row, frames(row), scale, precision(row))
        })
        .if_any("95 %", "interval", |row| {
            let known = frames(row) && row.set.rate.low.is_some();
            known.then(|| rate_interval(&row.set.rate, scale, precision(row)))
        })
        .if_any("median", "Mbit/s", |row| {
            median(row, row.set.unit.is_mbits(), 1.0, 4)
        })
        .if_any("median", "without a unit", |row| {
            median(row, row.set.unit == Unit::Unnamed, 1.0, 4)
        })
        .if_any("runs", "", |row| {
            (!row.set.samples).then(|| count(row.set.rate.n as u64))
        })
        .if_any("samples", "", |row| {
            row.set.samples.then(|| count(row.set.rate.n as u64))
        })
        .if_any("least and", "greatest run", |row| {
            spread(row.set, if frames(row) { scale } else { 1.0 })
        })
        .if_any("compared with", "", |row| {
            row.reference
                .map(|other| format!("{} {}", other.variant, other.family))
        })
        .if_any("by ministat", "", |row| match row.reference {
            Some(other) => Some(verdict(other, row.set)),
            None => row
                .set
                .aside
                .then(|| "in no comparison: see its page".into()),
        })
        .into()
}

fn spread(set: &Set, scale: f64) -> Option<Cell> {
    let [low, high] = ends(set.runs.iter().copied())?.map(|end| end / scale);
    let text = format!("{}..{}", significant(low, 4), significant(high, 4));
    Some(Cell::range(low, high, text))
}

/// ministat's verdict in a few words.
fn verdict(reference: &Set, set: &Set) -> Cell {
    if reference.samples || set.samples {
        return "samples, not runs".into();
    }
    if reference.runs.len() < ENOUGH || set.runs.len() < ENOUGH {
        return "too few runs".into();
    }
    let [reference, set] =
        [reference, set].map(|set| Dataset::new("", set.runs.clone()).summary(Era::New));
    if reference.avg <= 0.0 {
        return "the other forwards nothing".into();
    }
    let found = difference(&reference, &set, Confidence::default(), Era::New);
    if found.proven {
        Cell::number(
            found.percent,
            format!(
                "{:+.1} % +/- {} %",
                found.percent,
                significant(found.percent_error, 2)
            ),
        )
    } else {
        "no difference proven".into()
    }
}

/// Pictures, and how many of the sets they show.
pub struct Pictures {
    charts: Vec<Chart>,
    drawn: usize,
    all: usize,
}

/// The picture of a topic: of its only campaign, or of all together.
pub fn pictures(title: &str, topic: &str, entries: &[&Entry]) -> Pictures {
    let all = entries
        .iter()
        .flat_map(|entry| &entry.sets)
        .filter(|set| set.is_comparable())
        .count();
    let charts = match entries {
        [only] => sets::pictures(
            &format!("{}: {}", shown(title), only.label),
            topic,
            &only.sets,
        ),
        _ => Unit::ALL
            .into_iter()
            .flat_map(|unit| of_unit(title, topic, entries, unit))
            .collect(),
    };
    Pictures {
        drawn: sets::drawn(&charts),
        charts,
        all,
    }
}

fn of_unit(title: &str, topic: &str, entries: &[&Entry], unit: Unit) -> Vec<Chart> {
    let name = names_of(entries);
    let mut campaigns: Vec<(String, Vec<&Set>)> = Vec::new();
    for entry in entries {
        let sets = entry
            .sets
            .iter()
            .filter(|set| set.is_comparable() && set.unit == unit);
        campaigns.push((name(entry), sets.collect()));
    }
    campaigns.retain(|(_, sets)| !sets.is_empty());
    let all: usize = campaigns.iter().map(|(_, sets)| sets.len()).sum();
    let one = sets::together(shown(title), topic, &campaigns);
    match one.filter(|chart| {
        2 * sets::drawn(std::slice::from_ref(chart)) >= all || campaigns.len() > FEW_CAMPAIGNS
    }) {
        Some(chart) => vec![chart],
        // The campaigns have too little in common.
        None => {
            let own = campaigns.iter().take(FEW_CAMPAIGNS);
            own.filter_map(|(name, sets)| sets::picture(name, topic, sets))
                .collect()
        }
    }
}

impl Pictures {
    /// The sets that no picture shows.
    fn left_out(&self) -> usize {
        self.all.saturating_sub(self.drawn)
    }

    /// A sentence about the sets that no picture shows; `where_else`: the place that has them.
    fn told(&self, where_else: &str) -> Option<String> {
        (self.left_out() > 0 && self.drawn > 0).then(|| {
            format!(
                "Shown are {} of {}: at most {} names of sets that campaigns share, and {} campaigns. {where_else}",
                grouped(self.drawn as u64),
                counted(self.all, "set"),
                sets::MOST_SHARED,
                sets::MOST_CAMPAIGNS,
            )
        })
    }
}

/// The shortest names that tell these campaigns from each other.
fn names_of(entries: &[&Entry]) -> impl Fn(&Entry) -> String {
    const USED: [[bool; 3]; 7] = [
        [true, false, false],
        [false, true, false],
        [false, false, true],
        [true, true, false],
        [true, false, true],
        [false, true, true],
        [true, true, true],
    ];
    let several = entries
        .iter()
        .map(|entry| &entry.machine)
        .collect::<BTreeSet<_>>()
        .len()
        > 1;
    let name = |entry: &Entry, used: [bool; 3]| {
        // `Xeon_E5-2650_8Cores` is long where three names stand beside each other.
        let machine = entry
            .machine
            .rsplit_once('_')
            .filter(|(_, cores)| cores.ends_with("Cores"));
        let machine = machine.map_or(entry.machine.as_str(), |(cpu, _)| cpu);
        let parts = [machine, &entry.card, &entry.label].into_iter().zip(used);
        let parts = parts
            .filter(|(part, used)| *used && !part.is_empty())
            .map(|(part, _)| part);
        parts.joined(", ")
    };
    let tells = |used: &[bool; 3]| {
        entries
            .iter()
            .map(|entry| name(entry, *used))
            .collect::<BTreeSet<_>>()
            .len()
            == entries.len()
    };
    // Of several machines, the machine says most.
    let used = USED
        .into_iter()
        .filter(|used| used[0] || !several)
        .find(tells)
        .unwrap_or([true; 3]);
    move |entry| name(entry, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(sets: Vec<Set>) -> Entry {
        Entry {
            machine: String::new(),
            card: String::new(),
            topic: "firewalls".into(),
            label: "one".into(),
            system: String::new(),
            started: String::new(),
            page: "sets/one.html".into(),
            unreal: None,
            sets,
        }
    }

    #[test]
    fn no_row_compares_another_configuration_of_another_revision() {
        let names = [
            "284739.forwarding",
            "284739.pf",
            "285702.forwarding",
            "285702.pf",
            "291909.pf",
            "291909.ipfw",
            "291909mbuf.pf",
            "291909mbuf.ipfw",
            "forwarding",
            "ipfw",
        ];
        let set = |name: &&str| Set::of_runs(name, vec![1e6; 5]);
        let entry = entry(names.iter().map(set).collect());
        let rows = compared(&entry);
        let than = |name: &str| {
            let row = rows.iter().find(|row| row.set.variant == name).unwrap();
            row.reference.map_or("", |other| other.variant.as_str())
        };
        assert_eq!(
            names.map(than),
            [
                "",
                "284739.forwarding",
                "284739.forwarding",
                "284739.pf",
                "284739.pf",
                "",
                "284739.pf",
                "291909.ipfw",
                "",
                "forwarding",
            ]
        );
    }

    #[test]
    fn a_set_without_a_run_has_no_rate() {
        let set = |name: &str, unit, runs| Set {
            unit,
            ..Set::of_runs(name, runs)
        };
        let mut entry = entry(vec![
            set("cut", Unit::Ethernet, Vec::new()),
            set("gone", Unit::Frames, Vec::new()),
        ]);
        let medians = |entry: &Entry| {
            let table = comparison(&compared(entry));
            let is = |column: &&crate::document::Column| column.title().starts_with("median");
            table.columns.iter().filter(is).count()
        };
        assert_eq!(medians(&entry), 0);
        entry.sets.push(set("whole", Unit::Ethernet, vec![94.0]));
        assert_eq!(medians(&entry), 1);
    }
}
