//! Points of a time line from an imported archive.
//!
//! A folder with sets of three or more revisions (`276669.forwarding`, ...) is a time line of its own for each
//! configuration: one lab, one set-up, one revision after the other. All other folders, and the last revision of these, are
//! points of time lines across folders, in the order of FreeBSD's versions and revisions.

use crate::netbenches::{Archive, ResultDirectory, Series, SeriesRow, Set, facts};
use linerate_measure::history::revision::{Place, Release, Revision};
use linerate_measure::history::{Figure, Key, Point, Timelines};
use std::collections::{BTreeMap, BTreeSet};

/// A folder with at least this number of revisions is a time line.
const REVISIONS: usize = 3;

/// Frames up to this length without FCS are the smallest: 60 bytes, 62 for IPv6, and shorter ones, which the card pads.
const SMALLEST: u64 = 62;

/// Fact that names the folder.
pub const FOLDER: &str = "results folder";

/// Adds everything that an archive holds.
pub fn add(timelines: &mut Timelines, archive: &Archive) {
    let mut across: BTreeMap<Key, Vec<Entry>> = BTreeMap::new();
    for directory in &archive.directories {
        for (variant, also, entries) in joined(variants(directory)) {
            let revisions: BTreeSet<&Revision> =
                entries.iter().filter_map(|e| e.named.as_ref()).collect();
            let mut key = key(directory, variant);
            if revisions.len() < REVISIONS {
                across.entry(key).or_default().extend(entries);
                continue;
            }
            let newest = entries.iter().max_by(|a, b| a.named.cmp(&b.named)).cloned();
            across.entry(key.clone()).or_default().extend(newest);
            key.also = also;
            key.series = directory
                .place
                .label
                .clone()
                .unwrap_or_else(|| directory.path.clone());
            for Entry { named, point, .. } in entries {
                if let Some(revision) = named {
                    timelines.add(
                        key.clone(),
                        Point {
                            place: Place::at_revision(revision),
                            ..point
                        },
                    );
                }
            }
        }
    }
    for (key, mut entries) in across {
        // One folder is no history.
        let folders: BTreeSet<&str> = entries
            .iter()
            .map(|e| e.point.facts[FOLDER].as_str())
            .collect();
        if folders.len() < 2 {
            continue;
        }
        place_stable_branches(&mut entries);
        for mut entry in entries
            .into_iter()
            .filter(|entry| entry.point.place.release.is_some())
        {
            entry.point.place.revision = entry.revision().cloned();
            timelines.add(key.clone(), entry.point);
        }
    }
}

/// Properties that distinguish the sets of a folder, except their revision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Variant {
    name: String,
    ipv6: bool,
    /// Frame length without FCS, unless it is among the smallest.
    frame: Option<u64>,
}

/// A result of the archive.
#[derive(Debug, Clone)]
struct Entry {
    /// Revision in the set's name, or of its image.
    named: Option<Revision>,
    /// The least and the greatest of its runs.
    range: Option<(f64, f64)>,
    /// Point of the result: its place has the revision by uname or by the folder's name.
    point: Point,
}

impl Entry {
    /// Whether both are of the same runs: median, least and greatest agree to the eight digits that the archive prints.
    fn same_runs(&self, other: &Entry) -> bool {
        let alike = |a: f64, b: f64| (a - b).abs() <= 1e-7 * a;
        let (Some(a), Some(b)) = (self.range, other.range) else {
            return false;
        };
        alike(self.point.rate.value, other.point.rate.value) && alike(a.0, b.0) && alike(a.1, b.1)
    }

    fn revision(&self) -> Option<&Revision> {
        self.named.as_ref().or(self.point.place.revision.as_ref())
    }
}

fn key(directory: &ResultDirectory, variant: Variant) -> Key {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    Key {
        machine: text(&directory.place.machine),
        card: text(&directory.place.card),
        topic: text(&directory.place.topic),
        variant: variant.name,
        family: if variant.ipv6 { "IPv6" } else { "IPv4" }.into(),
        frame: variant
            .frame
            .map_or_else(String::new, |l| format!("{} B", l.saturating_add(4))),
        ..Key::default()
    }
}

