//! A host of a campaign: connected, lost, or on its way back.

use crate::remote::error::RemoteError;
use crate::remote::place::Place;
use crate::remote::target::Target;
use linerate_core::phases::StepId;
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
    /// What is to be started there once it is connected.
    pub(super) waiting: Vec<(StepId, String)>,
    looked: Instant,
}

/// How it is reached.
pub(super) enum State {
    Connected(Place),
    Lost,
    Connecting(Receiver<Result<Place, RemoteError>>),
}

impl Site {
    pub(super) fn new(place: Place) -> Site {
        let target = match &place {
            Place::Ssh(connection) => Some(connection.target().clone()),
            Place::Here { .. } | Place::Room { .. } => None,
        };
        let (name, state) = (place.name().to_owned(), State::Connected(place));
        Site { name, target, state, waiting: Vec::new(), looked: Instant::now() }
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
                // Nobody waits for it any more: the campaign is over, and the connection ends here.
                let _ = answer.send(Place::connect(&target, None));
            });
        }
    }

    /// Whether something has changed: it was lost, or is back. `told`: its connection has something to say.
    pub(super) fn look(&mut self, told: bool) -> Option<Result<(), RemoteError>> {
        match &self.state {
            State::Connected(place) => {
                if !told && self.looked.elapsed() < LOOK {
                    return None;
                }
                self.looked = Instant::now();
                place.lost().map(Err)
            }
            State::Lost => None,
            State::Connecting(answers) => match answers.try_recv() {
                Ok(Ok(place)) => {
                    self.state = State::Connected(place);
                    Some(Ok(()))
                }
                Ok(Err(error)) => Some(Err(error)),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => {
                    self.state = State::Lost;
                    None
                }
            },
        }
    }
}
