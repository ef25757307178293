//! `linerate calc`: the arithmetic of forwarding.

use crate::args::{Printed, duration};
use crate::output::{result, usage};
use anyhow::Result;
use clap::{Args, Subcommand};
use linerate_calc::harvest::{COSTLY, Mask, harvest_mask};
use linerate_calc::queues::{Card, queues};
use linerate_calc::states::{Asked, conntrack, ipfw_states, pf_states};
use linerate_calc::tcp::bdp;
use linerate_calc::{CalcError, Calculation};
use linerate_plan::units::{number_and_unit, parse_link_speed};
use linerate_report::pages;
use std::process::ExitCode;
use std::time::Duration;

/// Calculate line rates, budgets, state tables, queues and windows, with formula and source.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate calc pf-states --flows 5M                size pf's state table and its hash
  linerate calc harvest-mask 511                    without the sources that cost a router time
  linerate calc bdp --link 10G --rtt 80ms           the window that fills a link
  linerate calc queues --cores 24                   queues of a card, and how even they are

Every calculator has --format text, json, markdown or csv. JSON and CSV have whole units: frames/s,
bit/s, bytes, nanoseconds, shares from 0 to 1. Frame lengths count the FCS, as RFC 2544 does.")]
pub struct Calc {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// pf: limit of states, size of its hash, memory
    PfStates(Asking<PfStates>),
    /// ipfw: dyn_max and dyn_buckets
    IpfwStates(Asking<IpfwStates>),
    /// Linux' connection tracking: nf_conntrack_max, nf_conntrack_buckets, memory
    Conntrack(Asking<Conntrack>),
    /// FreeBSD's entropy harvest mask: number, bits and names; without the sources that cost a router time
    HarvestMask(Asking<HarvestMask>),
    /// Queues of a network card, and how evenly its RSS table spreads over them
    Queues(Asking<Queues>),
    /// Bandwidth-delay product: of link, round-trip time and window, two give the third
    Bdp(Asking<Bdp>),
}

/// A calculator's arguments, and how to print its result.
#[derive(Debug, Args)]
struct Asking<A: Args> {
    #[command(flatten)]
    about: A,
    #[command(flatten)]
    printed: Printed,
}

trait Calculator {
    fn calculate(&self) -> Result<Calculation, CalcError>;
}

impl<A: Args + Calculator> Asking<A> {
    fn answer(&self) -> Result<ExitCode> {
        let answer = self.about.calculate().map_err(usage)?;
        result(&self.printed, || &answer, || pages::calculation(&answer))
    }
}

/// Runs the verb.
///
/// # Errors
/// Numbers that are impossible.
pub fn run(args: &Calc) -> Result<ExitCode> {
    match &args.what {
        What::PfStates(asking) => asking.answer(),
        What::IpfwStates(asking) => asking.answer(),
        What::Conntrack(asking) => asking.answer(),
        What::HarvestMask(asking) => asking.answer(),
        What::Queues(asking) => asking.answer(),
        What::Bdp(asking) => asking.answer(),
    }
}

/// One of three numbers about a state table.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Table {
    /// Limit of states: 10M
    #[arg(value_name = "STATES", value_parser = count)]
    states: Option<f64>,
    /// Flows that it is to hold, instead of states: 5M
    #[arg(long, value_name = "N", value_parser = count)]
    flows: Option<f64>,
    /// The reverse: states that suit a hash of so many slots or buckets
    #[arg(long, value_name = "N", value_parser = count)]
    hash: Option<f64>,
}

impl Table {
    fn asked(&self) -> Asked {
        let asked = self.states.map(Asked::States).or(self.flows.map(Asked::Flows));
        asked.unwrap_or(Asked::Hash(self.hash.unwrap_or_default()))
    }
}

/// pf: limit of states, size of its hash, memory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate calc pf-states 10M                  the hash of 10 million states
  linerate calc pf-states --flows 5M           the same: pf keeps two states for a forwarded flow
  linerate calc pf-states 10M --memory 8GiB    the share of the host's memory
  linerate calc pf-states --hash 32768         the states that suit FreeBSD 11's default")]
struct PfStates {
    #[command(flatten)]
    table: Table,
    /// Memory of the host: 8GiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<f64>,
}

impl Calculator for PfStates {
    fn calculate(&self) -> Result<Calculation, CalcError> {
        pf_states(self.table.asked(), self.memory)
    }
}

/// ipfw: dyn_max and dyn_buckets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate calc ipfw-states 5M               the buckets of 5 million states
  linerate calc ipfw-states --hash 65536     the states that suit the most buckets of FreeBSD 11")]
struct IpfwStates {
    #[command(flatten)]
    table: Table,
}

impl Calculator for IpfwStates {
    fn calculate(&self) -> Result<Calculation, CalcError> {
        ipfw_states(self.table.asked())
    }
}

