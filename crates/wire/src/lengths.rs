//! Frame lengths and mixes of them. All lengths count the FCS.

use crate::WireError;
use crate::frame::{MAX_LEN_FCS, MIN_ETHERNET_LEN_FCS};
use crate::words::when;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::str::FromStr;

/// The frame lengths of RFC 2544 section 9.1, with FCS.
pub const RFC2544_LENGTHS: [u16; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

/// Most frames in a pattern.
pub const MAX_PATTERN: usize = 4096;

/// Simple IMIX: IP packets of 40, 576 and 1,500 bytes as 7:4:1, in Ethernet frames with 18 bytes of header
/// and FCS; 58 is padded to the minimum of 64.
const IMIX: [(u16, usize); 3] = [(64, 7), (594, 4), (1518, 1)];

/// The lengths of the letters a to j (RFC 6985 section 4), with FCS as the RFC 2544 sizes are.
const STANDARD: [u16; 10] = [64, 128, 256, 512, 1024, 1280, 1518, 2112, 9000, 16_000];

/// A repeating pattern of frame lengths, with FCS; one length is a pattern of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FrameMix {
    /// The name that results show: `64`, `IMIX`, `IMIX - aaafg`.
    pub name: String,
    /// The lengths in the order of sending; never empty if it was parsed.
    #[serde(rename = "lengths_fcs", deserialize_with = "lengths")]
    pub pattern: Vec<u16>,
}

/// Lengths of a file: some, and each one that a frame can have.
fn lengths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u16>, D::Error> {
    let lengths = Vec::<u16>::deserialize(deserializer)?;
    if lengths
        .iter()
        .all(|length| (MIN_ETHERNET_LEN_FCS..=MAX_LEN_FCS).contains(length))
        && !lengths.is_empty()
    {
        Ok(lengths)
    } else {
        Err(D::Error::custom(
            "lengths_fcs are frame lengths with FCS, from 64 to 16000",
        ))
    }
}

/// The forms of a mix.
const FORMS: &str = "write a length with FCS from 64 to 16000 bytes such as 64, or imix, rfc2544, mix:64x7+594x4, or an IMIX genome \
                     (RFC 6985) such as genome:aaafg or genome:20(abcd)5(ggga), of 1 to 4096 frames; the capital letters of a genome, and z (the \
                     MTU), need a size: genome:aaA{A=200}";

impl FrameMix {
    /// One length, in bytes with FCS; it is not checked.
    pub fn single(len_fcs: u16) -> Self {
        FrameMix {
            name: len_fcs.to_string(),
            pattern: vec![len_fcs],
        }
    }

    /// The simple IMIX, 7:4:1 of 64, 594 and 1518, spread evenly.
    pub fn imix() -> Self {
        Self::spread("IMIX", &IMIX)
    }

    /// A pattern with `count` frames of each length, as far apart as possible, so that no length comes in
    /// bursts.
    pub fn spread(name: &str, counts: &[(u16, usize)]) -> Self {
        let total: usize = counts.iter().map(|&(_, count)| count).sum();
        // Each length has its places at (k + 1/2) / count of the pattern; the frames are sorted by place.
        let mut places: Vec<(u128, usize, u16)> = Vec::with_capacity(total);
        for (order, &(len, count)) in counts.iter().enumerate() {
            places.extend(
                (0..count as u128)
                    .map(|k| ((2 * k + 1) * (1 << 64) / (2 * count as u128), order, len)),
            );
        }
        places.sort_unstable();
        FrameMix {
            name: name.to_owned(),
            pattern: places.into_iter().map(|(_, _, len)| len).collect(),
        }
    }

    /// The mean length with FCS, in bytes; NaN for an empty pattern.
    pub fn average_len_fcs(&self) -> f64 {
        let total: u64 = self.pattern.iter().map(|&len| u64::from(len)).sum();
        total as f64 / self.pattern.len() as f64
    }

    /// The shortest length with FCS; 0 for an empty pattern.
    pub fn min_len_fcs(&self) -> u16 {
        self.pattern.iter().copied().min().unwrap_or(0)
    }

    /// The longest length with FCS; 0 for an empty pattern.
    pub fn max_len_fcs(&self) -> u16 {
        self.pattern.iter().copied().max().unwrap_or(0)
    }
}

impl fmt::Display for FrameMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The forms (lengths are always those of frames, with FCS):
///
/// | form | meaning |
/// |---|---|
/// | `64` | one length |
/// | `imix` | [`FrameMix::imix`] |
/// | `genome:aaafg` | the exact sequence (RFC 6985 section 4) |
/// | `genome:aaA{A=200}` | with custom sizes (section 5); `z`, the MTU's frame, needs a size as well: `{z=1518}` |
/// | `genome:20(abcd)5(ggga)` | run lengths (section 6.1) |
/// | `mix:64x7+594x4+1518x1` | proportions (section 6.2), spread evenly |
///
/// The names of genomes, `IMIX - ...` and `CUSTOM IMIX - ...`, are read as well.
impl FromStr for FrameMix {
    type Err = WireError;

