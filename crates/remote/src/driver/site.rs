//! A host of a campaign: connected, lost, or on its way back.

use crate::connection::ControlMaster;
use crate::error::RemoteError;
use crate::execution_target::ExecutionTarget;
use crate::target::Target;
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
    pub(super) waiting: VecDeque<Waiting>,
    /// The answer to the wish for more room.
    more: Option<Receiver<Result<ControlMaster, RemoteError>>>,
    looked: Instant,
}

/// A step that is to be started.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) step: StepId,
    /// How often the host did not take its session.
    pub(super) refused: u32,
}

/// A change of a host's connection.
pub(super) enum Change {
    Lost(RemoteError),
    Back,
    /// There is no room for further sessions, and no further connection could be made.
    NoMore(RemoteError),
}

/// How it is reached.
pub(super) enum State {
    Connected(ExecutionTarget),
    Lost,
    Connecting(Receiver<Result<ExecutionTarget, RemoteError>>),
}

impl Site {
    pub(super) fn new(place: ExecutionTarget) -> Site {
        let target = match &place {
            ExecutionTarget::Ssh(connection) => Some(connection.target().clone()),
            ExecutionTarget::Here { .. } | ExecutionTarget::Room { .. } => None,
        };
        let (name, state) = (place.name().to_owned(), State::Connected(place));
        Site { name, target, state, waiting: VecDeque::new(), more: None, looked: Instant::now() }
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
                let _ = answer.send(ExecutionTarget::connect(&target, None));
            });
        }
    }

    /// Begins to make room for more sessions, if that may be done. Nobody waits for that either.
    pub(super) fn extend(&mut self) -> bool {
        match (&self.more, &self.state) {
            (Some(_), _) => true,
            (None, State::Connected(ExecutionTarget::Ssh(connection))) if connection.is_extensible() => {
                let (target, (answer, answers)) = (connection.target().clone(), channel());
                self.more = Some(answers);
                std::thread::spawn(move || {
                    let _ = answer.send(ControlMaster::open(&target, None));
                });
                true
            }
            (None, _) => false,
        }
    }

    /// It is out of reach, and so is all that was connected to it.
    pub(super) fn lose(&mut self) {
        (self.state, self.more) = (State::Lost, None);
    }

    /// Looks whether a further connection was made, or why it was not.
    fn look_for_room(&mut self) -> Option<Change> {
        match (self.more.as_ref()?.try_recv(), &self.state) {
            (Err(TryRecvError::Empty), _) => return None,
            (Ok(Ok(line)), State::Connected(ExecutionTarget::Ssh(connection))) => connection.add(line),
            (Ok(Err(error)), _) => {
                self.more = None;
                return Some(Change::NoMore(error));
            }
            (Ok(Ok(_)) | Err(TryRecvError::Disconnected), _) => {}
        }
        self.more = None;
        None
    }

    /// Whether something has changed. `told`: its connection has something to say.
    pub(super) fn look(&mut self, told: bool) -> Option<Change> {
        self.look_at_connection(told).or_else(|| self.look_for_room())
    }

    fn look_at_connection(&mut self, told: bool) -> Option<Change> {
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
