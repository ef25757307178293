//! Connections that a trial opened, and how far each came.

use super::{Mode, TrialRecord};
use crate::advice::two_digits;
use crate::audit::Loss;
use linerate_stats::median;
use linerate_wire::{ConnectionSpec, HAS_ANSWER, IS_OPEN};
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
    /// The flood that came with them, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flood: Option<Flood>,
}

/// A flood of SYNs of no connection: from addresses that no client has, and none is answered by a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flood {
    /// SYNs a second that were asked for.
    pub asked: u32,
    /// SYNs that were sent.
    pub sent: u64,
    /// SYNs that arrived behind the DUT.
    pub arrived: u64,
    /// Frames with which the DUT answered them.
    pub answered: u64,
    /// Nanoseconds in which they were sent.
    pub load_ns: u64,
}

/// The flood in the valid trials of a slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FloodRow {
    /// SYNs a second that were asked for.
    pub asked: u32,
    /// Share of the SYNs that arrived behind the DUT, in all trials.
    pub passed: f64,
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
        let entries = valid.iter().filter_map(|trial| trial.connections?.tracked);
        Some(FloodRow {
            asked: floods().next()?.asked,
            passed: arrived as f64 / sent.max(1) as f64,
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
    /// Connections that were open and had no answer then, in all trials.
    pub unanswered: u64,
    /// Median time to open them, in nanoseconds, without the time spent waiting for connections that failed.
    pub open_ns: f64,
    /// Median time in which each had its request and its answer.
    pub ask_ns: f64,
    /// Median time to close them.
    pub close_ns: f64,
    /// Entries in the DUT's table while all were open, in the last trial.
    pub entries: Option<u64>,
    /// Bytes of the kernel's slab of connections then.
    pub slab_bytes: Option<u64>,
    /// Connections that the DUT's connection tracking refused, by its counters `drop`, `early_drop` and `insert_failed`, in the last trial.
    pub refused: BTreeMap<String, u64>,
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
        let refused = REFUSING.iter().filter_map(|name| {
            let count = counters.get(&format!("Conntrack.{name}"))?;
            Some((name.to_string(), *count))
        });
        let (_, last) = trials.last()?;
        Some(KeptRow {
            asked: last.asked,
            open: [open().min()?, open().max()?],
            unanswered: trials.iter().filter_map(unanswered).sum(),
            open_ns: time(|kept| kept.open_ns),
            ask_ns: time(|kept| kept.ask_ns),
            close_ns: time(|kept| kept.close_ns),
            entries: last.entries,
            slab_bytes: last.slab_bytes,
            refused: refused.collect(),
        })
    }
}

/// Share by which the rate of a flood may miss the one that was asked for.
const FLOOD_MISSES: f64 = 0.02;
/// Share of a load's time that may pass while nothing arrives and no connection may be opened.
const MOST_IDLE: f64 = 0.02;

