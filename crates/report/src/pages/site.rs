//! The pages of a site over many campaigns: a front page, one for each machine, card, topic and time line. The page of a campaign is
//! that of [`super::report`].

mod facets;
mod front;
mod index;
mod names;
mod paged;
mod problems;
mod times;
mod topic;
mod words;

use super::sets::Set;
use super::simulation::{Unreal, unreal};
use crate::prelude::*;
pub use index::index;
use linerate_import::reproduce::Reproduction;
use linerate_measure::history::History;
use linerate_measure::history::campaigns::key;
use names::Names;
use paged::write_parts;
use times::{Times, history_page};
use words::{home, release, shown, up, words_of};

/// Entries of a list on the front page.
const MOST_LISTED: usize = 100;
/// The file of the index, which the search loads.
pub const INDEX: &str = "sets.js";
/// The front page.
pub const FRONT: &str = "index.html";
/// The folders of all other pages.
pub const FOLDERS: [&str; 7] = [
    "sets",
    "machines",
    "cards",
    "topics",
    "history",
    "documents",
    "problems",
];
/// Folders that have a list.
const LISTS: [&str; 5] = ["machines", "cards", "topics", "history", "problems"];

/// A campaign of a site.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub machine: String,
    pub card: String,
    pub topic: String,
    /// Name among the campaigns of the same machine, card and topic.
    pub label: String,
    /// The DUT's system, as far as it is known.
    pub system: String,
    /// When it began, RFC 3339, or nothing.
    pub started: String,
    /// The file of its page.
    pub page: String,
    /// Why its figures are of no real machine.
    pub unreal: Option<Unreal>,
    pub sets: Vec<Set>,
}

/// A file that could not be used, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Problem {
    pub path: String,
    pub reason: String,
}

/// All that a site shows.
#[derive(Debug)]
pub struct Site {
    pub entries: Vec<Entry>,
    pub problems: Vec<Problem>,
    pub history: History,
    /// Published documents, with their figures recomputed from these campaigns.
    pub documents: Vec<Reproduction>,
    names: Names,
    /// Topics by their words, as the first campaign spells each.
    topics: BTreeMap<String, String>,
    /// The files of machines, cards and topics.
    files: Files,
    /// The files of the lists of all machines, cards, topics, time lines and problems.
    lists: [String; 5],
}

/// The sizes of a site.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sizes {
    pub campaigns: usize,
    pub sets: usize,
    pub runs: usize,
    pub machines: usize,
    pub cards: usize,
    pub topics: usize,
    pub timelines: usize,
    pub changes: usize,
    pub problems: usize,
}

/// A property that campaigns are listed by.
#[derive(Clone, Copy, PartialEq)]
enum Facet {
    Machine,
    Card,
    Topic,
}

impl Facet {
    const ALL: [Facet; 3] = [Facet::Machine, Facet::Card, Facet::Topic];

    /// Folder of the facet: its name in the plural.
    fn folder(self) -> &'static str {
        ["machines", "cards", "topics"][self as usize]
    }

    fn name(self) -> &'static str {
        ["machine", "card", "topic"][self as usize]
    }

    fn has_page(self, name: &str) -> bool {
        self == Facet::Topic || !name.is_empty()
    }

    fn of(self, entry: &Entry) -> &str {
        [&entry.machine, &entry.card, &entry.topic][self as usize]
    }
}

impl Default for Site {
    fn default() -> Self {
        let mut names = Names::default();
        let lists = LISTS.map(|folder| names.take(folder, "all"));
        let (entries, problems, documents) = (Vec::new(), Vec::new(), Vec::new());
        Site {
            entries,
            problems,
            history: History::default(),
            documents,
            names,
            topics: BTreeMap::new(),
            files: Files::default(),
            lists,
        }
    }
}

