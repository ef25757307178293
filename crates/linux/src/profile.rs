//! Samples of the kernel's stacks on this machine: a perf event interrupts each CPU many times a second, and an eBPF program
//! counts the stack that it finds. Symbols are resolved afterwards.

use crate::bpf::{PROFILE, program_error};
use crate::error::{Doing, Error};
use aya::Ebpf;
use aya::maps::{Array, HashMap, Map, MapData};
use aya::programs::Program;
use aya::programs::perf_event::{
    HardwareEvent, PerfEvent, PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent,
};
use linerate_measure::collector::{Artefact, Collector};
use linerate_measure::trial::Moment;
use linerate_profile::{Profile, Sampled};
use std::collections::BTreeMap;

/// Samples a second and CPU, unless somebody wants another number: a prime, so that no timer of the kernel keeps step with it.
pub const FREQUENCY: u64 = 997;

/// The events to sample by, the best first: cycles where the machine counts them, else a timer.
const EVENTS: [(&str, PerfEventConfig); 2] = [
    ("cycles", PerfEventConfig::Hardware(HardwareEvent::CpuCycles)),
    ("cpu-clock", PerfEventConfig::Software(SoftwareEvent::CpuClock)),
];

/// Addresses of a stack at most: `DEEPEST` in bpf/profile.bpf.c.
const DEEPEST: usize = 64;

/// The name of the collector.
pub const NAME: &str = "profile";

/// The symbol of an address without one.
const UNKNOWN: &str = "[unknown]";

/// Samples CPUs, once.
pub struct Sampler {
    ebpf: Ebpf,
    event: &'static str,
}

impl Sampler {
    /// Loads the program that counts.
    ///
    /// # Errors
    /// No privilege.
    pub fn load() -> Result<Sampler, Error> {
        let mut ebpf = PROFILE.load(&[], &[], &[])?;
        program(&mut ebpf)?.load().map_err(|e| program_error("sample", &e))?;
        Ok(Sampler { ebpf, event: EVENTS[0].0 })
    }

    /// Begins to sample these CPUs, `frequency` times a second each.
    ///
    /// # Errors
    /// A kernel without perf events.
    pub fn start(&mut self, cpus: &[u32], frequency: u64) -> Result<(), Error> {
        let program = program(&mut self.ebpf)?;
        let policy = SamplePolicy::Frequency(frequency);
        let mut refused = Error::Refused("this kernel has no perf event to sample by".into());
        for (event, config) in EVENTS {
            let attached = cpus.iter().try_for_each(|&cpu| {
                program.attach(config, PerfEventScope::AllProcessesOneCpu { cpu }, policy, false).map(drop)
            });
            match attached {
                Ok(()) => {
                    self.event = event;
                    return Ok(());
                }
                Err(error) => refused = program_error("sample", &error),
            }
        }
        Err(refused)
    }

    /// Ends the sampling: no sample comes after this.
    pub fn stop(&mut self) {
        let _ = program(&mut self.ebpf).map(|program| program.unload());
    }

    /// The stacks, with the names of their functions.
    ///
    /// # Errors
    /// /proc/kallsyms cannot be read.
    pub fn sampled(mut self) -> Result<Sampled, Error> {
        let symbols = symbols()?;
        let counts: HashMap<MapData, [u64; DEEPEST], u64> = self.map("counts")?;
        let others: Array<MapData, u64> = self.map("others")?;
        let mut profile = Profile::default();
        for (stack, samples) in counts.iter().filter_map(Result::ok) {
            let addresses = stack.iter().take_while(|address| **address != 0);
            let mut names: Vec<&str> = addresses.map(|address| name(&symbols, *address)).collect();
            names.reverse();
            profile.add(&names.join(";"), samples);
        }
        let other = |kind| others.get(&kind, 0).unwrap_or(0);
        Ok(Sampled { profile, event: self.event.into(), user: other(0), lost: other(1) })
    }

    fn map<M: TryFrom<Map>>(&mut self, name: &str) -> Result<M, Error> {
        let map = self.ebpf.take_map(name).and_then(|map| M::try_from(map).ok());
        map.ok_or_else(|| Error::Refused(format!("there is no BPF map '{name}'")))
    }
}

fn program(ebpf: &mut Ebpf) -> Result<&mut PerfEvent, Error> {
    match ebpf.program_mut("sample") {
        Some(Program::PerfEvent(program)) => Ok(program),
        _ => Err(Error::Refused("there is no program 'sample'".into())),
    }
}

/// The collector of a profile: these CPUs, under load.
pub fn collector(cpus: Vec<u32>) -> impl Collector {
    UnderLoad { cpus, sampler: None, failed: None }
}

struct UnderLoad {
    cpus: Vec<u32>,
    sampler: Option<Sampler>,
    failed: Option<Error>,
}

impl Collector for UnderLoad {
    fn name(&self) -> &'static str {
        NAME
    }

    fn before(&mut self) -> Result<(), String> {
        self.sampler = Some(Sampler::load().map_err(|error| error.to_string())?);
        Ok(())
    }

    fn during(&mut self, moment: Moment) {
        match (&mut self.sampler, moment) {
            (Some(sampler), Moment::Began) => self.failed = sampler.start(&self.cpus, FREQUENCY).err(),
            (Some(sampler), Moment::Ended) => sampler.stop(),
            (None, _) => {}
        }
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        let sampled = match (self.failed.take(), self.sampler.take()) {
            (None, Some(sampler)) => sampler.sampled(),
            (Some(error), _) => Err(error),
            (None, None) => return Ok(Vec::new()),
        };
        Ok(vec![Artefact::Profile(sampled.map_err(|error| error.to_string())?)])
    }
}

/// The kernel's functions by their addresses.
fn symbols() -> Result<BTreeMap<u64, String>, Error> {
    let symbols = aya::util::kernel_symbols().doing("read /proc/kallsyms")?;
    match symbols.keys().any(|address| *address > 0) {
        true => Ok(symbols),
        false => Err(Error::Refused(
            "the kernel hides the addresses of its functions: run linerate as root, or set kernel.kptr_restrict to 0 or 1"
                .into(),
        )),
    }
}

/// The function of an address, without its module.
fn name(symbols: &BTreeMap<u64, String>, address: u64) -> &str {
    let found = symbols.range(..=address).next_back();
    found.map_or(UNKNOWN, |(_, name)| name.split('\t').next().unwrap_or(UNKNOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_belong_to_the_function_before_them() {
        let symbols =
            BTreeMap::from([(100, "ip_rcv".to_string()), (200, "nf_hook_slow\t[nf_tables]".into())]);
        assert_eq!(
            [99, 100, 199, 200, 9999].map(|a| name(&symbols, a)),
            [UNKNOWN, "ip_rcv", "ip_rcv", "nf_hook_slow", "nf_hook_slow"]
        );
    }
}
