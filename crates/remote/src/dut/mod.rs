//! The device under test of a lab of hosts, driven over ssh by its system's own programs: set up for a lane, restored, rebooted,
//! and its counters read before and after each trial. It gets no question while a load runs: a router under line rate may not
//! answer.

mod boot;

use crate::{Changes, ExecutionTarget, Fault, Observed, Order, RemoteError, Target, Undone};
use linerate_hosts::agent::ledger::Seen;
use linerate_hosts::dut_changes::Steps;
use linerate_hosts::phases::Outcome;
use linerate_hosts::systems::{Counters, Facts, Kernel, Question};
use linerate_plan::lab::Boot;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Most time until a DUT answers after a load: the frames in its queues come first.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// How long one question may take.
const QUESTION: Duration = Duration::from_secs(10);

/// A DUT before it is changed.
#[derive(Debug, Clone)]
pub struct Known {
    /// How it is reached.
    pub target: Target,
    /// Identifies the machine: an Ethernet address.
    pub machine: Option<String>,
    /// Whether commands that need root run through sudo.
    pub sudo: bool,
    /// Its kernel.
    pub kernel: Kernel,
    /// Its interfaces, towards generator and receiver.
    pub ends: [String; 2],
    /// Whether the plan lets it be rebooted.
    pub may_reboot: bool,
    /// How it comes back after a reboot.
    pub boot: Boot,
    /// A program of this machine that turns its power off and on, with its arguments; may be empty.
    pub power_cycle: Vec<String>,
    /// A program of this machine that shows its console, for messages; may be empty.
    pub console: Vec<String>,
}

/// A device under test.
#[derive(Debug)]
pub struct RemoteDut {
    known: Known,
    changes: Changes,
    /// The host that asks whether it forwards again after a reboot, with its kernel; without one, itself.
    witness: Option<(Arc<ExecutionTarget>, Kernel)>,
    /// The boot in which it got the order to reboot, if an interrupt came before it was back.
    going_down: Option<Option<String>>,
    reboots: u32,
}

impl RemoteDut {
    /// A DUT that is connected. `address`: where ssh reaches it; `journals`: the folder of this machine in which its changes are written
    /// down.
    ///
    /// # Errors
    /// Its journal cannot be used, or another linerate uses this host.
    pub fn new(
        known: Known,
        place: Arc<ExecutionTarget>,
        address: &str,
        journals: &Path,
        witness: Option<(Arc<ExecutionTarget>, Kernel)>,
    ) -> Result<RemoteDut, RemoteError> {
        let mut changes = Changes::open(place, address, known.machine.clone(), journals, known.sudo)?;
        changes.in_boot(boot::mark(changes.place(), known.kernel))?;
        Ok(RemoteDut { known, changes, witness, going_down: None, reboots: 0 })
    }

    pub fn name(&self) -> &str {
        self.place().name()
    }

    /// Number of orders to reboot.
    pub fn reboots(&self) -> u32 {
        self.reboots
    }

    /// How it is reached now.
    pub fn place(&self) -> &Arc<ExecutionTarget> {
        self.changes.place()
    }

    /// Whether there are changes to undo, also those of a linerate that was killed.
    pub fn is_changed(&self) -> bool {
        !self.changes.pending().is_empty()
    }

    /// Undoes all changes. If undoing needs a reboot, reboots it, if the plan allows that.
    ///
    /// # Errors
    /// A change could not be undone, or the host did not come back.
    pub fn put_back(&mut self) -> Result<Undone, RemoteError> {
        self.finish_reboot()?;
        self.reach();
        let undone = self.changes.undo()?;
        if self.changes.owes_boot() && self.known.may_reboot {
            self.reboot(None)?;
        }
        Ok(undone)
    }

    /// Whether restored settings take effect only from its next boot on.
    pub fn owes_boot(&self) -> bool {
        self.changes.owes_boot()
    }

    /// How long an answer is waited for, at most as long as a boot may take.
    fn patience(&self) -> Duration {
        ANSWERS_WITHIN.min(Duration::from_nanos(self.known.boot.timeout_ns))
    }

    /// Makes the connection again, if it was lost. A host that has booted meanwhile is one all the same.
    fn reach(&mut self) {
        let (began, within) = (Instant::now(), self.patience());
        while self.place().lost().is_some() && began.elapsed() < within {
            match self.reconnect() {
                Ok(()) if self.place().lost().is_none() => return,
                Err(error) if error.fault == Fault::Booted => return self.reach_after_boot(),
                Err(_) => return,
                Ok(()) => std::thread::sleep(Duration::from_millis(250)),
            }
        }
    }

