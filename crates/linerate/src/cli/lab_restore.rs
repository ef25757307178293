//! Arguments of `linerate lab restore`.

use clap::Args;
use std::path::PathBuf;

/// Put back what a linerate that was killed left changed on the DUT of a real lab.
///
/// `linerate run` writes every change of a DUT down on this machine before it makes it, and puts it back at its end, after an error and
/// after Ctrl-C. Where it could not, because it was killed or the DUT was gone, the next `linerate run` on that DUT begins with it, or this
/// does. It changes nothing else.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate lab restore LAB.toml            what was changed, line by line
  linerate lab restore LAB.toml --reboot   with a reboot, where that is what it takes

Exit status: 0 put back, or nothing was changed; 1 something could not be, or counts from the DUT's next boot on only; 2 the lab file has
faults or no DUT, or bad arguments.")]
pub struct LabRestore {
    /// The lab file
    #[arg(value_name = "LAB.toml")]
    pub lab: PathBuf,

    /// Reboot the DUT where that is what it takes
    #[arg(long)]
    pub reboot: bool,

    /// Accept and remember keys of hosts that ssh does not know yet
    #[arg(long)]
    pub accept_new_keys: bool,

    /// A configuration of ssh instead of yours
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
}
