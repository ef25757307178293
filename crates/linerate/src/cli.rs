//! The command line: what can be asked, and help that teaches by example.

mod benchlab;
mod compare;
mod conduct;
mod history;
mod import;
mod lab_check;
mod plan;
mod reproduce;
mod rules;
mod run;
mod stat;

pub use compare::{Compare, Share};
pub use conduct::{Conduct, Format};
pub use history::History;
pub use import::{Benchlab, Import, ImportFrom, Netbenches};
pub use lab_check::LabCheck;
pub use plan::{Plan, PlanAction};
pub use reproduce::Reproduce;
pub use rules::Rules;
pub use run::Run;
pub use stat::Stat;

use clap::{Args, Parser, Subcommand, ValueEnum};
use linerate_core::units::{Rate, parse_duration_ns, parse_link_speed};
use linerate_sys::lab::Variant;
use linerate_wire::{FlowOrder, FrameMix, MacAddr, Transport, parse_sizes};
use std::path::PathBuf;
use std::time::Duration;

/// How many packets does this router or firewall forward, why not more, and which setting makes it faster?
#[derive(Debug, Parser)]
#[command(name = "linerate", version, max_term_width = 110, propagate_version = true)]
#[command(after_help = "Start here:
  sudo linerate bench                           this machine's kernel, in half a minute
  sudo linerate bench --variant nft-stateful    what does a stateful firewall cost?
  linerate plan list                            experiments that come with linerate
  sudo linerate run rules --quick               one of them: does the number of rules matter?
  linerate show linerate-results/NAME           the tables of an earlier campaign

