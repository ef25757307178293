//! Events that CPUs count in their kernel: cycles, instructions, misses of caches and of predicted branches.

use aya_obj::generated::{
    PERF_FLAG_FD_CLOEXEC, perf_event_attr, perf_hw_id, perf_sw_ids, perf_type_id,
};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

/// An event of perf_event_open(2).
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// The name that perf(1) gives it.
    pub name: &'static str,
    kind: perf_type_id,
    number: u64,
}

impl Event {
    /// One that the CPU counts.
    pub const fn hardware(name: &'static str, event: perf_hw_id) -> Event {
        Event {
            name,
            kind: perf_type_id::PERF_TYPE_HARDWARE,
            number: event as u64,
        }
    }

    /// One that the kernel counts.
    pub const fn software(name: &'static str, event: perf_sw_ids) -> Event {
        Event {
            name,
            kind: perf_type_id::PERF_TYPE_SOFTWARE,
            number: event as u64,
        }
    }
}

/// The events that are counted beside samples.
pub const EVENTS: [Event; 5] = [
    Event::hardware("cycles", perf_hw_id::PERF_COUNT_HW_CPU_CYCLES),
    Event::hardware("instructions", perf_hw_id::PERF_COUNT_HW_INSTRUCTIONS),
    Event::hardware("cache-misses", perf_hw_id::PERF_COUNT_HW_CACHE_MISSES),
    Event::hardware("branch-misses", perf_hw_id::PERF_COUNT_HW_BRANCH_MISSES),
    Event::software(
        "context-switches",
        perf_sw_ids::PERF_COUNT_SW_CONTEXT_SWITCHES,
    ),
];

/// Counters of some CPUs. They count from the beginning; [`Counting::read`] twice gives what came between.
#[derive(Debug, Default)]
pub struct Counting {
    counters: Vec<(&'static str, OwnedFd)>,
    /// Events that cannot be counted, by reason.
    refused: BTreeMap<String, Vec<&'static str>>,
}

/// A counter's value, and the nanoseconds that it was wanted and that it ran: a CPU with too few counters lets them take turns.
pub type Values = Vec<[u64; 3]>;

impl Counting {
    /// Begins. An event that one of the CPUs does not count is not counted on the others either.
    pub fn begin(cpus: &[u32], events: &[Event]) -> Counting {
        let mut all = Counting::default();
        for event in events {
            let opened: io::Result<Vec<OwnedFd>> =
                cpus.iter().map(|cpu| open(event, *cpu)).collect();
            match opened {
                Ok(opened) => all
                    .counters
                    .extend(opened.into_iter().map(|counter| (event.name, counter))),
                Err(error) => all
                    .refused
                    .entry(reason(&error))
                    .or_default()
                    .push(event.name),
            }
        }
        all
    }

    /// The values now.
    ///
    /// # Errors
    /// A counter that was refused its place on the CPU.
    pub fn read(&self) -> io::Result<Values> {
        let value = |(_, counter): &(_, OwnedFd)| {
            let mut bytes = [0; 24];
            rustix::io::read(counter.as_fd(), &mut bytes)?;
            let (words, _) = bytes.as_chunks::<8>();
            Ok([0, 1, 2].map(|word| u64::from_ne_bytes(words[word])))
        };
        self.counters.iter().map(value).collect()
    }

    /// Events between two readings, of all CPUs together. Those of counters that ran for a part of the time are scaled up; one that
    /// never ran leaves its event out.
    pub fn between(&self, then: &Values, now: &Values) -> BTreeMap<String, u64> {
        let mut sums: BTreeMap<String, Option<f64>> = BTreeMap::new();
        for ((name, _), (then, now)) in self.counters.iter().zip(then.iter().zip(now)) {
            let [events, wanted, ran] = [0, 1, 2].map(|i| now[i].saturating_sub(then[i]) as f64);
            let scaled = Some(events * wanted / ran).filter(|_| ran > 0.0);
            let sum = sums.entry((*name).into()).or_insert(Some(0.0));
            *sum = sum.zip(scaled).map(|(sum, more)| sum + more);
        }
        sums.into_iter()
            .filter_map(|(name, sum)| Some((name, sum?.round() as u64)))
            .collect()
    }

    /// Why events are not counted; `None` if all are.
    pub fn refused(&self) -> Option<String> {
        let of_reason = self
            .refused
            .iter()
            .map(|(why, names)| format!("{}: {why}", names.join(", ")));
        (!self.refused.is_empty()).then(|| {
            format!(
                "events of the CPUs: {}",
                of_reason.collect::<Vec<_>>().join("; ")
            )
        })
    }
}

fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "this machine has no such counter, as most virtual machines".into()
        }
        _ => error.to_string(),
    }
}

/// PERF_FORMAT_TOTAL_TIME_ENABLED and PERF_FORMAT_TOTAL_TIME_RUNNING: [`Values`].
const WITH_TIMES: u64 = 1 | 2;

/// A counter of one CPU, without user space.
fn open(event: &Event, cpu: u32) -> io::Result<OwnedFd> {
    // SAFETY: integers and unions of integers, for all of which 0 is a value.
    let mut attributes: perf_event_attr = unsafe { std::mem::zeroed() };
    attributes.size = size_of::<perf_event_attr>() as u32;
    attributes.type_ = event.kind as u32;
    attributes.config = event.number;
    attributes.read_format = WITH_TIMES;
    attributes.set_exclude_user(1);
    let (all_processes, no_group) = (-1, -1);
    // SAFETY: the kernel reads `size` bytes of the attributes, which live until the call has ended.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            all_processes,
            cpu,
            no_group,
            libc::c_ulong::from(PERF_FLAG_FD_CLOEXEC),
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just made this descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
