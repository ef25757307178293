//! Rates between two samples. A counter that wrapped goes on; one that was reset, or belongs to a new interface, has no rate until the
//! next sample.

use super::limit::{Limit, limits};
use super::sample::{Interface, Interrupt, Queue, Sample, Side, Softnet, Table};
use crate::collector::Counters;
use crate::record::RuleCount;
use linerate_wire::units::LAYER_1_OVERHEAD;
use serde::Serialize;
use std::collections::BTreeMap;

/// Bytes of a frame that byte counters leave out.
const FCS: f64 = 4.0;
/// Counters that moved which are kept of each list: a driver has some thousand.
const MOST_MOVING: usize = 64;

/// Activity of a host between two samples. All rates are per second.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rates {
    /// The host; empty for this machine.
    pub host: String,
    /// When the later sample was taken, in milliseconds since 1970.
    pub unix_ms: u64,
    /// Seconds between the samples.
    pub seconds: f64,
    /// All interfaces together, without those that count the frames of others again.
    pub total: Totals,
    /// In the order of their names.
    pub interfaces: Vec<InterfaceRates>,
    /// By number.
    pub cpus: Vec<CpuRates>,
    /// Interrupts that came, the most frequent first.
    pub interrupts: Vec<InterruptRates>,
    /// By CPU.
    pub softnet: Vec<SoftnetRates>,
    /// Connections or states that the firewall tracks now.
    pub states: Option<Table>,
    /// Rules that met frames, the busiest first, between the last two readings of the rules.
    pub rules: Vec<Moving>,
    /// Other counters of the host that moved.
    pub moving: Vec<Moving>,
    /// Where the limit is, the most likely first; empty if nothing is near its limit.
    pub limits: Vec<Limit>,
    /// Why parts are missing.
    pub missing: Vec<String>,
}

/// Both directions of many interfaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Totals {
    pub rx: SideRates,
    pub tx: SideRates,
    pub collisions: f64,
}

/// One direction of an interface or a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct SideRates {
    /// Frames.
    pub pps: f64,
    /// Bytes as the counter has them, without FCS.
    pub bytes: f64,
    /// Bit/s of the frames with their FCS; 0 for a queue whose bytes the driver does not count.
    pub bits_layer_2: f64,
    /// Bit/s with preamble and gap, as on the wire.
    pub bits_layer_1: f64,
    /// Frames dropped, `overruns` included.
    pub drops: f64,
    /// Frames with errors.
    pub errors: f64,
    /// Frames that found no room in the card's ring.
    pub overruns: f64,
}

/// An interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct InterfaceRates {
    pub name: String,
    /// Whether it can carry frames; unknown on some hosts.
    pub carrier: Option<bool>,
    /// Bit/s of the wire.
    pub speed: Option<f64>,
    /// Whether it counts the frames of other interfaces again.
    pub stacked: bool,
    /// Whether its other end is here as well, and counts what it does not receive: `rx.drops` are the other end's `tx.drops`.
    pub peer_here: bool,
    /// Whether it is new, or its counters were reset: its rates are then unknown, and shown as 0.
    pub is_new: bool,
    pub rx: SideRates,
    pub tx: SideRates,
    /// Collisions of half duplex.
    pub collisions: f64,
    /// By number.
    pub queues: Vec<QueueRates>,
    /// The driver's other counters that moved.
    pub moving: Vec<Moving>,
}

/// A queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct QueueRates {
    pub rx: Option<SideRates>,
    pub tx: Option<SideRates>,
}

/// Shares of a CPU's time, 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CpuRates {
    pub cpu: u32,
    /// With nice.
    pub user: f64,
    pub system: f64,
    pub softirq: f64,
    /// Interrupts; on FreeBSD with the work of their threads.
    pub irq: f64,
    /// With the wait for disks.
    pub idle: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
}

/// An interrupt that came.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct InterruptRates {
    pub name: String,
    /// On all CPUs.
    pub per_second: f64,
    /// On those CPUs where it came; empty where the host does not say which.
    pub by_cpu: Vec<(u32, f64)>,
}

/// Work of the network stack on a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct SoftnetRates {
    pub cpu: u32,
    pub processed: f64,
    /// Packets that found the backlog full.
    pub dropped: f64,
    /// How often the budget was used up while there was more to do.
    pub squeezed: f64,
}

/// A counter that moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moving {
    pub name: String,
    pub per_second: f64,
}

/// By how much a counter has grown. One that wrapped at 32 bits or more has grown across the wrap; `None`: it was reset.
pub fn growth(then: u64, now: u64) -> Option<u64> {
    if now >= then {
        return Some(now - then);
    }
    // A counter of that width was in its last quarter, and is in its first.
    let wraps = |bits: u32| {
        let modulus = 1u128 << bits;
        let (then, now) = (u128::from(then), u128::from(now));
        (then < modulus && then >= modulus / 4 * 3 && now < modulus / 4)
            .then(|| (now + modulus - then) as u64)
    };
    [32, 40, 48, 56, 64].into_iter().find_map(wraps)
}

