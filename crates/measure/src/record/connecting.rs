//! Connections that a trial opened, and how far each came.

mod nginx;

use super::{Mode, Row, TrialRecord};
use crate::advice::two_digits;
use crate::audit::{Loss, SecondCount};
use linerate_stats::{Estimate, median};
use linerate_wire::{ConnectionSpec, HAS_ANSWER, IS_OPEN, MILLION};
pub use nginx::ByNginx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The connections of a trial. Each is counted at both ends, by a bit for each stage that it reached; docs/connections.md names the stages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionTrial {
    /// Connections whose first frame was sent.
    pub attempted: u64,
    /// Connections that reached each stage, each counted once.
    pub reached: Vec<u64>,
    /// Frames of each stage that arrived.
    pub arrived: Vec<u64>,
    /// Frames of each stage that had arrived before; they are in `arrived` as well.
    pub again: Vec<u64>,
    /// Frames whose sequence numbers are others than those that were sent: the DUT changes them.
    pub changed: u64,
    /// SYN/ACKs with another sequence number than the server's, where a table told the connections apart: the DUT changes the numbers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shifted: u64,
    /// SYN/ACKs with a window of 0, where there was a table: the DUT is a SYN proxy, which answers before it asks the server.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub proxied: u64,
    /// Frames of connections of an earlier trial.
    pub stale: u64,
    /// RST segments that neither end had sent.
    pub resets: u64,
    /// Frames that an end could not write.
    pub unwritten: u64,
    /// Connections that were given up, because no frame of any connection arrived for a while.
    pub given_up: u64,
    /// Time lost waiting for them, in nanoseconds, on the CPU that waited longest.
    pub idle_ns: u64,
    /// Whether the time to open ends with the SYN/ACK at the client, because the server is another machine with another clock. Otherwise, it
    /// ends with the client's ACK at the server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_by_client: bool,
    /// Places where frames of the connections were lost.
    pub lost: Vec<Loss>,
    /// How they were kept open, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
    /// The flood, or the illegal attempts, that came with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flood: Option<Flood>,
    /// nginx's counts, if it answered them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nginx: Option<ByNginx>,
}

fn is_none_of_million(number: &u32) -> bool {
    *number == 0
}

fn is_none_of(share: &f64) -> bool {
    *share == 0.0
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// SYNs of no connection, none of which is answered by a server: a flood from addresses that no client has, or illegal attempts of the
/// clients, at a port that no connection has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flood {
    /// SYNs of a flood a second that were asked for.
    pub asked: u32,
    /// Illegal attempts that were asked for in a million attempts; 0: the SYNs are a flood.
    #[serde(default, skip_serializing_if = "is_none_of_million")]
    pub illegal: u32,
    /// SYNs that were sent.
    pub sent: u64,
    /// SYNs that arrived behind the DUT.
    pub arrived: u64,
    /// Frames with which the DUT answered them.
    pub answered: u64,
    /// Nanoseconds in which they were sent.
    pub load_ns: u64,
}

/// The flood, or the illegal attempts, in the valid trials of a slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FloodRow {
    /// SYNs of a flood a second that were asked for.
    pub asked: u32,
    /// Illegal attempts that were asked for in a million attempts; 0: the SYNs are a flood.
    #[serde(default, skip_serializing_if = "is_none_of_million")]
    pub illegal: u32,
    /// SYNs that arrived behind the DUT, in all trials.
    #[serde(default)]
    pub arrived: u64,
    /// SYNs that were sent.
    #[serde(default)]
    pub sent: u64,
    /// Share of the SYNs that arrived behind the DUT, in all trials.
    pub passed: f64,
    /// Share of the SYNs that the DUT answered itself.
    #[serde(default, skip_serializing_if = "is_none_of")]
    pub answered: f64,
    /// Entries in the DUT's table at the end of a trial, at most, if it can be asked.
    pub entries: Option<u64>,
}

impl FloodRow {
    /// Of the valid trials of a slot; `None` if no flood came.
    pub fn of(valid: &[&TrialRecord]) -> Option<FloodRow> {
        let floods = || {
            valid
                .iter()
                .filter_map(|trial| trial.opened.as_ref()?.flood)
        };
        let sent: u64 = floods().map(|flood| flood.sent).sum();
        let arrived: u64 = floods().map(|flood| flood.arrived).sum();
        let answered: u64 = floods().map(|flood| flood.answered).sum();
        let entries = valid.iter().filter_map(|trial| trial.connections?.tracked);
        let Flood { asked, illegal, .. } = floods().next()?;
        Some(FloodRow {
            asked,
            illegal,
            arrived,
            sent,
            passed: arrived as f64 / sent.max(1) as f64,
            answered: answered as f64 / sent.max(1) as f64,
            entries: entries.max(),
        })
    }
}

