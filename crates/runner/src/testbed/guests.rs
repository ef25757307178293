//! Guests as a testbed: each of a plan's kernels in QEMU, with linerate and its labs in it. While one measures, the others are paused.

pub mod inside;
mod message;

use super::prepare::{Prepared, distinct, on_cpus};
use super::{Request, Testbed, TrialOutcome};
use crate::interrupt::{INTERRUPTED, interrupted};
use crate::progress::{Progress, mention};
use anyhow::{Context, Result, bail};
use linerate_linux::guest::{self, Acceleration, Kernel, Machine, Spec};
use linerate_linux::host::changes::Consent;
use linerate_linux::host::cpu;
use linerate_linux::host::turn::Turn;
use linerate_measure::record::{Guests as Kind, HostFacts, LabKind};
use linerate_plan::campaign::{Campaign, Requirement};
use message::{Answer, Lab, Order, Preparation, line};
use std::collections::BTreeSet;
use std::time::Duration;

/// Virtual CPUs of a guest at most, and MiB of its memory beside its file system.
const MOST_CPUS: usize = 16;
const MEMORY_MIB: u64 = 1024;

/// One kernel in its guest.
struct Guest {
    /// The kernel as the plan names it, and as pages do.
    named: String,
    label: String,
    machine: Machine,
    facts: HostFacts,
}

/// The guests of a plan, all of them paused.
pub struct Guests {
    guests: Vec<Guest>,
    /// By cell: its guest, and its lane.
    cells: Vec<(usize, usize)>,
    acceleration: Acceleration,
    /// The host's CPUs that the virtual ones run on.
    host_cpus: Vec<u32>,
    backend: &'static str,
    batch: u32,
}

/// The kernels of a plan, as it names them; none for this machine's own.
pub fn kernels(plan: &Campaign) -> Vec<String> {
    let of_lanes = plan.lanes.iter();
    distinct(of_lanes.filter_map(|lane| lane.settings.kernel.clone()))
}

impl Guests {
    /// Boots the kernels of a plan, and finds what can be measured there. The plan's names get the releases of its kernels.
    ///
    /// # Errors
    /// A kernel cannot be booted; with the remedy where there is one.
    pub fn boot(
        plan: &mut Campaign,
        emulated: bool,
        batch: Option<u32>,
    ) -> Result<(Prepared, Guests)> {
        let acceleration = guest::acceleration(emulated)?;
        let modules = modules(plan);
        let find = |named: String| Kernel::find(&named, &modules);
        let found = kernels(plan).into_iter().map(find);
        let kernels: Vec<Kernel> = found.collect::<Result<_, _>>()?;
        kernels.iter().try_for_each(Kernel::check_channel)?;
        let labels = labels(&kernels);
        name(plan, &kernels, &labels);
        let mut host_cpus = cpu::online_cpus().context("asking which CPUs may be used")?;
        host_cpus.truncate(MOST_CPUS);
        let tools = tools(plan);
        let mut guests = Vec::new();
        let mut no_xdp = None;
        let progress = Progress::of_steps();
        for (kernel, label) in kernels.iter().zip(labels) {
            progress.say(format!("booting the kernel {label}"));
            let (guest, lacks) = Guest::boot(kernel, label, &tools, acceleration, &host_cpus)?;
            let why = lacks.map(|why| format!("the kernel {} cannot use XDP ({why})", guest.label));
            no_xdp = no_xdp.or(why);
            guests.push(guest);
        }
        let virtual_cpus: Vec<u32> = (0..host_cpus.len() as u32).collect();
        let mut prepared = on_cpus(plan, &virtual_cpus)?;
        prepared.consent = Consent::Allowed;
        let (mut batch, mut notes) = (batch, Vec::new());
        for guest in &mut guests {
            progress.say(format!(
                "preparing the guest with the kernel {}",
                guest.label
            ));
            let preparation = Preparation {
                plan: plan.clone(),
                kernel: guest.named.clone(),
                no_xdp: no_xdp.clone(),
                batch,
            };
            let lab = guest.prepare(preparation, acceleration)?;
            batch = Some(lab.batch);
            prepared.backend = lab.backend;
            prepared.skipped.extend(lab.skipped);
            notes.extend(lab.notes);
        }
        prepared.skipped.sort_by_key(|skipped| skipped.cell);
        prepared.notes.extend(distinct(notes));
        for (kernel, guest) in kernels.iter().zip(&guests) {
            let what = format!("kernel {}", kernel.named);
            let is = format!("{}; {}", kernel.banner, kernel.state);
            prepared.standing.insert(what, is);
            prepared
                .notes
                .push(guest.note(kernel, acceleration, &host_cpus));
        }
        let of_kernel = |lane: usize| {
            let named = plan.lanes[lane].settings.kernel.as_ref();
            guests.iter().position(|guest| Some(&guest.named) == named)
        };
        let cells = plan.cells.iter().map(|cell| {
            let guest = of_kernel(cell.lane).context("a variant has no kernel")?;
            Ok((guest, cell.lane))
        });
        let guests = Guests {
            cells: cells.collect::<Result<_>>()?,
            guests,
            acceleration,
            host_cpus,
            backend: prepared.backend.name(),
            batch: batch.unwrap_or(1),
        };
        Ok((prepared, guests))
    }

