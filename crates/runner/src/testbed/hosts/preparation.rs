//! The cells of a plan that can be measured with the hosts of a site.

use super::site::Site;
use crate::testbed::opens_connections;
use crate::testbed::prepare::{
    NO_EVENTS, Prepared, Source, check_tests, lacking_of_cells, origins, with_reasons,
};
use anyhow::{Result, bail};
use linerate_linux::records::rfc3339_utc;
use linerate_measure::experiment::{Benchmark, Measure};
use linerate_measure::record::{Direction, Mode, Roles, SHARED};
use linerate_plan::campaign::{Campaign, Requirement};
use linerate_plan::lab::Lab;
use linerate_plan::rules::Firewall;
use linerate_plan::settings::Settings;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

/// Every cell with its frames and its rate. `lab`: whose addresses and links they are for.
///
/// # Errors
/// Impossible rates or flows.
pub fn cells(plan: &Campaign, lab: Option<&Lab>) -> Result<Prepared> {
    let nobody = Roles {
        generator: vec![],
        dut: vec![],
        receiver: vec![],
        control: vec![],
    };
    let sends = lab
        .iter()
        .flat_map(|lab| lab.generators())
        .flat_map(|host| &host.send);
    let threads: Vec<usize> = sends
        .map(|interface| interface.threads.unwrap_or(1) as usize)
        .collect();
    let source = Source {
        cpus: Vec::new(),
        threads: Some(threads.iter().sum::<usize>().max(1)),
        generators: threads.len(),
        speed: plan
            .experiment
            .link_speed
            .or(lab.and_then(|lab| lab.link_speed)),
        origins: lab.map(origins).transpose()?.unwrap_or_default(),
    };
    Prepared::new(plan, nobody, Mode::Hosts, &source)
}

/// The parts of a test's trials that need linerate's own ports.
fn needs_linerate(test: Benchmark) -> Option<&'static str> {
    match test {
        Benchmark::BackToBack => Some("bursts of a number of frames"),
        Benchmark::Recovery => Some("loads whose rate changes"),
        Benchmark::Reset => Some("events under load"),
        Benchmark::Latency | Benchmark::DelayVariation => Some("delays of single frames"),
        Benchmark::Throughput
        | Benchmark::FrameLoss
        | Benchmark::ForwardingRate
        | Benchmark::Stability => None,
    }
}

/// Finds the cells that can be measured with these hosts; without hosts (a simulation), all of them.
///
/// # Errors
/// Impossible rates or flows, a lab that does not fit the plan, a host that is lost.
pub fn prepare(plan: &Campaign, site: Option<&Site>) -> Result<Prepared> {
    let mut prepared = cells(plan, site.map(|site| &site.lab))?;
    let trials = &plan.experiment.trials;
    let unknown = plan.experiment.link_speed.is_none() && trials.max_fps.is_none();
    if trials.measure == Measure::Rfc2544 && unknown {
        bail_usage!(
            "the load that is 100 % is unknown, because the hosts do not report the speed of both links: name the speed of the slower one with --link-speed 10G, or with link-speed = \"10 Gbit/s\" in the first lines of the lab file, above [hosts]"
        );
    }
    let Some(site) = site else {
        check_tests(plan, |test| {
            (test == Benchmark::Reset).then(|| NO_EVENTS.into())
        })?;
        return Ok(prepared);
    };
    prepared.standing = site.standing();
    let signed = site.has_agents()?;
    let connects = opens_connections(&prepared)?;
    if connects {
        site.check_connections()?;
    }
    let events = site.events(plan)?;
    check_tests(plan, |test| {
        match needs_linerate(test).filter(|_| !signed) {
            Some(what) => Some(format!(
                "{what} need linerate on generator and receiver, but this lab has other tools"
            )),
            None if test == Benchmark::Reset => events
                .iter()
                .find_map(|event| event.as_ref().err().cloned()),
            None => None,
        }
    })?;
    if prepared
        .kinds
        .iter()
        .any(|kind| kind.direction == Direction::Both)
    {
        site.lab
            .both_ways(|host| site.tool(host).ok())
            .map_err(crate::messages::usage)?;
    }
    prepared
        .slots
        .iter_mut()
        .for_each(|slot| slot.signed = signed);
    if !signed && prepared.kinds.iter().any(|kind| kind.traffic.card_stamps) {
        prepared.notes.push(
            "no stamps of cards: they need linerate on generator and receiver, with tool = \"af-packet\""
                .into(),
        );
    }
    prepared.standing.extend(images(plan, &site.folder)?);
    prepared.notes.extend(notes(&site.lab));
    let mut of_lanes = Vec::new();
    for (lane, steps) in plan.lanes.iter().zip(site.steps(plan)?) {
        let mut needed = lane.requirements.clone();
        needed.extend(connects.then(|| forgetting(&lane.settings)).flatten());
        of_lanes.push([site.unmet(&needed)?, steps.err().unwrap_or_default()].concat());
    }
    let of_plan = site.unmet(&plan.requirements)?;
    let mut lacking = lacking_of_cells(plan, &of_plan, of_lanes);
    for (kind, reasons) in prepared.kind_of.iter().zip(&mut lacking).filter(|_| signed) {
        reasons.extend(site.too_short(&prepared.kinds[*kind].traffic)?);
    }
    prepared.skipped = with_reasons(plan, lacking);
    Ok(prepared)
}

