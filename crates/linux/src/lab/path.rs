//! A path between two end hosts: by the kernel ([`netem`]), or by this program: each frame is held for half of a round-trip time, and no more leave than a
//! rate lets through. A thread waits for the next frame or the next one that is due; it burns no CPU.
//!
//! Super-frames stay whole, and count with all their segments: a frame of 64 KiB is as long on the wire as its 46 segments, and
//! arrives when the last of them would.

mod line;
pub mod netem;
mod segments;
mod tap;

pub use line::Link;
pub use segments::Flow;
pub use tap::Tap;

use crate::error::{Doing, Error};
use crate::ports::monotonic_ns;
use line::Line;
use linerate_measure::record::PathCounts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::setpriority_process;
use rustix::thread::set_current_timer_slack;
use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// A super-frame with its headers.
const LONGEST: usize = 65_536 + 64;
/// Frames that are read from one end before the other end, and the clock, are looked at again.
const BURST: usize = 32;
/// How often the thread looks whether it is to end.
const LOOK_NS: u64 = 20_000_000;

/// Both directions: from the first end to the second, and back.
type Lines = [Line; 2];

/// A running path. It ends when it is dropped.
pub struct Path {
    lines: Arc<Mutex<Lines>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Path {
    /// Joins two ends.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn new(ends: [Tap; 2], link: Link) -> Result<Path, Error> {
        let lines = Arc::new(Mutex::new([Line::new(link), Line::new(link)]));
        let stop = Arc::new(AtomicBool::new(false));
        let (of_thread, stops) = (Arc::clone(&lines), Arc::clone(&stop));
        let carry = move || carry(&ends, &of_thread, &stops);
        let thread = thread::Builder::new().name("path".into()).spawn(carry);
        let thread = Some(thread.doing("start the thread of a path")?);
        Ok(Path {
            lines,
            stop,
            thread,
        })
    }

    /// The counts of both directions, from the first end to the second and back.
    pub fn counts(&self) -> [PathCounts; 2] {
        lock(&self.lines).each_ref().map(|line| line.counts)
    }

    /// The connections from the first end to this port of the second that carried most, so many together.
    pub fn largest(&self, port: u16, count: usize) -> Flow {
        lock(&self.lines)[0].flows.largest(port, count)
    }

    /// Whether no frame is on its way.
    pub fn is_empty(&self) -> bool {
        lock(&self.lines).iter().all(|line| line.due_ns().is_none())
    }

    /// Why it has ended, if it has.
    pub fn failure(&mut self) -> Option<String> {
        let thread = self.thread.take_if(|thread| thread.is_finished())?;
        Some(match thread.join() {
            Ok(Err(error)) => format!("the path between the end hosts failed: {error}"),
            _ => "the path between the end hosts ended".into(),
        })
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(lines: &Mutex<Lines>) -> MutexGuard<'_, Lines> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries frames until it is stopped.
fn carry(ends: &[Tap; 2], lines: &Mutex<Lines>, stop: &AtomicBool) -> io::Result<()> {
    // Sleeps end when they should, and it comes before the programs at its ends. Not being allowed to is no error: the path counts
    // how late its frames are.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = setpriority_process(None, -20);
    let mut buffer = vec![0; LONGEST];
    let mut wait_ns = LOOK_NS;
    while !stop.load(Ordering::Relaxed) {
        if wait_ns > 0 {
            wait(ends, wait_ns)?;
        }
        let mut lines = lock(lines);
        let mut full = false;
        for from in [0, 1] {
            for nth in 0..BURST {
                let Some(len) = ends[from].read(&mut buffer)? else {
                    break;
                };
                let [there, back] = &mut *lines;
                if from == 1 {
                    there.flows.answered(&buffer[..len]);
                }
                let line = if from == 0 { there } else { back };
                line.take(&buffer[..len], monotonic_ns());
                full |= nth + 1 == BURST;
            }
        }
        for (line, to) in lines.iter_mut().zip([1, 0]) {
            line.release(monotonic_ns(), |frame| ends[to].write(frame));
        }
        let due = lines.iter().filter_map(Line::due_ns).min();
        let until = due.map_or(LOOK_NS, |due| {
            due.saturating_sub(monotonic_ns()).min(LOOK_NS)
        });
        wait_ns = if full { 0 } else { until };
    }
    Ok(())
}

/// Waits for a frame, or so long.
fn wait(ends: &[Tap; 2], ns: u64) -> io::Result<()> {
    let mut both = ends.each_ref().map(|end| PollFd::new(end, PollFlags::IN));
    let time = Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    };
    match poll(&mut both, Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
