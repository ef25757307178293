//! The medians that figures are compared with: those committed to an archive, or else those recomputed from its logs.

use crate::netbenches::Archive;
use linerate_stats::ministat::Dataset;
use std::collections::BTreeMap;

/// Medians of runs in frames/s, by the path of their file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence(BTreeMap<String, Vec<f64>>);

impl Evidence {
    /// Adds the values of an archive. Existing values stay: the first archive decides.
    pub fn add(&mut self, archive: &Archive) {
        for directory in &archive.directories {
            for set in &directory.sets {
                let (file, values) = match (&set.slot.published, directory.path.as_str()) {
                    (Some(published), _) => (published.file.clone(), published.values.clone()),
                    (None, path) => {
                        let folder = if path == "." { String::new() } else { format!("{path}/") };
                        let values = set.runs.iter().filter_map(|r| r.median_pps).collect();
                        (format!("{folder}{}.pps", set.slot.set), values)
                    }
                };
                self.0.entry(file).or_insert(values);
            }
        }
    }

    /// The medians of a file.
    pub fn get(&self, source: &str) -> Option<&[f64]> {
        self.0.get(source).map(Vec::as_slice)
    }

    /// The same, for arithmetic.
    pub fn set(&self, source: &str) -> Option<Dataset> {
        Some(Dataset::new(source, self.get(source)?.to_vec()))
    }

    /// The other files of the same machine and card, with their medians.
    pub fn siblings<'a>(&'a self, source: &'a str) -> impl Iterator<Item = (&'a str, Dataset)> {
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
