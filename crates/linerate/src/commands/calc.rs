//! `linerate calc`: the arithmetic of forwarding.

mod amounts;

use crate::args::{Sizes, sizes};
use crate::prelude::*;
use amounts::{bytes, count, frames, hertz, load, rate};
use linerate_calc::Result;
use linerate_calc::bus::{Slot, pcie};
use linerate_calc::ethernet::{
    self, Headers, Load, Processors, budget, capacity, convert, imix, line_rate, overhead,
};
use linerate_calc::harvest::{COSTLY, Mask, harvest_mask};
use linerate_calc::queues::{Card, queues};
use linerate_calc::rss::{Fields, Key, Rss, rss, rss_even};
use linerate_calc::states::{Asked, STAYS_S, conntrack, ipfw_states, pf_states};
use linerate_calc::tcp::bdp;
use linerate_calc::trials::{self, trials};
use linerate_wire::{Family, FlowSpace, FrameMix};

/// Calculate line rates, IMIX, budgets, buses, state tables, queues, RSS hashes, windows and trials, with formula and source.
#[derive(Args)]
#[command(after_help = "Examples:
  linerate calc line-rate 10G                       frames a second that 10-gigabit Ethernet carries
  linerate calc imix 7Mpps                          is this box a 10-gigabit IMIX router?
  linerate calc budget 10G --clock 3GHz             time, cycles and cache misses for each frame
  linerate calc pcie 3x8 --link 40G                 does this slot carry the card's links?
  linerate calc pf-states --connections 5M          pf's state table, its hash and their memory
  linerate calc harvest-mask 511                    without the sources that cost a router time
  linerate calc rss --queues 8                      do the test's flows reach all queues evenly?
  linerate calc trials --difference 1% --deviation 0.5%    trials that show this difference

Every calculator has --format text, json, markdown, csv or html. The units of JSON and CSV are always frames/s,
bit/s, bytes, nanoseconds, and shares from 0 to 1. Frame lengths count the FCS, as RFC 2544 does.")]
pub struct Calc {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    printed: Printed,
}

