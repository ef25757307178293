//! The testbed of a lab of hosts: who sends, who counts, and what the DUT's lanes are.

use super::super::prepare::Prepared;
use super::Site;
use super::traffic::{Side, task};
use crate::testbed::{Agents, Device, HostSlot, Hosts, HostsTester, SlotLoad, ToolTasks, Tools};
use anyhow::{Context, Result};
use linerate_hosts::systems::Kernel;
use linerate_linux::net::userns;
use linerate_plan::Backend;
use linerate_plan::campaign::{Campaign, Reboot};
use linerate_plan::lab::Host;
use linerate_plan::settings::{States, System};
use linerate_remote::ExecutionTarget;
use linerate_remote::agents::lab::{Cabling, Card, RealLab, Sender};
use linerate_remote::agents::{Agent, Link};
use linerate_remote::dut::{Known, RemoteDut};
use linerate_remote::external::ToolHost;
use linerate_wire::{MacAddr, Transport};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long an agent may take to answer.
const GREETING: Duration = Duration::from_secs(10);
/// How long the first frame of tools may take to come through, unless the DUT is to boot quicker.
const PATIENCE: Duration = Duration::from_secs(20);
/// Flows that a DUT without states is shown before the first trial.
const ENOUGH_TO_LEARN: u64 = 10_000;

/// A sending interface.
struct Sending<'a> {
    host: &'a Host,
    side: Side<'a>,
    to: MacAddr,
}

/// Settings of an interrupted run that were put back.
pub struct Earlier {
    /// Each change, in words.
    pub told: Vec<String>,
    /// Whether some of it counts from the DUT's next boot on only.
    pub owes_boot: bool,
}

impl Site {
    /// The testbed. `campaign`: high byte of the stream ids.
    ///
    /// # Errors
    /// A host lacks something, or another linerate uses it.
    pub fn stand(&self, plan: &Campaign, prepared: &Prepared, campaign: u8) -> Result<Hosts> {
        let device = self.device(plan)?;
        let tester = self.tester(prepared, campaign)?;
        let of_slot = |(cell, &SlotLoad { lane, kind }): (usize, &SlotLoad)| {
            let traffic = &plan.kinds[plan.cells[cell].kind];
            let flows = u64::from(traffic.flows);
            let settings = &plan.lanes[lane].settings;
            // A repeated SYN on a connection that has been answered: only Linux is known to let it pass.
            let linux = matches!(plan.system, System::Linux | System::Vyos);
            let states = settings.tracks().then_some(match settings.states {
                States::Established if traffic.transport == Transport::Tcp && !linux => States::OneWay,
                states => states,
            });
            let all = states.is_some_and(|states| states != States::New);
            HostSlot {
                lane,
                kind,
                flows: if all { flows } else { flows.min(ENOUGH_TO_LEARN) },
                states,
                forget: settings.forget(),
            }
        };
        let slots = prepared.layout.iter().enumerate().map(of_slot).collect();
        Ok(Hosts::new(tester, device, slots))
    }

    fn device(&self, plan: &Campaign) -> Result<Option<Device>> {
        let Some(host) = self.lab.dut() else { return Ok(None) };
        let reboot = plan.trials.reboot;
        let dut = self.dut(host, reboot)?;
        let ends = self.ends(host)?;
        let lanes = self.steps(plan)?.into_iter().map(Result::unwrap_or_default).collect();
        Ok(Some(Device { dut, ends, lanes, reboot, collect: plan.collect.clone() }))
    }

    /// Identifies a machine, whatever it is called, however it is reached, and which way frames go through it.
    fn machine(&self, host: &Host) -> Result<Option<String>> {
        let ends = [self.interface(host, "in", 0)?.mac, self.interface(host, "out", 0)?.mac];
        Ok(ends.into_iter().flatten().min_by_key(|mac| mac.0).map(|mac| mac.to_string()))
    }

    fn ends(&self, dut: &Host) -> Result<[String; 2]> {
        Ok([self.interface(dut, "in", 0)?.name.clone(), self.interface(dut, "out", 0)?.name.clone()])
    }

