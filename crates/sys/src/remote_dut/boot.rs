//! Reboots: down, up again, by way of the power where it must be, until it forwards.

use super::{DutError, RemoteDut};
use crate::process::Job;
use crate::remote::words::line;
use crate::remote::{Connection, Fault, Order, Place, RemoteError, Target};
use linerate_core::hosts::Kernel;
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
    /// Reboots it, and waits until it forwards again. What does not outlive a boot is taken for gone.
    pub(super) fn reboot(&mut self, interrupted: Option<&AtomicBool>) -> Result<(), DutError> {
        let before = self.boot_mark();
        let argv: &[&str] = match self.known.kernel {
            Kernel::Linux => &["reboot"],
            _ => &["shutdown", "-r", "now"],
        };
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_string()).collect();
        let command = line(&argv, self.known.sudo);
        let told = self.place.run(&Order::new(&command).within(COMMAND), interrupted);
        let said = told.map(|finished| finished.errors()).unwrap_or_default();
        self.wait_down(&before, &said, interrupted)?;
        let back = match self.wait_back(&before, interrupted) {
            Err(gone @ DutError::Gone { .. }) => self.power_cycle(gone, &before, interrupted)?,
            other => other?,
        };
        self.place = Arc::new(back);
        self.changes.booted(Arc::clone(&self.place), self.boot_mark())?;
        self.boot_pending = false;
        self.wait_forwarding(interrupted)
    }

    /// Connects once more to a host that was lost under load. It must not have booted meanwhile: nothing of what was set would be there.
    pub(super) fn reconnect(&mut self) -> Result<(), DutError> {
        let target = Target { connect_within: TRY, ..self.known.target.clone() };
        match Connection::open(&target, None).map(Place::from) {
            Ok(place) => {
                let now = mark(&place, self.known.kernel);
                if now != self.changes.boot() {
                    return Err(DutError::Booted { host: self.name().into() });
                }
                self.place = Arc::new(place);
                self.changes.reached_by(Arc::clone(&self.place));
                Ok(())
            }
            Err(error) if is_final(&error) => Err(error.into()),
            Err(_) => Ok(()),
        }
    }

    /// What differs from boot to boot; nothing where the host does not tell.
    fn boot_mark(&self) -> Option<String> {
        mark(&self.place, self.known.kernel)
    }

    fn wait_down(
        &self,
        before: &Option<String>,
        said: &str,
        interrupted: Option<&AtomicBool>,
    ) -> Result<(), DutError> {
        let began = Instant::now();
        while self.place.lost().is_none() {
            self.check(interrupted)?;
            if began.elapsed() > DOWN_WITHIN {
                let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
                let said = if said.is_empty() { said } else { format!(" ({said})") };
                return Err(DutError::StillUp { host: self.name().into(), after: DOWN_WITHIN, said });
            }
            // A host that was quicker than the connection's end: it has booted already.
            let now = self.boot_mark();
            if now.is_some() && now != *before {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn wait_back(
        &self,
        before: &Option<String>,
        interrupted: Option<&AtomicBool>,
    ) -> Result<Place, DutError> {
        let within = Duration::from_nanos(self.known.boot.timeout_ns);
        let mut target = self.known.target.clone();
        target.connect_within = TRY;
        let began = Instant::now();
        let mut why = String::from("it was not tried");
        while began.elapsed() < within {
            self.check(interrupted)?;
            match Connection::open(&target, interrupted).map(Place::from) {
                Ok(place) => match mark(&place, self.known.kernel) {
                    mark if mark.is_some() && mark == *before => why = "it has not gone down yet".into(),
                    _ => return Ok(place),
                },
                Err(error) if is_final(&error) => return Err(error.into()),
                Err(error) => why = format!("{}{}", error.fault, said(&error)),
            }
            std::thread::sleep(PAUSE);
        }
        self.check(interrupted)?;
        let (host, console) = (self.name().to_string(), self.known.console.clone());
        Err(DutError::Gone { host, after: within, why, power: String::new(), console })
    }

    /// Turns its power off and on, and waits once more.
    fn power_cycle(
        &self,
        gone: DutError,
        before: &Option<String>,
        interrupted: Option<&AtomicBool>,
    ) -> Result<Place, DutError> {
        let [program, arguments @ ..] = &self.known.power_cycle[..] else {
            return Err(with_power(gone, "; its lab file names no power-cycle program".into()));
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let job = Job::new(program, &arguments).within(POWER);
        if let Err(error) = job.run(|path| Command::new(path), interrupted) {
            return Err(with_power(
                gone,
                format!("; {program} could not turn its power off and on: {error}"),
            ));
        }
        self.wait_back(before, interrupted).map_err(|error| {
            with_power(error, format!(", nor after its power was turned off and on by {program}"))
        })
    }

    /// A router forwards nothing for a while after a boot: what it is to reach must answer.
    fn wait_forwarding(&self, interrupted: Option<&AtomicBool>) -> Result<(), DutError> {
        let (place, kernel) = self
            .witness
            .as_ref()
            .map_or((&self.place, self.known.kernel), |(place, kernel)| (place, *kernel));
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
                    let (host, what, from) = (self.name().into(), to.to_string(), place.name().into());
                    return Err(DutError::Unreaching { host, what, from, after: within });
                }
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    fn check(&self, interrupted: Option<&AtomicBool>) -> Result<(), DutError> {
        match interrupted.is_some_and(|i| i.load(Ordering::Relaxed)) {
            true => Err(DutError::Interrupted { host: self.name().into() }),
            false => Ok(()),
        }
    }
}

/// What a host tells of its boot: a number that Linux draws at each, or the time of it.
pub(super) fn mark(place: &Place, kernel: Kernel) -> Option<String> {
    let argv: &[&str] = match kernel {
        Kernel::Linux => &["cat", "/proc/sys/kernel/random/boot_id"],
        _ => &["sysctl", "-n", "kern.boottime"],
    };
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_string()).collect();
    let finished = place.run(&Order::new(&line(&argv, false)).within(COMMAND), None).ok()?;
    Some(finished.text()).filter(|text| finished.is_success() && !text.trim().is_empty())
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

/// Waiting longer changes nothing about these.
fn is_final(error: &RemoteError) -> bool {
    matches!(
        error.fault,
        Fault::ChangedKey
            | Fault::UnknownKey
            | Fault::RevokedKey
            | Fault::NoClient
            | Fault::Address
            | Fault::Configuration
    )
}

fn said(error: &RemoteError) -> String {
    if error.said.is_empty() { String::new() } else { format!(": {}", error.said) }
}

fn with_power(error: DutError, said: String) -> DutError {
    match error {
        DutError::Gone { host, after, why, console, .. } => {
            DutError::Gone { host, after, why, power: said, console }
        }
        other => other,
    }
}
