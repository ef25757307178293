//! Values that several verbs take, and how they are read.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use linerate_plan::Diagnostic;
use linerate_plan::backend::{Backend, OF_THIS_MACHINE};
use linerate_plan::names::Named;
use linerate_plan::rules::Families;
use linerate_plan::rules::own::Meaning;
use linerate_plan::units::{Rate, parse_duration_ns};
use linerate_wire::{FrameMix, parse_sizes};
use std::time::Duration;

/// IP versions.
pub fn families() -> impl TypedValueParser<Value = Families> {
    let values = [("4", "ipv4"), ("6", "ipv6"), ("both", "both")];
    let values = values.map(|(name, alias)| PossibleValue::new(name).alias(alias));
    PossibleValuesParser::new(values).map(|name| match name.as_str() {
        "4" | "ipv4" => Families::Ipv4,
        "6" | "ipv6" => Families::Ipv6,
        _ => Families::Both,
    })
}

/// The values of an enum, by the names that files give them.
pub fn named<T: Named + Clone + Send + Sync + 'static>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::names()).try_map(|name| T::parse_name(&name, "known"))
}

/// Linerate's own backends, by the names of the registry.
pub fn own_backend() -> impl TypedValueParser<Value = Backend> {
    let values = OF_THIS_MACHINE.iter().map(|(name, summary)| PossibleValue::new(*name).help(*summary));
    let values: Vec<PossibleValue> = values.collect();
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Backend>())
}

/// Frame lengths to measure side by side.
#[derive(Debug, Clone)]
pub struct Sizes(pub Vec<FrameMix>);

pub fn sizes(text: &str) -> Result<Sizes, String> {
    parse_sizes(text).map(Sizes).map_err(|e| e.to_string())
}

/// CPU numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus(pub Vec<u32>);

pub fn cpu_list(text: &str) -> Result<Cpus, String> {
    let wrong = |part: &str| format!("'{part}' is not a CPU number or range: write 1 or 0,2-3");
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |t: &str| t.trim().parse::<u32>().ok().filter(|n| *n < 8192).ok_or_else(|| wrong(part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("'{part}' runs backwards: write {last}-{first}"));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(Cpus(cpus))
}

/// Meaning of a rule file's name: `eth0=out`.
pub fn mapping(text: &str) -> Result<(String, Meaning), String> {
    let (name, end) = text.rsplit_once('=').unwrap_or((text, ""));
    match Meaning::of_name(end) {
        Some(end) if !name.is_empty() => Ok((name.into(), end)),
        _ => Err(format!(
            "'{text}' does not say what a name is: write eth0=out, 192.168.1.0/24=in or NETWORK=elsewhere"
        )),
    }
}

pub fn duration(text: &str) -> Result<Duration, String> {
    parse_duration_ns(text).map(Duration::from_nanos)
}

/// A rate; a number alone is frames a second, as pkt-gen has it.
pub fn pkt_gen_rate(text: &str) -> Result<Rate, Diagnostic> {
    text.parse().or_else(|wrong| format!("{text}pps").parse().map_err(|_| wrong))
}

/// A count of frames.
pub fn count(text: &str) -> Result<u64, String> {
    match number(text, 0, u64::MAX)? {
        0 => Err("at least 1: leave it out to end by --duration alone".into()),
        count => Ok(count),
    }
}

/// A number such as 1000, 80_000_000, 10k or 1M.
pub fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let plain = text.trim().replace('_', "");
    let scaled = [("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000)];
    let lower = plain.to_ascii_lowercase();
    let (digits, scale) = scaled
        .iter()
        .find_map(|(unit, scale)| lower.strip_suffix(unit).map(|digits| (digits, *scale)))
        .unwrap_or((&lower, 1));
    let value = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(scale));
    let value = value.ok_or_else(|| format!("'{text}' is not a number: write 1000, 10k or 1M"))?;
    if (least..=most).contains(&value) { Ok(value) } else { Err(format!("from {least} to {most}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_counts() {
        assert_eq!(cpu_list("3,0-1,1"), Ok(Cpus(vec![0, 1, 3])));
        assert!(cpu_list("1-0").is_err() && cpu_list("").is_err() && cpu_list("a").is_err());
        assert_eq!(count("10M"), Ok(10_000_000));
        assert_eq!(pkt_gen_rate("100k"), Ok(Rate::Frames(1e5)));
        assert!(pkt_gen_rate("0").is_err() && pkt_gen_rate("1Gbit/s").is_err());
        assert!(count("0").is_err() && count("").is_err() && count("µ").is_err());
    }
}