#[derive(Subcommand)]
enum What {
    /// Frames a second of a full link, for each frame length; or the link that a rate fills
    #[command(after_help = "Examples:
  linerate calc line-rate 1G                        all lengths of RFC 2544
  linerate calc line-rate 100G --sizes 64,imix      these lengths only
  linerate calc line-rate 1.488Mpps --sizes 64      the link that this rate fills")]
    LineRate {
        /// Speed of a link, or a rate: 10G, 1.488Mpps
        #[arg(value_parser = load)]
        load: Load,
        /// Frame lengths with FCS, and mixes of them: 64,1518,imix,genome:aaafg
        #[arg(long, alias = "size", value_name = "LIST", default_value = "rfc2544", value_parser = sizes)]
        sizes: Sizes,
    },
    /// A mix of frame lengths: the frames/s that fill a link; or the bit/s of a frame rate, and the links that a router with this rate fills
    #[command(after_help = "Examples:
  linerate calc imix 10G                            what a 10-gigabit IMIX router must forward
  linerate calc imix 7Mpps                          the links that a router of this rate carries
  linerate calc imix 10G --size genome:aaafg        another mix, as a genome of RFC 6985

A router's rate counts the frames that it forwards in both directions together.")]
    Imix {
        /// Speed of a link, or a router's rate: 10G, 7Mpps
        #[arg(value_parser = load)]
        load: Load,
        /// The mix: imix (7:4:1 of 64, 594 and 1518 B), a genome, or mix:64x7+594x4
        #[arg(long, value_name = "MIX", default_value = "imix")]
        size: FrameMix,
    },
    /// How much of a frame is headers, and the payload that a full link carries
    #[command(after_help = "Examples:
  linerate calc overhead                                      UDP over IPv4, all lengths of RFC 2544
  linerate calc overhead --sizes 1518 --tcp --options 12      a TCP stream with timestamps at 10 Gbit/s
  linerate calc overhead --sizes 128 -6 --vlans 1             IPv6 with a VLAN tag")]
    Overhead {
        /// Frame lengths with FCS, and mixes of them
        #[arg(long, alias = "size", value_name = "LIST", default_value = "rfc2544", value_parser = sizes)]
        sizes: Sizes,
        /// Speed of the link
        #[arg(long, value_name = "SPEED", default_value = "10G", value_parser = parse_link_speed)]
        link: f64,
        /// IPv6 instead of IPv4
        #[arg(short = '6', long)]
        ipv6: bool,
        /// TCP instead of UDP
        #[arg(long)]
        tcp: bool,
        /// VLAN tags
        #[arg(long, value_name = "N", default_value_t = 0)]
        vlans: u8,
        /// Bytes of options and tunnels: 12 for TCP's timestamps
        #[arg(long, value_name = "BYTES", default_value_t = 0)]
        options: u16,
    },
    /// Time, cycles and cache misses for each frame at a rate; or the rate at N cycles for each frame
    #[command(after_help = "Examples:
  linerate calc budget 10G --clock 3GHz                        64-byte frames at line rate, one core
  linerate calc budget 1.49Mpps --clock 2.4GHz --cores 4       a rate, and several cores
  linerate calc budget --cycles 1200 --clock 2.4GHz            the reverse: the rate at 1200 cycles for each frame")]
    #[command(group = clap::ArgGroup::new("asked").required(true).args(["load", "cycles"]))]
    Budget {
        /// Speed of a full link, or a rate: 10G, 1.49Mpps
        #[arg(value_parser = load)]
        load: Option<Load>,
        /// Instead of a load: cycles that a frame takes
        #[arg(long, value_name = "N", value_parser = count)]
        cycles: Option<f64>,
        /// Frame length with FCS, or a mix
        #[arg(long, value_name = "SIZE", default_value = "64")]
        size: FrameMix,
        /// Cores that handle frames
        #[arg(long, value_name = "N", default_value_t = 1)]
        cores: u32,
        /// Clock of a core
        #[arg(long, value_name = "HERTZ", default_value = "3GHz", value_parser = hertz)]
        clock: f64,
        /// Time of a miss of all caches
        #[arg(long, value_name = "TIME", default_value = "32ns", value_parser = duration)]
        miss: Duration,
    },
    /// Bandwidth of PCI, PCI-X and PCIe slots, and the links that they carry in both directions
    #[command(after_help = "Examples:
  linerate calc pcie                               all slots
  linerate calc pcie 3x8                           PCIe 3 with 8 lanes
  linerate calc pcie '5GT/s x4' --link 10G --ports 2    as lspci prints it: does it carry two ports?
  linerate calc pcie --link 25G                    which slots carry it?
  linerate calc pcie pcix133x64                    PCI and PCI-X: clock in MHz and bits")]
    Pcie {
        /// The slot: 3x8, '8GT/s x8', pci33x32, pcix133x64 [default: all]
        slot: Option<Slot>,
        /// Speed of the card's links: 10G
        #[arg(long, value_name = "SPEED", value_parser = parse_link_speed)]
        link: Option<f64>,
        /// Ports of the card
        #[arg(long, value_name = "N", default_value_t = 1)]
        ports: u32,
        /// Largest payload in bytes: lspci -vv prints MaxPayload
        #[arg(long, value_name = "BYTES", default_value_t = 256)]
        payload: u16,
    },
    /// pf: limit of states, size of its hash, memory
    #[command(after_help = "Examples:
  linerate calc pf-states 10M                  the hash of 10 million states
  linerate calc pf-states --connections 5M     the same: pf keeps two states for each forwarded connection
  linerate calc pf-states 10M --memory 8GiB    the share of the host's memory
  linerate calc pf-states --hash 32768         the states that suit FreeBSD 11's default")]
    PfStates {
        #[command(flatten)]
        table: Table,
        #[command(flatten)]
        stay: Stay,
        /// Memory of the host: 8GiB
        #[arg(long, value_name = "SIZE", value_parser = bytes)]
        memory: Option<f64>,
    },
    /// ipfw: dyn_max and dyn_buckets
    #[command(after_help = "Examples:
  linerate calc ipfw-states 5M               the buckets of 5 million states
  linerate calc ipfw-states --hash 65536     the states that suit FreeBSD 11's largest number of buckets")]
    IpfwStates {
        #[command(flatten)]
        table: Table,
        #[command(flatten)]
        stay: Stay,
    },
    /// Linux connection tracking: nf_conntrack_max, nf_conntrack_buckets, memory
    #[command(after_help = "Examples:
  linerate calc conntrack 1M                  the buckets and the memory of a million connections
  linerate calc conntrack 1M --memory 4GiB    and the kernel's default for 4 GiB
  linerate calc conntrack --rate 5k           5,000 new connections a second, whose entries stay 120 s")]
    Conntrack {
        #[command(flatten)]
        table: Table,
        #[command(flatten)]
        stay: Stay,
        /// Memory of the host: 4GiB
        #[arg(long, value_name = "SIZE", value_parser = bytes)]
        memory: Option<f64>,
    },
    /// FreeBSD's entropy harvest mask: number, bits and names; and the mask without the sources that cost a router time
    #[command(after_help = "Examples:
  linerate calc harvest-mask 511                          without INTERRUPT and NET_ETHER: 351
  linerate calc harvest-mask 511 --without NET_ETHER      without that source alone
  linerate calc harvest-mask 351 --without ''             as it is, in bits and by name
  linerate calc harvest-mask '[UMA],SWI,INTERRUPT'        names as sysctl prints them")]
    HarvestMask {
        /// The mask: a number, bits as mask_bin has them, or names as mask_symbolic has them
        mask: Mask,
        /// Sources to leave out [default: INTERRUPT,NET_ETHER]
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        without: Option<Vec<String>>,
    },
    /// Queues of a network card, and how evenly its RSS table spreads over them
    #[command(after_help = "Examples:
  linerate calc queues --cores 24                                       the number to set
  linerate calc queues --cores 6 --slots 64                             why not one for each of 6 cores
  linerate calc queues --cores 24 --rate 14.88Mpps --each 1.36Mpps      queues for line rate")]
    Queues {
        /// Number of cores; second threads of cores do not count
        #[arg(long, value_name = "N")]
        cores: u32,
        /// The most queues that the driver makes
        #[arg(long, value_name = "N", default_value_t = 64)]
        most: u32,
        /// Slots of the card's RSS table: ethtool -x prints them
        #[arg(long, value_name = "N", default_value_t = 128)]
        slots: u32,
        /// A rate that is wanted: 14.88Mpps
        #[arg(long, value_name = "RATE", value_parser = frames, requires = "each")]
        rate: Option<f64>,
        /// The rate of one queue, as measured: 1.36Mpps
        #[arg(long, value_name = "RATE", value_parser = frames, requires = "rate")]
        each: Option<f64>,
    },
    /// RSS: the Toeplitz hash and queue of a flow, the spread of many flows, and flows that spread evenly
    Rss(RssArgs),
    /// Bandwidth-delay product: give two of link, round-trip time and window, to compute the third
    #[command(after_help = "Examples:
  linerate calc bdp 10G --rtt 80ms                    the window that fills the link
  linerate calc bdp --window 64KiB --rtt 80ms         the rate that a window allows
  linerate calc bdp --window 16MiB --link 10G         the longest round-trip time at which this window fills the link")]
    Bdp {
        /// Speed of the link: 10G
        #[arg(value_name = "SPEED", value_parser = parse_link_speed)]
        speed: Option<f64>,
        /// Round-trip time, as --rtt: 80ms
        #[arg(value_name = "TIME", value_parser = duration, conflicts_with = "rtt")]
        after: Option<Duration>,
        /// Speed of the link, as SPEED
        #[arg(long, value_name = "SPEED", value_parser = parse_link_speed, conflicts_with = "speed")]
        link: Option<f64>,
        /// Round-trip time: 80ms
        #[arg(long, value_name = "TIME", value_parser = duration)]
        rtt: Option<Duration>,
        /// Window or buffer: 16MiB
        #[arg(long, value_name = "SIZE", value_parser = bytes)]
        window: Option<f64>,
    },
    /// How many trials show a given difference in percent, or which difference a given number of trials shows
    #[command(after_help = "Examples:
  linerate calc trials --difference 1% --deviation 0.5%     trials that show one percent
  linerate calc trials --trials 5 --deviation 0.48%         the difference that five trials show")]
    #[command(group = clap::ArgGroup::new("asked").required(true).args(["difference", "trials"]))]
    Trials {
        /// The difference to show: 1%
        #[arg(long, value_name = "SHARE")]
        difference: Option<Share>,
        /// Instead of a difference: trials of each variant
        #[arg(long, value_name = "N")]
        trials: Option<u32>,
        /// Standard deviation of a trial, as a share of the rate: 0.5%
        #[arg(long, value_name = "SHARE")]
        deviation: Share,
        /// Confidence of the test
        #[arg(long, value_name = "SHARE", default_value = "95%")]
        confidence: Share,
    },
    /// A rate in frames/s, bit/s at layers 1, 2 and 3, and bytes/s
    #[command(after_help = "Examples:
  linerate calc convert 1.488Mpps                     64-byte frames
  linerate calc convert 9.41Gbit/s:l3 --size 1518     bits of IP packets
  linerate calc convert 117MB/s:l2 --size imix        bytes of frames with FCS

