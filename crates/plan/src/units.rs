//! Rates in the field's units, as users write them.

use crate::diagnostic::{Diagnostic, meant};
use std::fmt;
use std::str::FromStr;

use linerate_wire::units::{Si, bits_layer_1, bits_layer_2, line_rate};

/// An offered load as a user asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Rate {
    /// As fast as the generator can: the maximum offered load of RFC 2285.
    #[default]
    Max,
    /// Frames per second.
    Frames(f64),
    /// Bits per second at layer 1, preamble and gap included.
    BitsLayer1(f64),
    /// Bits per second at layer 2, FCS included.
    BitsLayer2(f64),
    /// Share of the link's line rate, 0..=1.
    LineShare(f64),
}

/// Most frames/s for one generator thread: more than any machine delivers, and within the range of its arithmetic.
pub const MOST_PER_THREAD: f64 = 150e6;

impl Rate {
    /// Frames/s for frames of `average_len_fcs` bytes on a link of `link` bit/s; `None` for [`Rate::Max`].
    ///
    /// # Errors
    /// A share of line rate without a link speed; more than `threads` generator threads can be asked for.
    pub fn frames_per_second(
        self,
        average_len_fcs: f64,
        link: Option<f64>,
        threads: usize,
    ) -> Result<Option<f64>, Diagnostic> {
        let wanted = match self {
            Rate::Max => return Ok(None),
            Rate::Frames(fps) => fps,
            Rate::BitsLayer1(bits) => bits / bits_layer_1(1.0, average_len_fcs),
            Rate::BitsLayer2(bits) => bits / bits_layer_2(1.0, average_len_fcs),
            Rate::LineShare(share) => {
                let unknown = || {
                    Diagnostic::new("a share of line rate needs a link speed, and none is known")
                        .remedy("name it with --link-speed 10G, or give the rate in pps")
                };
                share * line_rate(link.ok_or_else(unknown)?, average_len_fcs)
            }
        };
        let most = MOST_PER_THREAD * threads as f64;
        if wanted > most {
            let message = format!(
                "{wanted:.0} frames/s is more than {threads} generator thread(s) can be asked for ({most:.0})"
            );
            return Err(
                Diagnostic::new(message).remedy("use more CPUs, longer frames or a lower rate")
            );
        }
        Ok(Some(wanted))
    }
}

/// Splits `250 ms` into its number and its unit.
pub(crate) fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '_'))
        .unwrap_or(text.len());
    Some((
        text[..end].replace('_', "").parse().ok()?,
        text[end..].trim(),
    ))
}

/// A number and its unit, which may have an SI prefix: `64`, `1.5Mpps`, `200 k`. `None` for anything else, also for negative numbers.
pub fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let (number, unit) = number(text)?;
    let scale = match unit.chars().next() {
        Some('k' | 'K') => 1e3,
        Some('M' | 'm') => 1e6,
        Some('G' | 'g') => 1e9,
        Some('T' | 't') => 1e12,
        _ => return Some((number, unit)),
    };
    Some((number * scale, &unit[1..]))
}

impl FromStr for Rate {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        const EXAMPLE: &str = "write \"max\", \"500 kpps\", \"1 Gbit/s:l1\" (with preamble and gap), \"1 Gbit/s:l2\" (frames with FCS) or \"50 %\"";
        let text = text.trim();
        if text.eq_ignore_ascii_case("max") {
            return Ok(Rate::Max);
        }
        let wrong = |message: String, remedy: String| Err(Diagnostic::new(message).remedy(remedy));
        let too_low = || {
            wrong(
                format!("a rate of '{text}' sends nothing"),
                "the lowest is 0.001pps".into(),
            )
        };
        if text.starts_with('-') {
            return too_low();
        }
        let syntax = format!("'{text}' is not a rate");
        let Some((value, unit)) = number_and_unit(text) else {
            return wrong(syntax, EXAMPLE.into());
        };
        let lower = unit.to_ascii_lowercase();
        let (name, layer) = lower
            .split_once([':', '@'])
            .map_or((lower.as_str(), None), |(n, l)| (n, Some(l)));
        let rate = match (name, layer) {
            ("", None) if value > 0.0 => {
                let remedy = format!(
                    "write \"{text}pps\" for frames a second, or \"{text}bit/s:l1\" for bits with preamble and gap"
                );
                return wrong(format!("{text} of what? The unit is missing"), remedy);
            }
            ("" | "pps" | "fps" | "frames/s" | "packets/s", None) => Rate::Frames(value),
            ("%", None) if value > 100.0 => {
                let remedy = "a share of line rate is at most 100 %";
                return wrong(
                    format!("'{text}' is more than the line carries"),
                    remedy.into(),
                );
            }
            ("%", None) => Rate::LineShare(value / 100.0),
            ("bit/s" | "bits/s" | "bps", Some("l1")) => Rate::BitsLayer1(value),
            ("bit/s" | "bits/s" | "bps", Some("l2")) => Rate::BitsLayer2(value),
            ("bit/s" | "bits/s" | "bps", None) => {
                let remedy = format!(
                    "write \"{text}:l1\" (with preamble and gap, what a link's speed means) or \"{text}:l2\" (frames with FCS)"
                );
                return wrong(format!("'{text}' does not say which bits"), remedy);
            }
            _ => {
                let near = meant(unit, ["pps", "bit/s:l1", "bit/s:l2"]);
                let number = &text[..text.len() - unit.len()];
                let remedy = near.map_or(EXAMPLE.to_string(), |unit| {
                    format!("write \"{number}{unit}\"")
                });
                return wrong(syntax, remedy);
            }
        };
        let sends = if let Rate::Frames(fps) = rate {
            fps >= 0.001
        } else {
            value > 0.0
        };
        if sends { Ok(rate) } else { too_low() }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::Max => f.write_str("max"),
            Rate::Frames(fps) => write!(f, "{}pps", Si(*fps)),
            Rate::BitsLayer1(bits) => write!(f, "{}bit/s:l1", Si(*bits)),
            Rate::BitsLayer2(bits) => write!(f, "{}bit/s:l2", Si(*bits)),
            Rate::LineShare(share) => write!(f, "{}%", percent(*share)),
        }
    }
}

