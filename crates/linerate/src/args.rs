//! Groups of arguments that several verbs take, and how their values are read.

pub mod keyed;

use crate::output::usage;
use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use keyed::{Opt, key};
use linerate_plan::Diagnostic;
use linerate_plan::backend::{Backend, OF_THIS_MACHINE};
use linerate_plan::lab::Ssh as Destination;
use linerate_plan::names::Named;
use linerate_plan::rules::Families;
use linerate_plan::rules::own::Meaning;
use linerate_plan::units::Rate;
use linerate_plan::{parse_cpus, parse_duration_ns};
use linerate_remote::{Approach, Target};
use linerate_report::format::{FORMATS, Format};
use linerate_runner::session::Wanted;
use linerate_wire::{FrameMix, parse_sizes};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// How a result is printed.
#[derive(Debug, Clone, Args)]
pub struct Printed {
    /// Format of the result: json has all data, csv is for a spreadsheet; the others are for reading
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text", value_parser = formats())]
    format: &'static dyn Format,

    /// Short for --format json
    #[arg(long, global = true, conflicts_with = "format")]
    json: bool,
}

impl Default for Printed {
    fn default() -> Self {
        Printed {
            format: FORMATS[0],
            json: false,
        }
    }
}

impl Printed {
    /// The format that is asked for.
    pub fn format(&self) -> &'static dyn Format {
        if self.json {
            named("json")
        } else {
            self.format
        }
    }

    /// The format that the ending of a file's name asks for, where no other is.
    ///
    /// # Errors
    /// The file would get what is for a terminal.
    pub fn for_file(&self, file: Option<&Path>) -> anyhow::Result<Printed> {
        let end = file.and_then(Path::extension).and_then(|end| end.to_str());
        let format = match end {
            _ if !self.is_text() => return Ok(self.clone()),
            Some("html" | "htm") => "html",
            Some("csv") => "csv",
            Some("json") => "json",
            Some("md" | "markdown") => "markdown",
            _ if file.is_some() => bail_usage!(
                "--out is for pages and figures: end the file's name in .html, .csv, .json or .md, or name a format (--format csv); redirect what is for a terminal"
            ),
            _ => return Ok(self.clone()),
        };
        Ok(Printed {
            format: named(format),
            json: false,
        })
    }

    /// Whether it is one for programs, which get the record instead of the page.
    pub fn is_json(&self) -> bool {
        self.format().name() == "json"
    }

    /// Whether it is the default format of a terminal.
    pub fn is_text(&self) -> bool {
        self.format().name() == "text"
    }
}

/// Reads the name of a format.
pub fn formats() -> impl TypedValueParser<Value = &'static dyn Format> {
    PossibleValuesParser::new(FORMATS.map(|format| format.name())).map(|name| named(&name))
}

/// The format of this name, or else text.
pub fn named(name: &str) -> &'static dyn Format {
    FORMATS
        .into_iter()
        .find(|format| format.name() == name)
        .unwrap_or(FORMATS[0])
}

/// Where `send` and `receive` work, and how they tell of it.
#[derive(Debug, Args)]
pub struct AtInterface {
    /// The interface
    #[arg(
        short = 'i',
        long,
        visible_alias = "dev",
        value_name = "IFACE",
        required_unless_present = "file"
    )]
    pub interface: Option<String>,

    /// Namespace of the interface: a name that `ip netns` knows, or a path
    #[arg(long = "namespace", alias = "netns", value_name = "NAME")]
    pub netns: Option<String>,

    /// Confirms that this interface is part of an isolated lab
    #[arg(long, value_name = "IFACE")]
    pub isolated_lab: Vec<String>,

    /// Seconds to wait for the link
    #[arg(short = 'w', long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=600))]
    pub wait_link: u64,

    /// How frames leave or arrive [default: xdp; `send` takes af-packet where the driver cannot transmit from XDP]
    #[arg(long, alias = "port", value_name = "BACKEND", value_parser = own_backend())]
    pub backend: Option<Backend>,

    /// Number of the sender: `send` writes it into its frames, and `receive` counts only frames with this number
    #[arg(long, alias = "campaign", value_name = "N", default_value_t = 1)]
    pub sender: u8,

    /// Milliseconds between two lines of output while frames are sent or received
    #[arg(short = 'T', long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    pub report_ms: u64,

    /// Print plain numbers in the lines of output, without k, M and G
    #[arg(short = 'N', long)]
    pub normalize: bool,

    #[command(flatten)]
    pub printed: Printed,
}

/// How hosts are reached.
#[derive(Debug, Clone, Args)]
pub struct Ssh {
    /// Accept and remember the keys of hosts that ssh does not know yet
    #[arg(long)]
    pub accept_new_keys: bool,

