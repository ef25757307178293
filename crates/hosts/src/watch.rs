//! Counters as other systems print them, for `linerate watch`: the names that drivers give to the counters of their queues, and
//! FreeBSD's commands. A host prints a sample as sections, each behind a line `@@ NAME`.

pub mod freebsd;
pub mod queues;

use crate::systems::text::lines;
use std::collections::BTreeMap;

/// Begins a section.
pub const SECTION: &str = "@@ ";
/// The name of the section that ends a sample.
pub const END: &str = "end";

/// The sections of a sample by name. Names may have a second word, such as an interface. Of two of a name the later counts.
pub fn sections(text: &str) -> BTreeMap<&str, &str> {
    let mut all = BTreeMap::new();
    let text = &text[text.find(SECTION).unwrap_or(text.len())..];
    for section in text.split(&format!("\n{SECTION}")) {
        let (name, body) = section.split_once('\n').unwrap_or((section, ""));
        all.insert(name.trim_start_matches(SECTION).trim(), body);
    }
    all
}

/// Nanoseconds of `date +%s.%N`; `None` where date does not know %N.
pub fn fine_time(text: &str) -> Option<u64> {
    let (seconds, fraction) = lines(text).next()?.trim().split_once('.')?;
    let is_fine = fraction.len() == 9 && fraction.bytes().all(|b| b.is_ascii_digit());
    let ns = fraction.parse::<u64>().ok().filter(|_| is_fine)?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(ns)
}

#[cfg(test)]
mod tests;
