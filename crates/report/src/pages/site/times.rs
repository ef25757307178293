//! The history of a site: all time lines, and those of each machine, card and topic.

use super::names::Names;
use super::paged::{Paged, sections};
use super::words::{home, place_of, up};
use super::{MOST_LISTED, Site};
use crate::pages::history;
use crate::prelude::*;
use linerate_measure::history::{History, Judged, Key};

/// The pages of time lines.
pub struct Times<'a> {
    /// The file of the page about all of them.
    pub all: &'a str,
    pub of: OfPlaces<'a>,
}

/// The time lines of a place in a list.
struct TimesRow {
    link: Link,
    timelines: usize,
    points: usize,
    changes: usize,
}

/// Machine, card and topic -> the file of its time lines, and these.
pub type OfPlaces<'a> = BTreeMap<[&'a str; 3], (String, Vec<&'a Judged>)>;

impl Site {
    /// Time lines by machine, card and topic, those that are long enough to show a change.
    pub(super) fn timelines<'a>(&'a self, names: &mut Names) -> OfPlaces<'a> {
        let mut times: OfPlaces<'a> = BTreeMap::new();
        for timeline in self.history.timelines.iter().filter(|t| t.p.is_some()) {
            let place = [
                &timeline.key.machine,
                &timeline.key.card,
                &timeline.key.topic,
            ]
            .map(String::as_str);
            times.entry(place).or_default().1.push(timeline);
        }
        for (place, (file, _)) in &mut times {
            *file = names.take("history", &place.join(" "));
        }
        times
    }

    /// All changes, and all time lines by place.
    pub(super) fn all_history(&self, times: &Times<'_>) -> Paged {
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
        Paged {
            title: "History".into(),
            first,
            sections: sections("Time lines", &rows, table),
        }
    }
}

impl Times<'_> {
    /// Links to the time lines of some places.
    pub(super) fn links(&self, of: impl Fn(&[&str; 3]) -> bool) -> Document {
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

/// The time lines of a place.
pub fn history_page(place: &[&str; 3], timelines: &[&Judged], all: &str) -> Document {
    // Each stands below the place.
    let bare = |timeline: &Judged| {
        let [machine, card, topic] = Default::default();
        Judged {
            key: Key {
                machine,
                card,
                topic,
                ..timeline.key.clone()
            },
            ..timeline.clone()
        }
    };
    let timelines: Vec<Judged> = timelines.iter().map(|timeline| bare(timeline)).collect();
    let some = History {
        long_enough: timelines.len(),
        timelines,
        expected_by_chance: 0.0,
    };
    let mut page = Document::titled(format!("History: {}", place_of(place)));
    page.links(
        home()
            .into_iter()
            .chain([Link::new("All time lines", up(all))])
            .collect(),
    );
    page.append(history::history(&some));
    page
}
