//! A plan for a lab of hosts: from its lab file to hosts that are connected, known and found fit, and to a testbed of them.

pub mod rehearsal;
mod testbed;
mod traffic;

use super::prepare::{Prepared, Source, with_reasons};
use crate::cli::Run;
use crate::commands::lab_check::contents;
use crate::interrupt::{INTERRUPTED as STOP, interrupted};
use crate::output::{faulty, usage};
use crate::progress::Progress;
use anyhow::{Context, Result, bail};
use linerate_hosts::dut_changes::{self, Steps, Target};
use linerate_hosts::preflight::{self, Needs, Port, ports};
use linerate_hosts::systems::{Facts, Interface, System as Detected};
use linerate_linux::records::rfc3339_utc;
use linerate_measure::record::{HostFacts, Roles, VERSION};
use linerate_plan::Backend;
use linerate_plan::campaign::{Campaign, Requirement, Trials};
use linerate_plan::lab::{Host, HostAddress, Lab};
use linerate_plan::settings::Mode;
use linerate_plan::settings::{Dut, End, Settings, System};
use linerate_plan::timing::Timing;
use linerate_remote::survey::{self, Approach};
use linerate_remote::{ExecutionTarget, Order, RemoteError};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The hosts of a lab, connected and asked.
pub struct Site {
    lab: Lab,
    approach: Approach,
    places: BTreeMap<String, Arc<ExecutionTarget>>,
    unreached: BTreeMap<String, RemoteError>,
    facts: BTreeMap<String, Facts>,
    /// The plan's folder.
    folder: PathBuf,
}

/// Where the lab file of a plan is: what the command line says, or beside the plan.
pub fn lab_file(args: &Run, plan: &Path, named: &str) -> PathBuf {
    args.lab.clone().unwrap_or_else(|| folder(plan).join(named))
}

/// The folder of a plan, which its files are relative to; the working directory for a built-in plan.
pub fn folder(plan: &Path) -> &Path {
    plan.parent().filter(|_| plan.is_file()).unwrap_or(Path::new(""))
}

/// Reads a lab file.
///
/// # Errors
/// It cannot be read, or has faults.
pub fn read(file: &Path) -> Result<Lab> {
    Lab::read(&contents(file)?).map_err(|faults| faulty(file.display(), &faults))
}

impl Site {
    /// Connects to the hosts of a plan's lab, asks them, restores settings of the DUT that an interrupted run had changed, and checks their
    /// answers against the lab file.
    ///
    /// # Errors
    /// Whatever would spoil the campaign, all at once.
    pub fn open(args: &Run, plan: &Path, lab: Lab, trials: &Trials) -> Result<Site> {
        let progress = Progress::of_steps();
        let load = Duration::from_nanos(Timing::of_hosts(trials.duration_ns).load_ns());
        let approach = Approach { load, ..args.ssh.approach() };
        let mut site = Site::reach(lab, approach, folder(plan), &progress)?;
        if let Some(earlier) = site.put_back_if_known(trials.reboot)? {
            progress.aside(|| earlier.told.iter().for_each(|line| eprintln!("linerate: {line}")));
            site.ask()?;
        }
        let problems = preflight::check(&site.lab, &site.facts, &Needs::default());
        let faults = problems.iter().filter(|problem| problem.is_fault()).count();
        progress.aside(|| problems.iter().for_each(|problem| eprintln!("linerate: {problem}")));
        if faults > 0 {
            bail!("the lab is not fit for a campaign: {faults} faults; `linerate lab check` looks again");
        }
        Ok(site)
    }

    /// Connects to the hosts of a lab and asks them. The facts of a host say where it cannot be reached.
    ///
    /// # Errors
    /// The user wants to stop.
    pub fn reach(lab: Lab, approach: Approach, folder: &Path, progress: &Progress) -> Result<Site> {
        progress.say(format!("connecting to {} hosts", lab.hosts.len()));
        let (places, unreached) = survey::connect(&lab, &approach, Some(&STOP));
        let facts = BTreeMap::new();
        let mut site = Site { lab, approach, places, unreached, facts, folder: folder.into() };
        progress.say("asking the hosts");
        site.ask()?;
        Ok(site)
    }

    fn ask(&mut self) -> Result<()> {
        self.facts = survey::survey(&self.lab, &self.places, Some(&STOP));
        if interrupted() {
            bail!("interrupted");
        }
        let why = |(name, error): (&String, &RemoteError)| (name.clone(), survey::unreachable(error));
        self.facts.extend(self.unreached.iter().map(why));
        Ok(())
    }

