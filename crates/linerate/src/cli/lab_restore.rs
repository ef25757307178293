//! Arguments of `linerate lab restore`.

use super::shared::Ssh;
use clap::Args;
use std::path::PathBuf;

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
