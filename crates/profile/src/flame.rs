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
    let options = inferno::differential::Options { normalize: true, ..Default::default() };
    let [before, after] = [before, after].map(|profile| profile.lines().join("\n"));
    let mut lines = Vec::new();
    inferno::differential::from_readers(options, before.as_bytes(), after.as_bytes(), &mut lines)?;
    let lines: Vec<String> = String::from_utf8_lossy(&lines).lines().map(String::from).collect();
    draw(&lines, picture)
}

fn draw(lines: &[String], picture: Picture) -> io::Result<Vec<u8>> {
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut picture.options(), lines.iter().map(String::as_str), &mut svg)?;
    Ok(svg)
}
