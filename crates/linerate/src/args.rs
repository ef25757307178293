//! Groups of arguments that several verbs take.

pub mod values;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use linerate_plan::Backend;
use linerate_remote::Approach;
use linerate_report::format::{FORMATS, Format};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use values::{duration, own_backend};

/// How a result is printed.
#[derive(Debug, Args)]
pub struct Printed {
    /// How to print the result. json gives the whole record, the others what a person reads
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = formats())]
    format: &'static dyn Format,

    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl Printed {
    /// The format that is asked for.
    pub fn format(&self) -> &'static dyn Format {
        if self.json { named("json") } else { self.format }
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
    FORMATS.into_iter().find(|format| format.name() == name).unwrap_or(FORMATS[0])
}

/// Where `send` and `receive` work, and how they tell of it.
#[derive(Debug, Args)]
pub struct AtInterface {
    /// The interface
    #[arg(short = 'i', long, visible_alias = "dev", value_name = "IFACE", required_unless_present = "file")]
    pub interface: Option<String>,

    /// Namespace of the interface: a name that `ip netns` knows, or a path
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,

    /// Confirms that this interface is part of an isolated lab. `receive` drops all frames that arrive there
    #[arg(long, value_name = "IFACE")]
    pub isolated_lab: Vec<String>,

    /// Seconds to wait for the link
    #[arg(short = 'w', long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=600))]
    pub wait_link: u64,

    /// How frames leave or arrive
    #[arg(long, value_name = "BACKEND", default_value = "xdp", value_parser = own_backend())]
    pub port: Backend,

    /// Number of the sender: `send` writes it into its frames, `receive` counts no others
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub campaign: u8,

    /// Milliseconds between two lines
    #[arg(short = 'T', long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    pub report_ms: u64,

    /// Print plain numbers in these lines, without k, M and G
    #[arg(short = 'N', long)]
    pub normalize: bool,

    #[command(flatten)]
    pub printed: Printed,
}

/// How hosts are reached.
#[derive(Debug, Args)]
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
        Approach { accept_new: self.accept_new_keys, config: self.ssh_config.clone(), ..Approach::default() }
    }
}

/// How a campaign is carried out, whatever its plan.
#[derive(Debug, Args)]
pub struct CampaignArgs {
    /// Time for all trials, instead of the plan's [bench: 30s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub budget: Option<Duration>,

    /// Seed of the order of trials [default: the plan's, or drawn and recorded]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Name of the campaign, part of the records' directory [default: the plan's file name, or bench]
    #[arg(long)]
    pub name: Option<String>,

    /// Directory for the records, instead of ./linerate-results/TIME-NAME
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Allow changes of settings of the whole host during the campaign, if it needs them
    #[arg(long)]
    pub allow_host_changes: bool,

    /// Leave the embedded lab up afterwards (`linerate lab status` shows it, `linerate lab down` removes it)
    #[arg(long, conflicts_with = "simulate")]
    pub keep: bool,

    /// Exit with status 3 if a variant is proven slower than the baseline variant by at least this much: 3%
    #[arg(long, value_name = "SHARE")]
    pub fail_if_slower: Option<Share>,

    #[command(flatten)]
    pub printed: Printed,

    /// Print errors only: no results, no progress
    #[arg(short, long, conflicts_with_all = ["json", "format"])]
    pub quiet: bool,

    /// Simulate the DUT in memory instead of building a lab: ok, or loss=N,duplication=N,delay=T,rate=R. Needs no privileges;
    /// the figures are not of this machine
    #[arg(long, value_name = "WHAT", conflicts_with = "allow_host_changes")]
    pub simulate: Option<String>,
}

/// A share that was written as a percentage, 0..1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.strip_suffix('%').map(str::trim).and_then(|t| t.parse::<f64>().ok());
        match percent.filter(|p| (0.0..100.0).contains(p)) {
            Some(percent) => Ok(Share(percent / 100.0)),
            None => Err(format!("'{text}' is not a share from 0% to 100%: write 3%")),
        }
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
}
