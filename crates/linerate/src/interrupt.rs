//! Ctrl-C: the first one ends the load and lets everything be put back and written; the second ends the program at once.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the first SIGINT, SIGTERM or SIGHUP.
pub static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether the user wants to stop.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Whether further signals are only noted.
static PATIENT: AtomicBool = AtomicBool::new(false);

/// Lets no signal end the program at once, however often it comes: nobody sits there who could be impatient, and a session that ends
/// brings several.
pub fn be_patient() {
    PATIENT.store(true, Ordering::Relaxed);
}

extern "C" fn on_signal(signal: libc::c_int) {
    if INTERRUPTED.swap(true, Ordering::Relaxed) && !PATIENT.load(Ordering::Relaxed) {
        // SAFETY: _exit is async-signal-safe. Namespaces and programs belong to this process and go with it.
        unsafe { libc::_exit(128 + signal) };
    }
}

/// Installs the handler.
pub fn install() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only touches an atomic or calls _exit; the struct is zeroed plain data.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
    // A limit on file sizes (ulimit -f) is then an error of the write, reported with the file, and not the program's end.
    // SAFETY: ignoring a signal has no handler that could be wrong.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
