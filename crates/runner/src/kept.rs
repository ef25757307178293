//! Embedded labs that stay up after their linerate, and what a killed linerate has left.

use crate::fault;
use crate::messages::tell;
use anyhow::{Context, Result, bail};
use linerate_linux::host::autogroup;
use linerate_linux::host::changes::Host;
use linerate_linux::lab::{EmbeddedLab, Setup};
use linerate_linux::net::netlink::Route;
use linerate_linux::net::registry::{LabRecord, LabState, Registry};
use linerate_linux::net::{Netns, userns};

/// Removes the remains of a lab whose linerate was killed while it named the lab, and undoes its changes of the host. Labs
/// without names leave nothing. Only the host's own root can have remains: in a user namespace none of it can be changed.
///
/// Returns the names of the labs that were cleared.
///
/// # Errors
/// The remains cannot be removed.
pub fn clear_remains() -> Result<Vec<String>> {
    autogroup::restore_remains();
    if !userns::is_initial() || !userns::may_administer_networks() {
        return Ok(Vec::new());
    }
    fault::changes(Vec::new());
    let cleared = Registry::of_this_host()
        .clear_remains()
        .context("clearing the remains of an earlier run")?;
    for name in &cleared {
        tell(format!(
            "cleared the remains of lab {name}, whose linerate had been killed"
        ));
    }
    let journal = Host::this();
    let restored = journal.restore_remains();
    for words in restored.context("undoing changes that a killed linerate made on this host")? {
        tell(format!(
            "restored settings that an interrupted run had changed: {words}"
        ));
    }
    Ok(cleared)
}

/// Checks before a long measurement that its lab can be left up.
///
/// # Errors
/// A lab of this name exists, or a DUT that ends with this process.
pub fn can_keep(name: &str, setups: &[Setup]) -> Result<()> {
    check_free(&Registry::of_this_host(), name)?;
    match setups.iter().find(|setup| setup.is_program()) {
        Some(setup) => bail_usage!(
            "--keep: {} is an eBPF program, which ends with linerate and cannot be left up",
            setup.name
        ),
        None => Ok(()),
    }
}

pub fn check_free(registry: &Registry, name: &str) -> Result<()> {
    if registry
        .list()?
        .records
        .iter()
        .any(|record| record.name == name)
    {
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
    record.duts = lab
        .lanes
        .iter()
        .map(|lane| lane.setup.settings.dut)
        .collect();
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

pub fn describe(record: &LabRecord, lab: Option<&EmbeddedLab>) -> String {
    let name = &record.name;
    let mut text = match record.state() {
        LabState::Up => {
            format!("Lab {name} is up; `linerate lab down --name {name}` removes it.\n")
        }
        LabState::Beginning => format!(
            "Lab {name} is being put up by process {}.\n",
            record.owner.pid
        ),
        LabState::Unfinished => {
            format!(
                "Lab {name} is unfinished; `linerate lab down --name {name}` removes its remains.\n"
            )
        }
    };
    for (role, namespace) in &record.namespaces {
        let links = Netns::open(&namespace.name)
            .and_then(|ns| Route::open(&ns)?.links())
            .unwrap_or_default();
        let names: Vec<&str> = links
            .iter()
            .map(|l| l.name.as_str())
            .filter(|n| *n != "lo")
            .collect();
        text += &format!(
            "  {role:<20} ip netns exec {:<22} {}\n",
            namespace.name,
            names.join(" ")
        );
    }
    for (number, lane) in lab.iter().flat_map(|l| &l.lanes).enumerate() {
        let between = lane.dut.as_ref().map_or_else(String::new, |dut| {
            format!("{} | {} -> ", dut.inside.name, dut.outside.name)
        });
        text += &format!(
            "  lane {number}: {:<15} {} -> {between}{}\n",
            lane.setup.name, lane.generator.name, lane.receiver.name
        );
    }
    text
}