    /// Who runs the guests' instructions.
    pub fn kind(&self) -> Kind {
        match self.acceleration {
            Acceleration::Kvm => Kind::Kvm,
            Acceleration::Emulated => Kind::Emulated,
        }
    }

    /// The releases of the kernels.
    pub fn labels(&self) -> String {
        let labels: Vec<&str> = self
            .guests
            .iter()
            .map(|guest| guest.label.as_str())
            .collect();
        labels.join(", ")
    }
}

impl Guest {
    /// Boots a kernel; with the reason if it cannot use XDP. The guest is paused.
    fn boot(
        kernel: &Kernel,
        label: String,
        tools: &BTreeSet<String>,
        acceleration: Acceleration,
        cpus: &[u32],
    ) -> Result<(Guest, Option<String>)> {
        let files = guest::file_system(kernel, tools)?;
        let spec = Spec {
            kernel: &label,
            image: &kernel.image,
            files: &files,
            cpus: cpus.len() as u32,
            // The archive and what the kernel makes of it are in memory at the same time.
            memory_mib: MEMORY_MIB + 2 * (files.len() as u64 >> 20),
            acceleration,
        };
        let mut machine = Machine::boot(&spec)?;
        machine.pin(cpus)?;
        let within = match acceleration {
            Acceleration::Kvm => Duration::from_secs(60),
            Acceleration::Emulated => Duration::from_secs(300),
        };
        let welcome = ask(&mut machine, &Order::Hello {}, within);
        let welcome = welcome.with_context(|| format!("booting the kernel {label}"))?;
        let Answer::Welcome(told) = welcome else {
            bail!("the guest with the kernel {label} does not say what it is");
        };
        machine.pause()?;
        let message::Machine { facts, no_xdp } = *told;
        let guest = Guest {
            named: kernel.named.clone(),
            label,
            machine,
            facts,
        };
        Ok((guest, no_xdp))
    }

    /// Has the guest make its lab.
    fn prepare(&mut self, preparation: Preparation, acceleration: Acceleration) -> Result<Lab> {
        let within = match acceleration {
            Acceleration::Kvm => Duration::from_secs(300),
            Acceleration::Emulated => Duration::from_secs(1200),
        };
        self.machine.resume()?;
        let order = Order::Prepare(Box::new(preparation));
        let answer = ask(&mut self.machine, &order, within);
        let answer = answer.with_context(|| format!("preparing the kernel {}", self.label))?;
        self.machine.pause()?;
        match answer {
            Answer::Prepared(lab) => Ok(lab),
            _ => bail!(
                "the guest with the kernel {} answers something else",
                self.label
            ),
        }
    }

    /// A guest for the record and the page.
    fn note(&self, kernel: &Kernel, acceleration: Acceleration, cpus: &[u32]) -> String {
        let by = match acceleration {
            Acceleration::Kvm => "KVM",
            Acceleration::Emulated => "emulation",
        };
        format!(
            "kernel {} ({}, {}) in a guest of QEMU {} by {by}: {} virtual CPUs ({}) on the host's CPUs {}, clock {}, {} MiB of memory",
            self.label,
            kernel.named,
            kernel.banner,
            self.machine.qemu,
            self.facts.cpus,
            self.facts.cpu_model,
            linerate_plan::settings::cpu_list(cpus),
            self.facts.clock_source,
            self.facts.memory >> 20,
        )
    }
}

