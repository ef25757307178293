//! A plan's lab file becomes hosts that are connected, known and found fit, and a testbed of them.

mod dut;

pub use dut::{lane_steps, port_of};

use crate::fault;
use crate::input;
use crate::interrupt::{INTERRUPTED as STOP, interrupted};
use crate::messages::{faulty, tell, told, usage};
use crate::plans::instead;
use crate::progress::Progress;
use crate::testbed::prepare::origins;
use anyhow::{Context, Result, anyhow, bail};
use linerate_hosts::preflight::{self, Port, frames, ports};
use linerate_hosts::systems::{Facts, Interface, Kernel, System as Detected};
use linerate_linux::net::userns;
use linerate_measure::experiment::{Reboot, System, Trials};
use linerate_measure::record::{HostFacts, VERSION};
use linerate_measure::trial::Timing;
use linerate_plan::lab::{End, Host, Lab, MOST_BYTES};
use linerate_plan::names::Named;
use linerate_plan::{Backend, Diagnostic};
use linerate_remote::survey::{self, Approach, Frames};
use linerate_remote::{ExecutionTarget, RemoteError};
use linerate_wire::units::counted;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;

/// The hosts of a lab, connected and asked.
pub struct Site {
    pub lab: Lab,
    /// The answers of each host, or why it cannot be reached.
    pub facts: BTreeMap<String, Facts>,
    approach: Approach,
    places: BTreeMap<String, Arc<ExecutionTarget>>,
    unreached: BTreeMap<String, RemoteError>,
    /// The plan's folder.
    pub(super) folder: PathBuf,
}

/// Whether the notes about the hosts are told.
static TOLD: Once = Once::new();

/// The folder of a plan, which its files are relative to; the working directory for a built-in plan.
pub fn folder(plan: &Path) -> &Path {
    plan.parent()
        .filter(|_| plan.is_file())
        .unwrap_or(Path::new(""))
}

/// The text of a lab file; - is standard input.
///
/// # Errors
/// The lab file cannot be read.
pub fn bytes_of_lab(file: &Path) -> Result<Vec<u8>> {
    input::read(
        file,
        MOST_BYTES,
        [
            "lab file",
            " (`linerate lab example` prints one to begin with)",
        ],
    )
}

/// Reads a lab file; - is standard input.
///
/// # Errors
/// The lab file cannot be read, or has faults.
pub fn read(file: &Path) -> Result<Lab> {
    Lab::read(&bytes_of_lab(file)?).map_err(|faults| faulty(input::name(file), &faults))
}

/// The first destination of the frames that [`Site::check`] sends from the tester's ports.
const FIRST_TRIED: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 19, 10, 1));