Frame lengths include the FCS, as RFC 2544 counts them. Nothing is sent outside namespaces that
linerate made, unless you name an interface as an isolated lab (RFC 6815).")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure how many frames a second this machine's kernel forwards
    ///
    /// Builds a lab of network namespaces (generator, DUT, receiver), measures the tester without a DUT and the kernel's forwarding
    /// in short alternating slices, audits every slice (every frame sent is received or its loss located), and prints rates with
    /// 95 % intervals, what the limit was, and where the records are. Nothing outside the lab is changed.
    Bench(Box<Bench>),
    /// Carry out a plan: variants and factors side by side, in randomised blocks
    ///
    /// A plan (a TOML file) says what is compared with what, under which traffic, how often, and what its author expects. Each
    /// variant gets a DUT of its own in an embedded lab, all take short trials in turn, in blocks of random order, until the
    /// answers are known well enough or the time is used up. A campaign that was stopped goes on with --resume.
    Run(Run),
    /// Experiments as files: list them, check them, or see what they will do
    ///
    /// A plan is a TOML file that says which variants of a device under test are compared, under which traffic, how often, and
    /// what its author expects. docs/plans.md describes the format by example; the experiments of the literature come with linerate.
    Plan(Plan),
    /// Carry out a test of Conductor ("Measure Twice, Code Once") on the hosts of a lab
    ///
    /// Conductor's configuration files name players and the commands that they run in four phases: startup, run, collect, reset. They
    /// are read as they are, in both of Conductor's vocabularies, and everything that is wrong with them is told at once. Commands are
    /// run over ssh, with their limits, on all hosts at once; what became of each is recorded.
    Conduct(Conduct),
    /// Send test frames from an interface, as pkt-gen and trafgen do
    ///
    /// At most so many frames, for at most so long, at a rate or as fast as possible, from a lab of linerate's own or from an
    /// interface that you name as an isolated lab. Every frame carries a sequence number, so that a receiver can tell losses,
    /// duplicates and reordering.
    Send(Box<Send>),
    /// Count test frames at an interface: rate, loss, duplicates, reordering, latency
    ///
    /// Takes the frames of `linerate send` (and, without signature, anybody's) from an interface or a capture file.
    Receive(Box<Receive>),
    /// Keep an embedded lab up, to look at it or to work in it by hand; and the lab files of real labs
    ///
    /// An embedded lab's namespaces get names that `ip netns` knows, and stay until they are taken down. They are written down
    /// before they are made, so that what a killed linerate leaves is cleared by the next. docs/lab-file.md describes lab files.
    Lab(Lab),
    /// Print the tables of a recorded campaign again
    Show(Show),
    /// Say which campaign, variant or file of rates is faster, by how much, and how sure that is
    ///
    /// Takes campaigns, variants of one campaign, or plain files with a number on each line. What was measured side by side is
    /// paired by block, so that drifts of the machine cancel; everything else is compared unpaired. The first is the reference.
    Compare(Compare),
    /// Hold published figures against the published data
    ///
    /// The tables, ministat blocks and plots of the 2018 paper "Tuning FreeBSD for routing and firewalling" and of the BSD Router
    /// Project's lab pages, recomputed from the public archive of runs: the printed figure beside the recomputed one, and whether it
    /// agrees, was cut off where one would round, is wrong in print, or has no data. What else a wrong figure may be (the maximum,
    /// another set's median, a slip) is looked for in the data.
    Reproduce(Reproduce),
    /// Statistics of files of numbers, as ministat(1) prints them
    ///
    /// A drop-in for ministat, and quicker. Each file is a set of numbers, one a line or a column of many; - is standard input, as
    /// is no file at all. Up to 7 sets. All are held against the first by Student's t test. Empty lines, and what stands behind a
    /// word that begins with #, do not count. The output is ministat's, byte for byte, with the arithmetic of the generation that
    /// --era names: published figures can be checked.
    Stat(Stat),
    /// Read what other tools use and leave: results become records, labs become lab files and plans
    Import(Import),
    /// Find where results changed from campaign to campaign, or from revision to revision
    ///
    /// Campaigns of the same machine, variant and frames are put in order of time, results of an archive in order of source
    /// revisions and versions. In each such time line of 8 points or more, changes of the level are looked for; outliers and two
    /// modes are told from them, and of a hundred time lines without a change two to five will seem to have one. Of campaigns the
    /// ratio to card-to-card is followed, which a machine's drift does not move. docs/history.md says how, why, and how well.
    History(History),
    /// Write rule sets of firewalls, to measure what they cost: pf, ipfw, ipf, iptables, nftables
    ///
    /// Writes a minimal set, stateless, stateful or translating addresses, for the networks of benchmarks, 198.18.0.0/15 (RFC 2544)
    /// and 2001:2::/48 (RFC 5180). To it come rules that match nothing, a table of as many entries as you like, and the settings for
    /// as many states. It goes to standard output while it is made: ten million entries take seconds and no memory.
    ///
    /// Nothing is loaded. Sets of the BSD firewalls let everything else pass; those of Linux drop forwarded frames that are not test
    /// traffic, so load them in a lab.
    Rules(Box<Rules>),
    /// Serve another linerate over standard input and output, on a host of its lab (docs/agent.md)
    #[command(hide = true)]
    Agent,
    /// Write the man page and shell completions into a directory (used by `make install`).
    #[command(hide = true)]
    Documents(Documents),
}

/// Arguments of `linerate bench`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo linerate bench                            IPv4 and IPv6, smallest frames, 2,000 flows
  sudo linerate bench --variant nft-stateless --variant nft-stateful
  sudo linerate bench --sizes 64,512,1518,imix --family 4
  sudo linerate bench --mode threaded --rate 500k    open loop: loss and latency at a load
  sudo linerate bench --variant known-loss=1000  is exactly one loss in 1,000 found?
  linerate bench                                 without root: a slower tester
  linerate bench --simulate loss=1000            no packets at all: a simulated DUT

Variants:
  forwarding           the kernel's routing, nothing else (always measured, as the baseline)
  nft-stateless        nftables filter without connection tracking
  nft-stateful         nftables filter with connection tracking
  nat                  nftables masquerade
  bridge               a bridge instead of a router
  xdp                  an XDP program that forwards by the kernel's routing table
  known-rate=R         passes exactly R frames/s on each CPU: a DUT with a known answer
  known-loss=N         loses exactly every N-th frame
  known-duplication=N  sends exactly every N-th frame twice
  known-delay=T        holds every frame up for T, up to 200us

