//! `linerate lab`: an embedded lab by hand, and the form of the files that describe real ones.

use super::lab_check::LabCheck;
use super::lab_restore::LabRestore;
use crate::args::Printed;
use crate::output::{print, result, tell, usage};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use linerate_linux::host::changes::{Consent, Host};
use linerate_linux::host::cpu;
use linerate_linux::lab::{EmbeddedLab, LabSpec, Setup};
use linerate_linux::net::netlink::Route;
use linerate_linux::net::registry::{LabRecord, LabState, Registry};
use linerate_linux::net::{Netns, userns};
use linerate_measure::record::Mode;
use linerate_plan::BuiltIn;
use linerate_plan::settings::Dut;
use linerate_report::document::{Document, Tone};
use serde::Serialize;
use std::process::ExitCode;

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
        #[command(flatten)]
        printed: Printed,
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

/// Runs the verb.
///
/// # Errors
/// The lab cannot be built, found or removed.
pub fn run(args: &Lab) -> Result<ExitCode> {
    match &args.action {
        LabAction::Up { variants, name, longest } => up(variants, name, *longest),
        LabAction::Down { name, all } => down(name.as_deref(), *all),
        LabAction::Status { printed } => status(printed),
        LabAction::Check(args) => super::lab_check::run(args),
        LabAction::Restore(args) => super::lab_restore::run(args),
        LabAction::Example { hosts } => {
            print(match hosts {
                LabExample::TwoHosts => linerate_plan::lab::EXAMPLE,
                LabExample::ThreeHosts => linerate_plan::lab::EXAMPLE_THREE_HOSTS,
            });
            Ok(ExitCode::SUCCESS)
        }
        LabAction::Schema => {
            print(&format!("{:#}\n", linerate_plan::lab::schema()));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Removes the remains of a lab whose linerate was killed while it named the lab, and undoes its changes of the host. Labs
/// without names leave nothing. Only the host's own root can have remains: in a user namespace none of it can be changed.
///
/// Returns the names of the labs that were cleared.
///
/// # Errors
/// The remains cannot be removed.
pub fn clear_remains() -> Result<Vec<String>> {
    if !userns::is_initial() || !userns::may_administer_networks() {
        return Ok(Vec::new());
    }
    let cleared =
        Registry::of_this_host().clear_remains().context("clearing the remains of an earlier run")?;
    for name in &cleared {
        tell(format!("cleared the remains of lab {name}, whose linerate had been killed"));
    }
    let journal = Host::this();
    let restored = journal.restore_remains();
    for words in restored.context("undoing changes that a killed linerate made on this host")? {
        tell(format!("restored settings that an interrupted run had changed: {words}"));
    }
    Ok(cleared)
}

fn up(variants: &[BuiltIn], name: &str, longest_fcs: u16) -> Result<ExitCode> {
    if !userns::may_administer_networks() {
        bail!("a lab that stays up needs root: sudo linerate lab up");
    }
    clear_remains()?;
    let cpus = cpu::online_cpus().context("asking which CPUs this process may use")?;
    let mut lanes = vec![Setup::of(Dut::TesterBaseline)];
    lanes.extend(variants.iter().map(Setup::from));
    let spec = LabSpec {
        mode: Mode::Inline,
        generator_cpus: cpus.clone(),
        dut_cpus: cpus,
        longest_fcs,
        flows: 0,
        host_changes: Consent::Refused,
        interrupted: None,
    };
    let lab = EmbeddedLab::build(spec, &lanes)?;
    print(&keep(&lab, name)?);
    Ok(ExitCode::SUCCESS)
}

/// Checks before a long measurement that its lab can be left up.
///
/// # Errors
/// A lab of this name exists, or a DUT that ends with this process.
pub fn can_keep(name: &str, setups: &[Setup]) -> Result<()> {
    check_free(&Registry::of_this_host(), name)?;
    match setups.iter().find(|setup| setup.is_program()) {
        Some(setup) => Err(usage(format!(
            "--keep: {} is an eBPF program, which ends with linerate and cannot be left up",
            setup.name
        ))),
        None => Ok(()),
    }
}

fn check_free(registry: &Registry, name: &str) -> Result<()> {
    if registry.list()?.records.iter().any(|record| record.name == name) {
        bail!("a lab named {name} is up already: sudo linerate lab down --name {name}");
    }
    Ok(())
}

/// Gives the lab's namespaces names and records them. Returns a message for the user.
///
/// # Errors
/// A lab of this name exists, or the names cannot be made.
pub fn keep(lab: &EmbeddedLab, name: &str) -> Result<String> {
    let registry = Registry::of_this_host();
    check_free(&registry, name)?;
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_secs());
    let mut record = LabRecord::begin(name, now);
    record.namespaces = lab.names(name);
    record.duts = lab.lanes.iter().map(|lane| lane.setup.settings.dut).collect();
    // Written before the first name is made: whatever happens next, the next run can find the remains.
    registry.write(&record)?;
    if let Err(error) = lab.persist(name) {
        registry.take_down(&record)?;
        return Err(error.into());
    }
    record.complete = true;
    registry.write(&record)?;
    Ok(describe(&record, Some(lab)))
}

fn describe(record: &LabRecord, lab: Option<&EmbeddedLab>) -> String {
    let name = &record.name;
    let mut text = match record.state() {
        LabState::Up => format!("Lab {name} is up; `linerate lab down --name {name}` removes it.\n"),
        LabState::Beginning => format!("Lab {name} is being put up by process {}.\n", record.owner.pid),
        LabState::Unfinished => {
            format!("Lab {name} is unfinished; `linerate lab down --name {name}` removes its remains.\n")
        }
    };
    for (role, namespace) in &record.namespaces {
        let links = Netns::open(&namespace.name).and_then(|ns| Route::open(&ns)?.links()).unwrap_or_default();
        let names: Vec<&str> = links.iter().map(|l| l.name.as_str()).filter(|n| *n != "lo").collect();
        text += &format!("  {role:<20} ip netns exec {:<22} {}\n", namespace.name, names.join(" "));
    }
    for (number, lane) in lab.iter().flat_map(|l| &l.lanes).enumerate() {
        let between = lane
            .dut
            .as_ref()
            .map_or_else(String::new, |dut| format!("{} | {} -> ", dut.inside.name, dut.outside.name));
        text += &format!(
            "  lane {number}: {:<15} {} -> {between}{}\n",
            lane.setup.name, lane.generator.name, lane.receiver.name
        );
    }
    text
}

fn down(name: Option<&str>, all: bool) -> Result<ExitCode> {
    let registry = Registry::of_this_host();
    let cleared = clear_remains()?;
    if name.is_some_and(|name| cleared.iter().any(|cleared| cleared == name)) {
        return Ok(ExitCode::SUCCESS);
    }
    let records = registry.list()?.records;
    let chosen: Vec<&LabRecord> = records.iter().filter(|r| name.is_none_or(|n| r.name == n)).collect();
    if let (Some(name), true) = (name, chosen.is_empty()) {
        bail!("there is no lab named {name}: linerate lab status lists those that are up");
    }
    if name.is_none() && !all && chosen.len() > 1 {
        let names: Vec<&str> = chosen.iter().map(|r| r.name.as_str()).collect();
        bail!("{} labs are up ({}): say which with --name, or --all", names.len(), names.join(", "));
    }
    for record in chosen {
        registry.take_down(record).with_context(|| format!("taking lab {} down", record.name))?;
        print(&format!("Lab {} is down.\n", record.name));
    }
    Ok(ExitCode::SUCCESS)
}

/// A lab in JSON.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    record: &'a LabRecord,
    state: LabState,
}

fn status(how: &Printed) -> Result<ExitCode> {
    let listing = Registry::of_this_host().list()?;
    for (path, reason) in &listing.damaged {
        tell(format!("{} is damaged: {reason}", path.display()));
    }
    let shown = |record| Shown { record, state: record.state() };
    let page = || {
        let mut page = Document::default();
        let text: String = listing.records.iter().map(|record| describe(record, None)).collect();
        let text = if text.is_empty() { "No lab is up." } else { &text };
        text.lines().for_each(|line| page.code(line, Tone::Plain));
        page
    };
    result(how, || listing.records.iter().map(shown).collect::<Vec<_>>(), page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert!(lab_name("../x").is_err() && lab_name("").is_err() && lab_name("a b").is_err());
    }
}
