//! Shared parts of the tests of campaigns: designs, and observations of their execution.

use crate::sshd::SshLab;
use linerate_hosts::phases::{
    Action, Design, Host, Mode, Phase, Report, Rules, Step, StepId, Verdict,
};
use linerate_remote::{Driver, ExecutionTarget, Notice, Started};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Nanoseconds of a second.
pub const S: u64 = 1_000_000_000;

/// Observations of a campaign.
#[derive(Debug, Default)]
pub struct Seen {
    pub starts: Vec<(StepId, String)>,
    pub reports: Vec<Report>,
    pub complaints: Vec<String>,
    pub troubles: Vec<String>,
    pub verdicts: Vec<Vec<Verdict>>,
    pub started: Vec<Started>,
    pub took: Duration,
}

impl Seen {
    fn take(&mut self, notice: &Notice<'_>, design: &Design) {
        match notice {
            Notice::Action {
                action: Action::Start(id),
                ..
            } => {
                let step = &design.hosts[id.host].steps(id.phase)[id.step];
                self.starts.push((*id, step.command.clone()));
            }
            Notice::Action {
                action: Action::Report(report),
                ..
            } => {
                self.complaints.extend(report.complaint(design));
                self.reports.push(report.clone());
            }
            Notice::Action {
                action: Action::Trial { verdicts, .. },
                ..
            } => self.verdicts.push(verdicts.clone()),
            Notice::Started(started) => self.started.push((*started).clone()),
            Notice::Trouble { text, .. } => self.troubles.push((*text).to_string()),
            _ => {}
        }
    }

    /// Output of the steps of a phase on a host, by their order.
    pub fn output(&self, host: usize, phase: Phase) -> Vec<String> {
        let there = self
            .reports
            .iter()
            .filter(|r| r.step.host == host && r.step.phase == phase);
        there
            .map(|r| String::from_utf8_lossy(&r.end.output.bytes()).into_owned())
            .collect()
    }
}

/// A step that is waited for.
pub fn waited(command: &str, seconds: u64) -> Step {
    Step {
        command: command.into(),
        mode: Mode::Waited {
            limit_ns: seconds * S,
        },
    }
}

/// A host with a step in each phase.
pub fn host(name: &str, run: Step) -> Host {
    let [set_up, collect, reset] =
        ["echo set-up", "echo collect", "echo reset"].map(|command| vec![waited(command, 10)]);
    Host {
        name: name.into(),
        phases: [set_up, vec![run], collect, reset],
        ..Host::default()
    }
}

/// One trial on these hosts.
pub fn design(hosts: Vec<Host>) -> Design {
    Design {
        trials: 1,
        phases: [true; 4],
        hosts,
        rules: Rules::default(),
    }
}

/// Carries a campaign out on the hosts of a lab. `at` is called with every notice.
pub fn campaign(
    lab: &SshLab,
    design: Design,
    interrupted: &AtomicBool,
    at: &mut (dyn FnMut(&Notice<'_>) + Send),
) -> Seen {
    let targets: Vec<_> = design
        .hosts
        .iter()
        .map(|host| lab.target(&host.name))
        .collect();
    lab.enter(|| {
        let connected = ExecutionTarget::connect_all(&targets, None).into_iter();
        let places: Vec<ExecutionTarget> = connected
            .map(|c| c.unwrap_or_else(|e| panic!("{e}")))
            .collect();
        let began = Instant::now();
        let mut seen = Seen::default();
        let told = design.clone();
        let mut observe = |notice: Notice<'_>| {
            seen.take(&notice, &told);
            at(&notice);
        };
        Driver::new(design, places, &mut observe)
            .run(interrupted)
            .unwrap();
        Seen {
            took: began.elapsed(),
            ..seen
        }
    })
}