Exit status: 0 measured; 1 something failed, or no trial of a slot was valid; 2 bad arguments;
130 interrupted (what was measured until then is recorded and shown).")]
pub struct Bench {
    /// What the DUT is; may be repeated. Twice the same compares a variant with itself
    #[arg(long = "variant", value_name = "VARIANT")]
    pub variants: Vec<Variant>,

    /// Frame lengths in bytes with FCS, measured side by side: 64,1518,imix,genome:aaafg,rfc2544
    #[arg(long, value_name = "LIST", value_parser = sizes, default_value = "64")]
    pub sizes: Sizes,

    /// IP version
    #[arg(long, value_enum, default_value = "both")]
    pub family: FamilyChoice,

    /// Flows, up to 5,000,000
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=5_000_000))]
    pub flows: u32,

    /// Order of flows: sequential, random (RFC 4814: uniform), zipf:EXPONENT
    #[arg(long, value_name = "ORDER", default_value = "sequential")]
    pub order: FlowOrder,

    /// Offered load: max, 500kpps, 1Gbit/s:l1 (with preamble and gap), 1Gbit/s:l2, 50% (of --link-speed)
    #[arg(long, value_name = "RATE", default_value = "max")]
    pub rate: Rate,

    /// What 100 % of line rate is
    #[arg(long, value_name = "SPEED", value_parser = parse_link_speed)]
    pub link_speed: Option<f64>,

    /// Length of one trial; trials of all slots alternate
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = duration)]
    pub duration: Duration,

    /// Trials of each slot; without it, until the ratios are known to 2 % or the budget is used up
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub trials: Option<u32>,

    /// Time for all trials
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub budget: Duration,

    /// inline: closed loop on the generator's CPU, cost per frame. threaded: open loop, the DUT has CPUs of its own
    #[arg(long, value_enum, default_value = "inline")]
    pub mode: ModeChoice,

    /// CPUs of the generator, one thread each: 1 or 0,2-3
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<Cpus>,

    /// CPUs of the DUT, in threaded mode
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub dut_cpus: Option<Cpus>,

    /// What is above IP: udp, tcp (SYN segments) or icmp (echo requests)
    #[arg(long, default_value = "udp")]
    pub transport: Transport,

    /// How frames leave and arrive [default: xdp for root, af-packet in a user namespace for everyone else]
    #[arg(long, value_enum)]
    pub port: Option<BenchPort>,

    /// Leave the UDP checksum of IPv4 frames zero (permitted, RFC 768); GRO verifies one that is not
    #[arg(long)]
    pub no_udp_checksum: bool,

    /// Frames handed over at once, instead of the number that measures best
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub batch: Option<u32>,

    /// One frame in N carries a time stamp
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub stamp_every: u32,

    /// Seed of the order of trials
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Name of the campaign, part of the records' directory
    #[arg(long, default_value = "bench")]
    pub name: String,

    /// Directory for the records, instead of ./linerate-results/TIME-NAME
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Leave the lab up afterwards (`linerate lab status` shows it, `linerate lab down` removes it)
    #[arg(long, conflicts_with = "simulate")]
    pub keep: bool,

    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,

    /// A simulated DUT in memory instead of a lab: ok, or loss=N,duplication=N,delay=T,rate=R. No privileges needed;
    /// its figures say nothing of any machine
    #[arg(long, value_name = "WHAT")]
    pub simulate: Option<String>,
}

