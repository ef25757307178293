//! Which file of medians belongs to which set of logs. Names decide where they can; where the archive's author has renamed
//! files, the numbers do.

use super::agreement;
use super::method::Medians;
use super::{Published, Rule, facts, folder};
use std::collections::BTreeMap;

/// A set of logs that looks for its medians.
#[derive(Debug, Clone)]
pub struct Seeker<'a> {
    /// Folder of the logs.
    pub folder: &'a str,
    /// Folder of the results that they are part of.
    pub group: &'a str,
    /// Name as in `bench.<name>.info`.
    pub name: &'a str,
    /// The `<x>` of a folder `RAW.<x>`.
    pub suffix: Option<&'a str>,
    /// Whether these are profiling runs.
    pub profiling: bool,
    /// Values of its `.info`.
    pub facts: &'a BTreeMap<String, String>,
    /// Source revision that the script of 2015 cuts out of the image's name.
    pub image_revision: Option<&'a str>,
    /// Lists of runs that the script may have taken, the likeliest first.
    pub candidates: Vec<Vec<Option<Medians>>>,
}

/// The medians found for a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Index of the file of medians.
    pub file: usize,
    /// Which of the candidates agrees, by which rule; `None` where none does.
    pub agrees: Option<(usize, Rule)>,
    /// Whether the match needed more than the file's name.
    pub by_value: bool,
}

