//! A scalar read as the kind that its key wants, or what is wrong with it.

use super::diagnostic::{Diagnostic, listed, meant};
use super::grammar::Kind;
use super::lab::HostAddress;
use super::names::Named;
use super::quantity;
use super::settings::{Cpus, DUTS, Dut};
use super::value::{Raw, Value};
use linerate_wire::MacAddr;
use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;

/// Reads a scalar as a kind.
pub(super) fn read(kind: &Kind, raw: &Raw) -> Result<Value, Diagnostic> {
    match (kind, raw) {
        (Kind::Text, Raw::Text(text)) => Ok(Value::Text(text.clone())),
        (Kind::Line, Raw::Text(text)) => line(text),
        (Kind::Flag, Raw::Flag(flag)) => Ok(Value::Flag(*flag)),
        (Kind::Count { least, most }, Raw::Integer(n)) => count(*n, *least, *most).map(Value::Count),
        (Kind::CpuCount, Raw::Integer(n)) => Ok(Value::CpuCount(Cpus::Count(count(*n, 1, 8192)? as u32))),
        (Kind::CpuCount, Raw::Text(text)) if text.trim() == "all" => Ok(Value::CpuCount(Cpus::All)),
        (Kind::Setting, raw) => setting(raw),
        (Kind::Choice(words), Raw::Text(text)) => choice(words, text),
        (Kind::Levels | Kind::Selector, raw) => Ok(Value::Raw(raw.clone())),
        (Kind::OneOrMore(of), raw) => read(of, raw),
        (_, Raw::Integer(n)) if !kind.units().is_empty() => Err(quantity::bare(&n.to_string(), kind.units())),
        (_, Raw::Float(n)) if !kind.units().is_empty() => Err(quantity::bare(&n.to_string(), kind.units())),
        (_, Raw::Text(text)) => quantities(kind, text).unwrap_or_else(|| Err(wrong_type(kind, raw))),
        _ => Err(wrong_type(kind, raw)),
    }
}

/// The kinds that are written as text with an inner form.
fn quantities(kind: &Kind, text: &str) -> Option<Result<Value, Diagnostic>> {
    Some(match kind {
        Kind::Duration { least, most } => {
            bounded(text, quantity::duration(text), *least, *most, &duration_text).map(Value::Duration)
        }
        Kind::Length { least, most } => {
            bounded(text, quantity::length(text), *least, *most, &|n| format!("{n} B")).map(Value::Length)
        }
        Kind::Size => quantity::size(text).map(Value::Size),
        Kind::Rate => text.parse().map(Value::Rate),
        Kind::Speed => quantity::speed(text).map(Value::Speed),
        Kind::Share => quantity::share(text).map(Value::Share),
        Kind::Memory => quantity::memory(text).map(Value::Memory),
        Kind::CpuList => quantity::cpus(text).map(Value::CpuList),
        Kind::FlowOrder => flow_order(text),
        Kind::Dut => dut(text).map(Value::Dut),
        Kind::Version => quantity::version(text).map(Value::Version),
        Kind::Network if !text.contains('/') => Err(not(text, "a network", kind)),
        Kind::Network => shown::<HostAddress>(text, "a network", kind),
        Kind::Address => shown::<IpAddr>(text, "an IP address", kind),
        Kind::HostAddress => shown::<HostAddress>(text, "an IP address", kind),
        Kind::Mac => shown::<MacAddr>(text, "an Ethernet address", kind),
        _ => return None,
    })
}

fn wrong_type(kind: &Kind, raw: &Raw) -> Diagnostic {
    let found = match raw {
        Raw::Flag(flag) => format!("{flag}"),
        Raw::Integer(n) => format!("the number {n}"),
        Raw::Float(n) => format!("the number {n}"),
        Raw::Text(text) => format!("the text \"{}\"", text.chars().take(40).collect::<String>()),
    };
    let quoted = match (kind, raw) {
        (Kind::Count { .. }, Raw::Text(text)) => text.trim().replace(['_', ','], "").parse::<u64>().ok(),
        _ => None,
    };
    let help =
        quoted.map_or_else(|| format!("write {}", kind.wants()), |n| format!("write {n} without quotes"));
    Diagnostic::new(format!("{found} does not belong here")).remedy(help)
}

