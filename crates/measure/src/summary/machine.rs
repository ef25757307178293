//! Warnings about the machines that measured: time that their CPUs spent on others, and turns with another linerate.

use super::Said;
use crate::record::{Campaign, CpuShare, LabKind, TrialRecord};
use linerate_stats::median;
use linerate_wire::units::counted;
use std::collections::BTreeSet;

pub(super) fn warnings(campaign: &Campaign, trials: &[TrialRecord]) -> impl Iterator<Item = Said> {
    let stolen = stolen(campaign, trials);
    other_programs(campaign, trials).into_iter().chain(stolen).chain(turns(trials))
}

/// The hypervisor's part of the time of CPUs: of this machine, or of each host.
fn stolen(campaign: &Campaign, trials: &[TrialRecord]) -> Vec<Said> {
    let hosts: BTreeSet<&String> = trials.iter().flat_map(|t| t.tester_cpus.keys()).collect();
    let of = |host: Option<&str>, cpus: &mut dyn Iterator<Item = &CpuShare>| {
        let steal = median(&cpus.map(|c| c.steal).collect::<Vec<_>>()).filter(|steal| *steal >= 0.01)?;
        let whose = host.map_or("the CPUs' time".into(), |host| format!("the time of {host}'s CPUs"));
        let took = format!("the hypervisor took {:.1} % of {whose}", 100.0 * steal);
        Some((format!("{took} (steal): absolute rates are too low; ratios suffer less"), Some(took)))
    };
    let dut = (campaign.asked.lab == LabKind::Hosts).then_some("the DUT");
    let of_tester =
        |host: &String| of(Some(host), &mut trials.iter().filter_map(|t| t.tester_cpus.get(host)).flatten());
    let of_dut = of(dut, &mut trials.iter().flat_map(|t| &t.cpus));
    of_dut.into_iter().chain(hosts.into_iter().filter_map(of_tester)).collect()
}

/// Time that others used on the lab's CPUs, in the mean trial. Older records have user time alone, which is others' where XDP does the work
/// inside the kernel.
fn other_programs(campaign: &Campaign, trials: &[TrialRecord]) -> Option<Said> {
    const NOTICEABLE: f64 = 0.04;
    let roles = &campaign.roles;
    let ours = |cpu: &u32| [&roles.generator, &roles.dut, &roles.receiver].iter().any(|r| r.contains(cpu));
    let by_user = |cpu: &CpuShare| Some(cpu.user).filter(|_| campaign.asked.receiver == "xdp");
    let of_others = |cpu: &CpuShare| cpu.others.or_else(|| by_user(cpu)).unwrap_or(0.0);
    let of = |t: &TrialRecord| t.cpus.iter().filter(|c| ours(&c.cpu)).map(of_others).fold(0.0, f64::max);
    let taken = trials.iter().map(of).sum::<f64>() / trials.len().max(1) as f64;
    (taken >= NOTICEABLE).then(|| {
        let took = format!("other programs took {:.0} % of a CPU of the lab", 100.0 * taken);
        let remedy =
            "rates are too low and losses too high; stop them, or give the lab other CPUs with --cpus";
        (format!("{took}: {remedy}"), Some(took))
    })
}

/// Another linerate, whose loads alternated with these.
fn turns(trials: &[TrialRecord]) -> Option<Said> {
    let waits: Vec<u64> = trials.iter().map(|t| t.waited_ns).filter(|ns| *ns > 0).collect();
    let seconds = waits.iter().sum::<u64>() as f64 / 1e9;
    let text = format!(
        "another linerate measured on the same CPUs: {} of {} waited for its loads, {seconds:.1} s together; they took turns",
        waits.len(),
        counted(trials.len(), "trial")
    );
    (!waits.is_empty()).then_some((text, None))
}