/// The results of a folder, by variant.
fn variants(directory: &ResultDirectory) -> BTreeMap<Variant, Vec<Entry>> {
    let mut all: BTreeMap<Variant, Vec<Entry>> = BTreeMap::new();
    let mut taken: BTreeSet<(Variant, Option<Revision>)> = BTreeSet::new();
    let common = Common::of(directory);
    let sets = directory
        .sets
        .iter()
        .filter(|s| !s.slot.profiling)
        .filter_map(|s| common.set(s));
    let rows = directory.series.iter().flat_map(|s| common.rows(s));
    // Sets come first: they have all their runs, where a row has three figures.
    for (variant, entry) in sets.chain(rows) {
        if taken.insert((variant.clone(), entry.named.clone())) {
            all.entry(variant).or_default().push(entry);
        }
    }
    all
}

/// Variants with the other names under which the folder has the same runs: a table may call the sets that it sums up by other
/// names. The name that stays is that of the sets.
fn joined(variants: BTreeMap<Variant, Vec<Entry>>) -> Vec<(Variant, Vec<String>, Vec<Entry>)> {
    let mut joined: Vec<(Variant, Vec<String>, Vec<Entry>)> = Vec::new();
    let mut variants: Vec<_> = variants.into_iter().collect();
    variants.sort_by_key(|(_, entries)| entries.iter().all(|e| e.point.rate.runs == 0));
    for (variant, mut entries) in variants {
        match joined
            .iter_mut()
            .find(|(_, _, known)| are_the_same(known, &entries))
        {
            Some((_, also, known)) => {
                entries.retain(|e| known.iter().all(|k| k.named != e.named));
                known.append(&mut entries);
                also.push(variant.name);
            }
            None => joined.push((variant, Vec::new(), entries)),
        }
    }
    joined
}

/// Whether most revisions that both have, and [`REVISIONS`] at least, are of the same runs. A table may have been mended by hand.
fn are_the_same(a: &[Entry], b: &[Entry]) -> bool {
    let of = |revision: &Revision| a.iter().find(|e| e.named.as_ref() == Some(revision));
    let shared: Vec<bool> = b
        .iter()
        .filter_map(|e| Some(of(e.named.as_ref()?)?.same_runs(e)))
        .collect();
    let same = shared.iter().filter(|same| **same).count();
    same >= REVISIONS && 2 * same > shared.len()
}

/// Properties that all sets of a folder share.
struct Common<'a> {
    directory: &'a ResultDirectory,
    place: Place,
}

impl<'a> Common<'a> {
    fn of(directory: &'a ResultDirectory) -> Self {
        let label = directory.place.label.clone().unwrap_or_default();
        let unames = || {
            directory
                .sets
                .iter()
                .filter_map(|s| s.slot.facts.get(facts::RELEASE))
        };
        let release =
            Release::of_label(&label).or_else(|| unames().find_map(|r| Release::of_uname(r)));
        Common {
            directory,
            place: Place {
                release,
                revision: Revision::find(&label),
                name: label,
            },
        }
    }

    fn entry(&self, name: &Name, rate: Figure, range: Option<(f64, f64)>, source: String) -> Entry {
        let facts = [(FOLDER.to_string(), self.directory.path.clone())].into();
        let point = Point {
            place: self.place.clone(),
            rate,
            relative: None,
            facts,
            source,
        };
        Entry {
            named: name.revision.clone(),
            range,
            point,
        }
    }

    fn set(&self, set: &Set) -> Option<(Variant, Entry)> {
        let (mut runs, source) = match set.slot.published.as_ref().filter(|p| !p.values.is_empty())
        {
            Some(published) => (published.values.clone(), published.file.clone()),
            None => {
                let file = set.runs.first().map(|r| r.trial.file.clone());
                (
                    set.runs.iter().filter_map(|r| r.median_pps).collect(),
                    file.unwrap_or_default(),
                )
            }
        };
        runs.retain(|rate| *rate > 0.0);
        let mut name = Name::of(&set.slot.set);
        let image = set.image.as_deref().and_then(Revision::parse);
        name.revision = name
            .revision
            .or_else(|| image.map(|(revision, _)| revision));
        let least = runs.iter().copied().min_by(f64::total_cmp);
        let range = least.zip(runs.iter().copied().max_by(f64::total_cmp));
        let mut entry = self.entry(&name, Figure::of_runs(&runs)?, range, source);
        entry.point.facts.extend(set.slot.facts.clone());
        let place = &mut entry.point.place;
        let uname = set
            .slot
            .facts
            .get(facts::RELEASE)
            .and_then(|r| Release::of_uname(r));
        // A branch's name does not contain its current version.
        place.release = match (place.release, uname) {
            (Some(label), Some(uname)) if label.minor.is_none() && label.major == uname.major => {
                Some(uname)
            }
            (label, uname) => label.or(uname),
        };
        let of_uname = set
            .slot
            .facts
            .get(facts::REVISION)
            .and_then(|r| Revision::parse(r));
        place.revision = of_uname
            .map(|(revision, _)| revision)
            .or(place.revision.take());
        let frame = set.frame_length.filter(|l| *l > SMALLEST);
        let ipv6 = name.ipv6 || set.family.as_deref() == Some("inet6");
        Some((
            Variant {
                name: name.rest,
                ipv6,
                frame,
            },
            entry,
        ))
    }