/// How connections were kept open at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kept {
    /// Connections that were asked for.
    pub asked: u64,
    /// Time to open them, in nanoseconds, from the first SYN to the last ACK, without the time spent waiting for connections that failed.
    /// In threaded mode, to the last SYN.
    pub open_ns: u64,
    /// Time in which each had its request and its answer, counted alike.
    pub ask_ns: u64,
    /// Time to close them, counted alike.
    pub close_ns: u64,
    /// Entries in the DUT's table of connections while all were open, if it can be asked.
    pub entries: Option<u64>,
    /// Bytes by which the kernel's slab of connections (`nf_conntrack`) had grown then, if it can be read.
    pub slab_bytes: Option<u64>,
}

/// Connections that were kept open at the same time in the valid trials of a slot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptRow {
    /// Connections that were asked for.
    pub asked: u64,
    /// Fewest that were open at the same time, and most.
    pub open: [u64; 2],
    /// Connections that were open, in all trials.
    #[serde(default)]
    pub opened: u64,
    /// Of these, those that had no answer then.
    pub unanswered: u64,
    /// The event that happened to the DUT while they were open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<KeptEvent>,
    /// Median time to open them, in nanoseconds, without the time spent waiting for connections that failed.
    pub open_ns: f64,
    /// Median time in which each had its request and its answer.
    pub ask_ns: f64,
    /// Median time to close them.
    pub close_ns: f64,
    /// Entries in the DUT's table while all were open, in the last trial.
    pub entries: Option<u64>,
    /// Entries after the last connection was closed, in the last trial.
    #[serde(default)]
    pub left: Option<u64>,
    /// Bytes of the kernel's slab of connections then.
    pub slab_bytes: Option<u64>,
    /// Connections that the DUT's connection tracking refused, by its counters `drop`, `early_drop` and `insert_failed`, in the last trial.
    pub refused: BTreeMap<String, u64>,
}

/// An event that happened to the DUT while connections were open. Connections that had an answer afterwards survived it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptEvent {
    /// Kind, as plans call it.
    pub what: String,
    /// Median time that it took, in nanoseconds.
    pub took_ns: f64,
}

impl Row {
    /// Over all valid trials, exactly: the share of the connections that were kept open, and that carried their request and answer; or that of
    /// the SYNs of no connection that arrived.
    pub fn passed(&self) -> Option<Estimate> {
        let (passed, all) = match (&self.kept, &self.flood) {
            (Some(kept), _) => (kept.opened.saturating_sub(kept.unanswered), kept.opened),
            (None, Some(flood)) => (flood.arrived, flood.sent),
            _ => return None,
        };
        (all > 0).then(|| {
            let share = passed as f64 / all as f64;
            Estimate {
                median: share,
                low: Some(share),
                high: Some(share),
                n: self.trials,
            }
        })
    }
}

/// Counters of connection tracking that refuse connections.
const REFUSING: [&str; 3] = ["drop", "early_drop", "insert_failed"];

impl KeptRow {
    /// Of the valid trials of a slot; `None` if its connections were not kept open.
    pub fn of(valid: &[&TrialRecord]) -> Option<KeptRow> {
        let trials: Vec<(&ConnectionTrial, Kept)> = valid
            .iter()
            .filter_map(|trial| trial.opened.as_deref())
            .filter_map(|opened| Some((opened, opened.kept?)))
            .collect();
        let open = || trials.iter().filter_map(|(opened, _)| opened.open());
        let unanswered =
            |(opened, _): &(&ConnectionTrial, Kept)| opened.open()?.checked_sub(opened.answered()?);
        let time = |pick: fn(&Kept) -> u64| {
            let times: Vec<f64> = trials.iter().map(|(_, kept)| pick(kept) as f64).collect();
            median(&times).unwrap_or(0.0)
        };
        let counters = &valid.last()?.dut;
        let events = || valid.iter().filter_map(|trial| trial.event.as_ref());
        let took: Vec<f64> = events()
            .map(|event| event.ended_ns.saturating_sub(event.began_ns) as f64)
            .collect();
        let event = events().next().map(|event| KeptEvent {
            what: event.what.clone(),
            took_ns: median(&took).unwrap_or(0.0),
        });
        let refused = REFUSING.iter().filter_map(|name| {
            let count = counters.get(&format!("Conntrack.{name}"))?;
            Some((name.to_string(), *count))
        });
        let (_, last) = trials.last()?;
        Some(KeptRow {
            asked: last.asked,
            open: [open().min()?, open().max()?],
            opened: open().sum(),
            unanswered: trials.iter().filter_map(unanswered).sum(),
            event,
            open_ns: time(|kept| kept.open_ns),
            ask_ns: time(|kept| kept.ask_ns),
            close_ns: time(|kept| kept.close_ns),
            entries: last.entries,
            left: valid.last()?.connections.and_then(|states| states.tracked),
            slab_bytes: last.slab_bytes,
            refused: refused.collect(),
        })
    }
}

