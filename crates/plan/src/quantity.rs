//! Quantities with their units, which are never left out: a plan is read long after it was written.

use super::diagnostic::{Diagnostic, meant};
use crate::units::{Si, parse_link_speed};
use linerate_wire::FrameMix;

const DURATIONS: [(&str, f64); 6] =
    [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];
/// What people write for them.
const DURATION_WORDS: [(&str, &str); 20] = [
    ("nsec", "ns"),
    ("usec", "us"),
    ("µs", "us"),
    ("μs", "us"),
    ("msec", "ms"),
    ("msecs", "ms"),
    ("millis", "ms"),
    ("milliseconds", "ms"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("m", "min"),
    ("mins", "min"),
    ("minute", "min"),
    ("minutes", "min"),
    ("hr", "h"),
    ("hrs", "h"),
    ("hour", "h"),
    ("hours", "h"),
];

/// Splits `250 ms` into its number and its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '_')).unwrap_or(text.len());
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    Some((number, text[end..].trim()))
}

/// A quantity of one of `units`, in the smallest of them. `example` is shown where it is none.
fn quantity(
    text: &str,
    what: &str,
    example: &str,
    units: &[(&str, f64)],
    words: &[(&str, &str)],
) -> Result<f64, Diagnostic> {
    if text.trim().starts_with('-') {
        return Err(Diagnostic::new(format!("'{text}' is negative")).remedy(format!("write {example}")));
    }
    let Some((number, unit)) = split(text) else {
        return Err(Diagnostic::new(format!("'{text}' is not {what}")).remedy(format!("write {example}")));
    };
    if let Some((_, scale)) = units.iter().find(|(name, _)| *name == unit) {
        return Ok(number * scale);
    }
    let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
    if unit.is_empty() {
        return Err(missing(&number.to_string(), &names));
    }
    let word = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(unit)).map(|(_, name)| *name);
    let near = word.or_else(|| names.iter().copied().find(|n| n.eq_ignore_ascii_case(unit)));
    let help = match near.or_else(|| meant(unit, names.iter().copied())) {
        Some(name) => format!("write \"{number} {name}\""),
        None => format!("write {example}; the units are {}", names.join(", ")),
    };
    Err(Diagnostic::new(format!("'{unit}' is not a unit of {what}")).remedy(help))
}

fn missing(number: &str, units: &[&str]) -> Diagnostic {
    let choices: Vec<String> = units.iter().map(|u| format!("\"{number} {u}\"")).collect();
    Diagnostic::new(format!("{number} of what? The unit is missing"))
        .remedy(format!("write {}", choices.join(" or ")))
}

/// A bare number where a quantity is wanted.
pub(super) fn bare(number: &str, units: &[&str]) -> Diagnostic {
    missing(number, units)
}

/// A duration in nanoseconds.
pub(super) fn duration(text: &str) -> Result<u64, Diagnostic> {
    let ns = quantity(text, "a duration", "\"250 ms\", \"10 s\" or \"2 min\"", &DURATIONS, &DURATION_WORDS)?;
    if ns > 1e18 {
        Err(Diagnostic::new(format!("'{text}' is more than thirty years")))
    } else {
        Ok(ns as u64)
    }
}

/// A duration as the command line takes it, in nanoseconds: `m` is a minute there, too.
///
/// # Errors
/// Not a number with a known unit, zero, or more than a day.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a duration: write 250ms, 10s or 2m, up to 24h");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    if unit.is_empty() {
        return Err(format!("'{number}' has no unit: write {number}s, {number}ms or {number}us"));
    }
    let words = [("sec", 1e9), ("m", 60e9)];
    let scale = DURATIONS.iter().chain(&words).find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
    let ns = number * scale;
    if (1.0..=24.0 * 3600e9).contains(&ns) { Ok(ns as u64) } else { Err(wrong()) }
}

