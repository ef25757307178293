//! Kinds of DUT: names, some with a number, a time or a rate.

use super::DURATION;
use crate::diagnostic::{Diagnostic, listed, meant};
use crate::dut::{DUTS, Dut, Segment};
use crate::names::Named;

/// A kind of DUT.
pub(in super::super) fn dut(text: &str) -> Result<Dut, Diagnostic> {
    let text = text.trim();
    if let Some(plain) = Dut::of_name(text) {
        return Ok(plain);
    }
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let positive = |text: &str| text.trim().parse::<u32>().ok().filter(|n| *n > 0);
    // On the CPU that forwards: not for long.
    let held_up = |text: &str| {
        let ns = DURATION.read(text).ok()?.as_u64()?;
        u32::try_from(ns)
            .ok()
            .filter(|ns| (1..=200_000).contains(ns))
    };
    let two = |wants: &str, example: &str| {
        Err(
            Diagnostic::new(format!("{name} needs {wants}, not '{value}'"))
                .remedy(format!("write \"{name}={example}\"")),
        )
    };
    let number = || match positive(value) {
        Some(n) => Ok(n),
        None => Err(Diagnostic::new(format!(
            "{name} needs a whole number from 1 to {}",
            u32::MAX
        ))
        .remedy(format!("write \"{name}=1000\""))),
    };
    match name.trim() {
        "known-rate" => number().map(Dut::KnownRate),
        "known-loss" if value.contains('@') => {
            let of_kind = value
                .split_once('@')
                .and_then(|(n, kind)| Some((positive(n)?, Segment::of_name(kind)?)));
            of_kind
                .map(|(one_in, of)| Dut::KnownLossOf { one_in, of })
                .ok_or_else(|| {
                    Diagnostic::new(format!(
                        "known-loss needs a whole number and a kind of frame, not '{value}'"
                    ))
                    .remedy(format!(
                        "write \"known-loss=10@syn\"; the kinds are {}",
                        Segment::listed()
                    ))
                })
        }
        "known-loss" => number().map(Dut::KnownLoss),
        "known-numbers" => number().map(Dut::KnownNumbers),
        "known-duplication" => number().map(Dut::KnownDuplication),
        "known-delay" => match DURATION.read(value)?.as_u64() {
            Some(ns @ 1..=200_000) => Ok(Dut::KnownDelay(ns)),
            _ => Err(
                Diagnostic::new(format!("known-delay is at most 200us, not '{value}'"))
                    .remedy("write \"known-delay=20us\""),
            ),
        },
        "known-delays" => match of_two(value, '/', held_up) {
            Some([one, other]) => Ok(Dut::KnownDelays([one, other])),
            None => two("two times up to 200us", "10us/50us"),
        },
        "known-queue" => match of_two(value, '@', positive) {
            Some([frames, rate]) => Ok(Dut::KnownQueue { frames, rate }),
            None => two("frames and frames a second", "256@1000000"),
        },
        "known-outage" => match of_two(value, '@', |text| DURATION.read(text).ok()?.as_u64()) {
            Some([ns, after_ns]) => Ok(Dut::KnownOutage { ns, after_ns }),
            None => two("its length and its beginning", "100ms@1s"),
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

/// Both parts of a text.
fn of_two<T>(text: &str, separator: char, read: impl Fn(&str) -> Option<T>) -> Option<[T; 2]> {
    let (one, other) = text.split_once(separator)?;
    Some([read(one)?, read(other)?])
}