    Layer 1 counts frames with preamble and gap, layer 2 frames with FCS, layer 3 IP packets.")]
    Convert {
        /// The rate: 1.488Mpps, 1Gbit/s:l1, 1Gbit/s:l2, 1Gbit/s:l3, 125MB/s:l3
        #[arg(value_parser = rate)]
        rate: ethernet::Rate,
        /// Frame length with FCS, or a mix
        #[arg(long, value_name = "SIZE", default_value = "64")]
        size: FrameMix,
    },
}

/// One of three numbers about a state table.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Table {
    /// Limit of the table's entries (states of pf and ipfw, connections of Linux): 10M
    #[arg(value_name = "ENTRIES", value_parser = count)]
    states: Option<f64>,
    /// Instead of entries: connections that the table must hold: 5M. A connection is all packets between two endpoints, in both
    /// directions
    #[arg(long, value_name = "N", value_parser = count)]
    connections: Option<f64>,
    /// The reverse: compute the entries that suit a hash with this number of slots or buckets
    #[arg(long, value_name = "N", value_parser = count)]
    hash: Option<f64>,
    /// New connections a second, such as 5k: the table must hold each as long as --stay says
    #[arg(long, value_name = "N", value_parser = count)]
    rate: Option<f64>,
}

/// How long a connection stays.
#[derive(Args)]
struct Stay {
    /// With --rate: how long an entry stays in the table, from the first frame until it is removed [default: that of a short connection
    /// of TCP: 120s in Linux, 90s in pf, 1s in ipfw]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "rate")]
    stay: Option<Duration>,
}

