//! Commands that run on a host: after a load, or while it lasts. The latter start before it, are left alone under it, and are
//! ended and fetched after it: a host that does not answer under load is waited for only afterwards.

use crate::{ExecutionTarget, Heard, Order, survey};
use linerate_hosts::configuration::{MOST_BYTES, OF_MACHINE, questions};
use linerate_hosts::phases::{Outcome, Output, Signal, Status};
use linerate_hosts::systems::Kernel;
use linerate_measure::collector::{Artefact, Collector};
use linerate_measure::record::{Collected, SlotFacts, VERSION};
use linerate_profile::{Profile, Sampled, Source, fold};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes of each command's output that are kept: the first half and the last.
const MOST: usize = 64 * 1024;
/// The same of a profiler's output.
const MOST_STACKS: usize = 64 << 20;
/// How long a command after a load may take.
const COMMAND_WITHIN: Duration = Duration::from_secs(30);
/// How long commands may take to begin, all together.
const BEGIN_WITHIN: Duration = Duration::from_secs(10);

/// Commands that run on a host while a load does. When this is dropped, they are ended.
pub struct UnderLoad {
    host: Observed,
    commands: Vec<String>,
    /// Bytes of their output that are kept.
    most: usize,
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Collected>>,
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
        UnderLoad { host, commands, most: MOST, end: Arc::default(), threads: Vec::new() }
    }
}

impl Collector for UnderLoad {
    fn name(&self) -> &'static str {
        "during"
    }

    /// Starts the commands and waits until they run. The outputs name commands that cannot be started.
    fn before(&mut self) -> Result<(), String> {
        let (begun, all_begun) = channel();
        for command in std::mem::take(&mut self.commands) {
            let (host, most) = (self.host.clone(), self.most);
            let (end, begun) = (Arc::clone(&self.end), begun.clone());
            self.threads.push(thread::spawn(move || {
                let output = host.run(&command, Duration::MAX, most, Some((&end, begun)));
                Collected { command, output }
            }));
        }
        drop(begun);
        let until = Instant::now() + BEGIN_WITHIN;
        for _ in &self.threads {
            // An error: the rest has ended without having begun, or the time is up.
            if all_begun.recv_timeout(until.saturating_duration_since(Instant::now())).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Ends them (SIGINT, then SIGTERM) and returns their output, in the order of the commands.
    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        Ok(self.end().map(Artefact::Output).collect())
    }
}

impl UnderLoad {
    fn end(&mut self) -> impl Iterator<Item = Collected> {
        self.end.store(true, Ordering::Relaxed);
        self.threads.drain(..).filter_map(|thread| thread.join().ok())
    }
}

impl Drop for UnderLoad {
    fn drop(&mut self) {
        self.end().for_each(drop);
    }
}

/// Samples the stacks of a host's kernel while a load lasts, by the host's own profiler.
pub struct Profiled(UnderLoad);

/// The name of the collector.
const PROFILE: &str = "profile";

/// The innermost functions of a CPU that has nothing to do.
const IDLE: [&str; 13] = [
    "sched_idletd",
    "default_idle",
    "native_safe_halt",
    "pv_native_safe_halt",
    "poll_idle",
    "mwait_idle",
    "intel_idle",
    "acpi_idle_do_entry",
    "acpi_safe_halt",
    "cpu_idle",
    "cpu_idle_acpi",
    "acpi_cpu_c1",
    "acpi_cpu_idle",
];

impl Profiled {
    /// The profiler of this kernel.
    ///
    /// # Errors
    /// None is known.
    pub fn new(host: Observed, kernel: Kernel) -> Result<Profiled, String> {
        let command = match kernel {
            // The interrupt goes to the shell alone. perf ends its file when it is told to end; then the shell prints it.
            Kernel::Linux => {
                "f=$(mktemp) || exit; perf record -q -a -g --all-kernel -F 997 -o \"$f\" >/dev/null & p=$!; \
                 trap 'kill -TERM $p' INT TERM; wait $p; wait $p; perf script -i \"$f\"; rm -f \"$f\""
            }
            // DTrace prints its aggregations when it is interrupted. arg0 is the kernel's program counter, 0 in user space.
            Kernel::FreeBsd => {
                "exec dtrace -q -x stackframes=64 -x aggsize=16m -n 'profile-997 /arg0/ { @[stack()] = count(); }'"
            }
            Kernel::OpenBsd | Kernel::NetBsd => {
                return Err("linerate knows no profiler of this system's kernel".into());
            }
        };
        let mut profiler = UnderLoad::new(host, vec![command.into()]);
        profiler.most = MOST_STACKS;
        Ok(Profiled(profiler))
    }
}