fn line(text: &str) -> Result<Value, Diagnostic> {
    if text.trim().is_empty() {
        return Err(Diagnostic::new("an empty text says nothing")
            .remedy("write a line of text, or leave the key out"));
    }
    if text.trim_end().contains('\n') {
        return Err(Diagnostic::new("this must be a single line"));
    }
    Ok(Value::Text(text.trim().to_string()))
}

fn count(n: i128, least: u64, most: u64) -> Result<u64, Diagnostic> {
    let bounds = format!("write a whole number from {least} to {most}");
    match u64::try_from(n) {
        Ok(n) if (least..=most).contains(&n) => Ok(n),
        Ok(n) if n < least => {
            Err(Diagnostic::new(format!("{n} is too few: at least {least}")).remedy(bounds))
        }
        Ok(n) => Err(Diagnostic::new(format!("{n} is too many: at most {most}")).remedy(bounds)),
        Err(_) if n < 0 => Err(Diagnostic::new(format!("{n} is negative")).remedy(bounds)),
        Err(_) => Err(Diagnostic::new("this number is far too large").remedy(bounds)),
    }
}

fn bounded(
    text: &str,
    value: Result<u64, Diagnostic>,
    least: u64,
    most: u64,
    shown: &dyn Fn(u64) -> String,
) -> Result<u64, Diagnostic> {
    let value = value?;
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    let (word, bound) = if value < least { ("little", least) } else { ("much", most) };
    let bounds = format!("write a value from \"{}\" to \"{}\"", shown(least), shown(most));
    let side = if value < least { "at least" } else { "at most" };
    Err(Diagnostic::new(format!("{text} is too {word}: {side} {}", shown(bound))).remedy(bounds))
}

/// A duration in the largest unit that it is a whole number of: `250 ms`.
pub fn duration_text(ns: u64) -> String {
    let units = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "min"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1000, "us"),
    ];
    let unit = units.into_iter().find(|(scale, _)| ns >= *scale && ns.is_multiple_of(*scale));
    unit.map_or_else(|| format!("{ns} ns"), |(scale, name)| format!("{} {name}", ns / scale))
}

fn setting(raw: &Raw) -> Result<Value, Diagnostic> {
    Ok(Value::Text(match raw {
        Raw::Flag(flag) => u8::from(*flag).to_string(),
        Raw::Integer(n) => n.to_string(),
        Raw::Float(n) => n.to_string(),
        Raw::Text(text) if text.contains('\n') => {
            return Err(Diagnostic::new("a setting's value must be a single line"));
        }
        Raw::Text(text) => text.trim().to_string(),
    }))
}

fn choice(words: &'static [(&'static str, &'static str)], text: &str) -> Result<Value, Diagnostic> {
    let word = text.trim();
    if words.iter().any(|(name, _)| *name == word) {
        return Ok(Value::Text(word.to_string()));
    }
    let names: Vec<String> = words.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let help = match meant(word, words.iter().map(|(name, _)| *name)) {
        Some(name) => format!("did you mean \"{name}\"?"),
        None => format!("write {}", listed(&names, "or")),
    };
    Err(Diagnostic::new(format!("'{word}' is not one of {}", listed(&names, "and"))).remedy(help))
}

fn flow_order(text: &str) -> Result<Value, Diagnostic> {
    text.trim().parse().map(Value::FlowOrder).map_err(|_| {
        Diagnostic::new(format!("'{text}' is not an order of flows"))
            .remedy("write \"sequential\", \"random\" (uniform), \"random:SEED\" or \"zipf:EXPONENT\"")
    })
}

