//! Rates between two samples. A counter that wrapped goes on; one that was reset, or belongs to a new interface, has no rate until the
//! next sample.

use super::limits::limits;
use super::rates::{
    CpuRates, InterfaceRates, InterruptRates, Moving, QueueRates, Rates, SideRates, SoftnetRates,
    Totals,
};
use super::sample::{Interface, Interrupt, Queue, Sample, Side, Softnet};
use crate::collector::Counters;
use crate::record::RuleCount;
use linerate_wire::units::LAYER_1_OVERHEAD;
use std::collections::BTreeMap;

/// Bytes of a frame that byte counters leave out.
const FCS: f64 = 4.0;
/// Counters that moved which are kept of each list: a driver has some thousand.
const MOST_MOVING: usize = 64;

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