    fn from_str(text: &str) -> Result<Self, WireError> {
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        let genome = ["genome:", "imix - ", "custom imix - "]
            .iter()
            .find(|begin| lower.starts_with(**begin));
        let mix = match (genome, lower.strip_prefix("mix:")) {
            _ if lower == "imix" => Some(Self::imix()),
            (Some(begin), _) => parse_genome(&text[begin.len()..]),
            (None, Some(proportions)) => parse_proportions(proportions),
            (None, None) => parse_len(text).map(Self::single),
        };
        let fits = |mix: &FrameMix| (1..=MAX_PATTERN).contains(&mix.pattern.len());
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let refusal = || {
            WireError::new(match digits {
                true => format!("{text} is no length of a frame with FCS: 64 to 16000 bytes"),
                false => format!("{text:?} is not a frame length or mix: {FORMS}"),
            })
        };
        mix.filter(fits).ok_or_else(refusal)
    }
}

/// Reads one frame length.
fn parse_len(len: &str) -> Option<u16> {
    let digits = !len.is_empty() && len.bytes().all(|b| b.is_ascii_digit());
    let len = len.parse().ok().filter(|_| digits)?;
    (MIN_ETHERNET_LEN_FCS..=MAX_LEN_FCS)
        .contains(&len)
        .then_some(len)
}

/// `64x7+594x4+1518x1`.
fn parse_proportions(proportions: &str) -> Option<FrameMix> {
    let term = |term: &str| {
        let (len, count) = term.split_once('x')?;
        let count = count
            .parse()
            .ok()
            .filter(|count| (1..=MAX_PATTERN).contains(count))?;
        Some((parse_len(len)?, count))
    };
    let counts: Vec<(u16, usize)> = proportions.split('+').map(term).collect::<Option<_>>()?;
    let frames: usize = counts.iter().map(|(_, count)| count).sum();
    (frames <= MAX_PATTERN).then(|| FrameMix::spread(&format!("mix:{proportions}"), &counts))
}

/// Reads an IMIX genome (RFC 6985), `letters[{table}]`; `None` for other texts.
fn parse_genome(genome: &str) -> Option<FrameMix> {
    let genome = genome.trim();
    let (letters, sizes) = match genome.split_once('{') {
        Some((letters, table)) => (letters.trim(), genome_sizes(table.strip_suffix('}')?)?),
        None => (genome, Vec::new()),
    };
    let len_of = |letter: char| {
        let standard = STANDARD
            .into_iter()
            .zip('a'..='j')
            .find(|(_, known)| *known == letter);
        let custom = sizes.iter().find(|(known, _)| *known == letter);
        standard.map(|(len, _)| len).or(custom.map(|(_, len)| *len))
    };
    let pattern = expand(letters, len_of)?;
    if !sizes.iter().all(|(letter, _)| letters.contains(*letter)) {
        return None;
    }
    let custom = when(letters.chars().any(|c| c.is_ascii_uppercase()), "CUSTOM ");
    let table: Vec<String> = sizes
        .iter()
        .map(|(letter, len)| format!("{letter}={len}"))
        .collect();
    let table = when(!table.is_empty(), format!("{{{}}}", table.join(",")));
    Some(FrameMix {
        name: format!("{custom}IMIX - {letters}{table}"),
        pattern,
    })
}

/// Sizes of capital letters and of z, which stands for the MTU.
fn genome_sizes(table: &str) -> Option<Vec<(char, u16)>> {
    let mut sizes: Vec<(char, u16)> = Vec::new();
    for entry in table
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
    {
        let (letter, len) = entry.split_once('=')?;
        let [byte @ (b'A'..=b'Z' | b'z')] = *letter.trim().as_bytes() else {
            return None;
        };
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
            let count = count
                .parse()
                .ok()
                .filter(|count| (1..=MAX_PATTERN).contains(count) && !run.is_empty())?;
            let run = run.chars().map(&len_of).collect::<Option<Vec<u16>>>()?;
            pattern.extend(
                run.iter()
                    .cycle()
                    .take((count * run.len()).min(MAX_PATTERN + 1)),
            );
            rest = behind;
        } else {
            pattern.push(len_of(first)?);
            rest = &rest[first.len_utf8()..];
        }
    }
    Some(pattern)
}

/// Reads a list such as `64,128,imix`; commas inside braces do not separate, and `rfc2544` stands for its
/// seven lengths.
///
/// # Errors
/// The first entry that is wrong.
pub fn parse_sizes(text: &str) -> Result<Vec<FrameMix>, WireError> {
    let mut mixes = Vec::new();
    for entry in split_outside_braces(text) {
        if entry.trim().eq_ignore_ascii_case("rfc2544") {
            mixes.extend(RFC2544_LENGTHS.map(FrameMix::single));
        } else {
            mixes.push(entry.parse()?);
        }
    }
    Ok(mixes)
}

