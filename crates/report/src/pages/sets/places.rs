//! Where sets stand in a picture, by the numbers and words of their names.

use super::{FEWEST, Set, join};
use crate::prelude::*;
use linerate_measure::history::revision::Revision;

/// Fewer revisions than these are compared with each other, and make no line.
const MANY_REVISIONS: usize = 5;

/// Where a set stands on the axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Place {
    Number(f64),
    Name(String),
}

/// The quantity along the axis, and the series and place of each set.
#[derive(Debug, PartialEq)]
pub(super) struct Places {
    pub(super) label: String,
    pub(super) of: Vec<(String, Place)>,
}

pub(super) fn places(topic: &str, sets: &[&Set]) -> Option<Places> {
    if sets.is_empty() {
        return None;
    }
    let families: BTreeSet<&str> = sets.iter().map(|set| set.family.as_str()).collect();
    let family = |set: &Set| {
        if families.len() > 1 {
            set.family.clone()
        } else {
            String::new()
        }
    };
    let found = revisions(sets, &family).or_else(|| numbers(topic, sets, &family));
    found.or_else(|| {
        let of = sets
            .iter()
            .map(|set| (family(set), Place::Name(set.variant.clone())))
            .collect();
        Some(Places {
            label: quantity(topic).unwrap_or("set").into(),
            of,
        })
    })
}

/// Sets that are named by the revision of the source: a line over many revisions, bars side by side for a few.
fn revisions(sets: &[&Set], family: &dyn Fn(&Set) -> String) -> Option<Places> {
    let parsed = |set: &&Set| {
        let words: Vec<&str> = set.variant.split('.').collect();
        let at = words
            .iter()
            .position(|word| Revision::parse(word).is_some())?;
        let rest: Vec<&str> = words
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != at)
            .map(|(_, w)| *w)
            .collect();
        let (revision, patch) = Revision::parse(words[at])?;
        Some((
            revision,
            words[at].to_string(),
            patch.to_string(),
            rest.join("."),
            family(set),
        ))
    };
    let parsed: Vec<_> = sets.iter().map(parsed).collect::<Option<_>>()?;
    let revisions: BTreeSet<&Revision> = parsed.iter().map(|(revision, ..)| revision).collect();
    let one_counter = parsed
        .iter()
        .all(|(revision, ..)| revision.counter == parsed[0].0.counter);
    if revisions.len() >= MANY_REVISIONS && one_counter {
        let of = parsed
            .into_iter()
            .map(|(revision, _, patch, rest, family)| {
                (
                    join([&rest, &patch, &family]),
                    Place::Number(f64::from(revision.number)),
                )
            });
        return Some(Places {
            label: "source revision".into(),
            of: of.collect(),
        });
    }
    let rests: BTreeSet<&str> = parsed
        .iter()
        .map(|(_, _, _, rest, _)| rest.as_str())
        .collect();
    (rests.len() > 1 && parsed.len() > rests.len()).then(|| {
        let of = parsed.iter().map(|(_, word, _, rest, family)| {
            (
                join([word, family]),
                Place::Name(if rest.is_empty() {
                    "-".into()
                } else {
                    rest.clone()
                }),
            )
        });
        Places {
            label: "set".into(),
            of: of.collect(),
        }
    })
}

/// Sets that differ by a number in their names, at least [`FEWEST`] of each series.
fn numbers(topic: &str, sets: &[&Set], family: &dyn Fn(&Set) -> String) -> Option<Places> {
    // The bits of a mask are no quantity.
    if topic.contains("mask") {
        return None;
    }
    let of: Vec<(String, f64)> = sets
        .iter()
        .map(|set| {
            let (stem, number) = numbered(&set.variant)?;
            Some((join([&stem, &family(set)]), number))
        })
        .collect::<Option<_>>()?;
    let mut series: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    of.iter()
        .for_each(|(name, number)| series.entry(name).or_default().push(*number));
    let long = |numbers: &mut Vec<f64>| {
        numbers.sort_by(f64::total_cmp);
        let all = numbers.len();
        numbers.dedup();
        all >= FEWEST && numbers.len() == all
    };
    if !series.values_mut().all(long) {
        return None;
    }
    let lengths = sets
        .iter()
        .zip(&of)
        .all(|(set, (_, number))| set.frame.is_some_and(|f| f64::from(f) == *number));
    let label = if lengths {
        "frame length with FCS, B"
    } else {
        quantity(topic).unwrap_or(topic)
    };
    let label = if label.is_empty() {
        "number in the set's name"
    } else {
        label
    };
    let of = of
        .into_iter()
        .map(|(name, number)| (name, Place::Number(number)))
        .collect();
    Some(Places {
        label: label.into(),
        of,
    })
}

/// The quantity that a topic varies, by words that the archive's topics have.
fn quantity(topic: &str) -> Option<&'static str> {
    const WORDS: [(&[&str], &str); 6] = [
        (&["queue", "nxxq", "channels", "rxq"], "receive queues"),
        (&["rules"], "rules"),
        (&["hashsize"], "size of the hash table, B"),
        (&["table"], "table entries"),
        (&["statefull", "stateful", "states"], "states"),
        (
            &["rfc2544", "frame", "packet-size", "packetsize"],
            "frame length with FCS, B",
        ),
    ];
    let topic = topic.to_lowercase();
    WORDS
        .iter()
        .find(|(words, _)| words.iter().any(|word| topic.contains(word)))
        .map(|(_, what)| *what)
}

/// `ipfw-stateful.1M` is 1,000,000 of `ipfw-stateful`: the last number that stands by itself, and the name without it.
pub fn numbered(name: &str) -> Option<(String, f64)> {
    const UNITS: [(&str, f64); 8] = [
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("K", 1e3),
        ("k", 1e3),
        ("M", 1e6),
        ("q", 1.0),
        ("", 1.0),
    ];
    let mut name = name.to_string();
    for default in ["-default", "_default", ".default"] {
        name = name.replace(default, "");
    }
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
    let bytes = name.as_bytes();
    let mut found = None;
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes[at..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        if digits == 0 {
            at += 1;
            continue;
        }
        let (before, rest) = (&name[..at], &name[at + digits..]);
        let alone = before.strip_suffix('q').unwrap_or(before);
        let stands = !alone.ends_with(|c: char| c.is_alphanumeric());
        let unit = UNITS
            .iter()
            .find(|(unit, _)| rest.strip_prefix(unit).is_some_and(ends));
        if let (true, Some((unit, scale)), Ok(number)) =
            (stands, unit, name[at..at + digits].parse::<f64>())
        {
            found = Some((alone.len(), at + digits + unit.len(), number * scale));
        }
        at += digits;
    }
    let (start, end, number) = found?;
    let marks = ['-', '_', '.', ' ', ','];
    let parts = [
        name[..start].trim_end_matches(marks),
        name[end..].trim_start_matches(marks),
    ];
    Some((join(parts), number))
}