    /// Rows of a table whose keys name a revision, perhaps behind the configuration that the table or the row names; and, of
    /// the folder's main table, rows whose keys are configurations.
    fn rows(&'a self, series: &'a Series) -> impl Iterator<Item = (Variant, Entry)> + 'a {
        let stem = series
            .file
            .rsplit('/')
            .next()
            .unwrap_or("")
            .split(".data")
            .next()
            .unwrap_or("");
        let main = stem == "gnuplot" && series.file.ends_with(".data");
        let grouped = series.rows.iter().any(|r| r.key.contains(' '));
        series.rows.iter().filter_map(move |row| {
            let key = row.key.replace(' ', ".");
            let named = Name::of(&key).revision.is_some();
            // In a table with groups, a row that was not put into one belongs to the one before: which, it does not say.
            let usable = if named {
                !grouped || row.key.contains(' ') || !main
            } else {
                main
            };
            let whole = if main || !named {
                key
            } else {
                format!("{key}.{stem}")
            };
            usable
                .then(|| self.row(&Name::of(&whole), row, &series.file))
                .flatten()
        })
    }

    fn row(&self, name: &Name, row: &SeriesRow, file: &str) -> Option<(Variant, Entry)> {
        let median = row.median.filter(|m| *m > 0.0)?;
        let range = row.min.zip(row.max);
        let figure = match range {
            Some((least, greatest)) => Figure::of_range(median, least, greatest),
            None => Figure {
                value: median,
                error: 0.0,
                runs: 0,
            },
        };
        let entry = self.entry(name, figure, range, format!("{file}, line {}", row.line));
        // The lengths of frames are not in tables, but the sets of the folder that have logs say them.
        let frame = self
            .directory
            .sets
            .iter()
            .find(|s| Name::of(&s.slot.set).rest == name.rest);
        let frame = frame.and_then(|s| s.frame_length).filter(|l| *l > SMALLEST);
        Some((
            Variant {
                name: name.rest.clone(),
                ipv6: name.ipv6,
                frame,
            },
            entry,
        ))
    }
}

/// A set's name, taken apart: `<revision>.<configuration>.<family>`.
struct Name {
    revision: Option<Revision>,
    rest: String,
    ipv6: bool,
}

impl Name {
    fn of(name: &str) -> Self {
        let mut parsed = Name {
            revision: None,
            rest: String::new(),
            ipv6: false,
        };
        let mut rest: Vec<String> = Vec::new();
        for word in name.split('.').filter(|w| !w.is_empty() && *w != "bench") {
            match word {
                "inet4" => {}
                "inet6" => parsed.ipv6 = true,
                _ => match Revision::parse(word).filter(|_| parsed.revision.is_none()) {
                    Some((revision, patch)) => {
                        parsed.revision = Some(revision);
                        if !patch.is_empty() {
                            rest.push(format!("with {patch}"));
                        }
                    }
                    // Written either way in different years.
                    None => rest.push(word.replace("statefull", "stateful")),
                },
            }
        }
        // The configuration first, then its patches.
        rest.sort_by_key(|word| word.starts_with("with "));
        parsed.rest = rest.join(" ");
        parsed
    }
}

/// `fbsd11-stable.r332393` does not say that this comes after 11.1; the revisions of others do.
fn place_stable_branches(entries: &mut [Entry]) {
    let known = |e: &Entry| {
        Some((
            e.point.place.release.filter(|r| r.minor.is_some())?,
            e.revision()?.clone(),
        ))
    };
    let known: Vec<(Release, Revision)> = entries.iter().filter_map(known).collect();
    for entry in entries {
        let Some(own) = entry.revision().cloned() else {
            continue;
        };
        let release = entry.point.place.release.as_mut();
        if let Some(release) = release.filter(|r| r.stable && r.minor.is_none()) {
            let earlier = known
                .iter()
                .filter(|(k, at)| k.major == release.major && *at <= own);
            release.minor = earlier.filter_map(|(k, _)| k.minor).max();
        }
    }
}

#[cfg(test)]
mod tests;
