//! Files that could not be used.

use super::paged::{Paged, sections};
use super::{Problem, Site};
use crate::prelude::*;

impl Site {
    /// Files that could not be used, by their folder.
    pub(super) fn broken(&self) -> Paged {
        let mut first = Document::default();
        first.answer(format!(
            "{} cannot be used, or only in part.",
            counted(self.problems.len(), "file")
        ));
        let mut folders: BTreeMap<&str, Vec<&Problem>> = BTreeMap::new();
        for problem in &self.problems {
            let folder = problem
                .path
                .rsplit_once('/')
                .map_or(".", |(folder, _)| folder);
            folders.entry(folder).or_default().push(problem);
        }
        let table = |problems: &[&Problem]| -> Table {
            Table::of(problems.iter().copied())
                .column("file", "", |p| {
                    p.path.rsplit('/').next().unwrap_or_default()
                })
                .column("reason", "", |p| p.reason.as_str())
                .into()
        };
        let sections = folders
            .into_iter()
            .flat_map(|(folder, problems)| sections(folder, &problems, table));
        Paged {
            title: "Files that cannot be used".into(),
            first,
            sections: sections.collect(),
        }
    }
}