/// A link speed such as `10G`, `2.5Gbit/s` or `100M`, in bit/s.
///
/// # Errors
/// Anything that is not a positive number with an SI suffix.
pub fn parse_link_speed(text: &str) -> Result<f64, String> {
    match number_and_unit(text.trim()) {
        Some((bits, unit)) if bits >= 1e6 && matches!(unit, "" | "bit/s" | "bps" | "b") => Ok(bits),
        _ => Err(format!(
            "'{text}' is not a link speed: write 1G, 2.5G, 10G, 25G, 40G or 100G"
        )),
    }
}

/// The shortest decimal number for a value that `reads` takes for the same.
pub(crate) fn shortest(value: f64, reads: impl Fn(&str) -> bool) -> Option<String> {
    (0..=17)
        .map(|digits| format!("{value:.digits$}"))
        .find(|text| reads(text))
}

/// The shortest percentage that reads back as this share, without its sign.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let same = |text: &str| {
        text.parse::<f64>()
            .is_ok_and(|percent| percent / 100.0 == share)
    };
    shortest(percent, same).unwrap_or_else(|| percent.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_written() {
        for (text, rate) in [
            ("max", Rate::Max),
            ("100pps", Rate::Frames(100.0)),
            ("1.5 Mpps", Rate::Frames(1.5e6)),
            ("1Gbit/s:l1", Rate::BitsLayer1(1e9)),
            ("1Gbps@L2", Rate::BitsLayer2(1e9)),
            ("50%", Rate::LineShare(0.5)),
        ] {
            let read: Rate = text.parse().unwrap();
            assert_eq!(read, rate, "{text}");
            assert_eq!(read.to_string().parse::<Rate>().unwrap(), rate, "{text}");
        }
    }

    #[test]
    fn bad_rates_say_what_is_wrong() {
        for (text, says) in [
            ("0", "sends nothing: the lowest is 0.001pps"),
            ("-5", "sends nothing"),
            ("1Gbit/s", "does not say which bits: write \"1Gbit/s:l1\""),
            ("10 Gbps", "\"10 Gbps:l1\""),
            ("10", "The unit is missing"),
            ("500k", "write \"500kpps\""),
            ("500 kpsp", "write \"500 kpps\""),
            ("101%", "more than the line carries"),
        ] {
            let said = text.parse::<Rate>().unwrap_err().to_string();
            assert!(said.contains(says), "{text}: {said}");
        }
        for text in ["", "fast", "1e", "1xpps", "nan", "inf", "1Gbit/s:l3", "µ"] {
            assert!(
                text.parse::<Rate>()
                    .unwrap_err()
                    .message
                    .contains("is not a rate"),
                "{text}"
            );
        }
    }

    #[test]
    fn bits_become_frames_by_their_layer() {
        let fps = |rate: Rate| {
            rate.frames_per_second(64.0, Some(1e10), 1)
                .unwrap()
                .unwrap()
        };
        assert_eq!(fps(Rate::BitsLayer1(1e9)).round(), 1_488_095.0);
        assert_eq!(fps(Rate::BitsLayer2(1e9)).round(), 1_953_125.0);
        assert_eq!(fps(Rate::LineShare(0.5)).round(), 7_440_476.0);
        let unknown = Rate::LineShare(0.5)
            .frames_per_second(64.0, None, 1)
            .unwrap_err();
        assert!(unknown.message.contains("needs a link speed"));
        let ten_tbit = "10Tbit/s:l1"
            .parse::<Rate>()
            .unwrap()
            .frames_per_second(64.0, None, 2);
        assert!(
            ten_tbit
                .unwrap_err()
                .message
                .contains("2 generator thread(s)")
        );
    }
}
