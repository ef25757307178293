//! Arguments of `linerate receive`.

use super::values::{count, duration, own_backend};
use clap::Args;
use linerate_plan::Backend;
use std::path::PathBuf;
use std::time::Duration;

/// Count test frames at an interface, or in a capture file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo linerate receive --netns linerate-receiver -i r1
  sudo linerate receive -i ix1 --isolated-lab ix1 --duration 60s --json
  sudo linerate receive -i ix1 --isolated-lab ix1 --unsigned    count what pkt-gen or trafgen sends
  linerate receive --read capture.pcap                          count in a capture: no privileges")]
pub struct Receive {
    /// Interface to receive at
    #[arg(
        short = 'i',
        long = "interface",
        visible_alias = "dev",
        value_name = "IFACE",
        required_unless_present = "read"
    )]
    pub interface: Option<String>,

    /// Namespace of the interface: a name that `ip netns` knows, or a path
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,

    /// Confirms that this interface is part of an isolated lab: its frames are dropped while linerate counts
    #[arg(long, value_name = "IFACE")]
    pub isolated_lab: Vec<String>,

    /// End after this many test frames
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    pub count: Option<u64>,

    /// End after this long [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,

    /// Count every UDP, TCP and ICMP frame, also those of pkt-gen and trafgen
    #[arg(long)]
    pub unsigned: bool,

    /// Seconds to wait for the link
    #[arg(short = 'w', long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=600))]
    pub wait_link: u64,

    /// pkt-gen's function: receiving is rx
    #[arg(short = 'f', value_name = "rx", value_parser = ["rx"], hide = true)]
    pub function: Option<String>,

    /// Print plain numbers, without k, M and G
    #[arg(short = 'N', long)]
    pub normalize: bool,

    /// Count only frames of this sender: the number that `linerate send` prints
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub campaign: u8,

    /// How frames are counted
    #[arg(long, value_name = "BACKEND", default_value = "xdp", value_parser = own_backend())]
    pub port: Backend,

    /// Milliseconds between two lines
    #[arg(short = 'T', long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    pub report_ms: u64,

    /// Count the frames of a capture file (pcap or pcapng) instead
    #[arg(long, value_name = "FILE", conflicts_with = "interface")]
    pub read: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}
