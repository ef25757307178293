//! Waits for the kernel's locks, by the stack that wanted the lock.

use super::symbols::Symbols;
use super::{Probe, attach, count, detach, map, observed_cpus};
use crate::bpf::LOCKS;
use crate::error::Error;
use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData};
use linerate_measure::collector::Artefact;
use linerate_profile::{Profile, Waited};

/// The name of the collector.
pub const NAME: &str = "locks";

/// Addresses of a stack.
const DEEPEST: usize = 64;

/// Measures waits, once.
pub struct Locks {
    ebpf: Ebpf,
}

impl Locks {
    /// For waits of these CPUs.
    ///
    /// # Errors
    /// No privilege, or a kernel without type information.
    pub fn load(cpus: &[u32]) -> Result<Box<dyn Probe>, Error> {
        Ok(Box::new(Locks {
            ebpf: LOCKS.load(&[], &[("OBSERVED", &observed_cpus(cpus))], &[])?,
        }))
    }
}

impl Probe for Locks {
    fn start(&mut self) -> Result<(), Error> {
        // The end first: no wait stays without one.
        attach(&mut self.ebpf, "contention_end", "contention_end")?;
        attach(&mut self.ebpf, "contention_begin", "contention_begin")
    }

    fn stop(&mut self) {
        detach(&mut self.ebpf);
    }

    fn found(mut self: Box<Self>) -> Result<Artefact, Error> {
        let stacks: HashMap<MapData, [u64; DEEPEST], u32> = map(&mut self.ebpf, "stacks")?;
        let sums: Array<MapData, [u64; 2]> = map(&mut self.ebpf, "sums")?;
        let others: Array<MapData, u64> = map(&mut self.ebpf, "others")?;
        let (mut profile, mut waits) = (Profile::default(), 0);
        let stacks: Vec<([u64; DEEPEST], u32)> = stacks.iter().filter_map(Result::ok).collect();
        if !stacks.is_empty() {
            let symbols = Symbols::load()?;
            for (stack, number) in stacks {
                let [ns, times] = sums.get(&number, 0).unwrap_or_default();
                let names = symbols.stack(&stack);
                profile.add(&without_tracer(&names).join(";"), ns);
                waits += times;
            }
        }
        Ok(Artefact::Waited(Waited {
            profile,
            waits,
            lost: count(&others, 1),
            ..Waited::default()
        }))
    }
}

/// A stack without the functions of the tracepoint at its inner end, and the program that it called.
fn without_tracer<'a>(names: &'a [&'a str]) -> &'a [&'a str] {
    const TRACER: [&str; 3] = ["bpf_trace_run", "__bpf_trace_", "__traceiter_"];
    let of_tracer = |name: &str| TRACER.iter().any(|start| name.starts_with(start));
    let last = names
        .iter()
        .rposition(|name| of_tracer(name))
        .unwrap_or(names.len());
    let kept = names[..last]
        .iter()
        .rposition(|name| !of_tracer(name))
        .map_or(0, |last| last + 1);
    &names[..kept]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tracepoint_is_no_part_of_a_stack() {
        let stack = ["bpf_trace_run1", "_raw_spin_lock", "slowpath"];
        let traced = [
            &stack[..],
            &[
                "__traceiter_contention_begin",
                "bpf_trace_run2",
                "[unknown]",
            ],
        ]
        .concat();
        assert_eq!(without_tracer(&traced), stack);
        assert_eq!(without_tracer(&["a", "b"]), ["a", "b"]);
        assert!(without_tracer(&["bpf_trace_run2"]).is_empty());
    }
}