    /// The DUT's system, as plans call it; `None` without a DUT, or where plans have no settings for it.
    pub fn system(&self) -> Option<System> {
        self.detected(self.lab.dut()?)?.system.of_plans()
    }

    fn detected(&self, host: &Host) -> Option<&Detected> {
        self.facts.get(&host.name)?.system.as_ref()
    }

    fn of(&self, host: &Host) -> Result<&Facts> {
        self.facts.get(&host.name).with_context(|| format!("nothing is known of {}", host.name))
    }

    fn place(&self, host: &Host) -> Result<&Arc<ExecutionTarget>> {
        self.places.get(&host.name).ok_or_else(|| match self.unreached.get(&host.name) {
            Some(error) => anyhow::anyhow!("{error}"),
            None => anyhow::anyhow!("{} is not connected", host.name),
        })
    }

    /// The interface that a key of the lab file means.
    fn interface(&self, host: &Host, key: &str, nth: usize) -> Result<&Interface> {
        let port = ports(&self.lab, host).into_iter().filter(|port| port.key == key).nth(nth);
        let port = port.with_context(|| format!("{} has no [{key}] in the lab file", host.name))?;
        port.found(self.of(host)?).map_err(|why| anyhow::anyhow!("{} {key}: {why}", host.name))
    }

    /// What sends or counts on a host.
    fn tool(&self, host: &Host) -> Result<Backend> {
        preflight::tool(host, self.of(host)?).with_context(|| {
            format!("{} has neither linerate nor pkt-gen, nor does the lab file name a tool", host.name)
        })
    }

    /// Whether generators and receiver all have linerate, and speak its protocol. Otherwise frames are counted and not told apart.
    fn has_agents(&self) -> Result<bool> {
        let mut hosts = self.lab.generators().chain([self.lab.receiver()]);
        hosts.try_fold(true, |all, host| Ok(all && self.tool(host)?.is_own()))
    }

    /// The facts of the DUT for records; without a DUT, those of the receiver.
    pub fn host_facts(&self) -> HostFacts {
        let host = self.lab.dut().unwrap_or(self.lab.receiver());
        let facts = self.facts.get(&host.name);
        let detected = facts.and_then(|f| f.system.as_ref());
        let medium = |i: &Interface| {
            let speed = i.speed.map(|bits| format!("{} Mbit/s", bits / 1e6));
            [i.media.clone(), speed].into_iter().flatten().collect::<Vec<_>>().join(", ")
        };
        HostFacts {
            version: VERSION,
            kernel: detected.map_or(String::new(), |s| s.kernel.clone()),
            os: detected
                .map_or(String::new(), |s| s.product.clone().unwrap_or_else(|| s.system.key().to_string())),
            cpus: facts.and_then(|f| f.cpus).unwrap_or(0),
            interfaces: facts
                .iter()
                .flat_map(|f| &f.interfaces)
                .map(|i| (i.name.clone(), medium(i)))
                .collect(),
            ..HostFacts::default()
        }
    }