/// Finds each set's medians. A file belongs to one set at most.
pub fn find(seekers: &[Seeker<'_>], files: &[Published]) -> Vec<Option<Found>> {
    let mut found: Vec<Option<Found>> = vec![None; seekers.len()];
    let mut taken = vec![false; files.len()];
    let index: BTreeMap<&str, usize> = files.iter().enumerate().map(|(i, f)| (f.file.as_str(), i)).collect();
    // A plain RAW folder has the first claim to a plain name.
    let mut order: Vec<usize> = (0..seekers.len()).collect();
    order.sort_by_key(|i| (seekers[*i].profiling, seekers[*i].suffix.is_some()));
    for i in order {
        let named: Vec<usize> = names(&seekers[i])
            .iter()
            .filter_map(|name| index.get(name.as_str()).copied())
            .filter(|f| !taken[*f])
            .collect();
        let agreeing = named.iter().find_map(|f| Some((*f, agrees(&seekers[i], &files[*f])?)));
        let best = agreeing.map(|(file, by)| Found { file, agrees: Some(by), by_value: false });
        let first = named.first().map(|f| Found { file: *f, agrees: None, by_value: false });
        found[i] = best.or(first);
        if let Some(Found { file, .. }) = found[i] {
            taken[file] = true;
        }
    }
    by_value(seekers, files, &mut found, &mut taken);
    found
}

/// Medians under another name are those of a set if they are exactly its: seven digits of several runs do not agree by chance.
fn by_value(seekers: &[Seeker<'_>], files: &[Published], found: &mut [Option<Found>], taken: &mut [bool]) {
    for (seeker, found) in seekers.iter().zip(found).filter(|(s, f)| f.is_none() && !s.profiling) {
        let free = files.iter().enumerate().filter(|(i, f)| !taken[*i] && f.values.len() > 1);
        let mut matches = free.filter_map(|(file, published)| {
            Some(Found { file, agrees: Some(agrees(seeker, published)?), by_value: true })
        });
        if let (Some(only), None) = (matches.next(), matches.next()) {
            taken[only.file] = true;
            *found = Some(only);
        }
    }
}

fn agrees(seeker: &Seeker<'_>, published: &Published) -> Option<(usize, Rule)> {
    let rules = seeker.candidates.iter().map(|runs| agreement::rule(runs, &published.values));
    rules.enumerate().find_map(|(i, rule)| Some((i, rule?)))
}

/// Paths that the medians may have, the likeliest first.
fn names(seeker: &Seeker<'_>) -> Vec<String> {
    let mut names = Vec::new();
    // `bench.info` becomes `bench.pps`.
    let name = if seeker.name.is_empty() { "bench" } else { seeker.name };
    if let Some(suffix) = seeker.suffix {
        names.push(format!("{name}.{suffix}.pps"));
    }
    names.push(format!("{name}.pps"));
    names.extend(["pps.", "none."].map(|prefix| format!("{prefix}{name}")));
    names.push(name.to_string());
    if let Some(config) = seeker.facts.get(facts::CONFIG) {
        // The scripts of 2015 named the file by values of .info: `<revision>.<config>`, `none.<config>`.
        names.extend(seeker.image_revision.map(|revision| format!("{revision}.{config}")));
        names.extend(["none.", "pps."].map(|prefix| format!("{prefix}{config}")));
    }
    let mut folders = vec![seeker.folder];
    if !seeker.profiling && seeker.group != seeker.folder {
        folders.push(seeker.group);
    }
    let path = |folder: &str, name: &str| match folder {
        "." => name.to_string(),
        _ => format!("{folder}/{name}"),
    };
    folders.iter().flat_map(|folder| names.iter().map(|name| path(folder, name))).collect()
}

/// The set's name that a file of medians has without logs: `a.pps`, `pps.a`, `none.a`, `a`.
pub fn stem(file: &str) -> &str {
    let name = file.strip_prefix(folder(file)).and_then(|f| f.strip_prefix('/')).unwrap_or(file);
    if let Some(stem) = name.strip_suffix(".pps") {
        return stem;
    }
    name.strip_prefix("pps.").or_else(|| name.strip_prefix("none.")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(figures: &[f64]) -> Vec<Option<Medians>> {
        figures.iter().map(|f| Some(Medians { mean: *f, upper: *f + 0.5 })).collect()
    }

    fn file(path: &str, values: &[f64]) -> Published {
        Published { file: path.into(), values: values.to_vec(), ..Published::default() }
    }

    fn seeker<'a>(
        folder: &'a str,
        name: &'a str,
        facts: &'a BTreeMap<String, String>,
        figures: &[f64],
    ) -> Seeker<'a> {
        Seeker {
            folder,
            group: "l",
            name,
            suffix: super::super::runs::raw_suffix(folder),
            profiling: folder.ends_with("PMC"),
            facts,
            image_revision: None,
            candidates: vec![runs(figures)],
        }
    }

    fn paths<'a>(found: &[Option<Found>], files: &'a [Published]) -> Vec<Option<&'a str>> {
        found.iter().map(|f| f.map(|f| files[f.file].file.as_str())).collect()
    }

    #[test]
    fn names_of_all_years() {
        let facts = [(facts::CONFIG.to_string(), "nobind".to_string())].into();
        let none = BTreeMap::new();
        let files = [
            file("l/a.pps", &[1.0]),
            file("l/a.1rx.pps", &[2.0]),
            file("l/bench.pps", &[3.0]),
            file("l/none.nobind", &[4.0]),
            file("l/285702.x", &[5.0]),
            file("l/pps.2", &[6.0]),
        ];
        let mut early = seeker("l", "1.2", &facts, &[4.0]);
        early.image_revision = Some("285702");
        let seekers = [
            seeker("l/RAW.1rx", "a", &none, &[2.0]),
            seeker("l/RAW", "a", &none, &[1.0]),
            seeker("l/RAW", "", &none, &[3.0]),
            early,
            seeker("l", "285702.x", &none, &[5.5]),
            seeker("l", "2", &none, &[6.0]),
            seeker("l/PMC", "a", &none, &[1.0]),
        ];
        let found = find(&seekers, &files);
        let expected =
            ["l/a.1rx.pps", "l/a.pps", "l/bench.pps", "l/none.nobind", "l/285702.x", "l/pps.2"].map(Some);
        assert_eq!(paths(&found, &files), [&expected[..], &[None]].concat());
        assert_eq!(found[4].unwrap().agrees, None);
    }

    #[test]
    fn renamed_medians_are_found_by_their_numbers_if_only_one_file_has_them() {
        let none = BTreeMap::new();
        let files = [
            file("l/r368766.inet4.pps", &[1.0, 2.0]),
            file("l/x.pps", &[3.0, 4.0]),
            file("l/y.pps", &[3.0, 4.0]),
        ];
        let seekers = [
            seeker("l/RAW", "inet4", &none, &[1.0, 2.0]),
            seeker("l/RAW", "inet6", &none, &[3.0, 4.0]),
            seeker("l/RAW", "b", &none, &[9.0]),
        ];
        let found = find(&seekers, &files);
        assert_eq!(paths(&found, &files), [Some("l/r368766.inet4.pps"), None, None]);
        assert!(found[0].unwrap().by_value);
    }

    #[test]
    fn stems() {
        let found = ["l/a.b.pps", "pps.2", "none.x", "285702.fastforwarding"].map(stem);
        assert_eq!(found, ["a.b", "2", "x", "285702.fastforwarding"]);
    }
}
