//! Reboots of a DUT: the order, and the waits until it is down, answers again and forwards again; also for a DUT that was lost.

use super::RemoteDut;
use crate::boot::{COMMAND, answers, is_other_boot, mark, within};
use crate::changes::SAID;
use crate::error::in_brackets;
use crate::{ExecutionTarget, Fault, Interrupt, Order, Result, Target};
use linerate_hosts::systems::Kernel;
use linerate_hosts::words::{one_line, unless_empty};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a host may take to go down.
const DOWN_WITHIN: Duration = Duration::from_secs(120);
/// How long one try may take.
const TRY: Duration = Duration::from_secs(3);

impl RemoteDut {
    /// Reboots it, and waits until it forwards again. Changes that do not outlive a boot are then gone.
    pub(super) fn reboot(&mut self, interrupted: Interrupt<'_>) -> Result<()> {
        if !self.has_a_kernel() {
            return Err(self.shares_kernel());
        }
        let (before, told) = self.order_reboot();
        let said = told.unwrap_or_default();
        let back = self.come_back(&before, &said, interrupted);
        if let Err(error) = &back
            && error.fault == Fault::Interrupted
        {
            self.going_down = Some(before);
        }
        back
    }

    /// Orders a reboot. Returns the boot before it, and what the host said.
    pub(super) fn order_reboot(&mut self) -> (Option<String>, Result<String>) {
        self.reboots += 1;
        let before = mark(self.place(), self.known.kernel);
        let argv: &[&str] = match self.known.kernel {
            Kernel::Linux => &["reboot"],
            _ => &["shutdown", "-r", "now"],
        };
        let order = Order::program(argv)
            .within(COMMAND)
            .by_sudo(self.known.sudo);
        // The order is sent as a whole despite interrupts: otherwise it would be unknown whether the host goes down.
        let told = self.place().run(&order, None);
        (before, told.map(|finished| finished.errors()))
    }

    /// Waits for a reboot that is under way: settings that are restored on a host that goes down may be lost.
    ///
    /// # Errors
    /// The DUT does not come back, or does not forward again.
    pub fn finish_reboot(&mut self) -> Result<()> {
        self.going_down
            .take()
            .map_or(Ok(()), |before| self.come_back(&before, "", None))
    }

    fn come_back(
        &mut self,
        before: &Option<String>,
        said: &str,
        interrupted: Interrupt<'_>,
    ) -> Result<()> {
        self.wait_down(before, said, interrupted)?;
        let place = self.wait_back("its reboot", before, interrupted)?;
        let boot = mark(&place, self.known.kernel);
        self.changes.booted(Arc::new(place), boot)?;
        self.wait_forwarding(interrupted)
    }

    /// Reaches a host again that was lost: waits for it as long as a boot may take, and turns its power off and on if it must be. One that
    /// has booted meanwhile is waited for until it forwards.
    ///
    /// # Errors
    /// The DUT does not come back, or does not forward again.
    pub fn recover(&mut self, interrupted: Interrupt<'_>) -> Result<()> {
        let place = self.wait_back("it was lost", &None, interrupted)?;
        let now = mark(&place, self.known.kernel);
        if !is_other_boot(&now, &self.changes.boot()) {
            self.changes.reached_by(Arc::new(place));
            return Ok(());
        }
        self.changes.booted(Arc::new(place), now)?;
        match self.wait_forwarding(interrupted) {
            // The DUT may have files of the variant that it was lost with. They are restored next.
            Err(error) if error.fault == Fault::Unreaching => Ok(()),
            other => other,
        }
    }

    /// Connects once more to a host that was lost. Under load it must not have booted meanwhile, because that would lose its settings;
    /// `after_boot`: it may have.
    pub(super) fn reconnect(&mut self, after_boot: bool) -> Result<()> {
        let place = match self.try_once(None) {
            Ok(place) => place,
            Err(error) if error.fault.is_final() => return Err(error),
            Err(_) => return Ok(()),
        };
        let (now, then) = (mark(&place, self.known.kernel), self.changes.boot());
        match after_boot {
            true if is_other_boot(&now, &then) => self.changes.booted(Arc::new(place), now),
            false if is_other_boot(&now, &then) => Err(self.error(Fault::Booted, "")),
            // A host that cannot identify its boot yet is asked again later.
            _ if now.is_none() && then.is_some() => Ok(()),
            _ => {
                self.changes.reached_by(Arc::new(place));
                Ok(())
            }
        }
    }

    /// Tries something again and again until it succeeds; `None` when the time is up.
    fn within<T>(
        &self,
        limit: Duration,
        interrupted: Interrupt<'_>,
        mut attempt: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        within(limit, || {
            match interrupted.is_some_and(|i| i.load(Ordering::Relaxed)) {
                true => Err(self.error(Fault::Interrupted, "")),
                false => attempt(),
            }
        })
    }

