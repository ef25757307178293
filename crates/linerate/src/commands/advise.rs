//! `linerate advise`: which settings of a host should change.

use super::facts::{Source, configuration};
use crate::args::{duration, named};
use crate::output::{INTERRUPTED, print, print_json, show};
use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use linerate_advise::{Advice, Demands, Role, advise, lines, version};
use linerate_hosts::configuration::Configuration;
use linerate_plan::units::parse_link_speed;
use linerate_report::format::FORMATS;
use linerate_report::pages;
use std::process::ExitCode;
use std::time::Duration;

/// Recommend settings for a router, firewall, bridge or end host, with reasons and measured effects.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo linerate advise                             this machine, in the role that it seems to have
  linerate advise root@router                      a Linux, FreeBSD or OpenBSD host, over ssh
  linerate advise router --states 1000000          saved facts; tables for a million connections
  linerate advise --role endhost --rtt 80ms --rate 10Gbps    TCP buffers of an end host
  linerate advise router --format shell            the commands, and the lines for each file
  linerate advise router --format diff             the lines that change in each file
  linerate advise --format plan >plan.toml         a plan that measures them: sudo linerate tune plan.toml

Recommendations are sorted by expected gain x certainty. A gain was measured on other machines, which are named
with their source; those with your CPU and card count most. Nothing is changed. docs/advise.md has all rules.

Exit status: 0 done; 1 the host or the folder cannot be read; 2 bad arguments; 130 Ctrl-C.")]
pub struct Advise {
    #[command(flatten)]
    pub source: Source,

    #[command(flatten)]
    pub purpose: Purpose,

    /// How to print. text is a page, json the record; shell, ansible and diff are the lines to change, plan is for `linerate tune`
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = formats())]
    pub format: String,

    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// What the host is for.
#[derive(Debug, Args)]
pub struct Purpose {
    /// What the host is for [default: what its forwarding and its rules show]
    #[arg(long, value_enum)]
    pub role: Option<RoleName>,

    /// The release, where the facts do not have it: 11.1
    #[arg(long, value_name = "RELEASE", value_parser = release)]
    pub release: Option<String>,

    /// Connections that a firewall must keep [default: as many as it may keep now]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub states: Option<u64>,

    /// Round-trip time of an end host's connections
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration)]
    pub rtt: Duration,

    /// Bit rate of an end host's connections [default: that of its fastest link]
    #[arg(long, value_name = "RATE", value_parser = parse_link_speed)]
    pub rate: Option<f64>,
}

impl Purpose {
    /// The advice for a host with these facts.
    ///
    /// # Errors
    /// Its system is not known.
    pub fn advice(&self, mut found: Configuration) -> Result<Advice> {
        let role = self.role.map(|role| match role {
            RoleName::Router => Role::Router,
            RoleName::Firewall => Role::Firewall,
            RoleName::EndHost => Role::EndHost,
            RoleName::Bridge => Role::Bridge,
        });
        found.system.release = self.release.clone().or(found.system.release);
        let demands =
            Demands { role, rtt_ns: self.rtt.as_nanos() as f64, rate: self.rate, states: self.states };
        advise(&found, demands).context("there is no advice for this system")
    }
}

/// A role on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "lowercase")]
pub enum RoleName {
    /// Forwards packets
    Router,
    /// Forwards packets and filters them
    Firewall,
    /// Sends and receives for its own programs
    EndHost,
    /// Forwards frames
    Bridge,
}

fn release(text: &str) -> Result<String, String> {
    match version(text) {
        Some(_) => Ok(text.into()),
        None => Err("write a number such as 13.2".into()),
    }
}

fn formats() -> impl TypedValueParser<Value = String> {
    let names = FORMATS.iter().map(|format| format.name()).chain(lines::FORMS.iter().map(|(name, _)| *name));
    PossibleValuesParser::new(names.collect::<Vec<_>>())
}

/// Runs the verb.
///
/// # Errors
/// The host or the folder cannot be read.
pub fn run(args: &Advise) -> Result<ExitCode> {
    let Some(facts) = args.source.facts()? else { return Ok(ExitCode::from(INTERRUPTED)) };
    let advice = args.purpose.advice(configuration(&facts)?)?;
    let form = lines::FORMS.iter().find(|(name, _)| *name == args.format);
    match form {
        Some((_, write)) => print(&write(&lines::with_lines(&advice.items))),
        None if args.json || args.format == "json" => print_json(&advice)?,
        None => show(named(&args.format), &pages::advice(args.source.name(), &advice)),
    }
    Ok(ExitCode::SUCCESS)
}
