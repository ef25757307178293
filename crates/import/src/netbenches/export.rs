//! A set as one JSON object, for `linerate import netbenches --json`. docs/netbenches.md lists the fields.

use super::layout::Place;
use super::{Equilibrium, ImportedSlot, ResultDirectory, Set, folder};
use serde::Serialize;

#[derive(Serialize)]
struct Line<'a> {
    dir: &'a str,
    /// `forwarding`, `profiling` or `equilibrium`.
    kind: &'a str,
    #[serde(flatten)]
    place: &'a Place,
    #[serde(flatten)]
    of: &'a Set,
    #[serde(skip_serializing_if = "Option::is_none")]
    equilibrium: Option<&'a Equilibrium>,
}

/// One line for each set of a folder, and for each search for an equilibrium: JSON without a newline.
///
/// # Errors
/// None that is known: numbers and strings always make JSON.
pub fn lines(directory: &ResultDirectory) -> serde_json::Result<Vec<String>> {
    let place = &directory.place;
    let sets = directory.sets.iter().map(|of| {
        let kind = if of.slot.profiling { "profiling" } else { "forwarding" };
        serde_json::to_string(&Line { dir: of.directory(), kind, place, of, equilibrium: None })
    });
    let equilibria = directory.equilibria.iter().map(|found| {
        let (set, facts, problems) = (found.name.clone(), found.facts.clone(), found.problems.clone());
        let of = &Set { slot: ImportedSlot { set, facts, problems, ..Default::default() }, ..Set::default() };
        let file = found.published.as_ref().map(|p| &p.file).or(found.runs.first().map(|r| &r.log));
        let dir = file.map_or(directory.path.as_str(), |file| folder(file));
        serde_json::to_string(&Line { dir, kind: "equilibrium", place, of, equilibrium: Some(found) })
    });
    sets.chain(equilibria).collect()
}
