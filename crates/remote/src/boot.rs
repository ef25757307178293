//! The boot that a host is in, and waits for a host that goes down or comes back.

use crate::{ExecutionTarget, Order, Result};
use linerate_hosts::systems::Kernel;
use std::time::{Duration, Instant};

/// How long a quick command may take. One that reboots often never answers.
pub(crate) const COMMAND: Duration = Duration::from_secs(10);
/// Between two tries to reach a host.
const PAUSE: Duration = Duration::from_millis(250);

/// Tries something again and again until it succeeds; `None` when the time is up.
pub(crate) fn within<T>(
    limit: Duration,
    mut attempt: impl FnMut() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let began = Instant::now();
    while began.elapsed() <= limit {
        if let Some(done) = attempt()? {
            return Ok(Some(done));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(None)
}

/// Whether a host still runs commands.
pub(crate) fn answers(place: &ExecutionTarget) -> bool {
    place
        .run(&Order::new("true").within(COMMAND), None)
        .is_ok_and(|finished| finished.is_success())
}

/// Identifies a boot of a host: a number that Linux draws at each, or the time of it by this machine's clock, from how long the
/// host's first process has run: its own clock may be set at any time.
pub fn mark(place: &ExecutionTarget, kernel: Kernel) -> Option<String> {
    let argv: &[&str] = match kernel {
        Kernel::Linux => &["cat", "/proc/sys/kernel/random/boot_id"],
        _ => &["ps", "-o", "etime=", "-p", "1"],
    };
    let finished = place
        .run(&Order::program(argv).within(COMMAND), None)
        .ok()?;
    let text = finished.text();
    let told = Some(text.trim()).filter(|text| finished.is_success() && !text.is_empty())?;
    match kernel {
        Kernel::Linux => Some(told.into()),
        _ => {
            let now = std::time::UNIX_EPOCH.elapsed().ok()?.as_secs();
            Some(format!("{BOOTED_AT}{}", now.checked_sub(elapsed(told)?)?))
        }
    }
}

/// Seconds of ps(1)'s elapsed time: `[[days-]hours:]minutes:seconds`.
fn elapsed(text: &str) -> Option<u64> {
    let (days, clock) = text
        .split_once('-')
        .map_or((Ok(0), text), |(days, clock)| (days.parse::<u64>(), clock));
    let parts: Vec<u64> = clock
        .split(':')
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    if !(2..=3).contains(&parts.len()) {
        return None;
    }
    let seconds = parts
        .iter()
        .try_fold(0u64, |sum, part| sum.checked_mul(60)?.checked_add(*part))?;
    days.ok()?.checked_mul(86_400)?.checked_add(seconds)
}

/// Whether two marks are of two boots, as far as both are known: they differ, or are times of boots that differ by more than clocks do.
pub(crate) fn is_other_boot(now: &Option<String>, then: &Option<String>) -> bool {
    let time = |mark: &String| mark.strip_prefix(BOOTED_AT)?.parse::<i64>().ok();
    match (now, then) {
        (Some(now), Some(then)) => match (time(now), time(then)) {
            (Some(a), Some(b)) => a.abs_diff(b) > DIFFER,
            _ => now != then,
        },
        _ => false,
    }
}

/// Seconds by which the times of one boot may differ: those that an answer takes count, too, and the clocks differ a little.
const DIFFER: u64 = COMMAND.as_secs() + 2;

/// How a mark begins that is the time of a boot, by this machine's clock in seconds.
const BOOTED_AT: &str = "booted at ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_times_of_ps() {
        assert_eq!(elapsed("00:07"), Some(7));
        assert_eq!(elapsed("01:02:03"), Some(3723));
        assert_eq!(elapsed("12-00:00:01"), Some(12 * 86_400 + 1));
        for text in [
            "",
            "7",
            "a:b",
            "1:2:3:4",
            "-1:00",
            "99999999999999999999:00",
        ] {
            assert_eq!(elapsed(text), None, "{text}");
        }
    }

    #[test]
    fn answers_come_late_and_clocks_differ_a_little_but_boots_do_not() {
        let other = |now: &str, then: &str| is_other_boot(&Some(now.into()), &Some(then.into()));
        assert!(!other("booted at 1000", "booted at 1012"));
        assert!(other("booted at 1000", "booted at 1013"));
        assert!(!other("a", "a") && other("a", "b"));
        assert!(!is_other_boot(&None, &Some("a".into())));
    }
}
