//! Real drivers: guests of QEMU with Debian's kernels, as routers and as testers.
//!
//! - `Stand { kernel, card }` names a kernel that scripts/stand has unpacked, and the kind of both cards.
//! - `GuestLab::router(stand)` boots a guest between a generator and a receiver, `GuestLab::tester(stand)` one that is both.
//! - `lab.guest.on("ethtool -k in0")` runs lines of a shell there.

#[path = "stand/archive.rs"]
mod archive;
#[path = "stand/guest.rs"]
mod guest;
#[path = "stand/lab.rs"]
mod lab;
#[path = "stand/plans.rs"]
mod plans;
#[path = "stand/short.rs"]
mod short;
#[path = "stand/state.rs"]
mod state;
