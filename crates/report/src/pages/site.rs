//! The pages of a site over many campaigns: a front page, one for each machine, card, topic and time line. The page of a campaign is
//! that of [`super::report`].

mod index;
mod names;
mod topic;

use super::history;
use super::numbers::{count, counted, grouped, number, rate_unit, rate_with_unit};
use super::sets::Set;
use crate::document::{Block, Document, Link, Table};
pub use index::index;
use linerate_measure::history::campaigns::key;
use linerate_measure::history::revision::Release;
use linerate_measure::history::{History, Judged, Key};
use linerate_measure::record::{Campaign, HostFacts, Summary, TrialRecord};
use names::Names;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use topic::{Compared, compared, comparison, pictures};

/// Rows of a page: more stand on further pages.
const MOST_ROWS: usize = 600;
/// Entries of a list on the front page.
const MOST_LISTED: usize = 100;
/// The file of the index, which the search loads.
pub const INDEX: &str = "sets.js";
/// The front page.
pub const FRONT: &str = "index.html";
/// The folders of all other pages.
pub const FOLDERS: [&str; 6] = ["sets", "machines", "cards", "topics", "history", "problems"];
/// Those that have a list.
const LISTS: [&str; 5] = ["machines", "cards", "topics", "history", "problems"];

/// A campaign of a site.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub machine: String,
    pub card: String,
    pub topic: String,
    /// Its name among those of the same machine, card and topic.
    pub label: String,
    /// The DUT's system, as far as it is known.
    pub system: String,
    /// When it began, RFC 3339, or nothing.
    pub started: String,
    /// The file of its page.
    pub page: String,
    pub simulated: bool,
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
    names: Names,
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

    /// Its folder, which is its name in the plural.
    fn folder(self) -> &'static str {
        ["machines", "cards", "topics"][self as usize]
    }

    fn name(self) -> &'static str {
        ["machine", "card", "topic"][self as usize]
    }

    fn of(self, entry: &Entry) -> &str {
        [&entry.machine, &entry.card, &entry.topic][self as usize]
    }
}

