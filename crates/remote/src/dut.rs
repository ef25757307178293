//! The device under test of a lab of hosts, driven over ssh by its system's own programs: set up for a lane, restored, rebooted,
//! and its counters read before and after each trial. It gets no question while a load runs: a router under line rate may not
//! answer.

mod reboot;
#[cfg(test)]
mod tests;

use crate::boot::{answers, mark, within};
use crate::{
    Changes, ExecutionTarget, Fault, Interrupt, Observed, Order, RemoteError, Result, Target,
    Undone,
};
use linerate_hosts::agent::merge::Seen;
use linerate_hosts::counters;
use linerate_hosts::dut_changes::{Step, Steps};
use linerate_hosts::phases::Outcome;
use linerate_hosts::systems::{Kernel, MOST_BYTES};
use linerate_linux::ports::monotonic_ns;
use linerate_linux::process::Job;
use linerate_linux::trial::{LOOK, sleep_until};
use linerate_measure::record::POWER_OFF_NS;
use linerate_plan::lab::Boot;
use linerate_plan::settings::EventKind;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most time until a DUT answers after a load: the frames in its queues come first.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// How long one question may take.
const QUESTION: Duration = Duration::from_secs(10);

/// How long the program that turns the power off and on may take.
const POWER: Duration = Duration::from_secs(120);