    /// Use this ssh configuration instead of your own
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
}

impl Ssh {
    pub fn approach(&self) -> Approach {
        Approach {
            accept_new: self.accept_new_keys,
            config: self.ssh_config.clone(),
            ..Approach::default()
        }
    }

    /// A host that an argument names, in the form of lab files: `root@192.0.2.1:2222`.
    ///
    /// # Errors
    /// The name is of another form.
    pub fn target(&self, name: &str) -> Result<Target> {
        let ssh: Destination = name
            .parse()
            .map_err(|why| usage(format!("ssh cannot connect to '{name}': {why}")))?;
        Ok(Target {
            config: self.ssh_config.clone(),
            accept_new: self.accept_new_keys,
            ..Target::from(&ssh).named(name)
        })
    }
}

/// How a campaign is carried out, whatever its plan.
#[derive(Debug, Default, Clone, Args)]
pub struct CampaignArgs {
    /// Time for all trials, instead of the plan's: 30s, 10min
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub budget: Option<Duration>,

    /// Seed of the order of trials [default: the plan's, or a random one, which is recorded]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Name of the campaign (this measurement and its records), and part of the name of its directory [default: the plan's file name, or the verb]
    #[arg(long)]
    pub name: Option<String>,

    /// Directory for the records, instead of ./linerate-results/TIME-NAME. `linerate list` and the name `last` (the newest
    /// campaign) find only campaigns below linerate-results; give DIR itself to `show`, `explain` and `compare`
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Allow the campaign to change settings of the whole host; they are restored afterwards
    #[arg(long)]
    pub allow_host_changes: bool,

    /// Afterwards, sample the kernel under the load of each cell (a variant with its traffic), for 3 s each: which functions take a
    /// frame's time, how long frames are in the stack, drops, waits for locks, and the causes of the limit. Rates do not include
    /// these trials
    #[arg(long, conflicts_with = "simulate")]
    pub profile: bool,

    /// Leave the embedded lab up afterwards (`linerate lab status` shows it, `linerate lab down` removes it)
    #[arg(long, conflicts_with = "simulate")]
    pub keep: bool,

    /// Write a page for a browser at the end, beside the records (report.html; the page that `linerate show --format html` prints)
    #[arg(long)]
    pub report: bool,

    /// Write the verdicts as JUnit XML at the end, for CI (`linerate export junit`)
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,

    /// Exit with status 3 if a variant is certainly slower than the baseline by this share, such as 3% (its whole 95 % interval lies beyond
    /// it, or both bounds of a search); with 5 if that is undecided (a part of the interval lies beyond it, or there is none)
    #[arg(long, value_name = "SHARE")]
    pub fail_if_slower: Option<Share>,

    #[command(flatten)]
    pub printed: Printed,

    /// Print the whole page, not one screen: all cells, counters, latency, and the method
    #[arg(long)]
    pub full: bool,

    /// Print errors only: no progress, and no results unless --json or --format asks for them
    #[arg(short, long, conflicts_with = "full")]
    pub quiet: bool,

    /// Simulate the DUT in memory; variants then differ in name only. WHAT is `ok` (without faults), or a list such as rate=10kpps,queue=512. Items: loss=N (every N-th frame),
    /// duplication=N, delay=T, rate=R, queue=N, outage=T@T (length, and time after the load starts), noise=SHARE (with rate=: scatter of the rates),
    /// step=SHARE@N (slower from the N-th level of a factor on). A simulated queue drops frames and delays none. Needs no privileges; says
    /// nothing about this machine
    #[arg(long, value_name = "WHAT", conflicts_with = "allow_host_changes")]
    pub simulate: Option<String>,

    /// For kernels in guests (`kernel` in the plan, bench --kernel): if there is no KVM, let QEMU emulate the CPU. For trying things out:
    /// no figure is that of a real machine, and every page says so
    #[arg(long, conflicts_with = "simulate")]
    pub emulated: bool,
}

impl CampaignArgs {
    /// As the runner takes them.
    pub fn wanted(&self) -> Wanted {
        Wanted {
            budget: self.budget,
            seed: self.seed,
            out: self.out.clone(),
            allow_host_changes: self.allow_host_changes,
            profile: self.profile,
            keep: self.keep,
            simulate: self.simulate.clone(),
            kernels: Vec::new(),
            emulated: self.emulated,
        }
    }
}

/// A share that was written as a percentage, 0..1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text
            .strip_suffix('%')
            .map(str::trim)
            .and_then(|t| t.parse::<f64>().ok());
        match percent.filter(|p| (0.0..100.0).contains(p)) {
            Some(percent) => Ok(Share(percent / 100.0)),
            None => Err(format!(
                "'{text}' is not a share from 0% to below 100%: write 3%"
            )),
        }
    }
}

