//! The archive's own figure of a run, exactly as its script comes to it, and a sounder one.
//!
//! Of a receiver's log of L newlines the script keeps `head -n L-10 | tail -n L-25`, of these the lines that match
//! `main_thread[[:space:]]\[[[:digit:]]+\][[:space:]][1-9].*pps`, of these the fourth field between single blanks; ministat
//! takes the median and prints it with `%.8g`. So what is dropped are 15 and 10 lines, not samples, and with each sample of 0.

use super::Rule;
use crate::pktgen::{Line, Log, Reader, Sample};

/// ministat refuses to work with fewer points.
pub const LEAST_POINTS: usize = 3;

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
    /// What pkt-gen says.
    pub log: Log,
    /// Lines that match the script's expression without being a sample as pkt-gen writes it: with what `cut` and ministat
    /// make of them.
    odd: Vec<(u64, Field)>,
}

/// What ministat makes of a line's fourth field.
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
        let mut see = |number: u64, line: &[u8], parsed: &Line<'_>| match parsed {
            // Its rate is the fourth field.
            Line::Sample(_) => {}
            _ => odd.extend(fourth_field(line).map(|field| (number, field))),
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
fn fourth_field(line: &[u8]) -> Option<Field> {
    let matches = memchr::memmem::find_iter(line, b"main_thread").any(|at| matches_after(&line[at + 11..]));
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

/// The steady part of a run, and its median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steady {
    /// The median of the steady part, frames/s.
    pub median: f64,
    /// First sample of the steady part, from 0.
    pub first: usize,
    /// Samples in it.
    pub samples: usize,
}

/// At most so many samples at either end are looked through for a change: more would be no ramp.
const LONGEST_END: usize = 256;
/// Values further from the level than this many deviations count as if they were that far: one wild value moves no boundary.
const CLAMP: f64 = 6.0;
/// A part at the end differs from the steady part when its mean is this many deviations away...
const DEVIATIONS: f64 = 3.0;
/// ...and at least this share of the level.
const LEAST_SHARE: f64 = 0.01;

/// The sounder figure: the median of the steady part, which begins and ends where the rate changes.
///
/// The level is the median of the samples that are not 0, its deviation 1.4826 times their median absolute deviation, at
/// least 0.2 %. Samples are clamped to the level +/- 6 deviations. Of all ways to cut off up to a third at the beginning
/// and up to a third at the end, the one with the least sum of squares around the three means is taken; an end is cut off
/// only if its mean differs from that of the middle by more than 3 deviations and 1 %. Samples of 0 at the very ends
/// (before the first and after the last frame) are cut off before. `None` with fewer than three steady samples, or where
/// most of them are 0.
pub fn steady(samples: &[(u64, Sample)]) -> Option<Steady> {
    let rates: Vec<f64> = samples.iter().map(|(_, s)| s.pps as f64).collect();
    let first = rates.iter().position(|r| *r > 0.0)?;
    let last = rates.iter().rposition(|r| *r > 0.0)?;
    let rates = &rates[first..=last];
    let mut flowing: Vec<f64> = rates.iter().copied().filter(|r| *r > 0.0).collect();
    let level = middle(&mut flowing);
    flowing.iter_mut().for_each(|r| *r = (*r - level).abs());
    let deviation = (1.4826 * middle(&mut flowing)).max(0.002 * level);
    let reach = CLAMP * deviation;
    let clamped: Vec<f64> = rates.iter().map(|r| r.clamp(level - reach, level + reach) - level).collect();
    let (from, to) = segment(&clamped, (DEVIATIONS * deviation).max(LEAST_SHARE * level));
    let mut part = rates[from..to].to_vec();
    let median = if part.len() < LEAST_POINTS { 0.0 } else { middle(&mut part) };
    (median > 0.0).then_some(Steady { median, first: first + from, samples: to - from })
}

/// The median, mean of the two middle points; 0 of nothing.
fn middle(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let m = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(m, f64::total_cmp);
    let upper = *upper;
    if even { (below.iter().copied().fold(f64::NEG_INFINITY, f64::max) + upper) / 2.0 } else { upper }
}

/// Where the middle of three parts begins and ends (exclusive).
fn segment(values: &[f64], least: f64) -> (usize, usize) {
    let n = values.len();
    let mut sums = Vec::with_capacity(n + 1);
    sums.push(0.0);
    for v in values {
        sums.push(sums[sums.len() - 1] + v);
    }
    // The sum of squares within parts is least where that between them, sum^2 / length over the parts, is greatest.
    let between = |from: usize, to: usize| match to - from {
        0 => 0.0,
        length => (sums[to] - sums[from]).powi(2) / length as f64,
    };
    let end = (n / 3).min(LONGEST_END);
    let (mut best, mut from, mut to) = (f64::NEG_INFINITY, 0, n);
    for i in 0..=end {
        for j in n - end..=n {
            let explained = between(0, i) + between(i, j) + between(j, n);
            if explained > best {
                (best, from, to) = (explained, i, j);
            }
        }
    }
    let mean = |from: usize, to: usize| (sums[to] - sums[from]) / (to - from).max(1) as f64;
    let differs = |part: f64| (part - mean(from, to)).abs() > least;
    let cut_start = from > 0 && differs(mean(0, from));
    let cut_end = to < n && differs(mean(to, n));
    (if cut_start { from } else { 0 }, if cut_end { to } else { n })
}

#[cfg(test)]
mod tests;
