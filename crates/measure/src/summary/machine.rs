//! Warnings about the machines that measured: time that their CPUs spent on others, and turns with another linerate.

use super::senders::Sending;
use crate::record::{Campaign, CpuShare, LabKind, Mode, TrialRecord};
use linerate_stats::{median, sorted};
use linerate_wire::units::counted;
use std::collections::BTreeSet;

/// A warning, and [`Warning::spoils`](crate::record::Warning::spoils).
pub(super) type Said = (String, Option<String>);

pub(super) fn warnings(campaign: &Campaign, trials: &[TrialRecord]) -> impl Iterator<Item = Said> {
    let stolen = stolen(campaign, trials);
    other_programs(campaign, trials)
        .into_iter()
        .chain(stolen)
        .chain(turns(trials))
}

/// The hypervisor's part of the time of CPUs: of this machine, or of each host.
fn stolen(campaign: &Campaign, trials: &[TrialRecord]) -> Vec<Said> {
    let hosts: BTreeSet<&String> = trials.iter().flat_map(|t| t.tester_cpus.keys()).collect();
    let of = |host: Option<&str>, cpus: &mut dyn Iterator<Item = &CpuShare>| {
        let steal =
            median(&cpus.map(|c| c.steal).collect::<Vec<_>>()).filter(|steal| *steal >= 0.01)?;
        let whose = host.map_or("the CPUs' time".into(), |host| {
            format!("the time of {host}'s CPUs")
        });
        let took = format!("the hypervisor took {:.1} % of {whose}", 100.0 * steal);
        Some((
            format!("{took} (steal): absolute rates are too low; ratios suffer less"),
            Some(took),
        ))
    };
    let dut = (campaign.asked.lab == LabKind::Hosts).then_some("the DUT");
    let of_tester = |host: &String| {
        of(
            Some(host),
            &mut trials
                .iter()
                .filter_map(|t| t.tester_cpus.get(host))
                .flatten(),
        )
    };
    let of_dut = of(dut, &mut trials.iter().flat_map(|t| &t.cpus));
    of_dut
        .into_iter()
        .chain(hosts.into_iter().filter_map(of_tester))
        .collect()
}

/// Time that others used on the CPUs of the lab, or of each of its hosts, in the mean trial.
fn other_programs(campaign: &Campaign, trials: &[TrialRecord]) -> Vec<Said> {
    let mean = |of: &dyn Fn(&TrialRecord) -> f64| {
        trials.iter().map(of).sum::<f64>() / trials.len().max(1) as f64
    };
    let most =
        |cpus: &[CpuShare], of: &dyn Fn(&CpuShare) -> f64| cpus.iter().map(of).fold(0.0, f64::max);
    let hosts = campaign.asked.lab == LabKind::Hosts;
    let of_dut = mean(&|trial| {
        let senders = trial.senders.iter().filter_map(|time| Sending::of([time]));
        senders.map(|sending| sending.disturbed()).fold(
            most(&trial.cpus, &|cpu| of_others(campaign, cpu).unwrap_or(0.0)),
            f64::max,
        )
    });
    let of_tester = |host: &str| {
        let of = |cpu: &CpuShare| cpu.others.unwrap_or(0.0);
        mean(&|trial| {
            trial
                .tester_cpus
                .get(host)
                .map_or(0.0, |cpus| most(cpus, &of))
        })
    };
    let whose = match campaign.asked.mode {
        Mode::Hosts => "a CPU of the DUT that forwards".into(),
        Mode::EndHosts => "the CPUs' time".into(),
        Mode::Inline | Mode::Threaded => "a CPU of the lab".to_string(),
    };
    let testers: BTreeSet<&String> = trials.iter().flat_map(|t| t.tester_cpus.keys()).collect();
    let testers = testers
        .into_iter()
        .map(|host| (format!("a CPU of {host}"), of_tester(host)));
    let verb = campaign.asked.command.get(1).map_or("", String::as_str);
    let remedy = match (hosts, verb) {
        (true, _) => "stop them",
        (false, "bench" | "search" | "rfc2544") => {
            "stop them, or give the lab other CPUs with --cpus"
        }
        (false, _) => {
            "stop them, or give the lab other CPUs with generator-cpus and dut-cpus in [lab] of the plan (of one that comes with linerate, in a copy: linerate plan example NAME)"
        }
    };
    let said = |(whose, taken): (String, f64)| {
        let took = format!("other programs took {:.0} % of {whose}", 100.0 * taken);
        (taken >= NOTICEABLE).then(|| {
            (
                format!("{took}: rates are too low and losses too high; {remedy}"),
                Some(took),
            )
        })
    };
    [(whose, of_dut)]
        .into_iter()
        .chain(testers)
        .filter_map(said)
        .collect()
}

/// The least distance between the 10th and the 90th percentile of the tester's rates that is told, as a share of their median. Of 35
/// series of 8 to 37 trials on a virtual machine with two CPUs, 12 had at most 0.26, with single trials up to twice the median; one had
/// 0.303; the others, whose machine changed its speed for seconds, had 0.46 to 1.01.
const UNSTEADY: f64 = 0.35;
/// Fewer trials have no percentiles that an outlier does not decide.
const ENOUGH: usize = 6;

/// Where the rates of the tester alone lie, by their 10th and 90th percentile, if they are far apart.
pub(super) fn unsteady(trials: &[&TrialRecord]) -> Option<[f64; 2]> {
    let free = trials.iter().filter(|trial| trial.asked_fps.is_none());
    let rates = sorted(free.filter_map(|trial| Some(trial.rates?.received)));
    let last = rates
        .len()
        .checked_sub(1)
        .filter(|_| rates.len() >= ENOUGH)?;
    let at = |share: f64| rates[(share * last as f64).round() as usize];
    let [low, high] = [at(0.1), at(0.9)];
    (high - low > UNSTEADY * median(&rates)?).then_some([low, high])
}

/// Softirqs of a router's CPU that forwards, as a share of its time.
pub const FORWARDS: f64 = 0.1;
/// The least share of a CPU's time by other programs that is told.
pub const NOTICEABLE: f64 = 0.04;

/// The share of a CPU's time that others used; `None` where it is not known, or where the CPU does not work for the lab. User time is
/// others' where the kernel alone does the work: on routers, and in older records of labs whose frames XDP counts.
pub fn of_others(campaign: &Campaign, cpu: &CpuShare) -> Option<f64> {
    let roles = &campaign.roles;
    let by_xdp = campaign.asked.receiver == "xdp";
    let works = [&roles.generator, &roles.dut, &roles.receiver]
        .iter()
        .any(|role| role.contains(&cpu.cpu));
    match campaign.asked.mode {
        Mode::Hosts => (cpu.softirq >= FORWARDS).then_some(cpu.user),
        Mode::Inline | Mode::Threaded => {
            cpu.others.or(by_xdp.then_some(cpu.user)).filter(|_| works)
        }
        Mode::EndHosts => cpu.others,
    }
}

/// Another linerate, whose loads alternated with these.
fn turns(trials: &[TrialRecord]) -> Option<Said> {
    let waits: Vec<u64> = trials
        .iter()
        .map(|t| t.waited_ns)
        .filter(|ns| *ns > 0)
        .collect();
    let seconds = waits.iter().sum::<u64>() as f64 / 1e9;
    let text = format!(
        "another linerate measured on the same CPUs: {} of {} waited for its loads, {seconds:.1} s together; they took turns",
        waits.len(),
        counted(trials.len(), "trial")
    );
    (!waits.is_empty()).then_some((text, None))
}