/// Headers and endpoints of the frames.
pub const HEADERS: [Opt; 5] = [
    key("--ports", "traffic.ports", "PORTS"),
    key("--addresses", "traffic.addresses", "ADDRESSES"),
    key("--source-macs", "traffic.source-macs", "MACS"),
    key("--ipv6-share", "traffic.ipv6-share", "LIST").levels(),
    key("--extension-headers", "traffic.extension-headers", "LIST").levels(),
];

/// IP versions.
pub fn families() -> impl TypedValueParser<Value = Families> {
    let values = [("4", "ipv4"), ("6", "ipv6"), ("both", "both")];
    let values = values.map(|(name, alias)| PossibleValue::new(name).alias(alias));
    PossibleValuesParser::new(values).map(|name| match name.as_str() {
        "4" | "ipv4" => Families::Ipv4,
        "6" | "ipv6" => Families::Ipv6,
        _ => Families::Both,
    })
}

/// The values of an enum, by the names that files give them.
pub fn names_of<T: Named + Clone + Send + Sync + 'static>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::names()).try_map(|name| T::parse_name(&name, "known"))
}

/// Linerate's own backends, by the names of the registry.
pub fn own_backend() -> impl TypedValueParser<Value = Backend> {
    let values = OF_THIS_MACHINE
        .iter()
        .map(|(name, summary)| PossibleValue::new(*name).help(*summary));
    let values: Vec<PossibleValue> = values.collect();
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Backend>())
}

/// Frame lengths to measure side by side.
#[derive(Debug, Clone)]
pub struct Sizes(pub Vec<FrameMix>);

pub fn sizes(text: &str) -> Result<Sizes, String> {
    parse_sizes(text).map(Sizes).map_err(|e| e.to_string())
}

/// CPU numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus(pub Vec<u32>);

pub fn cpu_list(text: &str) -> Result<Cpus, Diagnostic> {
    parse_cpus(text).map(Cpus)
}

/// Meaning of a rule file's name: `eth0=out`.
pub fn mapping(text: &str) -> Result<(String, Meaning), String> {
    let (name, end) = text.rsplit_once('=').unwrap_or((text, ""));
    match Meaning::of_name(end) {
        Some(end) if !name.is_empty() => Ok((name.into(), end)),
        None if !end.is_empty() => Err(format!("'{end}' is none of in, out and elsewhere")),
        _ => Err(format!(
            "'{text}' does not say what a name is: write eth0=out, 192.168.1.0/24=in or NETWORK=elsewhere"
        )),
    }
}

pub fn duration(text: &str) -> Result<Duration, String> {
    parse_duration_ns(text).map(Duration::from_nanos)
}

/// A rate; a number alone is frames a second, as pkt-gen has it.
pub fn pkt_gen_rate(text: &str) -> Result<Rate, Diagnostic> {
    text.parse()
        .or_else(|wrong| format!("{text}pps").parse().map_err(|_| wrong))
}

/// A count of frames.
pub fn count(text: &str) -> Result<u64, String> {
    match number(text, 0, u64::MAX)? {
        0 => Err("at least 1: leave it out to end by --duration alone".into()),
        count => Ok(count),
    }
}

/// A number such as 1000, 80_000_000, 10k or 1M.
pub fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let plain = text.trim().replace('_', "");
    let scaled = [("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000)];
    let lower = plain.to_ascii_lowercase();
    let (digits, scale) = scaled
        .iter()
        .find_map(|(unit, scale)| lower.strip_suffix(unit).map(|digits| (digits, *scale)))
        .unwrap_or((&lower, 1));
    let value = digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(scale));
    let value = value.ok_or_else(|| format!("'{text}' is not a number: write 1000, 10k or 1M"))?;
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(format!("from {least} to {most}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages() {
        assert_eq!("3%".parse(), Ok(Share(0.03)));
        assert_eq!("0.5 %".parse(), Ok(Share(0.005)));
        for wrong in ["3", "", "%", "-1%", "100%", "nan%", "x%"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_and_counts() {
        assert_eq!(cpu_list("3,0-1,1"), Ok(Cpus(vec![0, 1, 3])));
        assert!(cpu_list("1-0").is_err() && cpu_list("").is_err() && cpu_list("a").is_err());
        assert_eq!(count("10M"), Ok(10_000_000));
        assert_eq!(pkt_gen_rate("100k"), Ok(Rate::Frames(1e5)));
        assert!(pkt_gen_rate("0").is_err() && pkt_gen_rate("1Gbit/s").is_err());
        assert!(count("0").is_err() && count("").is_err() && count("µ").is_err());
    }
}
