//! `linerate lab check`: finds faults that would spoil a campaign in a real lab before it starts.

mod shown;

use crate::args::{Printed, Ssh};
use crate::input;
use crate::interrupt::{self, interrupted};
use crate::output::{FAILED, INTERRUPTED, result};
use crate::progress::Progress;
use crate::testbed::hosts::{Site, read};
use anyhow::Result;
use clap::Args;
use linerate_plan::Diagnostic;
use linerate_report::pages;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Find everything that would spoil a campaign in a lab of real hosts.
///
/// Connects to all hosts of a lab file by ssh at the same time and compares their answers with the file: whether they can be reached and
/// used as root, clocks, interfaces, links, speeds, flow control, Ethernet addresses, ARP entries on both ends of each cable, routes,
/// forwarding, programs, free disk. All problems are reported together, each with its evidence and a remedy.
///
/// If the lab file says `isolated = true`, a few pings go over each cable and, where the generator has a route, through the DUT. Replies
/// and interface counters show where frames arrive. Nothing on the hosts is changed, except that the pings fill their ARP tables.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate lab example > LAB.toml           a lab file to begin with
  linerate lab check LAB.toml               everything at once; a few seconds
  linerate lab check LAB.toml --no-frames   without sending anything: while others use the cables
  linerate lab check LAB.toml --json | jq '.problems[] | select(.severity == \"fault\")'

linerate uses the system's ssh with your keys, agent, jump hosts and configuration, and never asks for a password. A host whose key is
not in known_hosts is refused: log in once by hand, or use --accept-new-keys. A changed key is always refused.
A fault would make the campaign fail or measure something else; a warning would make its figures doubtful.
docs/lab-file.md describes lab files and shows the check of a lab.

Exit status: 0 no faults; 1 faults, or the file cannot be read; 2 the lab file has faults, or bad arguments; 130 interrupted.")]
pub struct LabCheck {
    /// The lab file; - is standard input
    #[arg(value_name = "LAB.toml")]
    pub lab: PathBuf,

    #[command(flatten)]
    pub printed: Printed,

    /// Send nothing
    #[arg(long)]
    pub no_frames: bool,

    #[command(flatten)]
    pub ssh: Ssh,
}

/// Runs the verb.
///
/// # Errors
/// The lab file cannot be read.
pub fn run(args: &LabCheck) -> Result<ExitCode> {
    let file = input::name(&args.lab);
    let lab = read(&args.lab)?;
    interrupt::install();
    let progress = Progress::of_steps();
    let site = Site::reach(lab, args.ssh.approach(), Path::new(""), &progress);
    let checked = site.map(|mut site| {
        progress.say("sending a few frames over each cable");
        let (frames, problems) = site.check(!args.no_frames);
        (site, frames, problems)
    });
    drop(progress);
    if interrupted() {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let (Site { lab, facts, .. }, frames, problems) = &checked?;
    let (tried, skipped) = (frames.tried.as_slice(), frames.skipped.as_slice());
    let checked = pages::LabCheck { file: &file, lab, facts, problems, tried, skipped };
    result(&args.printed, || shown::json(&checked), || pages::lab_check(&checked))?;
    Ok(if problems.iter().any(Diagnostic::is_fault) { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}
