//! Files of plans, and the plans that come with linerate.

use crate::input;
use crate::messages::usage;
use anyhow::Result;
use linerate_linux::records::head;
use linerate_measure::experiment::System;
use linerate_plan::campaign::{Campaign, Lab};
use linerate_plan::diagnostic::meant;
use linerate_plan::names::Named;
use linerate_plan::rules::own::recognised;
use linerate_plan::{Diagnostic, MOST_BYTES, Plan, Source};
use std::path::Path;

/// The plans that come with linerate: name and text.
pub const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The text of a shipped plan.
pub fn shipped(name: &Path) -> Option<&'static str> {
    SHIPPED
        .iter()
        .find(|(shipped, _)| Path::new(shipped) == name)
        .map(|(_, text)| *text)
}

/// Reads a plan: a file, or else a shipped plan by its name (which records may have as well: a folder is no file), or else the plan
/// that a campaign's folder has.
///
/// # Errors
/// The file cannot be read.
pub fn read(file: &Path) -> Result<Vec<u8>> {
    let is_folder = file.is_dir() && !file.as_os_str().as_encoded_bytes().ends_with(b"/");
    if let Some(text) = shipped(file).filter(|_| !file.exists() || is_folder) {
        return Ok(text.into());
    }
    let name = file.display().to_string();
    if name != "-" && file.extension().is_none() && !file.exists() {
        let near = meant(&name, SHIPPED.iter().map(|(name, _)| *name));
        let help = near.map_or("`linerate plan list` has the names".into(), |near| {
            format!("did you mean '{near}'?")
        });
        bail_usage!(
            "there is no file '{name}', and linerate comes with no plan of that name: {help}"
        );
    }
    if file.join("campaign.json").is_file() {
        let source = head(file)?.planned.and_then(|planned| planned.source);
        let Some(source) = source.filter(|source| !source.is_empty()) else {
            bail_usage!(
                "the record {name} has no plan: linerate did not measure it, or an older one did"
            );
        };
        return Ok(source.into_bytes());
    }
    let bytes = input::read(file, MOST_BYTES, ["plan", ""])?;
    let is_of_rules = file.extension().is_some_and(|end| {
        ["nft", "conf", "rules", "iptables"]
            .iter()
            .any(|of| end == *of)
    });
    let text = std::str::from_utf8(&bytes).ok().filter(|_| is_of_rules);
    if text.is_some_and(|text| recognised(text).is_ok()) {
        bail_usage!(
            "{name} is a rule file, and no plan: sudo linerate bench --rules {name} measures what it costs"
        );
    }
    Ok(bytes)
}

/// Takes a plan apart that was read from here: rule files that it names are beside it.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(file: &Path, bytes: &[u8]) -> std::result::Result<Plan, Vec<Diagnostic>> {
    of(file, &Plan::source(bytes)?)
}

/// As [`parse`], with arguments over the file.
///
/// # Errors
/// As [`parse`].
pub fn of(file: &Path, source: &Source) -> std::result::Result<Plan, Vec<Diagnostic>> {
    let folder = file.parent().unwrap_or(Path::new(""));
    Plan::of(source, &mut |name| {
        input::rules(&folder.join(name)).map_err(|why| match folder.as_os_str().is_empty() {
            true => why,
            false => format!("{why} in {}, the plan's folder", folder.display()),
        })
    })
}

/// The form of a plan that is asked for, on a system.
///
/// # Errors
/// The plan is not for that system, or has no quick form.
pub fn campaign<'p>(
    plan: &'p Plan,
    name: &str,
    system: Option<System>,
    quick: bool,
) -> Result<&'p Campaign> {
    let system = system.unwrap_or(plan.systems[0]);
    if quick && plan.campaign(plan.systems[0], true).is_none() {
        let file = if SHIPPED.iter().any(|(known, _)| *known == name) {
            format!(
                " to a copy (linerate plan example {name} > my.toml), and name the copy instead"
            )
        } else {
            String::new()
        };
        bail_usage!("{name} has no quick form: add [quick]{file}");
    }
    plan.campaign(system, quick).ok_or_else(|| {
        let names: Vec<&str> = plan.systems.iter().map(|s| s.name()).collect();
        usage(format!(
            "{name} is not for {system}: it is for {}{}",
            names.join(", "),
            instead(system)
        ))
    })
}

/// The way to a plan that fits a system, as the end of a sentence.
pub fn instead(system: System) -> String {
    let name = system.name();
    format!(
        "; `linerate plan list` shows which plans are for {name}, and a plan of your own needs \"{name}\" in systems of [lab]"
    )
}

/// Refuses a lab file for a plan that has no use for it.
///
/// # Errors
/// The plan is for the embedded lab.
pub fn check_lab(plan: &Campaign, name: &str, given: bool) -> Result<()> {
    match plan.lab {
        Lab::Embedded { .. } if given => Err(usage(format!(
            "{name} is for the embedded lab of this machine: --lab has no meaning for it"
        ))),
        _ => Ok(()),
    }
}