    /// A line on each host, for the record.
    pub fn standing(&self) -> BTreeMap<String, String> {
        let one = |host: &Host| {
            let roles: Vec<&str> = host.roles.iter().map(|role| role.key()).collect();
            let system = self.detected(host).map_or("an unknown system".to_string(), |s| {
                format!("{} {}", s.product.clone().unwrap_or_else(|| s.system.key().into()), s.kernel)
            });
            let cpus = self.facts.get(&host.name).and_then(|f| f.cpus);
            let cpus = cpus.map_or(String::new(), |n| format!(", {n} CPUs"));
            let tool =
                self.tool(host).ok().filter(|_| self.lab.dut().is_none_or(|dut| dut.name != host.name));
            let tool = tool.map_or(String::new(), |tool| format!(", by {}", tool.name()));
            let found = |port: &Port<'_>| {
                let found = self.facts.get(&host.name).and_then(|facts| port.found(facts).ok())?;
                Some(format!(
                    ", {} {} {}",
                    port.key,
                    found.name,
                    found.mac.map_or(String::new(), |mac| mac.to_string())
                ))
            };
            let ends: String = ports(&self.lab, host).iter().filter_map(found).collect();
            (format!("{} ({})", host.name, roles.join(", ")), format!("{system}{cpus}{tool}{ends}"))
        };
        self.lab.hosts.iter().map(one).collect()
    }

    /// What every lane comes to on the DUT, or why it cannot be.
    fn steps(&self, plan: &Campaign) -> Result<Vec<Result<Steps, Vec<String>>>> {
        let Some(dut) = self.lab.dut() else {
            let alone = |dut: Dut| dut == Dut::TesterBaseline;
            let of_lane = |settings: &Settings| match alone(settings.dut) {
                true => Ok(Steps::default()),
                false => Err(vec![
                    "there is no device under test in this lab: it would be a tester baseline".into(),
                ]),
            };
            return Ok(plan.lanes.iter().map(|lane| of_lane(&lane.settings)).collect());
        };
        let target = self.target(dut, plan.system)?;
        Ok((0..plan.lanes.len()).map(|lane| lane_steps(plan, lane, &target, &self.folder)).collect())
    }

    fn target(&self, dut: &Host, system: System) -> Result<Target> {
        let port = |end: End, key: &str| -> Result<dut_changes::Port> {
            let found = self.interface(dut, key, 0)?;
            Ok(port_of(&self.lab, end, found.name.clone(), &found.addresses))
        };
        let found = self.detected(dut).and_then(|s| s.system.config_save());
        let config_save = dut.config_save.clone().or(found.map(String::from));
        Ok(Target { system, inside: port(End::In, "in")?, outside: port(End::Out, "out")?, config_save })
    }

    /// The part of a requirement that the DUT lacks, in words.
    fn unmet(&self, requirement: &Requirement) -> Result<Option<String>> {
        let Some(dut) = self.lab.dut() else { return Ok(None) };
        let name = &dut.name;
        let succeeds = |words: &[&str]| -> Result<bool> {
            let command = linerate_remote::words::line(
                &words.iter().map(|w| (*w).to_string()).collect::<Vec<_>>(),
                false,
            );
            Ok(self.place(dut)?.run(&Order::new(&command), Some(&STOP))?.is_success())
        };
        Ok(match requirement {
            Requirement::Tool(tool) => {
                (!succeeds(&["which", tool])?).then(|| format!("{name} has no {tool}"))
            }
            Requirement::Sysctl(key) => {
                (!succeeds(&["sysctl", "-n", key])?).then(|| format!("{name} has no setting {key}"))
            }
            Requirement::File(path) => {
                (!succeeds(&["test", "-e", path])?).then(|| format!("{name} has no {path}"))
            }
            Requirement::Cpus(wanted) => {
                let has = self.of(dut)?.cpus;
                has.filter(|has| has < wanted).map(|has| format!("{name} has {has} CPUs, not {wanted}"))
            }
            Requirement::Kernel(major, minor) => {
                let release = self.detected(dut).map_or("", |s| &s.kernel);
                let mut numbers = release.split(['.', '-']).map(|n| n.parse::<u32>().ok());
                let has = numbers.next().flatten().zip(numbers.next().flatten());
                let enough = has.is_some_and(|has| has >= (*major, *minor));
                (!enough).then(|| format!("{name} has the kernel {release:?}, not {major}.{minor} or newer"))
            }
            Requirement::Memory(_) => Some(format!("{name} is not asked how much memory it has")),
            // Whether these can be had, the set-up shows.
            Requirement::Module(_) | Requirement::Link(_) => None,
        })
    }
}

fn port_of(lab: &Lab, end: End, name: String, addresses: &[HostAddress]) -> dut_changes::Port {
    let peers = lab.peers(end);
    let next_hops = peers.iter().flat_map(|peer| &peer.addresses).map(|a| a.address.to_string());
    dut_changes::Port {
        name,
        addresses: addresses.iter().map(ToString::to_string).collect(),
        next_hops: next_hops.collect(),
        networks: lab.networks(end).into_iter().map(String::from).collect(),
    }
}

/// The steps of a lane on the DUT, or why there are none. `folder`: the plan's, which its files are relative to.
fn lane_steps(plan: &Campaign, lane: usize, target: &Target, folder: &Path) -> Result<Steps, Vec<String>> {
    let mut settings = plan.lanes[lane].settings.clone();
    if let Some(image) = &mut settings.image {
        image.file = folder.join(&image.file).display().to_string();
    }
    if settings.dut == Dut::TesterBaseline {
        return Err(vec![
            "there is a device under test in this lab: name another lab file for the tester baseline".into(),
        ]);
    }
    if settings.dut == Dut::Bridge {
        // Frames are addressed to the DUT, and a bridge takes those for a host's.
        return Err(vec!["bridges are not measured in labs of hosts yet".into()]);
    }
    let rules = plan.rule_set(lane, Some(&target.outside.name));
    let steps = dut_changes::steps(&settings, rules.as_ref(), target);
    steps.map_err(|unsupported| unsupported.iter().map(ToString::to_string).collect())
}