impl Default for Site {
    fn default() -> Self {
        let mut names = Names::default();
        let lists = LISTS.map(|folder| names.take(folder, "all"));
        let (entries, problems, history) = (Vec::new(), Vec::new(), History::default());
        Site { entries, problems, history, names, files: Files::default(), lists }
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
        let simulated = super::simulated(campaign);
        let [machine, card, topic, label] = match &campaign.imported {
            Some(origin) => {
                let own = format!("{prefix}{}", origin.label.as_deref().unwrap_or(label));
                [known(&origin.machine), known(&origin.card), known(&origin.topic), own]
            }
            None => {
                let key = campaign.slots.first().map(|slot| key(campaign, host, slot)).unwrap_or_default();
                [key.machine, key.card, campaign.name.clone(), format!("{prefix}{label}")]
            }
        };
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
            simulated,
        };
        for facet in Facet::ALL {
            let (name, files) = (facet.of(&entry), &mut self.files[facet as usize]);
            if !files.contains_key(name) {
                files.insert(name.into(), self.names.take(facet.folder(), shown(name)));
            }
        }
        self.entries.push(entry);
    }

    /// The page of a campaign, with links to its machine, card and topic.
    pub fn linked(&self, entry: &Entry, mut page: Document) -> Document {
        let link = |facet: Facet| {
            let name = facet.of(entry);
            Link::new(shown(name), up(&self.files[facet as usize][name]))
        };
        let links = home().into_iter().chain(Facet::ALL.map(link)).collect();
        page.blocks.insert(0, Block::Links { links });
        page
    }

    /// The sizes of it.
    pub fn sizes(&self) -> Sizes {
        let different = |facet: Facet| {
            self.entries.iter().map(|e| facet.of(e)).filter(|n| !n.is_empty()).collect::<BTreeSet<_>>().len()
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
    pub fn pages<E>(&mut self, mut page: impl FnMut(&str, Document) -> Result<(), E>) -> Result<(), E> {
        let mut names = std::mem::take(&mut self.names);
        let site = &*self;
        let [.., history, problems] = &site.lists;
        let times = Times { all: history, of: site.timelines(&mut names) };
        page(FRONT, site.front())?;
        for facet in Facet::ALL {
            if site.files[facet as usize].len() > MOST_LISTED {
                write_parts(&site.lists[facet as usize], &mut names, &mut page, site.list(facet))?;
            }
            let mut by_name: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
            site.entries.iter().for_each(|entry| by_name.entry(facet.of(entry)).or_default().push(entry));
            for (name, entries) in by_name {
                let paged = match facet {
                    Facet::Topic => site.topic(name, &entries, &times),
                    _ => site.facet(facet, name, &entries, &times),
                };
                write_parts(&site.files[facet as usize][name], &mut names, &mut page, paged)?;
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

/// Names of machines, cards and topics -> their files.
type Files = [BTreeMap<String, String>; 3];

/// The pages of time lines.
struct Times<'a> {
    /// The file of the page about all of them.
    all: &'a str,
    of: OfPlaces<'a>,
}

/// The time lines of a place in a list.
struct TimesRow {
    link: Link,
    timelines: usize,
    points: usize,
    changes: usize,
}

/// Machine, card and topic -> the file of its time lines, and these.
type OfPlaces<'a> = BTreeMap<[&'a str; 3], (String, Vec<&'a Judged>)>;

/// A page that may be long: what stands first, and sections with their rows.
struct Paged {
    title: String,
    first: Document,
    sections: Vec<(usize, Document)>,
}

/// Sections on as many pages as they need.
fn write_parts<E>(
    file: &str,
    names: &mut Names,
    page: &mut impl FnMut(&str, Document) -> Result<(), E>,
    paged: Paged,
) -> Result<(), E> {
    let Paged { title, first, sections } = paged;
    let mut parts: Vec<(usize, Vec<Document>)> = vec![(0, Vec::new())];
    for (rows, section) in sections {
        if parts.last().is_some_and(|(all, _)| *all > 0 && all + rows > MOST_ROWS) {
            parts.push((0, Vec::new()));
        }
        if let Some((all, part)) = parts.last_mut() {
            *all += rows;
            part.push(section);
        }
    }
    let (folder, base) = file.rsplit_once('/').unwrap_or(("", file));
    let more = (1..parts.len()).map(|_| names.take(folder, base.trim_end_matches(".html")));
    let files: Vec<String> = std::iter::once(file.to_string()).chain(more).collect();
    let all = parts.len();
    let mut first = Some(first);
    for (at, (_, sections)) in parts.into_iter().enumerate() {
        let part = if all > 1 { format!("{title}, part {} of {all}", at + 1) } else { title.clone() };
        let mut document = Document { title: Some(part), ..Document::default() };
        document.links(home());
        if all > 1 {
            let local = |file: &String| file.rsplit('/').next().unwrap_or(file).to_string();
            let parts =
                files.iter().enumerate().map(|(n, file)| Link::new(format!("Part {}", n + 1), local(file)));
            document.links(parts.collect());
        }
        first.take().into_iter().for_each(|first| document.append(first));
        sections.into_iter().for_each(|section| document.append(section));
        page(&files[at], document)?;
    }
    Ok(())
}

/// Rows below a heading, in sections that fit on a page.
fn sections<R>(heading: &str, rows: &[R], table: impl Fn(&[R]) -> Table) -> Vec<(usize, Document)> {
    let section = |(at, rows): (usize, &[R])| {
        let mut page = Document::default();
        page.heading(if at == 0 { heading.to_string() } else { format!("{heading} (continued)") });
        page.table(table(rows));
        (rows.len(), page)
    };
    rows.chunks(MOST_ROWS).enumerate().map(section).collect()
}

/// `FreeBSD 11.1` of the label of an archive's folder, or of uname's words.
fn release(text: &str) -> Option<String> {
    let Release { major, minor, .. } = Release::of_label(text)?;
    Some(minor.map_or(format!("FreeBSD {major}"), |minor| format!("FreeBSD {major}.{minor}")))
}

/// From the oldest to the newest version of FreeBSD, or the few systems that there are.
fn systems<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    let mut systems: BTreeSet<&str> = entries.into_iter().map(|entry| entry.system.as_str()).collect();
    systems.remove("");
    let mut versions: Vec<(u32, Option<u32>)> = Vec::new();
    for system in &systems {
        let known = system.strip_prefix("FreeBSD ").and_then(Release::of_label);
        versions.extend(known.map(|release| (release.major, release.minor)));
    }
    versions.sort_unstable();
    let shown = |(major, minor): &(u32, Option<u32>)| {
        minor.map_or(major.to_string(), |minor| format!("{major}.{minor}"))
    };
    match &versions[..] {
        [first, .., last] if versions.len() == systems.len() => {
            format!("FreeBSD {} .. {}", shown(first), shown(last))
        }
        _ => super::numbers::some(systems.into_iter().map(String::from), 3, ", "),
    }
}

/// A name, or a word for one that is not known.
fn shown(name: &str) -> &str {
    if name.is_empty() { "not named" } else { name }
}

fn listed(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let names: BTreeSet<String> =
        names.into_iter().map(|n| n.as_ref().to_string()).filter(|n| !n.is_empty()).collect();
    super::numbers::some(names, 12, ", ")
}

/// From the first to the last day of campaigns, and how many of them say when they began.
fn span<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Option<String> {
    let days: Vec<Option<&str>> = entries.into_iter().map(|entry| entry.started.get(..10)).collect();
    let known: BTreeSet<&str> = days.iter().copied().flatten().collect();
    let (first, last) = (known.first()?, known.last()?);
    let span = if first == last { format!("on {first}") } else { format!("from {first} to {last}") };
    let dated = days.iter().flatten().count();
    Some(match days.len() {
        all if all == dated => span,
        all => format!("{span} ({} of {} campaigns say when)", grouped(dated as u64), grouped(all as u64)),
    })
}

/// The least and the greatest median in frames/s, in words.
fn range<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Option<String> {
    let [low, high] = extremes(entries)?;
    Some(format!("from {} to {}", rate_with_unit(low), rate_with_unit(high)))
}

fn extremes<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Option<[f64; 2]> {
    let sets = entries.into_iter().flat_map(|entry| &entry.sets).filter(|set| set.counts() && !set.mbits);
    let rates = sets.map(|set| set.rate.median).filter(|rate| *rate > 0.0);
    let [low, high] = rates.fold([f64::INFINITY, 0.0], |[l, h], rate| [l.min(rate), h.max(rate)]);
    (high > 0.0).then_some([low, high])
}

fn sets_of(entries: &[&Entry]) -> usize {
    entries.iter().map(|entry| entry.sets.len()).sum()
}

impl Site {
    /// In words and lists: the contents of the site.
    fn front(&self) -> Document {
        let [.., history, problems] = self.lists.each_ref().map(String::as_str);
        let sizes = self.sizes();
        let mut page = Document {
            title: Some(format!("Forwarding rates of {}", counted(sizes.machines, "machine"))),
            ..Document::default()
        };
        super::warn_of_simulation(&mut page, self.entries.iter().any(|entry| entry.simulated));
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

    /// The names of a facet with their campaigns, those with most sets first.
    fn rows(&self, facet: Facet) -> Vec<(&str, Vec<&Entry>)> {
        let mut rows: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        self.entries.iter().for_each(|entry| rows.entry(facet.of(entry)).or_default().push(entry));
        let mut rows: Vec<(&str, Vec<&Entry>)> = rows.into_iter().collect();
        rows.sort_by_key(|(_, entries)| std::cmp::Reverse(sets_of(entries)));
        rows
    }

    /// All names of a facet.
    fn list(&self, facet: Facet) -> Paged {
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
        Paged { title, first: Document::default(), sections: all }
    }

    /// A machine or a card: its facts, and its campaigns by card or machine.
    fn facet(&self, facet: Facet, name: &str, entries: &[&Entry], times: &Times<'_>) -> Paged {
        let other = if facet == Facet::Machine { Facet::Card } else { Facet::Machine };
        let all = || entries.iter().copied();
        let mut first = Document::default();
        super::warn_of_simulation(&mut first, all().any(|entry| entry.simulated));
        let rates = range(all()).map_or(String::new(), |rates| format!(", with median rates {rates}"));
        first.answer(format!(
            "{}: {} of {}{rates}.",
            shown(name),
            counted(sets_of(entries), "set"),
            counted(entries.len(), "campaign"),
        ));
        first.fact(
            if other == Facet::Card { "cards" } else { "machines" },
            listed(all().map(|entry| other.of(entry))),
        );
        first.fact("topics", listed(all().map(|entry| entry.topic.as_str())));
        let systems = systems(all());
        if !systems.is_empty() {
            first.fact("systems", systems);
        }
        if let Some(span) = span(all()) {
            first.fact("measured", span);
        }
        let of_name = |place: &[&str; 3]| place[facet as usize] == name;
        first.append(times.links(of_name));
        let mut groups: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        all().for_each(|entry| groups.entry(other.of(entry)).or_default().push(entry));
        let table = |entries: &[&Entry]| -> Table {
            let high = extremes(entries.iter().copied()).map_or(0.0, |[_, high]| high);
            let (scale, unit) = rate_unit(high);
            let rate = |entry: &&Entry, end: usize| {
                extremes([*entry]).map(|ends| super::numbers::rate(ends[end], scale, 4))
            };
            Table::of(entries.iter().copied())
                .column("campaign", "", |entry| Link::new(shown(&entry.label), up(&entry.page)))
                .column("topic", "", |entry| {
                    Link::new(shown(&entry.topic), up(&self.files[2][entry.topic.as_str()]))
                })
                .if_any("system", "", |entry| some(&entry.system))
                .if_any("begun", "", |entry| entry.started.get(..10))
                .column("sets", "", |entry| count(entry.sets.len() as u64))
                .if_any("slowest", unit, |entry| rate(entry, 0))
                .if_any("fastest", unit, |entry| rate(entry, 1))
                .into()
        };
        let sections =
            groups.into_iter().flat_map(|(name, entries)| sections(shown(name), &entries, table)).collect();
        Paged { title: shown(name).into(), first, sections }
    }

    /// A topic: its picture, and the comparison of its sets, by machine and card.
    fn topic(&self, name: &str, entries: &[&Entry], times: &Times<'_>) -> Paged {
        let all = || entries.iter().copied();
        let mut first = Document::default();
        super::warn_of_simulation(&mut first, all().any(|entry| entry.simulated));
        let rates = range(all()).map_or(String::new(), |rates| format!(", with median rates {rates}"));
        let machines: BTreeSet<&str> = all().map(|entry| entry.machine.as_str()).collect();
        first.answer(format!(
            "{}: {} of {} on {}{rates}.",
            shown(name),
            counted(sets_of(entries), "set"),
            counted(entries.len(), "campaign"),
            counted(machines.len(), "machine"),
        ));
        if let Some(span) = span(all()) {
            first.note(format!("Measured {span}."));
        }
        pictures(name, entries).into_iter().for_each(|chart| first.blocks.push(Block::Chart(chart)));
        first.append(times.links(|place| place[2] == name));
        first.note("In each campaign, ministat (Student's t, 95 %) compares every set with the one that is named; runs under a profiler, and of the tester alone, are left out.");
        let mut groups: BTreeMap<[&str; 2], Vec<Compared<'_>>> = BTreeMap::new();
        for entry in all() {
            groups.entry([&entry.machine, &entry.card]).or_default().extend(compared(entry));
        }
        let place = |[machine, card]: [&str; 2]| {
            let known: Vec<&str> = [machine, card].into_iter().filter(|n| !n.is_empty()).collect();
            shown(&known.join(", ")).to_string()
        };
        let mut all_sections = Vec::new();
        for (names, rows) in groups {
            let [machine, card] = names;
            let mut of_group = sections(&place(names), &rows, comparison);
            if let Some((_, section)) = of_group.first_mut() {
                let links = vec![
                    Link::new(shown(machine), up(&self.files[0][machine])),
                    Link::new(shown(card), up(&self.files[1][card])),
                ];
                section.blocks.insert(1, Block::Links { links });
            }
            all_sections.extend(of_group);
        }
        Paged { title: shown(name).into(), first, sections: all_sections }
    }

    /// Time lines by machine, card and topic, those that are long enough to show a change.
    fn timelines<'a>(&'a self, names: &mut Names) -> OfPlaces<'a> {
        let mut times: OfPlaces<'a> = BTreeMap::new();
        for timeline in self.history.timelines.iter().filter(|t| t.p.is_some()) {
            let place = [&timeline.key.machine, &timeline.key.card, &timeline.key.topic].map(String::as_str);
            times.entry(place).or_default().1.push(timeline);
        }
        for (place, (file, _)) in &mut times {
            *file = names.take("history", &place.join(" "));
        }
        times
    }

    /// All changes, and all time lines by place.
    fn all_history(&self, times: &Times<'_>) -> Paged {
        let mut first = Document::default();
        first.answer(history::answer(&self.history));
        let short = self.history.timelines.len() - self.history.long_enough;
        first.say(format!(
            "A time line follows one configuration of one machine and card over the revisions or versions of its system, or over time. {} judged; {} too short to show a change.",
            counted(self.history.long_enough, "time line"),
            match short { 1 => "1 is".into(), n => format!("{} are", grouped(n as u64)) },
        ));
        first.append(history::tables(&self.history, MOST_LISTED));
        let row = |(place, (file, all)): (&[&str; 3], &(String, Vec<&Judged>))| TimesRow {
            link: Link::new(place_of(place), up(file)),
            timelines: all.len(),
            points: all.iter().map(|timeline| timeline.points.len()).sum(),
            changes: all.iter().map(|timeline| timeline.changes.len()).sum(),
        };
        let rows: Vec<TimesRow> = times.of.iter().map(row).collect();
        let table = |rows: &[TimesRow]| -> Table {
            Table::of(rows)
                .column("", "", |row| row.link.clone())
                .column("time lines", "", |row| row.timelines)
                .column("points", "", |row| row.points)
                .column("changes", "", |row| row.changes)
                .into()
        };
        Paged { title: "History".into(), first, sections: sections("Time lines", &rows, table) }
    }

    /// Files that could not be used, by their folder.
    fn broken(&self) -> Paged {
        let mut first = Document::default();
        first.answer(format!("{} cannot be used, or only in part.", counted(self.problems.len(), "file")));
        let mut folders: BTreeMap<&str, Vec<&Problem>> = BTreeMap::new();
        for problem in &self.problems {
            let folder = problem.path.rsplit_once('/').map_or(".", |(folder, _)| folder);
            folders.entry(folder).or_default().push(problem);
        }
        let table = |problems: &[&Problem]| -> Table {
            Table::of(problems.iter().copied())
                .column("file", "", |p| p.path.rsplit('/').next().unwrap_or_default())
                .column("reason", "", |p| p.reason.as_str())
                .into()
        };
        let sections = folders.into_iter().flat_map(|(folder, problems)| sections(folder, &problems, table));
        Paged { title: "Files that cannot be used".into(), first, sections: sections.collect() }
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// A file of the site, seen from a folder of it.
fn up(file: &str) -> String {
    format!("../{file}")
}

fn home() -> Vec<Link> {
    vec![Link::new("All results", up(FRONT))]
}

fn place_of(place: &[&str; 3]) -> String {
    let known: Vec<&str> = place.iter().copied().filter(|name| !name.is_empty()).collect();
    shown(&known.join(", ")).to_string()
}

impl Times<'_> {
    /// Links to the time lines of some places.
    fn links(&self, of: impl Fn(&[&str; 3]) -> bool) -> Document {
        let mut page = Document::default();
        let found = self.of.iter().filter(|(place, _)| of(place));
        let link = |(place, (file, _)): (&[&str; 3], &(String, _))| {
            Link::new(format!("History: {}", place_of(place)), up(file))
        };
        let mut links: Vec<Link> = found.map(link).collect();
        if links.len() > MOST_LISTED / 4 {
            links = vec![Link::new("History of all time lines", up(self.all))];
        }
        if !links.is_empty() {
            page.links(links);
        }
        page
    }
}

/// `place` leads from the page of the table to the front page.
fn facet_table(
    facet: Facet,
    rows: &[(&str, Vec<&Entry>)],
    files: &BTreeMap<String, String>,
    place: &str,
) -> Table {
    let different = |entries: &[&Entry], of: Facet| {
        count(
            entries.iter().map(|entry| of.of(entry)).filter(|n| !n.is_empty()).collect::<BTreeSet<_>>().len()
                as u64,
        )
    };
    let fastest = |entries: &[&Entry]| extremes(entries.iter().copied()).map(|[_, high]| high);
    let (scale, unit) =
        rate_unit(rows.iter().filter_map(|(_, entries)| fastest(entries)).fold(0.0, f64::max));
    let others = Facet::ALL.into_iter().filter(|other| *other != facet);
    let table = Table::of(rows)
        .column(facet.name(), "", |(name, _)| Link::new(shown(name), format!("{place}{}", files[*name])))
        .column("sets", "", |(_, entries)| count(sets_of(entries) as u64))
        .column("campaigns", "", |(_, entries)| count(entries.len() as u64));
    others
        .fold(table, |table, other| {
            table.column(other.folder(), "", |(_, entries)| different(entries, other))
        })
        .column("fastest", unit, |(_, entries)| {
            fastest(entries).map(|rate| super::numbers::rate(rate, scale, 4))
        })
        .if_any("fastest", "Mbit/s", |(_, entries)| {
            let sets = entries.iter().flat_map(|entry| &entry.sets).filter(|set| set.mbits && set.counts());
            sets.map(|set| set.rate.median).reduce(f64::max).map(|rate| number(rate, 4))
        })
        .if_any("systems", "", |(_, entries)| {
            Some(systems(entries.iter().copied())).filter(|s| !s.is_empty())
        })
        .into()
}

/// The time lines of a place.
fn history_page(place: &[&str; 3], timelines: &[&Judged], all: &str) -> Document {
    // Each stands below the place.
    let bare = |timeline: &Judged| {
        let [machine, card, topic] = Default::default();
        Judged { key: Key { machine, card, topic, ..timeline.key.clone() }, ..timeline.clone() }
    };
    let timelines: Vec<Judged> = timelines.iter().map(|timeline| bare(timeline)).collect();
    let some = History { long_enough: timelines.len(), timelines, expected_by_chance: 0.0 };
    let mut page = Document { title: Some(format!("History: {}", place_of(place))), ..Document::default() };
    page.links(home().into_iter().chain([Link::new("All time lines", up(all))]).collect());
    page.append(history::history(&some));
    page
}