/// Linux' connection tracking: nf_conntrack_max, nf_conntrack_buckets, memory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate calc conntrack 1M                  the buckets and the memory of a million connections
  linerate calc conntrack 1M --memory 4GiB    and the kernel's default for 4 GiB")]
struct Conntrack {
    #[command(flatten)]
    table: Table,
    /// Memory of the host: 4GiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<f64>,
}

impl Calculator for Conntrack {
    fn calculate(&self) -> Result<Calculation, CalcError> {
        conntrack(self.table.asked(), self.memory)
    }
}

/// FreeBSD's entropy harvest mask.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate calc harvest-mask 511                          without INTERRUPT and NET_ETHER: 351
  linerate calc harvest-mask 511 --without NET_ETHER      without that source alone
  linerate calc harvest-mask 351 --without ''             as it is, in bits and by name
  linerate calc harvest-mask '[UMA],SWI,INTERRUPT'        names as sysctl prints them")]
struct HarvestMask {
    /// The mask: a number, bits as mask_bin has them, or names as mask_symbolic has them
    mask: Mask,
    /// Sources to leave out [default: INTERRUPT,NET_ETHER]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    without: Option<Vec<String>>,
}

impl Calculator for HarvestMask {
    fn calculate(&self) -> Result<Calculation, CalcError> {
        let named: Option<Vec<&str>> = self
            .without
            .as_ref()
            .map(|names| names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect());
        harvest_mask(self.mask, named.as_deref().unwrap_or(&COSTLY))
    }
}

/// Queues of a network card.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate calc queues --cores 24                                       the number to set
  linerate calc queues --cores 6 --slots 64                             why not one for each of 6 cores
  linerate calc queues --cores 24 --rate 14.88Mpps --each 1.36Mpps      queues for line rate")]
struct Queues {
    /// Cores, without the second threads of cores
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
}

impl Calculator for Queues {
    fn calculate(&self) -> Result<Calculation, CalcError> {
        let Queues { cores, most, slots, .. } = *self;
        queues(Card { cores, most, slots, wanted: self.rate.zip(self.each) })
    }
}

/// Bandwidth-delay product.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate calc bdp --link 10G --rtt 80ms             the window that fills the link
  linerate calc bdp --window 64KiB --rtt 80ms         the rate that a window allows
  linerate calc bdp --window 16MiB --link 10G         the longest way that it fills")]
struct Bdp {
    /// Speed of the link: 10G
    #[arg(long, value_name = "SPEED", value_parser = parse_link_speed)]
    link: Option<f64>,
    /// Round-trip time: 80ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    rtt: Option<Duration>,
    /// Window or buffer: 16MiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    window: Option<f64>,
}

impl Calculator for Bdp {
    fn calculate(&self) -> Result<Calculation, CalcError> {
        bdp(self.link, self.rtt.map(|time| time.as_nanos() as f64), self.window)
    }
}

/// A number of things: `5M`, `32768`.
fn count(text: &str) -> Result<f64, String> {
    amount(text, &[""], "a number: write 32768, 500k or 5M")
}

/// A rate of frames: `1.5Mpps`.
fn frames(text: &str) -> Result<f64, String> {
    amount(text, &["pps", "fps"], "a rate of frames: write 1.488Mpps or 700kpps")
}

fn amount(text: &str, units: &[&str], what: &str) -> Result<f64, String> {
    let read = number_and_unit(text).filter(|(_, unit)| units.contains(unit));
    read.map(|(number, _)| number).ok_or_else(|| format!("'{text}' is not {what}"))
}

/// A size of memory: `8GiB` and `8G` are binary, `8GB` is decimal.
fn bytes(text: &str) -> Result<f64, String> {
    let wrong = || format!("'{text}' is not a size: write 65536, 64KiB, 16MiB or 8GiB");
    let (number, unit) = number_and_unit(text).ok_or_else(wrong)?;
    let prefix = text.trim_end().trim_end_matches(unit).chars().last();
    let steps = prefix.map_or(0, |c| "kmgt".find(c.to_ascii_lowercase()).map_or(0, |at| at as i32 + 1));
    match unit {
        "B" | "b" => Ok(number),
        "" | "iB" | "ib" => Ok(number * 1.024f64.powi(steps)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_unless_they_say_otherwise() {
        let near =
            |text: &str, size: f64| assert!((bytes(text).unwrap() / size - 1.0).abs() < 1e-12, "{text}");
        near("65536", 65_536.0);
        near("64KiB", 65_536.0);
        near("64 k", 65_536.0);
        near("8GiB", 8.0 * 1073741824.0);
        near("8GB", 8e9);
        near("100B", 100.0);
        for bad in ["", "8GiBs", "x", "-1", "8 apples"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