/// A DUT before it is changed.
#[derive(Debug, Clone)]
pub struct Known {
    /// How it is reached.
    pub target: Target,
    /// Identifies the machine: an Ethernet address.
    pub machine: Option<String>,
    /// Whether commands that need root run through sudo.
    pub sudo: bool,
    /// Kernel of the DUT.
    pub kernel: Kernel,
    /// Interfaces of the DUT, towards generator and receiver.
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
    /// The DUT's journal cannot be used, or another linerate uses this host.
    pub fn new(
        known: Known,
        place: Arc<ExecutionTarget>,
        address: &str,
        journals: &Path,
        witness: Option<(Arc<ExecutionTarget>, Kernel)>,
    ) -> Result<RemoteDut> {
        let mut changes =
            Changes::open(place, address, known.machine.clone(), journals, known.sudo)?;
        changes.in_boot(mark(changes.place(), known.kernel))?;
        Ok(RemoteDut {
            known,
            changes,
            witness,
            going_down: None,
            reboots: 0,
        })
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
    pub fn put_back(&mut self) -> Result<Undone> {
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
        ANSWERS_WITHIN.min(self.boot_limit())
    }

    /// How long a boot may take.
    fn boot_limit(&self) -> Duration {
        Duration::from_nanos(self.known.boot.timeout_ns)
    }

    /// Makes the connection again, if it was lost. A host that has booted meanwhile is one all the same.
    fn reach(&mut self) {
        // One that is out of reach is one for whatever is done next.
        let _ = within(self.patience(), || {
            if self.place().lost().is_some() {
                self.reconnect(true)?;
            }
            Ok(self.place().lost().is_none().then_some(()))
        });
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
        interrupted: Interrupt<'_>,
    ) -> Result<()> {
        self.reach();
        self.changes.undo()?;
        if self.changes.owes_boot() && !self.known.may_reboot {
            return Err(self.error(Fault::Owed, ""));
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
    pub fn reboot_as_it_is(&mut self, steps: &Steps, interrupted: Interrupt<'_>) -> Result<()> {
        self.reboot(interrupted)?;
        self.changes.make(
            &steps.steps[steps.lasting.min(steps.steps.len())..],
            false,
            interrupted,
        )?;
        Ok(())
    }

    /// Carries out an event under load: makes its steps, and undoes them after their time or at the end of the load. A reboot or power
    /// cut is only started; [`RemoteDut::finish_reboot`] waits for its end. Returns everything that was done.
    pub fn carry_out_event(
        &mut self,
        what: EventKind,
        steps: &[Step],
        lasts_ns: u64,
        over: impl Fn() -> bool,
    ) -> (Result<()>, Vec<String>) {
        match what {
            EventKind::Reboot | EventKind::PowerOff if !self.has_a_kernel() => {
                (Err(self.shares_kernel()), Vec::new())
            }
            EventKind::Reboot => {
                // A host that goes down rarely answers.
                let (before, _) = self.order_reboot();
                self.going_down = Some(before);
                (Ok(()), vec!["reboot".into()])
            }
            EventKind::PowerOff => (self.cut_power(), vec![self.known.power_cycle.join(" ")]),
            _ => {
                let ran = steps.iter().map(|step| step.apply.shown()).collect();
                let before = self.changes.pending().len();
                let made = self.changes.make(steps, false, None);
                if self.changes.pending().len() > before {
                    sleep_until(monotonic_ns().saturating_add(lasts_ns), LOOK, over);
                }
                (made.and(self.changes.undo_to(before).map(drop)), ran)
            }
        }
    }

    /// Whether it is another machine than this one. A network namespace that is rebooted takes this machine down.
    fn has_a_kernel(&self) -> bool {
        matches!(**self.place(), ExecutionTarget::Ssh(_))
    }

    fn shares_kernel(&self) -> RemoteError {
        self.error(
            Fault::Failed,
            "it runs on the kernel of this machine, which linerate does not boot",
        )
    }

    /// Turns its power off and on, as RFC 6201 has it (section 4.3.1).
    fn cut_power(&mut self) -> Result<()> {
        let (before, began) = (mark(self.place(), self.known.kernel), Instant::now());
        let cycled = self.cycle_power();
        let took = began.elapsed();
        if cycled.is_ok() || !answers(self.place()) {
            self.reboots += 1;
            self.going_down = Some(before);
        }
        cycled.map_err(|why| self.error(Fault::Failed, why))?;
        let least = Duration::from_nanos(POWER_OFF_NS);
        if took >= least {
            return Ok(());
        }
        let said = format!(
            "its power-cycle program took {:.1} s, and the power must be off for {} s (RFC 6201, section 4.3.1): name a program \
             that turns it off, waits so long, and turns it on",
            took.as_secs_f64(),
            least.as_secs()
        );
        Err(self.error(Fault::Failed, said))
    }

    /// Runs the program that turns its power off and on. Neither an interrupt nor the end of linerate stops the program, because the
    /// power could then stay off.
    fn cycle_power(&self) -> Result<(), String> {
        let [program, arguments @ ..] = &self.known.power_cycle[..] else {
            return Err("its lab file lacks a power-cycle program".into());
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let job = Job::new(program, &arguments).within(POWER).outliving();
        let run = job.run(|path| Command::new(path), None).map(drop);
        run.map_err(|error| format!("{program} could not turn its power off and on: {error}"))
    }

    /// Counters of its interfaces and protocols. After a load it may take a while to answer.
    ///
    /// # Errors
    /// The DUT does not answer, or its answer lacks its interfaces.
    pub fn look(&mut self) -> Result<Seen> {
        let began = Instant::now();
        loop {
            let seen = self.count();
            let tells = |seen: &Seen| {
                self.known
                    .ends
                    .iter()
                    .all(|end| seen.links.contains_key(end))
            };
            match seen {
                Ok(seen) if tells(&seen) => return Ok(seen),
                Err(error) if began.elapsed() > self.patience() => return Err(error),
                Err(_) if self.place().lost().is_some() => self.reconnect(false)?,
                Ok(_) if began.elapsed() > self.patience() => {
                    let said = format!(
                        "it does not tell the counters of {}",
                        self.known.ends.join(" and ")
                    );
                    return Err(self.error(Fault::Uncounted, said));
                }
                _ => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Everything that it counts, as far as it answers.
    fn count(&self) -> Result<Seen> {
        let argv = counters::question(self.known.kernel, &self.known.ends);
        let order = Order {
            most_output: MOST_BYTES,
            ..Order::program(&argv).within(QUESTION)
        };
        let finished = self.place().run(&order.by_sudo(self.known.sudo), None)?;
        if finished.outcome == Outcome::TimedOut {
            return Err(self.error(
                Fault::Silent(QUESTION),
                "a command for its counters does not end there",
            ));
        }
        Ok(counters::read(
            self.known.kernel,
            &self.known.ends,
            &finished.stdout.bytes(),
        ))
    }

    /// The host, for collectors.
    pub fn observed(&self) -> Observed {
        Observed {
            target: Arc::clone(self.place()),
            sudo: self.known.sudo,
        }
    }

    /// Kernel of the DUT.
    pub fn kernel(&self) -> Kernel {
        self.known.kernel
    }

    fn error(&self, fault: Fault, said: impl Into<String>) -> RemoteError {
        self.place().error(fault, said)
    }
}