/// Gives an order and waits for its answer.
fn ask(machine: &mut Machine, order: &Order, within: Duration) -> Result<Answer> {
    machine.send(&line(order))?;
    let Some(answer) = machine.line(within, &INTERRUPTED)? else {
        bail!("interrupted");
    };
    match serde_json::from_slice(&answer).context("the guest says something else")? {
        Answer::Failed { why } => bail!("{why}"),
        answer => Ok(answer),
    }
}

/// Tools that the plan's variants need.
fn tools(plan: &Campaign) -> BTreeSet<String> {
    let tool = |need: &Requirement| match need {
        Requirement::Tool(name) => Some(name.clone()),
        _ => None,
    };
    let of_lanes = plan.lanes.iter().flat_map(|lane| &lane.requirements);
    let commands = plan
        .lanes
        .iter()
        .any(|lane| !lane.settings.commands.is_empty());
    of_lanes
        .chain(&plan.requirements)
        .filter_map(tool)
        .chain(commands.then(|| "sh".into()))
        .collect()
}

/// Modules that the plan names.
fn modules(plan: &Campaign) -> BTreeSet<String> {
    let named = plan.lanes.iter().flat_map(|lane| &lane.requirements);
    named
        .chain(&plan.requirements)
        .filter_map(|need| match need {
            Requirement::Module(name) => Some(name.replace('-', "_")),
            _ => None,
        })
        .collect()
}

/// Names for pages: the releases, with numbers where two kernels have the same.
fn labels(kernels: &[Kernel]) -> Vec<String> {
    let same = |at: usize| {
        let earlier = kernels[..at].iter();
        earlier
            .filter(|other| other.version == kernels[at].version)
            .count()
    };
    (0..kernels.len())
        .map(|at| match same(at) {
            0 => kernels[at].version.clone(),
            earlier => format!("{}#{}", kernels[at].version, earlier + 1),
        })
        .collect()
}

/// Calls the kernels by their releases, in factors and in the names of cells.
fn name(plan: &mut Campaign, kernels: &[Kernel], labels: &[String]) {
    let of = |named: &str| {
        let at = kernels.iter().position(|kernel| kernel.named == named)?;
        labels.get(at).cloned()
    };
    let factors = plan.experiment.factors.iter_mut();
    for factor in factors.filter(|factor| factor.sets.iter().any(|path| path == "kernel")) {
        for level in &mut factor.levels {
            if let Some(label) = of(level) {
                *level = label;
            }
        }
    }
    for cell in &mut plan.cells {
        let named = plan.lanes[cell.lane]
            .settings
            .kernel
            .as_deref()
            .unwrap_or_default();
        if let Some(label) = of(named) {
            cell.name = cell.name.replace(named, &label);
        }
    }
}

impl Testbed for Guests {
    fn run(&mut self, request: &Request) -> Result<TrialOutcome> {
        let turn = Turn::on(&self.host_cpus, interrupted, mention);
        let (guest, _) = self.cells[request.slot];
        let guest = &mut self.guests[guest];
        // A lab may have to be built first, and emulation is slow.
        let within = Duration::from_nanos(request.timing.load_ns()) * 4
            + match self.acceleration {
                Acceleration::Kvm => Duration::from_secs(120),
                Acceleration::Emulated => Duration::from_secs(600),
            };
        guest.machine.resume()?;
        let before = guest.machine.exits();
        let answer = ask(&mut guest.machine, &Order::Run(*request), within);
        let exits = guest.machine.exits().zip(before);
        let answer = answer.with_context(|| format!("in the guest with {}", guest.label))?;
        guest.machine.pause()?;
        let Answer::Outcome(outcome) = answer else {
            bail!(
                "the guest with the kernel {} answers something else",
                guest.label
            );
        };
        let mut outcome = *outcome;
        outcome.record.waited_ns += turn.waited_ns;
        if let Some((after, before)) = exits {
            let exits = after.saturating_sub(before);
            outcome
                .record
                .dut
                .insert("exits from the guest".into(), exits);
        }
        Ok(outcome)
    }

    fn dut(&self, slot: usize) -> Option<usize> {
        Some(self.cells[slot].1)
    }

    fn names(&self) -> (LabKind, [String; 2], u32) {
        let name = self.backend.to_owned();
        (LabKind::Namespaces, [name.clone(), name], self.batch)
    }
}
