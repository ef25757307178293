//! Events that interrupt a lane's DUT while a load runs: prepared before the load, and undone after their time.

use super::addresses::{GENERATOR_SIDE, RECEIVER_SIDE};
use super::setup::shell;
use super::workspace::{self, Entry};
use super::{Lane, Setup};
use crate::error::Error;
use crate::net::{Netns, conntrack, sysctl};
use crate::ports::monotonic_ns;
use crate::process::{Input, Job};
use crate::trial::{LOOK, sleep_until};
use linerate_plan::settings::{Command, End, Event as Planned, EventKind};
use linerate_wire::{Family, MacAddr};
use rustix::process::{Signal, kill_process};
use std::fmt::Write;
use std::net::IpAddr;

/// An event, ready to be carried out on another thread.
pub struct Event {
    begin: Vec<Deed>,
    /// Undoes it after its time.
    end: Vec<Deed>,
    for_ns: u64,
    namespace: Netns,
    entry: Option<Entry>,
}

enum Deed {
    Sysctl {
        key: &'static str,
        value: String,
    },
    Run(Job),
    /// Forgets all connections.
    Forget,
    /// Kills the processes of this name in these network namespaces.
    Kill {
        name: String,
        namespaces: Vec<u64>,
    },
}

impl Event {
    /// The event of a lane's variant.
    ///
    /// # Errors
    /// The variant has none, or none that the embedded lab can carry out.
    pub fn of(lane: &Lane) -> Result<Event, Error> {
        let name = &lane.setup.name;
        let refused = |why: &str| Error::Refused(format!("no event can be made for {name}: {why}"));
        let planned = lane
            .setup
            .settings
            .event
            .as_ref()
            .ok_or_else(|| refused("its plan has no [event]"))?;
        let dut = lane.dut.as_ref().ok_or_else(|| refused("it has no DUT"))?;
        let namespace = dut.namespace.clone();
        let line = |line: &Option<String>| {
            line.as_ref()
                .map(|line| shell(&plain(line), line))
                .map(Deed::Run)
        };
        let (begin, end): (Vec<Deed>, Vec<Deed>) = match planned.what {
            EventKind::ForwardingOff => forwarding(&namespace, &lane.setup.families)?,
            EventKind::LinkDown => link(lane, planned),
            EventKind::RulesReloaded => (reloading(&lane.setup), Vec::new()),
            EventKind::FirewallRestarted => {
                let mut deeds = reloading(&lane.setup);
                deeds.push(Deed::Forget);
                (deeds, Vec::new())
            }
            EventKind::ProcessKilled => {
                let namespaces = dut.namespaces().into_iter().map(Netns::inode).collect();
                let name = planned.process.clone().unwrap_or_default();
                (
                    vec![Deed::Kill { name, namespaces }],
                    line(&planned.run).into_iter().collect(),
                )
            }
            EventKind::Command => (
                line(&planned.run).into_iter().collect(),
                line(&planned.undo).into_iter().collect(),
            ),
            EventKind::Reboot | EventKind::PowerOff => {
                return Err(refused("this machine would go down"));
            }
        };
        Ok(Event {
            begin,
            end,
            for_ns: planned.lasts_ns(),
            namespace,
            entry: dut.entry(),
        })
    }

    /// Whether an event takes a link down: frames that a generator sends to it then reach no counter.
    pub fn downs_link(planned: &Planned) -> bool {
        planned.what == EventKind::LinkDown
    }

    /// Everything that it does, in order.
    pub fn words(&self) -> Vec<String> {
        let deeds = self.begin.iter().chain(&self.end);
        deeds
            .map(|deed| match deed {
                Deed::Sysctl { key, value } => format!("{key} = {value}"),
                Deed::Run(job) => workspace::words(job),
                Deed::Forget => "forget all connections".into(),
                Deed::Kill { name, .. } => format!("kill -KILL {name}"),
            })
            .collect()
    }

    /// Carries it out, and undoes it after its time or at the end of the load.
    ///
    /// # Errors
    /// A part of it failed; it is undone all the same.
    pub fn carry_out(self, over: impl Fn() -> bool) -> Result<(), Error> {
        let begun = self
            .begin
            .iter()
            .try_for_each(|deed| self.carry_out_one(deed));
        if !self.end.is_empty() {
            sleep_until(monotonic_ns() + self.for_ns, LOOK, over);
        }
        // All of them, whatever becomes of the ones before.
        let ended = self
            .end
            .iter()
            .map(|deed| self.carry_out_one(deed))
            .fold(Ok(()), Result::and);
        begun.and(ended)
    }

