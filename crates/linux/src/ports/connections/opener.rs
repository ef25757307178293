//! The ports of connections: one opens them, or goes on with those that are open; the other counts those that closed.

use super::super::live::{addresses, end_calls, handle_signal, let_end, run_live};
use super::super::pacer::Pacer;
use super::super::port::{Port, ThreadCounters, Worker, go_first, go_last, sum};
use super::state::OpenerState;
use super::{ConnectionEnds, Next, WINDOW, Wanted};
use crate::error::Error;
use crate::host::cpu::GENERATOR;
use aya::programs::Program;
use linerate_measure::counters::PortCounters;
use linerate_plan::Backend;
use linerate_wire::{ConnectionSpec, Family, Load};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Opens connections.
pub struct Opener<E> {
    ends: E,
    wanted: Wanted,
    /// Where no connection is opened, but those that are open go on.
    next: Option<Next>,
    calls: Vec<Worker>,
}

impl<E: Borrow<ConnectionEnds> + Send> Opener<E> {
    pub(super) fn new(ends: E, wanted: Wanted, next: Option<Next>) -> Self {
        Opener {
            ends,
            wanted,
            next,
            calls: Vec::new(),
        }
    }

    /// Nanoseconds that the load took, without the time in which it waited for connections that failed.
    pub fn busy_ns(&self) -> u64 {
        let idle = self.states().map(|(_, state)| state.idle_ns).max();
        self.active_ns()
            .unwrap_or(0)
            .saturating_sub(idle.unwrap_or(0))
    }

    fn ends(&self) -> &ConnectionEnds {
        self.ends.borrow()
    }

    fn states(&self) -> impl Iterator<Item = (u32, OpenerState)> {
        self.wanted
            .cpus
            .iter()
            .map(|cpu| (*cpu, self.ends().openers.get(*cpu as usize)))
    }
}

/// `CREDIT` in pace.h.
pub(super) const USUAL_PRICE: u64 = 1_000_000_000_000;

/// How many connections each of so many CPUs has numbers for: whole words of bits.
pub(super) fn numbers_of_each(cpus: usize, spec: &ConnectionSpec) -> u64 {
    spec.pairs() / cpus.max(1) as u64 / 64 * 64
}

/// A frame with room for the first one of a connection; the program writes it.
fn blank(wanted: &Wanted) -> Vec<u8> {
    vec![
        0;
        if wanted.family() == Family::V6 && wanted.connections.exchange.is_tcp() {
            78
        } else {
            60
        }
    ]
}

impl<E: Borrow<ConnectionEnds> + Send> Port for Opener<E> {
    fn backend(&self) -> Backend {
        Backend::Xdp
    }