/// Stages of connections that close one by one: the request at the server, and the end of its answer at the client.
const ASKED: usize = 2;
const TOLD: usize = 3;
/// Share by which the rate of a flood may miss the one that was asked for.
const FLOOD_MISSES: f64 = 0.02;
/// Share of a load's time that may pass while nothing arrives and no connection may be opened.
const MOST_IDLE: f64 = 0.02;

impl Flood {
    /// Why it is another than the one that was asked for. `attempted`: connections that it came with.
    fn fault(&self, attempted: u64) -> Option<String> {
        if self.illegal > 0 {
            let each = f64::from(self.illegal) / f64::from(MILLION - self.illegal);
            let expected = attempted as f64 * each;
            // SYNs that are due when the load ends are not sent.
            let missed = (self.sent as f64 - expected).abs() > FLOOD_MISSES * expected + 20.0;
            return missed.then(|| {
                format!(
                    "{} illegal SYNs came with {attempted} connections, instead of {expected:.0}",
                    self.sent
                )
            });
        }
        let seconds = self.load_ns.max(1) as f64 / 1e9;
        let rate = self.sent as f64 / seconds;
        let expected = f64::from(self.asked) * seconds;
        // Each SYN is late by up to its distance, so a load may have one more or one fewer, at both of its ends.
        let missed = (self.sent as f64 - expected).abs() > FLOOD_MISSES * expected + 2.0;
        missed.then(|| {
            format!(
                "the flood had {rate:.0} SYN/s instead of {}: the CPU has no time for more: use a lower --flood",
                self.asked
            )
        })
    }
}

impl ConnectionTrial {
    /// Joins the counts of the other end, each of which has those of its own stages.
    pub fn add(&mut self, other: &ConnectionTrial) {
        let ConnectionTrial {
            attempted,
            reached,
            arrived,
            again,
            changed,
            shifted,
            proxied,
            stale,
            resets,
            unwritten,
            given_up,
            idle_ns,
            timed_by_client,
            lost,
            kept,
            flood,
            nginx,
        } = other;
        for (all, more) in [
            (&mut self.reached, reached),
            (&mut self.arrived, arrived),
            (&mut self.again, again),
        ] {
            all.resize(all.len().max(more.len()), 0);
            all.iter_mut()
                .zip(more)
                .for_each(|(all, more)| *all += more);
        }
        self.attempted += attempted;
        self.changed += changed;
        self.shifted += shifted;
        self.proxied += proxied;
        self.stale += stale;
        self.resets += resets;
        self.unwritten += unwritten;
        self.given_up += given_up;
        self.idle_ns = self.idle_ns.max(*idle_ns);
        self.timed_by_client |= timed_by_client;
        self.lost.extend(lost.iter().cloned());
        self.kept = self.kept.or(*kept);
        self.flood = self.flood.or(*flood);
        self.nginx = self.nginx.or(*nginx);
    }

    /// Connections that were open at the same time, if they were kept open.
    pub fn open(&self) -> Option<u64> {
        self.kept.and_then(|_| self.reached.get(IS_OPEN).copied())
    }

    /// Connections that had an answer while all were open.
    pub fn answered(&self) -> Option<u64> {
        self.kept
            .and_then(|_| self.reached.get(HAS_ANSWER).copied())
    }

    /// Connections whose request arrived at the server.
    pub fn asked(&self) -> u64 {
        self.reached.get(ASKED).copied().unwrap_or(0)
    }

    /// nginx's counts beside those of the requests at its interface, if it answered.
    pub fn counts_of_nginx(&self) -> impl Iterator<Item = SecondCount> {
        let counts = self.nginx.map(|of| of.second_counts(self.asked()));
        counts.into_iter().flatten()
    }

    /// Connections whose last frame arrived.
    pub fn closed(&self) -> u64 {
        self.reached.last().copied().unwrap_or(0)
    }

    /// The values of the stages, in the order in which connections reach them: a SYN proxy sends the SYN on when the client has had its SYN/ACK.
    fn in_order<T: Copy>(&self, stages: &[T]) -> Vec<T> {
        let mut stages = stages.to_vec();
        if self.proxied > 0 && stages.len() > 1 {
            stages.swap(0, 1);
        }
        stages
    }

    /// Connections that failed before each stage. `None`: some stage was reached by more than the one before it.
    pub fn failed(&self) -> Option<Vec<u64>> {
        let reached = self.in_order(&self.reached);
        let before = std::iter::once(&self.attempted).chain(&reached);
        before
            .zip(&reached)
            .map(|(before, reached)| before.checked_sub(*reached))
            .collect()
    }

