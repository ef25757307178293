//! A lab's hosts connected, and asked for all the facts that `linerate_hosts` checks. Nothing on them is changed.

mod asking;
mod frames;

pub use asking::{Approach, collect, connect, survey, unreachable};
pub use frames::{Frames, received, send_frames};
