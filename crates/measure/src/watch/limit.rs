//! A limit that the counters show, and its sentence.

use serde::Serialize;
use std::fmt;

/// How a queue's share of the frames compares with that of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueState {
    /// The queue has about its fair share, or there are too few frames to tell.
    Even,
    /// The queue has hardly any frames while others have many.
    Starves,
    /// The queue has much more than its fair share.
    Overfull,
}

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Towards the host.
    In,
    /// Away from it.
    Out,
}

/// A limit that the counters show. The `Display` is a sentence without its full stop.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Limit {
    /// A wire is full. `share` of its speed, at layer 1.
    Wire {
        interface: String,
        way: Way,
        share: f64,
    },
    /// A CPU has no time left. `others`: how busy the others are on average, if there are any. `interrupt`: the most frequent one of a
    /// device on it.
    Cpu {
        cpu: u32,
        busy: f64,
        softirq: f64,
        irq: f64,
        others: Option<f64>,
        interrupt: Option<String>,
    },
    /// The hypervisor takes this share of the CPUs' time.
    Steal { share: f64 },
    /// The table of connections is nearly full.
    States { entries: u64, limit: u64 },
    /// A queue drops frames. `share`: of the frames that arrive by the interface.
    QueueDrops {
        interface: String,
        way: Way,
        queue: usize,
        pps: f64,
        share: f64,
    },
    /// An interface drops frames; `overruns`: most of them found no room in the card's ring.
    Drops {
        interface: String,
        way: Way,
        pps: f64,
        overruns: bool,
    },
    /// A CPU's backlog is full.
    Backlog { cpu: u32, pps: f64 },
    /// One queue takes all frames.
    OneQueue {
        interface: String,
        way: Way,
        queue: usize,
        share: f64,
        queues: usize,
    },
    /// A CPU uses its budget up while there is more to do.
    Squeezed { cpu: u32, per_second: f64 },
    /// Queues have hardly any frames.
    Starving {
        interface: String,
        way: Way,
        starving: Vec<usize>,
        queues: usize,
    },
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Way::In { "rx" } else { "tx" })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Cpu {
                cpu,
                busy,
                softirq,
                irq,
                others,
                interrupt,
            } => {
                write!(f, "CPU {cpu} is {} busy", percent(*busy))?;
                let parts = [("softirq", *softirq), ("interrupts", *irq)]
                    .into_iter()
                    .filter(|(_, share)| *share >= 0.01);
                let parts: Vec<String> = parts
                    .map(|(name, share)| format!("{} {name}", percent(share)))
                    .collect();
                if !parts.is_empty() {
                    write!(f, " ({})", parts.join(", "))?;
                }
                if let Some(interrupt) = interrupt {
                    write!(f, ", mostly for {interrupt}")?;
                }
                others.map_or(Ok(()), |others| {
                    write!(f, "; the others are {} busy", percent(others))
                })
            }
            Limit::Steal { share } => {
                write!(
                    f,
                    "the hypervisor takes {} of the CPUs' time for others",
                    percent(*share)
                )
            }
            Limit::States { entries, limit } => {
                write!(
                    f,
                    "the table of connections is nearly full: {entries} of {limit}"
                )
            }
            Limit::Backlog { cpu, pps } => {
                write!(
                    f,
                    "the backlog of CPU {cpu} is full and drops {}",
                    pps_text(*pps)
                )
            }
            Limit::Squeezed { cpu, per_second } => {
                write!(
                    f,
                    "CPU {cpu} uses up its budget {per_second:.0} times a second"
                )
            }
            Limit::Wire { .. }
            | Limit::QueueDrops { .. }
            | Limit::Drops { .. }
            | Limit::OneQueue { .. }
            | Limit::Starving { .. } => self.of_interface(f),
        }
    }
}

impl Limit {
    fn of_interface(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Wire {
                interface,
                way,
                share,
            } => {
                write!(
                    f,
                    "the wire of {interface} is full: {way} takes {} of it",
                    percent(*share)
                )
            }
            Limit::QueueDrops {
                interface,
                way,
                queue,
                pps,
                share,
            } => {
                write!(
                    f,
                    "{way} queue {queue} of {interface} drops {} and has {} of its frames",
                    pps_text(*pps),
                    percent(*share)
                )
            }
            Limit::Drops {
                interface,
                way,
                pps,
                overruns,
            } => {
                let room = if *overruns {
                    ": no room in its ring"
                } else {
                    ""
                };
                write!(f, "{interface} drops {} ({way}){room}", pps_text(*pps))
            }
            Limit::OneQueue {
                interface,
                way,
                queue,
                share,
                queues,
            } => {
                write!(
                    f,
                    "{way} queue {queue} of {interface} has {} of the frames, the other {} hardly any",
                    percent(*share),
                    queues - 1
                )
            }
            Limit::Starving {
                interface,
                way,
                starving,
                queues,
            } => {
                let named: Vec<String> = starving.iter().take(8).map(usize::to_string).collect();
                let more = starving.get(8).map_or("", |_| ", …");
                write!(
                    f,
                    "{} of {queues} {way} queues of {interface} starve: {}{more}",
                    starving.len(),
                    named.join(", ")
                )
            }
            _ => Ok(()),
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A rate in frames/s with three digits: `12.3 kpps`.
fn pps_text(pps: f64) -> String {
    let (scale, unit) = match pps {
        v if v >= 999.5e6 => (1e9, "Gpps"),
        v if v >= 999.5e3 => (1e6, "Mpps"),
        v if v >= 999.5 => (1e3, "kpps"),
        _ => (1.0, "pps"),
    };
    let value = pps / scale;
    let places = if unit == "pps" || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.places$} {unit}")
}
