//! Commands that run on a host: after a load, or while it lasts. The latter start before it, are left alone under it, and are
//! ended and fetched after it: a host that does not answer under load is waited for only afterwards.

use crate::{ExecutionTarget, Heard, Interrupt, Order, Stream, facts, watch};
use linerate_hosts::cpus::{self, CpuTimes};
use linerate_hosts::phases::{Outcome, Signal, Status};
use linerate_hosts::systems::Kernel;
use linerate_linux::ports::monotonic_ns;
use linerate_measure::collector::{Artefact, Collector};
use linerate_measure::record::{Collected, SlotFacts};
use linerate_measure::strategy::CONFIGURATION;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a command after a load may take.
const COMMAND_WITHIN: Duration = Duration::from_secs(30);
/// How long commands may take to begin, all together.
const BEGIN_WITHIN: Duration = Duration::from_secs(10);
/// How long a profiler may take to end once it is told to: it then looks up the names of all functions.
const PROFILE_WITHIN: Duration = Duration::from_secs(120);

/// Commands that run on a host while a load does. When this is dropped, they are ended.
pub struct UnderLoad {
    host: Observed,
    /// Or why there is none.
    commands: Result<Vec<Command>, String>,
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Ended>>,
}

/// Hears a command; whether it has begun.
type Listen = Box<dyn FnMut(&Heard) -> bool + Send>;

/// A command, and who hears it.
type Command = (String, Order, Listen);

/// A command, and its outputs: standard output and standard error.
type Ended = (String, Result<[String; 2], String>);

/// When a command has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    /// When its shell runs.
    Started,
    /// When it says something on standard error.
    Announced,
    /// When it prints something.
    Printed,
}

/// A host that is observed.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Where commands run.
    pub target: Arc<ExecutionTarget>,
    /// Whether they need sudo.
    pub sudo: bool,
}

impl UnderLoad {
    /// Lines for the shell, each in a session of its own.
    pub fn new(host: Observed, commands: Vec<String>) -> UnderLoad {
        let begun = |line: String| {
            let order = host.order(&line).within(Duration::MAX);
            let begun: Listen = Box::new(|heard| matches!(heard, Heard::Began(_)));
            (line, order, begun)
        };
        let commands = commands.into_iter().map(begun).collect();
        UnderLoad::of(host, Ok(commands))
    }

    fn of(host: Observed, commands: Result<Vec<Command>, String>) -> UnderLoad {
        UnderLoad {
            host,
            commands,
            end: Arc::default(),
            threads: Vec::new(),
        }
    }

    /// One line for a profiler, of whose output so many bytes are kept.
    pub(crate) fn one(
        host: Observed,
        command: Result<String, String>,
        most: usize,
        begins: Begins,
    ) -> UnderLoad {
        let begun = move |heard: &Heard| {
            begins
                == match heard {
                    Heard::Wrote(Stream::Error, _) => Begins::Announced,
                    Heard::Wrote(..) => Begins::Printed,
                    _ => Begins::Started,
                }
        };
        let command = command.map(|command| {
            let order = Order {
                most_output: most,
                grace: PROFILE_WITHIN,
                ..host.order(&command).within(Duration::MAX)
            };
            vec![(command, order, Box::new(begun) as Listen)]
        });
        UnderLoad::of(host, command)
    }
}

impl Collector for UnderLoad {
    fn name(&self) -> &'static str {
        "during"
    }

    /// Starts the commands and waits until they run. The outputs name commands that cannot be started.
    fn before(&mut self) -> Result<(), String> {
        let (begun, all_begun) = channel();
        for (command, order, mut listen) in std::mem::replace(&mut self.commands, Ok(Vec::new()))? {
            let (host, end) = (self.host.clone(), Arc::clone(&self.end));
            let mut begun = Some(begun.clone());
            self.threads.push(thread::spawn(move || {
                let output = host.run(&order, Some(&end), &mut |heard| {
                    if listen(&heard) {
                        let _ = begun.take().map(|begun| begun.send(()));
                    }
                });
                (command, output)
            }));
        }
        drop(begun);
        let until = Instant::now() + BEGIN_WITHIN;
        for _ in &self.threads {
            // An error: the rest has ended without having begun, or the time is up.
            if all_begun
                .recv_timeout(until.saturating_duration_since(Instant::now()))
                .is_err()
            {
                break;
            }
        }
        Ok(())
    }

    /// Ends them (SIGINT, then SIGTERM) and returns their output, in the order of the commands.
    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        let said = |(command, output): Ended| {
            Artefact::Output(Collected {
                command,
                output: output.map(|[said, _]| said),
            })
        };
        Ok(self.end().map(said).collect())
    }
}

impl UnderLoad {
    /// Ends the commands; their outputs in their order.
    pub(crate) fn end(&mut self) -> impl Iterator<Item = Ended> {
        self.end.store(true, Ordering::Relaxed);
        self.threads
            .drain(..)
            .filter_map(|thread| thread.join().ok())
    }

    /// Ends the only command; its outputs.
    pub(crate) fn end_one(&mut self) -> Result<[String; 2], String> {
        self.end().next().ok_or("it did not begin")?.1
    }
}

impl Drop for UnderLoad {
    fn drop(&mut self) {
        self.end().for_each(drop);
    }
}

/// How busy a host's CPUs are under load: a loop there prints their times, and those that arrive while the load lasts count. Frames
/// pay for it: so it looks a few times only.
pub struct Busy {
    under: UnderLoad,
    kernel: Kernel,
    /// When the load began and ended, by CLOCK_MONOTONIC of this machine.
    load: [u64; 2],
    /// When times of CPUs have arrived, and they.
    looks: Receiver<(u64, CpuTimes)>,
}

