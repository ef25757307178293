//! The index of all sets, which the search reads.

use super::{Facet, Site};
use crate::pages::sets::Set;
use crate::prelude::*;

/// The index: a script, because a page that was opened from a disk may load no other data.
pub fn index<'a>(site: &'a Site) -> String {
    let names = Facet::ALL.map(|facet| {
        let names: BTreeSet<&str> = site.entries.iter().map(|entry| facet.of(entry)).collect();
        names.into_iter().collect::<Vec<&str>>()
    });
    let mut index = Index::default();
    for (at, entry) in site.entries.iter().enumerate() {
        let place = Facet::ALL
            .map(|facet| names[facet as usize].partition_point(|name| *name < facet.of(entry)));
        index
            .pages
            .push((&entry.page, place, &entry.label, &entry.system));
        let set =
            |set: &'a Set| IndexSet(&set.name, at, set.rate.median, set.rate.n, set.unit as u8);
        index.sets.extend(entry.sets.iter().map(set));
    }
    index.names = names;
    let text = serde_json::to_string(&index).expect("an index is plain data");
    // JSON is JavaScript. What ends a script or a comment of HTML stays out of it in any case.
    format!("linerateSets({});\n", text.replace('<', "\\u003c"))
}

/// Names of machines, cards and topics; campaigns with their places among these; sets with their campaigns.
#[derive(Default, Serialize)]
struct Index<'a> {
    names: [Vec<&'a str>; 3],
    pages: Vec<(&'a str, [usize; 3], &'a str, &'a str)>,
    sets: Vec<IndexSet<'a>>,
}

/// Name, place of the campaign, median, runs, and the unit of the median.
#[derive(Serialize)]
struct IndexSet<'a>(&'a str, usize, f64, usize, u8);
