//! State that the threads of a connection share, and the work of each of them.

use crate::Control;
use linerate_hosts::agent::client::{Heard, Lost, Session};
use linerate_hosts::agent::lines::Lines;
use linerate_hosts::agent::message::Reply;
use linerate_linux::ports::monotonic_ns;
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// State that the threads share.
pub(super) struct Shared {
    pub state: Mutex<State>,
    pub changed: Condvar,
    /// The agent's input.
    pub control: Arc<Control>,
}

pub(super) struct State {
    pub session: Session,
    /// By number, with the time when they were here.
    pub answers: BTreeMap<u64, (u64, Reply)>,
    /// Messages of loads, by the number of their go.
    pub said: VecDeque<(u64, Reply)>,
    pub lost: Option<Lost>,
}

/// How often silence is looked for, and heartbeats are.
const LOOK: Duration = Duration::from_millis(20);
/// How long a line may take to be written: an agent that reads nothing is lost soon.
const WRITE_WITHIN: Duration = Duration::from_secs(1);
/// Most messages of loads that wait for a caller; the oldest are dropped.
const UNTAKEN: usize = 200_000;

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn wait<'a>(&self, state: MutexGuard<'a, State>, most: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0
    }

    pub fn write(&self, line: &[u8]) {
        match self.control.write_all(line, WRITE_WITHIN) {
            // One that has ended shows by its output.
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => {}
            Err(_) => self.lose("it does not read what it is asked".into()),
            Ok(()) => {}
        }
    }

    pub fn lose(&self, lost: Lost) {
        let mut state = self.lock();
        state.lost.get_or_insert(lost);
        drop(state);
        self.changed.notify_all();
    }

    pub fn read(&self, mut output: impl Read) {
        let (mut lines, mut piece) = (Lines::default(), vec![0; 64 << 10]);
        loop {
            let length = match output.read(&mut piece) {
                Ok(length) if length > 0 => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                _ => {
                    let lost = self.lock().session.closed();
                    return self.lose(lost);
                }
            };
            let at_ns = monotonic_ns();
            let mut state = self.lock();
            let mut lost = None;
            let taken = lines.take(&piece[..length], |line| {
                if lost.is_none() {
                    lost = state.heard(line, at_ns).err();
                }
            });
            drop(state);
            let flood = taken.err().map(|error| error.to_string());
            if let Some(lost) = lost.or(flood) {
                return self.lose(lost);
            }
            self.changed.notify_all();
        }
    }

    pub fn beat(&self) {
        loop {
            std::thread::sleep(LOOK);
            let tick = {
                let mut state = self.lock();
                if state.lost.is_some() || state.session.is_over() {
                    return;
                }
                state.session.tick(monotonic_ns())
            };
            match tick {
                Ok(Some(line)) => self.write(&line),
                Ok(None) => {}
                Err(lost) => return self.lose(lost),
            }
            if self.control.fd().is_none() {
                return;
            }
        }
    }
}

impl State {
    fn heard(&mut self, line: &[u8], at_ns: u64) -> Result<(), Lost> {
        match self.session.line(line, at_ns)? {
            Heard::Answer(id, reply) => {
                self.answers.insert(id, (at_ns, reply));
            }
            Heard::Said(id, reply) => {
                if self.said.len() >= UNTAKEN {
                    self.said.pop_front();
                }
                self.said.push_back((id, reply));
            }
            Heard::Nothing => {}
        }
        Ok(())
    }
}
