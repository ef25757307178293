//! Tools that send and count on hosts without linerate, and the tasks that they get.

use super::{Sending, Site};
use crate::testbed::prepare::{Prepared, TrafficKind};
use anyhow::{Context, Result, bail};
use linerate_hosts::tools::{self, Task};
use linerate_plan::Backend;
use linerate_plan::lab::{Host, Interface};
use linerate_plan::settings::Dut;
use linerate_remote::external::ToolHost;
use linerate_wire::{Family, Load, MacAddr};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Hosts with tools.
pub(super) struct Tools {
    pub(super) generators: Vec<ToolHost>,
    pub(super) receiver: ToolHost,
    /// By kind of traffic: the tasks of the generators, and of the receiver.
    pub(super) tasks: Vec<(Vec<Task>, Task)>,
}

impl Site {
    pub(super) fn tools(
        &self,
        sending: &[Sending<'_>],
        sends: &[Backend],
        counting: Backend,
        prepared: &Prepared,
    ) -> Result<Tools> {
        let receiver = self.lab.receiver();
        let driven = |host: &Host, tool: Backend| -> Result<ToolHost> {
            Ok(ToolHost {
                place: Arc::clone(self.place(host)?),
                tool,
                sudo: host.sudo,
            })
        };
        let found = self.interface(receiver, "receive", 0)?;
        let wanted = receiver
            .receive
            .as_ref()
            .context("the receiver has no [receive] in the lab file")?;
        let addresses = found.addresses.iter().map(|a| a.address).collect();
        let far = Side {
            name: &found.name,
            wanted,
            addresses,
        };
        let mut tasks = Vec::new();
        for kind in &prepared.kinds {
            if kind.dut.tags().is_some() {
                bail!(
                    "only linerate sends frames with VLAN tags: use tool = \"linerate\" on all hosts that send or receive"
                );
            }
            let beyond = found.mac.filter(|_| kind.dut == Dut::Bridge);
            let of = |one: &Sending<'_>, tool: Backend, at: &str| {
                task(kind, tool, [&one.side, &far], at, beyond.unwrap_or(one.to))
            };
            let sent = sending
                .iter()
                .zip(sends)
                .map(|(one, tool)| of(one, *tool, one.side.name));
            tasks.push((
                sent.collect::<Result<_>>()?,
                of(&sending[0], counting, far.name)?,
            ));
        }
        let generators = sending
            .iter()
            .zip(sends)
            .map(|(one, tool)| driven(one.host, *tool));
        Ok(Tools {
            generators: generators.collect::<Result<_>>()?,
            receiver: driven(receiver, counting)?,
            tasks,
        })
    }
}

/// One end of a cable, for a tool.
pub struct Side<'a> {
    /// The interface's name on its host.
    pub name: &'a str,
    /// Entry of the host in the lab file.
    pub wanted: &'a Interface,
    /// Addresses of the host.
    pub addresses: Vec<IpAddr>,
}

impl Side<'_> {
    fn address(&self, family: Family) -> Result<IpAddr> {
        let found = self
            .addresses
            .iter()
            .find(|a| a.is_ipv4() == (family == Family::V4));
        found
            .copied()
            .with_context(|| format!("{} has no {family} address", self.name))
    }
}

/// The task of a tool that sends from one end of the lab to the other, seen by the interface `at`.
///
/// # Errors
/// The traffic that the tool cannot send.
pub fn task(
    kind: &TrafficKind,
    tool: Backend,
    [sender, receiver]: [&Side<'_>; 2],
    at: &str,
    to: MacAddr,
) -> Result<Task> {
    tool.check(&kind.traffic)?;
    let mut traffic = kind.traffic.addressed(MacAddr::default(), to);
    // Frames of these tools go through the hosts' own stacks: their addresses are the hosts'.
    if tool.uses_host_stack() {
        if traffic.flows.len() > 1 {
            bail!("{tool} sends one flow, not {}", traffic.flows.len());
        }
        let family = traffic.frame.family;
        traffic.flows = tools::one_flow(sender.address(family)?, receiver.address(family)?, PORT)?;
    }
    Ok(Task {
        interface: at.into(),
        traffic,
        load: Load::lasting(Duration::from_secs(1)),
        threads: sender.wanted.threads.unwrap_or(1),
        link_wait_s: LINK_WAIT_S,
    })
}

/// The port that iperf3 and netperf exchange data on.
const PORT: u16 = 5201;
/// Seconds that a card may take for its link to come back after netmap has opened it.
const LINK_WAIT_S: u32 = 10;
