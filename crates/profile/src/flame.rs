//! Flame graphs: a picture of a profile, in which the width of a function is its share of the samples.

use crate::Profile;
use inferno::flamegraph::{self, Options};
use std::io;

/// Texts of a picture.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    pub title: String,
    pub subtitle: Option<String>,
    /// Unit of the counts, such as `samples`.
    pub unit: String,
}

/// Per cent of the width below which a function is left out of a page.
const NARROW: f64 = 0.2;

impl Picture {
    fn options(self) -> Options<'static> {
        let mut options = Options::default();
        options.title = self.title;
        options.subtitle = self.subtitle;
        options.count_name = self.unit;
        // A function has the same colour in every picture.
        options.hash = true;
        options.deterministic = true;
        options
    }
}

/// The flame graph of a profile, as SVG.
///
/// # Errors
/// The profile has no samples.
pub fn flame_graph(profile: &Profile, picture: Picture) -> io::Result<Vec<u8>> {
    draw(&profile.lines(), picture)
}

/// The flame graph of the profile `after`, as SVG: functions whose share grew are red, those whose share fell blue.
///
/// # Errors
/// The profiles have no samples.
pub fn differential(before: &Profile, after: &Profile, picture: Picture) -> io::Result<Vec<u8>> {
    draw(&compared(before, after)?, picture)
}

/// The stacks of both with their samples.
fn compared(before: &Profile, after: &Profile) -> io::Result<Vec<String>> {
    let options = inferno::differential::Options {
        normalize: true,
        ..Default::default()
    };
    let [before, after] = [before, after].map(|profile| profile.lines().join("\n"));
    let mut lines = Vec::new();
    inferno::differential::from_readers(options, before.as_bytes(), after.as_bytes(), &mut lines)?;
    Ok(String::from_utf8_lossy(&lines)
        .lines()
        .map(String::from)
        .collect())
}

/// [`flame_graph`] as a part of a page: without script, style sheet, title and narrow functions. The names of functions and their shares
/// are titles of their rectangles.
///
/// # Errors
/// The profile has no samples.
pub fn flame_graph_part(profile: &Profile) -> io::Result<String> {
    part(&profile.lines())
}

/// [`differential`] as a part of a page.
///
/// # Errors
/// The profiles have no samples.
pub fn differential_part(before: &Profile, after: &Profile) -> io::Result<String> {
    part(&compared(before, after)?)
}

fn part(lines: &[String]) -> io::Result<String> {
    let picture = Picture {
        unit: "samples".into(),
        ..Picture::default()
    };
    let mut options = picture.options();
    (options.min_width, options.no_javascript) = (NARROW, true);
    let svg = String::from_utf8_lossy(&drawn(lines, options)?).into_owned();
    let between = |from: &str, to: &str| {
        let at = svg.find(from)?;
        Some(&svg[at..at + svg[at..].find(to)?])
    };
    let [size, view] = [between("width=", " onload"), between("viewBox=", " xmlns")]
        .map(Option::unwrap_or_default);
    let frames = between("<svg id=\"frames\"", "</svg>").unwrap_or_default();
    let frames = frames.replacen(" id=\"frames\"", "", 1);
    Ok(format!("<svg {size} {view}>{frames}</svg></svg>"))
}

fn draw(lines: &[String], picture: Picture) -> io::Result<Vec<u8>> {
    drawn(lines, picture.options())
}

fn drawn(lines: &[String], mut options: Options<'_>) -> io::Result<Vec<u8>> {
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)?;
    Ok(svg)
}
