//! Times of frames in the stack: one frame in 61 is followed over the kernel's tracepoints.

use super::{Probe, attach, detach, observed};
use crate::bpf::{MappedArray, STAGES};
use crate::error::Error;
use crate::net::Netns;
use aya::Ebpf;
use linerate_measure::collector::Artefact;
use linerate_measure::record::{StackTimes, Step};
use linerate_stats::histogram::{BUCKETS, Histogram};

/// The name of the collector.
pub const NAME: &str = "stages";

/// `enum point` of stages.bpf.c: the tracepoints that a frame passes, the first of them one of [`ENTRIES`].
const POINTS: [&str; 6] = [
    "entry",
    "netif_receive_skb",
    "fib_table_lookup",
    "net_dev_queue",
    "net_dev_start_xmit",
    "net_dev_xmit",
];

/// Where frames enter the stack: a driver uses one of them.
const ENTRIES: [&str; 5] = [
    "napi_gro_receive_entry",
    "napi_gro_frags_entry",
    "netif_receive_skb_entry",
    "netif_receive_skb_list_entry",
    "netif_rx_entry",
];

/// Tracepoints that frames must pass.
const NEEDED: [&str; 4] = [
    "netif_receive_skb",
    "net_dev_queue",
    "net_dev_start_xmit",
    "net_dev_xmit",
];

/// Tracepoints that some kernels lack: without them, a step is longer.
const LOOKUPS: [&str; 2] = ["fib_table_lookup", "fib6_table_lookup"];

/// Times frames, once.
pub struct Stages {
    ebpf: Ebpf,
    times: MappedArray<u64>,
}

impl Stages {
    /// For the frames of these namespaces, or of all.
    ///
    /// # Errors
    /// No privilege, or a kernel without type information.
    pub fn load(namespaces: &[&Netns]) -> Result<Box<dyn Probe>, Error> {
        let mut ebpf = STAGES.load(&[], &[("OBSERVED", &observed(namespaces))], &[])?;
        let times = MappedArray::take(&mut ebpf, "times", (WHOLE + 1) * BUCKETS)?;
        Ok(Box::new(Stages { ebpf, times }))
    }

    fn histogram(&self, number: usize) -> Histogram {
        let counts: Vec<u64> = (0..BUCKETS)
            .map(|bucket| self.times.get(number * BUCKETS + bucket))
            .collect();
        Histogram::from_dense(&counts)
    }
}

/// The histogram of the whole way, behind those of the steps.
const WHOLE: usize = POINTS.len() * POINTS.len();

impl Probe for Stages {
    fn start(&mut self) -> Result<(), Error> {
        // Entries last: no frame is followed from the middle.
        NEEDED
            .iter()
            .try_for_each(|name| attach(&mut self.ebpf, name, name))?;
        for name in LOOKUPS {
            let _ = attach(&mut self.ebpf, name, name);
        }
        let entries = ENTRIES
            .iter()
            .map(|name| attach(&mut self.ebpf, name, name));
        let mut entries: Vec<Result<(), Error>> = entries.collect();
        if entries.iter().any(Result::is_ok) {
            Ok(())
        } else {
            entries.swap_remove(0)
        }
    }

    fn stop(&mut self) {
        detach(&mut self.ebpf);
    }

    fn found(self: Box<Self>) -> Result<Artefact, Error> {
        // The step from the entry to itself has the time to read the clock.
        let clock = self.histogram(0);
        let step = |number: usize| Step {
            from: POINTS[number / POINTS.len()].into(),
            to: POINTS[number % POINTS.len()].into(),
            times: self.histogram(number),
        };
        Ok(Artefact::Stages(StackTimes {
            followed: clock.count(),
            clock_ns: clock.quantile(0.5).unwrap_or(0),
            whole: self.histogram(WHOLE),
            steps: (1..WHOLE)
                .map(step)
                .filter(|step| step.times.count() > 0)
                .collect(),
        }))
    }
}