/// Remembers what the next rates need of earlier samples.
#[derive(Debug, Default)]
pub struct Differ {
    last: Option<Sample>,
    /// When rules were last read, and their counts.
    rules: Option<(u64, Vec<RuleCount>)>,
    moving_rules: Vec<Moving>,
}

impl Differ {
    /// Takes a sample, and gives the rates since the one before; `None` for the first, and for one that is not later.
    pub fn take(&mut self, sample: Sample) -> Option<Rates> {
        if let Some(rules) = &sample.rules {
            self.take_rules(sample.at_ns, rules);
        }
        let last = self.last.take();
        let rates = last.filter(|last| last.at_ns < sample.at_ns && last.host == sample.host);
        let rates = rates.map(|last| between(&last, &sample, self.moving_rules.clone()));
        self.last = Some(sample);
        rates
    }

    fn take_rules(&mut self, at_ns: u64, rules: &[RuleCount]) {
        if let Some((then_ns, then)) = self.rules.take().filter(|(then_ns, _)| *then_ns < at_ns) {
            let per = 1e9 / (at_ns - then_ns) as f64;
            let mut then: BTreeMap<&str, Vec<u64>> =
                then.iter().rev().fold(BTreeMap::new(), |mut map, rule| {
                    map.entry(rule.rule.as_str())
                        .or_insert_with(Vec::new)
                        .push(rule.frames);
                    map
                });
            // Rules may be alike: the nth of a text is compared with the nth.
            let grown = rules.iter().filter_map(|rule| {
                let grown = growth(then.get_mut(rule.rule.as_str())?.pop()?, rule.frames)?;
                (grown > 0).then(|| Moving {
                    name: rule.rule.clone(),
                    per_second: grown as f64 * per,
                })
            });
            self.moving_rules = busiest(grown);
        }
        self.rules = Some((at_ns, rules.to_vec()));
    }
}

fn between(then: &Sample, now: &Sample, rules: Vec<Moving>) -> Rates {
    let seconds = (now.at_ns - then.at_ns) as f64 / 1e9;
    let interface = |(name, now): (&String, &Interface)| {
        interface(name, then.interfaces.get(name), now, seconds)
    };
    let interfaces: Vec<InterfaceRates> = now.interfaces.iter().map(interface).collect();
    let mut total = Totals::default();
    for interface in interfaces.iter().filter(|interface| !interface.stacked) {
        let drops = if interface.peer_here {
            0.0
        } else {
            interface.rx.drops
        };
        total.rx.add(&SideRates {
            drops,
            ..interface.rx
        });
        total.tx.add(&interface.tx);
        total.collisions += interface.collisions;
    }
    let cpus = now
        .cpus
        .iter()
        .filter_map(|(cpu, now)| shares(*cpu, then.cpus.get(cpu)?, now))
        .collect();
    let softnet = now
        .softnet
        .iter()
        .filter_map(|(cpu, now)| softnet(*cpu, then.softnet.get(cpu)?, now, seconds));
    let mut rates = Rates {
        host: now.host.clone(),
        unix_ms: now.unix_ms,
        seconds,
        total,
        interfaces,
        cpus,
        interrupts: interrupts(then, now, seconds),
        softnet: softnet.collect(),
        states: now.states,
        rules,
        moving: moving(&then.counters, &now.counters, seconds),
        limits: Vec::new(),
        missing: now.missing.clone(),
    };
    rates.limits = limits(&rates);
    rates
}

fn interface(
    name: &str,
    then: Option<&Interface>,
    now: &Interface,
    seconds: f64,
) -> InterfaceRates {
    let mut rates = InterfaceRates {
        name: name.to_owned(),
        carrier: now.carrier,
        speed: now.speed,
        stacked: now.stacked,
        peer_here: now.peer_here,
        is_new: true,
        ..InterfaceRates::default()
    };
    let Some(then) = then.filter(|then| then.index == now.index) else {
        return rates;
    };
    // A reset resets all counters: a part of them would give rates that contradict each other.
    let (Some(rx), Some(tx)) = (
        side(&then.rx, &now.rx, seconds),
        side(&then.tx, &now.tx, seconds),
    ) else {
        return rates;
    };
    (rates.rx, rates.tx, rates.is_new) = (rx, tx, false);
    rates.collisions = growth(then.collisions, now.collisions).unwrap_or(0) as f64 / seconds;
    // On a busy host, the driver answers a while after the rest.
    let of_driver = match (then.driver_at_ns, now.driver_at_ns) {
        (then, now) if 0 < then && then < now => (now - then) as f64 / 1e9,
        _ => seconds,
    };
    let absent = Queue::default();
    rates.queues = now
        .queues
        .iter()
        .enumerate()
        .map(|(nth, now)| {
            let then = then.queues.get(nth).unwrap_or(&absent);
            let of = |then: Option<Side>, now: Option<Side>| {
                let rates = side(&then?, &now?, of_driver).unwrap_or_default();
                // Many drivers count the bytes of an interface alone.
                let uncounted = SideRates {
                    bits_layer_1: 0.0,
                    bits_layer_2: 0.0,
                    ..rates
                };
                Some(if rates.bytes > 0.0 { rates } else { uncounted })
            };
            QueueRates {
                rx: of(then.rx, now.rx),
                tx: of(then.tx, now.tx),
            }
        })
        .collect();
    rates.moving = moving(&then.driver, &now.driver, of_driver);
    rates
}

