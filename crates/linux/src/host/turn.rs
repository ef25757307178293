//! Turns of linerates that measure on the same CPUs: a lock for each CPU, held under a load. A trial is short, so that campaigns which begin
//! at the same time alternate, and none waits for another's end.

use crate::net::registry::DEFAULT_ROOT;
use crate::ports::monotonic_ns;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// How often is looked whether the others' load is over: they pause longer between two loads.
const LOOK: Duration = Duration::from_millis(3);
/// A wait that is told.
const LONG_NS: u64 = 2_000_000_000;
/// Bytes that are read of the words about a holder.
const MOST_BYTES: u64 = 100;

/// The turn of this process on some CPUs, until it is dropped.
#[derive(Debug, Default)]
pub struct Turn {
    /// Nanoseconds that it waited for others.
    pub waited_ns: u64,
    locks: Vec<File>,
}

impl Turn {
    /// Waits for the turn. Where locks cannot be made, as without root, there is nothing to wait for; nor once it is `over`. `tell` gets a
    /// long wait in words, once.
    pub fn on(cpus: &[u32], over: impl Fn() -> bool, tell: impl FnOnce(String)) -> Turn {
        Turn::below(Path::new(DEFAULT_ROOT), cpus, over, tell)
    }

    /// `state`: the folder of the locks.
    pub fn below(state: &Path, cpus: &[u32], over: impl Fn() -> bool, tell: impl FnOnce(String)) -> Turn {
        // In one order, and all or none: nobody waits with a lock.
        let cpus: BTreeSet<u32> = cpus.iter().copied().collect();
        let (began, mut tell) = (monotonic_ns(), Some(tell));
        let mut waited_ns = 0;
        loop {
            let (cpu, holder) = match all(state, &cpus) {
                Ok(mut turn) => {
                    turn.waited_ns = waited_ns;
                    return turn;
                }
                Err(taken) => taken,
            };
            if over() {
                return Turn { waited_ns, locks: Vec::new() };
            }
            if let Some(tell) = tell.take_if(|_| waited_ns > LONG_NS) {
                tell(format!("waiting for another linerate ({holder}), which measures on CPU {cpu}"));
            }
            std::thread::sleep(LOOK);
            waited_ns = monotonic_ns() - began;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Said, because a program that another thread is about to start has the descriptors until it begins.
        for lock in &self.locks {
            let _ = flock(lock, FlockOperation::Unlock);
        }
    }
}

/// The turn on these CPUs; or the first that is another one's, and who that is.
fn all(state: &Path, cpus: &BTreeSet<u32>) -> Result<Turn, (u32, String)> {
    let mut turn = Turn::default();
    for cpu in cpus {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let opened = fs::create_dir_all(state).and_then(|()| options.open(state.join(format!("cpu-{cpu}"))));
        let Ok(mut file) = opened else { continue };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let words = format!("process {}", std::process::id());
                let _ = file.set_len(0).and_then(|()| file.write_all(words.as_bytes()));
                turn.locks.push(file);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                let _ = file.take(MOST_BYTES).read_to_string(&mut holder);
                return Err((*cpu, holder));
            }
            // No locks here.
            Err(_) => {}
        }
    }
    Ok(turn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_turn_waits_for_the_end_of_another_that_shares_a_cpu() {
        let state = std::env::temp_dir().join(format!("linerate-turn-{}", std::process::id()));
        let turn = |cpus: &[u32], over: &dyn Fn() -> bool| Turn::below(&state, cpus, over, |_| ());
        let first = turn(&[1, 2], &|| false);
        let beside = turn(&[0, 3], &|| false);
        assert_eq!([first.waited_ns, beside.waited_ns], [0, 0]);
        assert!(turn(&[0, 2], &|| true).locks.is_empty(), "Ctrl-C ends a wait");
        std::thread::scope(|scope| {
            let (tell, told) = channel();
            let waits = move || {
                let _ = tell.send(());
                false
            };
            let second = scope.spawn(move || turn(&[2], &waits).waited_ns);
            told.recv().unwrap();
            drop(first);
            assert!(second.join().unwrap() > 0);
        });
        let said = std::cell::RefCell::new(String::new());
        let until_told = || !said.borrow().is_empty();
        Turn::below(&state, &[3], until_told, |words| *said.borrow_mut() = words);
        let pid = std::process::id();
        assert_eq!(
            said.into_inner(),
            format!("waiting for another linerate (process {pid}), which measures on CPU 3")
        );
        drop(beside);
        fs::remove_dir_all(&state).unwrap();
    }
}
