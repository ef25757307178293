//! The device under test of a site: its interfaces, the steps of its lanes and events, and what it lacks.

use super::{Site, state};
use crate::interrupt::INTERRUPTED as STOP;
use crate::messages::tell;
use crate::testbed::hosts::RESTORE;
use crate::testbed::trying::has_already;
use anyhow::{Context, Result, anyhow};
use linerate_hosts::dut_changes::{self, Step, Steps, Target, questions};
use linerate_hosts::systems::Interface;
use linerate_measure::experiment::Reboot;
use linerate_plan::campaign::{Campaign, Requirement};
use linerate_plan::lab::{Host, HostAddress, Lab, Reach};
use linerate_plan::rules::RuleSet;
use linerate_plan::settings::{Dut, End, EventKind, Settings};
use linerate_plan::tuning::NOTHING_NEW;
use linerate_remote::dut::{Known, RemoteDut};
use linerate_remote::{Changes, Left, Order, mark};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Settings of an interrupted run that were restored.
pub struct Earlier {
    /// Each change, in words.
    pub told: Vec<String>,
    /// Whether some of it counts from the DUT's next boot on only.
    pub owes_boot: bool,
}

impl Site {
    /// The DUT's interfaces, towards generator and receiver.
    pub(in super::super) fn ends(&self, dut: &Host) -> Result<[&Interface; 2]> {
        Ok([
            self.interface(dut, "in", 0)?,
            self.interface(dut, "out", 0)?,
        ])
    }

    pub(in super::super) fn dut(&self, host: &Host, reboot: Reboot) -> Result<RemoteDut> {
        self.place(host)?;
        let ends = self.ends(host)?;
        let known = Known {
            target: self.approach.target(host),
            // Identifies a machine, whatever it is called, however it is reached, and which way frames go through it.
            machine: ends
                .iter()
                .filter_map(|end| end.mac)
                .min_by_key(|mac| mac.0)
                .map(|mac| mac.to_string()),
            sudo: host.sudo,
            kernel: self.kernel(host)?,
            ends: ends.map(|end| end.name.clone()),
            may_reboot: reboot != Reboot::Never && host.reach.ssh().is_some(),
            boot: host.boot.clone(),
            power_cycle: host.power_cycle.clone(),
            console: host.console.clone(),
        };
        let from = host.boot.from.as_ref();
        let witness = from.and_then(|name| self.lab.hosts.iter().find(|host| host.name == *name));
        let witness = witness
            .map(|host| anyhow::Ok((Arc::clone(self.place(host)?), self.kernel(host)?)))
            .transpose()?;
        let place = Arc::clone(self.place(host)?);
        Ok(RemoteDut::new(
            known,
            place,
            &host.reach.to_string(),
            &state("hosts")?,
            witness,
        )?)
    }

    /// Restores the settings of the DUT that an interrupted run had changed, if there are any.
    ///
    /// # Errors
    /// The host could not be put back, another linerate uses this host, or it is not known well enough.
    pub fn put_back(&mut self, reboot: Reboot) -> Result<Option<Earlier>> {
        let Some(host) = self.lab.dut() else {
            return Ok(None);
        };
        let mut dut = self.dut(host, reboot)?;
        if !dut.is_changed() {
            return Ok(None);
        }
        let told = |what| {
            format!(
                "{}: restored settings that an interrupted run had changed: {what}",
                host.name
            )
        };
        let undone = dut.put_back()?;
        let waits = undone
            .waits(RESTORE)
            .map(|said| format!("{}: {said}", host.name));
        let told = undone.what.into_iter().map(told).chain(waits).collect();
        let earlier = Earlier {
            told,
            owes_boot: dut.owes_boot(),
        };
        // The host may have booted.
        let (name, place) = (host.name.clone(), Arc::clone(dut.place()));
        self.places.insert(name, place);
        Ok(Some(earlier))
    }

    /// The steps of every lane on the DUT, or the reasons why it cannot be set up.
    pub(in super::super) fn steps(
        &self,
        plan: &Campaign,
    ) -> Result<Vec<Result<Steps, Vec<String>>>> {
        let target = self.target(plan)?;
        let of_lane = |lane: usize| match &target {
            Some(target) => lane_steps(plan, lane, target, &self.folder),
            None if self.lab.black_box.is_some() => as_it_is(&plan.lanes[lane].settings),
            None if plan.lanes[lane].settings.dut == Dut::TesterBaseline => Ok(Steps::default()),
            None => Err(vec![
                "there is no device under test in this lab: it would be a tester baseline".into(),
            ]),
        };
        Ok((0..plan.lanes.len()).map(of_lane).collect())
    }