    fn dut(&self, host: &Host, reboot: Reboot) -> Result<RemoteDut> {
        let place = Arc::clone(self.place(host)?);
        let known = Known {
            target: self.approach.target(host),
            machine: self.machine(host)?,
            sudo: host.sudo,
            kernel: self.kernel(host)?,
            ends: self.ends(host)?,
            may_reboot: reboot != Reboot::Never,
            boot: host.boot.clone(),
            power_cycle: host.power_cycle.clone(),
            console: host.console.clone(),
        };
        let witness =
            host.boot.from.as_ref().and_then(|name| self.lab.hosts.iter().find(|h| h.name == *name));
        let witness =
            witness.map(|h| anyhow::Ok((Arc::clone(self.place(h)?), self.kernel(h)?))).transpose()?;
        Ok(RemoteDut::new(known, place, &host.ssh.to_string(), &journals()?, witness)?)
    }

    /// As [`Site::put_back`], before the lab is judged: settings that an interrupted run left may make it unfit. A DUT of which too little
    /// is known is left to those who judge.
    pub(super) fn put_back_if_known(&mut self, reboot: Reboot) -> Result<Option<Earlier>> {
        match self.lab.dut() {
            Some(dut) if self.place(dut).is_ok() && self.ends(dut).is_ok() && self.kernel(dut).is_ok() => {
                self.put_back(reboot)
            }
            _ => Ok(None),
        }
    }

    /// Restores the settings of the DUT that an interrupted run had changed, if there are any.
    ///
    /// # Errors
    /// It could not be put back, another linerate uses this host, or it is not known well enough.
    pub fn put_back(&mut self, reboot: Reboot) -> Result<Option<Earlier>> {
        let Some(host) = self.lab.dut() else { return Ok(None) };
        let mut dut = self.dut(host, reboot)?;
        if !dut.is_changed() {
            return Ok(None);
        }
        let told =
            |what| format!("{}: restored settings that an interrupted run had changed: {what}", host.name);
        let told = dut.put_back()?.what.into_iter().map(told).collect();
        let earlier = Earlier { told, owes_boot: dut.owes_boot() };
        // It may have booted.
        let (name, place) = (host.name.clone(), Arc::clone(dut.place()));
        self.places.insert(name, place);
        Ok(Some(earlier))
    }

    fn kernel(&self, host: &Host) -> Result<Kernel> {
        self.of(host)?.kernel().with_context(|| format!("the system of {} is not known", host.name))
    }

    /// The Ethernet address that frames are sent to.
    fn destination(&self) -> Result<MacAddr> {
        let (host, key) = match self.lab.dut() {
            Some(dut) => (dut, "in"),
            None => (self.lab.receiver(), "receive"),
        };
        let found = self.interface(host, key, 0)?;
        found.mac.with_context(|| format!("{}: {} has no Ethernet address", host.name, found.name))
    }

