//! Rules for causes that the tests' machine cannot have: functions of FreeBSD, a hypervisor that takes time, CPUs without work.

mod common;
#[path = "rules/counters.rs"]
mod counters;
#[path = "rules/cpus.rs"]
mod cpus;
#[path = "rules/evidence.rs"]
mod evidence;
#[path = "rules/met.rs"]
mod met;
#[path = "rules/stacks.rs"]
mod stacks;

use common::Made;
use linerate_explain::explain;
use linerate_measure::record::{CpuShare, Explanation, Finding};
use linerate_profile::Profile;

/// Stacks of a DUT without a cause.
const FORWARDING: &str = "ithread_loop;iflib_rxeof;ether_input;ip_tryforward 700\n";

/// Explains a campaign of one slot on hosts.
fn explained(cpus: &[CpuShare], folded: &str) -> Explanation {
    counted(cpus, folded, &[])
}

/// Explains such a campaign, with counters of the DUT in each trial of a million frames.
fn counted(cpus: &[CpuShare], folded: &str, counters: &[(&str, u64)]) -> Explanation {
    let mut made = Made::new(&[1e6], |_, trials| {
        for trial in trials {
            trial.cpus = cpus.to_vec();
            // A router always counts some.
            let all = counters.iter().chain(&[("Ip.ForwDatagrams", 1_000_000)]);
            trial.dut = all.map(|(name, n)| (name.to_string(), *n)).collect();
        }
    });
    made.stacks.insert(0, Profile::of_folded(folded));
    explanation(&made)
}

fn explanation(made: &Made) -> Explanation {
    let mut all = explain(&made.records());
    assert_eq!(all.len(), 1);
    assert!(
        all[0].findings.iter().all(tried),
        "an experiment, or why there is none: {:?}",
        all[0].findings
    );
    all.remove(0)
}

/// Whether a finding has an experiment, or says why there is none.
fn tried(finding: &Finding) -> bool {
    finding.patch.is_some() != finding.untried.is_some()
}

fn first(explanation: &Explanation) -> Option<&str> {
    explanation
        .findings
        .first()
        .map(|finding| finding.cause.as_str())
}

fn cpu(cpu: u32, busy: f64, steal: f64) -> CpuShare {
    CpuShare {
        cpu,
        busy,
        softirq: busy,
        steal,
        user: 0.0,
        others: None,
        frequency: None,
    }
}
