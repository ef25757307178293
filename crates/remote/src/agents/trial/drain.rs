//! The end of a trial: the last frames are waited for, and the ports' counters are read.

use super::{LOOK, Ports, Trial, Underway};
use crate::Result;
use linerate_measure::counters::PortCounters;
use std::time::{Duration, Instant};

/// Answers may be under way this long.
const ANSWER_WITHIN: Duration = Duration::from_millis(200);

impl Trial<'_> {
    /// Waits for the last frames, and reads the counters of all: those sent and those received, by direction.
    pub(super) fn drain(
        &self,
        underway: &[Underway],
    ) -> Result<(Vec<PortCounters>, Vec<PortCounters>)> {
        // A receiver's agent reports until it is stopped, and answers nothing else meanwhile: its report ends, its counting goes on.
        for member in self.members.iter().filter(|m| !m.sends()) {
            member.agent.stop()?;
        }
        let mut sent = self.read(underway, |ports| &ports.generators)?;
        let (quiet, most) = (self.timing.quiet_ns, self.timing.drain_ns);
        let [quiet, most] = [quiet, most].map(Duration::from_nanos);
        let all = |way: usize, now: &PortCounters| now.unique() >= sent[way].frames;
        let received = self.settled(underway, |ports| &ports.receivers, quiet, most, all)?;
        if self.answer {
            let all = |way: usize, now: &PortCounters| now.answers >= received[way].unique();
            let answers = self.settled(
                underway,
                |ports| &ports.generators,
                ANSWER_WITHIN,
                Duration::MAX,
                all,
            )?;
            sent.iter_mut()
                .zip(answers)
                .for_each(|(sent, with)| sent.answers = with.answers);
        }
        Ok((sent, received))
    }

    /// Counters of ports once all directions are complete, have not changed for a while, or have been waited for long enough.
    fn settled(
        &self,
        underway: &[Underway],
        which: fn(&Ports) -> &Vec<String>,
        quiet: Duration,
        most: Duration,
        is_complete: impl Fn(usize, &PortCounters) -> bool,
    ) -> Result<Vec<PortCounters>> {
        let (began, mut changed, mut last) = (Instant::now(), Instant::now(), Vec::new());
        loop {
            let all = self.read(underway, which)?;
            let now: Vec<[u64; 2]> = all.iter().map(|now| [now.frames, now.answers]).collect();
            if now != last {
                (last, changed) = (now, Instant::now());
            }
            let complete = all
                .iter()
                .enumerate()
                .all(|(way, now)| is_complete(way, now));
            if complete || changed.elapsed() >= quiet || began.elapsed() >= most {
                return Ok(all);
            }
            std::thread::sleep((quiet / 10).min(LOOK));
        }
    }

    /// Counters of ports by direction, with times on our clock.
    fn read(
        &self,
        underway: &[Underway],
        which: fn(&Ports) -> &Vec<String>,
    ) -> Result<Vec<PortCounters>> {
        let mut all = vec![PortCounters::default(); self.ways()];
        for (member, under) in self.members.iter().zip(underway) {
            let names: Vec<String> = member.ways.iter().flat_map(which).cloned().collect();
            if names.is_empty() {
                continue;
            }
            for (port, mut counters) in member.agent.counters(&names)? {
                counters.by_clock(|ns| under.offset.here(ns.into()));
                if let Some(way) = member
                    .ways
                    .iter()
                    .position(|ports| which(ports).contains(&port))
                {
                    all[way].add(counters);
                }
            }
        }
        Ok(all)
    }
}