/// The program with which a DUT forgets the connections of the trial before.
fn forgetting(settings: &Settings) -> Option<Requirement> {
    let firewall = settings.firewall().filter(|_| settings.tracks())?;
    let linux = matches!(firewall, Firewall::Nftables | Firewall::Iptables);
    linux.then(|| Requirement::Tool("conntrack".into()))
}

/// Remarks on shared hosts, and on those that nobody can log in to.
fn notes(lab: &Lab) -> Vec<String> {
    let mut notes = Vec::new();
    let shared: Vec<&str> = lab
        .hosts
        .iter()
        .filter(|host| host.reach.ssh().is_none())
        .map(|host| &*host.name)
        .collect();
    if !shared.is_empty() {
        notes.push(format!(
            "{}: {SHARED}, which share its CPUs and have no cards: the rates compare variants, and are not those of a router with \
             CPUs and cards of its own",
            shared.join(", ")
        ));
    }
    if let Some(black_box) = &lab.black_box {
        notes.push(format!(
            "{}: a black box. Where it loses frames, how busy it is and how it is set up are not known",
            black_box.name
        ));
    }
    notes
}

/// Each image that is to be installed, for the record: with its size and time, by which a changed one is noticed.
///
/// # Errors
/// Images that cannot be read, all at once.
fn images(plan: &Campaign, folder: &Path) -> Result<BTreeMap<String, String>> {
    let named = plan
        .lanes
        .iter()
        .filter_map(|lane| Some(lane.settings.image.as_ref()?.file.as_str()));
    let (mut images, mut unread) = (BTreeMap::new(), Vec::new());
    for file in named.collect::<BTreeSet<_>>() {
        let path = folder.join(file);
        let facts = File::open(&path).and_then(|opened| opened.metadata());
        match facts.and_then(|facts| Ok((facts.modified()?, facts))) {
            Ok((modified, facts)) if facts.is_file() => {
                let size_and_time = format!("{} bytes of {}", facts.len(), rfc3339_utc(modified));
                images.insert(format!("image {file}"), size_and_time);
            }
            Ok(_) => unread.push(format!("{}: it is no file", path.display())),
            Err(error) => unread.push(format!("{}: {error}", path.display())),
        }
    }
    if !unread.is_empty() {
        bail!(
            "images that the plan installs cannot be read (they are looked for from the plan's folder on): {}",
            unread.join("; ")
        );
    }
    Ok(images)
}
