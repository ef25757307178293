//! Frames that the kernel drops: its reason, and the function that dropped them.

use super::symbols::{Symbols, enumeration};
use super::{Probe, attach, count, detach, map, observed};
use crate::bpf::DROPS;
use crate::error::Error;
use crate::net::Netns;
use aya::Ebpf;
use aya::maps::{Array, MapData, PerCpuHashMap};
use linerate_measure::collector::{Artefact, Counters};

/// The name of the collector.
pub const NAME: &str = "drops";

/// Counts the frames that are dropped, from its making on.
pub struct Drops {
    ebpf: Ebpf,
}

/// `struct drop` of drops.bpf.c as bytes: where, and why.
type Drop = [u8; 16];

/// `NO_REASON` of drops.bpf.c.
const NO_REASON: u32 = u32::MAX;

impl Drops {
    /// Begins to count the frames of these namespaces, or of all. Frames are still under way when a load ends: so it counts until it
    /// is asked.
    ///
    /// # Errors
    /// No privilege, or a kernel without type information or without the tracepoint.
    pub fn load(namespaces: &[&Netns]) -> Result<Box<dyn Probe>, Error> {
        let mut ebpf = DROPS.load(&[], &[("OBSERVED", &observed(namespaces))], &[])?;
        attach(&mut ebpf, "drop_with_reason", "kfree_skb")
            .or_else(|_| attach(&mut ebpf, "drop_without_reason", "kfree_skb"))?;
        Ok(Box::new(Drops { ebpf }))
    }
}

impl Probe for Drops {
    fn start(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn stop(&mut self) {}

    fn found(mut self: Box<Self>) -> Result<Artefact, Error> {
        detach(&mut self.ebpf);
        let drops: PerCpuHashMap<MapData, Drop, u64> = map(&mut self.ebpf, "drops")?;
        let lost: Array<MapData, u64> = map(&mut self.ebpf, "lost")?;
        let mut found = Counters::new();
        let all: Vec<(Drop, u64)> = drops
            .iter()
            .filter_map(Result::ok)
            .map(|(drop, frames)| (drop, frames.iter().sum()))
            .collect();
        if !all.is_empty() {
            let (symbols, reasons) = (Symbols::load()?, enumeration("skb_drop_reason")?);
            for (drop, frames) in all {
                let [low, high, reason, _] = words(drop);
                let reason = match (reason, reasons.get(&reason)) {
                    (NO_REASON, _) => "NO_REASON".into(),
                    (_, Some(name)) => name.trim_start_matches("SKB_DROP_REASON_").into(),
                    (number, None) => format!("{number:#x}"),
                };
                let function = symbols.name(u64::from(high) << 32 | u64::from(low));
                *found
                    .entry(format!("drop {reason} in {function}"))
                    .or_default() += frames;
            }
        }
        match count(&lost, 0) {
            0 => {}
            frames => drop(found.insert("drop OTHER in other functions".into(), frames)),
        }
        Ok(Artefact::Counters(found))
    }
}

fn words(drop: Drop) -> [u32; 4] {
    let words = drop.as_chunks::<4>().0;
    std::array::from_fn(|n| u32::from_ne_bytes(words[n]))
}