/// The pause between two looks while a load lasts.
const LOOKS: u32 = 8;
/// The least time between two looks.
const LEAST_INTERVAL: Duration = Duration::from_millis(50);

impl Busy {
    /// The CPUs of a host with this kernel under loads of this length.
    pub fn new(host: Observed, kernel: Kernel, load: Duration) -> Busy {
        let every = (load / LOOKS).max(LEAST_INTERVAL);
        let ((look, looks), mut text) = (channel(), Vec::new());
        let listen = move |heard: &Heard| {
            let mut looked = false;
            if let Heard::Wrote(Stream::Output, bytes) = heard {
                watch::take(&mut text, bytes, &mut |text| {
                    let times = CpuTimes::of(kernel, &String::from_utf8_lossy(text));
                    looked = look.send((monotonic_ns(), times)).is_ok();
                });
            }
            looked
        };
        let command = cpus::question(kernel).map(|question| {
            let order = Order::new(watch::every(question, every)).within(Duration::MAX);
            vec![(String::new(), order, Box::new(listen) as Listen)]
        });
        Busy {
            under: UnderLoad::of(host, command),
            kernel,
            load: [0; 2],
            looks,
        }
    }
}

impl Collector for Busy {
    fn name(&self) -> &'static str {
        "cpus"
    }

    fn before(&mut self) -> Result<(), String> {
        self.under.before()
    }

    fn load(&mut self, from_to_ns: [u64; 2]) {
        self.load = from_to_ns;
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        let [_, complaint] = self.under.end_one()?;
        let looked: Vec<_> = self.looks.try_iter().collect();
        if looked.iter().all(|(_, times)| times.is_empty()) {
            return Err(format!(
                "it does not print the times of its CPUs: {}",
                complaint.trim()
            ));
        }
        let [from, to] = self.load;
        let mut under = looked.iter().filter(|(at, _)| (from..=to).contains(at));
        let shares = match (under.next(), under.next_back()) {
            (Some((first, before)), Some((last, after))) if 2 * (last - first) >= to - from => {
                after.since(before, self.kernel)
            }
            _ => Vec::new(),
        };
        if shares.is_empty() {
            return Err("it had no time to print the times of its CPUs under the load".into());
        }
        Ok(vec![Artefact::Cpus(shares)])
    }
}

/// Commands of a plan that run on a host after a load.
pub struct AfterLoad {
    host: Observed,
    commands: Vec<String>,
}

impl AfterLoad {
    /// Lines for the shell.
    pub fn new(host: Observed, commands: Vec<String>) -> AfterLoad {
        AfterLoad { host, commands }
    }
}

impl Collector for AfterLoad {
    fn name(&self) -> &'static str {
        "commands"
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        let said = |command: &String| {
            let output = self.host.output(command);
            Artefact::Output(Collected {
                command: command.clone(),
                output,
            })
        };
        Ok(self.commands.iter().map(said).collect())
    }
}

/// Asks a host how it is configured, before the load.
pub struct Configured {
    host: Observed,
    kernel: Kernel,
    interfaces: Vec<String>,
    /// Destinations of the test's frames, each with a source.
    addresses: Vec<[IpAddr; 2]>,
    slot: usize,
    facts: Option<SlotFacts>,
}

impl Configured {
    /// The DUT of a slot, with its interfaces and the addresses of its frames.
    pub fn new(
        host: Observed,
        kernel: Kernel,
        interfaces: [String; 2],
        addresses: Vec<[IpAddr; 2]>,
        slot: usize,
    ) -> Configured {
        Configured {
            host,
            kernel,
            interfaces: interfaces.into(),
            addresses,
            slot,
            facts: None,
        }
    }
}

impl Collector for Configured {
    fn name(&self) -> &'static str {
        CONFIGURATION
    }

    fn before(&mut self) -> Result<(), String> {
        let Observed { target, sudo } = &self.host;
        let place = target.with_sysfs().map_err(|error| error.to_string())?;
        let interfaces = std::mem::take(&mut self.interfaces);
        let facts = facts::of_kernel(
            &place,
            *sudo,
            self.kernel,
            interfaces,
            &self.addresses,
            None,
        );
        let slot = self.slot;
        self.facts = Some(SlotFacts {
            slot,
            ..facts.map_err(|error| error.to_string())?
        });
        Ok(())
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        Ok(self.facts.take().map(Artefact::Facts).into_iter().collect())
    }
}

impl Observed {
    /// The output of a line for the shell.
    ///
    /// # Errors
    /// The reason why it has no output.
    pub fn output(&self, command: &str) -> Result<String, String> {
        self.run(&self.order(command), None, &mut |_| {})
            .map(|[said, _]| said)
    }

    /// A line for the shell.
    fn order(&self, command: &str) -> Order {
        let order = Order::program(&["sh", "-c", command]).by_sudo(self.sudo);
        Order {
            stop: Signal::Interrupt,
            ..order.within(COMMAND_WITHIN)
        }
    }

    /// Carries an order out, until `end` becomes true; its standard output and standard error.
    fn run(
        &self,
        order: &Order,
        end: Interrupt<'_>,
        each: &mut dyn FnMut(Heard),
    ) -> Result<[String; 2], String> {
        let finished = self
            .target
            .exchange(order, None, end, each)
            .map_err(|error| error.to_string())?;
        let [output, errors] = [finished.text(), finished.errors()];
        match (finished.outcome, errors.trim()) {
            (Outcome::Ended(Status::Exit(0)) | Outcome::Interrupted, _) => Ok([output, errors]),
            (Outcome::Ended(status), "") => Err(format!("it {status}")),
            (Outcome::Ended(status), said) => Err(format!("it {status}: {said}")),
            _ => Err(format!(
                "it was killed: it had not ended after {} s",
                order.limit.as_secs()
            )),
        }
    }
}
