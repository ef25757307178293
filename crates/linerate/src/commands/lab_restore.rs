//! `linerate lab restore`: a DUT as it was before a linerate that was killed.

use super::run::hosts::{Site, read};
use crate::cli::LabRestore;
use crate::interrupt;
use crate::output::{FAILED, print, usage};
use crate::progress::Progress;
use anyhow::Result;
use linerate_plan::campaign::Reboot;
use std::path::Path;
use std::process::ExitCode;

/// Runs the verb.
///
/// # Errors
/// The lab file cannot be read, its DUT cannot be reached, or something could not be put back.
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
