//! Words and figures that several pages say of campaigns.

use super::{Entry, FRONT};
use crate::pages::numbers::some as some_of;
use crate::pages::sets::Unit;
use crate::prelude::*;
use linerate_measure::history::revision::Release;

/// `FreeBSD 11.1` of the label of an archive's folder, or of uname's words.
pub fn release(text: &str) -> Option<String> {
    let Release { major, minor, .. } = Release::of_label(text)?;
    Some(minor.map_or(format!("FreeBSD {major}"), |minor| {
        format!("FreeBSD {major}.{minor}")
    }))
}

/// From the oldest to the newest version of FreeBSD, or the few systems that there are.
pub fn systems<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    let mut systems: BTreeSet<&str> = entries
        .into_iter()
        .map(|entry| entry.system.as_str())
        .collect();
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
        _ => some_of(systems.into_iter().map(String::from), 3, ", "),
    }
}

/// A name, or a word for one that is not known.
pub fn shown(name: &str) -> &str {
    if name.is_empty() { "not named" } else { name }
}

pub fn listed(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let names: BTreeSet<String> = names
        .into_iter()
        .map(|n| n.as_ref().to_string())
        .filter(|n| !n.is_empty())
        .collect();
    some_of(names, 12, ", ")
}

/// From the first to the last day of campaigns, and how many of them say when they began.
pub fn span<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Option<String> {
    let days: Vec<Option<&str>> = entries
        .into_iter()
        .map(|entry| entry.started.get(..10))
        .collect();
    let known: BTreeSet<&str> = days.iter().copied().flatten().collect();
    let (first, last) = (known.first()?, known.last()?);
    let span = if first == last {
        format!("on {first}")
    } else {
        format!("from {first} to {last}")
    };
    let dated = days.iter().flatten().count();
    Some(match days.len() {
        all if all == dated => span,
        all => format!(
            "{span} ({} of {} campaigns say when)",
            grouped(dated as u64),
            grouped(all as u64)
        ),
    })
}

/// The least and the greatest median in frames/s, in words.
pub fn range<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Option<String> {
    let [low, high] = extremes(entries)?;
    Some(format!(
        "from {} to {}",
        rate_with_unit(low),
        rate_with_unit(high)
    ))
}

pub fn extremes<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Option<[f64; 2]> {
    let sets = entries
        .into_iter()
        .flat_map(|entry| &entry.sets)
        .filter(|set| set.counts() && set.unit == Unit::Frames);
    ends(sets.map(|set| set.rate.median).filter(|rate| *rate > 0.0))
}

pub fn sets_of(entries: &[&Entry]) -> usize {
    entries.iter().map(|entry| entry.sets.len()).sum()
}

pub fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

pub fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// A file of the site, seen from a folder of it.
pub fn up(file: &str) -> String {
    format!("../{file}")
}

pub fn home() -> Vec<Link> {
    vec![Link::new("All results", up(FRONT))]
}

pub fn place_of(place: &[&str; 3]) -> String {
    let known = place
        .iter()
        .copied()
        .filter(|name| !name.is_empty())
        .joined(", ");
    shown(&known).to_string()
}

/// `harvest_mask` and `harvest.mask` are one topic.
pub fn words_of(topic: &str) -> String {
    topic.replace(['_', '-'], ".")
}