fn split_outside_braces(text: &str) -> Vec<&str> {
    let mut depth = 0i32;
    text.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth <= 0
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> Vec<u16> {
        text.parse::<FrameMix>().unwrap().pattern
    }

    #[test]
    fn imix_is_spread() {
        let imix: FrameMix = "IMIX".parse().unwrap();
        assert_eq!(imix.name, "IMIX");
        assert_eq!(
            imix.pattern,
            [64, 594, 64, 64, 594, 64, 1518, 594, 64, 64, 594, 64]
        );
        assert!((imix.average_len_fcs() - 361.833).abs() < 0.001);
        assert_eq!((imix.min_len_fcs(), imix.max_len_fcs()), (64, 1518));
        assert_eq!(pattern("mix:64x7+594x4+1518x1"), imix.pattern);
    }

    #[test]
    fn genomes() {
        let mix: FrameMix = "genome:aaafg".parse().unwrap();
        assert_eq!(
            (mix.name.as_str(), &mix.pattern[..]),
            ("IMIX - aaafg", &[64, 64, 64, 1280, 1518][..])
        );
        let mix: FrameMix = "genome:aaA{A=200}".parse().unwrap();
        assert_eq!(
            (mix.name.as_str(), &mix.pattern[..]),
            ("CUSTOM IMIX - aaA{A=200}", &[64, 64, 200][..])
        );
        assert_eq!(pattern("genome:az{z=1518}"), [64, 1518]);
        assert_eq!(
            pattern("genome:2(ab)3(g)"),
            [64, 128, 64, 128, 1518, 1518, 1518]
        );
        assert_eq!(
            pattern("genome:bcdehij"),
            [128, 256, 512, 1024, 2112, 9000, 16000]
        );
        assert_eq!(pattern("genome:2(aA)b{A=100,}").len(), 5);
        for bad in [
            "genome:",
            "genome:k",
            "genome:aA",
            "genome:z",
            "genome:A{A=63}",
            "genome:A{A=100",
            "genome:A{A=100}b",
            "genome:a{a=100}",
            "genome:A{A=100,A=200}",
            "genome:a{B=100}",
            "genome:5000(a)",
            "genome:0(a)",
            "genome:2a",
            "genome:2(a",
            "genome:2()",
            "genome:99999999999999999999(a)",
            "genome:é",
        ] {
            assert!(bad.parse::<FrameMix>().is_err(), "{bad}");
        }
    }

    #[test]
    fn lists() {
        let names = |text| {
            parse_sizes(text)
                .unwrap()
                .iter()
                .map(|m| m.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("64, 128,imix"), ["64", "128", "IMIX"]);
        assert_eq!(
            names("64,genome:AB{A=100,B=200},1518"),
            ["64", "CUSTOM IMIX - AB{A=100,B=200}", "1518"]
        );
        assert_eq!(names("rfc2544").len(), 7);
        for bad in [
            "",
            "63",
            "0",
            "70000",
            "64,,128",
            "jumbo",
            "-64",
            "64b",
            "16001",
            "mix:64x0",
            "mix:64",
            "mix:64x4096+65x1",
        ] {
            assert!(parse_sizes(bad).is_err(), "{bad}");
        }
        let error = parse_sizes("63").unwrap_err().to_string();
        assert_eq!(
            error,
            "63 is no length of a frame with FCS: 64 to 16000 bytes"
        );
    }

    proptest! {
        #[test]
        fn spread_keeps_counts_and_distances(counts in prop::collection::vec(1usize..30, 1..6)) {
            let counts: Vec<(u16, usize)> = counts.iter().enumerate().map(|(i, &n)| (100 + i as u16, n)).collect();
            let total: usize = counts.iter().map(|c| c.1).sum();
            let pattern = FrameMix::spread("x", &counts).pattern;
            for &(len, count) in &counts {
                let at: Vec<usize> = (0..total).filter(|&i| pattern[i] == len).collect();
                prop_assert_eq!(at.len(), count);
                // Neighbours are within one frame of each other length of the even distance.
                for pair in at.windows(2) {
                    let distance = (pair[1] - pair[0]) as f64;
                    prop_assert!((distance - total as f64 / count as f64).abs() <= counts.len() as f64);
                }
            }
        }

        #[test]
        fn names_are_read_again(genome in "[a-j]{1,20}|[a-cABz]{1,9}\\{A=100,B=200,z=1500\\}|[2-9]\\([a-j]{1,4}\\)") {
            if let Ok(mix) = format!("genome:{genome}").parse::<FrameMix>() {
                prop_assert_eq!(mix.name.parse::<FrameMix>().unwrap(), mix);
            }
        }

        #[test]
        fn never_panics(text in "(genome:|mix:|imix - )?[a-zA-Z0-9(){}=,x+é]*") {
            let _ = parse_sizes(&text);
        }
    }
}
