//! Turns of linerates that measure on the same CPUs: a lock for each CPU, held under a load. A trial is short, so that campaigns which begin
//! at the same time alternate, and none waits for another's end.

use crate::net::registry::DEFAULT_ROOT;
use crate::ports::monotonic_ns;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often is looked whether the others' load is over: they pause longer between two loads.
const LOOK: Duration = Duration::from_millis(3);
/// A wait that is told.
const LONG_NS: u64 = 2_000_000_000;
/// Bytes of a name.
const MOST_BYTES: usize = 100;
/// The end of a name: the rest of a longer one may follow it for a moment.
const END: char = '\n';

/// The turn of a linerate on some CPUs, until it is dropped.
#[derive(Debug, Default)]
pub struct Turn {
    /// Nanoseconds that it waited for others.
    pub waited_ns: u64,
    locks: Vec<File>,
}

/// A CPU on which another linerate measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    pub cpu: u32,
    /// Who that is: `process 4711`.
    pub by: String,
}

impl Taken {
    /// Who is waited for.
    pub fn words(&self) -> String {
        // A name is empty until the first linerate that ever had this CPU has written it.
        let by = match self.by.as_str() {
            "" => String::new(),
            by => format!(" ({by})"),
        };
        format!("another linerate{by}, which measures on CPU {}", self.cpu)
    }
}

impl Turn {
    /// Waits for the turn of this process. Where locks cannot be made, as without root, there is nothing to wait for; nor once it is `over`.
    /// `tell` gets a long wait in words, once for each other linerate.
    pub fn on(cpus: &[u32], over: impl Fn() -> bool, tell: impl Fn(String)) -> Turn {
        static TOLD: Mutex<Option<Taken>> = Mutex::new(None);
        let of = format!("process {}", std::process::id());
        let waiting = |taken: &Taken, waited_ns| {
            let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
            if waited_ns > LONG_NS && told.as_ref() != Some(taken) {
                tell(format!("waiting for {}", taken.words()));
                *told = Some(taken.clone());
            }
            !over()
        };
        Turn::below(Path::new(DEFAULT_ROOT), &of, cpus, waiting).unwrap_or_else(|(waited_ns, _)| {
            let locks = Vec::new();
            Turn { waited_ns, locks }
        })
    }

    /// Waits for the turn of the linerate that `of` names: those with one name have their turn together. Waits for so long at most, or until
    /// it is `over`.
    ///
    /// # Errors
    /// The turn is still another one's.
    pub fn within(
        most: Duration,
        of: &str,
        cpus: &[u32],
        over: impl Fn() -> bool,
    ) -> Result<Turn, Taken> {
        let most = most.as_nanos() as u64;
        let waiting = |_: &Taken, waited_ns| waited_ns < most && !over();
        Turn::below(Path::new(DEFAULT_ROOT), of, cpus, waiting).map_err(|(_, taken)| taken)
    }

    /// `state`: the folder of the locks. `waiting` gets who is waited for, and for how many nanoseconds, and decides whether to go on.
    ///
    /// # Errors
    /// The nanoseconds that were waited, and whose turn it is.
    pub fn below(
        state: &Path,
        of: &str,
        cpus: &[u32],
        mut waiting: impl FnMut(&Taken, u64) -> bool,
    ) -> Result<Turn, (u64, Taken)> {
        // In one order, and all or none: nobody waits with a lock.
        let cpus: BTreeSet<u32> = cpus.iter().copied().collect();
        let (began, mut waited_ns) = (monotonic_ns(), 0);
        loop {
            match all(state, of, &cpus) {
                Ok(mut turn) => {
                    turn.waited_ns = waited_ns;
                    return Ok(turn);
                }
                Err(taken) if !waiting(&taken, waited_ns) => return Err((waited_ns, taken)),
                Err(_) => std::thread::sleep(LOOK),
            }
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

/// The turn on these CPUs; or the first that is another one's.
fn all(state: &Path, of: &str, cpus: &BTreeSet<u32>) -> Result<Turn, Taken> {
    let mut turn = Turn::default();
    for cpu in cpus {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let opened =
            fs::create_dir_all(state).and_then(|()| options.open(state.join(format!("cpu-{cpu}"))));
        let Ok(file) = opened else { continue };
        match lock(&file, of) {
            Ok(()) => turn.locks.push(file),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(Taken {
                    cpu: *cpu,
                    by: holder(&file),
                });
            }
            // No locks here.
            Err(_) => {}
        }
    }
    Ok(turn)
}

/// Locks a CPU's file for all that have this name. The one that comes first writes the name, while nobody else has a lock.
fn lock(file: &File, of: &str) -> rustix::io::Result<()> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            // Written in one piece over the name from before, because others read while this is done.
            let name = format!("{of}{END}");
            let _ = file
                .write_all_at(name.as_bytes(), 0)
                .and_then(|()| file.set_len(name.len() as u64));
        }
        Err(rustix::io::Errno::WOULDBLOCK) if holder(file) == of => {}
        Err(error) => return Err(error),
    }
    // Changing a lock gives it up for a moment, in which another one may come (flock(2)).
    flock(file, FlockOperation::NonBlockingLockShared)?;
    if holder(file) == of {
        return Ok(());
    }
    flock(file, FlockOperation::Unlock)?;
    Err(rustix::io::Errno::WOULDBLOCK)
}