    fn carry_out_one(&self, deed: &Deed) -> Result<(), Error> {
        match deed {
            Deed::Sysctl { key, value } => sysctl::set(&self.namespace, key, value),
            Deed::Run(job) => {
                let command = |path: &std::path::Path| match &self.entry {
                    Some(entry) => entry.command(path),
                    None => self.namespace.command(path),
                };
                let run = job.run(command, None);
                run.map(drop).map_err(|e| {
                    Error::Refused(format!("cannot run '{}': {e}", workspace::words(job)))
                })
            }
            Deed::Forget => conntrack::flush(&self.namespace),
            Deed::Kill { name, namespaces } => kill(name, namespaces),
        }
    }
}

/// The usual limit of time.
fn plain(line: &str) -> Command {
    Command {
        run: line.into(),
        undo: None,
        within_ns: None,
    }
}

fn forwarding(namespace: &Netns, families: &[Family]) -> Result<(Vec<Deed>, Vec<Deed>), Error> {
    let (mut off, mut on) = (Vec::new(), Vec::new());
    for family in families {
        let key = match family {
            Family::V4 => "net/ipv4/ip_forward",
            Family::V6 => "net/ipv6/conf/all/forwarding",
        };
        if *family == Family::V4 || sysctl::is_settable(namespace, key)? {
            on.push(Deed::Sysctl {
                key,
                value: sysctl::get(namespace, key)?,
            });
            off.push(Deed::Sysctl {
                key,
                value: "0".into(),
            });
        }
    }
    Ok((off, on))
}

/// Down and up, with the addresses, neighbours and routes of the test traffic, which the kernel forgets with the link.
fn link(lane: &Lane, planned: &Planned) -> (Vec<Deed>, Vec<Deed>) {
    let Some(dut) = &lane.dut else {
        return Default::default();
    };
    let (card, sides, tester) = match planned.end.unwrap_or(End::In) {
        End::In => (&dut.inside, &GENERATOR_SIDE, lane.generator.mac),
        End::Out => (&dut.outside, &RECEIVER_SIDE, lane.receiver.mac),
    };
    let (dev, tester) = (card.name.as_str(), MacAddr(tester));
    let mut back = format!("link set dev {dev} up\n");
    let family = |address: IpAddr| {
        if address.is_ipv4() {
            Family::V4
        } else {
            Family::V6
        }
    };
    for side in sides
        .iter()
        .filter(|side| lane.setup.families.contains(&family(side.tester)))
    {
        let ((own, length), (network, bits)) = (side.dut, side.network);
        let nodad = if own.is_ipv6() { " nodad" } else { "" };
        let _ = writeln!(back, "addr replace {own}/{length} dev {dev}{nodad}");
        let _ = writeln!(
            back,
            "neigh replace {} lladdr {tester} dev {dev} nud permanent",
            side.tester
        );
        let _ = writeln!(
            back,
            "route replace {network}/{bits} via {} dev {dev}",
            side.tester
        );
    }
    let down = Job::new("ip", &["link", "set", "dev", dev, "down"]);
    let up = Job::new("ip", &["-batch", "-"]).with_input(Input::text(back));
    (vec![Deed::Run(down)], vec![Deed::Run(up)])
}

/// The rules of a setup once more, each table in one transaction of the kernel; sets stay as they are.
fn reloading(setup: &Setup) -> Vec<Deed> {
    let again = |job: &Job| match job.name() {
        "ipset" => None,
        "nft" => {
            let input = job.input.clone().after("flush ruleset\n");
            Some(Deed::Run(job.clone().with_input(input)))
        }
        _ => Some(Deed::Run(job.clone())),
    };
    setup.rules.iter().filter_map(again).collect()
}

fn kill(name: &str, namespaces: &[u64]) -> Result<(), Error> {
    let mut killed = 0;
    for process in workspace::processes_in(namespaces) {
        let is_it = std::fs::read_to_string(format!("/proc/{}/comm", process.as_raw_nonzero()));
        if is_it.is_ok_and(|comm| comm.trim_end() == name)
            && kill_process(process, Signal::KILL).is_ok()
        {
            killed += 1;
        }
    }
    match killed {
        0 => Err(Error::Refused(format!(
            "no process in the DUT is called {name}: a command of the variant must start it"
        ))),
        _ => Ok(()),
    }
}
