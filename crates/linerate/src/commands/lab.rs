//! `linerate lab`: an embedded lab by hand, and the form of the files that describe real ones.

use crate::cli::{Lab, LabAction, LabExample};
use crate::output::{print, usage};
use anyhow::{Context, Result, bail};
use linerate_linux::host::cpu;
use linerate_linux::host::journal::{Consent, Journal};
use linerate_linux::lab::{EmbeddedLab, LabSpec, Setup};
use linerate_linux::net::netlink::Route;
use linerate_linux::net::registry::{LabRecord, LabState, Registry};
use linerate_linux::net::{Netns, userns};
use linerate_plan::BuiltIn;
use linerate_plan::settings::{Dut, Mode};
use std::process::ExitCode;

/// Runs the verb.
///
/// # Errors
/// The lab cannot be built, found or removed.
pub fn run(args: &Lab) -> Result<ExitCode> {
    match &args.action {
        LabAction::Up { variants, name, longest } => up(variants, name, *longest),
        LabAction::Down { name, all } => down(name.as_deref(), *all),
        LabAction::Status { json } => status(*json),
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

/// Removes what a killed linerate left of a lab that was being named, and puts back what it had changed on the host. Labs without
/// names leave nothing. Only the host's own root has anything to clear: in a user namespace none of it can be changed.
///
/// Gives the names of the labs that were cleared.
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
        eprintln!("linerate: cleared the remains of lab {name}, whose linerate had been killed");
    }
    let journal = Journal::of_this_host();
    for words in
        journal.restore_remains().context("putting back what a killed linerate changed on this host")?
    {
        eprintln!("linerate: restored settings that an interrupted run had changed: {words}");
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

/// Says before a long measurement what would keep its lab from being left up.
///
/// # Errors
/// A lab of this name exists, or a DUT that ends with this process.
pub fn can_keep(name: &str, setups: &[Setup]) -> Result<()> {
    if Registry::of_this_host().list()?.records.iter().any(|r| r.name == name) {
        return Err(usage(format!(
            "--keep: a lab named {name} is up already: sudo linerate lab down --name {name}"
        )));
    }
    match setups.iter().find(|setup| setup.is_program()) {
        Some(setup) => Err(usage(format!(
            "--keep: {} is an eBPF program, which ends with linerate and cannot be left up",
            setup.name
        ))),
        None => Ok(()),
    }
}

/// Gives the lab's namespaces names and writes them down. Returns what to tell the user.
///
/// # Errors
/// A lab of this name exists, or the names cannot be made.
pub fn keep(lab: &EmbeddedLab, name: &str) -> Result<String> {
    let registry = Registry::of_this_host();
    if registry.list()?.records.iter().any(|r| r.name == name) {
        bail!("a lab named {name} is up already: linerate lab down --name {name}, or choose another --name");
    }
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_secs());
    let mut record = LabRecord::begin(name, now);
    record.namespaces = lab.names(name);
    record.duts = lab.lanes.iter().map(|lane| lane.setup.dut).collect();
    // Written before the first name is made: whatever happens next, the next run knows what to look for.
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
            format!(
                "Lab {name} is unfinished; `linerate lab down --name {name}` removes what there is of it.\n"
            )
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

fn status(json: bool) -> Result<ExitCode> {
    let listing = Registry::of_this_host().list()?;
    if json {
        let one = |record: &LabRecord| {
            let mut value = serde_json::to_value(record)?;
            value["state"] = serde_json::to_value(record.state())?;
            Ok(value)
        };
        let all = listing.records.iter().map(one).collect::<Result<serde_json::Value>>()?;
        print(&format!("{all:#}\n"));
        return Ok(ExitCode::SUCCESS);
    }
    for (path, reason) in &listing.damaged {
        eprintln!("linerate: {} is damaged: {reason}", path.display());
    }
    if listing.records.is_empty() {
        print("No lab is up.\n");
    }
    for record in &listing.records {
        print(&describe(record, None));
    }
    Ok(ExitCode::SUCCESS)
}