impl Site {
    /// Connects to the hosts of a lab file for a plan, asks them, restores settings of the DUT that an interrupted run had changed, and checks
    /// their answers against the lab file. It counts the notes, which are the same each time, once.
    ///
    /// # Errors
    /// Whatever would spoil the campaign, all at once.
    pub fn open(approach: Approach, plan: &Path, file: &Path, trials: &Trials) -> Result<Site> {
        let lab = read(file)?;
        if let Some(dut) = lab
            .dut()
            .filter(|dut| dut.reach.ssh().is_none() && trials.reboot == Reboot::EachTrial)
        {
            bail!(
                "{}: a network namespace cannot be rebooted, and the plan has reboot = \"each-trial\"",
                dut.name
            );
        }
        let progress = Progress::of_steps();
        let load = Duration::from_nanos(Timing::of_hosts(trials.duration_ns).load_ns());
        let approach = Approach { load, ..approach };
        let mut again = vec![file.into()];
        if let Some(config) = &approach.config {
            again.extend(["--ssh-config".into(), config.into()]);
        }
        fault::changes(again);
        let mut site = Site::reach(lab, approach, folder(plan), &progress)?;
        // Settings that an interrupted run left may make the lab unfit. A DUT with too few known facts is left to the later
        // checks.
        let is_known = |dut: &Host| {
            site.place(dut).is_ok() && site.ends(dut).is_ok() && site.kernel(dut).is_ok()
        };
        if site.lab.dut().is_some_and(is_known)
            && let Some(earlier) = site.put_back(trials.reboot)?
        {
            progress.aside(|| earlier.told.iter().for_each(tell));
            site.ask()?;
        }
        let problems = preflight::check(&site.lab, &site.facts);
        let (faults, notes): (Vec<_>, Vec<_>) =
            problems.iter().partition(|problem| problem.is_fault());
        let check = format!("`linerate lab check {}`", file.display());
        progress.aside(|| {
            faults.iter().for_each(tell);
            if !notes.is_empty() {
                TOLD.call_once(|| {
                    tell(format!(
                        "{} about the hosts: {check} shows them",
                        counted(notes.len(), "note")
                    ))
                });
            }
        });
        if !faults.is_empty() {
            bail!(
                "the lab is not fit for a campaign: {}; {check} looks again",
                counted(faults.len(), "fault")
            );
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
        let mut site = Site {
            lab,
            approach,
            places,
            unreached,
            facts,
            folder: folder.into(),
        };
        progress.say("asking the hosts");
        site.ask()?;
        Ok(site)
    }

    fn ask(&mut self) -> Result<()> {
        self.facts = survey::survey(&self.lab, &self.places, Some(&STOP));
        if interrupted() {
            bail!("interrupted");
        }
        let why =
            |(name, error): (&String, &RemoteError)| (name.clone(), survey::unreachable(error));
        self.facts.extend(self.unreached.iter().map(why));
        Ok(())
    }

    /// Sends a few frames over each cable, if they may be sent, and from the tester's ports if there are no faults so far; finds all
    /// problems of the lab.
    pub fn check(&mut self, send: bool) -> (Frames, Vec<Diagnostic>) {
        let mut sent = Frames::default();
        if send {
            sent = survey::send_frames(&self.lab, &self.places, &mut self.facts, Some(&STOP));
        }
        let mut problems = preflight::check(&self.lab, &self.facts);
        problems.extend(frames::judge(&sent.tried));
        if let Err(too_small) = origins(&self.lab) {
            let remedy = "name a shorter network, or leave networks out: then frames have 198.18.0.0/16 and 198.19.0.0/16";
            problems.push(Diagnostic::new(too_small.to_string()).remedy(remedy));
        }
        if send && self.lab.isolated && !problems.iter().any(Diagnostic::is_fault) && !interrupted()
        {
            match self.try_ports() {
                Ok(tried) => sent.ports = tried,
                Err(error) => {
                    let host = error
                        .downcast_ref::<RemoteError>()
                        .map(|error| error.host.clone());
                    let remedy = "see linerate and its privileges there, or choose another port: tool = \"af-packet\" in the lab file";
                    let fault = Diagnostic::new("the tester's ports cannot be used");
                    let fault = fault.evidence(told(&error)).remedy(remedy);
                    problems.push(host.into_iter().fold(fault, |fault, host| fault.of(&host)));
                }
            }
            problems.extend(frames::judge_ports(&self.lab, &sent.ports, FIRST_TRIED));
        }
        (sent, problems)
    }

    /// Frames that an interface has received.
    pub(super) fn received(&self, at: &frames::At) -> Option<u64> {
        survey::received(&self.lab, &self.places, &self.facts, Some(&STOP))
            .get(at)
            .copied()
    }

    fn kernel(&self, host: &Host) -> Result<Kernel> {
        self.of(host)
            .kernel()
            .with_context(|| format!("the system of {} is not known", host.name))
    }

    fn detected(&self, host: &Host) -> Option<&Detected> {
        self.of(host).system.as_ref()
    }

    /// The answers of a host.
    fn of(&self, host: &Host) -> &Facts {
        self.facts
            .get(&host.name)
            .expect("each host was asked, or could not be reached")
    }

    pub(super) fn place(&self, host: &Host) -> Result<&Arc<ExecutionTarget>> {
        self.places
            .get(&host.name)
            .ok_or_else(|| match self.unreached.get(&host.name) {
                Some(error) => anyhow!("{error}"),
                None => anyhow!("{} is not connected", host.name),
            })
    }

    /// The interface that a key of the lab file means.
    pub(super) fn interface(&self, host: &Host, key: &str, nth: usize) -> Result<&Interface> {
        let port = ports(&self.lab, host)
            .into_iter()
            .filter(|port| port.key == key)
            .nth(nth);
        let port = port.with_context(|| format!("{} has no [{key}] in the lab file", host.name))?;
        port.found(self.of(host))
            .map_err(|why| anyhow!("{} {key}: {why}", host.name))
    }

    /// The backend that sends or counts on a host.
    pub(super) fn tool(&self, host: &Host) -> Result<Backend> {
        preflight::tool(host, self.of(host)).with_context(|| {
            format!(
                "{} has neither linerate nor pkt-gen, nor does the lab file name a tool",
                host.name
            )
        })
    }

    /// Whether generators and receiver all have linerate, and speak its protocol. Otherwise frames are counted without
    /// identities.
    pub(super) fn has_agents(&self) -> Result<bool> {
        let mut hosts = self.lab.generators().chain([self.lab.receiver()]);
        hosts.try_fold(true, |all, host| Ok(all && self.tool(host)?.is_own()))
    }

    /// Whether the hosts can open connections: both ends are programs of linerate.
    ///
    /// # Errors
    /// They lack linerate, or several interfaces send.
    pub(super) fn check_connections(&self) -> Result<()> {
        for host in self.lab.generators().chain([self.lab.receiver()]) {
            let tool = self.tool(host)?;
            if tool.resolved(0) != Backend::Xdp {
                bail_usage!(
                    "connections cannot be opened with {tool} on {}: both ends of connections are XDP programs of linerate; install linerate there, and write tool = \"linerate\" in the lab file, or leave out `connections` of [traffic]",
                    host.name
                );
            }
        }
        let sends = self.lab.generators().map(|host| host.send.len());
        match sends.sum::<usize>() {
            1 => Ok(()),
            several => bail_usage!(
                "connections are opened from one interface, and {several} send in this lab: name one in the lab file"
            ),
        }
    }

    /// The facts of the DUT for records; without a DUT, those of the receiver.
    pub fn host_facts(&self) -> HostFacts {
        if let Some(black_box) = &self.lab.black_box {
            return HostFacts {
                version: VERSION,
                os: format!("a black box ({})", black_box.name),
                ..HostFacts::default()
            };
        }
        let facts = self.of(self.lab.dut().unwrap_or(self.lab.receiver()));
        let medium = |i: &Interface| {
            let speed = i.speed.map(|bits| format!("{} Mbit/s", bits / 1e6));
            [i.media.clone(), speed]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(", ")
        };
        HostFacts {
            version: VERSION,
            kernel: facts
                .system
                .as_ref()
                .map_or(String::new(), |system| system.kernel.clone()),
            os: facts.system.as_ref().map_or(String::new(), product),
            cpus: facts.cpus.unwrap_or(0),
            interfaces: facts
                .interfaces
                .iter()
                .map(|i| (i.name.clone(), medium(i)))
                .collect(),
            ..HostFacts::default()
        }
    }

    /// Each host in words, for the record.
    pub(super) fn standing(&self) -> BTreeMap<String, String> {
        let one = |host: &Host| {
            let facts = self.of(host);
            let roles: Vec<&str> = host.roles.iter().map(|role| role.key()).collect();
            let system = self
                .detected(host)
                .map(|system| format!("{} {}", product(system), system.kernel));
            let mut parts = vec![system.unwrap_or("an unknown system".into())];
            parts.extend(facts.cpus.map(|cpus| format!("{cpus} CPUs")));
            let is_dut = self.lab.dut().is_some_and(|dut| dut.name == host.name);
            parts.extend(
                self.tool(host)
                    .ok()
                    .filter(|_| !is_dut)
                    .map(|tool| format!("by {tool}")),
            );
            let end = |port: &Port<'_>| {
                let found = port.found(facts).ok()?;
                let mac = found.mac.map_or(String::new(), |mac| mac.to_string());
                Some(format!("{} {} {mac}", port.key, found.name))
            };
            parts.extend(ports(&self.lab, host).iter().filter_map(end));
            (
                format!("{} ({})", host.name, roles.join(", ")),
                parts.join(", "),
            )
        };
        let device = self.lab.device();
        let said = device.into_iter().flat_map(said_of);
        let unasked = |host: &Host| {
            (
                format!("{} (dut)", host.name),
                "a black box, which was not asked".to_string(),
            )
        };
        self.lab
            .hosts
            .iter()
            .map(one)
            .chain(self.lab.black_box.as_ref().map(unasked))
            .chain(said)
            .collect()
    }

