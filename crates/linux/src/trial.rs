//! Drives one trial: carries out the steps of the pure state machine in `linerate_measure::trial`, with a real clock and real
//! ports.

use crate::error::Error;
use crate::ports::{Port, go_first, monotonic_ns};
use linerate_measure::trial::{Machine, Moment, Sample, Step, Timing};
use linerate_wire::Load;
use rustix::process::{getpriority_process, setpriority_process};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// The outcome of a trial, before the audit.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Samples of the warm-up.
    pub warm_up: Vec<Sample>,
    /// Samples of the window.
    pub samples: Vec<Sample>,
    /// Samples of the window by direction, forward and reverse, if frames went in both.
    pub each: [Vec<Sample>; 2],
    /// CLOCK_MONOTONIC, in nanoseconds, of the first frame.
    pub began_ns: u64,
    /// Failures while it ran.
    pub faults: Vec<String>,
}

/// The calling thread goes before ordinary programs, as the generator's threads do, until this is dropped: on a machine with few CPUs it
/// shares one with a generator, and its samples and its stop must come through. Not being allowed to is no error.
struct Urgent(Option<i32>);

impl Urgent {
    fn new() -> Urgent {
        let usual = getpriority_process(None).ok();
        Urgent(usual.filter(|_| setpriority_process(None, -20).is_ok()))
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some(usual) = self.0 {
            let _ = setpriority_process(None, usual);
        }
    }
}

/// The generator stops by itself this long after the window if it gets no stop.
const OVERRUN_NS: u64 = 100_000_000;
/// How the fault begins that a load has of which no frame left.
pub const NOTHING_LEFT: &str = "no frame left the generator";
/// How long the first frame may take.
const START_WITHIN_NS: u64 = 5_000_000_000;
/// A sample whose two counters were read further apart than this is taken again.
const SAMPLE_SPREAD_NS: u64 = 20_000;

/// Runs one trial; the load's duration is that of `timing`. `at` is called at the moments that the load begins and ends, with CLOCK_MONOTONIC of its
/// first frame. Returns early when `interrupted` becomes true: the
/// load is stopped in any case. The receiver goes on counting: the caller stops it when its counters balance. A load of which no frame
/// leaves is a fault of the outcome ([`NOTHING_LEFT`]).
///
/// # Errors
/// A port could not be started.
pub fn run(
    timing: Timing,
    load: Load,
    generator: &mut dyn Port,
    receiver: &mut dyn Port,
    interrupted: &AtomicBool,
    mut at: impl FnMut(Moment, u64),
) -> Result<Outcome, Error> {
    let mut machine = Machine::new(timing);
    let mut outcome = Outcome::default();
    let mut urgent = None;
    let load = Load {
        duration_ns: timing.load_ns() + OVERRUN_NS,
        ..load
    };
    let counted = load.frames.is_some();
    loop {
        let began = outcome.began_ns;
        let sample = match machine.step() {
            Step::Start => {
                receiver.start(&load)?;
                generator.start(&load)?;
                // Not before: threads inherit the priority.
                urgent = Some(Urgent::new());
                match first_frame(generator, interrupted)? {
                    Ok(began_ns) => outcome.began_ns = began_ns,
                    Err(fault) => {
                        outcome.faults.push(fault);
                        return Ok(outcome);
                    }
                }
                at(Moment::Began, outcome.began_ns);
                None
            }
            Step::Sample(at) => {
                let over =
                    || interrupted.load(Ordering::Relaxed) || (counted && generator.finished());
                sleep_until(began + at, if counted { LOOK_AT_COUNT } else { LOOK }, over);
                (!over()).then(|| sample(began, generator, receiver, Some(&mut outcome.each)))
            }
            Step::Stop => {
                if let Err(error) = generator.stop() {
                    outcome.faults.push(error.to_string());
                }
                // Before others: what is read at the end is to be of the load.
                at(Moment::Ended, outcome.began_ns);
                urgent.take();
                None
            }
            Step::Drain(at) => {
                sleep_until(began + at, LOOK, || false);
                Some(sample(began, generator, receiver, None))
            }
            Step::Settle(ns) => {
                sleep_until(monotonic_ns() + ns, LOOK, || {
                    interrupted.load(Ordering::Relaxed)
                });
                None
            }
            Step::Done => break,
        };
        machine.done(sample, monotonic_ns().saturating_sub(outcome.began_ns));
    }
    [outcome.warm_up, outcome.samples] = machine.into_samples();
    for way in &mut outcome.each {
        way.drain(..outcome.warm_up.len().min(way.len()));
    }
    Ok(outcome)
}