/// The name of those who have a CPU.
fn holder(file: &File) -> String {
    let mut name = vec![0; MOST_BYTES];
    let read = file.read_at(&mut name, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&name[..read]);
    text.split(END).next().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// A folder for locks that goes with the value.
    struct Locks(std::path::PathBuf);

    impl Locks {
        fn new(name: &str) -> Locks {
            Locks(std::env::temp_dir().join(format!("linerate-turn-{name}-{}", std::process::id())))
        }

        fn try_once(&self, of: &str, cpus: &[u32]) -> Result<Turn, String> {
            Turn::below(&self.0, of, cpus, |_, _| false).map_err(|(_, taken)| taken.words())
        }
    }

    impl Drop for Locks {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn a_turn_waits_for_the_end_of_another_that_shares_a_cpu() {
        let locks = Locks::new("waits");
        let first = locks.try_once("process 1", &[1, 2]).unwrap();
        let beside = locks.try_once("process 2", &[0, 3]).unwrap();
        assert_eq!([first.waited_ns, beside.waited_ns], [0, 0]);
        let taken = locks.try_once("process 3", &[0, 2]).unwrap_err();
        assert_eq!(
            taken,
            "another linerate (process 2), which measures on CPU 0"
        );
        std::thread::scope(|scope| {
            let (tell, told) = channel();
            let state = &locks.0;
            let second = scope.spawn(move || {
                let waiting = |_: &Taken, _| {
                    let _ = tell.send(());
                    true
                };
                Turn::below(state, "process 3", &[2], waiting)
                    .unwrap()
                    .waited_ns
            });
            told.recv().unwrap();
            drop(first);
            assert!(second.join().unwrap() > 0);
        });
    }

    #[test]
    fn no_name_is_mixed_with_another_or_shown_as_empty_brackets() {
        let locks = Locks::new("names");
        fs::create_dir_all(&locks.0).unwrap();
        let path = locks.0.join("cpu-1");
        let file = File::create(&path).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        let told = || locks.try_once("process 9", &[1]).unwrap_err();
        assert_eq!(told(), "another linerate, which measures on CPU 1");
        fs::write(&path, "process 1\nof a longer one").unwrap();
        assert_eq!(
            told(),
            "another linerate (process 1), which measures on CPU 1"
        );
        // Said, because a program that another test is about to start has this descriptor until it begins.
        flock(&file, FlockOperation::Unlock).unwrap();
        drop(locks.try_once("process 9", &[1]).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "process 9\n");
    }

    #[test]
    fn those_of_one_name_have_their_turn_together() {
        let locks = Locks::new("together");
        let [one, two] =
            [[0, 1], [1, 2]].map(|cpus| locks.try_once("process 1 of lab", &cpus).unwrap());
        let other = || locks.try_once("process 2", &[1]);
        assert!(
            other()
                .unwrap_err()
                .contains("(process 1 of lab), which measures on CPU 1")
        );
        drop(one);
        assert!(other().is_err());
        drop(two);
        let other = other().unwrap();
        assert!(
            locks.try_once("process 1 of lab", &[1]).is_err(),
            "the name from before is gone"
        );
        drop(other);
        locks.try_once("process 1 of lab", &[0, 1, 2]).unwrap();
    }
}
