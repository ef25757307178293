//! Activity of a host: one session there prints its counters again and again.

use crate::{ExecutionTarget, Fault, Heard, Order, Result, Stream};
use linerate_hosts::phases::Outcome;
use linerate_hosts::systems::Kernel;
use linerate_hosts::watch::{END, Watching};
use linerate_linux::ports::monotonic_ns;
use linerate_measure::watch::Sample;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes of a sample: one of many thousand counters has some 100 KB.
const MOST: usize = 32 << 20;
/// Bytes of its errors that are kept.
const COMPLAINT: usize = 1000;
/// Rules are read at most this often.
const RULES_EVERY: Duration = Duration::from_secs(1);

/// Gives a sample of a host for each interval until `end` is set. Between two there is the interval, and the time that the host's
/// commands take. `sudo`: by `sudo -n`, for counters that only root may read.
///
/// # Errors
/// The host was lost, or its system is neither Linux nor FreeBSD.
pub fn follow(
    target: &ExecutionTarget,
    sudo: bool,
    interval: Duration,
    end: &AtomicBool,
    each: &mut dyn FnMut(Sample),
) -> Result<()> {
    let uname = target.run(&Order::new("uname -s"), Some(end))?;
    let refuse = |said: String| Err(target.error(Fault::Command, said));
    let said = uname.text();
    let watching = match Kernel::said(&said).and_then(Watching::of) {
        Some(watching) => watching,
        None if uname.outcome == Outcome::Interrupted => return Ok(()),
        None => {
            return refuse(format!(
                "uname says {:?}: only Linux and FreeBSD can be watched",
                said.trim()
            ));
        }
    };
    let order = Order::new(script(&watching, interval))
        .within(Duration::MAX)
        .by_sudo(sudo);
    let order = Order {
        most_output: COMPLAINT,
        ..order
    };
    let mut text = Vec::new();
    let finished = target.exchange(&order, None, Some(end), &mut |heard| {
        let Heard::Wrote(Stream::Output, bytes) = heard else {
            return;
        };
        take(&mut text, &bytes, &mut |text| {
            let unix_ms = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |t| t.as_millis() as u64);
            let sample = (watching.sample)(&String::from_utf8_lossy(text), monotonic_ns());
            each(Sample {
                host: target.name().to_owned(),
                unix_ms,
                ..sample
            });
        });
    })?;
    match finished.outcome {
        Outcome::Interrupted => Ok(()),
        outcome => refuse(format!(
            "its counters end ({outcome:?}): {}",
            finished.errors().trim()
        )),
    }
}

fn script(
    Watching {
        before,
        each,
        rules,
        ..
    }: &Watching,
    interval: Duration,
) -> String {
    let rules_every = (RULES_EVERY.as_secs_f64() / interval.as_secs_f64())
        .ceil()
        .max(1.0);
    let each = format!("{each}\n[ $((n % {rules_every})) -ne 0 ] || {{\n{rules}\n}}\nn=$((n + 1))");
    format!("{before}\nn=0\n{}", every(&each, interval))
}

/// Prints a sample again and again.
pub(crate) fn every(each: &str, interval: Duration) -> String {
    let seconds = interval.as_secs_f64();
    // The exit of the last command, where a host lacks one, is no reason to stop.
    format!("while :; do\n{each}\necho '{END}'\nsleep {seconds:.3} || exit 1\ndone")
}

/// Adds bytes to a text, and hands on each whole sample.
pub(crate) fn take(text: &mut Vec<u8>, bytes: &[u8], each: &mut dyn FnMut(&[u8])) {
    let mark = format!("{END}\n");
    // The mark may have begun in what came before.
    let mut from = text.len().saturating_sub(mark.len());
    text.extend_from_slice(bytes);
    while let Some(at) = text[from..]
        .windows(mark.len())
        .position(|window| window == mark.as_bytes())
    {
        let end = from + at + mark.len();
        each(&text[..end]);
        text.drain(..end);
        from = 0;
    }
    if text.len() > MOST {
        text.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_cut_out_wherever_the_pieces_end() {
        let whole = b"==> a <==\n1\n==> end <==\n==> a <==\n2\n==> end <==\n==> a <==\n";
        for piece in 1..whole.len() {
            let (mut text, mut found) = (Vec::new(), Vec::new());
            for bytes in whole.chunks(piece) {
                take(&mut text, bytes, &mut |sample| {
                    found.push(String::from_utf8_lossy(sample).into_owned())
                });
            }
            assert_eq!(
                found,
                ["==> a <==\n1\n==> end <==\n", "==> a <==\n2\n==> end <==\n"],
                "{piece}"
            );
            assert_eq!(text, b"==> a <==\n");
        }
    }

    #[test]
    fn the_kernel_is_found_behind_a_greeting() {
        assert_eq!(Kernel::said("Welcome\nFreeBSD\n"), Some(Kernel::FreeBsd));
        assert_eq!(
            (Kernel::said("Linux"), Kernel::said("SunOS")),
            (Some(Kernel::Linux), None)
        );
    }

    #[test]
    fn the_shells_of_hosts_read_the_scripts() {
        let all = [
            (Kernel::FreeBsd, RULES_EVERY),
            (Kernel::Linux, Duration::from_millis(100)),
        ];
        for text in all.map(|(kernel, interval)| script(&Watching::of(kernel).unwrap(), interval)) {
            let read = std::process::Command::new("/bin/sh")
                .args(["-n", "-c", &text])
                .output()
                .unwrap();
            assert!(
                read.status.success() && read.stderr.is_empty(),
                "{read:?}\n{text}"
            );
        }
    }
}
