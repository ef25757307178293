//! `linerate apply TUNING`: the changes that a tuning kept, carried out on a host.

use super::{Apply, Host, Source, carry_out, configuration};
use crate::commands::tune::record::read;
use crate::commands::tune::{ENDS, KEPT};
use crate::output::{INTERRUPTED, result};
use anyhow::{Context, Result, bail};
use linerate_advise::{Item, Kept, kept};
use linerate_hosts::systems::Kernel;
use linerate_measure::experiment::System;
use linerate_measure::record::Verdict as Proven;
use linerate_measure::tuning::{Change, LeftOut, Tuned, Verdict};
use linerate_plan::lab::Reach;
use linerate_plan::settings::Settings;
use linerate_report::pages::{self, Applied};
use linerate_runner::messages::usage;
use linerate_runner::session::{Choice, chosen};
use linerate_runner::{handle, testbed::hosts};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The tuning that the arguments name, with its folder; `None` if they name a host, or recommendations.
pub(super) fn of(args: &Apply) -> Result<Option<(PathBuf, Tuned)>> {
    let Some(place) = args.source.place.as_deref() else {
        return Ok(None);
    };
    let is_last = place == "last" || place.starts_with("last-");
    let is_path = place.contains('/') || Path::new(place).exists();
    let advised = args.all || !args.purpose.items.is_empty();
    // A tuning may have the name of a host.
    if advised && !is_last && !is_path {
        return Ok(None);
    }
    let (folder, found) = match handle::folder(place) {
        Ok(folder) => (folder.clone(), read(&folder)?),
        Err(why) if is_last => return Err(usage(why)),
        // A host, perhaps.
        Err(_) => return Ok(None),
    };
    match found {
        Some(_) if advised => bail_usage!(
            "{place} is a tuning, and --all and --item choose recommendations for a host: leave them out, or name a host"
        ),
        Some(tuned) => Ok(Some((folder, tuned))),
        None if is_path && !folder.exists() => bail_usage!(
            "there is no folder {place}: name that of a tuning, last, or a name that `linerate list` shows"
        ),
        None if is_last || (folder.exists() && !advised) => bail_usage!(
            "{} is no tuning, so it kept no changes: `linerate tune PLAN` makes one",
            folder.display()
        ),
        None => Ok(None),
    }
}

/// Carries out the changes that a tuning kept.
///
/// # Errors
/// The changes are not proven, the host or the lab file cannot be read, or a change failed.
pub(super) fn apply(args: &Apply, folder: &Path, tuned: &Tuned) -> Result<ExitCode> {
    let name = folder.display().to_string();
    let changes: Vec<&Change> = tuned
        .changes
        .iter()
        .filter(|change| change.verdict == Verdict::Kept)
        .collect();
    let mut shown = Applied {
        tuning: Some(name.clone()),
        ..Applied::default()
    };
    let (source, ends) = place(args)?;
    if changes.is_empty() {
        let page = || pages::applied(source.name(), &shown);
        return result(&args.printed, || &shown, page);
    }
    if tuned.simulated {
        bail!("{name}: its DUT was simulated, so it says nothing about a host");
    }
    let proof = tuned.together.as_ref();
    if proof.is_none_or(|proof| proof.verdict != Proven::Proven) {
        bail!(
            "{name}: the changes that it kept are not proven together, so linerate does not make them; `linerate show {name}` has the figures"
        );
    }
    let (system, settings) = measured(folder)?;
    let Some(facts) = source.facts()? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let found = configuration(&facts)?;
    let kernel = Kernel::named(&found.system.kernel).context("the host's system is not known")?;
    if system.parent().unwrap_or(system) != System::from(kernel) {
        bail_usage!(
            "the tuning is of {system}, and {} runs {}",
            source.name(),
            found.system.kernel
        );
    }
    let ends = ends
        .as_ref()
        .map(|[inside, outside]| [inside.as_str(), outside.as_str()]);
    let mut items: Vec<Item> = Vec::new();
    for change in changes {
        let gain = change.confirmed.map(|measured| measured.ratio.median - 1.0);
        let of = Kept {
            name: &change.name,
            keys: &change.keys,
            settings: &settings,
            gain: gain.unwrap_or_default(),
        };
        match kept(&found, &of, ends).context("the host's system is not known")? {
            Ok(item) => items.push(item),
            Err(reason) => shown.not_kept.push(LeftOut {
                name: change.name.clone(),
                reason,
            }),
        }
    }
    let host = Host {
        place: Arc::new(source.target()?),
        sudo: source.sudo,
        kernel,
    };
    carry_out(
        args,
        &source,
        &host,
        &items.iter().collect::<Vec<_>>(),
        shown,
    )
}

/// The host whose settings are changed, and its interfaces towards generator and receiver, where a lab file names them.
fn place(args: &Apply) -> Result<(Source, Option<[String; 2]>)> {
    let Some(file) = &args.lab else {
        return Ok((args.source.elsewhere(args.on.clone()), None));
    };
    let lab = hosts::read(file)?;
    let name = file.display();
    let Some(dut) = lab.dut() else {
        bail_usage!("{name} has no DUT that linerate can change");
    };
    let Some((inside, outside)) = lab.placeholders() else {
        bail_usage!(
            "{name} does not name the interfaces of the DUT: add name = \"IFACE\" to its `in` and `out`, or name the host instead of --lab"
        );
    };
    let ends = [inside, outside].map(String::from);
    let (ssh, namespace) = match &dut.reach {
        Reach::Ssh(ssh) => (Some(ssh.to_string()), None),
        Reach::Namespace(name) => (None, Some(name.clone())),
    };
    let source = args
        .source
        .elsewhere(ssh)
        .of_dut(namespace, dut.sudo, &ends);
    Ok((source, Some(ends)))
}

/// The system of the plan of the kept changes, and the settings of the DUT with them.
fn measured(folder: &Path) -> Result<(System, Settings)> {
    let file = folder.join(KEPT);
    let (plan, _) = chosen(&Choice::default(), &file, true, |_| Ok(()))?;
    let tuned = plan.cells.iter().find(|cell| cell.variant == ENDS[1]);
    let lane = tuned.and_then(|cell| plan.lanes.get(cell.lane));
    let lane = lane.with_context(|| format!("{} has no variant {}", file.display(), ENDS[1]))?;
    Ok((plan.experiment.system, lane.settings.clone()))
}
