//! Arguments of `linerate lab check`.

use clap::Args;
use std::path::PathBuf;

/// Find out all that would spoil a campaign in a real lab, before it begins.
///
/// Connects to all hosts of a lab file by ssh, at once, asks them everything that matters, and holds the answers against the file:
/// whether they can be reached and driven as root, clocks, interfaces, links, speeds, flow control, Ethernet addresses, who knows
/// whom by ARP on both ends of each cable, routes, forwarding, programs, free disk. All problems are told at once, each with what
/// shows it and what to do.
///
/// Where the lab file says `isolated = true`, a handful of pings goes over each cable and, where the generator has a route, through the
/// DUT: replies and the counters of interfaces show that frames arrive, and where. Nothing on the hosts is changed; by the pings they
/// learn each other's Ethernet addresses.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate lab example > LAB.toml           a lab file to begin with
  linerate lab check LAB.toml               everything at once; a few seconds
  linerate lab check LAB.toml --no-frames   without sending anything: while others use the cables
  linerate lab check LAB.toml --json | jq '.problems[] | select(.severity == \"fault\")'

ssh is the system's own, with your keys, agent, jump hosts and configuration; nobody is asked for a password. Hosts whose key is not in
known_hosts are refused: log in once by hand, or see --accept-new-keys. A key that has changed is always refused.
A fault means that nothing would be measured, or something else; a warning, that figures would be doubtful.
docs/lab-file.md has the format of lab files and a checked lab.

Exit status: 0 no faults; 1 faults, or the file cannot be read; 2 the lab file has faults, or bad arguments; 130 interrupted.")]
pub struct LabCheck {
    /// The lab file; - is standard input
    #[arg(value_name = "LAB.toml")]
    pub lab: PathBuf,

    /// Print everything as JSON: hosts, interfaces, frames, problems
    #[arg(long)]
    pub json: bool,

    /// Send nothing
    #[arg(long)]
    pub no_frames: bool,

    /// Accept and remember keys of hosts that ssh does not know yet
    #[arg(long)]
    pub accept_new_keys: bool,

    /// A configuration of ssh instead of yours
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
}
