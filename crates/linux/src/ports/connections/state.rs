//! Structures that connections.bpf.c shares with user space.

use linerate_wire::STAGES;

/// `struct control` in connections.bpf.c.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Control {
    pub exchange: u32,
    pub epoch: u32,
    pub request: u32,
    pub object: u32,
    pub turn: u32,
    pub first_tuple: u32,
    pub client: [u32; 4],
    pub server: [u32; 4],
    pub stamp_every: u32,
    pub tuples: u32,
    pub resumed: u32,
    pub floods: u32,
    pub timed: u32,
    pub passes: u32,
    pub each: u32,
    pub patience_ns: u32,
    pub illegal: u64,
}

/// `struct opener` there: one for each CPU.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct OpenerState {
    pub duration_ns: u64,
    pub deadline_ns: u64,
    pub left: u64,
    pub rate_mfps: u64,
    pub credit: u64,
    pub last_ns: u64,
    pub first_ns: u64,
    pub not_before: u64,
    pub stall_ns: u64,
    pub finished: u64,
    pub first: u64,
    pub attempted: u64,
    pub refused: u64,
    pub window: u64,
    pub heard: u64,
    pub heard_ns: u64,
    pub looks: u64,
    pub given_up: u64,
    pub idle_ns: u64,
    pub target: u32,
    /// The source's last four bytes; see `macs_low`.
    pub macs_high: [u8; 4],
    /// Destination and the source's first two bytes.
    pub macs_low: [u8; 8],
    pub resumed: u64,
    pub awaits: u64,
    pub flood_mfps: u64,
    pub flood_credit: u64,
    pub flooded: u64,
    pub flood_run: u64,
    pub price: u64,
    pub flood_price: u64,
    pub late: u64,
    pub flood_late: u64,
    pub pad: u64,
}

/// `struct seen` there: one for each CPU of the clients, then of the servers.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Seen {
    pub came: [u64; STAGES],
    pub went: [u64; STAGES],
    pub again: [u64; STAGES],
    pub came_bytes: u64,
    pub went_bytes: u64,
    pub closed: u64,
    pub stale: u64,
    pub changed: u64,
    pub unwritten: u64,
    pub foreign: [u64; FOREIGN.len()],
    pub flood: [u64; 2],
    pub flood_answers: u64,
    pub acks: [u64; 2],
    pub shut: u64,
    pub shifted: u64,
    pub parts: u64,
    pub read: u64,
    pub refused: u64,
}

/// `struct progress` there: one for each thread that opens connections.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Progress {
    pub closed: u64,
    pub frames: u64,
}

/// Kinds of frames that belong to no connection.
pub const FOREIGN: [&str; 5] = ["RST", "ICMP", "ARP", "ICMPv6", "other"];

const _: () = assert!(size_of::<Control>() == 96);
const _: () = assert!(size_of::<OpenerState>() == 256);
const _: () = assert!(size_of::<Seen>() == 384);
