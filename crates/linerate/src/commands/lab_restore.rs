//! `linerate lab restore`: a DUT as it was before a linerate that was killed.

use crate::args::Ssh;
use crate::interrupt;
use crate::output::{FAILED, print, usage};
use crate::progress::Progress;
use crate::testbed::hosts::{Site, read};
use anyhow::Result;
use clap::Args;
use linerate_measure::experiment::Reboot;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Undo changes that a killed linerate left on the DUT of a real lab.
///
/// `linerate run` writes every change of a DUT down on this machine before it makes it. It undoes the changes at its end, after an error
/// and after Ctrl-C. If it was killed or the DUT was unreachable, the next `linerate run` on that DUT undoes them first, or this command
/// does. It changes nothing else.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate lab restore LAB.toml            undo the changes, and list them
  linerate lab restore LAB.toml --reboot   also reboot the DUT, if settings of the boot were changed

Exit status: 0 restored, or nothing was changed; 1 something was not restored, or takes effect only when the DUT reboots; 2 the lab file
has faults or no DUT, or bad arguments.")]
pub struct LabRestore {
    /// The lab file
    #[arg(value_name = "LAB.toml")]
    pub lab: PathBuf,

    /// Reboot the DUT if settings of the boot were changed
    #[arg(long)]
    pub reboot: bool,

    #[command(flatten)]
    pub ssh: Ssh,
}

/// Runs the verb.
///
/// # Errors
/// The lab file cannot be read, its DUT cannot be reached, or a change could not be undone.
pub fn run(args: &LabRestore) -> Result<ExitCode> {
    let lab = read(&args.lab)?;
    let Some(dut) = lab.dut().map(|dut| dut.name.clone()) else {
        let file = args.lab.display();
        return Err(usage(format!("{file} has no DUT: linerate changes nothing on other hosts")));
    };
    interrupt::install();
    let progress = Progress::of_steps();
    let mut site = Site::reach(lab, args.ssh.approach(), Path::new(""), &progress)?;
    progress.say("putting everything back");
    let back = site.put_back(if args.reboot { Reboot::WhenNeeded } else { Reboot::Never })?;
    drop(progress);
    let Some(earlier) = back else {
        print(&format!("{dut}: nothing is changed there\n"));
        return Ok(ExitCode::SUCCESS);
    };
    earlier.told.iter().for_each(|line| print(&format!("{line}\n")));
    if earlier.owes_boot {
        print(&format!("{dut}: it counts from its next boot on only: reboot it, or let --reboot do so\n"));
        return Ok(ExitCode::from(FAILED));
    }
    Ok(ExitCode::SUCCESS)
}
