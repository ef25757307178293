//! Possible causes of a change of level: facts that differ between the last point before and the first after.

use super::Point;
use serde::Serialize;

/// Facts that say when and how something was measured, and that differ always.
const OF_EACH_RUN: [&str; 15] = [
    "built",
    "command",
    "config",
    "end",
    "host",
    "image",
    "interface",
    "pktgen",
    "start",
    "uname",
    "wait_s",
    "count",
    "revision",
    "destination_mac",
    "source_mac",
];

/// Something that changed together with the level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// The fact: `kernel`, `setting net.core.bpf_jit_harden`, `source`.
    pub what: String,
    /// Value at the last point before.
    pub before: String,
    /// Value at the first point after.
    pub after: String,
    /// Number of its other changes in the time line: a fact that changes with every point explains little.
    pub elsewhere: usize,
    /// Number of commits between, if known.
    pub commits: Option<u32>,
}

/// Whether a fact may explain a change at all.
fn telling(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let of_a_command = name.starts_with("sender") || name.starts_with("receiver.");
    let listed = OF_EACH_RUN.contains(&name) || (of_a_command && OF_EACH_RUN.contains(&last));
    !listed
}

/// Facts that differ between points `at - 1` and `at`, most likely cause first: those with the fewest other changes, and among
/// equals settings before versions.
pub fn causes(points: &[Point], at: usize) -> Vec<Cause> {
    let Some((before, after)) = at
        .checked_sub(1)
        .and_then(|b| Some((points.get(b)?, points.get(at)?)))
    else {
        return Vec::new();
    };
    let differs = |name: &str| {
        let (old, new) = (before.facts.get(name)?, after.facts.get(name)?);
        (old != new).then(|| Cause {
            what: name.into(),
            before: old.clone(),
            after: new.clone(),
            elsewhere: transitions(points, name).saturating_sub(1),
            commits: None,
        })
    };
    let mut causes: Vec<Cause> = before
        .facts
        .keys()
        .filter(|n| telling(n))
        .filter_map(|n| differs(n))
        .collect();
    causes.extend(source(points, before, after));
    let rank = |c: &Cause| (c.elsewhere, !c.what.starts_with("setting"), c.what.clone());
    causes.sort_by_key(rank);
    causes
}

/// The range of source revisions.
fn source(points: &[Point], before: &Point, after: &Point) -> Option<Cause> {
    let (old, new) = (
        before.place.revision.as_ref()?,
        after.place.revision.as_ref()?,
    );
    let moves = points
        .windows(2)
        .filter(|w| w[0].place.revision != w[1].place.revision)
        .count();
    (old != new).then(|| Cause {
        what: "source".into(),
        before: old.to_string(),
        after: new.to_string(),
        elsewhere: moves.saturating_sub(1),
        commits: new.since(old),
    })
}

/// How often a fact differs from its last known value.
fn transitions(points: &[Point], name: &str) -> usize {
    let known: Vec<&String> = points.iter().filter_map(|p| p.facts.get(name)).collect();
    known.windows(2).filter(|w| w[0] != w[1]).count()
}

/// The parts of the set-up (generator's and receiver's options) that are not the same at all points: `sender.flows`.
pub fn mixed_setup(points: &[Point]) -> Vec<String> {
    let mut names: Vec<&String> = points.iter().flat_map(|p| p.facts.keys()).collect();
    names.sort();
    names.dedup();
    let of_the_setup = |name: &str| name.starts_with("sender") || name.starts_with("receiver");
    let mixed = names
        .into_iter()
        .filter(|n| of_the_setup(n) && telling(n) && transitions(points, n) > 0);
    mixed.cloned().collect()
}
