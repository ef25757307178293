//! Room for sessions on a connection: sshd takes no more than MaxSessions of them over one, ten by default.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Sessions beside the one that holds the connection, with sshd's own MaxSessions of 10.
const USUAL: usize = 9;
/// How long a connection that took no more is left alone: on the host, a session ends a little later than here.
const PAUSE: Duration = Duration::from_secs(2);

/// The room of one connection.
#[derive(Debug)]
pub(super) struct Room(Mutex<Taken>);

#[derive(Debug)]
struct Taken {
    used: usize,
    /// Whether a session was ever tried before the present ones.
    tried: bool,
    most: usize,
    /// Whether a session is kept free for commands that put the host back.
    keeps_one: bool,
    refused: Option<Instant>,
}

/// Room for one session. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    room: Arc<Room>,
    /// The path of the connection's socket.
    pub(super) socket: String,
}

/// For whom room is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// For any command: one session stays free for commands that put the host back.
    Usual,
    /// For a command that puts the host back.
    Last,
}

impl Room {
    pub(super) fn new() -> Arc<Room> {
        Arc::new(Room(Mutex::new(Taken {
            used: 0,
            tried: false,
            most: USUAL,
            keeps_one: true,
            refused: None,
        })))
    }

    /// How many sessions it takes, as far as is known.
    pub(super) fn most(&self) -> usize {
        self.taken().most
    }

    /// Beside others to the same host: it takes no more than they do, and need not leave a place.
    pub(super) fn beside(&self, most: usize) {
        let mut taken = self.taken();
        (taken.most, taken.keeps_one) = (most, false);
    }

    /// Room on the connection with this socket, if there is some.
    pub(super) fn take(self: &Arc<Room>, need: Need, socket: &str) -> Option<Slot> {
        let mut taken = self.taken();
        let kept = usize::from(taken.keeps_one && need == Need::Usual && taken.most > 1);
        if taken.refused.is_some_and(|at| at.elapsed() < PAUSE) || taken.used + kept >= taken.most {
            return None;
        }
        taken.used += 1;
        Some(Slot { room: self.clone(), socket: socket.to_owned() })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// The host did not take this session: there is no more room than for the others. Whether it is worth trying others: not where
    /// the very first one of a connection was refused.
    pub(super) fn refused(&self) -> bool {
        let mut taken = self.room.taken();
        let worth = taken.tried || taken.used > 1;
        taken.most = taken.most.min((taken.used - 1).max(1));
        taken.refused = Some(Instant::now());
        worth
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.room.taken();
        taken.used -= 1;
        taken.tried = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_place_is_for_putting_back() {
        let room = Room::new();
        let mut slots: Vec<Slot> = std::iter::from_fn(|| room.take(Need::Usual, "m0")).collect();
        assert_eq!(slots.len(), USUAL - 1);
        slots.extend(room.take(Need::Last, "m0"));
        assert_eq!((slots.len(), room.take(Need::Last, "m0").is_none()), (USUAL, true));
        drop(slots);
        assert!(room.take(Need::Usual, "m0").is_some());
    }

    #[test]
    fn a_refusal_tells_how_much_room_there_is() {
        let room = Room::new();
        let slots: Vec<Slot> = (0..3).filter_map(|_| room.take(Need::Usual, "m0")).collect();
        assert!(slots[2].refused());
        assert!(room.take(Need::Last, "m0").is_none());
        assert_eq!(room.taken().most, 2);
        // On the host, the others may only be about to end.
        drop(slots);
        room.taken().refused = None;
        assert!(room.take(Need::Last, "m0").unwrap().refused());
        room.taken().refused = None;
        assert!(room.take(Need::Usual, "m0").is_some());
        let other = Room::new();
        other.beside(room.most());
        assert!(!other.take(Need::Usual, "m1").unwrap().refused());
    }
}