    /// By lane: the steps of its event, or why it cannot happen to this DUT.
    pub(in super::super) fn events(
        &self,
        plan: &Campaign,
    ) -> Result<Vec<Result<Vec<Step>, String>>> {
        let (dut, target) = (self.lab.dut(), self.target(plan)?);
        let of_lane = |lane: usize| {
            let settings = &plan.lanes[lane].settings;
            let (Some(event), Some(target), Some(dut)) = (&settings.event, &target, dut) else {
                return Ok(Vec::new());
            };
            if event.boots() && dut.reach.ssh().is_none() {
                return Err(format!(
                    "{} is a network namespace, which cannot be rebooted",
                    dut.name
                ));
            }
            if event.what == EventKind::PowerOff && dut.power_cycle.is_empty() {
                return Err(format!(
                    "the lab file lacks a power-cycle program for {}: add one that turns the power off, waits 15 s, and turns it on",
                    dut.name
                ));
            }
            let rules = rules(plan, lane, settings, target);
            let families = plan.families(lane);
            dut_changes::event(event, settings, rules.as_ref(), &families, target)
        };
        Ok((0..plan.lanes.len()).map(of_lane).collect())
    }

    /// Makes the changes of a lane on the DUT for good. Returns the command that takes them back.
    ///
    /// # Errors
    /// The DUT cannot be set up so, or a change failed; those before it can be taken back.
    pub fn keep(&self, plan: &Campaign, lane: usize) -> Result<String> {
        let host = self.lab.dut().context("the lab has no device under test")?;
        let steps = self
            .steps(plan)?
            .swap_remove(lane)
            .map_err(|why| anyhow!(why.join("; ")))?;
        let (address, command) = match &host.reach {
            Reach::Ssh(ssh) => (ssh.to_string(), format!("linerate apply {ssh} --revert")),
            Reach::Namespace(name) => (
                name.clone(),
                format!("linerate apply --namespace {name} --revert"),
            ),
        };
        let place = Arc::clone(self.place(host)?);
        let boot = mark(&place, self.kernel(host)?);
        let mut changes = Changes::open(place, &address, None, &state("applied")?, host.sudo)?;
        let (lasting, others) = steps.steps.split_at(steps.lasting);
        changes.make(lasting, true, Some(&STOP))?;
        changes.in_boot(boot)?;
        changes.make(others, false, Some(&STOP))?;
        if steps.reboot {
            tell(format!(
                "{}: some changes count from its next boot on",
                host.name
            ));
        }
        Ok(command)
    }

    /// Makes the changes of lanes on the DUT, one lane after the other, and takes them back: why that failed, by lane, or that the DUT as it
    /// is, `base`, has them already. Lanes that need a boot are not tried.
    ///
    /// # Errors
    /// The DUT cannot be put back, or reached.
    pub fn try_out(
        &self,
        plan: &Campaign,
        base: usize,
        lanes: &[usize],
    ) -> Result<BTreeMap<usize, String>> {
        let mut failed = BTreeMap::new();
        let Some(host) = self.lab.dut() else {
            return Ok(failed);
        };
        let mut dut = self.dut(host, Reboot::Never)?;
        let (steps, target) = (self.steps(plan)?, self.target(plan)?);
        // The first: the others are asked for while it stands.
        for lane in std::iter::once(&base).chain(lanes.iter().filter(|lane| **lane != base)) {
            let Some(Ok(steps)) = steps.get(*lane) else {
                continue;
            };
            if steps.lasting > 0 || steps.reboot || failed.contains_key(lane) {
                continue;
            }
            match dut.set_up(steps, false, Some(&STOP)) {
                Err(error) if error.fault.left() == Left::Nothing => return Err(error.into()),
                Err(error) => {
                    failed.insert(*lane, error.to_string());
                    if error.fault.left() != Left::Others {
                        dut.recover(Some(&STOP))?;
                    }
                }
                Ok(()) if *lane == base => {
                    let has = |lane: &usize| {
                        let [base, wanted] = [base, *lane].map(|lane| &plan.lanes[lane].settings);
                        let asked = questions(base, wanted, target.as_ref()?)?;
                        has_already(dut.place(), host.sudo, &asked)
                            .then(|| (*lane, NOTHING_NEW.to_string()))
                    };
                    failed.extend(lanes.iter().filter_map(has));
                }
                Ok(()) => {}
            }
        }
        dut.put_back()?;
        Ok(failed)
    }

    /// The DUT, as steps change it; none without a DUT.
    fn target(&self, plan: &Campaign) -> Result<Option<Target>> {
        let Some(dut) = self.lab.dut() else {
            return Ok(None);
        };
        let [inside, outside] = self
            .ends(dut)?
            .map(|found| (found.name.clone(), &*found.addresses));
        let save = self.detected(dut).and_then(|s| s.system.config_save());
        let config_save = dut.config_save.clone().or(save.map(String::from));
        Ok(Some(Target {
            system: plan.experiment.system,
            inside: port_of(&self.lab, End::In, inside.0, inside.1),
            outside: port_of(&self.lab, End::Out, outside.0, outside.1),
            config_save,
        }))
    }

