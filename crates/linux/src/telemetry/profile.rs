//! Samples of the kernel's stacks on this machine: a perf event interrupts each CPU many times a second, and an eBPF program
//! counts the stack that it finds. Symbols are resolved afterwards.

use super::counting::{Counting, EVENTS as COUNTED, Values};
use super::symbols::Symbols;
use super::{Probe, count, map};
use crate::bpf::{PROFILE, program_error, verify};
use crate::error::Error;
use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData};
use aya::programs::Program;
use aya::programs::perf_event::{
    HardwareEvent, PerfEvent, PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent,
};
use linerate_measure::collector::Artefact;
use linerate_profile::{Profile, Sampled};
use std::collections::BTreeMap;

/// Samples a second and CPU, unless somebody wants another number: a prime, so that no timer of the kernel keeps step with it.
pub const FREQUENCY: u64 = 997;

/// The events to sample by, the best first: cycles where the machine counts them, else a timer.
const EVENTS: [(&str, PerfEventConfig); 2] = [
    (
        "cycles",
        PerfEventConfig::Hardware(HardwareEvent::CpuCycles),
    ),
    (
        "cpu-clock",
        PerfEventConfig::Software(SoftwareEvent::CpuClock),
    ),
];

/// Addresses of a stack at most: `DEEPEST` in bpf/stack.h.
const DEEPEST: usize = 64;

/// The name of the collector.
pub const NAME: &str = "profile";

/// Samples CPUs, once.
pub struct Sampler {
    ebpf: Ebpf,
    cpus: Vec<u32>,
    frequency: u64,
    event: &'static str,
    counting: Counting,
    /// The counters at the beginning and at the end.
    values: [Result<Values, String>; 2],
}

impl Sampler {
    /// Loads the program that counts the stacks of these CPUs, `frequency` times a second each.
    ///
    /// # Errors
    /// No privilege.
    pub fn load(cpus: &[u32], frequency: u64) -> Result<Box<dyn Probe>, Error> {
        let mut ebpf = PROFILE.load(&[], &[], &[])?;
        let found = program(&mut ebpf)?;
        verify("sample", || found.load())?;
        Ok(Box::new(Sampler {
            ebpf,
            cpus: cpus.to_vec(),
            frequency,
            event: EVENTS[0].0,
            counting: Counting::begin(cpus, &COUNTED),
            values: [Ok(Values::new()), Ok(Values::new())],
        }))
    }
}

impl Probe for Sampler {
    fn start(&mut self) -> Result<(), Error> {
        let program = program(&mut self.ebpf)?;
        let policy = SamplePolicy::Frequency(self.frequency);
        let mut refused = Error::Refused("this kernel has no perf event to sample by".into());
        for (event, config) in EVENTS {
            let attached = self.cpus.iter().try_for_each(|&cpu| {
                program
                    .attach(
                        config,
                        PerfEventScope::AllProcessesOneCpu { cpu },
                        policy,
                        false,
                    )
                    .map(drop)
            });
            match attached {
                Ok(()) => {
                    self.event = event;
                    self.values[0] = self.read();
                    return Ok(());
                }
                Err(error) => refused = program_error("sample", &error),
            }
        }
        Err(refused)
    }

    fn stop(&mut self) {
        self.values[1] = self.read();
        let _ = program(&mut self.ebpf).map(|program| program.unload());
    }

    fn found(mut self: Box<Self>) -> Result<Artefact, Error> {
        let symbols = Symbols::load()?;
        let counts: HashMap<MapData, [u64; DEEPEST], u64> = map(&mut self.ebpf, "counts")?;
        let others: Array<MapData, u64> = map(&mut self.ebpf, "others")?;
        let mut profile = Profile::default();
        for (stack, samples) in counts.iter().filter_map(Result::ok) {
            profile.add(&symbols.stack(&stack).join(";"), samples);
        }
        let (user, lost) = (count(&others, 0), count(&others, 1));
        let (counted, not_counted) = match self.values {
            [Ok(then), Ok(now)] => (self.counting.between(&then, &now), self.counting.refused()),
            [Err(why), _] | [_, Err(why)] => {
                (BTreeMap::new(), Some(format!("events of the CPUs: {why}")))
            }
        };
        Ok(Artefact::Profile(Sampled {
            profile,
            event: self.event.into(),
            user,
            lost,
            counted,
            not_counted,
        }))
    }
}

impl Sampler {
    fn read(&self) -> Result<Values, String> {
        self.counting.read().map_err(|error| error.to_string())
    }
}

fn program(ebpf: &mut Ebpf) -> Result<&mut PerfEvent, Error> {
    match ebpf.program_mut("sample") {
        Some(Program::PerfEvent(program)) => Ok(program),
        _ => Err(Error::Refused("there is no program 'sample'".into())),
    }
}
