//! `linerate lab check`: what would spoil a campaign in a real lab, told before it.

mod shown;

use crate::cli::LabCheck;
use crate::interrupt::{self, INTERRUPTED as STOP};
use crate::output::{FAILED, INTERRUPTED, faulty, result};
use crate::points;
use crate::progress::Progress;
use anyhow::{Context, Result};
use linerate_hosts::preflight::{self, Needs, frames};
use linerate_hosts::systems::Facts;
use linerate_plan::Diagnostic;
use linerate_plan::lab::{Lab, MOST_BYTES};
use linerate_remote::Approach;
use linerate_remote::survey::{self, Frames};
use linerate_report::pages;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Runs the verb.
///
/// # Errors
/// The lab file cannot be read.
pub fn run(args: &LabCheck) -> Result<ExitCode> {
    let file = points::name(&args.lab);
    let bytes =
        if points::is_stdin(&args.lab) { points::read_stdin(MOST_BYTES)? } else { contents(&args.lab)? };
    let lab = Lab::read(&bytes).map_err(|faults| faulty(&file, &faults))?;
    interrupt::install();
    let found = find_out(&lab, &args.ssh.approach(), !args.no_frames);
    if interrupt::interrupted() {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let Found { facts, frames, problems } = &found;
    let (tried, skipped) = (frames.tried.as_slice(), frames.skipped.as_slice());
    let checked = pages::LabCheck { file: &file, lab: &lab, facts, problems, tried, skipped };
    result(&args.printed, || shown::json(&file, &lab, &found), || pages::lab_check(&checked))?;
    Ok(if problems.iter().any(Diagnostic::is_fault) { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Findings about a lab.
struct Found {
    facts: BTreeMap<String, Facts>,
    frames: Frames,
    problems: Vec<Diagnostic>,
}

/// Asks, sends, and judges; meanwhile a line says what is going on.
fn find_out(lab: &Lab, approach: &Approach, send: bool) -> Found {
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        let work = scope.spawn(move || {
            // Who shows it may be gone: nobody is waited for.
            let say = |what: &str| drop(tell.send(what.to_string()));
            say("connecting");
            let (places, errors) = survey::connect(lab, approach, Some(&STOP));
            say("asking the hosts");
            let mut facts = survey::survey(lab, &places, Some(&STOP));
            facts.extend(errors.iter().map(|(name, error)| (name.clone(), survey::unreachable(error))));
            let mut frames = Frames::default();
            if send {
                say("sending a few frames over each cable");
                frames = survey::send_frames(lab, &places, &mut facts, Some(&STOP));
            }
            let mut problems = preflight::check(lab, &facts, &Needs::default());
            problems.extend(frames::judge(&frames.tried));
            Found { facts, frames, problems }
        });
        let line = Progress::of_quick_steps();
        let mut doing = String::new();
        loop {
            match told.recv_timeout(Duration::from_millis(200)) {
                Ok(what) => doing = what,
                Err(RecvTimeoutError::Timeout) => line.say(doing.clone()),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The content of a lab file.
///
/// # Errors
/// It cannot be read.
pub fn contents(file: &Path) -> Result<Vec<u8>> {
    let reading = || {
        format!(
            "cannot read the lab file {} (`linerate lab example` prints one to begin with)",
            file.display()
        )
    };
    linerate_linux::files::read(file, MOST_BYTES).with_context(reading)
}
