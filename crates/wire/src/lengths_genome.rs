//! The IMIX genome (RFC 6985): letters for frame lengths, custom sizes, run lengths.

use crate::WireError;
use crate::lengths::{FrameMix, MAX_PATTERN, malformed, parse_len, pattern_length};

/// The lengths of the letters a to j (RFC 6985 section 4), with FCS as the RFC 2544 sizes are.
const STANDARD: [u16; 10] = [64, 128, 256, 512, 1024, 1280, 1518, 2112, 9000, 16_000];

fn standard(letter: char) -> Option<u16> {
    STANDARD.into_iter().zip('a'..='j').find(|(_, known)| *known == letter).map(|(len, _)| len)
}

/// Reads `letters[{table}]`. `text` is the whole for error messages.
pub(crate) fn parse(text: &str, genome: &str) -> Result<FrameMix, WireError> {
    let genome = genome.trim();
    let (letters, table) = match genome.split_once('{') {
        Some((letters, rest)) => {
            let table = rest
                .strip_suffix('}')
                .ok_or_else(|| malformed(text, "the table must end the text with }"))?;
            (letters.trim(), Table::parse(text, table)?)
        }
        None => (genome, Table(Vec::new())),
    };
    let pattern = expand(text, letters, &table)?;
    if let Some((unused, _)) = table.0.iter().find(|(letter, _)| !letters.contains(*letter)) {
        return Err(malformed(text, format!("the table has a size for {unused}, which does not occur")));
    }
    let custom = letters.chars().any(|c| c.is_ascii_uppercase());
    Ok(FrameMix { name: format!("{}IMIX - {letters}{table}", if custom { "CUSTOM " } else { "" }), pattern })
}

/// Sizes of capital letters and of z.
struct Table(Vec<(char, u16)>);

impl Table {
    fn parse(text: &str, table: &str) -> Result<Self, WireError> {
        let mut sizes: Vec<(char, u16)> = Vec::new();
        for entry in table.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (letter, len) = entry
                .split_once('=')
                .ok_or_else(|| malformed(text, format!("{entry:?} is not LETTER=LENGTH, such as A=200")))?;
            let letter = match letter.trim().as_bytes() {
                [byte @ (b'A'..=b'Z' | b'z')] => char::from(*byte),
                _ => {
                    return Err(malformed(
                        text,
                        format!("{letter:?} cannot have a size; use A to Z, or z for the MTU"),
                    ));
                }
            };
            if sizes.iter().any(|&(known, _)| known == letter) {
                return Err(malformed(text, format!("{letter} has two sizes")));
            }
            sizes.push((letter, parse_len(text, len.trim())?));
        }
        Ok(Table(sizes))
    }

    fn len_of(&self, text: &str, letter: char) -> Result<u16, WireError> {
        let custom = || self.0.iter().find(|&&(known, _)| known == letter).map(|&(_, len)| len);
        standard(letter).or_else(custom).ok_or_else(|| {
            let why = match letter {
                'z' => "z stands for the MTU: say how long such a frame is with FCS, as in {z=1518} for an MTU of 1500".into(),
                'A'..='Z' => format!("{letter} has no size: append a table, as in {{{letter}=200}}"),
                _ => format!("{letter:?} is not a genome letter: a to j, z, or A to Z with a table"),
            };
            malformed(text, why)
        })
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, (letter, len)) in self.0.iter().enumerate() {
            write!(f, "{}{letter}={len}", if i == 0 { "{" } else { "," })?;
        }
        f.write_str(if self.0.is_empty() { "" } else { "}" })
    }
}

/// Expands `letters` and runs `count(letters)`, up to one frame more than fits.
fn expand(text: &str, letters: &str, table: &Table) -> Result<Vec<u16>, WireError> {
    let mut pattern = Vec::new();
    let mut rest = letters;
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_digit() {
            let (count, run, behind) = read_run(text, rest)?;
            let run =
                run.chars().map(|letter| table.len_of(text, letter)).collect::<Result<Vec<u16>, _>>()?;
            let frames = count.saturating_mul(run.len());
            if frames > MAX_PATTERN {
                return Err(pattern_length(text, frames));
            }
            pattern.extend(run.repeat(count));
            rest = behind;
        } else {
            pattern.push(table.len_of(text, first)?);
            rest = &rest[first.len_utf8()..];
        }
        if pattern.len() > MAX_PATTERN {
            return Err(pattern_length(text, pattern.len()));
        }
    }
    Ok(pattern)
}

/// `count(letters)`, and the text behind it.
fn read_run<'a>(text: &str, rest: &'a str) -> Result<(usize, &'a str, &'a str), WireError> {
    let error =
        || malformed(text, "write a run as COUNT(letters), such as 20(abcd), with a count from 1 to 4096");
    let (count, behind) = rest.split_once('(').ok_or_else(error)?;
    let (run, behind) = behind.split_once(')').ok_or_else(error)?;
    let count = count.parse().ok().filter(|count| (1..=MAX_PATTERN).contains(count)).ok_or_else(error)?;
    if run.is_empty() {
        return Err(error());
    }
    Ok((count, run, behind))
}