    /// Whether no connection closed because the DUT changes sequence numbers.
    pub fn is_renumbered(&self) -> bool {
        self.changed > 0 && self.closed() == 0
    }

    /// The fault of a DUT that changes sequence numbers where linerate cannot do without them.
    fn renumbered(&self, mode: Mode) -> &'static str {
        match (self.kept, mode, self.proxied) {
            (Some(_), _, _) | (_, Mode::Hosts, _) => {
                "the DUT changes sequence numbers (SYN proxy, `modulate state`), by which linerate knows connections between hosts and those that are kept open: turn that off"
            }
            (None, _, 0) => {
                "the DUT changes sequence numbers and addresses, and linerate knows connections by one of them: turn one off"
            }
            _ => {
                "the DUT answers as a SYN proxy and opens no connection to the server: Linux does so with net.netfilter.nf_conntrack_tcp_loose = 0"
            }
        }
    }

    /// Counts that contradict each other, and rates that are not the DUT's, in words. `load_ns`: the length of the load; `mode`: its mode.
    pub fn faults(&self, spec: &ConnectionSpec, load_ns: u64, mode: Mode) -> Vec<String> {
        let mut faults = Vec::new();
        if self.is_renumbered() && spec.exchange.is_tcp() {
            faults.push(self.renumbered(mode).into());
        }
        let answered = self.reached.get(TOLD).copied().unwrap_or(0);
        faults.extend(self.nginx.and_then(|of| of.fault(answered, spec.object)));
        let counted = self
            .arrived
            .iter()
            .zip(&self.again)
            .map(|(arrived, again)| arrived.saturating_sub(*again));
        if !counted.eq(self.reached.iter().copied()) {
            faults.push(format!(
                "the counts of frames and of connections differ: of {:?} frames {:?} were repeated; {}",
                self.arrived,
                self.again,
                self.stages(spec)
            ));
        }
        if self.unwritten > 0 {
            faults.push(format!(
                "the tester could not write {} frames: use a shorter --object{}",
                self.unwritten,
                if self.proxied > 0 {
                    ", 200 B at most behind a SYN proxy"
                } else {
                    ""
                }
            ));
        }
        // The time spent waiting for connections that failed is no part of the times of those that are kept open.
        let idle = match self.kept {
            Some(_) => 0.0,
            None => self.idle_ns as f64 / load_ns.max(1) as f64,
        };
        if idle > MOST_IDLE {
            let closed = self.closed() as f64 * 1e9 / load_ns.max(1) as f64;
            let rate = match closed >= 1.0 {
                true => format!("{}pps", two_digits(closed)),
                false => "20kpps".into(),
            };
            let as_many = if closed >= 1.0 {
                ", as many as closed here"
            } else {
                ""
            };
            let remedy = match mode {
                Mode::Hosts => format!("write rate = \"{rate}\" in [traffic]"),
                _ => format!("use --mode threaded --rate {rate}"),
            };
            faults.push(format!(
                "{remedy}{as_many}: {} failed connections kept others waiting for {:.1} % of the time, so the rate is not the DUT's",
                self.given_up,
                100.0 * idle
            ));
        }
        if self.failed().is_none() {
            faults.push(format!(
                "a stage of connections was reached by more of them than the stage before it: {}",
                self.stages(spec)
            ));
        }
        let failed = self.attempted.saturating_sub(self.closed());
        if self.given_up > failed && self.kept.is_none() {
            faults.push(format!(
                "{} connections were given up, and {failed} failed: the others were late, so more were under way than was allowed for: stop other programs, and run it again",
                self.given_up
            ));
        }
        if let Some(Kept { asked, .. }) = self.kept.filter(|kept| kept.asked > self.attempted) {
            faults.push(format!(
                "{} of {asked} connections were attempted before the load's time was over",
                self.attempted
            ));
        }
        faults.extend(self.flood.and_then(|flood| flood.fault(self.attempted)));
        faults
    }

    /// The stages with the number of connections that reached each.
    fn stages(&self, spec: &ConnectionSpec) -> String {
        let stages = spec.stages().iter().zip(&self.reached);
        stages
            .map(|(stage, reached)| format!("{stage} {reached}"))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Connections that failed, by the frame that did not arrive.
    pub fn failures<'a>(
        &'a self,
        spec: &ConnectionSpec,
    ) -> impl Iterator<Item = (&'static str, u64)> + 'a {
        let failed = self.failed().unwrap_or_default();
        self.in_order(spec.stages())
            .into_iter()
            .zip(failed)
            .filter(|(_, failed)| *failed > 0)
    }
}