/// A length in bytes.
pub(super) fn length(text: &str) -> Result<u64, Diagnostic> {
    let words = [("byte", "B"), ("bytes", "B"), ("octets", "B")];
    let bytes = quantity(text, "a length", "\"1500 B\"", &[("B", 1.0)], &words)?;
    if bytes.fract() != 0.0 || bytes > 1e15 {
        return Err(Diagnostic::new(format!("'{text}' is not a whole number of bytes")));
    }
    Ok(bytes as u64)
}

/// An amount of memory in bytes.
pub(super) fn memory(text: &str) -> Result<u64, Diagnostic> {
    let units = [("KiB", 1024.0), ("MiB", 1048576.0), ("GiB", 1073741824.0)];
    let words = [("KB", "KiB"), ("MB", "MiB"), ("GB", "GiB"), ("K", "KiB"), ("M", "MiB"), ("G", "GiB")];
    let bytes = quantity(text, "an amount of memory", "\"4 GiB\"", &units, &words)?;
    if bytes > 1e18 {
        Err(Diagnostic::new(format!("'{text}' is more than any machine has")))
    } else {
        Ok(bytes as u64)
    }
}

/// A share of 1, written in percent.
pub(super) fn share(text: &str) -> Result<f64, Diagnostic> {
    let words = [("percent", "%"), ("per cent", "%"), ("pct", "%")];
    let percent = quantity(text, "a share", "\"2 %\"", &[("%", 1.0)], &words)?;
    match percent {
        p if p <= 0.0 => {
            Err(Diagnostic::new(format!("'{text}' is nothing")).remedy("write a share above 0 %"))
        }
        p if p > 10_000.0 => Err(Diagnostic::new(format!("'{text}' is more than 10000 %"))),
        p => Ok(p / 100.0),
    }
}

/// A frame length with FCS, or a mix of them.
pub(super) fn size(text: &str) -> Result<FrameMix, Diagnostic> {
    const EXAMPLE: &str =
        "write \"64 B\" (with FCS), \"imix\", \"genome:aaafg\" or \"mix:64x7+594x4+1518x1\"";
    let first = text.trim().chars().next();
    if first.is_none_or(|c| !c.is_ascii_digit() && c != '-') {
        return text
            .parse()
            .map_err(|e: linerate_wire::WireError| Diagnostic::new(e.to_string()).remedy(EXAMPLE));
    }
    let bytes = length(text)?;
    bytes.to_string().parse().map_err(|_| {
        Diagnostic::new(format!("{bytes} B is no frame length: with FCS, a frame has 64 to 16000 bytes"))
    })
}

/// A link's speed in bit/s.
pub(super) fn speed(text: &str) -> Result<f64, Diagnostic> {
    const EXAMPLE: &str = "write \"1 Gbit/s\", \"10 Gbit/s\" or \"100 Gbit/s\"";
    if !text.trim().ends_with("bit/s") {
        return Err(Diagnostic::new(format!("'{text}' is not a link speed with its unit")).remedy(EXAMPLE));
    }
    let speed = parse_link_speed(text)
        .map_err(|_| Diagnostic::new(format!("'{text}' is not a link speed")).remedy(EXAMPLE))?;
    if speed > 1e13 {
        Err(Diagnostic::new(format!("'{text}' is more than any link has")).remedy(EXAMPLE))
    } else {
        Ok(speed)
    }
}

/// A link's speed as a plan has it.
pub(super) fn speed_text(bits: f64) -> String {
    let text = Si(bits).to_string();
    let prefix = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    format!("{} {prefix}bit/s", &text[..text.len() - prefix.len()])
}