impl Table {
    /// `usual_s`: seconds that the firewall remembers a connection.
    fn asked(&self, Stay { stay }: &Stay, usual_s: f64) -> Asked {
        let stays_s = stay.map_or(usual_s, |stay| stay.as_secs_f64());
        let asked = self
            .states
            .map(Asked::States)
            .or(self.connections.map(Asked::Connections));
        let asked = asked.or(self.rate.map(|each_second| Asked::Rate {
            each_second,
            stays_s,
        }));
        asked.unwrap_or(Asked::Hash(self.hash.unwrap_or_default()))
    }
}

/// Receive-side scaling.
#[derive(Args)]
#[command(after_help = "Examples:
  linerate calc rss --queues 8                                    linerate's own 2,000 flows over 8 queues
  linerate calc rss --queues 6 --slots 64                         over 6 queues of a table of 64
  linerate calc rss --src 66.9.149.187:2794 --dst 161.142.100.80:1766     hash and queue of one flow
  linerate calc rss --src 198.18.10.1-20 --dst 198.19.10.1-100 --fields addresses     the papers' flows
  linerate calc rss --key symmetric --table 0,1,2,3,0,1,2,3    a table as ethtool -x prints it
  linerate calc rss --queues 8 --even                             flows that spread evenly")]
struct RssArgs {
    /// Sources, in pkt-gen's form: 198.18.10.1:2001-198.18.10.20:2010
    #[arg(long, value_name = "RANGE", requires = "dst")]
    src: Option<String>,
    /// Destinations
    #[arg(long, value_name = "RANGE", requires = "src")]
    dst: Option<String>,
    /// Instead of --src and --dst: number of flows in linerate's own ranges of addresses and ports
    #[arg(long, value_name = "N", default_value = "2000", value_parser = count, conflicts_with = "src")]
    flows: f64,
    /// IPv6 instead of IPv4, for linerate's own ranges and for --even
    #[arg(short = '6', long, conflicts_with = "src")]
    ipv6: bool,
    /// Queues
    #[arg(long, value_name = "N", default_value_t = 8)]
    queues: u32,
    /// Slots of the indirection table, which names the queues in turn
    #[arg(long, value_name = "N", default_value_t = 128)]
    slots: u32,
    /// The queue of each slot, if the slots do not name the queues in turn: 0,1,2,3
    #[arg(long, value_name = "QUEUES", value_delimiter = ',', conflicts_with_all = ["queues", "slots"])]
    table: Option<Vec<u32>>,
    /// The key: microsoft, symmetric, or hexadecimal as ethtool -x prints it
    #[arg(long, value_name = "KEY", default_value = "microsoft")]
    key: Key,
    /// Fields that the card hashes
    #[arg(long, value_name = "FIELDS", default_value = "ports", value_parser = ["ports", "addresses"])]
    fields: String,
    /// Compute ranges with at least --flows flows that spread evenly over the queues
    #[arg(long, conflicts_with = "src")]
    even: bool,
}

