//! The points of a site's pictures, and the figures that the archive prints, held against each other.

use super::files;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A point of a picture: series, place on the axis, and its figures in frames/s or Mbit/s.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) series: String,
    pub(super) at: String,
    pub(super) median: f64,
    pub(super) runs: Vec<f64>,
}

/// The data behind the pictures of a page.
pub(super) fn pictures(page: &str) -> Vec<Vec<Point>> {
    let links = page.split("href=\"data:text/csv;charset=utf-8,").skip(1);
    let data = links.map(|link| decoded(link.split('"').next().unwrap()));
    data.filter(|csv| csv.starts_with("series,"))
        .map(|csv| points(&csv))
        .collect()
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut plain, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if bytes[at] == b'%' {
            plain.push(u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap());
            at += 3;
        } else {
            plain.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(plain).unwrap()
}

/// Fields of a line of CSV.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

fn points(csv: &str) -> Vec<Point> {
    let mut lines = csv.lines();
    let heads = fields(lines.next().unwrap());
    let scale = match heads[2].rsplit(' ').next().unwrap() {
        "Mpps" => 6,
        "kpps" => 3,
        _ => 0,
    };
    let point = |line: &str| {
        let fields = fields(line);
        let number = |text: &str| format!("{text}e{scale}").parse::<f64>().unwrap();
        Point {
            series: fields[0].clone(),
            at: fields[1].clone(),
            median: number(&fields[2]),
            runs: fields[5].split_whitespace().map(number).collect(),
        }
    };
    lines.map(point).collect()
}

/// A number as the archive prints it: eight significant digits.
fn printed(value: f64) -> f64 {
    format!("{value:.7e}").parse().unwrap()
}

/// The words of a name, numbers by their values, IP versions by one name.
fn words(name: &str) -> BTreeSet<String> {
    let parts = name
        .split(|c: char| !c.is_alphanumeric())
        .filter(|part| !part.is_empty() && *part != "default");
    let part = |part: &str| {
        let end = part
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(part.len());
        let (digits, unit) = part.split_at(end);
        let scale = match unit {
            "K" => 1e3,
            "M" => 1e6,
            "KiB" => 1024.0,
            "MiB" => 1_048_576.0,
            "" | "q" => 1.0,
            _ => return part.replace("statefull", "stateful").replace("inet", "IPv"),
        };
        match digits.parse::<f64>() {
            Ok(number) => (number * scale).to_string(),
            Err(_) => part.replace("statefull", "stateful").replace("inet", "IPv"),
        }
    };
    parts.map(part).collect()
}

/// A row of a published table.
#[derive(Debug)]
struct Row {
    key: String,
    figures: [f64; 3],
}

/// Rows of a table with a key, a median, a least and a greatest figure; a key that is left out is that of the row before.
fn table(path: &Path) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
    let mut group = String::new();
    let mut rows = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#') && !line.trim().is_empty())
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(figures) = words.len().checked_sub(3).map(|at| &words[at..]) else {
            continue;
        };
        let Some(figures) = figures
            .iter()
            .map(|word| word.parse().ok())
            .collect::<Option<Vec<f64>>>()
        else {
            continue;
        };
        let keys = &words[..words.len() - 3];
        let key = match keys {
            [first, second] if !first.starts_with('"') => {
                group = first.to_string();
                format!("{first} {second}")
            }
            [only] if !group.is_empty() => format!("{group} {only}"),
            all => all.join(" ").replace('"', ""),
        };
        rows.push(Row {
            key,
            figures: [figures[0], figures[1], figures[2]],
        });
    }
    rows
}

/// Published figures of an archive, held against the pictures.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Compared {
    /// Pictures of folders that have a published table.
    pub(super) pictures: usize,
    /// Points whose median, least and greatest run are the published ones.
    pub(super) agree: usize,
    /// Rows of tables whose runs are not in the archive, so that no picture has them.
    pub(super) without_runs: usize,
    /// Points that differ: folder, row, what was published, what the runs give.
    pub(super) differ: Vec<String>,
}