    fn start(&mut self, load: &Load) -> Result<(), Error> {
        let Wanted { cpus, target, .. } = &self.wanted;
        let threads = cpus.len();
        let macs = addresses(&self.ends().targets[*target]);
        let spec = &self.wanted.connections;
        let each = numbers_of_each(threads, spec);
        let nginx = spec.served_by.is_nginx();
        for (thread, cpu) in cpus.iter().enumerate() {
            let Pacer {
                rate_mfps,
                frames_left,
                ..
            } = Pacer::new(load, thread, threads);
            let [mut macs_low, mut macs_high] = [[0; 8], [0; 8]];
            macs_low.copy_from_slice(&macs[..8]);
            macs_high[..4].copy_from_slice(&macs[8..]);
            let opened = self.ends().openings.get(*cpu as usize);
            let state = OpenerState {
                duration_ns: load.duration_ns,
                left: opened.map_or(frames_left.min(each), |opened| opened.attempted),
                awaits: u64::from(spec.open.is_some() && self.wanted.closed_loop),
                rate_mfps,
                price: USUAL_PRICE,
                flood_price: USUAL_PRICE,
                flood_mfps: u64::from(spec.flood) * 1000 / threads.max(1) as u64,
                not_before: load.not_before_ns,
                first: each * thread as u64,
                // At a rate that was asked for, those under way do not hold others up.
                window: if (self.wanted.closed_loop || nginx) && load.rate.is_none() {
                    WINDOW
                } else {
                    0
                },
                target: *target as u32,
                macs_high: [macs_high[0], macs_high[1], macs_high[2], macs_high[3]],
                macs_low,
                ..OpenerState::default()
            };
            self.ends().openers.set(*cpu as usize, state);
        }
        handle_signal();
        let name = match (self.next, self.wanted.family()) {
            (None, Family::V4) => "open4",
            (None, Family::V6) => "open6",
            (Some(_), Family::V4) => "resume4",
            (Some(_), Family::V6) => "resume6",
        };
        let (frame, batch) = (Arc::new(blank(&self.wanted)), load.batch);
        // nginx has the same CPU, and opens the window.
        let yields = nginx && self.wanted.closed_loop;
        for cpu in cpus {
            let (namespace, ebpf) = (self.ends().generator.clone(), Arc::clone(&self.ends().ebpf));
            let frame = Arc::clone(&frame);
            let call = Worker::spawn(format!("{GENERATOR}{cpu}"), Some(*cpu), move |stop| {
                if yields {
                    go_last();
                } else {
                    go_first();
                }
                namespace.current_thread_enter()?;
                let Some(Program::Xdp(program)) = ebpf.program(name) else {
                    return Ok(());
                };
                while !stop.load(Ordering::Relaxed) {
                    run_live(program, &frame, u32::MAX >> 1, batch)?;
                }
                Ok(())
            })?;
            self.calls.push(call);
        }
        Ok(())
    }

    fn threads(&self) -> Vec<ThreadCounters> {
        let thread = |(cpu, state): (u32, OpenerState)| ThreadCounters {
            cpu,
            queue: cpu,
            stream: 0,
            frames: state.attempted,
            bytes: 0,
            refused: state.refused,
            broadcasts: 0,
            bursts: (0, 0),
            next_sequence: state.attempted,
            first_ns: state.first_ns,
            last_ns: state.last_ns,
            stall_ns: state.stall_ns,
            finished: state.finished != 0,
            reverse: false,
            ipv6: false,
        };
        self.states().map(thread).collect()
    }

    fn counters(&self) -> PortCounters {
        // Connections are told apart by their numbers, and not by streams.
        PortCounters {
            streams: Vec::new(),
            ..sum(&self.threads(), self.active_ns())
        }
    }

    fn finished(&self) -> bool {
        self.calls.iter().any(Worker::has_ended)
            || self.states().all(|(_, state)| state.finished != 0)
    }

    fn stop(&mut self) -> Result<(), Error> {
        for cpu in &self.wanted.cpus {
            self.ends().openers.set_field(
                *cpu as usize,
                std::mem::offset_of!(OpenerState, finished),
                1,
            );
        }
        if self.calls.iter().any(Worker::has_ended) {
            return end_calls(&mut self.calls); // say why
        }
        let_end(&self.calls);
        Ok(())
    }
}

impl<E> Drop for Opener<E> {
    fn drop(&mut self) {
        // An error has been reported by `stop`.
        let _ = end_calls(&mut self.calls);
    }
}

/// Counts the connections that closed.
pub struct Closed<'a> {
    pub(super) ends: &'a ConnectionEnds,
}

impl Port for Closed<'_> {
    fn backend(&self) -> Backend {
        Backend::Xdp
    }

    fn start(&mut self, _: &Load) -> Result<(), Error> {
        Ok(())
    }

    fn frames(&self) -> u64 {
        self.ends.ends.iter().map(|seen| seen.closed).sum()
    }

    fn counters(&self) -> PortCounters {
        let mut foreign = BTreeMap::new();
        for (kind, count) in self.ends.seen().iter().flat_map(ConnectionEnds::strangers) {
            *foreign.entry(kind).or_default() += count;
        }
        PortCounters {
            frames: self.frames(),
            foreign,
            latency: self.ends.establishment(),
            ..PortCounters::default()
        }
    }

    fn stop(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