fn side(then: &Side, now: &Side, seconds: f64) -> Option<SideRates> {
    let rate = |then, now| growth(then, now).map(|grown| grown as f64 / seconds);
    let (pps, bytes) = (
        rate(then.packets, now.packets)?,
        rate(then.bytes, now.bytes)?,
    );
    // Errors may be counters of the card's, which are cleared on their own.
    let or_none = |then, now| rate(then, now).unwrap_or(0.0);
    Some(SideRates {
        pps,
        bytes,
        bits_layer_2: 8.0 * (bytes + FCS * pps),
        bits_layer_1: 8.0 * (bytes + (FCS + LAYER_1_OVERHEAD) * pps),
        drops: or_none(then.drops, now.drops),
        errors: or_none(then.errors, now.errors),
        overruns: or_none(then.overruns, now.overruns),
    })
}

impl SideRates {
    fn add(&mut self, other: &SideRates) {
        let sums = [
            (&mut self.pps, other.pps),
            (&mut self.bytes, other.bytes),
            (&mut self.bits_layer_2, other.bits_layer_2),
            (&mut self.bits_layer_1, other.bits_layer_1),
            (&mut self.drops, other.drops),
            (&mut self.errors, other.errors),
            (&mut self.overruns, other.overruns),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum += more);
    }
}

impl CpuRates {
    /// Share of time that was not idle, 0 to 1.
    pub fn busy(&self) -> f64 {
        (1.0 - self.idle).clamp(0.0, 1.0)
    }
}

fn shares(cpu: u32, then: &[u64; 8], now: &[u64; 8]) -> Option<CpuRates> {
    let gone: [f64; 8] = std::array::from_fn(|part| now[part].saturating_sub(then[part]) as f64);
    let all: f64 = gone.iter().sum();
    let [user, nice, system, idle, _, irq, softirq, steal] = gone.map(|part| part / all);
    (all > 0.0).then_some(CpuRates {
        cpu,
        user: user + nice,
        system,
        softirq,
        irq,
        idle,
        steal,
    })
}

fn softnet(cpu: u32, then: &Softnet, now: &Softnet, seconds: f64) -> Option<SoftnetRates> {
    let rate = |then, now| Some(growth(then, now)? as f64 / seconds);
    Some(SoftnetRates {
        cpu,
        processed: rate(then.processed, now.processed)?,
        dropped: rate(then.dropped, now.dropped)?,
        squeezed: rate(then.squeezed, now.squeezed)?,
    })
}

fn interrupts(then: &Sample, now: &Sample, seconds: f64) -> Vec<InterruptRates> {
    let cpus = &now.interrupt_cpus;
    if then.interrupt_cpus != *cpus {
        return Vec::new(); // a CPU came or went
    }
    let came = |(nth, interrupt): (usize, &Interrupt)| {
        // Usually both lists are the same; where an interrupt came or went, it is looked for.
        let is_it = |then: &&Interrupt| then.name == interrupt.name;
        let earlier = then
            .interrupts
            .get(nth)
            .filter(is_it)
            .or_else(|| then.interrupts.iter().find(is_it))?;
        let rate = |(then, now): (&u64, &u64)| growth(*then, *now).unwrap_or(0) as f64 / seconds;
        let rates: Vec<f64> = earlier
            .counts
            .iter()
            .zip(&interrupt.counts)
            .map(rate)
            .collect();
        let per_second: f64 = rates.iter().sum();
        let by_cpu = cpus
            .iter()
            .copied()
            .zip(rates)
            .filter(|(_, rate)| *rate > 0.0)
            .collect();
        let name = || interrupt.name.clone();
        (per_second > 0.0).then(|| InterruptRates {
            name: name(),
            per_second,
            by_cpu,
        })
    };
    let mut all: Vec<InterruptRates> = now.interrupts.iter().enumerate().filter_map(came).collect();
    all.sort_by(|a, b| b.per_second.total_cmp(&a.per_second));
    all
}

/// Counters that have grown. One that is not in the earlier sample was 0.
fn moving(then: &Counters, now: &Counters, seconds: f64) -> Vec<Moving> {
    busiest(now.iter().filter_map(|(name, now)| {
        let grown =
            growth(then.get(name).copied().unwrap_or(0), *now).filter(|grown| *grown > 0)?;
        Some(Moving {
            name: name.clone(),
            per_second: grown as f64 / seconds,
        })
    }))
}

fn busiest(all: impl Iterator<Item = Moving>) -> Vec<Moving> {
    let mut all: Vec<Moving> = all.collect();
    all.sort_by(|a, b| b.per_second.total_cmp(&a.per_second));
    all.truncate(MOST_MOVING);
    all
}