    fn sending(&self) -> Result<Vec<Sending<'_>>> {
        let to = self.destination()?;
        let mut all = Vec::new();
        for host in self.lab.generators() {
            for (nth, wanted) in host.send.iter().enumerate() {
                let found = self.interface(host, "send", nth)?;
                let addresses = found.addresses.iter().map(|a| a.address).collect();
                all.push(Sending { host, side: Side { name: &found.name, wanted, addresses }, to });
            }
        }
        Ok(all)
    }

    fn tester(&self, prepared: &Prepared, campaign: u8) -> Result<HostsTester> {
        let sending = self.sending()?;
        let receiver = self.lab.receiver();
        let hosts = sending.iter().map(|s| s.host).chain([receiver]);
        let tools: Vec<Backend> = hosts.map(|host| self.tool(host)).collect::<Result<_>>()?;
        match self.has_agents()? {
            true => self.agents(&sending, receiver, &tools, prepared, campaign),
            false => self.tools(&sending, receiver, &tools, prepared),
        }
    }

    /// How long it may take until frames come through.
    fn patience(&self) -> Duration {
        let boot = self.lab.dut().map_or(PATIENCE, |dut| Duration::from_nanos(dut.boot.timeout_ns));
        boot.min(PATIENCE)
    }

    fn agents(
        &self,
        sending: &[Sending<'_>],
        receiver: &Host,
        tools: &[Backend],
        prepared: &Prepared,
        campaign: u8,
    ) -> Result<HostsTester> {
        let mut names: Vec<&str> = Vec::new();
        let mut agents = Vec::new();
        for host in sending.iter().map(|s| s.host).chain([receiver]) {
            if !names.contains(&host.name.as_str()) {
                names.push(&host.name);
                agents.push(greet(self.place(host)?, host)?);
            }
        }
        let number = |host: &Host| names.iter().position(|name| *name == host.name).unwrap_or(0);
        let longest = prepared.kinds.iter().map(|kind| kind.traffic.mix.max_len_fcs()).max().unwrap_or(64);
        let backends: Vec<Backend> = tools.iter().map(|tool| tool.resolved(longest)).collect();
        for backend in &backends {
            prepared.kinds.iter().try_for_each(|kind| backend.check(&kind.traffic))?;
        }
        let (counting, sends) = backends.split_last().context("a lab has a receiver")?;
        let mut senders = Vec::new();
        for (one, backend) in sending.iter().zip(sends) {
            let agent = number(one.host);
            let cpus = match one.side.wanted.threads {
                None => Vec::new(),
                Some(threads) => agents[agent].cpus().iter().copied().take(threads as usize).collect(),
            };
            let card = Card { agent, interface: one.side.name.into(), backend: *backend, cpus };
            senders.push(Sender { card, to: one.to });
        }
        let found = self.interface(receiver, "receive", 0)?;
        let interface = found.name.clone();
        let card = Card { agent: number(receiver), interface, backend: *counting, cpus: Vec::new() };
        let mut names: Vec<&str> = sends.iter().map(|backend| backend.name()).collect();
        names.dedup();
        let names = [names.join(", "), counting.name().into()];
        let cabling = Cabling { senders, receiver: card, isolated: self.lab.isolated };
        let kinds = prepared.kinds.iter().map(|kind| kind.traffic.clone()).collect();
        let lab = RealLab::new(agents, cabling, kinds, campaign).map_err(anyhow::Error::msg)?;
        Ok(HostsTester::Agents(Box::new(Agents { lab, names, patience: self.patience() })))
    }

    fn tools(
        &self,
        sending: &[Sending<'_>],
        receiver: &Host,
        tools: &[Backend],
        prepared: &Prepared,
    ) -> Result<HostsTester> {
        let driven = |host: &Host, tool: Backend| -> Result<ToolHost> {
            Ok(ToolHost { place: Arc::clone(self.place(host)?), tool, sudo: host.sudo })
        };
        let found = self.interface(receiver, "receive", 0)?;
        let wanted = receiver.receive.as_ref().context("the receiver has no [receive] in the lab file")?;
        let addresses: Vec<IpAddr> = found.addresses.iter().map(|a| a.address).collect();
        let far = Side { name: &found.name, wanted, addresses };
        let (counting, tools) = tools.split_last().context("a lab has a receiver")?;
        let mut kinds = Vec::new();
        for kind in &prepared.kinds {
            let of =
                |one: &Sending<'_>, tool: Backend, at: &str| task(kind, tool, [&one.side, &far], at, one.to);
            let sent = sending.iter().zip(tools).map(|(one, tool)| of(one, *tool, one.side.name));
            let sent = sent.collect::<Result<_>>()?;
            kinds.push(ToolTasks { sent, received: of(&sending[0], *counting, far.name)? });
        }
        let generators = sending.iter().zip(tools).map(|(one, tool)| driven(one.host, *tool));
        let generators = generators.collect::<Result<_>>()?;
        let receiver = driven(receiver, *counting)?;
        Ok(HostsTester::Tools(Tools { generators, receiver, patience: self.patience(), kinds }))
    }
}

/// Starts linerate on a host, over its connection.
fn greet(place: &ExecutionTarget, host: &Host) -> Result<Agent> {
    let (program, arguments): (&str, &[&str]) =
        if host.sudo { ("sudo", &["-n", "linerate", "agent"]) } else { ("linerate", &["agent"]) };
    let command = place.program(program, arguments)?;
    let link = Link::start(command).with_context(|| format!("starting ssh to {}", host.name))?;
    Ok(Agent::greet(&host.name, link, env!("CARGO_PKG_VERSION"), GREETING)?)
}

/// Where changes of other hosts are written down: with the user's own state, or with this machine's where root does it.
fn journals() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let root = || userns::is_root().then(|| PathBuf::from("/var/lib"));
    let base =
        variable("XDG_STATE_HOME").or_else(root).or_else(|| Some(variable("HOME")?.join(".local/state")));
    let base = base.context("HOME is not set: there is no place to write changes of hosts down in")?;
    Ok(base.join("linerate/hosts"))
}
