//! Arguments of `linerate lab`.

use super::{LabCheck, LabRestore};
use clap::{Args, Subcommand, ValueEnum};
use linerate_plan::BuiltIn;

/// An embedded lab by hand, and the lab files of real ones.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo linerate lab up --variant nft-stateful     the tester baseline is lane 0, the variant lane 1
  sudo ip netns exec linerate-dut0 nft list ruleset
  sudo linerate send --netns linerate-generator -i g1 -n 1000 &
  sudo linerate receive --netns linerate-receiver -i r1 -n 1000
  sudo linerate lab down
  linerate lab example > LAB.toml                 a lab of real hosts, to begin with
  linerate lab example three-hosts > LAB.toml     generator, DUT and receiver apart
  linerate lab check LAB.toml                     find everything that would spoil a campaign
  linerate lab restore LAB.toml                   undo changes that a killed linerate left on the DUT
  linerate lab schema > lab.schema.json           for editors that complete and check TOML")]
pub struct Lab {
    #[command(subcommand)]
    pub action: LabAction,
}

/// What to do with a lab.
#[derive(Debug, Subcommand)]
pub enum LabAction {
    /// Build a lab whose namespaces have names, and leave it up
    Up {
        /// Variant of a DUT; may be repeated
        #[arg(long = "variant", value_name = "VARIANT", default_value = "forwarding")]
        variants: Vec<BuiltIn>,
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
        /// Print the records of the labs as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a commented lab file of real hosts to begin with
    Example {
        /// One tester beside the DUT, or a generator and a receiver
        #[arg(value_enum, value_name = "HOSTS", default_value = "two-hosts")]
        hosts: LabExample,
    },
    Check(LabCheck),
    Restore(LabRestore),
    /// Print the JSON Schema of lab files
    Schema,
}

/// Lab files to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LabExample {
    /// A DUT between two ports of one tester
    TwoHosts,
    /// A generator, a DUT and a receiver
    ThreeHosts,
}

fn lab_name(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !text.is_empty() && text.len() <= 40 && text.chars().all(fine) && !text.starts_with(['-', '.']) {
        Ok(text.to_string())
    } else {
        Err(format!("'{text}' cannot be the name of a lab: use up to 40 letters, digits, '-', '_' or '.'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert!(lab_name("../x").is_err() && lab_name("").is_err() && lab_name("a b").is_err());
    }
}
