//! A set as one JSON object, for `linerate import netbenches --json`. docs/netbenches.md lists the fields.

use super::layout::Place;
use super::{Equilibrium, Published, ResultDirectory, Set, Setting, folder};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Line<'a> {
    dir: &'a str,
    set: &'a str,
    /// `forwarding`, `profiling` or `equilibrium`.
    kind: &'a str,
    #[serde(flatten)]
    place: &'a Place,
    #[serde(flatten)]
    of: &'a Set,
    #[serde(skip_serializing_if = "Option::is_none")]
    equilibrium: Option<&'a Equilibrium>,
    problems: &'a [String],
}

/// One line for each set of a folder, and for each search for an equilibrium: JSON without a newline.
///
/// # Errors
/// None that is known: numbers and strings always make JSON.
pub fn lines(directory: &ResultDirectory) -> serde_json::Result<Vec<String>> {
    let place = &directory.place;
    let sets = directory.sets.iter().map(|set| {
        let kind = if set.profiling { "profiling" } else { "forwarding" };
        let (dir, problems) = (set.directory(), &set.problems);
        serde_json::to_string(&Line {
            dir,
            set: &set.name,
            kind,
            place,
            of: set,
            equilibrium: None,
            problems,
        })
    });
    let equilibria = directory.equilibria.iter().map(|found| {
        let of = Set { facts: found.facts.clone(), ..Set::default() };
        let file = found.published.as_ref().map(|p| &p.file).or(found.runs.first().map(|r| &r.log));
        serde_json::to_string(&Line {
            dir: file.map_or(directory.path.as_str(), |file| folder(file)),
            set: &found.name,
            kind: "equilibrium",
            place,
            of: &of,
            equilibrium: Some(found),
            problems: &found.problems,
        })
    });
    sets.chain(equilibria).collect()
}

/// The medians, and their file.
pub(super) fn published<S: Serializer>(of: &Option<Published>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Medians<'a> {
        published: Option<&'a [f64]>,
        published_file: Option<&'a str>,
    }
    let of = of.as_ref();
    let (published, published_file) = (of.map(|p| p.values.as_slice()), of.map(|p| p.file.as_str()));
    Medians { published, published_file }.serialize(to)
}

/// File -> `name=value`, or the rule.
pub(super) fn description<S: Serializer>(
    of: &BTreeMap<String, Vec<Setting>>,
    to: S,
) -> Result<S::Ok, S::Error> {
    let line = |setting: &Setting| match setting.name.as_str() {
        "" => setting.value.clone(),
        name => format!("{name}={}", setting.value),
    };
    to.collect_map(of.iter().map(|(file, settings)| (file, settings.iter().map(line).collect::<Vec<_>>())))
}
