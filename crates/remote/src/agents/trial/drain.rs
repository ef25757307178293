//! The end of a trial: the last frames are waited for, and the ports' counters are read.

use super::{LOOK, Trial, Underway};
use crate::Result;
use linerate_hosts::agent::connecting::EndCounts;
use linerate_measure::counters::PortCounters;
use std::time::{Duration, Instant};

/// Answers may be under way this long.
const ANSWER_WITHIN: Duration = Duration::from_millis(200);

impl Trial<'_> {
    /// Waits for the last frames, and reads the counters of all: those sent and those received, by direction; and those of connections.
    pub(super) fn drain(
        &self,
        underway: &[Underway<'_>],
    ) -> Result<(Vec<PortCounters>, Vec<PortCounters>, Option<EndCounts>)> {
        // A receiver's agent reports until it is stopped, and answers nothing else meanwhile: its report ends, its counting goes on.
        self.stop(|member| !member.sends())?;
        let mut sent = self.read(underway, 0)?;
        let [quiet, most] = [self.timing.quiet_ns, self.timing.drain_ns].map(Duration::from_nanos);
        if self.opening.is_some() {
            let ends = self.ends(underway, quiet, most)?;
            return Ok((sent, vec![ends.closed.clone()], Some(ends)));
        }
        let all = |way: usize, now: &PortCounters| now.unique() >= sent[way].frames;
        let received = self.settled(underway, 1, quiet, most, all)?;
        if self.answer {
            let all = |way: usize, now: &PortCounters| now.answers >= received[way].unique();
            let answers = self.settled(underway, 0, ANSWER_WITHIN, Duration::MAX, all)?;
            for (sent, with) in sent.iter_mut().zip(answers) {
                sent.answers = with.answers;
            }
        }
        Ok((sent, received, None))
    }

    /// The counts of both ends of connections once all have closed, no more frames arrive for a while, or have been waited for long
    /// enough.
    fn ends(
        &self,
        underway: &[Underway<'_>],
        quiet: Duration,
        most: Duration,
    ) -> Result<EndCounts> {
        let (began, mut changed, mut last) = (Instant::now(), Instant::now(), Vec::new());
        loop {
            let mut all = EndCounts::default();
            for under in underway {
                let ways = under.member.ways.iter();
                let ports = ways.flat_map(|way| way.of(0).iter().chain(way.of(1)));
                let ports: Vec<String> = ports.cloned().collect();
                all.add(under.member.agent.connections(&ports)?);
            }
            if all.opened.arrived != last {
                (last, changed) = (all.opened.arrived.clone(), Instant::now());
            }
            let complete = all.opened.closed() == all.opened.attempted;
            if complete || changed.elapsed() >= quiet || began.elapsed() >= most {
                return Ok(all);
            }
            std::thread::sleep((quiet / 10).min(LOOK));
        }
    }

    /// Counters of ports once all directions are complete, have not changed for a while, or have been waited for long enough.
    fn settled(
        &self,
        underway: &[Underway<'_>],
        end: usize,
        quiet: Duration,
        most: Duration,
        is_complete: impl Fn(usize, &PortCounters) -> bool,
    ) -> Result<Vec<PortCounters>> {
        let (began, mut changed, mut last) = (Instant::now(), Instant::now(), Vec::new());
        loop {
            let all = self.read(underway, end)?;
            let now: Vec<[u64; 2]> = all.iter().map(|now| [now.frames, now.answers]).collect();
            if now != last {
                (last, changed) = (now, Instant::now());
            }
            let mut ways = all.iter().enumerate();
            let complete = ways.all(|(way, now)| is_complete(way, now));
            if complete || changed.elapsed() >= quiet || began.elapsed() >= most {
                return Ok(all);
            }
            std::thread::sleep((quiet / 10).min(LOOK));
        }
    }

    /// Counters of ports at an end by direction, with times on our clock.
    fn read(&self, underway: &[Underway<'_>], end: usize) -> Result<Vec<PortCounters>> {
        let mut all = vec![PortCounters::default(); self.ways()];
        for under in underway {
            let ways = &under.member.ways;
            let names: Vec<String> = ways.iter().flat_map(|way| way.of(end)).cloned().collect();
            if names.is_empty() {
                continue;
            }
            for (port, mut counters) in under.member.agent.counters(&names)? {
                counters.by_clock(|ns| under.offset.here(ns.into()));
                if let Some(way) = ways.iter().position(|way| way.of(end).contains(&port)) {
                    all[way].add(counters);
                }
            }
        }
        Ok(all)
    }
}
