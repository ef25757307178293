//! Warnings about the machines that measured.

use super::*;
use crate::record::CpuShare;

#[test]
fn what_the_hypervisor_takes_is_named_by_host() {
    let said = |lab: LabKind| {
        let mut campaign = campaign();
        campaign.asked.lab = lab;
        let stolen = |steal: f64| {
            vec![CpuShare {
                cpu: 0,
                busy: 0.5,
                softirq: 0.5,
                steal,
                user: 0.0,
                others: None,
                frequency: None,
            }]
        };
        let mut trials: Vec<TrialRecord> = (0..9)
            .map(|n| trial(n, n as u32 / 3, n as usize % 3, 1e6, 0))
            .collect();
        for trial in &mut trials {
            trial.cpus = stolen(0.05);
            if lab == LabKind::Hosts {
                trial.tester_cpus =
                    [("gen".into(), stolen(0.2)), ("sink".into(), stolen(0.0))].into();
            }
        }
        let all = summarise(&campaign, &trials, Stopped::Trials, 0)
            .warnings
            .into_iter();
        all.filter_map(|warning| warning.spoils)
            .filter(|text| text.contains("hypervisor"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        said(LabKind::Namespaces),
        ["the hypervisor took 5.0 % of the CPUs' time"]
    );
    let of_hosts = [
        "the hypervisor took 5.0 % of the time of the DUT's CPUs",
        "the hypervisor took 20.0 % of the time of gen's CPUs",
    ];
    assert_eq!(said(LabKind::Hosts), of_hosts);
}

/// Another linerate took most of a CPU by softirqs and system calls: user time shows next to nothing of it.
#[test]
fn all_time_of_others_counts_and_not_user_time_alone() {
    let mut campaign = campaign();
    campaign.asked.receiver = "xdp".into();
    let mut trials = trials(1.5e6);
    for (cpu, others) in [(1, 0.9), (0, 1.0)] {
        let share = CpuShare {
            cpu,
            busy: 1.0,
            softirq: 0.5,
            steal: 0.0,
            user: 0.03,
            others: Some(others),
            frequency: None,
        };
        trials.iter_mut().for_each(|trial| trial.cpus.push(share));
    }
    let spoils = |trials: &[TrialRecord]| {
        let summary = summarise(&campaign, trials, Stopped::Precise, 0);
        summary
            .warnings
            .into_iter()
            .find_map(|warning| warning.spoils)
    };
    assert_eq!(
        spoils(&trials).unwrap(),
        "other programs took 90 % of a CPU of the lab"
    );
    trials
        .iter_mut()
        .flat_map(|trial| &mut trial.cpus)
        .for_each(|cpu| cpu.others = None);
    assert_eq!(spoils(&trials), None, "an older record");
}

#[test]
fn other_programs_of_hosts_are_named_by_host() {
    let share = |cpu, softirq, user, others| CpuShare {
        cpu,
        busy: 1.0,
        softirq,
        steal: 0.0,
        user,
        others,
        frequency: None,
    };
    let said = |mode: Mode, cpus: &[CpuShare]| {
        let mut campaign = campaign();
        campaign.asked.mode = mode;
        let mut trials = trials(1.5e6);
        for trial in &mut trials {
            trial.cpus = cpus.to_vec();
            if mode == Mode::Hosts {
                let of = |others| vec![share(0, 0.5, 0.2, None), share(1, 0.5, 0.2, Some(others))];
                trial.tester_cpus = [("gen".into(), of(0.25)), ("sink".into(), of(0.01))].into();
            }
        }
        let all = summarise(&campaign, &trials, Stopped::Trials, 0)
            .warnings
            .into_iter();
        all.filter_map(|warning| warning.spoils).collect::<Vec<_>>()
    };
    // Of a CPU that does not forward, and of a tester's CPU that does not work for a load, nothing is said.
    let dut = [share(0, 0.01, 0.9, None), share(1, 0.6, 0.3, None)];
    assert_eq!(
        said(Mode::Hosts, &dut),
        [
            "other programs took 30 % of a CPU of the DUT that forwards",
            "other programs took 25 % of a CPU of gen"
        ]
    );
    let end_hosts = [share(0, 0.1, 0.5, Some(0.4)), share(1, 0.1, 0.5, Some(0.4))];
    assert_eq!(
        said(Mode::EndHosts, &end_hosts),
        ["other programs took 40 % of the CPUs' time"]
    );
}

/// Two outliers of ten are none of the machine's speed; half of the trials are.
#[test]
fn a_tester_whose_rate_moves_is_unsteady() {
    let of = |faster: &[usize], asked: Option<f64>| {
        let mut trials: Vec<TrialRecord> = (0..11)
            .map(|n| trial(n, n as u32, 0, 5e6 + 1e4 * n as f64, 0))
            .collect();
        for n in faster {
            trials[*n].rates.as_mut().unwrap().received = 10e6;
        }
        trials.iter_mut().for_each(|trial| trial.asked_fps = asked);
        let rows = summarise(&campaign(), &trials, Stopped::Precise, 0).rows;
        rows[0].unsteady
    };
    assert_eq!(of(&[], None), None);
    assert_eq!(of(&[3], None), None, "an outlier");
    assert_eq!(of(&[3, 4, 5], None), Some([5.01e6, 10e6]));
    assert_eq!(
        of(&[3, 4, 5], Some(1e6)),
        None,
        "loads that a search asked for"
    );
    // The rates of a DUT are its own.
    let mut moving = trials(1.5e6);
    let forwarding = moving.iter_mut().filter(|trial| trial.slot == 1);
    for (n, trial) in forwarding.enumerate() {
        trial.rates.as_mut().unwrap().received *= 1.0 + (n % 2) as f64;
    }
    let rows = summarise(&campaign(), &moving, Stopped::Precise, 0).rows;
    assert_eq!(rows[1].unsteady, None);
}

#[test]
fn a_cpu_that_other_programs_fill_is_not_full() {
    let share = |cpu, others| CpuShare {
        cpu,
        busy: 0.99,
        softirq: 0.9,
        steal: 0.0,
        user: 0.0,
        others: Some(others),
        frequency: None,
    };
    let mut trials = trials(600_000.0);
    for trial in &mut trials {
        trial.cpus = vec![share(0, 0.98), share(1, 0.1)];
    }
    let summary = summarise(&campaign(), &trials, Stopped::Precise, 0);
    assert!(summary.rows.iter().all(|row| row.full_cpus == [1]));
}