impl Collector for Profiled {
    fn name(&self) -> &'static str {
        PROFILE
    }

    fn before(&mut self) -> Result<(), String> {
        self.0.before()
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        let output = self.0.end().next().ok_or("the profiler did not begin")?.output?;
        let mut folded = Vec::new();
        let found = fold(output.as_bytes(), &mut folded)
            .map_err(|fault| format!("its profiler's output: {fault}"))?;
        let mut profile = Profile::default();
        for (stack, samples) in Profile::of_folded(&String::from_utf8_lossy(&folded)).stacks() {
            let innermost = stack.rsplit(';').next().unwrap_or_default();
            if !IDLE.iter().any(|idle| innermost.split('.').next() == Some(idle)) {
                profile.add(stack, samples);
            }
        }
        let event = found.event.unwrap_or_else(|| match found.source {
            Source::Dtrace => "DTrace's profile-997".into(),
            _ => "perf's clock or cycles".into(),
        });
        Ok(vec![Artefact::Profile(Sampled { profile, event, ..Sampled::default() })])
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
            Artefact::Output(Collected { command: command.clone(), output })
        };
        Ok(self.commands.iter().map(said).collect())
    }
}

/// Asks a host how it is configured, before the load.
pub struct Configured {
    host: Observed,
    kernel: Kernel,
    facts: SlotFacts,
}

impl Configured {
    /// The DUT of a slot, with its interfaces.
    pub fn new(host: Observed, kernel: Kernel, interfaces: [String; 2], slot: usize) -> Configured {
        let (kernel_name, answers) = (kernel.name().into(), Vec::new());
        let facts = SlotFacts { version: VERSION, slot, kernel: kernel_name, interfaces, answers };
        Configured { host, kernel, facts }
    }
}

/// Settings that the machine has once for all network namespaces, and does not show in them.
fn sysctls_of_machine() -> Collected {
    let read = |name: &&str| {
        let value = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?;
        Some(format!("{name} = {}\n", value.trim_end()))
    };
    Collected {
        command: "sysctl of the machine".into(),
        output: Ok(OF_MACHINE.iter().filter_map(read).collect()),
    }
}

impl Collector for Configured {
    fn name(&self) -> &'static str {
        "configuration"
    }

    fn before(&mut self) -> Result<(), String> {
        let place = self.host.target.with_sysfs().map_err(|error| error.to_string())?;
        let questions = questions(self.kernel, &self.facts.interfaces);
        let answers = survey::collect(&place, self.host.sudo, &questions, MOST_BYTES, None);
        self.facts.answers = answers.map_err(|error| error.to_string())?;
        if place.is_here() && self.kernel == Kernel::Linux {
            self.facts.answers.push(sysctls_of_machine());
        }
        Ok(())
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        Ok(vec![Artefact::Facts(self.facts.clone())])
    }
}

impl Observed {
    /// The output of a line for the shell.
    ///
    /// # Errors
    /// The reason why it has no output.
    pub fn output(&self, command: &str) -> Result<String, String> {
        self.run(command, COMMAND_WITHIN, MOST, None)
    }

    /// Runs a line for the shell. One that is watched is ended when the flag becomes true, and that it has begun is sent.
    fn run(
        &self,
        command: &str,
        limit: Duration,
        most: usize,
        watched: Option<(&AtomicBool, Sender<()>)>,
    ) -> Result<String, String> {
        let (end, mut begun) = watched.unzip();
        let order = Order::program(&["sh", "-c", command]).within(limit).by_sudo(self.sudo);
        let order = Order { stop: Signal::Interrupt, ..order };
        let mut kept = [Output::new(most), Output::new(MOST)];
        let mut each = |heard| match heard {
            Heard::Wrote(stream, bytes) => kept[stream as usize].push(&bytes),
            _ => drop(begun.take().map(|begun| begun.send(()))),
        };
        let outcome =
            self.target.exchange(&order, None, end, &mut each).map_err(|error| error.to_string())?;
        let text = |output: &Output| String::from_utf8_lossy(&output.bytes()).into_owned();
        match outcome {
            Outcome::Ended(Status::Exit(0)) | Outcome::Interrupted => Ok(text(&kept[0])),
            Outcome::Ended(status) => Err(how_it_ended(status, text(&kept[1]).trim())),
            _ => Err(format!("it was killed: it had not ended after {} s", order.limit.as_secs())),
        }
    }
}

/// Why a command has no output; `said`: its errors.
fn how_it_ended(status: Status, said: &str) -> String {
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    match status {
        Status::Exit(status) => format!("it ended with status {status}{said}"),
        Status::Signal(signal) => format!("it was ended by signal {signal}{said}"),
    }
}
