//! The archive's own figure of a run, exactly as its script computes it. The sounder one is in [`super::steady`].
//!
//! Of a receiver's log of L newlines the script keeps `head -n L-10 | tail -n L-25`, then the lines that match
//! `main_thread[[:space:]]\[[[:digit:]]+\][[:space:]][1-9].*pps`, then their fourth field between single blanks; ministat takes
//! the median and prints it with `%.8g`. So the script drops 15 and 10 lines, not samples, and also each sample of 0.

use super::Rule;
use linerate_hosts::pktgen::steady::LEAST_POINTS;
use linerate_hosts::pktgen::{Line, Log, Reader};
use memchr::memmem::Finder;

/// The lines that enter the archive's figure: first and last, from 1.
///
/// FreeBSD's head refuses a count of 0 or less, and its tail takes a negative count for as many lines from the end: so a
/// log of 11 to 24 lines keeps its last 25-L of its first L-10 lines.
pub fn kept_lines(newlines: u64) -> Option<(u64, u64)> {
    let last = newlines.checked_sub(10).filter(|last| *last > 0)?;
    match newlines {
        25 => None,
        26.. => Some((16, last)),
        _ => Some(((last + 1).saturating_sub(25 - newlines).max(1), last)),
    }
}

/// A receiver's log, read once for both figures.
#[derive(Debug, Clone, Default)]
pub struct ReceiverLog {
    /// pkt-gen's log.
    pub log: Log,
    /// Lines that match the script's expression but are not samples as pkt-gen writes them, with their values after `cut` and
    /// ministat.
    odd: Vec<(u64, Field)>,
}

/// Value of a line's fourth field in ministat.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Field {
    Number(f64),
    /// Empty, or a comment.
    Skipped,
    /// Not a number: ministat ends without a result.
    Invalid,
}

/// The archive's figure of a run, by both rules, as printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Medians {
    /// Mean of the two middle points.
    pub mean: f64,
    /// The upper of the two.
    pub upper: f64,
}

impl Medians {
    /// By one rule.
    pub fn by(&self, rule: Rule) -> f64 {
        match rule {
            Rule::Mean => self.mean,
            Rule::Upper => self.upper,
        }
    }
}

impl ReceiverLog {
    /// Reads a whole log.
    pub fn read(bytes: &[u8]) -> Self {
        let mut odd = Vec::new();
        let main_thread = Finder::new(b"main_thread");
        let mut see = |number: u64, line: &[u8], parsed: &Line<'_>| match parsed {
            // Its rate is the fourth field.
            Line::Sample(_) => {}
            _ => odd.extend(fourth_field(line, &main_thread).map(|field| (number, field))),
        };
        let mut reader = Reader::new();
        reader.feed_with(bytes, &mut see);
        let log = reader.finish_with(&mut see);
        ReceiverLog { log, odd }
    }

    /// How many points enter the archive's median, and the median; `None` where ministat gives none.
    pub fn archive(&self) -> (usize, Option<Medians>) {
        let Some((first, last)) = kept_lines(self.log.newlines) else { return (0, None) };
        let kept = |line: &u64| (first..=last).contains(line);
        let odd = self.odd.iter().filter(|(line, _)| kept(line)).map(|(_, field)| field);
        let odd_lines: Vec<u64> = self.odd.iter().map(|(line, _)| *line).collect();
        let samples =
            self.log.samples.iter().filter(|(line, sample)| {
                kept(line) && sample.pps > 0 && odd_lines.binary_search(line).is_err()
            });
        let mut points: Vec<f64> = samples.map(|(_, s)| s.pps as f64).collect();
        let mut invalid = false;
        for field in odd {
            match field {
                Field::Number(number) => points.push(*number),
                Field::Skipped => {}
                Field::Invalid => invalid = true,
            }
        }
        let count = points.len();
        if invalid || count < LEAST_POINTS {
            return (count, None);
        }
        (count, Some(medians(&mut points)))
    }
}

/// Both medians of at least one point.
fn medians(points: &mut [f64]) -> Medians {
    let half = points.len() / 2;
    let even = points.len().is_multiple_of(2);
    let (below, upper, _) = points.select_nth_unstable_by(half, f64::total_cmp);
    let upper = *upper;
    let lower = if even { below.iter().copied().fold(f64::NEG_INFINITY, f64::max) } else { upper };
    Medians { mean: printed((lower + upper) / 2.0), upper: printed(upper) }
}

/// The value that remains of a number printed by `%.8g`.
pub fn printed(value: f64) -> f64 {
    // Rust rounds a tie to even as C does.
    format!("{value:.7e}").parse().unwrap_or(value)
}

/// The fourth field of a line that matches the script's expression.
#[cold]
fn fourth_field(line: &[u8], main_thread: &Finder<'_>) -> Option<Field> {
    let matches = main_thread.find_iter(line).any(|at| matches_after(&line[at + 11..]));
    if !matches {
        return None;
    }
    // `cut` prints a line without its delimiter whole.
    let field = match line.contains(&b' ') {
        true => line.split(|b| *b == b' ').nth(3).unwrap_or_default(),
        false => line,
    };
    let text = String::from_utf8_lossy(field);
    let word = text.split(['\t', ' ']).find(|w| !w.is_empty()).unwrap_or("");
    if word.is_empty() || word.starts_with('#') {
        return Some(Field::Skipped);
    }
    Some(word.parse().ok().filter(|n: &f64| n.is_finite()).map_or(Field::Invalid, Field::Number))
}

/// `[[:space:]]\[[[:digit:]]+\][[:space:]][1-9].*pps`.
fn matches_after(rest: &[u8]) -> bool {
    let space = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | 0x0b | 0x0c);
    let Some((first, rest)) = rest.split_first().filter(|(b, _)| space(b)) else { return false };
    debug_assert!(space(first));
    let Some(rest) = rest.strip_prefix(b"[") else { return false };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    match &rest[digits..] {
        [b']', blank, b'1'..=b'9', tail @ ..] if digits > 0 && space(blank) => {
            memchr::memmem::find(tail, b"pps").is_some()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