    /// Speed of the slower link, in bit/s: as the lab file says, or else as the hosts do, if they do for both.
    pub fn link_speed(&self) -> Option<f64> {
        let lab = &self.lab;
        let hosts: Vec<&Host> = lab.dut().map_or_else(
            || lab.generators().chain([lab.receiver()]).collect(),
            |dut| vec![dut],
        );
        let of_host = |host: &&Host| {
            let known = |port: &Port<'_>| {
                port.wanted
                    .speed
                    .or_else(|| port.found(self.of(host)).ok()?.speed)
            };
            ports(lab, host).iter().map(known).collect::<Vec<_>>()
        };
        let known: Option<Vec<f64>> = hosts.iter().flat_map(of_host).collect();
        slower(lab.link_speed, known)
    }
}

/// Facts in the lab file about a DUT that linerate cannot ask.
fn said_of(dut: &Host) -> impl Iterator<Item = (String, String)> {
    use linerate_standards::{ADDRESSES, CONFIGURATION, SOFTWARE, STATEMENT};
    let ends = [End::In, End::Out]
        .into_iter()
        .filter_map(|end| dut.end(end));
    let addresses: Vec<String> = ends
        .flat_map(|end| &end.addresses)
        .map(ToString::to_string)
        .collect();
    let of_black_box = dut.software.is_some() && !addresses.is_empty();
    let said = [
        (STATEMENT, dut.statement.clone()),
        (SOFTWARE, dut.software.clone()),
        (CONFIGURATION, dut.configuration.clone()),
        (ADDRESSES, of_black_box.then(|| addresses.join(", "))),
    ];
    said.into_iter()
        .filter_map(|(key, said)| Some((key.to_string(), said?)))
}

