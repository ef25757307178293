//! Where samples come from: this machine, a host, or a file.

use anyhow::{Context, Result, anyhow};
use linerate_linux::net::Netns;
use linerate_linux::ports::monotonic_ns;
use linerate_linux::watch::Reader;
use linerate_measure::watch::Sample;
use linerate_remote::{ExecutionTarget, Target, watch};
use std::io::{BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Samples that wait at most: a view that is slow must not fill the memory.
const WAITING: usize = 4;
/// Bytes of a line of a record.
const LONGEST_LINE: u64 = 64 << 20;

/// Samples, from a thread of their own. Dropping it ends the thread.
pub struct Source {
    samples: Option<Receiver<Result<Sample>>>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Source {
    /// The counters of a namespace of this machine, once for each interval.
    pub fn here(namespace: Netns, wanted: Vec<String>, interval: Duration) -> Source {
        Source::spawn(move |end, send| {
            let mut reader = Reader::open(namespace, &wanted)?;
            let began = monotonic_ns();
            while !end.load(Ordering::Relaxed) {
                if send.send(Ok(reader.sample()?)).is_err() {
                    break;
                }
                // By the clock, so that delays do not add up; an interval that was missed is left out.
                let (interval, since) = (interval.as_nanos() as u64, monotonic_ns() - began);
                let next = began + since - since % interval + interval;
                // A wait may end early, for no reason.
                while !end.load(Ordering::Relaxed) && monotonic_ns() < next {
                    thread::park_timeout(Duration::from_nanos(next.saturating_sub(monotonic_ns())));
                }
            }
            Ok(())
        })
    }

    /// The counters of a host.
    pub fn host(target: Target, sudo: bool, wanted: Vec<String>, interval: Duration) -> Source {
        Source::spawn(move |end, send| {
            let host = ExecutionTarget::connect(&target, Some(end))?;
            let mut known = false;
            let mut wrong = None;
            watch::follow(&host, sudo, interval, end, &mut |mut sample| {
                let missing = wanted
                    .iter()
                    .find(|name| !sample.interfaces.contains_key(*name));
                if let Some(name) = missing.filter(|_| !known) {
                    let there: Vec<&str> = sample.interfaces.keys().map(String::as_str).collect();
                    wrong = Some(anyhow!(
                        "{} has no interface {name}; it has {}",
                        target.name,
                        there.join(", ")
                    ));
                    end.store(true, Ordering::Relaxed);
                }
                known = true;
                sample
                    .interfaces
                    .retain(|name, _| wanted.is_empty() || wanted.contains(name));
                if wrong.is_none() && send.send(Ok(sample)).is_err() {
                    end.store(true, Ordering::Relaxed);
                }
            })?;
            wrong.map_or(Ok(()), Err)
        })
    }

    /// The samples of a record. `paced`: with the pauses that there were between them.
    pub fn record(
        name: String,
        mut file: Box<dyn BufRead + Send>,
        wanted: Vec<String>,
        paced: bool,
    ) -> Source {
        Source::spawn(move |end, send| {
            let (mut line, mut number, mut last) = (Vec::new(), 0, None);
            while !end.load(Ordering::Relaxed) {
                line.clear();
                let read = file
                    .by_ref()
                    .take(LONGEST_LINE)
                    .read_until(b'\n', &mut line);
                if read.with_context(|| format!("cannot read {name}"))? == 0 {
                    break;
                }
                number += 1;
                if line.trim_ascii().is_empty() {
                    continue;
                }
                let mut sample: Sample = match serde_json::from_slice(&line) {
                    Ok(sample) => sample,
                    // A record that was cut off while its last line was written is good up to there.
                    Err(_) if number > 1 && !line.ends_with(b"\n") => break,
                    Err(error) => {
                        Err(error).with_context(|| format!("{name}: line {number} is no sample"))?
                    }
                };
                sample
                    .interfaces
                    .retain(|name, _| wanted.is_empty() || wanted.contains(name));
                if let Some(last) = last.replace(sample.at_ns).filter(|_| paced) {
                    thread::park_timeout(
                        Duration::from_nanos(sample.at_ns.saturating_sub(last))
                            .min(Duration::from_secs(60)),
                    );
                }
                if send.send(Ok(sample)).is_err() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn spawn(
        work: impl FnOnce(&AtomicBool, &SyncSender<Result<Sample>>) -> Result<()> + Send + 'static,
    ) -> Source {
        let (send, samples) = sync_channel(WAITING);
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let thread = thread::spawn(move || {
            if let Err(error) = work(&ended, &send) {
                let _ = send.send(Err(error));
            }
        });
        Source {
            samples: Some(samples),
            end,
            thread: Some(thread),
        }
    }

    /// The next sample, waited for at most this long: `Ok(None)` if there is none yet.
    ///
    /// # Errors
    /// `None`: there are no more; or why there are none.
    pub fn next(&self, longest: Duration) -> Result<Option<Sample>, Option<anyhow::Error>> {
        let Some(samples) = &self.samples else {
            return Err(None);
        };
        match samples.recv_timeout(longest) {
            Ok(sample) => sample.map(Some).map_err(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(None),
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        // A thread that waits for room is freed by this.
        self.samples = None;
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
