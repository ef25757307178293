//! The programs that have a CPU, and for how long: the kernel is asked at each switch of tasks, so that programs that begin and end
//! meanwhile are counted, and those that wander.

use super::{attach, map, observed_cpus};
use crate::bpf::SWITCHES;
use crate::error::{Doing, Error};
use crate::ports::monotonic_ns;
use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData};
use linerate_measure::record::CpuHolder;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// CPU and process: `struct program` of switches.bpf.c.
type Program = [u32; 2];
/// `struct time` and `struct running` of switches.bpf.c as bytes: nanoseconds, two numbers, and a name.
type Bytes = [u8; 32];

/// For so many nanoseconds: the programs that had each CPU.
pub type Held = (u64, BTreeMap<u32, Vec<CpuHolder>>);

/// Counts the time of programs on some CPUs for as long as it lives.
pub struct Switches {
    cpus: Vec<u32>,
    maps: RefCell<Maps>,
    /// The program runs as long as this is kept.
    _ebpf: Ebpf,
}

/// The time of a program on a CPU.
struct Time {
    cpu: u32,
    pid: u32,
    ns: u64,
    /// `enum kind` of switches.bpf.c.
    kind: u32,
    name: String,
}

/// Values of `enum kind`.
const OF_KERNEL: u32 = 1;
const OWN: u32 = 2;

struct Maps {
    times: HashMap<MapData, Program, Bytes>,
    running: Array<MapData, Bytes>,
    began: Array<MapData, u64>,
}

impl Switches {
    /// For programs on these CPUs.
    ///
    /// # Errors
    /// No privilege, or a kernel without type information.
    pub fn load(cpus: &[u32]) -> Result<Switches, Error> {
        let own = fs::metadata("/proc/self/ns/pid").doing("find the own namespace of processes")?;
        let own = [
            ("OWN_PID", std::process::id()),
            ("OWN_NAMESPACE", own.ino() as u32),
        ];
        let mut ebpf = SWITCHES.load(&own, &[("OBSERVED", &observed_cpus(cpus))], &[])?;
        attach(&mut ebpf, "switched", "sched_switch")?;
        let maps = Maps {
            times: map(&mut ebpf, "times")?,
            running: map(&mut ebpf, "running")?,
            began: map(&mut ebpf, "began")?,
        };
        Ok(Switches {
            cpus: cpus.to_vec(),
            maps: RefCell::new(maps),
            _ebpf: ebpf,
        })
    }

    /// Counts from now on.
    ///
    /// # Errors
    /// The kernel refuses an access to the counts.
    pub fn begin(&self) -> Result<(), Error> {
        let Maps { times, began, .. } = &mut *self.maps.borrow_mut();
        began.set(0, monotonic_ns(), 0).map_err(refused)?;
        let known: Vec<Program> = times.keys().filter_map(Result::ok).collect();
        // One that is gone already is no error.
        known.iter().for_each(|program| drop(times.remove(program)));
        Ok(())
    }

    /// The nanoseconds since the beginning, and the programs that had each CPU meanwhile, by name, the longest time first: without this
    /// process, threads of the kernel that are `own`, and the idle CPU.
    pub fn held(&self, own: &[i32]) -> Held {
        let maps = self.maps.borrow();
        let times = self.times(&maps);
        let began = maps.began.get(&0, 0).unwrap_or_default();
        let counted_ns = monotonic_ns().saturating_sub(began);
        let is_other = |pid: u32, kind| pid != 0 && kind != OWN && !own.contains(&(pid as i32));
        let mut sums: BTreeMap<(u32, String), (u64, bool)> = BTreeMap::new();
        for Time {
            cpu,
            pid,
            ns,
            kind,
            name,
        } in times
        {
            if is_other(pid, kind) && ns > 0 {
                let sum = sums.entry((cpu, name)).or_default();
                *sum = (sum.0 + ns, kind == OF_KERNEL);
            }
        }
        let mut held: BTreeMap<u32, Vec<CpuHolder>> = BTreeMap::new();
        for ((cpu, name), (ns, of_kernel)) in sums {
            let holder = CpuHolder {
                name,
                of_kernel,
                ns,
            };
            held.entry(cpu).or_default().push(holder);
        }
        for holders in held.values_mut() {
            holders.sort_by_key(|holder| std::cmp::Reverse(holder.ns));
        }
        (counted_ns, held)
    }

    /// All times. The program that has a CPU now is there once more, with its time until now.
    fn times(&self, maps: &Maps) -> Vec<Time> {
        let Maps {
            times,
            running,
            began,
        } = maps;
        let running_now = || -> Vec<(u32, Bytes)> {
            let cpus = self.cpus.iter();
            cpus.filter_map(|cpu| Some((*cpu, running.get(cpu, 0).ok()?)))
                .collect()
        };
        let mut all = Vec::new();
        // A switch between two looks would count a time twice.
        for _ in 0..ATTEMPTS {
            let (before, now) = (running_now(), monotonic_ns());
            let counted = times.iter().filter_map(Result::ok);
            let time = |([cpu, pid], bytes): (Program, Bytes)| Time {
                cpu,
                pid,
                ns: word(&bytes, 0),
                kind: half(&bytes, 8),
                name: name(&bytes),
            };
            all = counted.map(time).collect();
            if before != running_now() {
                continue;
            }
            let began = began.get(&0, 0).unwrap_or(now);
            all.extend(before.into_iter().map(|(cpu, bytes)| Time {
                cpu,
                pid: half(&bytes, 8),
                ns: now.saturating_sub(word(&bytes, 0).max(began)),
                kind: half(&bytes, 12),
                name: name(&bytes),
            }));
            break;
        }
        all
    }
}

/// Looks that a switch came into, at most.
const ATTEMPTS: usize = 10;

fn refused(error: aya::maps::MapError) -> Error {
    Error::Refused(format!("cannot count the time of programs: {error}"))
}

fn word(bytes: &Bytes, at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

fn half(bytes: &Bytes, at: usize) -> u32 {
    let mut half = [0; 4];
    half.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(half)
}

/// The name, which ends with a 0. Threads of the kernel such as kworker/0:1-events are of one name.
fn name(bytes: &Bytes) -> String {
    let name = bytes[16..].split(|byte| *byte == 0).next();
    let name = String::from_utf8_lossy(name.unwrap_or_default());
    let short = name.split('/').next().filter(|short| !short.is_empty());
    short.unwrap_or(&name).to_string()
}
