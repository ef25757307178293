//! `linerate site`: pages over archives and campaigns, and the papers' pictures, held against the published tables.

mod folders;
mod paper;
mod points;
mod results;

use crate::common::linerate;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");

/// A site, and its counts.
fn made(archives: &[&str], site: &str) -> Value {
    let arguments = ["site", "--json", "-o", site]
        .into_iter()
        .chain(archives.iter().copied());
    serde_json::from_str(&linerate(arguments).run().ok().stdout).unwrap()
}

/// All files of a folder by their paths below it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => open.push(entry.path()),
                false => {
                    let path = entry.path().strip_prefix(folder).unwrap().to_path_buf();
                    all.insert(path, fs::read(entry.path()).unwrap());
                }
            }
        }
    }
    all
}

/// Every link of every page leads to a page of the site; returns the pages.
#[track_caller]
fn linked(site: &Path) -> BTreeMap<PathBuf, String> {
    let pages: BTreeMap<PathBuf, String> = files(site)
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|end| end == "html"))
        .map(|(path, bytes)| (path, String::from_utf8(bytes).unwrap()))
        .collect();
    let mut reached: BTreeSet<PathBuf> = [PathBuf::from("index.html")].into();
    let mut open = vec![PathBuf::from("index.html")];
    while let Some(page) = open.pop() {
        let text = pages
            .get(&page)
            .unwrap_or_else(|| panic!("no {}", page.display()));
        for link in text
            .split("href=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
        {
            if link.starts_with("data:") || link.starts_with('#') {
                continue;
            }
            let folder = page.parent().unwrap();
            let to = match link.strip_prefix("../") {
                Some(rest) => folder.parent().unwrap().join(rest),
                None => folder.join(link),
            };
            if reached.insert(to.clone()) {
                open.push(to);
            }
        }
    }
    let all: BTreeSet<PathBuf> = pages.keys().cloned().collect();
    assert_eq!(reached, all, "pages without a link");
    pages
}
