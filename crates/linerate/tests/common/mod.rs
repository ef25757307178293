//! Shared parts of the end-to-end tests: programs with time limits, scratch folders, campaigns, labs and namespaces.
//!
//! Every program runs in a session of its own, which is killed when the test is over, has panicked, or has run out of time;
//! should the test itself be killed, the kernel ends its programs.
#![allow(
    dead_code,
    unused_imports,
    reason = "each test program uses a part of this"
)]

pub mod browser;
pub mod campaign;
pub mod lab;
pub mod machine;
pub mod process;
pub mod schema;

pub use campaign::{Bench, Campaign};
pub use lab::{Lab, Namespace};
pub use machine::{own_machine, own_run};
pub use process::{Ended, Program, Running};

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The program under test.
pub const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");

/// The program under test with arguments.
pub fn linerate<S: AsRef<str>>(args: impl IntoIterator<Item = S>) -> Program {
    Program::new(LINERATE).args(args)
}

/// The program under test with arguments that are separated by blanks.
pub fn linerate_line(line: &str) -> Program {
    linerate(line.split_whitespace())
}

/// A name that no other test and no other run of the tests uses.
pub fn unique(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "e2e-{what}-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// A folder that is removed with everything in it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new folder that other users can read.
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(unique("linerate"));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it, as text.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The frames of a capture in the machine's own byte order, read without linerate's parser. An incomplete frame at its end, while
/// the capture is still being written, is left out.
pub fn frames_of(file: &str) -> Vec<Vec<u8>> {
    let capture = std::fs::read(file).unwrap_or_default();
    let word = |at: usize| u32::from_ne_bytes(capture[at..at + 4].try_into().unwrap()) as usize;
    let (mut frames, mut at) = (Vec::new(), 24);
    while at + 16 <= capture.len() && at + 16 + word(at + 8) <= capture.len() {
        frames.push(capture[at + 16..at + 16 + word(at + 8)].to_vec());
        at += 16 + word(at + 8);
    }
    frames
}

/// The middle of some figures.
pub fn median(figures: &[f64]) -> f64 {
    assert!(!figures.is_empty(), "a median of nothing");
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

/// Looks again and again, at first after a few milliseconds, until `ready` gives something, for a minute at most.
pub fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let began = std::time::Instant::now();
    let mut pause = std::time::Duration::from_millis(5);
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(began.elapsed().as_secs() < 60, "waited in vain for {what}");
        std::thread::sleep(pause);
        pause = (2 * pause).min(std::time::Duration::from_millis(40));
    }
}