fn dut(text: &str) -> Result<Dut, Diagnostic> {
    let text = text.trim();
    if let Some(plain) = Dut::of_name(text) {
        return Ok(plain);
    }
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let number = || match value.trim().parse::<u32>() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(Diagnostic::new(format!("{name} needs a whole number from 1 to {}", u32::MAX))
            .remedy(format!("write \"{name}=1000\""))),
    };
    match name.trim() {
        "known-rate" => number().map(Dut::KnownRate),
        "known-loss" => number().map(Dut::KnownLoss),
        "known-duplication" => number().map(Dut::KnownDuplication),
        "known-delay" => match quantity::duration(value)? {
            ns @ 1..=200_000 => Ok(Dut::KnownDelay(ns)),
            _ => Err(Diagnostic::new(format!("known-delay is at most 200us, not '{value}'"))
                .remedy("write \"known-delay=20us\"")),
        },
        other => {
            let names: Vec<&str> = DUTS.iter().map(|(name, _)| *name).collect();
            let bare = names.iter().map(|n| n.split('=').next().unwrap_or(n));
            let help = match meant(other, bare) {
                Some(name) => format!("did you mean \"{name}\"?"),
                None => format!("write one of {}", listed(&names, "or")),
            };
            Err(Diagnostic::new(format!("'{text}' is not a kind of DUT")).remedy(help))
        }
    }
}

/// A text of a type that reads and shows it.
fn shown<T: FromStr + Display>(text: &str, what: &str, kind: &Kind) -> Result<Value, Diagnostic> {
    let read = text.trim().parse::<T>().map(|value| Value::Text(value.to_string()));
    read.map_err(|_| not(text, what, kind))
}

fn not(text: &str, what: &str, kind: &Kind) -> Diagnostic {
    Diagnostic::new(format!("'{text}' is not {what}")).remedy(format!("write {}", kind.wants()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Raw {
        Raw::Text(text.into())
    }

    #[test]
    fn counts_have_bounds() {
        let kind = Kind::Count { least: 1, most: 10 };
        assert_eq!(read(&kind, &Raw::Integer(10)), Ok(Value::Count(10)));
        for (n, says) in [(0, "too few"), (11, "too many"), (-1, "negative"), (i128::MAX, "far too large")] {
            assert!(read(&kind, &Raw::Integer(n)).unwrap_err().message.contains(says), "{n}");
        }
        let quoted = read(&kind, &text("1,0")).unwrap_err();
        assert_eq!(quoted.remedy.as_deref(), Some("write 10 without quotes"));
    }

    #[test]
    fn every_kind_of_dut_is_read() {
        for (name, _) in DUTS {
            let example = name.replace("=N", "=5").replace("=T", "=5us");
            assert!(matches!(read(&Kind::Dut, &text(&example)), Ok(Value::Dut(_))), "{name}");
        }
        assert_eq!(dut("known-delay=5us").map(|d| d.to_string()), Ok("known-delay=5000ns".into()));
        assert_eq!(dut("known-delay=5000ns"), dut("known-delay=5us"));
        assert!(dut("frowarding").unwrap_err().remedy.unwrap().contains("\"forwarding\""));
        for bad in ["", "known-loss=0", "known-loss", "known-delay=1s", "known-delay=5", "pf"] {
            assert!(dut(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bare_numbers_are_asked_for_their_unit() {
        let kind = Kind::Duration { least: 1, most: 100_000_000_000 };
        let wrong = read(&kind, &Raw::Integer(250)).unwrap_err();
        assert!(wrong.message.contains("250 of what?") && wrong.remedy.unwrap().contains("\"250 ms\""));
        let wrong = read(&kind, &text("2 min")).unwrap_err();
        assert_eq!(wrong.message, "2 min is too much: at most 100 s");
        assert!(read(&Kind::Size, &Raw::Integer(64)).unwrap_err().remedy.unwrap().contains("\"64 B\""));
    }

    #[test]
    fn networks_and_addresses() {
        assert_eq!(read(&Kind::Network, &text("203.0.113.0/24")), Ok(Value::Text("203.0.113.0/24".into())));
        assert!(read(&Kind::Network, &text("203.0.113.0/33")).is_err());
        assert!(read(&Kind::Address, &text("198.18.0.300")).is_err());
        assert!(read(&Kind::Mac, &text("02:00:00:00:00:zz")).is_err());
    }
}
