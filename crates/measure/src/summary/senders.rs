//! The threads that send in the embedded lab: how long each ran, waited for its CPU, and which programs had that CPU meanwhile.

use crate::record::{CpuHolder, ProgramTime, SenderTime, TrialRecord};
use std::collections::BTreeMap;

/// The time of the threads that sent on a CPU, as shares of the time of their loads.
#[derive(Debug, Clone, PartialEq)]
pub struct Sending {
    /// They ran.
    pub ran: f64,
    /// They were ready to run, and another task had the CPU.
    pub waited: f64,
    /// Whether the programs that had the CPU meanwhile were counted.
    pub is_counted: bool,
    /// These programs, the largest share first.
    pub others: Vec<Holder>,
}

/// A program that had the CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Holder {
    /// Name, as the system shows it.
    pub name: String,
    /// Whether it is a thread of the kernel.
    pub of_kernel: bool,
    /// Share of the time of the loads.
    pub share: f64,
}

/// The kernel's threads for softirqs, and the share of a CPU that they may have for the lab's own frames: in labs of all kinds, they had up
/// to 3 %.
const SOFTIRQS: &str = "ksoftirqd";
const OF_LAB: f64 = 0.05;

impl Sending {
    /// Of these times on one CPU; `None` without any.
    pub fn of<'t>(times: impl IntoIterator<Item = &'t SenderTime>) -> Option<Sending> {
        let (mut all, mut counted_ns, mut ran, mut waited) = (0, 0, 0, 0);
        let mut others: BTreeMap<&str, (bool, u64)> = BTreeMap::new();
        for time in times {
            all += time.load_ns;
            ran += time.ran_ns;
            waited += time.waited_ns;
            let Some(holders) = &time.others else {
                continue;
            };
            counted_ns += time.counted_ns;
            for CpuHolder {
                name,
                of_kernel,
                ns,
            } in holders
            {
                let (is_of_kernel, sum) = others.entry(name).or_default();
                *is_of_kernel = *of_kernel;
                *sum += ns;
            }
        }
        let others = others.into_iter().map(|(name, (of_kernel, ns))| Holder {
            name: name.into(),
            of_kernel,
            share: ns as f64 / counted_ns.max(1) as f64,
        });
        let mut others: Vec<Holder> = others.collect();
        others.sort_by(|a, b| b.share.total_cmp(&a.share));
        let share = |ns: u64| ns as f64 / all as f64;
        let (mut ran, mut waited) = (share(ran), share(waited));
        // A thread may go on in a softirq after another was woken: the kernel's scheduler counts this as waiting.
        if counted_ns > 0 {
            let held: f64 = others.iter().map(|other| other.share).sum();
            let ran_on = (waited - held).max(0.0);
            (ran, waited) = (ran + ran_on, waited - ran_on);
        }
        (all > 0).then_some(Sending {
            ran,
            waited,
            is_counted: counted_ns > 0,
            others,
        })
    }

    /// Programs whose time is not the lab's.
    pub fn disturbing(&self) -> Vec<&Holder> {
        let is_own = |other: &Holder| other.name == SOFTIRQS && other.share < OF_LAB;
        self.others.iter().filter(|other| !is_own(other)).collect()
    }

    /// The share of the time that these programs had the CPU: none while the threads ran.
    pub fn disturbed(&self) -> f64 {
        let all: f64 = self.disturbing().iter().map(|other| other.share).sum();
        all.min(1.0 - self.ran).max(0.0)
    }
}

/// The programs that had the CPUs of the threads that send, by name, most time first: of those with this share of the time at least;
/// `None` where they were not counted.
pub fn beside(trials: &[TrialRecord], least: f64) -> Option<Vec<ProgramTime>> {
    let senders = trials.iter().flat_map(|trial| &trial.senders);
    let counted: Vec<&SenderTime> = senders.filter(|time| time.others.is_some()).collect();
    let sending = Sending::of(counted.iter().copied())?;
    let all_ns: u64 = counted.iter().map(|time| time.counted_ns).sum();
    let noticeable = sending.disturbing().into_iter();
    let noticeable = noticeable.filter(|other| other.share >= least);
    let time = |other: &Holder| ProgramTime {
        name: other.name.clone(),
        seconds: other.share * all_ns as f64 / 1e9,
    };
    Some(noticeable.map(time).collect())
}