impl RssArgs {
    fn calculate(self) -> Result {
        let family = if self.ipv6 { Family::V6 } else { Family::V4 };
        let fields = if self.fields == "ports" {
            Fields::Ports
        } else {
            Fields::Addresses
        };
        let card = match self.table {
            Some(table) => Rss::new(self.key, fields, table),
            None => Rss::in_turn(self.key, fields, self.queues, self.slots),
        }?;
        match self.src.zip(self.dst) {
            _ if self.even => rss_even(&card, family, self.flows as u64),
            Some((src, dst)) => rss(&card, &FlowSpace::parse(&src, &dst)?),
            None => rss(&card, &FlowSpace::benchmark(family, self.flows as u32)?),
        }
    }
}

/// Runs the verb.
///
/// # Errors
/// Numbers that are impossible.
pub fn run(args: Calc) -> Exit {
    let answer = calculate(args.what).map_err(usage)?;
    result(&args.printed, || &answer, || pages::calculation(&answer))
}

fn calculate(what: What) -> Result {
    match what {
        What::LineRate { load, sizes } => line_rate(load, &sizes.0),
        What::Imix { load, size } => imix(load, &size),
        What::Overhead {
            sizes,
            link,
            ipv6,
            tcp,
            vlans,
            options,
        } => {
            let headers = Headers {
                ipv6,
                tcp,
                vlans,
                options,
            };
            overhead(link, &sizes.0, headers)
        }
        What::Budget {
            load,
            cycles,
            size,
            cores,
            clock,
            miss,
        } => budget_or_rate(load, cycles, &size, processors(cores, clock, miss)),
        What::Pcie {
            slot,
            link,
            ports,
            payload,
        } => pcie(slot, payload.into(), link, ports),
        What::PfStates {
            table,
            stay,
            memory,
        } => pf_states(table.asked(&stay, STAYS_S[1]), memory),
        What::IpfwStates { table, stay } => ipfw_states(table.asked(&stay, STAYS_S[2])),
        What::Conntrack {
            table,
            stay,
            memory,
        } => conntrack(table.asked(&stay, STAYS_S[0]), memory),
        What::HarvestMask { mask, without } => harvest(mask, without),
        What::Queues {
            cores,
            most,
            slots,
            rate,
            each,
        } => queues(Card {
            cores,
            most,
            slots,
            wanted: rate.zip(each),
        }),
        What::Rss(card) => card.calculate(),
        What::Bdp {
            speed,
            after,
            link,
            rtt,
            window,
        } => bdp(speed.or(link), rtt.or(after).map(nanoseconds), window),
        What::Trials {
            difference,
            trials: number,
            deviation,
            confidence,
        } => trials(asked(difference, number), deviation.0, confidence.0),
        What::Convert { rate, size } => convert(rate, &size),
    }
}

fn budget_or_rate(
    load: Option<Load>,
    cycles: Option<f64>,
    size: &FrameMix,
    processors: Processors,
) -> Result {
    match load {
        Some(load) => budget(load, size, processors),
        None => capacity(cycles.unwrap_or_default(), size, processors),
    }
}

fn processors(cores: u32, hertz: f64, miss: Duration) -> Processors {
    Processors {
        cores,
        hertz,
        miss_ns: nanoseconds(miss),
    }
}

fn harvest(mask: Mask, without: Option<Vec<String>>) -> Result {
    match without {
        Some(names) => {
            let names: Vec<&str> = names
                .iter()
                .map(|name| name.trim())
                .filter(|name| !name.is_empty())
                .collect();
            harvest_mask(mask, &names)
        }
        None => harvest_mask(mask, &COSTLY),
    }
}

fn asked(difference: Option<Share>, number: Option<u32>) -> trials::Asked {
    match difference {
        Some(difference) => trials::Asked::Difference(difference.0),
        None => trials::Asked::Trials(number.unwrap_or_default().into()),
    }
}

/// A negative number on the command line of `calc`, which clap would take for an option. -6 is the option for IPv6.
pub fn negative() -> Option<String> {
    let mut words = std::env::args().skip(1);
    let is = |word: &String| {
        word.strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
            && word != "-6"
    };
    if words.next()? == "calc" {
        words.find(is)
    } else {
        None
    }
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}
