//! Ctrl-C: the first one ends the load, restores all changes and writes the records; the second ends the program at once. If that
//! would leave hosts changed, both say so.

use linerate_report::pages::ascii;
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the first SIGINT, SIGTERM or SIGHUP.
pub static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether the user wants to stop.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Whether further signals are only noted.
static PATIENT: AtomicBool = AtomicBool::new(false);

/// Lets no signal end the program at once, however often it comes: no user waits at a terminal, and a session that ends sends
/// several signals.
pub fn be_patient() {
    PATIENT.store(true, Ordering::Relaxed);
}

/// Hosts that are restored at the end, as text for the signal handler, which may only read memory that already exists.
pub struct Hosts {
    hosts: Vec<(Vec<u8>, AtomicBool)>,
    /// End of a line of progress on the terminal.
    begin: &'static [u8],
}

static HOSTS: OnceLock<Hosts> = OnceLock::new();

impl Hosts {
    /// Hosts of these names, all unchanged so far. From now on the first signal prints that they are restored, and the second
    /// prints which of them are not. They stay until the program ends.
    pub fn announced<'n>(names: impl Iterator<Item = &'n str>) -> &'static Hosts {
        let host = |name: &'n str| (ascii(name).into_bytes(), AtomicBool::new(false));
        let begin: &[u8] = if std::io::stderr().is_terminal() {
            b"\n"
        } else {
            b""
        };
        HOSTS.get_or_init(|| Hosts {
            hosts: names.map(host).collect(),
            begin,
        })
    }

    /// A host was changed, or is as it was.
    pub fn changed(&self, host: usize, changed: bool) {
        if let Some((_, flag)) = self.hosts.get(host) {
            flag.store(changed, Ordering::Relaxed);
        }
    }

    fn say(&self, again: bool) {
        let changed = || {
            self.hosts
                .iter()
                .filter(|(_, flag)| flag.load(Ordering::Relaxed))
        };
        tell(self.begin);
        if !again {
            tell(b"linerate: interrupted: ending the load and resetting the hosts; a second Ctrl-C leaves them as they are\n");
        } else if changed().next().is_none() {
            tell(b"linerate: ended at once; no host was waiting for its reset\n");
        } else {
            tell(b"linerate: ended at once; not reset, and left as they are:");
            changed().for_each(|(name, _)| {
                tell(b" ");
                tell(name);
            });
            tell(b"\n");
        }
    }
}

/// Writes to standard error as a signal handler may.
fn tell(text: &[u8]) {
    let _ = rustix::io::write(rustix::stdio::stderr(), text);
}

extern "C" fn on_signal(signal: libc::c_int) {
    let again = INTERRUPTED.swap(true, Ordering::Relaxed);
    if let Some(hosts) = HOSTS.get() {
        hosts.say(again);
    }
    if again && !PATIENT.load(Ordering::Relaxed) {
        // SAFETY: _exit is async-signal-safe. Namespaces and programs belong to this process and go with it.
        unsafe { libc::_exit(128 + signal) };
    }
}

/// Installs the handler.
pub fn install() {
    // SAFETY: the handler only reads existing memory, touches atomics, writes or calls _exit; the struct is zeroed plain data.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}
