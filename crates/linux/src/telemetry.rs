//! Observations of this machine's kernel while it forwards, by eBPF programs: stacks of functions, frames that are dropped, times
//! of frames in the stack, waits for locks. Each takes time from the frames.

pub mod counting;
pub mod drops;
pub mod locks;
pub mod profile;
pub mod stages;
pub mod switches;
mod symbols;

use crate::bpf::{kernel_types, program_error, verify};
use crate::error::Error;
use crate::net::Netns;
use aya::Ebpf;
use aya::maps::{Map, MapData};
use aya::programs::Program;
use linerate_measure::collector::{Artefact, Collector};
use linerate_measure::trial::Moment;

/// Observes the kernel once.
pub trait Probe {
    /// Begins.
    ///
    /// # Errors
    /// The kernel lacks something.
    fn start(&mut self) -> Result<(), Error>;

    /// Ends: nothing that comes after this is counted.
    fn stop(&mut self);

    /// The findings.
    ///
    /// # Errors
    /// /proc/kallsyms cannot be read, so that functions have no names.
    fn found(self: Box<Self>) -> Result<Artefact, Error>;
}

/// A probe as the collector `name`: `load` prepares it before the load, under which it runs.
pub fn collector<'a>(
    name: &'static str,
    load: impl Fn() -> Result<Box<dyn Probe>, Error> + 'a,
) -> Box<dyn Collector + 'a> {
    Box::new(UnderLoad {
        name,
        load,
        probe: None,
        failed: None,
    })
}

struct UnderLoad<L> {
    name: &'static str,
    load: L,
    probe: Option<Box<dyn Probe>>,
    failed: Option<Error>,
}

impl<L: Fn() -> Result<Box<dyn Probe>, Error>> Collector for UnderLoad<L> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn before(&mut self) -> Result<(), String> {
        self.probe = Some((self.load)().map_err(|error| error.to_string())?);
        Ok(())
    }

    fn during(&mut self, moment: Moment) {
        match (&mut self.probe, moment) {
            (Some(probe), Moment::Began) => self.failed = probe.start().err(),
            (Some(probe), Moment::Ended) => probe.stop(),
            (None, _) => {}
        }
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        let found = match (self.failed.take(), self.probe.take()) {
            (None, Some(probe)) => probe.found(),
            (Some(error), _) => Err(error),
            (None, None) => return Ok(Vec::new()),
        };
        Ok(vec![found.map_err(|error| error.to_string())?])
    }
}

/// `OBSERVED` of kernel.h: the inodes of namespaces, the first 0 for all.
pub(crate) fn observed(namespaces: &[&Netns]) -> Vec<u8> {
    const MOST: usize = 8;
    let inodes = namespaces
        .iter()
        .map(|namespace| namespace.inode() as u32)
        .chain([0; MOST]);
    inodes.take(MOST).flat_map(u32::to_ne_bytes).collect()
}

/// CPUs that locks.bpf.c and switches.bpf.c tell apart.
const CPUS: usize = 1024;

/// `OBSERVED` of locks.bpf.c and of switches.bpf.c: a bit for each CPU.
fn observed_cpus(cpus: &[u32]) -> Vec<u8> {
    let mut observed = [0u64; CPUS / 64];
    let cpus = cpus.iter().map(|cpu| *cpu as usize);
    for cpu in cpus.filter(|cpu| *cpu < CPUS) {
        observed[cpu / 64] |= 1 << (cpu % 64);
    }
    observed.into_iter().flat_map(u64::to_ne_bytes).collect()
}

/// Loads the program of a tracepoint, and lets it run.
pub(crate) fn attach(ebpf: &mut Ebpf, program: &str, tracepoint: &str) -> Result<(), Error> {
    let Some(Program::BtfTracePoint(found)) = ebpf.program_mut(program) else {
        return Err(Error::Refused(format!("there is no program '{program}'")));
    };
    let (name, types) = (
        format!("{program} (tracepoint {tracepoint})"),
        kernel_types()?,
    );
    verify(&name, || found.load(tracepoint, types))?;
    let attached = found.attach().map(drop);
    attached.map_err(|error| program_error(&name, &error))
}

/// Ends all programs of tracepoints.
fn detach(ebpf: &mut Ebpf) {
    for (_, program) in ebpf.programs_mut() {
        if let Program::BtfTracePoint(program) = program {
            let _ = program.unload();
        }
    }
}

/// Takes a map.
fn map<M: TryFrom<Map>>(ebpf: &mut Ebpf, name: &str) -> Result<M, Error> {
    let map = ebpf.take_map(name).and_then(|map| M::try_from(map).ok());
    map.ok_or_else(|| Error::Refused(format!("there is no BPF map '{name}'")))
}

/// Reads an element of an array of counts.
fn count(array: &aya::maps::Array<MapData, u64>, index: u32) -> u64 {
    array.get(&index, 0).unwrap_or(0)
}