/// Every cell with its frames and its rate. `lab`: whose addresses and links they are for.
fn cells(plan: &Campaign, lab: Option<&Lab>) -> Result<Prepared> {
    let nobody = Roles { generator: vec![], dut: vec![], receiver: vec![], control: vec![] };
    let mut prepared = Prepared::empty(nobody, Mode::Hosts);
    let speed = plan.link_speed.or(lab.and_then(|lab| lab.link_speed));
    let threads = lab.map_or(1, |lab| {
        let sends = lab.generators().flat_map(|host| &host.send);
        sends.map(|interface| interface.threads.unwrap_or(1) as usize).sum::<usize>().max(1)
    });
    let origins = lab.map(traffic::origins).transpose()?.unwrap_or_default();
    let flows = |family, flows| origins.flows(family, flows);
    prepared.cells(plan, &Source { cpus: &|_| Vec::new(), threads: Some(threads), speed, flows: &flows })?;
    for (slot, cell) in prepared.slots.iter_mut().zip(&plan.cells) {
        slot.no_ceiling = plan.lanes[cell.lane].settings.dut != Dut::TesterBaseline;
    }
    Ok(prepared)
}

/// Works out what can be measured with these hosts; without them (a simulation), everything.
///
/// # Errors
/// Rates or flows that cannot be, a lab that does not fit the plan, a host that is lost.
pub fn prepare(plan: &Campaign, site: Option<&Site>) -> Result<Prepared> {
    let mut prepared = cells(plan, site.map(|site| &site.lab))?;
    let Some(site) = site else { return Ok(prepared) };
    prepared.standing = site.standing();
    let signed = site.has_agents()?;
    prepared.slots.iter_mut().for_each(|slot| slot.signed = signed);
    prepared.standing.extend(images(plan, &site.folder)?);
    let of_plan = unmet(site, &plan.requirements)?;
    let steps = site.steps(plan)?;
    let mut lacking = Vec::new();
    for (lane, steps) in plan.lanes.iter().zip(&steps) {
        let refused = steps.as_ref().err().cloned().unwrap_or_default();
        lacking.push([of_plan.clone(), unmet(site, &lane.requirements)?, refused].concat());
    }
    prepared.skipped = with_reasons(plan.cells.iter().map(|cell| lacking[cell.lane].clone()).collect());
    Ok(prepared)
}

/// Each image that is to be installed, for the record: with its size and time, by which a changed one is noticed.
///
/// # Errors
/// Those that cannot be read, all at once.
fn images(plan: &Campaign, folder: &Path) -> Result<BTreeMap<String, String>> {
    let named: BTreeSet<&str> =
        plan.lanes.iter().filter_map(|lane| Some(lane.settings.image.as_ref()?.file.as_str())).collect();
    let (mut images, mut unread) = (BTreeMap::new(), Vec::new());
    for file in named {
        let path = folder.join(file);
        let opened = File::open(&path).and_then(|opened| opened.metadata());
        match opened.and_then(|facts| Ok((facts.modified()?, facts))) {
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

fn unmet(site: &Site, requirements: &[Requirement]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for requirement in requirements {
        all.extend(site.unmet(requirement)?);
    }
    Ok(all)
}

/// The system that a plan is carried out for: the one that was asked for, or the DUT's.
///
/// # Errors
/// The plan is for others.
pub fn system(args: &Run, site: &Site, plan: &linerate_plan::Plan) -> Result<Option<System>> {
    let Some(dut) = site.lab.dut() else { return Ok(args.system) };
    let Some(found) = site.system() else {
        let runs = site.detected(dut).map_or("an unknown system", |s| s.system.key());
        bail!("{} runs {runs}, which plans have no settings for", dut.name);
    };
    match args.system {
        Some(asked) if asked != found => Err(usage(format!("--system {asked}: {} runs {found}", dut.name))),
        _ if plan.systems().contains(&found) => Ok(Some(found)),
        _ => {
            let names: Vec<&str> = plan.systems().iter().map(|s| s.key()).collect();
            Err(usage(format!("{} runs {found}, and the plan is for {}", dut.name, names.join(", "))))
        }
    }
}