    /// Undoes earlier changes and sets it up. It is rebooted if the steps need it, or if `reboot` demands it.
    ///
    /// # Errors
    /// A change failed; it does not come back, or does not forward again; it would have to be rebooted, and the plan allows no
    /// reboot.
    pub fn set_up(
        &mut self,
        steps: &Steps,
        reboot: bool,
        interrupted: Option<&AtomicBool>,
    ) -> Result<(), RemoteError> {
        self.reach();
        self.changes.undo()?;
        if self.changes.owes_boot() && !self.known.may_reboot {
            return Err(RemoteError::new(self.name(), Fault::Owed, ""));
        }
        let (lasting, others) = steps.steps.split_at(steps.lasting.min(steps.steps.len()));
        let (image, lasting) = lasting.split_at(steps.image.min(lasting.len()));
        if !image.is_empty() {
            if self.changes.owes_boot() {
                self.reboot(interrupted)?;
            }
            self.changes.make(image, true, interrupted)?;
            self.reboot(interrupted)?;
        }
        self.changes.make(lasting, true, interrupted)?;
        let has_booted = !image.is_empty() && lasting.is_empty();
        if self.changes.owes_boot() || steps.reboot || reboot && !has_booted {
            self.reboot(interrupted)?;
        }
        self.changes.make(others, false, interrupted)?;
        Ok(())
    }

    /// Boots it again with its lasting changes, and makes the others anew.
    ///
    /// # Errors
    /// As [`RemoteDut::set_up`].
    pub fn reboot_as_it_is(
        &mut self,
        steps: &Steps,
        interrupted: Option<&AtomicBool>,
    ) -> Result<(), RemoteError> {
        self.reboot(interrupted)?;
        self.changes.make(&steps.steps[steps.lasting.min(steps.steps.len())..], false, interrupted)?;
        Ok(())
    }

    /// Counters of its interfaces and protocols. After a load it may take a while to answer.
    ///
    /// # Errors
    /// It does not answer, or its answer lacks its interfaces.
    pub fn look(&mut self) -> Result<Seen, RemoteError> {
        let mut facts = Facts::of_kernel(self.known.kernel);
        let began = Instant::now();
        loop {
            let asked = self.ask(&Question::Counters, &mut facts);
            let told = |end: &String| facts.counters.iter().any(|c| c.interface == *end);
            match asked {
                Ok(()) if self.known.ends.iter().all(told) => break,
                Err(error) if began.elapsed() > self.patience() => return Err(error),
                Err(_) if self.place().lost().is_some() => self.reconnect()?,
                Ok(()) if began.elapsed() > self.patience() => {
                    let said = format!("it does not tell the counters of {}", self.known.ends.join(" and "));
                    return Err(RemoteError::new(self.name(), Fault::Uncounted, said));
                }
                _ => std::thread::sleep(Duration::from_millis(100)),
            }
        }
        if self.known.kernel != Kernel::Linux {
            self.ask(&Question::Statistics, &mut facts)?;
        }
        Ok(seen(&facts, &self.known.ends))
    }

    fn ask(&self, question: &Question, facts: &mut Facts) -> Result<(), RemoteError> {
        let Some(argv) = question.argv(self.known.kernel) else { return Ok(()) };
        let command = crate::words::line(&argv, false);
        let order = Order { limit: QUESTION, most_output: 1 << 20, ..Order::new(&command) };
        let finished = self.place().run(&order, None)?;
        if finished.outcome == Outcome::TimedOut {
            let silent = Fault::Silent(QUESTION);
            return Err(RemoteError::new(self.name(), silent, format!("`{command}` does not end there")));
        }
        facts.answer(question, &finished.stdout.bytes(), if finished.is_success() { 0 } else { 1 });
        Ok(())
    }

    /// The host, for collectors.
    pub fn observed(&self) -> Observed {
        Observed { target: Arc::clone(self.place()), sudo: self.known.sudo }
    }

    /// Its kernel.
    pub fn kernel(&self) -> Kernel {
        self.known.kernel
    }
}

/// Counters in the form that the ledger takes. Drivers differ in whether a frame without a place counts as an error or as a drop.
fn seen(facts: &Facts, ends: &[String; 2]) -> Seen {
    let of = |counters: &Counters| {
        let sum = |a: Option<u64>, b: Option<u64>| a.unwrap_or(0).saturating_add(b.unwrap_or(0));
        BTreeMap::from([
            ("rx_packets".to_string(), counters.in_packets.unwrap_or(0)),
            ("rx_missed".to_string(), sum(counters.in_errors, counters.in_drops)),
            ("tx_packets".to_string(), counters.out_packets.unwrap_or(0)),
            ("tx_dropped".to_string(), sum(counters.out_errors, counters.out_drops)),
        ])
    };
    let links = facts.counters.iter().filter(|c| ends.contains(&c.interface));
    let links = links.map(|c| (c.interface.clone(), of(c))).collect();
    Seen { links, drops: facts.statistics.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_netstat_counts_is_what_the_ledger_takes() {
        let mut facts = Facts::of_kernel(Kernel::FreeBsd);
        let table = b"Name    Mtu Network       Address              Ipkts Ierrs Idrop     Ibytes    Opkts Oerrs     Obytes  Coll  Drop\n\
            igb0   1500 <Link#1>      00:0d:b9:41:ca:3c        1     2     3        100        4     5        200     0     6\n\
            igb1   1500 <Link#2>      00:0d:b9:41:ca:3d     1000    20     3     100000       40     0       2000     0     6\n";
        facts.answer(&Question::Counters, table, 0);
        let seen = seen(&facts, &["igb1".into(), "igb2".into()]);
        assert_eq!(seen.links.len(), 1);
        let igb1 = &seen.links["igb1"];
        assert_eq!((igb1["rx_packets"], igb1["rx_missed"], igb1["tx_dropped"]), (1000, 23, 6));
    }
}
