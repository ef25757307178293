//! Counters as other systems print them, for `linerate watch`: the names that drivers give to the counters of their queues, and
//! the commands of other systems. A host prints a sample as the sections of [`counters`].

pub mod freebsd;
pub mod linux;
pub mod queues;

use crate::clock::Stamp;
use crate::counters;
use crate::systems::Kernel;
use crate::systems::text::sections;
use linerate_measure::watch::Sample;
use std::collections::BTreeMap;

/// The line that ends a sample.
pub const END: &str = "==> end <==";
/// The answer with the time of a sample.
const TIME: &str = "date +%s.%N";

/// How a host is watched.
#[derive(Debug)]
pub struct Watching {
    /// Lines for the shell that run once.
    pub before: String,
    /// Lines that run for each sample.
    pub each: String,
    /// Lines that run for some samples: rules.
    pub rules: &'static str,
    /// Makes a sample of a host's output and the time when the output arrived, which counts if the host's clock is too coarse.
    pub sample: fn(&str, u64) -> Sample,
}

impl Watching {
    /// For hosts with this kernel, if they can be watched.
    pub fn of(kernel: Kernel) -> Option<Watching> {
        let [before, each] = counters::sampling(kernel);
        Some(match kernel {
            Kernel::FreeBsd => Watching {
                before: before + freebsd::BEFORE,
                each: each + freebsd::CARDS,
                rules: freebsd::RULES,
                sample: freebsd::sample,
            },
            Kernel::Linux => Watching {
                before,
                each: each + linux::CARDS,
                rules: linux::RULES,
                sample: linux::sample,
            },
            Kernel::OpenBsd | Kernel::NetBsd => return None,
        })
    }
}

/// The answers of a sample.
struct Answers<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Answers<'a> {
    /// Of two with one title the later counts.
    fn of(text: &'a str) -> Answers<'a> {
        Answers(sections(text).into_iter().collect())
    }

    /// The answer with this title; empty if there is none.
    fn to(&self, title: &str) -> &'a str {
        self.0.get(title).copied().unwrap_or_default()
    }

    /// A sample of their time, without it of `here_ns`, which is said.
    fn begin(&self, here_ns: u64) -> Sample {
        let at_ns = fine_time(self.to(TIME));
        let mut sample = Sample {
            at_ns: at_ns.unwrap_or(here_ns),
            ..Sample::default()
        };
        if at_ns.is_none() {
            sample.missing.push(
                "the host's clock shows whole seconds: rates are by the time at which samples arrived".into(),
            );
        }
        sample
    }

    /// When the counters of an answer were read, if the host's clock is fine enough: its first line.
    fn read_at(&self, answer: &str) -> u64 {
        fine_time(answer)
            .filter(|_| fine_time(self.to(TIME)).is_some())
            .unwrap_or(0)
    }
}

/// Nanoseconds in the first line of an answer, of `date +%s.%N`; `None` where date does not know %N.
fn fine_time(text: &str) -> Option<u64> {
    let stamp = Stamp::parse(text.lines().next()?).filter(|stamp| stamp.error_ns == 0)?;
    stamp.ns.try_into().ok()
}

#[cfg(test)]
mod tests;