    fn wait_down(
        &self,
        before: &Option<String>,
        said: &str,
        interrupted: Interrupt<'_>,
    ) -> Result<()> {
        // The old connection may take long to notice. A new one shows it at once, also for a host that was quicker and is back.
        let is_as_before = || {
            self.try_once(interrupted)
                .is_ok_and(|place| !self.has_booted(&place, before))
        };
        let is_down = || Ok((self.place().lost().is_some() || !is_as_before()).then_some(()));
        if self.within(DOWN_WITHIN, interrupted, is_down)?.is_some() {
            return Ok(());
        }
        let (after, said) = (DOWN_WITHIN.as_secs(), in_brackets(&one_line(said, SAID)));
        let said = format!("it was told to reboot, and is still there after {after} s{said}");
        Err(self.error(Fault::StillUp, said))
    }

    /// Whether a host has another boot than before.
    fn has_booted(&self, place: &ExecutionTarget, before: &Option<String>) -> bool {
        is_other_boot(&mark(place, self.known.kernel), before)
    }

    /// Waits until it is back, in another boot than `before` where that is known; turns its power off and on where it must be.
    fn wait_back(
        &self,
        since: &str,
        before: &Option<String>,
        interrupted: Interrupt<'_>,
    ) -> Result<ExecutionTarget> {
        let mut why = match self.wait_answer(before, interrupted)? {
            Ok(place) => return Ok(place),
            Err(why) => why,
        };
        match self.cycle_power() {
            Err(error) => why += &format!("; {error}"),
            Ok(()) => match self.wait_answer(before, interrupted)? {
                Ok(place) => return Ok(place),
                Err(again) => {
                    why = format!(
                        "{again}; its power was turned off and on by {}",
                        self.known.power_cycle[0]
                    )
                }
            },
        }
        let console = unless_empty(": ", &self.known.console.join(" "), "");
        let after = self.boot_limit().as_secs();
        let said = format!(
            "it has not come back {after} s after {since} ({why}); look at its console{console}"
        );
        Err(self.error(Fault::Gone, said))
    }

    /// Waits as long as a boot may take; the inner error: why it has not come back.
    fn wait_answer(
        &self,
        before: &Option<String>,
        interrupted: Interrupt<'_>,
    ) -> Result<Result<ExecutionTarget, String>> {
        let mut why = String::from("it was not tried");
        let back = self.within(self.boot_limit(), interrupted, || {
            why = match self.try_once(interrupted) {
                Ok(place) if before.is_none() && !answers(&place) => {
                    "it takes connections, and runs nothing".into()
                }
                Ok(place) if before.is_none() || self.has_booted(&place, before) => {
                    return Ok(Some(place));
                }
                Ok(_) => "it answers, and does not tell of another boot".into(),
                Err(error) if error.fault.is_final() => return Err(error),
                Err(error) => format!("{}{}", error.fault, unless_empty(": ", &error.said, "")),
            };
            Ok(None)
        })?;
        Ok(back.ok_or(why))
    }

    /// One quick try to connect.
    fn try_once(&self, interrupted: Interrupt<'_>) -> Result<ExecutionTarget> {
        let target = Target {
            connect_within: TRY,
            ..self.known.target.clone()
        };
        ExecutionTarget::connect(&target, interrupted)
    }

    /// A router forwards nothing for a while after a boot: waits until the addresses that it must reach answer.
    fn wait_forwarding(&self, interrupted: Interrupt<'_>) -> Result<()> {
        let here = (self.place(), self.known.kernel);
        let asked = self
            .witness
            .as_ref()
            .map(|(place, kernel)| (place, *kernel));
        let (place, kernel) = asked.unwrap_or(here);
        for to in &self.known.boot.reaches {
            let order = Order::program(&ping(*to, kernel)).within(TRY);
            let answer = || Ok(place.run(&order, interrupted)?.is_success().then_some(()));
            let limit = self.boot_limit();
            if self.within(limit, interrupted, answer)?.is_none() {
                let (from, after) = (place.name(), limit.as_secs());
                let said = format!(
                    "it is back, but does not reach {to} within {after} s (asked from {from})"
                );
                return Err(self.error(Fault::Unreaching, said));
            }
        }
        Ok(())
    }
}

/// One echo request that is given up after a second or two.
fn ping(to: IpAddr, kernel: Kernel) -> Vec<String> {
    let words: &[&str] = match (kernel, to) {
        (Kernel::Linux, IpAddr::V4(_)) => &["ping", "-n", "-c", "1", "-W", "1"],
        (Kernel::Linux, IpAddr::V6(_)) => &["ping", "-6", "-n", "-c", "1", "-W", "1"],
        (Kernel::FreeBsd, IpAddr::V4(_)) => &["ping", "-n", "-c", "1", "-t", "2"],
        (_, IpAddr::V4(_)) => &["ping", "-n", "-c", "1", "-w", "2"],
        (_, IpAddr::V6(_)) => &["ping6", "-n", "-c", "1"],
    };
    words
        .iter()
        .map(|word| (*word).to_string())
        .chain([to.to_string()])
        .collect()
}
