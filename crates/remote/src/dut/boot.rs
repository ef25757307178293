//! Reboots: down, up again, by way of the power where it must be, until it forwards.

use super::RemoteDut;
use crate::changes::{BOOTED_AT, is_same_boot};
use crate::words::line;
use crate::{ExecutionTarget, Fault, Order, RemoteError, Target};
use linerate_hosts::systems::Kernel;
use linerate_linux::process::Job;
use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a host may take to go down.
const DOWN_WITHIN: Duration = Duration::from_secs(120);
/// How long the command that reboots may take: it often never answers.
const COMMAND: Duration = Duration::from_secs(10);
/// How long the program that turns the power off and on may take.
const POWER: Duration = Duration::from_secs(60);
/// Between two tries to reach a host.
const PAUSE: Duration = Duration::from_millis(250);
/// How long one try may take.
const TRY: Duration = Duration::from_secs(3);

impl RemoteDut {
    /// Reboots it, and waits until it forwards again. Changes that do not outlive a boot are then gone.
    pub(super) fn reboot(&mut self, interrupted: Option<&AtomicBool>) -> Result<(), RemoteError> {
        self.reboots += 1;
        let before = mark(self.place(), self.known.kernel);
        let argv: &[&str] = match self.known.kernel {
            Kernel::Linux => &["reboot"],
            _ => &["shutdown", "-r", "now"],
        };
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_string()).collect();
        let command = line(&argv, false);
        let order = Order::new(&command).within(COMMAND).by_sudo(self.known.sudo);
        // The order is sent as a whole despite interrupts: otherwise it would be unknown whether the host goes down.
        let told = self.place().run(&order, None);
        let said = told.map(|finished| finished.errors()).unwrap_or_default();
        let back = self.come_back(&before, &said, interrupted);
        if back.as_ref().is_err_and(|error| error.fault == Fault::Interrupted) {
            self.going_down = Some(before);
        }
        back
    }

    /// Waits for a reboot that an interrupt left under way: settings that are restored on a host that goes down may be lost.
    pub(super) fn finish_reboot(&mut self) -> Result<(), RemoteError> {
        self.going_down.take().map_or(Ok(()), |before| self.come_back(&before, "", None))
    }

    fn come_back(
        &mut self,
        before: &Option<String>,
        said: &str,
        interrupted: Option<&AtomicBool>,
    ) -> Result<(), RemoteError> {
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
    /// It does not come back, or does not forward again.
    pub fn recover(&mut self, interrupted: Option<&AtomicBool>) -> Result<(), RemoteError> {
        let place = self.wait_back("it was lost", &None, interrupted)?;
        let (now, then) = (mark(&place, self.known.kernel), self.changes.boot());
        if now.as_ref().zip(then).is_none_or(|(now, then)| is_same_boot(now, &then)) {
            self.changes.reached_by(Arc::new(place));
            return Ok(());
        }
        self.changes.booted(Arc::new(place), now)?;
        match self.wait_forwarding(interrupted) {
            // It may have files of the variant that it was lost with. They are restored next.
            Err(error) if error.fault == Fault::Unreaching => Ok(()),
            other => other,
        }
    }

    /// Connects once more to a host that was lost under load. It must not have booted meanwhile, because that would lose its
    /// settings.
    pub(super) fn reconnect(&mut self) -> Result<(), RemoteError> {
        match self.try_once(None) {
            Ok(place) => {
                // A host that cannot identify its boot yet is asked again later.
                let now = mark(&place, self.known.kernel);
                let marks = now.as_ref().zip(self.changes.boot());
                if marks.is_some_and(|(now, then)| !is_same_boot(now, &then)) {
                    return Err(RemoteError::new(self.name(), Fault::Booted, ""));
                }
                if now.is_none() && self.changes.boot().is_some() {
                    return Ok(());
                }
                self.changes.reached_by(Arc::new(place));
                Ok(())
            }
            Err(error) if error.fault.is_final() => Err(error),
            Err(_) => Ok(()),
        }
    }

    /// Connects to a host that has booted by itself: changes that did not outlive the boot are gone.
    pub(super) fn reach_after_boot(&mut self) {
        if let Ok(place) = self.try_once(None) {
            let boot = mark(&place, self.known.kernel);
            // If the journal cannot be written, the next change reports it.
            let _ = self.changes.booted(Arc::new(place), boot);
        }
    }

    fn wait_down(
        &self,
        before: &Option<String>,
        said: &str,
        interrupted: Option<&AtomicBool>,
    ) -> Result<(), RemoteError> {
        let began = Instant::now();
        while self.place().lost().is_none() {
            self.check(interrupted)?;
            if began.elapsed() > DOWN_WITHIN {
                let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
                let said = if said.is_empty() { said } else { format!(" ({said})") };
                let after = DOWN_WITHIN.as_secs();
                let said = format!("it was told to reboot, and is still there after {after} s{said}");
                return Err(RemoteError::new(self.name(), Fault::StillUp, said));
            }
            // The old connection may take long to notice. A new one shows it at once, also for a host that was quicker and is
            // back.
            match self.try_once(interrupted) {
                Ok(place) if !self.has_booted(&place, before) => {}
                _ => return Ok(()),
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Whether a host has another boot than before.
    fn has_booted(&self, place: &ExecutionTarget, before: &Option<String>) -> bool {
        let now = mark(place, self.known.kernel);
        now.zip(before.as_ref()).is_some_and(|(now, then)| !is_same_boot(&now, then))
    }

    /// Waits until it is back, in another boot than `before` where that is known; turns its power off and on where it must be.
    fn wait_back(
        &self,
        since: &str,
        before: &Option<String>,
        interrupted: Option<&AtomicBool>,
    ) -> Result<ExecutionTarget, RemoteError> {
        let mut why = match self.wait_answer(before, interrupted)? {
            Ok(place) => return Ok(place),
            Err(why) => why,
        };
        match &self.known.power_cycle[..] {
            [] => why += "; its lab file names no power-cycle program",
            [program, arguments @ ..] => {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let job = Job::new(program, &arguments).within(POWER);
                match job.run(|path| Command::new(path), interrupted) {
                    Err(error) => why += &format!("; {program} could not turn its power off and on: {error}"),
                    Ok(_) => match self.wait_answer(before, interrupted)? {
                        Ok(place) => return Ok(place),
                        Err(again) => why = format!("{again}; its power was turned off and on by {program}"),
                    },
                }
            }
        }
        let console = match &self.known.console[..] {
            [] => String::new(),
            console => format!(": {}", console.join(" ")),
        };
        let after = Duration::from_nanos(self.known.boot.timeout_ns).as_secs();
        let said =
            format!("it has not come back {after} s after {since} ({why}); look at its console{console}");
        Err(RemoteError::new(self.name(), Fault::Gone, said))
    }

    /// Waits as long as a boot may take; the inner error: why it has not come back.
    fn wait_answer(
        &self,
        before: &Option<String>,
        interrupted: Option<&AtomicBool>,
    ) -> Result<Result<ExecutionTarget, String>, RemoteError> {
        let within = Duration::from_nanos(self.known.boot.timeout_ns);
        let began = Instant::now();
        let mut why = String::from("it was not tried");
        while began.elapsed() < within {
            self.check(interrupted)?;
            match self.try_once(interrupted) {
                Ok(place) if before.is_none() && !answers(&place) => {
                    why = "it takes connections, and runs nothing".into()
                }
                Ok(place) if before.is_none() || self.has_booted(&place, before) => return Ok(Ok(place)),
                Ok(_) => why = "it answers, and does not tell of another boot".into(),
                Err(error) if error.fault.is_final() => return Err(error),
                Err(error) => why = format!("{}{}", error.fault, said(&error)),
            }
            std::thread::sleep(PAUSE);
        }
        self.check(interrupted)?;
        Ok(Err(why))
    }

    /// One quick try to connect.
    fn try_once(&self, interrupted: Option<&AtomicBool>) -> Result<ExecutionTarget, RemoteError> {
        let target = Target { connect_within: TRY, ..self.known.target.clone() };
        ExecutionTarget::connect(&target, interrupted)
    }

    /// A router forwards nothing for a while after a boot: waits until the addresses that it must reach answer.
    fn wait_forwarding(&self, interrupted: Option<&AtomicBool>) -> Result<(), RemoteError> {
        let (place, kernel) = self
            .witness
            .as_ref()
            .map_or((self.place(), self.known.kernel), |(place, kernel)| (place, *kernel));
        let within = Duration::from_nanos(self.known.boot.timeout_ns);
        for to in &self.known.boot.reaches {
            let began = Instant::now();
            let command = line(&ping(*to, kernel), false);
            loop {
                self.check(interrupted)?;
                let finished = place.run(&Order::new(&command).within(TRY), interrupted)?;
                if finished.is_success() {
                    break;
                }
                if began.elapsed() > within {
                    let (from, after) = (place.name(), within.as_secs());
                    let said =
                        format!("it is back, but does not reach {to} within {after} s (asked from {from})");
                    return Err(RemoteError::new(self.name(), Fault::Unreaching, said));
                }
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    fn check(&self, interrupted: Option<&AtomicBool>) -> Result<(), RemoteError> {
        match interrupted.is_some_and(|i| i.load(Ordering::Relaxed)) {
            true => Err(RemoteError::new(self.name(), Fault::Interrupted, "")),
            false => Ok(()),
        }
    }
}

/// Whether a host still runs commands.
fn answers(place: &ExecutionTarget) -> bool {
    place.run(&Order::new("true").within(COMMAND), None).is_ok_and(|finished| finished.is_success())
}

/// Identifies a boot of a host: a number that Linux draws at each, or the time of it by this machine's clock, from how long the
/// host's first process has run: its own clock may be set at any time.
pub(super) fn mark(place: &ExecutionTarget, kernel: Kernel) -> Option<String> {
    let argv: &[&str] = match kernel {
        Kernel::Linux => &["cat", "/proc/sys/kernel/random/boot_id"],
        _ => &["ps", "-o", "etime=", "-p", "1"],
    };
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_string()).collect();
    let finished = place.run(&Order::new(&line(&argv, false)).within(COMMAND), None).ok()?;
    let text = finished.text();
    let told = Some(text.trim()).filter(|text| finished.is_success() && !text.is_empty())?;
    match kernel {
        Kernel::Linux => Some(told.into()),
        _ => {
            let now = std::time::UNIX_EPOCH.elapsed().ok()?.as_secs();
            Some(format!("{BOOTED_AT}{}", now.checked_sub(elapsed(told)?)?))
        }
    }
}

/// Seconds of ps(1)'s elapsed time: `[[days-]hours:]minutes:seconds`.
fn elapsed(text: &str) -> Option<u64> {
    let (days, clock) =
        text.split_once('-').map_or((Ok(0), text), |(days, clock)| (days.parse::<u64>(), clock));
    let parts: Vec<u64> = clock.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    if !(2..=3).contains(&parts.len()) {
        return None;
    }
    let seconds = parts.iter().try_fold(0u64, |sum, part| sum.checked_mul(60)?.checked_add(*part))?;
    days.ok()?.checked_mul(86_400)?.checked_add(seconds)
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
    words.iter().map(|word| (*word).to_string()).chain([to.to_string()]).collect()
}

fn said(error: &RemoteError) -> String {
    if error.said.is_empty() { String::new() } else { format!(": {}", error.said) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_times_of_ps() {
        assert_eq!(elapsed("00:07"), Some(7));
        assert_eq!(elapsed("01:02:03"), Some(3723));
        assert_eq!(elapsed("12-00:00:01"), Some(12 * 86_400 + 1));
        for text in ["", "7", "a:b", "1:2:3:4", "-1:00", "99999999999999999999:00"] {
            assert_eq!(elapsed(text), None, "{text}");
        }
    }

    #[test]
    fn clocks_differ_a_little_and_boots_do_not() {
        assert!(
            is_same_boot("booted at 1000", "booted at 1002")
                && !is_same_boot("booted at 1000", "booted at 1003")
        );
        assert!(is_same_boot("a", "a") && !is_same_boot("a", "b"));
    }
}
