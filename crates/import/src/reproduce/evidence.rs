//! The medians that figures are held against: those committed to an archive, and those recomputed from its logs where none are.

use crate::netbenches::Archive;
use linerate_stats::ministat::{Dataset, Era, Summary};
use std::collections::BTreeMap;

/// Medians of runs by the path of their file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence(BTreeMap<String, Found>);

/// The medians of a set of runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// The medians in frames/s.
    pub values: Vec<f64>,
    /// Whether they were recomputed from logs, because no file of medians is there.
    pub recomputed: bool,
}

/// A set of medians with its size.
#[derive(Debug, Clone)]
pub struct Medians {
    /// How many there are.
    pub n: usize,
    set: Dataset,
}

impl Medians {
    /// ministat's row of them.
    pub fn summary(&self, era: Era) -> Summary {
        self.set.summary(era)
    }
}

impl Evidence {
    /// Adds what an archive holds. What is there already stays: the first archive decides.
    pub fn add(&mut self, archive: &Archive) {
        for directory in &archive.directories {
            for set in &directory.sets {
                let found = match &set.published {
                    Some(published) => (
                        published.file.clone(),
                        Found { values: published.values.clone(), recomputed: false },
                    ),
                    None => {
                        let values = set.runs.iter().filter_map(|r| r.median_pps).collect();
                        let file = match directory.path.as_str() {
                            "." => format!("{}.pps", set.name),
                            path => format!("{path}/{}.pps", set.name),
                        };
                        (file, Found { values, recomputed: true })
                    }
                };
                self.0.entry(found.0).or_insert(found.1);
            }
        }
    }

    /// The medians of a file.
    pub fn get(&self, source: &str) -> Option<&Found> {
        self.0.get(source)
    }

    /// The same, for arithmetic.
    pub fn set(&self, source: &str) -> Option<Medians> {
        let found = self.get(source)?;
        Some(Medians { n: found.values.len(), set: Dataset::new(source, found.values.clone()) })
    }

    /// The other files of the same machine and card, with their medians.
    pub fn siblings<'a>(&'a self, source: &'a str) -> impl Iterator<Item = (&'a str, Medians)> {
        let hardware = |path: &str| path.split('/').take(2).map(String::from).collect::<Vec<_>>();
        let wanted = hardware(source);
        let others = self.0.keys().filter(move |path| *path != source && hardware(path) == wanted);
        others.filter_map(|path| Some((path.as_str(), self.set(path)?)))
    }

    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