impl Compared {
    /// Holds every table `gnuplot.data` against the picture of its folder.
    pub(super) fn tables(archive: &str, pages: &BTreeMap<PathBuf, String>) -> Compared {
        let mut found = Compared::default();
        let tables = files(Path::new(archive))
            .into_keys()
            .filter(|path| path.ends_with("gnuplot.data"));
        for file in tables {
            let folder = file.parent().unwrap().to_str().unwrap();
            let rows = table(&Path::new(archive).join(&file));
            let Some(page) = page_of(pages, folder) else {
                found.without_runs += rows.len();
                continue;
            };
            let points = drawn(page);
            found.pictures += usize::from(!points.is_empty());
            for Row { key, figures } in rows {
                found.figures(folder, &key, figures, page, &points);
            }
        }
        found
    }

    fn figures(
        &mut self,
        folder: &str,
        key: &str,
        figures: [f64; 3],
        page: &str,
        points: &[Point],
    ) {
        let wanted = words(key);
        let named = |point: &&Point| {
            let own = words(&format!(
                "{} {}",
                point.series.replace("median", "").replace("others", ""),
                point.at
            ));
            // Where all sets are of one IP version, the picture does not name it.
            let version = |word: &&String| !word.starts_with("IPv");
            let unnamed = !wanted.contains("IPv6") || !page.contains("IPv4");
            own == wanted || (unnamed && own == wanted.iter().filter(version).cloned().collect())
        };
        let same = |point: &&Point| {
            [&point.series, &point.at]
                .into_iter()
                .any(|name| *name == key)
        };
        let Some(point) = points.iter().find(same).or(points.iter().find(named)) else {
            self.without_runs += 1;
            return;
        };
        let end = |end: fn(f64, f64) -> f64| point.runs.iter().copied().reduce(end).unwrap_or(0.0);
        let of_runs = [point.median, end(f64::min), end(f64::max)].map(printed);
        if of_runs == figures {
            self.agree += 1;
        } else {
            self.differ.push(format!(
                "{folder}: {key}: published {figures:?}, the runs give {of_runs:?}"
            ));
        }
    }

    /// Holds every row of ministat's blocks in README.md against the picture of the folder that it names.
    pub(super) fn readmes(archive: &str, pages: &BTreeMap<PathBuf, String>) -> Compared {
        let mut found = Compared::default();
        for file in files(Path::new(archive))
            .into_keys()
            .filter(|path| path.ends_with("README.md"))
        {
            let text = fs::read_to_string(Path::new(archive).join(&file)).unwrap();
            let mut names: BTreeMap<&str, &str> = BTreeMap::new();
            for line in text.lines() {
                let words: Vec<&str> = line.split_whitespace().collect();
                match words[..] {
                    [mark, name] if mark.len() == 1 && name.ends_with(".pps") => {
                        names.insert(mark, name);
                    }
                    [mark, n, min, max, median, _, _] if n.parse::<u32>().is_ok() => {
                        let Some(name) = names.get(mark) else {
                            continue;
                        };
                        let path = resolved(file.parent().unwrap(), name);
                        let (folder, set) = path.rsplit_once('/').unwrap();
                        let figures = [median, min, max].map(|figure| figure.parse().unwrap());
                        match page_of(pages, folder) {
                            Some(page) => {
                                let key = set.trim_end_matches(".pps");
                                found.figures(folder, key, figures, page, &drawn(page));
                            }
                            None => found.without_runs += 1,
                        }
                    }
                    _ => {}
                }
            }
        }
        found
    }
}

/// The page of a folder of results.
pub(super) fn page_of<'a>(
    pages: &'a BTreeMap<PathBuf, String>,
    folder: &str,
) -> Option<&'a String> {
    let source = format!("netbenches, {folder}<");
    pages.values().find(|page| page.contains(&source))
}

/// The measured points of a page's pictures.
pub(super) fn drawn(page: &str) -> Vec<Point> {
    let all = pictures(page).into_iter().flatten();
    all.filter(|point| !point.series.starts_with("line rate"))
        .collect()
}

/// A path with `..` carried out.
fn resolved(folder: &Path, name: &str) -> String {
    let mut parts: Vec<&str> = folder.to_str().unwrap().split('/').collect();
    for part in name.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}
