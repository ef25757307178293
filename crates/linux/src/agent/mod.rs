//! `linerate agent`: serves the protocol of `linerate_hosts::agent` on two pipes, with the ports of this host.
//!
//! Four threads: one reads lines, one writes them, one carries out slow tasks ([`worker`]), and this one decides. It never waits
//! for the others, so that silence, a signal or the end of the input always stop a load.

mod ports;
mod worker;

use crate::host::cpu;
use crate::ports::{go_first, monotonic_ns};
use linerate_hosts::agent::message::Lines;
use linerate_hosts::agent::message::{Reply, Request, encode};
use linerate_hosts::agent::server::{Action, Event, Session};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::time::Duration;
use worker::{Input, Worker};

pub use ports::{Connection, Options};

/// How often the deciding thread looks at the clock and for signals.
const LOOK: Duration = Duration::from_millis(10);
/// Lines that may wait to be read…
const UNREAD: usize = 64;
/// …and to be written. With more, the controller has stopped reading.
const UNWRITTEN: usize = 1024;
/// How long the last lines may take to be written.
const PARTING: Duration = Duration::from_millis(500);

/// Serves one session, to its end; `true` if it ended by a goodbye. Nothing is left running, whatever ended it.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    options: Options,
    interrupted: &AtomicBool,
) -> bool {
    let (inputs, events) = mpsc::sync_channel(UNREAD);
    let (tasks, todo) = mpsc::channel();
    let cancel = Arc::new(AtomicBool::new(false));
    let session = Session::new(&options.linerate, cpu::online_cpus().unwrap_or_default(), monotonic_ns());
    let mut worker = Worker::new(options, inputs.clone(), Arc::clone(&cancel));
    std::thread::spawn(move || worker.run(&todo));
    // After the worker, whose programs and threads should run as any other. This one must run when a load is to be stopped.
    // Before the generator's threads, which are at -20 themselves and have all of a CPU each: a stop must come through.
    go_first();
    let (lines, written) = write_on_thread(output);
    read_on_thread(input, inputs);
    let clean = Loop { session, tasks, lines, cancel, heard_ns: 0 }.run(&events, interrupted);
    let _ = written.recv_timeout(PARTING);
    clean
}

/// The deciding thread.
struct Loop {
    session: Session,
    tasks: Sender<Request>,
    lines: SyncSender<Vec<u8>>,
    cancel: Arc<AtomicBool>,
    /// When the line that is being looked at was read.
    heard_ns: u64,
}

impl Loop {
    fn run(mut self, events: &Receiver<Input>, interrupted: &AtomicBool) -> bool {
        while !self.session.is_over() {
            if interrupted.load(Ordering::Relaxed) {
                self.handle(Event::Interrupted);
            }
            match events.recv_timeout(LOOK) {
                Ok(Input::Line(at_ns, line)) => {
                    self.heard_ns = at_ns;
                    self.handle(Event::Line(&line));
                }
                Ok(Input::Closed) => self.handle(Event::Closed),
                Ok(Input::Flood) => self.handle(Event::Line(b"a line that is longer than any message")),
                Ok(Input::Said(reply)) => self.handle(Event::Said(reply)),
                Ok(Input::Done(result)) => self.handle(Event::Done(result)),
                Err(RecvTimeoutError::Timeout) => {}
                // The worker holds one end for as long as it lives.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.handle(Event::Tick);
        }
        self.session.was_clean()
    }

    fn handle(&mut self, event: Event<'_>) {
        for action in self.session.handle(event, monotonic_ns()) {
            match action {
                Action::Send(id, reply) => self.send(id, &reply),
                Action::SendTime(id) => {
                    let (heard_ns, answered_ns) = (self.heard_ns, monotonic_ns());
                    self.send(id, &Reply::Time { heard_ns, answered_ns });
                }
                Action::Do(task) => {
                    // The worker is idle, so no task sees the flag now.
                    self.cancel.store(false, Ordering::Relaxed);
                    let _ = self.tasks.send(task);
                }
                Action::Cancel => self.cancel.store(true, Ordering::Relaxed),
                Action::Finish => {}
            }
        }
    }

    fn send(&mut self, id: u64, reply: &Reply) {
        if self.lines.try_send(encode(id, reply)).is_err() && !self.session.is_over() {
            // Reported once the actions at hand are done: the session ends in the same turn.
            self.handle(Event::Unheard);
        }
    }
}

fn read_on_thread(mut input: impl Read + Send + 'static, to: SyncSender<Input>) {
    std::thread::spawn(move || {
        let mut lines = Lines::default();
        let mut piece = vec![0; 64 << 10];
        loop {
            let length = match input.read(&mut piece) {
                Ok(length) if length > 0 => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                _ => break,
            };
            let at_ns = monotonic_ns();
            let taken = lines.take(&piece[..length], |line| {
                let _ = to.send(Input::Line(at_ns, line.to_vec()));
            });
            if taken.is_err() {
                let _ = to.send(Input::Flood);
                return;
            }
        }
        let _ = to.send(Input::Closed);
    });
}

/// Writes on a thread of its own, because a full pipe blocks its writer. Returns the channel for lines, and one that reports the
/// end.
fn write_on_thread(mut output: impl Write + Send + 'static) -> (SyncSender<Vec<u8>>, Receiver<()>) {
    let (lines, waiting) = mpsc::sync_channel::<Vec<u8>>(UNWRITTEN);
    let (over, ended) = mpsc::channel();
    std::thread::spawn(move || {
        for line in waiting {
            if output.write_all(&line).and_then(|()| output.flush()).is_err() {
                break;
            }
        }
        let _ = over.send(());
    });
    (lines, ended)
}
