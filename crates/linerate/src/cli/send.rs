//! Arguments of `linerate send`.

use super::values::{Cpus, count, cpu_list, duration, own_backend, pkt_gen_rate};
use clap::Args;
use linerate_plan::Backend;
use linerate_plan::units::{Rate, parse_link_speed};
use linerate_wire::{FlowOrder, FrameMix, MacAddr, Transport};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "Examples (spellings of pkt-gen where it has them):
  sudo linerate lab up                          an embedded lab to send in
  sudo linerate send --netns linerate-generator -i g1 -n 1000000
  sudo linerate send --netns linerate-generator -i g1 -R 100k --duration 5s
  sudo linerate send -i ix0 --isolated-lab ix0 -D 00:1b:21:aa:bb:cc -s 198.18.10.1:2001-198.18.10.20 \\
       -d 198.19.10.1:2001-198.19.10.100 -l 60
  linerate send --write frames.pcap -n 1000     the same frames into a file: no interface, no privileges

An interface with a default route, with addresses outside 198.18.0.0/15 and 2001:2::/48, or outside
linerate's own namespaces is refused unless --isolated-lab names it (RFC 6815).")]
pub struct Send {
    /// Interface to send from
    #[arg(
        short = 'i',
        long = "interface",
        visible_alias = "dev",
        value_name = "IFACE",
        required_unless_present = "write"
    )]
    pub interface: Option<String>,

    /// Namespace of the interface: a name that `ip netns` knows, or a path
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,

    /// Confirms that this interface is part of an isolated lab
    #[arg(long, value_name = "IFACE")]
    pub isolated_lab: Vec<String>,

    /// Frame length without FCS, as pkt-gen and trafgen count
    #[arg(short = 'l', long = "len", value_name = "BYTES", conflicts_with = "size", value_parser = clap::value_parser!(u16).range(14..=16_000))]
    pub length: Option<u16>,

    /// Frame length with FCS, or a mix: 64, imix, genome:aaafg
    #[arg(long, value_name = "SIZE")]
    pub size: Option<FrameMix>,

    /// Source addresses and ports: 198.18.10.1:2001-198.18.10.20
    #[arg(short = 's', long, value_name = "RANGE", requires = "destination")]
    pub source: Option<String>,

    /// Destination addresses and ports
    #[arg(short = 'd', long, value_name = "RANGE", requires = "source")]
    pub destination: Option<String>,

    /// Source Ethernet address [default: the interface's]
    #[arg(short = 'S', long, value_name = "MAC")]
    pub source_mac: Option<MacAddr>,

    /// Destination Ethernet address [default in a lab of linerate: the DUT's or the receiver's; required elsewhere]
    #[arg(short = 'D', long, value_name = "MAC")]
    pub destination_mac: Option<MacAddr>,

    /// Frames to send, all threads together [default: until --duration is over]
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    pub count: Option<u64>,

    /// Offered load: max, 100k (frames/s), 1Gbit/s:l1, 50%
    #[arg(short = 'R', long, value_name = "RATE", default_value = "max", value_parser = pkt_gen_rate)]
    pub rate: Rate,

    /// Link speed that percentages of line rate refer to [default: the interface's speed]
    #[arg(long, value_name = "SPEED", value_parser = parse_link_speed)]
    pub link_speed: Option<f64>,

    /// Stop after this time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub duration: Duration,

    /// Frames handed over at once
    #[arg(short = 'b', long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub batch: u32,

    /// CPUs to send from, one thread each
    #[arg(short = 'a', long, value_name = "LIST", value_parser = cpu_list, conflicts_with = "threads")]
    pub cpus: Option<Cpus>,

    /// Threads, on as many CPUs
    #[arg(short = 'p', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: u32,

    /// Seconds to wait for the link
    #[arg(short = 'w', long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=600))]
    pub wait_link: u64,

    /// pkt-gen's function: sending is tx
    #[arg(short = 'f', value_name = "tx", value_parser = ["tx"], hide = true)]
    pub function: Option<String>,

    /// Print plain numbers, without k, M and G
    #[arg(short = 'N', long)]
    pub normalize: bool,

    /// Number of flows in the benchmark address ranges, without -s and -d
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=5_000_000))]
    pub flows: u32,

    /// Order of flows: sequential, random, zipf:EXPONENT
    #[arg(long, value_name = "ORDER", default_value = "sequential")]
    pub order: FlowOrder,

    /// IPv4 frames
    #[arg(short = '4', conflicts_with = "ipv6")]
    pub ipv4: bool,

    /// IPv6 frames
    #[arg(short = '6')]
    pub ipv6: bool,

    /// Protocol above IP: udp, tcp or icmp
    #[arg(long, default_value = "udp")]
    pub transport: Transport,

    /// 802.1Q VLAN identifier
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(1..=4094))]
    pub vlan: Option<u16>,

    /// Send frames without linerate's signature, as pkt-gen does: they may be shorter, but a receiver can only count them
    #[arg(long)]
    pub unsigned: bool,

    /// Leave the UDP checksum of IPv4 frames zero
    #[arg(long)]
    pub no_udp_checksum: bool,

    /// One frame in N carries a time stamp
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub stamp_every: u32,

    /// Number of this sender in its frames; give `linerate receive --campaign` the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub campaign: u8,

    /// How frames leave
    #[arg(long, value_name = "BACKEND", default_value = "xdp", value_parser = own_backend())]
    pub port: Backend,

    /// Milliseconds between two lines
    #[arg(short = 'T', long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    pub report_ms: u64,

    /// Write the frames to a capture file instead of sending them
    #[arg(long, value_name = "FILE", conflicts_with = "interface")]
    pub write: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}
