//! A guest of QEMU: a kernel that is measured, with a file system in memory that linerate writes. No disk, no network, no file of the
//! host.
//!
//! `kernel` finds a kernel with its `modules`, in a folder or in a `package`; `programs` and `archive` make the file system, `machine` boots
//! it and holds it, `inside` is what linerate does there as the first program.

pub mod archive;
mod elf;
pub mod inside;
mod kernel;
mod machine;
mod modules;
mod package;
mod programs;
mod qmp;

pub use kernel::Kernel;
pub use machine::{Acceleration, Machine, Spec, acceleration};
pub use programs::file_system;

use std::io;

/// A fault of a kernel or of its guest.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    #[error("{0}")]
    Refused(String),
    #[error("cannot {what}: {why}")]
    Failed { what: String, why: io::Error },
    /// The guest has ended, or does not answer; with the last lines of its console.
    #[error("the guest with the kernel {kernel} {what}{}", said(.console))]
    Lost {
        kernel: String,
        what: String,
        console: Vec<String>,
    },
}

impl GuestError {
    fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> GuestError {
        let what = what.into();
        |why| GuestError::Failed { what, why }
    }
}

/// The last lines of a console, as the end of a sentence.
fn said(console: &[String]) -> String {
    match console {
        [] => "; its console said nothing".into(),
        lines => format!("; the last lines of its console:\n  {}", lines.join("\n  ")),
    }
}