/// Where to send to, and what: shared by `send` and its dry run.
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

    /// Yes, this interface is part of an isolated lab
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

    /// Destination Ethernet address [default in a lab of ours: the DUT's or receiver's; elsewhere required]
    #[arg(short = 'D', long, value_name = "MAC")]
    pub destination_mac: Option<MacAddr>,

    /// Frames to send, all threads together [default: until --duration is over]
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    pub count: Option<u64>,

    /// Offered load: max, 100k (frames/s), 1Gbit/s:l1, 50%
    #[arg(short = 'R', long, value_name = "RATE", default_value = "max")]
    pub rate: Rate,

    /// What 100 % of line rate is [default: the interface's speed]
    #[arg(long, value_name = "SPEED", value_parser = parse_link_speed)]
    pub link_speed: Option<f64>,

    /// End after this long: every load is bounded
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

    /// Plain numbers, without k, M and G
    #[arg(short = 'N', long)]
    pub normalize: bool,

    /// Flows of the benchmark's own address ranges, where -s and -d are not given
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

    /// What is above IP: udp, tcp or icmp
    #[arg(long, default_value = "udp")]
    pub transport: Transport,

    /// 802.1Q VLAN identifier
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(1..=4094))]
    pub vlan: Option<u16>,

    /// Frames without linerate's signature, such as pkt-gen sends: shorter IPv6 frames, but only counted, not checked
    #[arg(long)]
    pub unsigned: bool,

    /// Leave the UDP checksum of IPv4 frames zero
    #[arg(long)]
    pub no_udp_checksum: bool,

    /// One frame in N carries a time stamp
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub stamp_every: u32,

    /// Number that tells this sender's frames from others'; `linerate receive --campaign` wants the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub campaign: u8,

    /// How frames leave: xdp (live frames), af-xdp or af-packet
    #[arg(long, value_enum, default_value = "xdp")]
    pub port: PortChoice,

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

    /// Yes, this interface is part of an isolated lab: its frames are dropped while linerate counts
    #[arg(long, value_name = "IFACE")]
    pub isolated_lab: Vec<String>,

    /// End after this many test frames
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    pub count: Option<u64>,

    /// End after this long [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,

    /// Count every UDP, TCP and ICMP frame, signed or not: what pkt-gen and trafgen send
    #[arg(long)]
    pub unsigned: bool,

    /// Seconds to wait for the link
    #[arg(short = 'w', long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=600))]
    pub wait_link: u64,

    /// pkt-gen's function: receiving is rx
    #[arg(short = 'f', value_name = "rx", value_parser = ["rx"], hide = true)]
    pub function: Option<String>,

    /// Plain numbers, without k, M and G
    #[arg(short = 'N', long)]
    pub normalize: bool,

    /// Only this sender's frames: the number that `linerate send` prints
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub campaign: u8,

    /// How frames are counted: xdp, af-xdp or af-packet
    #[arg(long, value_enum, default_value = "xdp")]
    pub port: PortChoice,

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

/// An embedded lab by hand, and the lab files of real ones.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo linerate lab up --variant nft-stateful     card to card is lane 0, the variant lane 1
  sudo ip netns exec linerate-dut0 nft list ruleset
  sudo linerate send --netns linerate-generator -i g1 -n 1000 &
  sudo linerate receive --netns linerate-receiver -i r1 -n 1000
  sudo linerate lab down
  linerate lab example > LAB.toml                 a lab of real hosts, to begin with
  linerate lab check LAB.toml                     all that is wrong with it, before a campaign
  linerate lab schema > lab.schema.json           for editors that complete and check TOML")]
pub struct Lab {
    /// What to do with it.
    #[command(subcommand)]
    pub action: LabAction,
}

