//! Arguments of `linerate bench`.

use super::CampaignArgs;
use super::values::{Cpus, FamilyChoice, Sizes, cpu_list, duration, mapping, own_backend, sizes};
use clap::Args;
use clap::builder::ArgPredicate;
use linerate_plan::rules::own::Meaning;
use linerate_plan::settings::States;
use linerate_plan::units::{Rate, parse_link_speed};
use linerate_plan::{Backend, BuiltIn};
use linerate_wire::{FlowOrder, Transport};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo linerate bench                            IPv4 and IPv6, smallest frames, 2,000 flows
  sudo linerate bench --variant nft-stateless --variant nft-stateful
  sudo linerate bench --rules /etc/nftables.conf     what do my own rules cost?
  sudo linerate bench --rules fw.nft --map eth1=in --map eth0=out --map 192.168.1.0/24=in
  sudo linerate bench --sizes 64,512,1518,imix --family 4
  sudo linerate bench --mode threaded --rate 500kpps  open loop: loss and latency at a load
  sudo linerate bench --variant known-loss=1000  is exactly one loss in 1,000 found?
  linerate bench                                 without root: a slower tester
  linerate bench --simulate loss=1000            no packets at all: a simulated DUT

Variants:
  forwarding           the kernel's routing alone (always measured, as the baseline)
  nft-stateless        nftables filter without connection tracking
  nft-stateful         nftables filter with connection tracking; established connections pass first
  nat                  nftables masquerade
  bridge               a bridge instead of a router
  routed-bridge        a router whose inside interface is the only member of a bridge that has the address
  macvlan, vlan        a router whose interfaces are macvlan, or 802.1Q VLANs, on top of the two ends
  vxlan                a router that puts frames into a VXLAN tunnel towards the receiver
  nested               a router in a network stack of its own: a nested network namespace
  xdp                  an XDP program that forwards by the kernel's routing table
  known-rate=N         passes exactly N frames/s on each CPU: a DUT with a known answer
  known-loss=N         loses exactly every N-th frame
  known-duplication=N  sends exactly every N-th frame twice
  known-delay=T        delays every frame by T, up to 200us

Rule files: input of nft, or output of iptables-save. They are loaded in the lab's namespace, never on this host.
Their interfaces and networks stand for the lab's: `in` is the generator's side, `out` the receiver's. Without --map
linerate guesses which is which, and prints its guess. docs/rules.md has more.

These arguments are a plan: --print-plan prints it, `linerate run` carries it out, and `linerate run --resume DIR`
continues a campaign that was stopped.

Exit status: 0 measured; 1 an error, or a variant without a result: none of its trials was valid, or it dropped
every frame (except known-loss=1); 2 bad arguments; 3 --fail-if-slower found a slower variant; 4 everything is
skipped; 130 interrupted (the results so far are recorded and shown).")]
pub struct Bench {
    /// Variant of the DUT (see below); may be repeated. The same variant twice compares it with itself
    #[arg(long = "variant", value_name = "VARIANT")]
    pub variants: Vec<BuiltIn>,

    /// A DUT with the rules of this file (nft or iptables-save); may be repeated. Implies IPv4 alone, unless --family is given
    #[arg(long = "rules", value_name = "FILE")]
    pub rules: Vec<PathBuf>,

    /// Which end of the lab an interface or network of the rule files stands for: eth0=out, 192.168.1.0/24=in,
    /// 198.18.0.0/15=elsewhere; may be repeated [default: guessed and printed]
    #[arg(long = "map", value_name = "NAME=END", value_parser = mapping, requires = "rules")]
    pub map: Vec<(String, Meaning)>,

    /// Frame lengths in bytes with FCS, measured side by side: 64,1518,imix,genome:aaafg,rfc2544
    #[arg(long, value_name = "LIST", value_parser = sizes, default_value = "64")]
    pub sizes: Sizes,

    /// IP version
    #[arg(long, value_enum, default_value_if("rules", ArgPredicate::IsPresent, "4"), default_value = "both")]
    pub family: FamilyChoice,

    /// Flows, up to 5,000,000
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=5_000_000))]
    pub flows: u32,

    /// State of the connections when a trial begins, for DUTs that track them: established (seen in both directions), one-way (never
    /// answered), new (unknown: each flow opens one)
    #[arg(long, value_name = "STATES", default_value = "established")]
    pub states: States,

    /// Order of flows: sequential, random (RFC 4814: uniform), zipf:EXPONENT
    #[arg(long, value_name = "ORDER", default_value = "sequential")]
    pub order: FlowOrder,

    /// Offered load: max, 500kpps, 1Gbit/s:l1 (with preamble and gap), 1Gbit/s:l2, 50% (of --link-speed)
    #[arg(long, value_name = "RATE", default_value = "max")]
    pub rate: Rate,

    /// Link speed that percentages of line rate refer to
    #[arg(long, value_name = "SPEED", value_parser = parse_link_speed)]
    pub link_speed: Option<f64>,

    /// Length of one trial; trials of all slots alternate
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = duration)]
    pub duration: Duration,

    /// Trials of each slot [default: until the intervals of the ratios are narrower than 2 %, or the budget is used up]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub trials: Option<u32>,

    /// inline: closed loop on the generator's CPU, cost per frame. threaded: open loop, the DUT has CPUs of its own
    #[arg(long, value_parser = ["inline", "threaded"], default_value = "inline")]
    pub mode: String,

    /// CPUs of the generator, one thread each: 1 or 0,2-3
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<Cpus>,

    /// CPUs of the DUT, in threaded mode
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub dut_cpus: Option<Cpus>,

    /// Protocol above IP: udp, tcp (SYN segments) or icmp (echo requests)
    #[arg(long, default_value = "udp")]
    pub transport: Transport,

    /// How frames leave and arrive [default: xdp for root, af-packet in a user namespace for everyone else]
    #[arg(long, value_name = "BACKEND", value_parser = own_backend())]
    pub port: Option<Backend>,

    /// Leave the UDP checksum of IPv4 frames zero (RFC 768 permits it), so that GRO has none to verify
    #[arg(long)]
    pub no_udp_checksum: bool,

    /// Frames handed over at once, instead of the number that measures best
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub batch: Option<u32>,

    /// One frame in N carries a time stamp
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub stamp_every: u32,

    /// Print the plan of these arguments, and measure nothing: `linerate run` carries it out
    #[arg(long)]
    pub print_plan: bool,

    #[command(flatten)]
    pub campaign: CampaignArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_variant_is_in_the_help() {
        let mut all = crate::cli::Cli::command();
        let help = all.find_subcommand_mut("bench").unwrap().render_long_help().to_string();
        for (name, _) in BuiltIn::list() {
            assert!(help.contains(name), "{name}");
        }
    }
}
