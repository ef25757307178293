//! Carries a test out, and records every trial as soon as it is over.

use super::Conduct;
use crate::interrupt::{self, Hosts, interrupted};
use crate::output::{FAILED, INTERRUPTED, print, show, tell};
use crate::progress::Progress;
use anyhow::Result;
use linerate_hosts::phases::{Action, Design, End, Phase, Report, Undone};
use linerate_import::conductor::{Recorder, Test, Trial, phase_name};
use linerate_linux::records::{TrialLog, utc_now};
use linerate_remote::{Driver, ExecutionTarget, Notice};
use linerate_report::format::Format;
use linerate_report::pages;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// Default folder of the records.
const FOLDER: &str = "linerate-results";

/// Carries a test out where its workers' steps run.
///
/// # Errors
/// Records cannot be written. Hosts have been reset by then.
pub fn carry(
    args: &Conduct,
    test: &Test,
    (at, places): (Vec<String>, Vec<ExecutionTarget>),
    format: &'static dyn Format,
) -> Result<ExitCode> {
    let records = TrialLog::create(Path::new(FOLDER), &test.name, args.output.as_deref())?;
    let wanted = args.wanted();
    let design = test.design(&wanted);
    let names = test.workers.iter().map(|worker| worker.name.as_str());
    let hosts = wanted.contains(&Phase::Reset).then(|| Hosts::announced(names));
    let mut campaign = Campaign {
        test,
        design: design.clone(),
        hosts,
        format,
        recorder: Recorder::new(test, at),
        records,
        progress: Progress::of_steps(),
        trials: 0,
        failed: 0,
        whole: true,
        error: None,
    };
    let mut observer = |notice: Notice<'_>| campaign.observe(&notice);
    Driver::new(design, places, &mut observer).run(&interrupt::INTERRUPTED)?;
    campaign.finish()
}

/// A test under way.
struct Campaign<'t> {
    test: &'t Test,
    design: Design,
    /// For the message of an interrupt; `None` where hosts are not reset.
    hosts: Option<&'static Hosts>,
    format: &'static dyn Format,
    recorder: Recorder<'t>,
    records: TrialLog,
    progress: Progress,
    trials: u32,
    failed: u32,
    whole: bool,
    /// Why a trial was not recorded.
    error: Option<anyhow::Error>,
}

impl Campaign<'_> {
    fn observe(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Action { at_ns, action } => self.action(*at_ns, action),
            Notice::Trouble(trouble) => self.say(trouble),
            Notice::Started(started) => self.recorder.started(started.skew_ns, started.error_ns),
            Notice::Back { host } => self.say(&format!("{}: connected again", self.test.workers[*host].name)),
        }
    }

    fn action(&mut self, at_ns: u64, action: &Action) {
        self.changed(action);
        match action {
            Action::Phase { trial, phase } => {
                self.recorder.phase(at_ns, utc_now);
                let (trial, of) = (trial + 1, self.test.trials);
                self.progress.say(format!("trial {trial} of {of}: {}", phase_name(*phase)));
            }
            Action::Report(report) => {
                if let Some(complaint) = report.complaint(&self.design) {
                    self.say(&complaint);
                }
                self.recorder.step(report.clone());
            }
            Action::GivenUp(host) => {
                self.say(&format!("{}: given up, and the test with it", self.test.workers[*host].name));
            }
            Action::Trial { trial, verdicts } => {
                let trial = self.recorder.trial(*trial, verdicts, interrupted(), at_ns);
                if let Err(error) = self.trial(&trial) {
                    self.error.get_or_insert(error);
                    // A trial that is not kept is not worth its time: no other one is begun.
                    interrupt::INTERRUPTED.store(true, Ordering::Relaxed);
                }
            }
            Action::Start(_) | Action::End(..) | Action::Over => {}
        }
    }

    /// Notes which hosts wait for their reset.
    fn changed(&self, action: &Action) {
        let Some(hosts) = self.hosts else { return };
        let resets = |host: usize| self.test.workers[host].steps(Phase::Reset).len();
        match action {
            Action::Start(step) if step.phase != Phase::Reset && resets(step.host) > 0 => {
                hosts.changed(step.host, true);
            }
            Action::Report(Report { step, end: End { may_still_run: false, .. }, .. })
                if step.phase == Phase::Reset && step.step + 1 == resets(step.host) =>
            {
                hosts.changed(step.host, false);
            }
            Action::Trial { verdicts, .. } => {
                let back = verdicts.iter().enumerate().filter(|(_, verdict)| verdict.undone != Undone::No);
                back.for_each(|(host, _)| hosts.changed(host, false));
            }
            _ => {}
        }
    }

    fn trial(&mut self, trial: &Trial) -> Result<()> {
        self.trials += 1;
        self.failed += trial.failed_steps();
        self.whole &= trial.is_whole();
        let line = serde_json::to_string(trial)? + "\n";
        self.records.write(trial.trial.into(), &line)?;
        self.progress.aside(|| match self.format.name() {
            "json" => print(&line),
            _ => show(self.format, &pages::conducted(trial)),
        });
        Ok(())
    }

    fn say(&self, what: &str) {
        self.progress.aside(|| tell(pages::ascii(what)));
    }

    fn finish(self) -> Result<ExitCode> {
        let Campaign { format, records, progress, trials, failed, whole, error, .. } = self;
        drop(progress);
        if format.name() != "json" && trials > 0 && error.is_none() {
            show(format, &pages::conducted_all(trials, failed, &records.path().display().to_string()));
        }
        match error {
            Some(error) => Err(error),
            None if interrupted() => Ok(ExitCode::from(INTERRUPTED)),
            None if whole => Ok(ExitCode::SUCCESS),
            None => Ok(ExitCode::from(FAILED)),
        }
    }
}
