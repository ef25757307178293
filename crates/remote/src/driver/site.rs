//! A host of a campaign: connected, lost, or on its way back.

use crate::{ExecutionTarget, RemoteError, Result, Target};
use linerate_hosts::phases::StepId;
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// How often a connection is looked at that has said nothing.
const LOOK: Duration = Duration::from_millis(250);

/// A host.
pub(super) struct Site {
    pub(super) name: String,
    target: Option<Target>,
    pub(super) state: State,
    /// Steps that are started there once it is connected and has room for them.
    pub(super) waiting: VecDeque<StepId>,
    looked: Instant,
}

/// A change of a host's connection.
pub(super) enum Change {
    Lost(RemoteError),
    Back,
}

/// How it is reached.
pub(super) enum State {
    Connected(ExecutionTarget),
    Lost,
    Connecting(Receiver<Result<ExecutionTarget>>),
}

impl Site {
    pub(super) fn new(place: ExecutionTarget) -> Site {
        let target = place.ssh().map(|connection| connection.target().clone());
        let (name, state) = (place.name().to_owned(), State::Connected(place));
        Site { name, target, state, waiting: VecDeque::new(), looked: Instant::now() }
    }

    pub(super) fn is_connected(&self) -> bool {
        matches!(self.state, State::Connected(_))
    }

    pub(super) fn watched(&self) -> Vec<RawFd> {
        match &self.state {
            State::Connected(place) => place.watched(),
            State::Lost | State::Connecting(_) => Vec::new(),
        }
    }

    /// Begins to connect again. The thread that does it is not waited for: it ends within the limit of the connection.
    pub(super) fn connect(&mut self) {
        if let (State::Lost, Some(target)) = (&self.state, self.target.clone()) {
            let (answer, answers) = channel();
            self.state = State::Connecting(answers);
            std::thread::spawn(move || {
                // The campaign is over and no longer waits for it: the connection ends here.
                let _ = answer.send(ExecutionTarget::connect(&target, None));
            });
        }
    }

    /// It is out of reach, and so is all that was connected to it.
    pub(super) fn lose(&mut self) {
        self.state = State::Lost;
    }

    /// Whether something has changed. `told`: its connection has output.
    pub(super) fn look(&mut self, told: bool) -> Option<Change> {
        match &self.state {
            State::Connected(place) => {
                if !told && self.looked.elapsed() < LOOK {
                    return None;
                }
                self.looked = Instant::now();
                place.lost().map(Change::Lost)
            }
            State::Lost => None,
            State::Connecting(answers) => match answers.try_recv() {
                Ok(Ok(place)) => {
                    self.state = State::Connected(place);
                    Some(Change::Back)
                }
                Ok(Err(error)) => Some(Change::Lost(error)),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => {
                    self.state = State::Lost;
                    None
                }
            },
        }
    }
}
