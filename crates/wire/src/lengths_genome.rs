//! The IMIX genome (RFC 6985): letters for frame lengths, custom sizes, run lengths.

use crate::lengths::{FrameMix, MAX_PATTERN, parse_len};

/// The lengths of the letters a to j (RFC 6985 section 4), with FCS as the RFC 2544 sizes are.
const STANDARD: [u16; 10] = [64, 128, 256, 512, 1024, 1280, 1518, 2112, 9000, 16_000];

/// Reads `letters[{table}]`; `None` for other texts.
pub(crate) fn parse(genome: &str) -> Option<FrameMix> {
    let genome = genome.trim();
    let (letters, sizes) = match genome.split_once('{') {
        Some((letters, table)) => (letters.trim(), parse_sizes(table.strip_suffix('}')?)?),
        None => (genome, Vec::new()),
    };
    let len_of = |letter: char| {
        let standard = STANDARD.into_iter().zip('a'..='j').find(|(_, known)| *known == letter);
        let custom = sizes.iter().find(|(known, _)| *known == letter);
        standard.map(|(len, _)| len).or(custom.map(|(_, len)| *len))
    };
    let pattern = expand(letters, len_of)?;
    if !sizes.iter().all(|(letter, _)| letters.contains(*letter)) {
        return None;
    }
    let custom = if letters.chars().any(|c| c.is_ascii_uppercase()) { "CUSTOM " } else { "" };
    let table: Vec<String> = sizes.iter().map(|(letter, len)| format!("{letter}={len}")).collect();
    let table = if table.is_empty() { String::new() } else { format!("{{{}}}", table.join(",")) };
    Some(FrameMix { name: format!("{custom}IMIX - {letters}{table}"), pattern })
}

/// Sizes of capital letters and of z, which stands for the MTU.
fn parse_sizes(table: &str) -> Option<Vec<(char, u16)>> {
    let mut sizes: Vec<(char, u16)> = Vec::new();
    for entry in table.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (letter, len) = entry.split_once('=')?;
        let [byte @ (b'A'..=b'Z' | b'z')] = *letter.trim().as_bytes() else { return None };
        let letter = char::from(byte);
        if sizes.iter().any(|(known, _)| *known == letter) {
            return None;
        }
        sizes.push((letter, parse_len(len.trim())?));
    }
    Some(sizes)
}

/// Expands `letters` and runs `count(letters)`, at most a little more than fits.
fn expand(letters: &str, len_of: impl Fn(char) -> Option<u16>) -> Option<Vec<u16>> {
    let mut pattern = Vec::new();
    let mut rest = letters;
    while let Some(first) = rest.chars().next().filter(|_| pattern.len() <= MAX_PATTERN) {
        if first.is_ascii_digit() {
            let (count, behind) = rest.split_once('(')?;
            let (run, behind) = behind.split_once(')')?;
            let count =
                count.parse().ok().filter(|count| (1..=MAX_PATTERN).contains(count) && !run.is_empty())?;
            let run = run.chars().map(&len_of).collect::<Option<Vec<u16>>>()?;
            pattern.extend(run.iter().cycle().take((count * run.len()).min(MAX_PATTERN + 1)));
            rest = behind;
        } else {
            pattern.push(len_of(first)?);
            rest = &rest[first.len_utf8()..];
        }
    }
    Some(pattern)
}