impl Site {
    /// Adds a campaign, whose name is `label` where the record has none; `prefix` stands before either.
    pub fn add(
        &mut self,
        campaign: &Campaign,
        host: &HostFacts,
        summary: &Summary,
        trials: &[TrialRecord],
        (prefix, label): (&str, &str),
    ) {
        let known = |text: &Option<String>| text.clone().unwrap_or_default();
        let unreal = unreal(campaign);
        let [machine, card, topic, label] = match &campaign.imported {
            Some(origin) => {
                let own = format!("{prefix}{}", origin.label.as_deref().unwrap_or(label));
                [
                    known(&origin.machine),
                    known(&origin.card),
                    known(&origin.topic),
                    own,
                ]
            }
            None => {
                let key = campaign
                    .slots
                    .first()
                    .map(|slot| key(campaign, host, slot))
                    .unwrap_or_default();
                [
                    key.machine,
                    key.card,
                    campaign.name.clone(),
                    format!("{prefix}{label}"),
                ]
            }
        };
        let spelled = self.topics.entry(words_of(&topic)).or_insert(topic);
        let topic = spelled.clone();
        let text = format!("{machine} {card} {topic} {label}");
        let entry = Entry {
            page: self.names.take("sets", &text),
            system: match host.os.strip_prefix("FreeBSD ") {
                _ if host.os.starts_with("unknown") => {
                    release(label.trim_start_matches(prefix)).unwrap_or_default()
                }
                Some(version) => release(version).unwrap_or_else(|| host.os.clone()),
                None => host.os.clone(),
            },
            started: campaign.started.clone(),
            sets: Set::all(campaign, summary, trials),
            machine,
            card,
            topic,
            label,
            unreal,
        };
        for facet in Facet::ALL {
            let (name, files) = (facet.of(&entry), &mut self.files[facet as usize]);
            // A machine or card without a name is no subject; its campaigns stand below their topics.
            if facet.has_page(name) && !files.contains_key(name) {
                files.insert(name.into(), self.names.take(facet.folder(), shown(name)));
            }
        }
        self.entries.push(entry);
    }

    /// The page of a campaign, with links to its machine, card and topic.
    pub fn linked(&self, entry: &Entry, mut page: Document) -> Document {
        let known = Facet::ALL
            .into_iter()
            .filter_map(|facet| self.link(facet, facet.of(entry)));
        let links = home().into_iter().chain(known).collect();
        page.blocks.insert(0, Block::Links { links });
        page
    }

    /// A link to the page of a machine, card or topic, from another folder; `None` where there is no such page.
    fn link(&self, facet: Facet, name: &str) -> Option<Link> {
        let file = &self.files[facet as usize].get(name)?;
        Some(Link::new(shown(name), up(file)))
    }

    /// The sizes of it.
    pub fn sizes(&self) -> Sizes {
        let different = |facet: Facet| {
            self.entries
                .iter()
                .map(|e| facet.of(e))
                .filter(|n| !n.is_empty())
                .collect::<BTreeSet<_>>()
                .len()
        };
        let sets = || self.entries.iter().flat_map(|entry| &entry.sets);
        let [machines, cards, topics] = Facet::ALL.map(different);
        Sizes {
            campaigns: self.entries.len(),
            sets: sets().count(),
            runs: sets().map(|set| set.runs.len()).sum(),
            machines,
            cards,
            topics,
            timelines: self.history.timelines.len(),
            changes: self.history.timelines.iter().map(|t| t.changes.len()).sum(),
            problems: self.problems.len(),
        }
    }

    /// Makes every page but those of the campaigns, and hands each to `page` with its file.
    ///
    /// # Errors
    /// That of `page`.
    pub fn pages<E>(
        &mut self,
        mut page: impl FnMut(&str, Document) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut names = std::mem::take(&mut self.names);
        let site = &*self;
        let [.., history, problems] = &site.lists;
        let times = Times {
            all: history,
            of: site.timelines(&mut names),
        };
        let documents: Vec<(String, &Reproduction)> = site
            .documents
            .iter()
            .map(|found| (names.take("documents", &found.document), found))
            .collect();
        page(FRONT, site.front(&documents))?;
        for (file, found) in &documents {
            page(file, document(found))?;
        }
        for facet in Facet::ALL {
            if site.files[facet as usize].len() > MOST_LISTED {
                write_parts(
                    &site.lists[facet as usize],
                    &mut names,
                    &mut page,
                    site.list(facet),
                )?;
            }
            let mut by_name: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
            site.entries
                .iter()
                .for_each(|entry| by_name.entry(facet.of(entry)).or_default().push(entry));
            for (name, entries) in by_name.into_iter().filter(|(name, _)| facet.has_page(name)) {
                let paged = match facet {
                    Facet::Topic => site.topic(name, &entries, &times),
                    _ => site.facet(facet, name, &entries, &times),
                };
                write_parts(
                    &site.files[facet as usize][name],
                    &mut names,
                    &mut page,
                    paged,
                )?;
            }
        }
        if !site.history.timelines.is_empty() {
            write_parts(history, &mut names, &mut page, site.all_history(&times))?;
        }
        for (place, (file, timelines)) in &times.of {
            page(file, history_page(place, timelines, history))?;
        }
        if !site.problems.is_empty() {
            write_parts(problems, &mut names, &mut page, site.broken())?;
        }
        self.names = names;
        Ok(())
    }
}

/// The page of a published document.
fn document(found: &Reproduction) -> Document {
    let mut page = Document::titled(found.document.as_str());
    page.links(home());
    let mut found = super::reproduction(found, true);
    // The first words are the title.
    found.blocks.remove(0);
    page.append(found);
    page
}

/// Names of machines, cards and topics -> their files.
type Files = [BTreeMap<String, String>; 3];