/// CPU numbers such as `0,2-3`.
pub(super) fn cpus(text: &str) -> Result<Vec<u32>, Diagnostic> {
    let wrong = |part: &str| {
        Diagnostic::new(format!("'{part}' is not a CPU number or range")).remedy("write \"1\" or \"0,2-3\"")
    };
    let mut cpus = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |t: &str| t.trim().parse::<u32>().ok().filter(|n| *n < 8192).ok_or_else(|| wrong(part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(Diagnostic::new(format!("'{part}' runs backwards"))
                .remedy(format!("write \"{last}-{first}\"")));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// A kernel's version.
pub(super) fn version(text: &str) -> Result<(u32, u32), Diagnostic> {
    let parts = text.trim().split_once('.');
    let number = |t: &str| t.parse::<u32>().ok().filter(|n| *n < 1000);
    let version = parts.and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
    version.ok_or_else(|| {
        Diagnostic::new(format!("'{text}' is not a kernel version")).remedy("write \"5.17\" or \"14.0\"")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;
    use proptest::prelude::*;

    fn help(wrong: Diagnostic) -> String {
        format!("{} | {}", wrong.message, wrong.remedy.unwrap_or_default())
    }

    #[test]
    fn durations_say_their_unit() {
        assert_eq!(duration("250 ms"), Ok(250_000_000));
        assert_eq!(duration("1.5min"), Ok(90_000_000_000));
        assert!(
            help(duration("250").unwrap_err())
                .contains("write \"250 ns\" or \"250 us\" or \"250 ms\" or \"250 s\"")
        );
        assert!(help(duration("250 msec").unwrap_err()).ends_with("write \"250 ms\""));
        assert!(help(duration("2 m").unwrap_err()).ends_with("write \"2 min\""));
        assert!(help(duration("2 parsecs").unwrap_err()).contains("the units are ns"));
        assert!(help(duration("-2 s").unwrap_err()).contains("negative"));
        assert!(duration("soon").is_err() && duration("").is_err() && duration("1e400 h").is_err());
    }

    #[test]
    fn durations_of_the_command_line() {
        assert_eq!(parse_duration_ns("250ms"), Ok(250_000_000));
        assert_eq!(parse_duration_ns("2 s"), Ok(2_000_000_000));
        assert_eq!(parse_duration_ns("2m"), Ok(120_000_000_000));
        assert!(parse_duration_ns("5").unwrap_err().contains("no unit: write 5s"));
        assert!(parse_duration_ns("0s").is_err() && parse_duration_ns("25h").is_err());
        assert!(parse_duration_ns("ten").is_err());
    }

    #[test]
    fn lengths_and_the_rest() {
        assert_eq!(size("64 B").unwrap().pattern, [64]);
        assert_eq!(size("imix").unwrap().name, "IMIX");
        assert!(help(size("64").unwrap_err()).contains("\"64 B\""));
        assert!(help(size("64 bytes").unwrap_err()).ends_with("write \"64 B\""));
        assert!(help(size("63 B").unwrap_err()).contains("64 to 16000"));
        assert!(size("imx").is_err() && size("").is_err() && size("64.5 B").is_err());
        assert_eq!(share("2 %"), Ok(0.02));
        assert!(help(share("2").unwrap_err()).contains("\"2 %\""));
        assert_eq!(speed("10 Gbit/s"), Ok(1e10));
        assert!(speed("10G").is_err() && speed("1e9 Tbit/s").is_err() && speed("10 Tbit/s").is_ok());
        assert_eq!(memory("2 GiB"), Ok(2 << 30));
        assert_eq!(cpus("0,2-3"), Ok(vec![0, 2, 3]));
        assert!(cpus("3-2").is_err() && cpus("").is_err() && cpus("0-9999").is_err());
        assert_eq!(version("5.17"), Ok((5, 17)));
        assert!(version("5").is_err() && version("x.y").is_err());
    }

    proptest! {
        #[test]
        fn no_text_is_too_much(text in "[0-9a-zA-Zµ%./:_ -]{0,24}") {
            let _ = (duration(&text), text.parse::<Rate>(), size(&text), speed(&text), memory(&text), share(&text), cpus(&text), version(&text));
        }
    }
}