/// What to do with a lab.
#[derive(Debug, Subcommand)]
pub enum LabAction {
    /// Build a lab whose namespaces have names, and leave it up
    Up {
        /// What the DUTs are; may be repeated
        #[arg(long = "variant", value_name = "VARIANT", default_value = "forwarding")]
        variants: Vec<Variant>,
        /// Name of the lab: the namespaces are called NAME-generator, NAME-receiver, NAME-dut0, …
        #[arg(long, default_value = "linerate", value_parser = lab_name)]
        name: String,
        /// Longest frame, in bytes with FCS
        #[arg(long, value_name = "BYTES", default_value_t = 1518, value_parser = clap::value_parser!(u16).range(64..=16_000))]
        longest: u16,
    },
    /// Remove labs that were left up
    Down {
        /// Name of the lab [default: the only one]
        #[arg(long, value_parser = lab_name)]
        name: Option<String>,
        /// All labs
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// Show the labs that are up
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a lab file to begin with, that explains itself: the hosts of a real lab
    Example,
    Check(LabCheck),
    /// Print the JSON Schema of lab files
    Schema,
}

/// Print the tables of a recorded campaign again.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  linerate show linerate-results/20260101T120000Z-bench --trials")]
pub struct Show {
    /// The campaign's directory
    pub directory: PathBuf,
    /// A line for each trial as well
    #[arg(long)]
    pub trials: bool,
    /// The summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// Write documents.
#[derive(Debug, Args)]
pub struct Documents {
    /// Where to
    pub directory: PathBuf,
}

/// IP versions to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FamilyChoice {
    /// IPv4 alone
    #[value(name = "4", alias = "ipv4")]
    V4,
    /// IPv6 alone
    #[value(name = "6", alias = "ipv6")]
    V6,
    /// IPv4 and IPv6 side by side
    Both,
}

/// How the lab's CPUs are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeChoice {
    /// Closed loop
    Inline,
    /// Open loop
    Threaded,
}

/// How a bench's frames leave and arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchPort {
    /// XDP live frames, and an XDP receiver; needs root
    Xdp,
    /// AF_PACKET sockets: slower
    AfPacket,
}

/// How frames leave or arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PortChoice {
    /// XDP live frames, or the XDP receiver: the fastest; needs root
    Xdp,
    /// AF_XDP sockets: zero copy where the driver has it
    AfXdp,
    /// AF_PACKET sockets: work everywhere
    AfPacket,
}

/// Frame lengths to measure side by side.
#[derive(Debug, Clone)]
pub struct Sizes(pub Vec<FrameMix>);

fn sizes(text: &str) -> Result<Sizes, String> {
    parse_sizes(text).map(Sizes).map_err(|e| e.to_string())
}

/// CPU numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus(pub Vec<u32>);

fn cpu_list(text: &str) -> Result<Cpus, String> {
    let wrong = |part: &str| format!("'{part}' is not a CPU number or range: write 1 or 0,2-3");
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |t: &str| t.trim().parse::<u32>().ok().filter(|n| *n < 8192).ok_or_else(|| wrong(part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("'{part}' runs backwards: write {last}-{first}"));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(Cpus(cpus))
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration_ns(text).map(Duration::from_nanos)
}

/// A count such as 1000, 80_000_000 or 1M.
fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a number of frames: write 1000, 500k or 10M");
    let plain = text.trim().replace('_', "");
    let (digits, scale) = match plain.chars().last() {
        Some('k' | 'K') => (&plain[..plain.len() - 1], 1_000),
        Some('m' | 'M') => (&plain[..plain.len() - 1], 1_000_000),
        Some('g' | 'G') => (&plain[..plain.len() - 1], 1_000_000_000),
        _ => (plain.as_str(), 1),
    };
    let n = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(scale)).ok_or_else(wrong)?;
    if n == 0 {
        Err(format!("'{text}' frames are none: leave it out to go on until --duration"))
    } else {
        Ok(n)
    }
}

fn lab_name(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !text.is_empty() && text.len() <= 40 && text.chars().all(fine) && !text.starts_with(['-', '.']) {
        Ok(text.to_string())
    } else {
        Err(format!("'{text}' is no name for a lab: up to 40 letters, digits, '-', '_', '.'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn lists_and_counts() {
        assert_eq!(cpu_list("3,0-1,1"), Ok(Cpus(vec![0, 1, 3])));
        assert!(cpu_list("1-0").is_err() && cpu_list("").is_err() && cpu_list("a").is_err());
        assert_eq!(count("10M"), Ok(10_000_000));
        assert!(count("0").is_err() && count("").is_err() && count("µ").is_err());
        assert!(lab_name("../x").is_err() && lab_name("").is_err() && lab_name("a b").is_err());
    }

    #[test]
    fn every_variant_is_in_the_help() {
        let help = Cli::command().find_subcommand_mut("bench").unwrap().render_long_help().to_string();
        for (name, _) in Variant::HELP {
            assert!(help.contains(name), "{name}");
        }
    }
}