/// The lab file's speed, or else the least of the links', if all are known.
fn slower(stated: Option<f64>, known: Option<Vec<f64>>) -> Option<f64> {
    stated.or_else(|| known?.into_iter().reduce(f64::min))
}

fn product(system: &Detected) -> String {
    system
        .product
        .clone()
        .unwrap_or_else(|| system.system.key().into())
}

/// The system that a plan for these systems is carried out for: the one that was asked for, or the DUT's.
///
/// # Errors
/// The plan is for others.
pub fn system(asked: Option<System>, site: &Site, systems: &[System]) -> Result<Option<System>> {
    let Some(dut) = site.lab.dut() else {
        return Ok(asked);
    };
    let Some(found) = site
        .detected(dut)
        .and_then(|detected| detected.system.of_plans())
    else {
        let runs = site
            .detected(dut)
            .map_or("an unknown system", |s| s.system.key());
        bail!("{} runs {runs}, which plans have no settings for", dut.name);
    };
    match asked {
        Some(asked) if asked != found => bail_usage!("--system {asked}: {} runs {found}", dut.name),
        _ if systems.contains(&found) => Ok(Some(found)),
        _ => {
            let names: Vec<&str> = systems.iter().map(|s| s.name()).collect();
            Err(usage(format!(
                "{} runs {found}, and the plan is for {}{}",
                dut.name,
                names.join(", "),
                instead(found)
            )))
        }
    }
}

/// Where changes of hosts are written down, by their kind: with the user's own state, or with this machine's where root does it.
///
/// # Errors
/// The user has no place for it.
pub fn state(kind: &str) -> Result<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let root = || userns::is_root().then(|| PathBuf::from("/var/lib"));
    let base = variable("XDG_STATE_HOME")
        .or_else(root)
        .or_else(|| Some(variable("HOME")?.join(".local/state")));
    let base =
        base.context("HOME is not set: there is no place to write changes of hosts down in")?;
    Ok(base.join("linerate").join(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_files_speed_counts_where_hosts_report_none() {
        assert_eq!(slower(Some(1e10), None), Some(1e10));
        assert_eq!(slower(Some(1e10), Some(vec![1e9, 2e9])), Some(1e10));
        assert_eq!(slower(None, Some(vec![2e9, 1e9])), Some(1e9));
        assert_eq!(slower(None, None), None);
    }

    #[test]
    fn what_is_stated_of_a_black_box_stands_in_the_records() {
        let address = |text: &str| text.parse().unwrap();
        let end = |text: &str| linerate_plan::lab::Interface {
            addresses: vec![address(text)],
            ..Default::default()
        };
        let mut dut = Host {
            inside: Some(end("198.18.1.1/16")),
            outside: Some(end("198.19.1.1/16")),
            statement: Some("by its manual".into()),
            ..Host::default()
        };
        let said = |dut: &Host| said_of(dut).map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(said(&dut), ["statement"]);
        (dut.software, dut.configuration) = (Some("OS 7".into()), Some("fw.cfg".into()));
        assert_eq!(
            said(&dut),
            ["statement", "software", "configuration", "addresses"]
        );
        let addresses = said_of(&dut).last().unwrap().1;
        assert_eq!(addresses, "198.18.1.1/16, 198.19.1.1/16");
    }
}