    /// The requirements that the DUT does not meet, in words.
    pub(in super::super) fn unmet(&self, requirements: &[Requirement]) -> Result<Vec<String>> {
        let Some(dut) = self.lab.dut() else {
            return Ok(Vec::new());
        };
        let unmet = requirements.iter().map(|wanted| self.lacks(dut, wanted));
        unmet.filter_map(Result::transpose).collect()
    }

    fn lacks(&self, dut: &Host, requirement: &Requirement) -> Result<Option<String>> {
        let name = &dut.name;
        let lacks = |words: &[&str], what: String| -> Result<Option<String>> {
            let succeeds = self
                .place(dut)?
                .run(&Order::program(words), Some(&STOP))?
                .is_success();
            Ok((!succeeds).then(|| format!("{name} has no {what}")))
        };
        match requirement {
            Requirement::Tool(tool) => lacks(&["which", tool], tool.clone()),
            Requirement::Sysctl(key) => lacks(&["sysctl", "-n", key], format!("setting {key}")),
            Requirement::File(path) => lacks(&["test", "-e", path], path.clone()),
            Requirement::Cpus(wanted) => {
                let has = self.of(dut).cpus.filter(|has| has < wanted);
                Ok(has.map(|has| format!("{name} has {has} CPUs, not {wanted}")))
            }
            Requirement::Kernel(major, minor) => {
                let release = self.detected(dut).map_or("", |s| &s.kernel);
                let mut numbers = release.split(['.', '-']).map(|n| n.parse::<u32>().ok());
                let has = numbers.next().flatten().zip(numbers.next().flatten());
                let enough = has.is_some_and(|has| has >= (*major, *minor));
                let why =
                    || format!("{name} has the kernel {release:?}, not {major}.{minor} or newer");
                Ok((!enough).then(why))
            }
            Requirement::Memory(_) => {
                Ok(Some(format!("{name} is not asked how much memory it has")))
            }
            // The set-up shows whether these exist.
            Requirement::Module(_) | Requirement::Link(_) => Ok(None),
        }
    }
}

/// An interface of the DUT, with its neighbours in the lab.
pub fn port_of(lab: &Lab, end: End, name: String, addresses: &[HostAddress]) -> dut_changes::Port {
    let peers = lab.peers(end);
    let next_hops = peers
        .iter()
        .flat_map(|peer| &peer.addresses)
        .map(|a| a.address.to_string());
    dut_changes::Port {
        name,
        addresses: addresses.iter().map(ToString::to_string).collect(),
        next_hops: next_hops.collect(),
        networks: lab.networks(end).into_iter().map(String::from).collect(),
    }
}

/// The steps of a lane on the DUT, or the reasons why it cannot be set up. `folder`: the plan's, which its files are relative to.
pub fn lane_steps(
    plan: &Campaign,
    lane: usize,
    target: &Target,
    folder: &Path,
) -> Result<Steps, Vec<String>> {
    let mut settings = plan.lanes[lane].settings.clone();
    if let Some(image) = &mut settings.image {
        image.file = folder.join(&image.file).display().to_string();
    }
    not_a_baseline(&settings)?;
    let rules = rules(plan, lane, &settings, target);
    dut_changes::steps(&settings, rules.as_ref(), target)
}

/// The rules of a lane on the DUT.
fn rules(plan: &Campaign, lane: usize, settings: &Settings, target: &Target) -> Option<RuleSet> {
    let ports = [&target.inside, &target.outside];
    let [inside, outside] = [0, 1]
        .map(|end| dut_changes::routes_by(settings.dut, target.system, end, &ports[end].name));
    plan.rule_set(lane, Some([&inside, &outside]))
}

fn not_a_baseline(settings: &Settings) -> Result<(), Vec<String>> {
    match settings.dut {
        Dut::TesterBaseline => Err(vec![
            "there is a device under test in this lab: name another lab file for the tester baseline".into(),
        ]),
        _ => Ok(()),
    }
}

/// The steps of a lane on a black box: there are none.
fn as_it_is(settings: &Settings) -> Result<Steps, Vec<String>> {
    not_a_baseline(settings)?;
    let nothing = Settings {
        dut: settings.dut,
        states: settings.states,
        ..Settings::default()
    };
    match *settings == nothing {
        true => Ok(Steps::default()),
        false => Err(vec![
            "the DUT is a black box, on which nobody makes these settings: measure it as it is, in a variant that sets nothing"
                .into(),
        ]),
    }
}
