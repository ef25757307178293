//! Line rates and bit rates, each with its layer named.
//!
//! Frame lengths include the FCS, as RFC 2544 counts them. Layer 2 is the frame with its FCS; layer 1 adds the 20 bytes
//! that every frame costs on Ethernet: 7 preamble, 1 start-of-frame delimiter, 12 inter-frame gap.

use std::fmt;

/// Bytes that a frame costs on the wire beyond its length with FCS (IEEE 802.3: preamble, SFD, inter-frame gap).
pub const LAYER_1_OVERHEAD: f64 = 20.0;

/// The Ethernet speeds whose line rate results are compared with, in bit/s.
pub const LINK_SPEEDS: [(&str, f64); 5] = [
    ("1G", 1e9),
    ("10G", 1e10),
    ("25G", 2.5e10),
    ("40G", 4e10),
    ("100G", 1e11),
];

/// Average length in bytes with FCS of simple IMIX (IP packets of 40, 576 and 1,500 bytes, 7:4:1, as Ethernet frames of
/// 64, 594 and 1,518).
pub const SIMPLE_IMIX_AVERAGE: f64 = (7.0 * 64.0 + 4.0 * 594.0 + 1518.0) / 12.0;

/// Line rate in frames/s: link bit/s / (8 x (length with FCS + 20)).
///
/// ```
/// # use linerate_wire::units::line_rate;
/// assert_eq!(line_rate(1e10, 64.0).round(), 14_880_952.0);
/// ```
pub fn line_rate(link_bits_per_second: f64, frame_len_fcs: f64) -> f64 {
    link_bits_per_second / (8.0 * (frame_len_fcs + LAYER_1_OVERHEAD))
}

/// Bit/s at layer 1 of `fps` frames/s of `frame_len_fcs` bytes.
pub fn bits_layer_1(fps: f64, frame_len_fcs: f64) -> f64 {
    fps * 8.0 * (frame_len_fcs + LAYER_1_OVERHEAD)
}

/// Bit/s at layer 2 (FCS included) of `fps` frames/s of `frame_len_fcs` bytes.
pub fn bits_layer_2(fps: f64, frame_len_fcs: f64) -> f64 {
    fps * 8.0 * frame_len_fcs
}

/// Prints a number with an SI prefix and at most three decimals: `1.488M`.
#[derive(Debug, Clone, Copy)]
pub struct Si(pub f64);

impl fmt::Display for Si {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, prefix) = match self.0.abs() {
            v if v >= 1e12 => (1e12, "T"),
            v if v >= 1e9 => (1e9, "G"),
            v if v >= 1e6 => (1e6, "M"),
            v if v >= 1e3 => (1e3, "k"),
            _ => (1.0, ""),
        };
        let text = format!("{:.3}", self.0 / scale);
        write!(
            f,
            "{}{prefix}",
            text.trim_end_matches('0').trim_end_matches('.')
        )
    }
}

/// `1 trial`, `2,000 trials`.
pub fn counted(n: usize, one: &str) -> String {
    format!(
        "{} {one}{}",
        grouped(n as u64),
        if n == 1 { "" } else { "s" }
    )
}

/// A number in groups of three digits: `12,345`.
pub fn grouped(n: impl Into<u128>) -> String {
    let digits = n.into().to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8_lossy(&groups.join(&b',')).into_owned()
}

/// Decimals that give `value` this many significant digits, at most 9.
pub fn decimals(value: f64, digits: usize) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    // The exponent after rounding: 9.9996 to four digits is 10.00, not 10.000.
    let rounded = format!("{:.*e}", digits.saturating_sub(1), value.abs());
    let exponent: i32 = rounded
        .split_once('e')
        .and_then(|(_, e)| e.parse().ok())
        .unwrap_or(0);
    (digits as i32 - 1 - exponent).clamp(0, 9) as usize
}

/// A number with this many significant digits, without an exponent: `1.490`, `671.2`, `0`.
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "?".into();
    }
    format!("{value:.*}", decimals(value, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_line_rates() {
        assert_eq!(line_rate(1e9, 64.0).round(), 1_488_095.0);
        assert_eq!(line_rate(1e11, 64.0).round(), 148_809_524.0);
        assert_eq!(line_rate(1e9, 1518.0).round(), 81_274.0);
    }
}