/// Carries something out under a load, so long after its first frame, on a thread that is ready before. `load` gets a function to call with
/// the moment of that frame. Returns its result, and the other's with its beginning and end, in nanoseconds since that frame; `None` if
/// no frame left, or the load was over before. `act` gets a function that says whether the load is over.
pub fn under_load<T, R: Send>(
    after_ns: u64,
    act: impl FnOnce(&dyn Fn() -> bool) -> R + Send,
    load: impl FnOnce(&dyn Fn(u64)) -> T,
) -> (T, Option<(R, [u64; 2])>) {
    let (tell, told) = mpsc::channel::<u64>();
    let ended = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let began_ns = told.recv().ok()?;
            go_first();
            let over = || ended.load(Ordering::Relaxed);
            sleep_until(began_ns.saturating_add(after_ns), LOOK, over);
            if over() {
                return None;
            }
            let from_ns = monotonic_ns();
            let result = act(&over);
            Some((
                result,
                [from_ns, monotonic_ns()].map(|ns| ns.saturating_sub(began_ns)),
            ))
        });
        let result = load(&|began_ns| {
            let _ = tell.send(began_ns);
        });
        ended.store(true, Ordering::Relaxed);
        drop(tell);
        (result, waiting.join().unwrap_or(None))
    })
}

/// When the first frame left; or, in words, that none did, and then the load is over.
pub fn first_frame(
    generator: &mut dyn Port,
    interrupted: &AtomicBool,
) -> Result<Result<u64, String>, Error> {
    let asked = monotonic_ns();
    loop {
        let waited = monotonic_ns() - asked;
        // Asked first: a short load may begin and end at any moment.
        let finished = generator.finished();
        if let Some(began) = generator.began_ns() {
            return Ok(Ok(began));
        }
        if finished || waited > START_WITHIN_NS || interrupted.load(Ordering::Relaxed) {
            generator.stop()?; // says why, where there is a reason
            if interrupted.load(Ordering::Relaxed) {
                return Ok(Ok(monotonic_ns()));
            }
            let (backend, ms) = (generator.backend(), waited / 1_000_000);
            return Ok(Err(format!(
                "{NOTHING_LEFT} ({backend}) within {ms} ms: is the interface up, and has this machine a CPU for it?"
            )));
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Both counters at one moment. A thread that was kept from running between the two readings takes them again. `each`: also takes those
/// of each direction, of ports that have both.
fn sample(
    began_ns: u64,
    generator: &dyn Port,
    receiver: &dyn Port,
    each: Option<&mut [Vec<Sample>; 2]>,
) -> Sample {
    let mut attempts = 0;
    loop {
        let before = monotonic_ns();
        let ways = generator.frames_each().zip(receiver.frames_each());
        let (sent, received) = match ways {
            Some((sent, received)) => (sent.iter().sum(), received.iter().sum()),
            None => (generator.frames(), receiver.frames()),
        };
        let took = monotonic_ns() - before;
        if took < SAMPLE_SPREAD_NS || attempts == 5 {
            let t_ns = (before + took / 2).saturating_sub(began_ns);
            if let (Some((sent, received)), Some(each)) = (ways, each) {
                let taken = sent.into_iter().zip(received);
                each.iter_mut()
                    .zip(taken)
                    .for_each(|(way, (sent, received))| {
                        way.push(Sample {
                            t_ns,
                            sent,
                            received,
                        });
                    });
            }
            return Sample {
                t_ns,
                sent,
                received,
            };
        }
        attempts += 1;
    }
}

/// How often a sleeper looks whether it is over: for an interrupt…
pub const LOOK: Duration = Duration::from_millis(50);
/// …and for the last of a number of frames.
const LOOK_AT_COUNT: Duration = Duration::from_millis(1);

/// Sleeps until a moment on CLOCK_MONOTONIC, or until it is over; `look`: how often it looks whether it is.
pub fn sleep_until(at_ns: u64, look: Duration, over: impl Fn() -> bool) {
    while !over() {
        let now = monotonic_ns();
        if now >= at_ns {
            return;
        }
        std::thread::sleep(Duration::from_nanos(at_ns - now).min(look));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_plan::Backend;

    /// A port that does nothing: as a generator, one whose load is over before it has begun.
    struct Silent;

    impl Port for Silent {
        fn backend(&self) -> Backend {
            Backend::Xdp
        }

        fn start(&mut self, _: &Load) -> Result<(), Error> {
            Ok(())
        }

        fn finished(&self) -> bool {
            true
        }

        fn stop(&mut self) -> Result<(), Error> {
            Ok(())
        }
    }

    #[test]
    fn a_load_that_never_begins_is_a_fault_of_its_trial() {
        let timing = Timing::slice(1_000_000);
        let load = Load::lasting(timing.load());
        let ran = run(
            timing,
            load,
            &mut Silent,
            &mut Silent,
            &AtomicBool::new(false),
            |_, _| {},
        )
        .unwrap();
        assert!(
            ran.faults[0].starts_with(NOTHING_LEFT) && ran.samples.is_empty(),
            "{ran:?}"
        );
    }

    #[test]
    fn an_event_ends_with_its_load_and_does_not_come_after_it() {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let ((), event_run) = under_load(HOUR_NS, |_| (), |began| began(monotonic_ns()));
        assert!(event_run.is_none());
        let (tell, told) = mpsc::channel();
        let act = |over: &dyn Fn() -> bool| {
            tell.send(()).unwrap();
            sleep_until(monotonic_ns() + HOUR_NS, LOOK, over);
        };
        let load = |began: &dyn Fn(u64)| {
            began(monotonic_ns());
            told.recv().unwrap();
        };
        let ((), event_run) = under_load(0, act, load);
        assert!(event_run.is_some_and(|((), [from, to])| to - from < HOUR_NS / 60));
    }
}