impl Flood {
    /// Why its rate is another than the one that was asked for.
    fn fault(&self) -> Option<String> {
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
            stale,
            resets,
            unwritten,
            given_up,
            idle_ns,
            timed_by_client,
            lost,
            kept,
            flood,
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
        self.stale += stale;
        self.resets += resets;
        self.unwritten += unwritten;
        self.given_up += given_up;
        self.idle_ns = self.idle_ns.max(*idle_ns);
        self.timed_by_client |= timed_by_client;
        self.lost.extend(lost.iter().cloned());
        self.kept = self.kept.or(*kept);
        self.flood = self.flood.or(*flood);
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

    /// Connections whose last frame arrived.
    pub fn closed(&self) -> u64 {
        self.reached.last().copied().unwrap_or(0)
    }

    /// Connections that failed before each stage. `None`: some stage was reached by more than the one before it.
    pub fn failed(&self) -> Option<Vec<u64>> {
        let before = std::iter::once(&self.attempted).chain(&self.reached);
        before
            .zip(&self.reached)
            .map(|(before, reached)| before.checked_sub(*reached))
            .collect()
    }

    /// Counts that contradict each other, and rates that are not the DUT's, in words. `load_ns`: the length of the load; `mode`: its mode.
    pub fn faults(&self, spec: &ConnectionSpec, load_ns: u64, mode: Mode) -> Vec<String> {
        let mut faults = Vec::new();
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
        if self.unwritten > 0 {
            faults.push(format!(
                "the tester could not write {} frames: use a shorter --object",
                self.unwritten
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
        faults.extend(self.flood.and_then(|flood| flood.fault()));
        if self.changed > 0 && self.closed() == 0 && spec.exchange.is_tcp() {
            faults.push("the DUT changes sequence numbers (SYN proxy, `modulate state`), by which linerate knows its connections: turn that off".into());
        }
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
        spec.stages()
            .iter()
            .copied()
            .zip(failed)
            .filter(|(_, failed)| *failed > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Connections, States};
    use linerate_wire::Exchange;

    #[test]
    fn connections_that_are_kept_open_may_wait_for_those_that_fail() {
        let kept = ConnectionTrial {
            attempted: 1000,
            reached: vec![600, 600, 600, 600, 599, 599, 599, 599],
            arrived: vec![600, 600, 600, 600, 599, 599, 599, 599],
            again: vec![0; 8],
            given_up: 402,
            idle_ns: 900_000,
            kept: Some(Kept {
                asked: 1000,
                ..Kept::default()
            }),
            ..ConnectionTrial::default()
        };
        let spec = ConnectionSpec {
            open: Some(1000),
            ..ConnectionSpec::new(Exchange::Request, 6)
        };
        assert_eq!(
            kept.faults(&spec, 1_000_000, Mode::Inline),
            Vec::<String>::new()
        );
        assert_eq!((kept.open(), kept.answered()), (Some(600), Some(599)));
        let failed: Vec<_> = kept.failures(&spec).collect();
        assert_eq!(failed, [("SYN", 400), ("answer", 1)]);
        assert_eq!(trial([1000; 6]).open(), None);
        let few = ConnectionTrial {
            kept: Some(Kept {
                asked: 1001,
                ..Kept::default()
            }),
            ..kept
        };
        assert!(few.faults(&spec, 1_000_000, Mode::Inline)[0].contains("1000 of 1001 connections"));
    }

    fn trial(reached: [u64; 6]) -> ConnectionTrial {
        let (arrived, again) = (reached.to_vec(), vec![0; 6]);
        ConnectionTrial {
            attempted: 1000,
            reached: arrived.clone(),
            arrived,
            again,
            ..ConnectionTrial::default()
        }
    }

    #[test]
    fn those_that_failed_and_those_that_closed_are_all() {
        let found = trial([990, 990, 980, 975, 975, 970]);
        assert_eq!(found.failed().unwrap(), [10, 0, 10, 5, 0, 5]);
        assert_eq!(
            found.failed().unwrap().iter().sum::<u64>() + found.closed(),
            found.attempted
        );
        let spec = ConnectionSpec::new(Exchange::Request, 6);
        let named: Vec<_> = found.failures(&spec).collect();
        assert_eq!(
            named,
            [
                ("SYN", 10),
                ("request", 10),
                ("answer with FIN", 5),
                ("last ACK", 5)
            ]
        );
    }

    #[test]
    fn a_row_has_the_fewest_and_the_most_and_who_refused_the_others() {
        let with = |open: u64, answered: u64, open_ns: u64| TrialRecord {
            opened: Some(Box::new(ConnectionTrial {
                attempted: 1000,
                reached: vec![open, open, open, answered, answered, 0, 0, 0],
                kept: Some(Kept {
                    asked: 1000,
                    open_ns,
                    entries: Some(open),
                    ..Kept::default()
                }),
                ..ConnectionTrial::default()
            })),
            dut: [
                ("Conntrack.drop".to_string(), 1000 - open),
                ("Ip.x".into(), 1),
            ]
            .into(),
            ..TrialRecord::default()
        };
        let all = [with(600, 600, 10), with(610, 607, 30), with(605, 605, 20)];
        let row = KeptRow::of(&all.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(
            (row.open, row.unanswered, row.open_ns),
            ([600, 610], 3, 20.0)
        );
        assert_eq!(
            (row.entries, &row.refused),
            (Some(605), &[("drop".to_string(), 395)].into())
        );
        assert_eq!(KeptRow::of(&[&TrialRecord::default()]), None);
        assert_eq!(KeptRow::of(&[]), None);
    }

    #[test]
    fn a_flood_has_the_rate_that_was_asked_for_and_a_row_the_share_that_passed() {
        let with = |sent, arrived| ConnectionTrial {
            flood: Some(Flood {
                asked: 1000,
                sent,
                arrived,
                answered: 0,
                load_ns: 2_000_000_000,
            }),
            ..trial([1000; 6])
        };
        let spec = ConnectionSpec::new(Exchange::Request, 6);
        assert_eq!(
            with(1981, 0).faults(&spec, 1_000_000, Mode::Inline),
            Vec::<String>::new()
        );
        // A slow flood cannot have its rate to the SYN.
        let few = |asked, sent| {
            let flood = Flood {
                asked,
                sent,
                load_ns: 300_000_000,
                ..Flood::default()
            };
            flood.fault()
        };
        assert_eq!([few(40, 10), few(40, 14)], [None, None]);
        assert!(few(40, 0).is_some());
        assert!(
            with(1900, 0).faults(&spec, 1_000_000, Mode::Inline)[0]
                .contains("950 SYN/s instead of 1000")
        );
        let records: Vec<TrialRecord> = [(2000, 2000, 5), (2000, 1000, 9)]
            .map(|(sent, arrived, entries)| TrialRecord {
                opened: Some(Box::new(with(sent, arrived))),
                connections: Some(Connections {
                    states: States::New,
                    tracked: Some(entries),
                    limit: None,
                    unanswered: None,
                }),
                ..TrialRecord::default()
            })
            .into();
        let row = FloodRow::of(&records.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!((row.asked, row.passed, row.entries), (1000, 0.75, Some(9)));
        assert_eq!(FloodRow::of(&[&TrialRecord::default()]), None);
    }

    #[test]
    fn counts_that_contradict_each_other_are_found() {
        let spec = ConnectionSpec::new(Exchange::Request, 6);
        assert_eq!(
            trial([1000; 6]).faults(&spec, 1_000_000, Mode::Inline),
            Vec::<String>::new()
        );
        assert!(
            trial([990, 991, 990, 990, 990, 990]).faults(&spec, 1_000_000, Mode::Inline)[0]
                .contains("SYN 990, SYN/ACK 991")
        );
        let busy = ConnectionTrial {
            given_up: 11,
            ..trial([990; 6])
        };
        assert!(
            busy.faults(&spec, 1_000_000, Mode::Inline)[0].contains("11 connections were given up")
        );
        assert!(
            ConnectionTrial {
                given_up: 10,
                ..trial([990; 6])
            }
            .faults(&spec, 1_000_000, Mode::Inline)
            .is_empty()
        );
        let idle = ConnectionTrial {
            idle_ns: 30_000,
            given_up: 10,
            ..trial([990; 6])
        };
        // The remedy comes first: pages cut long sentences off.
        let fault = &idle.faults(&spec, 1_000_000, Mode::Inline)[0];
        assert!(
            fault.starts_with("use --mode threaded --rate 990kpps, as many as closed here: "),
            "{fault}"
        );
        assert!(fault.contains("for 3.0 % of the time"), "{fault}");
        assert!(idle.faults(&spec, 2_000_000, Mode::Inline).is_empty());
        let twice = ConnectionTrial {
            again: vec![1, 0, 0, 0, 0, 0],
            ..trial([1000; 6])
        };
        assert!(twice.faults(&spec, 1_000_000, Mode::Inline)[0].contains("connections differ"));
        let changed = ConnectionTrial {
            changed: 7,
            ..trial([1000, 0, 0, 0, 0, 0])
        };
        assert!(
            changed.faults(&spec, 1_000_000, Mode::Inline)[0].contains("changes sequence numbers")
        );
    }
}
